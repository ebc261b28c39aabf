/* Elementwise work around a product in the same nest: bias, residual, scale, ReLU and other bounds. */

#include <math.h>

#define SUM(type, a, b)                                                                                      \
    type sum = 0;                                                                                            \
    for (int p = 0; p < k; ++p)                                                                              \
        sum += (a) * (b);

// linear_relu(f32 c[m*n], f32 bias[n], f32 x[m*k], f32 w[n*k], int m, int n, int k) replaced mk,kn->mn set then + relu
void linear_relu(float *c, const float *bias, const float *x, const float *w, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = bias[j];
            for (int p = 0; p < k; ++p)
                sum += x[i * k + p] * w[j * k + p];
            c[i * n + j] = sum > 0 ? sum : 0;
        }
}

// bounded(f32 c[m*n], f32 bias[n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn set then + clamp:0:6
void bounded(float *c, const float *bias, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            SUM(float, a[i * k + p], b[p * n + j])
            sum += bias[j];
            sum = sum < 0 ? 0 : sum;
            c[i * n + j] = sum > 6 ? 6 : sum;
        }
}

// by_columns(f32 c[m*n], f32 bias[n], f32 r[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn set then + +
void by_columns(float *c, const float *bias, const float *r, const float *a, const float *b, int m, int n, int k) {
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < m; ++i) {
            SUM(float, a[i + p * m], b[p + j * k])
            c[i + j * m] = sum + bias[j] + r[i + j * m];
        }
}

// scaled(f64 c[m*n], f64 a[m*k], f64 b[k*n], int m, int n, int k, f64 f=2) replaced mk,kn->mn set then relu *
void scaled(double *c, const double *a, const double *b, int m, int n, int k, double f) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            SUM(double, a[i * k + p], b[p * n + j])
            c[i * n + j] = f * (sum > 0 ? sum : 0);
        }
}

// relu_of_c(f32 c[m*n], f32 bias[n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn then + relu
void relu_of_c(float *c, const float *bias, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = c[i * n + j];
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            sum += bias[j];
            c[i * n + j] = sum > 0 ? sum : 0;
        }
}

#ifndef FEW

// relu_by_call(f32 c[m*n], f32 bias[n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn set then + relu
void relu_by_call(float *c, const float *bias, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            SUM(float, a[i * k + p], b[p * n + j])
            c[i * n + j] = fmaxf(0.0f, sum + bias[j]);
        }
}

// of_rows(f64 c[m*n], f64 bias[m], f64 a[m*k], f64 b[k*n], int m, int n, int k) replaced mk,kn->mn set then +
void of_rows(double *c, const double *bias, const double *a, const double *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = bias[i];
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
}

// at_most(f64 c[m*n], f64 a[m*k], f64 b[k*n], int m, int n, int k) replaced mk,kn->mn set then clamp:-inf:3
void at_most(double *c, const double *a, const double *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            SUM(double, a[i * k + p], b[p * n + j])
            c[i * n + j] = sum < 3 ? sum : 3;
        }
}

// residual(f32 c[m*n], f32 r[m*n], f32 bias[n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn set then + + relu
void residual(float *c, const float *r, const float *bias, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            SUM(float, a[i * k + p], b[p * n + j])
            sum += bias[j] + r[i * n + j];
            c[i * n + j] = sum > 0 ? sum : 0;
        }
}

// onto_c(f32 c[m*n], f32 bias[n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn then +
void onto_c(float *c, const float *bias, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            SUM(float, a[i * k + p], b[p * n + j])
            c[i * n + j] += sum + bias[j];
        }
}

// whole_numbers(i32 c[m*n], i32 bias[n], i32 a[m*k], i32 b[k*n], int m, int n, int k) replaced mk,kn->mn set then +
void whole_numbers(int *c, const int *bias, const int *a, const int *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            int sum = bias[j];
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
}

/* Loops stay around these: every second element is no vector, and a sum of an outer product no matrix. */

// strided_bias(f32 c[m*n], f32 bias[2*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void strided_bias(float *c, const float *bias, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = bias[2 * j];
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
}

// outer_product(f32 c[m*n], f32 u[m], f32 v[n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void outer_product(float *c, const float *u, const float *v, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = u[i] * v[j];
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
}

#endif
