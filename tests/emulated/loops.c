/* Loops that `tilewright opt` replaces by products, for every target. */
#include <stdint.h>

void product(float *c, const float *a, const float *b, int m, int n, int k, float alpha) {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = alpha * sum;
    }
}

void bytes(int32_t *c, const int8_t *a, const int8_t *b, long m, long n, long k) {
  for (long i = 0; i < m; i++)
    for (long p = 0; p < k; p++)
      for (long j = 0; j < n; j++) c[i * n + j] += a[i * k + p] * b[p * n + j];
}

void triangle(double *c, const double *a, long n, long k) {
  for (long i = 0; i < n; i++)
    for (long j = 0; j <= i; j++)
      for (long p = 0; p < k; p++) c[i * n + j] += a[i * k + p] * a[j * k + p];
}

void known(float *c, const float *a, const float *b) {
  for (int j = 0; j < 24; j++)
    for (int p = 0; p < 16; p++)
      for (int i = 0; i < 20; i++) c[i * 24 + j] += a[i * 16 + p] * b[p * 24 + j];
}
