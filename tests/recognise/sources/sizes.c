/* Sizes, leading dimensions, offsets and steps: static, at run time, of globals, of parts of matrices. */

#include <stddef.h>
#include <stdint.h>

// static_sizes(f32 c[48*40], f32 a[48*56], f32 b[56*40]) replaced mk,kn->mn
void static_sizes(float c[48][40], float a[48][56], float b[56][40]) {
    for (int i = 0; i < 48; ++i)
        for (int j = 0; j < 40; ++j)
            for (int p = 0; p < 56; ++p)
                c[i][j] += a[i][p] * b[p][j];
}

// static_odd_sizes(f64 c[17*19], f64 a[17*23], f64 b[23*19]) replaced mk,kn->mn
void static_odd_sizes(double c[17][19], double a[17][23], double b[23][19]) {
    for (int i = 0; i < 17; ++i)
        for (int p = 0; p < 23; ++p)
            for (int j = 0; j < 19; ++j)
                c[i][j] += a[i][p] * b[p][j];
}

// small_static(f32 c[4*4], f32 a[4*4], f32 b[4*4]) any
void small_static(float c[4][4], float a[4][4], float b[4][4]) {
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            for (int p = 0; p < 4; ++p)
                c[i][j] += a[i][p] * b[p][j];
}

float global_a[60][50], global_b[50][70], global_c[60][70];

// globals(f32 @global_c[60*70], f32 @global_a[60*50], f32 @global_b[50*70]) replaced mk,kn->mn
void globals(void) {
    for (int i = 0; i < 60; ++i)
        for (int j = 0; j < 70; ++j)
            for (int p = 0; p < 50; ++p)
                global_c[i][j] += global_a[i][p] * global_b[p][j];
}

int global_size = 37;

// global_sizes(f32 c[37*37], f32 a[37*37], f32 b[37*37]) replaced mk,kn->mn
void global_sizes(float *c, const float *a, const float *b) {
    for (int i = 0; i < global_size; ++i)
        for (int j = 0; j < global_size; ++j)
            for (int p = 0; p < global_size; ++p)
                c[i * global_size + j] += a[i * global_size + p] * b[p * global_size + j];
}

// two_dimensional(int m, int n, int k, f32 c[m*n], f32 a[m*k], f32 b[k*n]) replaced mk,kn->mn
void two_dimensional(int m, int n, int k, float c[m][n], float a[m][k], float b[k][n]) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[i][j] += a[i][p] * b[p][j];
}

// leading_static(f32 c[m*512], f32 a[m*512], f32 b[k*512], int m, int n, int k) replaced mk,kn->mn
void leading_static(float (*c)[512], float (*a)[512], float (*b)[512], int m, int n, int k) {
    for (int p = 0; p < k; ++p)
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j)
                c[i][j] += a[i][p] * b[p][j];
}

// wide_sizes(f64 c[m*n], f64 a[m*k], f64 b[k*n], i64 m, i64 n, i64 k) replaced mk,kn->mn
void wide_sizes(double *c, const double *a, const double *b, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
            for (int64_t p = 0; p < k; ++p)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}

// sizes_of_size_t(f32 c[m*n], f32 a[m*k], f32 b[k*n], i64 m>=0, i64 n>=0, i64 k>=0) replaced mk,kn->mn
void sizes_of_size_t(float *c, const float *a, const float *b, size_t m, size_t n, size_t k) {
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t p = 0; p < k; p++)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}

// unsigned_sizes(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m>=0, int n>=0, int k>=0) replaced mk,kn->mn
void unsigned_sizes(float *c, const float *a, const float *b, unsigned m, unsigned n, unsigned k) {
    for (unsigned i = 0; i < m; ++i)
        for (unsigned j = 0; j < n; ++j)
            for (unsigned p = 0; p < k; ++p)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}

// restricted(f32 c[m*n] alone, f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void restricted(float *restrict c, const float *restrict a, const float *restrict b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int p = 0; p < k; ++p)
            for (int j = 0; j < n; ++j)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}

// submatrices(f32 c[(m+5)*(n+7)], f32 a[(m+3)*(k+4)], f32 b[(k+2)*(n+9)], int m, int n, int k) replaced mk,kn->mn
void submatrices(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 3; i < m + 3; ++i)
        for (int j = 5; j < n + 5; ++j)
            for (int p = 1; p < k + 1; ++p)
                c[i * (n + 7) + j] += a[(i - 2) * (k + 4) + p + 2] * b[p * (n + 9) + j + 1];
}

