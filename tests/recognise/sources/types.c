/* Element types, and the types that products and sums have. */

#include <stdint.h>
#include <string.h>

/* What a CPU without the instruction calls, for C libraries that do not have it: to the nearest, ties to even. */
__attribute__((weak)) __bf16 __truncsfbf2(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t upper = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    __bf16 result;
    memcpy(&result, &upper, sizeof result);
    return result;
}

#define PRODUCT(name, T, A, B, ACC)                                      \
    void name(T *c, const A *a, const B *b, int m, int n, int k) {       \
        for (int i = 0; i < m; ++i)                                      \
            for (int j = 0; j < n; ++j)                                  \
                for (int p = 0; p < k; ++p)                              \
                    c[i * n + j] += (ACC)a[i * k + p] * (ACC)b[p * n + j]; \
    }

#define SCALAR(name, T, A, B, ACC)                                       \
    void name(T *c, const A *a, const B *b, int m, int n, int k) {       \
        for (int i = 0; i < m; ++i)                                      \
            for (int j = 0; j < n; ++j) {                                \
                ACC sum = 0;                                             \
                for (int p = 0; p < k; ++p)                              \
                    sum += (ACC)a[i * k + p] * (ACC)b[p * n + j];        \
                c[i * n + j] = (T)sum;                                   \
            }                                                            \
    }

/*
// product_{f32,f64,i32,u32,i64}(NAME c[m*n], NAME a[m*k], NAME b[k*n], int m, int n, int k) replaced mk,kn->mn
// scalar_{f32,f64,f16,bf16,i16,i32,u32,i64}(NAME c[m*n], NAME a[m*k], NAME b[k*n], int m, int n, int k) replaced mk,kn->mn set
// product_{i8,u8,i16}_i32(i32 c[m*n], NAME a[m*k], NAME b[k*n], int m, int n, int k) replaced mk,kn->mn
// scalar_{i8,u8,i16}_i32(i32 c[m*n], NAME a[m*k], NAME b[k*n], int m, int n, int k) replaced mk,kn->mn set
// scalar_{f16,bf16}_f32(f32 c[m*n], NAME a[m*k], NAME b[k*n], int m, int n, int k) replaced mk,kn->mn set
// narrowed_{f16,bf16}(NAME c[m*n], NAME a[m*k], NAME b[k*n], int m, int n, int k) replaced mk,kn->mn set
// mixed_f32_f64(f64 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) any
// mixed_u8_i8(i32 c[m*n], u8 a[m*k], i8 b[k*n], int m, int n, int k) replaced mk,kn->mn
// wrapping_i8(i8 c[m*n], i8 a[m*k], i8 b[k*n], int m, int n, int k) any
*/
PRODUCT(product_f32, float, float, float, float)
PRODUCT(product_f64, double, double, double, double)
PRODUCT(product_i32, int32_t, int32_t, int32_t, int32_t)
PRODUCT(product_u32, uint32_t, uint32_t, uint32_t, uint32_t)
PRODUCT(product_i64, int64_t, int64_t, int64_t, int64_t)
PRODUCT(product_i8_i32, int32_t, int8_t, int8_t, int32_t)
PRODUCT(product_u8_i32, int32_t, uint8_t, uint8_t, int32_t)
PRODUCT(product_i16_i32, int32_t, int16_t, int16_t, int32_t)
PRODUCT(mixed_u8_i8, int32_t, uint8_t, int8_t, int32_t)
PRODUCT(wrapping_i8, int8_t, int8_t, int8_t, int8_t)
SCALAR(scalar_f32, float, float, float, float)
SCALAR(scalar_f64, double, double, double, double)
SCALAR(scalar_f16, _Float16, _Float16, _Float16, _Float16)
SCALAR(scalar_bf16, __bf16, __bf16, __bf16, __bf16)
SCALAR(scalar_i16, int16_t, int16_t, int16_t, int16_t)
SCALAR(scalar_i32, int32_t, int32_t, int32_t, int32_t)
SCALAR(scalar_u32, uint32_t, uint32_t, uint32_t, uint32_t)
SCALAR(scalar_i64, int64_t, int64_t, int64_t, int64_t)
SCALAR(scalar_i8_i32, int32_t, int8_t, int8_t, int32_t)
SCALAR(scalar_u8_i32, int32_t, uint8_t, uint8_t, int32_t)
SCALAR(scalar_i16_i32, int32_t, int16_t, int16_t, int32_t)
SCALAR(scalar_f16_f32, float, _Float16, _Float16, float)
SCALAR(scalar_bf16_f32, float, __bf16, __bf16, float)
SCALAR(narrowed_f16, _Float16, _Float16, _Float16, float)
SCALAR(narrowed_bf16, __bf16, __bf16, __bf16, float)
SCALAR(mixed_f32_f64, double, float, float, double)
