/* Calls kernels that were compiled ahead of time, and checks each result against plain loops. */
#include "tilewright.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 67, N = 131, K = 300 };

static float a[M * K], b[K * N], c[M * N];
static double expected[M * N];

static void fill(float *values, int count)
{
    for (int i = 0; i < count; i++)
        values[i] = (float)rand() / (float)RAND_MAX - 0.5f;
}

/* expected = a * b, all of them row-major. */
static void multiply_plainly(int m, int n, int k)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int p = 0; p < k; p++)
                sum += (double)a[i * k + p] * (double)b[p * n + j];
            expected[i * n + j] = sum;
        }
}

/* Whether c is as expected: each of k products is below 1/4 and rounds by less than 2^-24 of the sum. */
static int check(const char *what, int count, int k)
{
    double worst = 0;
    for (int i = 0; i < count; i++)
        worst = fmax(worst, fabs((double)c[i] - expected[i]));
    const int right = worst <= k * (k / 4.0) * 6e-8;
    printf("%s: %s, largest difference %.1e\n", what, right ? "right" : "WRONG", worst);
    return right;
}

/* Sizes at run time: a Gemm takes them, the strides of rows and columns, memory for packed panels, and a team of threads. */
static int any_size(void)
{
    void *scratch = aligned_alloc(TILEWRIGHT_SCRATCH_ALIGNMENT, MULTIPLY_SCRATCH_BYTES);
    if (scratch == NULL)
        abort();
    multiply(a, b, c, M, N, K, K, 1, N, 1, N, 1, 1.0f, 0.0f, scratch, NULL);
    free(scratch);
    multiply_plainly(M, N, K);
    return check("multiply", M * N, K);
}

/* In place: c, row-major M x N, is column-major N x M. */
static int activation(void)
{
    relu(c, c, N, N, N, M);
    for (int i = 0; i < M * N; i++)
        expected[i] = fmax(expected[i], 0);
    return check("relu", M * N, K);
}

/* Hardcoded sizes: pointers and leading dimensions are enough. The transposed product is column-major. */
static int fixed_size(void)
{
    multiply_16x6x64(b, a, c, 16, 64, 16, 0, 0);
    multiply_plainly(6, 16, 64);
    return check("multiply_16x6x64", 6 * 16, 64);
}

int main(void)
{
    const char *variant = tilewright_variant();
    printf("variant: %s\n", variant != NULL ? variant : "none");
    if (variant == NULL)
        return 2;
    fill(a, M * K);
    fill(b, K * N);
    const int right = any_size() & activation() & fixed_size();
    return right ? 0 : 1;
}