// offsets(f32 c[m*n+11], f32 a[m*k+13], f32 b[k*n+17], int m, int n, int k, int o=11, int q=13, int r=17) replaced mk,kn->mn
void offsets(float *c, const float *a, const float *b, int m, int n, int k, int o, int q, int r) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[o + i * n + j] += a[q + i * k + p] * b[p * n + j + r];
}

// steps(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void steps(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; i += 2)
        for (int j = 1; j < n; j += 3)
            for (int p = 0; p < k; p += 2)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}

// backwards(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void backwards(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = m - 1; i >= 0; --i)
        for (int j = n - 1; j >= 0; --j)
            for (int p = k; p-- > 0;)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}

// every_second_element(f32 c[2*m*n], f32 a[3*m*k], f32 b[2*k*n], int m, int n, int k) replaced mk,kn->mn
void every_second_element(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[2 * (i * n + j)] += a[3 * (i * k + p) + 1] * b[2 * (p * n + j)];
}

struct complex { float real, imaginary; };

// fields(f32 c[2*m*n], f32 a[2*m*k], f32 b[2*k*n], int m, int n, int k) replaced mk,kn->mn
void fields(struct complex *c, const struct complex *a, const struct complex *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[i * n + j].imaginary += a[i * k + p].real * b[p * n + j].imaginary;
}

struct matrix { int rows, columns; float *data; };

// rows_by_pointer(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void rows_by_pointer(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i) {
        float *row = c + (size_t)i * n;
        const float *left = a + (size_t)i * k;
        for (int p = 0; p < k; ++p) {
            const float *right = b + (size_t)p * n;
            for (int j = 0; j < n; ++j)
                row[j] += left[p] * right[j];
        }
    }
}

// walking_pointers(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn set
void walking_pointers(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i, a += k) {
        for (int j = 0; j < n; ++j, ++c) {
            const float *left = a, *right = b + j;
            float sum = 0;
            for (int p = 0; p < k; ++p, right += n)
                sum += *left++ * *right;
            *c = sum;
        }
    }
}

// at_most(f32 c[(m+1)*(n+1)], f32 a[(m+1)*(k+1)], f32 b[(k+1)*(n+1)], int m, int n, int k) replaced mk,kn->mn
void at_most(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i <= m; ++i)
        for (int j = 0; j <= n; ++j)
            for (int p = 0; p <= k; ++p)
                c[i * (n + 1) + j] += a[i * (k + 1) + p] * b[p * (n + 1) + j];
}

#define MIN(x, y) ((x) < (y) ? (x) : (y))

// blocked(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void blocked(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int io = 0; io < m; io += 32)
        for (int po = 0; po < k; po += 16)
            for (int jo = 0; jo < n; jo += 24)
                for (int i = io; i < MIN(io + 32, m); ++i)
                    for (int p = po; p < MIN(po + 16, k); ++p)
                        for (int j = jo; j < MIN(jo + 24, n); ++j)
                            c[i * n + j] += a[i * k + p] * b[p * n + j];
}

// blocked_static(f32 c[64*64], f32 a[64*64], f32 b[64*64]) replaced mk,kn->mn
void blocked_static(float c[64][64], float a[64][64], float b[64][64]) {
    for (int io = 0; io < 64; io += 16)
        for (int jo = 0; jo < 64; jo += 16)
            for (int po = 0; po < 64; po += 16)
                for (int i = io; i < io + 16; ++i)
                    for (int j = jo; j < jo + 16; ++j)
                        for (int p = po; p < po + 16; ++p)
                            c[i][j] += a[i][p] * b[p][j];
}

// blocked_by_count(f32 c[16*m*n], f32 a[4*m*k], f32 b[4*k*n], int m, int n, int k) replaced mk,kn->mn
void blocked_by_count(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int io = 0; io < m; ++io)
        for (int jo = 0; jo < n; ++jo)
            for (int p = 0; p < k; ++p)
                for (int i = 0; i < 4; ++i)
                    for (int j = 0; j < 4; ++j)
                        c[(4 * io + i) * 4 * n + 4 * jo + j] += a[(4 * io + i) * k + p] * b[p * 4 * n + 4 * jo + j];
}

// few_iterations(f32 c[m*n], f32 a[m*2*k], f32 b[2*k*n], int m, int n, int k) replaced mk,kn->mn
void few_iterations(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int q = 0; q <= 1; ++q)
                for (int once = 0; once < 3; once += 3)
                    for (int p = 0; p < k; ++p)
                        c[i * n + j] += a[(i * 2 + q) * k + p] * b[(q * k + p) * n + j];
}
