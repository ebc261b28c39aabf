/* What opt_time.py makes 2,000 functions of: one line each; $n is a function's number, $a, $b, $c are small numbers. */

#include <stddef.h>
extern int read_one(int);
extern int look_at(int *);
extern void say(const char *, ...);
struct node { struct node *next, *left, *right; int key; double weight; char *name; };
struct body { float x, y, z, mass; };

// plain
int f${n}(int x, int y) { return (x + ${a}) * (y ^ ${b}) - (x >> ${c}); }
double f${n}(const struct node *p) { return p && p->key > ${a} ? p->weight * ${b}.5 : -1.0; }
void f${n}(struct node *p, int key) { p->key = key + ${a}; p->weight += ${b}; p->next = p->left; }
int f${n}(int a, int b) { switch (a & 7) { case 0: return b + ${a}; case 1: return b * ${b}; case 2: return read_one(a); case 3: return b - a; case 4: return a / (${c} + 1); default: return a ^ b; } }
struct node *f${n}(struct node *p, int key) { if (!p || p->key == key + ${a}) return p; return f${n}(key < p->key ? p->left : p->right, key); }
unsigned f${n}(unsigned x) { x ^= x << 13; x ^= x >> ${c}; x *= ${b}u; return x + ${a}; }
int f${n}(int x) { if (x < ${a}) { say("%d", x); return -1; } if (x > ${b}00) return read_one(x); return x; }
float f${n}(struct body p, struct body q) { float x = p.x - q.x, y = p.y - q.y, z = p.z - q.z; return x * x + y * y + z * z + ${a}.25f; }

// loops
int f${n}(const char *s, int c) { int k = 0; while (*s) if (*s++ == c + ${a}) k++; return k; }
double f${n}(struct node *p) { double s = ${a}; for (; p; p = p->next) if (p->key > ${b}) s += p->weight; return s; }
long f${n}(long x) { long s = 0; do { s += x % 10 * ${a}; x /= 10; } while (x); return s; }
void f${n}(char *o, const char *i) { int s = 0; for (; *i; i++) switch (s) { case 0: if (*i == 34) s = 1; else *o++ = *i; break; case 1: s = *i == 92 ? 2 : *i == 34 ? 0 : 1; break; case 2: *o++ = *i + ${c}; s = 1; } *o = 0; }
int f${n}(const int *x, int n, int v) { int l = 0, h = n; while (l < h) { int m = (l + h) / 2; if (x[m] < v + ${a}) l = m + 1; else h = m; } return l; }
float f${n}(const float *x, int n) { float m = x[0], s = ${a}; for (int i = 0; i < n; i++) if (x[i] > m) m = x[i]; for (int i = 0; i < n; i++) s += (x[i] - m) * (x[i] - m); return s; }
int f${n}(int x) { int r = 0; for (int i = 0; i < x; i++) { if (read_one(i) > ${b}) break; r += look_at(&i); } return r; }

// nests
void f${n}(int *x, int n) { for (int i = 1; i < n; i++) { int v = x[i], j = i - 1; while (j >= 0 && x[j] > v) { x[j + 1] = x[j]; j--; } x[j + 1] = v + ${a}; } }
void f${n}(float *o, const float *x, int w, int h) { for (int y = 1; y < h - 1; y++) for (int i = 1; i < w - 1; i++) o[y * w + i] = ${a}.0f * x[y * w + i] - x[y * w + i - 1] - x[y * w + i + 1] - x[(y - 1) * w + i]; }
void f${n}(unsigned *h, const unsigned char *x, int w, int m) { for (int y = 0; y < m; y++) for (int i = 0; i < w; i++) h[x[y * w + i] >> ${c}] += ${a}; }
unsigned f${n}(const unsigned char *p, int n) { unsigned c = ${a}; for (int i = 0; i < n; i++) { c ^= p[i]; for (int k = 0; k < 8; k++) c = (c >> 1) ^ (0xEDB88320u & -(c & 1)); } return c; }
void f${n}(double *a, int n) { for (int k = 0; k < n; k++) for (int i = k + 1; i < n; i++) { a[i * n + k] /= a[k * n + k] + ${a}; for (int j = k + 1; j < n; j++) a[i * n + j] -= a[i * n + k] * a[k * n + j]; } }
void f${n}(double *y, const double *x, const int *r, const int *c, const double *v, int n) { for (int i = 0; i < n; i++) { double s = ${a}; for (int k = r[i]; k < r[i + 1]; k++) s += v[k] * x[c[k]]; y[i] = s; } }
int f${n}(int *d, int n) { for (int k = 0; k < n; k++) for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) if (d[i * n + k] + d[k * n + j] < d[i * n + j]) d[i * n + j] = d[i * n + k] + d[k * n + j] + ${a}; return d[0]; }
void f${n}(float *o, const float *x, int w, int h) { for (int y = 0; y < h; y++) for (int i = 0; i < w; i++) o[i * h + y] = x[y * w + i] * ${a}.5f; }
int f${n}(const char *a, const char *b, int *t, int n, int m) { for (int i = 1; i <= n; i++) for (int j = 1; j <= m; j++) { int c = a[i - 1] != b[j - 1], x = t[(i - 1) * m + j] + ${a}, y = t[i * m + j - 1] + 1, z = t[(i - 1) * m + j - 1] + c; t[i * m + j] = x < y ? (x < z ? x : z) : y < z ? y : z; } return t[n * m]; }
