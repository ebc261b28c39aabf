//! Products as Rust writes them: slices with their checks, without, raw pointers, iterators.

use std::slice::{from_raw_parts, from_raw_parts_mut};

// raw_pointers(i32 c[m*n], i32 a[m*k], i32 b[k*n], i64 m>=0, i64 n>=0, i64 k>=0) replaced mk,kn->mn
#[no_mangle]
pub unsafe extern "C" fn raw_pointers(c: *mut i32, a: *const i32, b: *const i32, m: usize, n: usize, k: usize) {
    for i in 0..m {
        for j in 0..n {
            for p in 0..k {
                *c.add(i * n + j) = (*c.add(i * n + j)).wrapping_add((*a.add(i * k + p)).wrapping_mul(*b.add(p * n + j)));
            }
        }
    }
}

// unchecked_slices(i64 c[m*n] alone, i64 a[m*k], i64 b[k*n], i64 m>=0, i64 n>=0, i64 k>=0) replaced mk,kn->mn
#[no_mangle]
pub unsafe extern "C" fn unchecked_slices(c: *mut i64, a: *const i64, b: *const i64, m: usize, n: usize, k: usize) {
    let (c, a, b) = (from_raw_parts_mut(c, m * n), from_raw_parts(a, m * k), from_raw_parts(b, k * n));
    for i in 0..m {
        for p in 0..k {
            for j in 0..n {
                *c.get_unchecked_mut(i * n + j) += a.get_unchecked(i * k + p) * b.get_unchecked(p * n + j);
            }
        }
    }
}

// checked_slices(f64 c[m*n] alone, f64 a[m*k], f64 b[k*n], i64 m>=0, i64 n>=0, i64 k>=0) replaced mk,kn->mn
#[no_mangle]
pub unsafe extern "C" fn checked_slices(c: *mut f64, a: *const f64, b: *const f64, m: usize, n: usize, k: usize) {
    let (c, a, b) = (from_raw_parts_mut(c, m * n), from_raw_parts(a, m * k), from_raw_parts(b, k * n));
    for i in 0..m {
        for j in 0..n {
            for p in 0..k {
                c[i * n + j] += a[i * k + p] * b[p * n + j];
            }
        }
    }
}

// checked_sums(f32 c[m*n] alone, f32 a[m*k], f32 b[k*n], i64 m>=0, i64 n>=0, i64 k>=0) replaced mk,kn->mn set
#[no_mangle]
pub unsafe extern "C" fn checked_sums(c: *mut f32, a: *const f32, b: *const f32, m: usize, n: usize, k: usize) {
    let (c, a, b) = (from_raw_parts_mut(c, m * n), from_raw_parts(a, m * k), from_raw_parts(b, k * n));
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for p in 0..k {
                sum += a[i * k + p] * b[p * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

// static_arrays(f32 c[32*48] alone, f32 a[32*40], f32 b[40*48]) replaced mk,kn->mn
#[no_mangle]
pub extern "C" fn static_arrays(c: &mut [[f32; 48]; 32], a: &[[f32; 40]; 32], b: &[[f32; 48]; 40]) {
    for i in 0..32 {
        for j in 0..48 {
            for p in 0..40 {
                c[i][j] += a[i][p] * b[p][j];
            }
        }
    }
}

// iterators(f32 c[m*n] alone, f32 a[m*k], f32 b[k*n], i64 m>=1, i64 n>=1, i64 k>=1) any
#[no_mangle]
pub unsafe extern "C" fn iterators(c: *mut f32, a: *const f32, b: *const f32, m: usize, n: usize, k: usize) {
    let (c, a, b) = (from_raw_parts_mut(c, m * n), from_raw_parts(a, m * k), from_raw_parts(b, k * n));
    for (row, left) in c.chunks_exact_mut(n).zip(a.chunks_exact(k)) {
        for (&factor, right) in left.iter().zip(b.chunks_exact(n)) {
            for (sum, &value) in row.iter_mut().zip(right) {
                *sum += factor * value;
            }
        }
    }
}

struct Matrix<'a> {
    data: &'a [f64],
    columns: usize,
}

impl std::ops::Index<(usize, usize)> for Matrix<'_> {
    type Output = f64;
    fn index(&self, (row, column): (usize, usize)) -> &f64 {
        &self.data[row * self.columns + column]
    }
}

// indexed_matrices(f64 c[m*n] alone, f64 a[m*k], f64 b[k*n], i64 m>=0, i64 n>=0, i64 k>=0) replaced mk,kn->mn
#[no_mangle]
pub unsafe extern "C" fn indexed_matrices(c: *mut f64, a: *const f64, b: *const f64, m: usize, n: usize, k: usize) {
    let c = from_raw_parts_mut(c, m * n);
    let a = Matrix { data: from_raw_parts(a, m * k), columns: k };
    let b = Matrix { data: from_raw_parts(b, k * n), columns: n };
    for i in 0..m {
        for j in 0..n {
            for p in 0..k {
                c[i * n + j] += a[(i, p)] * b[(p, j)];
            }
        }
    }
}

// fused_sums(f64 c[m*n] alone, f64 a[m*k], f64 b[k*n], i64 m>=0, i64 n>=0, i64 k>=0) replaced mk,kn->mn
#[no_mangle]
pub unsafe extern "C" fn fused_sums(c: *mut f64, a: *const f64, b: *const f64, m: usize, n: usize, k: usize) {
    let (c, a, b) = (from_raw_parts_mut(c, m * n), from_raw_parts(a, m * k), from_raw_parts(b, k * n));
    for i in 0..m {
        for p in 0..k {
            for j in 0..n {
                c[i * n + j] = a[i * k + p].mul_add(b[p * n + j], c[i * n + j]);
            }
        }
    }
}

// bytes_into_words(i32 c[m*n] alone, i8 a[m*k], i8 b[k*n], i64 m>=0, i64 n>=0, i64 k>=0) replaced mk,kn->mn set
#[no_mangle]
pub unsafe extern "C" fn bytes_into_words(c: *mut i32, a: *const i8, b: *const i8, m: usize, n: usize, k: usize) {
    let (c, a, b) = (from_raw_parts_mut(c, m * n), from_raw_parts(a, m * k), from_raw_parts(b, k * n));
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|p| a[i * k + p] as i32 * b[p * n + j] as i32).sum();
        }
    }
}

// skips_zeros(i32 c[n*n] alone, i32 a[n*n], i32 b[n*n], i64 n>=0) refused
#[no_mangle]
pub unsafe extern "C" fn skips_zeros(c: *mut i32, a: *const i32, b: *const i32, n: usize) {
    let (c, a, b) = (from_raw_parts_mut(c, n * n), from_raw_parts(a, n * n), from_raw_parts(b, n * n));
    for i in 0..n {
        for j in 0..n {
            for p in (0..n).filter(|p| p % 3 != 0) {
                c[i * n + j] = c[i * n + j].wrapping_add(a[i * n + p].wrapping_mul(b[p * n + j]));
            }
        }
    }
}

// saturating(i32 c[n*n] alone, i32 a[n*n], i32 b[n*n], i64 n>=0) refused
#[no_mangle]
pub unsafe extern "C" fn saturating(c: *mut i32, a: *const i32, b: *const i32, n: usize) {
    let (c, a, b) = (from_raw_parts_mut(c, n * n), from_raw_parts(a, n * n), from_raw_parts(b, n * n));
    for i in 0..n {
        for j in 0..n {
            for p in 0..n {
                c[i * n + j] = c[i * n + j].saturating_add(a[i * n + p].wrapping_mul(b[p * n + j]));
            }
        }
    }
}
