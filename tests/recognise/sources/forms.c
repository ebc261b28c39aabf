/* How sums are kept, where C begins, what it is scaled with; triangles, vectors, batches. */

#include <math.h>
#include <string.h>

// into_scalar(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void into_scalar(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = 0;
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] += sum;
        }
}

// from_element(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void from_element(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = c[i * n + j];
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
}

// zero_first(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn set
void zero_first(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            c[i * n + j] = 0;
            for (int p = 0; p < k; ++p)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
        }
}

// zero_rows_first(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn set
void zero_rows_first(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j)
            c[i * n + j] = 0;
        for (int p = 0; p < k; ++p)
            for (int j = 0; j < n; ++j)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
}

// memset_rows_first(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m>=0, int n>=0, int k) replaced mk,kn->mn set
void memset_rows_first(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i) {
        memset(c + i * n, 0, n * sizeof *c);
        for (int p = 0; p < k; ++p)
            for (int j = 0; j < n; ++j)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
}

// zero_before(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void zero_before(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            c[i * n + j] = 0;
    for (int j = 0; j < n; ++j)
        for (int p = 0; p < k; ++p)
            for (int i = 0; i < m; ++i)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}

// subtracted(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void subtracted(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int p = 0; p < k; ++p)
            for (int j = 0; j < n; ++j)
                c[i * n + j] -= a[i * k + p] * b[p * n + j];
}

// commuted(f64 c[m*n], f64 a[m*k], f64 b[k*n], int m, int n, int k) replaced mk,kn->mn
void commuted(double *c, const double *a, const double *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[i * n + j] = b[p * n + j] * a[i * k + p] + c[i * n + j];
}

// fused(f64 c[m*n], f64 a[m*k], f64 b[k*n], int m, int n, int k) replaced mk,kn->mn
void fused(double *c, const double *a, const double *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[i * n + j] = fma(a[i * k + p], b[p * n + j], c[i * n + j]);
}

// alpha_of_a(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k, f32 alpha=3) replaced mk,kn->mn
void alpha_of_a(float *c, const float *a, const float *b, int m, int n, int k, float alpha) {
    for (int i = 0; i < m; ++i)
        for (int p = 0; p < k; ++p) {
            float scaled = alpha * a[i * k + p];
            for (int j = 0; j < n; ++j)
                c[i * n + j] += scaled * b[p * n + j];
        }
}

// alpha_inside(f64 c[m*n], f64 a[m*k], f64 b[k*n], int m, int n, int k, f64 alpha=3) replaced mk,kn->mn
void alpha_inside(double *c, const double *a, const double *b, int m, int n, int k, double alpha) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[i * n + j] += alpha * a[i * k + p] * b[p * n + j];
}

// alpha_beta(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k, f32 alpha=3, f32 beta=-2) replaced mk,kn->mn
void alpha_beta(float *c, const float *a, const float *b, int m, int n, int k, float alpha, float beta) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            float sum = 0;
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = alpha * sum + beta * c[i * n + j];
        }
}

// beta_first(f64 c[m*n], f64 a[m*k], f64 b[k*n], int m, int n, int k, f64 alpha=3, f64 beta=-2) replaced mk,kn->mn
void beta_first(double *c, const double *a, const double *b, int m, int n, int k, double alpha, double beta) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            c[i * n + j] *= beta;
            for (int p = 0; p < k; ++p)
                c[i * n + j] += alpha * a[i * k + p] * b[p * n + j];
        }
}

// polybench_gemm(int m, int n, int k, f64 alpha=3, f64 beta=-2, f64 c[m*n], f64 a[m*k], f64 b[k*n]) replaced mk,kn->mn
void polybench_gemm(int m, int n, int k, double alpha, double beta, double c[m][n], double a[m][k], double b[k][n]) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++)
            c[i][j] *= beta;
        for (int p = 0; p < k; p++)
            for (int j = 0; j < n; j++)
                c[i][j] += alpha * a[i][p] * b[p][j];
    }
}

// out_of_place(f32 d[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn set
void out_of_place(float *d, const float *a, const float *b, int m, int n, int k) {
    int i = 0;
    do {
        for (int j = 0; j < n; ++j) {
            float sum = 0;
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
            d[i * n + j] = sum;
        }
    } while (++i < m);
}

// syrk_lower(f64 c[n*n], f64 a[n*k], int n, int k) replaced mk,kn->mn triangle
void syrk_lower(double *c, const double *a, int n, int k) {
    for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j)
            for (int p = 0; p < k; ++p)
                c[i * n + j] += a[i * k + p] * a[j * k + p];
}

// syrk_upper(f64 c[n*n], f64 a[n*k], int n, int k) replaced mk,kn->mn triangle
void syrk_upper(double *c, const double *a, int n, int k) {
    for (int i = 0; i < n; ++i)
        for (int p = 0; p < k; ++p)
            for (int j = i; j < n; ++j)
                c[i * n + j] += a[i * k + p] * a[j * k + p];
}

// polybench_syrk(int n, int k, f64 alpha=3, f64 beta=-2, f64 c[n*n], f64 a[n*k]) replaced mk,kn->mn triangle
void polybench_syrk(int n, int k, double alpha, double beta, double c[n][n], double a[n][k]) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++)
            c[i][j] *= beta;
        for (int p = 0; p < k; p++)
            for (int j = 0; j <= i; j++)
                c[i][j] += alpha * a[i][p] * a[j][p];
    }
}

