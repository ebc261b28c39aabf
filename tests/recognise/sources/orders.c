/* Every order of the three loops, every layout of C, A and B; sizes and leading dimensions given at run time. */

#define ROW(x, r, c, ld) x[(r) * (ld) + (c)]
#define COLUMN(x, r, c, ld) x[(r) + (c) * (ld)]
#define I for (int i = 0; i < m; ++i)
#define J for (int j = 0; j < n; ++j)
#define P for (int p = 0; p < k; ++p)

#define PRODUCT(name, outer, middle, inner, C, A, B)                                                      \
    void name(float *c, const float *a, const float *b, int m, int n, int k, int ldc, int lda, int ldb) { \
        outer middle inner C(c, i, j, ldc) += A(a, i, p, lda) * B(b, p, j, ldb);                          \
    }

#define LAYOUTS(order, outer, middle, inner)                         \
    PRODUCT(order##_rrr, outer, middle, inner, ROW, ROW, ROW)          \
    PRODUCT(order##_rrc, outer, middle, inner, ROW, ROW, COLUMN)       \
    PRODUCT(order##_rcr, outer, middle, inner, ROW, COLUMN, ROW)       \
    PRODUCT(order##_rcc, outer, middle, inner, ROW, COLUMN, COLUMN)    \
    PRODUCT(order##_crr, outer, middle, inner, COLUMN, ROW, ROW)       \
    PRODUCT(order##_crc, outer, middle, inner, COLUMN, ROW, COLUMN)    \
    PRODUCT(order##_ccr, outer, middle, inner, COLUMN, COLUMN, ROW)    \
    PRODUCT(order##_ccc, outer, middle, inner, COLUMN, COLUMN, COLUMN)

/* The comment that a test reads: the call, each array with its length, and what is to be found.
// {ijp,ipj,jip,jpi,pij,pji}_{r,c}{r,c}{r,c}(f32 c[(m+n)*(m+n)], f32 a[(m+k)*(m+k)], f32 b[(n+k)*(n+k)], int m, int n, int k, int ldc=m+n, int lda=m+k, int ldb=n+k) replaced mk,kn->mn
*/
#ifdef FEW /* each order and each combination of layouts, as few products as these take */
PRODUCT(ijp_rrr, I, J, P, ROW, ROW, ROW)
PRODUCT(ipj_rrc, I, P, J, ROW, ROW, COLUMN)
PRODUCT(jip_rcr, J, I, P, ROW, COLUMN, ROW)
PRODUCT(jpi_rcc, J, P, I, ROW, COLUMN, COLUMN)
PRODUCT(pij_crr, P, I, J, COLUMN, ROW, ROW)
PRODUCT(pji_crc, P, J, I, COLUMN, ROW, COLUMN)
PRODUCT(ijp_ccr, I, J, P, COLUMN, COLUMN, ROW)
PRODUCT(ipj_ccc, I, P, J, COLUMN, COLUMN, COLUMN)
#else
LAYOUTS(ijp, I, J, P)
LAYOUTS(ipj, I, P, J)
LAYOUTS(jip, J, I, P)
LAYOUTS(jpi, J, P, I)
LAYOUTS(pij, P, I, J)
LAYOUTS(pji, P, J, I)
#endif
