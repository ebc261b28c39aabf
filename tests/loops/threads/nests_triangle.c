// A nest in another file of the same program.

void triangle(int n, const double *a, double *c) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++)
      for (int p = 0; p < n; p++)
        c[i * n + j] += a[i * n + p] * a[j * n + p];
}
