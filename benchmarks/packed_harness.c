/* Calls one kernel once, for a tool that counts cache misses: see packed.py, which compiles and links it.
 *
 *     harness KERNEL N    KERNEL: none, tiling, packing, mmt4d
 *
 * "none" fills the operands and calls nothing: what it counts is taken off the others. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void gemm(const float *, const float *, float *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                  int64_t, int64_t, int64_t, float, float, void *, void *);
typedef void tiled(const float *, const float *, float *, int64_t, int64_t, int64_t, float, void *, void *);

extern gemm TILING, PACKING;
extern tiled MMT4D;

static float *numbers(int64_t count) {
    float *found = aligned_alloc(4096, (count * sizeof(float) + 4095) / 4096 * 4096);
    if (!found) exit(2);
    for (int64_t i = 0; i < count; i++) found[i] = (float)(i % 7) - 3;
    return found;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int64_t n = atoll(argv[2]);
    int64_t m1 = (n + M0 - 1) / M0, n1 = (n + N0 - 1) / N0;
    float *a = numbers(m1 * M0 * n), *b = numbers(n1 * N0 * n), *c = numbers(m1 * M0 * n1 * N0);
    void *scratch = aligned_alloc(4096, SCRATCH);
    if (!scratch) return 2;
    memset(scratch, 0, SCRATCH);
    if (!strcmp(argv[1], "tiling")) TILING(a, b, c, n, n, n, n, 1, n, 1, n, 1, 1, 0, scratch, 0);
    if (!strcmp(argv[1], "packing")) PACKING(a, b, c, n, n, n, n, 1, n, 1, n, 1, 1, 0, scratch, 0);
    if (!strcmp(argv[1], "mmt4d")) MMT4D(a, b, c, m1, n1, n, 0, scratch, 0);
    printf("%g\n", c[n / 2]);
    return 0;
}
