/* Convolutions without copies of their input, tensor contractions, and stencils, which stay loops. */

#include <stdint.h>

// conv2d(f32 y[m*6*n], f32 x[8*8*(n+2)], f32 w[m*8*9], int m>=0, int n>=0) replaced mkkk,kkknn->mnn set
void conv2d(float *y, const float *x, const float *w, int m, int n) {
    for (int o = 0; o < m; o++)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < n; j++) {
                float sum = 0;
                for (int c = 0; c < 8; c++)
                    for (int di = 0; di < 3; di++)
                        for (int dj = 0; dj < 3; dj++)
                            sum += x[(c * 8 + i + di) * (n + 2) + j + dj] * w[((o * 8 + c) * 3 + di) * 3 + dj];
                y[(o * 6 + i) * n + j] = sum;
            }
}

// stencil(f32 y[m*n], f32 x[(m+2)*(n+2)], int m>=0, int n>=0) refused
void stencil(float *y, const float *x, int m, int n) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            y[i * n + j] = 2 * x[(i + 1) * (n + 2) + j + 1] - x[i * (n + 2) + j + 1] - x[(i + 2) * (n + 2) + j + 1];
}

// filter(f32 y[m*n], f32 x[(m+2)*(n+2)], f32 w[9], int m>=0, int n>=0) refused
void filter(float *y, const float *x, const float *w, int m, int n) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int di = 0; di < 3; di++)
                for (int dj = 0; dj < 3; dj++)
                    y[i * n + j] += x[(i + di) * (n + 2) + j + dj] * w[di * 3 + dj];
}

// impulse_response(f64 y[n], f64 x[n+k], f64 w[k], int n>=0, int k>=0) refused
void impulse_response(double *y, const double *x, const double *w, int n, int k) {
    for (int i = 0; i < n; i++)
        for (int p = 0; p < k; p++)
            y[i] += x[i + p] * w[p];
}

// channel_by_channel(f32 y[m*5*n], f32 x[m*7*(n+2)], f32 w[m*9], int m>=0, int n>=0) refused
void channel_by_channel(float *y, const float *x, const float *w, int m, int n) {
    for (int c = 0; c < m; c++)
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < n; j++)
                for (int di = 0; di < 3; di++)
                    for (int dj = 0; dj < 3; dj++)
                        y[(c * 5 + i) * n + j] += x[(c * 7 + i + di) * (n + 2) + j + dj] * w[(c * 3 + di) * 3 + dj];
}

#ifndef FEW
// last_channels(f32 y[6*7*n], f32 x[13*17*k], f32 w[9*k*n], int n>=0, int k>=0) any
void last_channels(float *y, const float *x, const float *w, int n, int k) {
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 7; j++)
            for (int di = 0; di < 3; di++)
                for (int dj = 0; dj < 3; dj++)
                    for (int c = 0; c < k; c++)
                        for (int o = 0; o < n; o++)
                            y[(i * 7 + j) * n + o] +=
                                x[((2 * i + di) * 17 + 2 * j + 2 * dj) * k + c] * w[((di * 3 + dj) * k + c) * n + o];
}

// conv3d_of_batch(i32 y[3*m*3*4*n], i8 x[3*4*5*6*(n+2)], i8 w[m*4*27], int m>=0, int n>=0) any
void conv3d_of_batch(int32_t *y, const int8_t *x, const int8_t *w, int m, int n) {
    for (int b = 0; b < 3; b++)
        for (int o = 0; o < m; o++)
            for (int h = 0; h < 3; h++)
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < n; j++)
                        for (int c = 0; c < 4; c++)
                            for (int dh = 0; dh < 3; dh++)
                                for (int di = 0; di < 3; di++)
                                    for (int dj = 0; dj < 3; dj++)
                                        y[(((b * m + o) * 3 + h) * 4 + i) * n + j] +=
                                            x[(((b * 4 + c) * 5 + h + dh) * 6 + i + di) * (n + 2) + j + dj] *
                                            w[(((o * 4 + c) * 3 + dh) * 3 + di) * 3 + dj];
}

// conv_of_groups(u32 y[2*m*5*n], u32 x[2*6*7*(n+4)], u32 w[2*m*6*15] alone, int m>=0, int n>=0) any
void conv_of_groups(uint32_t *y, const uint32_t *x, const uint32_t *restrict w, int m, int n) {
    for (int g = 0; g < 2; g++)
        for (int o = 0; o < m; o++)
            for (int i = 0; i < 5; i++)
                for (int j = 0; j < n; j++)
                    for (int c = 0; c < 6; c++)
                        for (int di = 0; di < 3; di++)
                            for (int dj = 0; dj < 5; dj++)
                                y[((g * m + o) * 5 + i) * n + j] +=
                                    x[((g * 6 + c) * 7 + i + di) * (n + 4) + j + dj] *
                                    w[((g * m + o) * 6 + c) * 15 + di * 5 + dj];
}

// contraction(f64 c[4*m*3*n], f64 a[m*2*3*k], f64 b[4*k*2*n], int m, int n, int k) replaced mmkk,kknn->mmnn
void contraction(double *c, const double *a, const double *b, int m, int n, int k) {
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < m; i++)
            for (int h = 0; h < 3; h++)
                for (int e = 0; e < 2; e++)
                    for (int p = 0; p < k; p++)
                        for (int j = 0; j < n; j++)
                            c[((d * m + i) * 3 + h) * n + j] +=
                                2 * a[((i * 2 + e) * 3 + h) * k + p] * b[((d * k + p) * 2 + e) * n + j];
}

// narrow_contraction(f16 c[m*3*n], f16 a[m*2*3*k], f16 b[k*2*n], int m, int n, int k) any
void narrow_contraction(_Float16 *c, const _Float16 *a, const _Float16 *b, int m, int n, int k) {
    for (int i = 0; i < m; i++)
        for (int h = 0; h < 3; h++)
            for (int j = 0; j < n; j++) {
                float sum = 0;
                for (int e = 0; e < 2; e++)
                    for (int p = 0; p < k; p++)
                        sum += (float)a[((i * 2 + e) * 3 + h) * k + p] * (float)b[(p * 2 + e) * n + j];
                c[(i * 3 + h) * n + j] = (_Float16)sum;
            }
}

// into_own_input(u32 x[(m+3)*(n+2)+40*n], u32 w[m*9], int m>=1, int n>=1) any
void into_own_input(uint32_t *x, const uint32_t *w, int m, int n) {
    for (int o = 0; o < m; o++)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < n; j++)
                for (int di = 0; di < 3; di++)
                    for (int dj = 0; dj < 3; dj++)
                        x[o * n + j + 40 * i] += x[(i + di) * (n + 2) + j + dj] * w[(o * 3 + di) * 3 + dj];
}
#endif
