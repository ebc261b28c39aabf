/* Matrices whose rows are behind pointers. */

#include <stdint.h>
#include <stdlib.h>

// row_pointers(f32 *c[m][n], f32 *a[m][k], f32 *b[k][n], int m, int n, int k) replaced mk,kn->mn set
void row_pointers(float **c, float **a, float **b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += a[i][p] * b[p][j];
            c[i][j] = sum;
        }
}

// into_rows(u32 *c[m][n], u32 *a[m][k], u32 *b[k][n], int m, int n, int k) replaced mk,kn->mn
void into_rows(uint32_t **c, uint32_t **a, uint32_t **b, int m, int n, int k) {
    for (int p = 0; p < k; p++)
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++)
                c[i][j] += a[i][p] * b[p][j];
}

// transposed_rows(f32 *c[n][m], f32 *a[k][m], f32 *b[n][k], int m, int n, int k) replaced mk,kn->mn set
void transposed_rows(float **c, float **a, float **b, int m, int n, int k) {
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += a[p][i] * b[j][p];
            c[j][i] = sum;
        }
}

// one_in_rows(f32 c[m*n], f32 a[m*k], f32 *b[k][n], int m, int n, int k) replaced mk,kn->mn
void one_in_rows(float *c, const float *a, float **b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int p = 0; p < k; p++)
            for (int j = 0; j < n; j++)
                c[i * n + j] += a[i * k + p] * b[p][j];
}

// result_in_rows(f32 *c[m][n], f32 a[m*k], f32 b[k*n], int m, int n, int k, f32 alpha=3, f32 beta=2) replaced mk,kn->mn
void result_in_rows(float **c, const float *a, const float *b, int m, int n, int k, float alpha, float beta) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            c[i][j] *= beta;
            for (int p = 0; p < k; p++)
                c[i][j] += alpha * a[i * k + p] * b[p * n + j];
        }
}

// rows_by_vector(f32 y[m], f32 *a[m][k], f32 x[k], int m, int k) replaced mk,k->m set
void rows_by_vector(float *y, float **a, const float *x, int m, int k) {
    for (int i = 0; i < m; i++) {
        float sum = 0;
        for (int p = 0; p < k; p++)
            sum += a[i][p] * x[p];
        y[i] = sum;
    }
}

// rows_of_both(u32 *c[m][n], u32 *a[m][n], int m, int n) any
void rows_of_both(uint32_t **c, uint32_t **a, int m, int n) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < m; p++)
                c[i][j] += a[p][j] * c[p][i % n];
}

// rows_of_sums(f32 *c[m][n], f32 *a[m+k][k], f32 *b[k][n], int m, int n, int k) any
void rows_of_sums(float **c, float **a, float **b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < k; p++)
                c[i][j] += a[i + p][p] * b[p][j];
}

// some_rows(f32 *c[m][n], f32 *a[m][k], f32 *b[k][n], int m, int n, int k) refused
void some_rows(float **c, float **a, float **b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < k; p++)
                if (b[p][j] != 0)
                    c[i][j] += a[i][p] * b[p][j];
}

#ifndef FEW
// named_rows(f64 *c[m][n], f64 *a[m][k], f64 *b[k][n], int m, int n, int k) replaced mk,kn->mn set
void named_rows(double **c, double **a, double **b, int m, int n, int k) {
    for (int i = 0; i < m; i++) {
        const double *row = a[i];
        double *to = c[i];
        for (int j = 0; j < n; j++)
            to[j] = 0;
        for (int p = 0; p < k; p++) {
            const double *from = b[p];
            for (int j = 0; j < n; j++)
                to[j] += row[p] * from[j];
        }
    }
}

// rows_of_integers(i32 *c[m][n], i8 *a[m][k], i8 *b[k][n], int m, int n, int k) replaced mk,kn->mn set
void rows_of_integers(int32_t **c, int8_t **a, int8_t **b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            int32_t sum = 0;
            for (int p = 0; p < k; p++)
                sum += a[i][p] * b[p][j];
            c[i][j] = sum;
        }
}

// parts_of_rows(f32 *c[m+1][n+2], f32 *a[m+3][k], f32 *b[2*k+1][n], int m, int n, int k) replaced mk,kn->mn
void parts_of_rows(float **c, float **a, float **b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < k; p++)
                c[i + 1][j + 2] -= a[i + 3][p] * b[2 * p + 1][j];
}

// blocks_of_rows(f32 *c[m][n], f32 *a[m][k], f32 *b[k][n], int m, int n, int k) replaced mk,kn->mn
void blocks_of_rows(float **c, float **a, float **b, int m, int n, int k) {
    for (int io = 0; io < m; io += 8)
        for (int po = 0; po < k; po += 16)
            for (int i = io; i < (io + 8 < m ? io + 8 : m); i++)
                for (int p = po; p < (po + 16 < k ? po + 16 : k); p++)
                    for (int j = 0; j < n; j++)
                        c[i][j] += a[i][p] * b[p][j];
}

static float *own_a[48], *own_b[48];

// arrays_of_pointers(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn set
void arrays_of_pointers(float *c, float *a, float *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        own_a[i] = a + i * k;
    for (int p = 0; p < k; p++)
        own_b[p] = b + p * n;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int p = 0; p < k; p++)
                sum += own_a[i][p] * own_b[p][j];
            c[i * n + j] = sum;
        }
}

// lengths_of_rows(f32 *c[m][n], f32 *a[m][k], f32 *b[k][n], i32 x[m]=3, int m, int n, int k>=3) any
void lengths_of_rows(float **c, float **a, float **b, const int *x, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < x[i]; p++)
                c[i][j] += a[i][p] * b[p][j];
}

// triangle_of_rows(f32 *c[m][m], f32 *a[m][k], int m, int k) any
void triangle_of_rows(float **c, float **a, int m, int k) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j <= i; j++)
            for (int p = 0; p < k; p++)
                c[i][j] += a[i][p] * a[j][p];
}
#endif
