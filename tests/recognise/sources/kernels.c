/* Kernels of linear algebra and of data mining as textbooks write them, on square arrays with rows of N. */

#include <math.h>

#ifndef N
#define N 64
#endif

// gemm(f64 c[64*64], f64 a[64*64], f64 b[64*64], int n, f64 alpha=3, f64 beta=2) replaced mk,kn->mn
void gemm(double (*c)[N], double (*a)[N], double (*b)[N], int n, double alpha, double beta) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            c[i][j] *= beta;
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                c[i][j] += alpha * a[i][k] * b[k][j];
    }
}

// two_products(f64 t[64*64], f64 d[64*64], f64 a[64*64], f64 b[64*64], f64 c[64*64], int n, f64 alpha=3, f64 beta=2) replaced mk,kn->mn set, mk,kn->mn
void two_products(double (*t)[N], double (*d)[N], double (*a)[N], double (*b)[N], double (*c)[N], int n,
                  double alpha, double beta) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            t[i][j] = 0;
            for (int k = 0; k < n; k++)
                t[i][j] += alpha * a[i][k] * b[k][j];
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            d[i][j] *= beta;
            for (int k = 0; k < n; k++)
                d[i][j] += t[i][k] * c[k][j];
        }
}

// three_products(f64 g[64*64], f64 e[64*64], f64 f[64*64], f64 a[64*64], f64 b[64*64], f64 c[64*64], f64 d[64*64], int n) replaced mk,kn->mn set, mk,kn->mn set, mk,kn->mn set
void three_products(double (*g)[N], double (*e)[N], double (*f)[N], double (*a)[N], double (*b)[N],
                    double (*c)[N], double (*d)[N], int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            e[i][j] = 0;
            for (int k = 0; k < n; k++)
                e[i][j] += a[i][k] * b[k][j];
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            f[i][j] = 0;
            for (int k = 0; k < n; k++)
                f[i][j] += c[i][k] * d[k][j];
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            g[i][j] = 0;
            for (int k = 0; k < n; k++)
                g[i][j] += e[i][k] * f[k][j];
        }
}

// syrk(f64 c[64*64], f64 a[64*64], int n, f64 alpha=3, f64 beta=2) replaced mk,kn->mn triangle
void syrk(double (*c)[N], double (*a)[N], int n, double alpha, double beta) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++)
            c[i][j] *= beta;
        for (int k = 0; k < n; k++)
            for (int j = 0; j <= i; j++)
                c[i][j] += alpha * a[i][k] * a[j][k];
    }
}

// syr2k(f64 c[64*64], f64 a[64*64], f64 b[64*64], int n, f64 alpha=3, f64 beta=2) replaced mk,kn+mk,kn->mn triangle
void syr2k(double (*c)[N], double (*a)[N], double (*b)[N], int n, double alpha, double beta) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++)
            c[i][j] *= beta;
        for (int k = 0; k < n; k++)
            for (int j = 0; j <= i; j++)
                c[i][j] += a[j][k] * alpha * b[i][k] + b[j][k] * alpha * a[i][k];
    }
}

// trmm(f64 b[64*64], f64 a[64*64], int n, f64 alpha=3) replaced mk,kn->mn
void trmm(double (*b)[N], double (*a)[N], int n, double alpha) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            for (int k = i + 1; k < n; k++)
                b[i][j] += a[k][i] * b[k][j];
            b[i][j] = alpha * b[i][j];
        }
}

// symm(f64 c[64*64], f64 a[64*64], f64 b[64*64], int n, f64 alpha=3, f64 beta=2) replaced mk,kn->mn, mk,kn->mn
void symm(double (*c)[N], double (*a)[N], double (*b)[N], int n, double alpha, double beta) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < i; k++) {
                c[k][j] += alpha * b[i][j] * a[i][k];
                sum += b[k][j] * a[i][k];
            }
            c[i][j] = beta * c[i][j] + alpha * b[i][j] * a[i][i] + alpha * sum;
        }
}

// doitgen(f64 s[64], f64 c[64*64], f64 a[16*16*64], int n) replaced mk,k->m set
void doitgen(double *s, double (*c)[N], double (*a)[16][N], int n) {
    for (int r = 0; r < 16; r++)
        for (int q = 0; q < 16; q++) {
            for (int p = 0; p < n; p++) {
                s[p] = 0;
                for (int k = 0; k < n; k++)
                    s[p] += a[r][q][k] * c[k][p];
            }
            for (int p = 0; p < n; p++)
                a[r][q][p] = s[p];
        }
}

// gemver(f64 w[64], f64 a[64*64], f64 x[64], f64 y[64], f64 z[64], f64 u1[64], f64 v1[64], f64 u2[64], f64 v2[64], int n, f64 alpha=3, f64 beta=2) replaced mk,k->m, mk,k->m
void gemver(double *w, double (*a)[N], double *x, double *y, double *z, double *u1, double *v1, double *u2,
            double *v2, int n, double alpha, double beta) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a[i][j] = a[i][j] + u1[i] * v1[j] + u2[i] * v2[j];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            x[i] = x[i] + beta * a[j][i] * y[j];
    for (int i = 0; i < n; i++)
        x[i] = x[i] + z[i];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            w[i] = w[i] + alpha * a[i][j] * x[j];
}

