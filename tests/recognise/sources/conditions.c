/* Products where run time says so; each is called where it does not, too. */

#include <stdint.h>

// backwards_by_wrapping(u32 c[m*n], u32 a[m*k], u32 b[k*n], int m>=1, int n>=0, int k>=0, int s=0-n) replaced mk,kn->mn
void backwards_by_wrapping(uint32_t *c, const uint32_t *a, const uint32_t *b, int m, int n, int k, unsigned s) {
    unsigned last = (m - 1) * n;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[last + i * s + j] += a[i * k + p] * b[p * n + j];
}

// bytes_that_wrap(u32 c[256], u32 a[m*k], u32 b[k*8], int m, int k) any
void bytes_that_wrap(uint32_t *c, const uint32_t *a, const uint32_t *b, int m, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < 8; ++j)
            for (int p = 0; p < k; ++p)
                c[(uint8_t)(i * 8 + j)] += a[i * k + p] * b[p * 8 + j];
}

// overlapping_rows(u32 c[3*m+n], u32 a[m*k], u32 b[k*n], int m>=0, int n>=0, int k, int ldc=3) replaced mk,kn->mn
void overlapping_rows(uint32_t *c, const uint32_t *a, const uint32_t *b, int m, int n, int k, int ldc) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[i * ldc + j] += a[i * k + p] * b[p * n + j];
}

// rows_in_one_place(u32 c[n], u32 a[m*k], u32 b[k*n], int m, int n>=0, int k, int ldc=0) replaced mk,kn->mn
void rows_in_one_place(uint32_t *c, const uint32_t *a, const uint32_t *b, int m, int n, int k, int ldc) {
    for (int p = 0; p < k; ++p)
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j)
                c[i * ldc + j] += a[i * k + p] * b[p * n + j];
}

// set_in_one_place(u32 c[n], u32 a[m*k], u32 b[k*n], int m, int n>=0, int k, int ldc=0) replaced mk,kn->mn set
void set_in_one_place(uint32_t *c, const uint32_t *a, const uint32_t *b, int m, int n, int k, int ldc) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            c[i * ldc + j] = 0;
            for (int p = 0; p < k; ++p)
                c[i * ldc + j] += a[i * k + p] * b[p * n + j];
        }
}

// depth_in_memory(i32 c[m*n], i32 depth[1]=8, i32 a[m*8]=-1, i32 b[8*n]=1, int m, int n) replaced mk,kn->mn
void depth_in_memory(int *c, const int *depth, const int *a, const int *b, int m, int n) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < *depth; ++p)
                c[i * n + j] += a[i * 8 + p] * b[p * n + j];
}

// factor_in_memory(i32 c[m*n], i32 alpha[1]=3, i32 a[m*k], i32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void factor_in_memory(int *c, const int *alpha, const int *a, const int *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[i * n + j] += *alpha * a[i * k + p] * b[p * n + j];
}

struct scales { float alpha, beta; };

// scales_in_memory(f32 c[m*n] alone, f32 a[m*k], f32 b[k*n], f32 s[2]=3, int m, int n, int k) replaced mk,kn->mn
void scales_in_memory(float *restrict c, const float *restrict a, const float *restrict b,
                      const struct scales *restrict s, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = 0;
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = s->alpha * sum + s->beta * c[i * n + j];
        }
}

// transposed_in_place(u32 c[m*m], u32 a[m*m], int m) replaced mk,kn->mn
void transposed_in_place(uint32_t *c, const uint32_t *a, int m) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j)
            for (int p = 0; p < m; ++p)
                c[i * m + j] += a[i * m + p] * a[j * m + p];
}

// triangle_overlaps(u32 c[m*m], u32 a[m*k], int m, int k) replaced mk,kn->mn triangle
void triangle_overlaps(uint32_t *c, const uint32_t *a, int m, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j <= i; ++j)
            for (int p = 0; p < k; ++p)
                c[i * m + j] += a[i * k + p] * a[j * k + p];
}

// vector_overlaps(u32 y[m], u32 a[m*k], u32 x[k], int m, int k) replaced mk,k->m
void vector_overlaps(uint32_t *y, const uint32_t *a, const uint32_t *x, int m, int k) {
    for (int p = 0; p < k; ++p)
        for (int i = 0; i < m; ++i)
            y[i] += a[i * k + p] * x[p];
}

// vector_in_one_place(u32 y[1], u32 a[m*k], u32 x[k], int m, int k, int step=0) replaced mk,k->m
void vector_in_one_place(uint32_t *y, const uint32_t *a, const uint32_t *x, int m, int k, int step) {
    for (int p = 0; p < k; ++p)
        for (int i = 0; i < m; ++i)
            y[i * step] += a[i * k + p] * x[p];
}
