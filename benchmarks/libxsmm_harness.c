/* Times one LIBXSMM kernel or one function of the batch-reduce signature in the same native loop. */
#include <libxsmm.h>
#include <stdint.h>
#include <time.h>

typedef void (*brgemm)(const void *, const void *, void *, int64_t, int64_t, int64_t, int64_t, int64_t);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Seconds of one call of C += A * B, column-major, tight; -1 where LIBXSMM makes no kernel. */
double time_libxsmm(int m, int n, int k, const float *a, const float *b, float *c, int64_t calls) {
    const float one = 1;
    libxsmm_init();
    libxsmm_smmfunction kernel = libxsmm_smmdispatch(m, n, k, NULL, NULL, NULL, &one, &one, NULL, NULL);
    if (!kernel) return -1;
    double start = now();
    for (int64_t i = 0; i < calls; ++i) kernel(a, b, c);
    return (now() - start) / calls;
}

double time_brgemm(brgemm kernel, int m, int n, int k, const float *a, const float *b, float *c, int64_t calls) {
    double start = now();
    for (int64_t i = 0; i < calls; ++i) kernel(a, b, c, m, k, m, 0, 0);
    return (now() - start) / calls;
}

const char *target_arch(void) {
    libxsmm_init();
    return libxsmm_get_target_arch();
}