// syr2k_lower(f64 c[n*n], f64 a[n*k], f64 b[n*k], int n, int k) replaced mk,kn+mk,kn->mn triangle
void syr2k_lower(double *c, const double *a, const double *b, int n, int k) {
    for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j)
            for (int p = 0; p < k; ++p)
                c[i * n + j] += a[i * k + p] * b[j * k + p] + b[i * k + p] * a[j * k + p];
}

// syr2k_upper_twice(f64 c[n*n], f64 a[n*k], f64 b[n*k], int n, int k) replaced mk,kn+mk,kn->mn triangle
void syr2k_upper_twice(double *c, const double *a, const double *b, int n, int k) {
    for (int i = 0; i < n; ++i)
        for (int j = i; j < n; ++j)
            for (int p = 0; p < k; ++p) {
                c[i * n + j] += a[i * k + p] * b[j * k + p];
                c[i * n + j] += b[i * k + p] * a[j * k + p];
            }
}

// polybench_syr2k(int n, int k, f64 alpha=3, f64 beta=-2, f64 c[n*n], f64 a[n*k], f64 b[n*k]) replaced mk,kn+mk,kn->mn triangle
void polybench_syr2k(int n, int k, double alpha, double beta, double c[n][n], double a[n][k], double b[n][k]) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++)
            c[i][j] *= beta;
        for (int p = 0; p < k; p++)
            for (int j = 0; j <= i; j++)
                c[i][j] += a[j][p] * alpha * b[i][p] + b[j][p] * alpha * a[i][p];
    }
}

// matrix_vector(f32 y[m], f32 a[m*k], f32 x[k], int m, int k) replaced mk,k->m
void matrix_vector(float *y, const float *a, const float *x, int m, int k) {
    for (int i = 0; i < m; ++i)
        for (int p = 0; p < k; ++p)
            y[i] += a[i * k + p] * x[p];
}

// transposed_matrix_vector(f32 y[m], f32 a[m*k], f32 x[k], int m, int k) replaced mk,k->m
void transposed_matrix_vector(float *y, const float *a, const float *x, int m, int k) {
    for (int p = 0; p < k; ++p)
        for (int i = 0; i < m; ++i)
            y[i] += a[p * m + i] * x[p];
}

// matrix_vector_set(f64 y[m], f64 a[m*k], f64 x[k], int m, int k) replaced mk,k->m set
void matrix_vector_set(double *y, const double *a, const double *x, int m, int k) {
    for (int i = 0; i < m; ++i) {
        double sum = 0;
        for (int p = 0; p < k; ++p)
            sum += a[i * k + p] * x[p];
        y[i] = sum;
    }
}

// batched(f32 c[4*m*n], f32 a[4*m*k], f32 b[4*k*n], int m, int n, int k) replaced bmk,bkn->bmn
void batched(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int o = 0; o < 4; ++o)
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j)
                for (int p = 0; p < k; ++p)
                    c[(o * m + i) * n + j] += a[(o * m + i) * k + p] * b[(o * k + p) * n + j];
}

// two_of_k(f32 c[m*n], f32 a[m*6*k], f32 b[6*k*n], int m, int n, int k) replaced mk,kn->mn
void two_of_k(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int q = 0; q < 6; ++q)
                for (int p = 0; p < k; ++p)
                    c[i * n + j] += a[(i * 6 + q) * k + p] * b[(q * k + p) * n + j];
}

// two_constant_depths(f32 c[48*33], f32 a[48*35], f32 b[35*33]) replaced mkk,kkn->mn set
void two_constant_depths(float *c, const float *a, const float *b) {
    for (int i = 0; i < 48; ++i)
        for (int j = 0; j < 33; ++j) {
            float sum = 0;
            for (int q = 0; q < 5; ++q)
                for (int p = 0; p < 7; ++p)
                    sum += a[(p * 5 + q) * 48 + i] * b[(q * 7 + p) * 33 + j];
            c[i * 33 + j] = sum;
        }
}

// one_constant_depth(f32 c[48*33], f32 a[48*5*k], f32 b[5*k*33], int k) replaced mkk,kkn->mn
void one_constant_depth(float *c, const float *a, const float *b, int k) {
    for (int i = 0; i < 48; ++i)
        for (int j = 0; j < 33; ++j)
            for (int q = 0; q < k; ++q)
                for (int p = 0; p < 5; ++p)
                    c[i * 33 + j] += a[(p * k + q) * 48 + i] * b[(q * 5 + p) * 33 + j];
}

// repeated(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void repeated(float *c, const float *a, const float *b, int m, int n, int k) {
    for (int step = 0; step < 3; ++step)
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j)
                for (int p = 0; p < k; ++p)
                    c[i * n + j] += a[i * k + p] * b[p * n + j];
}

// chained(f32 d[m*m], f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn, mk,kn->mn
void chained(float *d, float *c, const float *a, const float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j)
            for (int p = 0; p < n; ++p)
                d[i * m + j] += c[i * n + p] * c[j * n + p];
}

// same_operand(f32 c[m*m], f32 a[m*m], int m) replaced mk,kn->mn
void same_operand(float *c, const float *a, int m) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j)
            for (int p = 0; p < m; ++p)
                c[i * m + j] += a[i * m + p] * a[p * m + j];
}

// early_return(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void early_return(float *c, const float *a, const float *b, int m, int n, int k) {
    if (m <= 0 || n <= 0 || k <= 0)
        return;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}

static float *element(float *matrix, int row, int column, int columns) { return &matrix[row * columns + column]; }

// through_function(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void through_function(float *c, float *a, float *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                *element(c, i, j, n) += *element(a, i, p, k) * *element(b, p, j, n);
}