// atax(f64 y[64], f64 a[64*64], f64 t[64], f64 x[64], int n) replaced mk,k->m set, mk,k->m
void atax(double *y, double (*a)[N], double *t, double *x, int n) {
    for (int i = 0; i < n; i++)
        y[i] = 0;
    for (int i = 0; i < n; i++) {
        t[i] = 0;
        for (int j = 0; j < n; j++)
            t[i] = t[i] + a[i][j] * x[j];
        for (int j = 0; j < n; j++)
            y[j] = y[j] + a[i][j] * t[i];
    }
}

// bicg(f64 s[64], f64 a[64*64], f64 q[64], f64 p[64], f64 r[64], int n) replaced mk,k->m set, mk,k->m
void bicg(double *s, double (*a)[N], double *q, double *p, double *r, int n) {
    for (int i = 0; i < n; i++)
        s[i] = 0;
    for (int i = 0; i < n; i++) {
        q[i] = 0;
        for (int j = 0; j < n; j++) {
            s[j] = s[j] + r[i] * a[i][j];
            q[i] = q[i] + a[i][j] * p[j];
        }
    }
}

// mvt(f64 x[64], f64 a[64*64], f64 z[64], f64 y[64], f64 w[64], int n) replaced mk,k->m, mk,k->m
void mvt(double *x, double (*a)[N], double *z, double *y, double *w, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            x[i] = x[i] + a[i][j] * y[j];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            z[i] = z[i] + a[j][i] * w[j];
}

// gesummv(f64 y[64], f64 a[64*64], f64 b[64*64], f64 t[64], f64 x[64], int n, f64 alpha=3, f64 beta=2) replaced mk,k->m set, mk,k->m set
void gesummv(double *y, double (*a)[N], double (*b)[N], double *t, double *x, int n, double alpha, double beta) {
    for (int i = 0; i < n; i++) {
        t[i] = 0;
        y[i] = 0;
        for (int j = 0; j < n; j++) {
            t[i] = a[i][j] * x[j] + t[i];
            y[i] = b[i][j] * x[j] + y[i];
        }
        y[i] = alpha * t[i] + beta * y[i];
    }
}

// covariance(f64 c[64*64], f64 d[64*64], f64 m[64], int n, f64 count=32) replaced mk,kn->mn set triangle
void covariance(double (*c)[N], double (*d)[N], double *m, int n, double count) {
    for (int j = 0; j < n; j++) {
        m[j] = 0;
        for (int i = 0; i < n; i++)
            m[j] += d[i][j];
        m[j] /= count;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            d[i][j] -= m[j];
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) {
            c[i][j] = 0;
            for (int k = 0; k < n; k++)
                c[i][j] += d[k][i] * d[k][j];
            c[i][j] /= count / 2;
            c[j][i] = c[i][j];
        }
}

// gramschmidt(f64 a[64*64], f64 r[64*64], f64 q[64*64], int n) rounds
void gramschmidt(double (*a)[N], double (*r)[N], double (*q)[N], int n) {
    for (int k = 0; k < n; k++) {
        double norm = 0;
        for (int i = 0; i < n; i++)
            norm += a[i][k] * a[i][k];
        r[k][k] = sqrt(norm);
        for (int i = 0; i < n; i++)
            q[i][k] = a[i][k] / r[k][k];
        for (int j = k + 1; j < n; j++) {
            r[k][j] = 0;
            for (int i = 0; i < n; i++)
                r[k][j] += q[i][k] * a[i][j];
            for (int i = 0; i < n; i++)
                a[i][j] = a[i][j] - q[i][k] * r[k][j];
        }
    }
}

// correlation(f64 c[64*64], f64 d[64*64], f64 m[64], f64 s[64], int n, f64 count=32) rounds
void correlation(double (*c)[N], double (*d)[N], double *m, double *s, int n, double count) {
    for (int j = 0; j < n; j++) {
        m[j] = 0;
        for (int i = 0; i < n; i++)
            m[j] += d[i][j];
        m[j] /= count;
    }
    for (int j = 0; j < n; j++) {
        s[j] = 0;
        for (int i = 0; i < n; i++)
            s[j] += (d[i][j] - m[j]) * (d[i][j] - m[j]);
        s[j] /= count;
        s[j] = sqrt(s[j]);
        s[j] = s[j] <= 0.1 ? 1 : s[j];
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            d[i][j] -= m[j];
            d[i][j] /= sqrt(count) * s[j];
        }
    for (int i = 0; i < n - 1; i++) {
        c[i][i] = 1;
        for (int j = i + 1; j < n; j++) {
            c[i][j] = 0;
            for (int k = 0; k < n; k++)
                c[i][j] += d[k][i] * d[k][j];
            c[j][i] = c[i][j];
        }
    }
    if (n > 0)
        c[n - 1][n - 1] = 1;
}

// cholesky(f64 a[64*64], int n) rounds
void cholesky(double (*a)[N], int n) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) {
            for (int k = 0; k < j; k++)
                a[i][j] -= a[i][k] * a[j][k];
            a[i][j] /= a[j][j];
        }
        for (int k = 0; k < i; k++)
            a[i][i] -= a[i][k] * a[i][k];
        a[i][i] = sqrt(a[i][i]);
    }
}

// lu(f64 a[64*64], int n) rounds
void lu(double (*a)[N], int n) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) {
            for (int k = 0; k < j; k++)
                a[i][j] -= a[i][k] * a[k][j];
            a[i][j] /= a[j][j];
        }
        for (int j = i; j < n; j++)
            for (int k = 0; k < i; k++)
                a[i][j] -= a[i][k] * a[k][j];
    }
}
