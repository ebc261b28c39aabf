/* Sums that are wider than the products of their elements. */

#include <stdint.h>

// in_double(f32 c[m*n], f32x a[m*k], f32x b[k*n], int m, int n, int k) replaced mk,kn->mn set
void in_double(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int p = 0; p < k; p++)
                sum += (double)a[i * k + p] * b[p * n + j];
            c[i * n + j] = (float)sum;
        }
}

// onto_float(f32 c[n*m], f32 a[k*m], f32 b[k*n], int m, int n, int k, f64 alpha=3) replaced mk,kn->mn
void onto_float(float *c, const float *a, const float *b, int m, int n, int k, double alpha) {
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0;
            for (int p = 0; p < k; p++)
                sum += (double)a[p * m + i] * b[p * n + j];
            c[j * m + i] += (float)(alpha * sum);
        }
}

// into_double(f64 c[m*n], f32x a[m*k], f32x b[k*n], int m, int n, int k) replaced mk,kn->mn
void into_double(double *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int p = 0; p < k; p++)
            for (int j = 0; j < n; j++)
                c[i * n + j] += (double)a[i * k + p] * b[p * n + j];
}

// behind_pointers(f32 *c[m][n], f32x *a[m][k], f32x *b[k][n], int m, int n, int k) replaced mk,kn->mn set
void behind_pointers(float **c, float **a, float **b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int p = 0; p < k; p++)
                sum += (double)a[i][p] * (double)b[p][j];
            c[i][j] = (float)sum;
        }
}

// float_products(f64 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void float_products(double *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < k; p++)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}

// float_and_double(f64 c[m*n], f32 a[m*k], f64 b[k*n], int m, int n, int k) any
void float_and_double(double *c, const float *a, const double *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < k; p++)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}

#ifndef FEW
// halves_in_double(f64 c[m*n], f16 a[m*k], f16 b[k*n], int m, int n, int k) replaced mk,kn->mn set
void halves_in_double(double *c, const _Float16 *a, const _Float16 *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int p = 0; p < k; p++)
                sum += (double)a[i * k + p] * (double)b[p * n + j];
            c[i * n + j] = sum;
        }
}

// in_int64(i64 c[m*n], i32 a[m*k], i32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void in_int64(int64_t *c, const int32_t *a, const int32_t *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < k; p++)
                c[i * n + j] += (int64_t)a[i * k + p] * b[p * n + j];
}

// bytes_in_int64(i64 c[m*n], u8 a[m*k], i8 b[k*n], int m, int n, int k) replaced mk,kn->mn set
void bytes_in_int64(int64_t *c, const uint8_t *a, const int8_t *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            int64_t sum = 0;
            for (int p = 0; p < k; p++)
                sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
}

// adjacent_in_int64(i64 c[m*n], i32 a[m*k], i32 b[k*n], int m, int n, int k) refused
void adjacent_in_int64(int64_t *c, const int32_t *a, const int32_t *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int p = 0; p < k; p++)
            for (int j = 0; j < n; j++)
                c[i * n + j] += (int64_t)a[i * k + p] * b[p * n + j];
}

// wrapping(i64 c[m*n], i32 a[m*k], i32 b[k*n], int m, int n, int k) any
void wrapping(int64_t *c, const int32_t *a, const int32_t *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < k; p++)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}
#endif
