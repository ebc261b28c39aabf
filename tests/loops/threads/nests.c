// Loop nests of a program whose products have threads: one function for each kind of plan.

void product(int n, const float *a, const float *b, float *c) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int p = 0; p < n; p++)
        sum += a[i * n + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
}

void batch(int n, const float *a, const float *b, float *c) {  // n * n / 256 products of 16 x 16
  for (int s = 0; s < n * n / 256; s++)
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 16; j++)
        for (int p = 0; p < 16; p++)
          c[s * 256 + i * 16 + j] += a[s * 256 + i * 16 + p] * b[s * 256 + p * 16 + j];
}

void rows(int n, float **a, float **b, float **c) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int p = 0; p < n; p++)
        c[i][j] += a[i][p] * b[p][j];
}
