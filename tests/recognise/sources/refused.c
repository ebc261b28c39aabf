/* Nests that look like products and are none, or may not be replaced. */

#include <math.h>
#include <stdint.h>

#define I for (int i = 0; i < n; ++i)
#define J for (int j = 0; j < n; ++j)
#define P for (int p = 0; p < n; ++p)
#define ARGUMENTS uint32_t *c, const uint32_t *a, const uint32_t *b, int n
#define C c[i * n + j]
#define A a[i * n + p]
#define B b[p * n + j]

int calls;
void count(void) { ++calls; }

/* Where a triangle is no rectangle, the loops inside are products of a matrix and a vector.
// hole(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// unaffine_index(u32 c[n*n], u32 a[n*n*n+1], u32 b[n*n], int n) refused
// indirect_index(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n, u32 index[n]=0) refused
// early_exit(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// stops_at_zero(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// reads_c_elsewhere(u32 c[n*n+n], u32 a[n*n], u32 b[n*n], int n) refused
// reads_c_transposed(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// running_sum(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// sum_of_rows(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// accumulator_not_reset(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// reset_inside(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// stored_inside_after_reset(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// differences(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// products_of_sums(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// three_factors(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n, u32 d[n*n]=0) refused
// maximum(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// divided(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// clamped(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// calls_inside(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) replaced mk,kn->mn
// sums_of_earlier_sums(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n, u32 y[n]) replaced mk,kn->mn
// volatile_sum(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// volatile_operand(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// atomic_sum(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// two_arrays(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n, u32 d[n*n]=0) refused
// uses_index(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// band(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) replaced mk,k->m
// triangle_of_depth(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) replaced mk,kn->mn
// triangle_of_other_matrix(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) replaced mk,kn->mn
// cholesky(u32 a[n*n], int n) refused
// triangular_solve(u32 b[n*n], u32 a[n*n], int n) replaced mk,k->m
// in_place(u32 c[n*n], u32 b[n*n], int n) refused
// strictly_ordered(f32 c[n*n], f32 a[n*n], f32 b[n*n], int n) refused
// rounded_products(f32 c[n*n], f32 a[n*n], f32 b[n*n], int n) refused
// same_row_twice(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// elements_of_one_column(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// shrinking(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// size_changes(u32 c[n*n], u32 a[n*n], u32 b[n*n], i32 size[1]=4, int n) refused
// last_term_differs(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// bits(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// shifted(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n) refused
// sums_kept(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n, u32 s[n*n*n]=0) refused
*/
void hole(ARGUMENTS) { I J P if (p != 3) C += A * B; }
void unaffine_index(ARGUMENTS) { I J P C += a[i * n + p * p] * B; }
void indirect_index(ARGUMENTS, const uint32_t *index) { I J P C += a[i * n + index[p]] * B; }
void early_exit(ARGUMENTS) { I J P { if (A == 1000) return; C += A * B; } }
void stops_at_zero(ARGUMENTS) { I J for (int p = 0; p < n && B != 77; ++p) C += A * B; }
void reads_c_elsewhere(ARGUMENTS) { I J P C += A * B + c[(i + 1) * n + j]; }
void reads_c_transposed(ARGUMENTS) { I J P C = c[j * n + i] + A * B; }
void running_sum(ARGUMENTS) { for (int i = 1; i < n; ++i) J P C = c[(i - 1) * n + j] + A * B; }
void sum_of_rows(ARGUMENTS) { I J P c[i * n + p] += A * B; }
void accumulator_not_reset(ARGUMENTS) {
    uint32_t sum = 0;
    I J { P sum += A * B; C = sum; }
}
void reset_inside(ARGUMENTS) { I J P { C = 0; C += A * B; } }
void stored_inside_after_reset(ARGUMENTS) { I J { uint32_t sum = 0; P { sum = A * B; } C += sum; } }
void differences(ARGUMENTS) { I J P C += A - B; }
void products_of_sums(ARGUMENTS) { I J P C += (A + B) * (A + B); }
void three_factors(ARGUMENTS, const uint32_t *d) { I J P C += A * B * d[p * n + i]; }
void maximum(ARGUMENTS) { I J P C = C > A * B ? C : A * B; }
void divided(ARGUMENTS) { I J P C += A / (B | 1); }
void clamped(ARGUMENTS) { I J P { uint32_t product = A * B; C += product > 4 ? 4 : product; } }
void sums_of_earlier_sums(ARGUMENTS, uint32_t *y) {
    I {
        uint32_t sum = y[i];
        for (int j = 0; j <= i; ++j) { sum += a[i * n + j] * y[j]; y[i] = sum; }
        J { uint32_t s = 0; P s += A * b[j * n + p]; C += s; }
    }
}

void calls_inside(ARGUMENTS) { I J P { C += A * B; ((void (*volatile)(void))count)(); } }
void volatile_sum(ARGUMENTS) { I J P *(volatile uint32_t *)&C += A * B; }
void volatile_operand(ARGUMENTS) { I J P C += *(const volatile uint32_t *)&A * B; }
void atomic_sum(ARGUMENTS) { I J P __atomic_fetch_add(&C, A * B, __ATOMIC_RELAXED); }
void two_arrays(ARGUMENTS, uint32_t *d) { I J P { C += A * B; d[i * n + p] += C; } }
void uses_index(ARGUMENTS) { I J P C += A * B * p; }
void band(ARGUMENTS) { I for (int j = i > 2 ? i - 2 : 0; j < n; ++j) P C += A * B; }
void triangle_of_depth(ARGUMENTS) { I J for (int p = 0; p <= i; ++p) C += A * B; }
void triangle_of_other_matrix(ARGUMENTS) { I for (int j = 0; j <= i; ++j) P C += A * B; }
void cholesky(uint32_t *a, int n) {
    I for (int j = 0; j < i; ++j) for (int p = 0; p < j; ++p) a[i * n + j] -= a[i * n + p] * a[j * n + p];
}
void triangular_solve(uint32_t *b, const uint32_t *a, int n) {
    I for (int p = 0; p < i; ++p) J b[i * n + j] -= a[i * n + p] * b[p * n + j];
}
void in_place(uint32_t *c, const uint32_t *b, int n) { I J P C += c[i * n + p] * B; }
void strictly_ordered(float *c, const float *a, const float *b, int n) {
#pragma clang fp reassociate(off) contract(off)
    I J P C += A * B;
}
void rounded_products(float *c, const float *a, const float *b, int n) {
#pragma clang fp contract(off)
    I J P C += A * B;
}
void same_row_twice(ARGUMENTS) { I J P C += A * a[i * n + p]; }
void elements_of_one_column(ARGUMENTS) { I J P c[i * n + p] = A * B; }
void shrinking(ARGUMENTS) { for (; n > 2; n /= 2) I J c[i * n + j] += a[i * n + j] * b[j * n + i]; }
void size_changes(uint32_t *c, const uint32_t *a, const uint32_t *b, int *size, int n) {
    I J for (int p = 0; p < *size; ++p) { C += A * B; *size = n; }
}
void last_term_differs(ARGUMENTS) { I J P C += p == n - 1 ? A : A * B; }
void bits(ARGUMENTS) { I J P C += A & B; }
void shifted(ARGUMENTS) { I J P C += A << (B & 3); }
void sums_kept(ARGUMENTS, uint32_t *s) {
    I J { uint32_t sum = 0; P { sum += A * B; s[(i * n + j) * n + p] = sum; } C = sum; }
}
