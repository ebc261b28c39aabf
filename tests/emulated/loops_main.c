/* Calls the functions of loops.c on small integers, whose sums are exact, and counts elements that are wrong. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void product(float *, const float *, const float *, int, int, int, float);
void bytes(int32_t *, const int8_t *, const int8_t *, long, long, long);
void triangle(double *, const double *, long, long);
void known(float *, const float *, const float *);

#define FILLED(type, name, count) \
  type *name = malloc((count) * sizeof(type)); \
  for (long at = 0; at < (count); at++) name[at] = (type)(at * 7 % 9 - 4)

static int wrong;
static void check(double found, double expected) { wrong += found != expected; }

static double dot(const float *a, const float *b, long k, long step) {
  volatile double sum = 0;
  for (long p = 0; p < k; p++) sum += (double)a[p] * b[p * step];
  return sum;
}

int main(void) {
  static const int sizes[][3] = {{70, 75, 33}, {5, 9, 11}, {2, 2, 2}, {0, 4, 4}, {40, 40, 600}, {3, 200, 1}};
  for (unsigned at = 0; at < sizeof sizes / sizeof *sizes; at++) {
    long m = sizes[at][0], n = sizes[at][1], k = sizes[at][2];
    FILLED(float, a, m * k);
    FILLED(float, b, k * n);
    FILLED(float, c, m * n);
    product(c, a, b, m, n, k, 2);
    for (long i = 0; i < m; i++)
      for (long j = 0; j < n; j++) check(c[i * n + j], 2 * dot(a + i * k, b + j, k, n));
    FILLED(int8_t, x, m * k);
    FILLED(int8_t, y, k * n);
    FILLED(int32_t, z, m * n);
    bytes(z, x, y, m, n, k);
    for (long i = 0; i < m; i++)
      for (long j = 0; j < n; j++)
        check(z[i * n + j], (i * n + j) * 7 % 9 - 4 + dot(a + i * k, b + j, k, n));
    FILLED(double, s, m * k);
    FILLED(double, t, m * m);
    triangle(t, s, m, k);
    for (long i = 0; i < m; i++)
      for (long j = 0; j < m; j++)
        check(t[i * m + j], (i * m + j) * 7 % 9 - 4 + (j <= i ? dot(a + i * k, a + j * k, k, 1) : 0));
  }
  FILLED(float, a, 20 * 16);
  FILLED(float, b, 16 * 24);
  FILLED(float, c, 20 * 24);
  known(c, a, b);
  for (long i = 0; i < 20; i++)
    for (long j = 0; j < 24; j++) check(c[i * 24 + j], (i * 24 + j) * 7 % 9 - 4 + dot(a + i * 16, b + j, 16, 24));
  product(a, a, b, 16, 16, 16, 1); /* overlaps: the loops run */
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
