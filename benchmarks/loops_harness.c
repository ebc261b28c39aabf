/* Times one product of square matrices, c += a * b, that another file computes; prints seconds and the largest
   relative error of a sample of elements.

   Usage: program SIZE SECONDS: calls are repeated for so long. */

#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void multiply(int n, float *c, const float *a, const float *b);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static float *matrix(size_t count, uint64_t seed, int zero) {
    float *values = aligned_alloc(64, (count * sizeof *values + 63) / 64 * 64);
    for (size_t i = 0; values && i < count; ++i) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        values[i] = zero ? 0 : (float)(int32_t)(seed >> 32) / 2147483648.0f;
    }
    return values;
}

static double largest_error(int n, const float *c, const float *a, const float *b) {
    double worst = 0;
    for (int sample = 0; sample < 100; ++sample) {
        int i = (int)((size_t)sample * 7919 % n), j = (int)((size_t)sample * 104729 % n);
        double sum = 0, size = 0;
        for (int p = 0; p < n; ++p) {
            double term = (double)a[(size_t)i * n + p] * b[(size_t)p * n + j];
            sum += term;
            size += fabs(term);
        }
        double error = fabs(c[(size_t)i * n + j] - sum) / size;
        if (!(error <= worst))
            worst = error;
    }
    return worst;
}

int main(int count, char **words) {
    if (count != 3)
        return 2;
    int n = atoi(words[1]);
    double limit = atof(words[2]);
    size_t size = (size_t)n * n;
    float *a = matrix(size, 1, 0), *b = matrix(size, 2, 0), *c = matrix(size, 0, 1);
    if (!a || !b || !c)
        return 3;
    double start = now();
    multiply(n, c, a, b);
    double first = now() - start, error = largest_error(n, c, a, b), seconds = first;
    if (first < limit) {
        long calls = 0;
        start = now();
        do {
            multiply(n, c, a, b);
            ++calls;
        } while ((seconds = now() - start) < limit);
        seconds /= (double)calls;
    }
    printf("%.9e %.3e\n", seconds, error);
    return 0;
}
