/* The loops that loops.py measures: -DORDER=ijk|ikj|jki; -DSIZE=n makes the size a constant; -DBLAS="library"
   calls cblas_sgemm of a shared library in the place of the loops. */

#define I for (int i = 0; i < n; ++i)
#define J for (int j = 0; j < n; ++j)
#define K for (int k = 0; k < n; ++k)
#define ORDER_ijk I J K
#define ORDER_ikj I K J
#define ORDER_jki J K I
#define PASTE(x) ORDER_##x
#define LOOPS(x) PASTE(x)

#if defined(BLAS)

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef void Sgemm(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t,
                   float, float *, int64_t);

void multiply(int n, float *c, const float *a, const float *b) {
    static Sgemm *sgemm;
    if (!sgemm) {
        void *library = dlopen(BLAS, RTLD_NOW);
        if (library)
            *(void **)&sgemm = dlsym(library, "scipy_cblas_sgemm64_");
        if (!sgemm)
            abort();
    }
    sgemm(101, 111, 111, n, n, n, 1.0f, a, n, b, n, 1.0f, c, n);
}

#elif defined(SIZE)

void multiply(int size, float (*c)[SIZE], const float (*a)[SIZE], const float (*b)[SIZE]) {
    enum { n = SIZE };
    (void)size;
    LOOPS(ORDER) c[i][j] += a[i][k] * b[k][j];
}

#else

void multiply(int n, float *c, const float *a, const float *b) {
    LOOPS(ORDER) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

#endif
