"""Nests of loops that are products, each with the text of its product."""

from __future__ import annotations

from nest_layouts import COLUMNS, FLAT, SHARED, STACK, TENSORS, Row, of
from nest_text import Layout

from tilewright.spec.dtype import BF16, F16, F32, F64, I8, I32, U8

RECOGNISED = (
    Row(
        "memory",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "commuted",
        "C[m,n] += B[m,k]*A[k,n], m=n, n=m, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += B[k, j] * A[i, k]
        """,
    ),
    Row(
        "minus",
        "C[m,n] += -1*A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] -= A[i, k] * B[k, j]
        """,
    ),
    Row(
        "update written out",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]
        """,
    ),
    Row(
        "update on the right",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] = A[i, k] * B[k, j] + C[i, j]
        """,
    ),
    Row(
        "A transposed",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[k, i] * B[k, j]
        """,
    ),
    Row(
        "B transposed",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[j, k]
        """,
    ),
    Row(
        "C transposed",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[j, i] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "columns",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
        COLUMNS,
    ),
    Row(
        "flat",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i * n + j] += A[i * l + k] * B[k * n + j]
        """,
        FLAT,
    ),
    Row(
        "flat, other order of factors",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[n * i + j] += A[l * i + k] * B[j + n * k]
        """,
        FLAT,
    ),
    Row(
        "numbers",
        "C[m,n] += A[m,k]*B[k,n], m=3, n=4, k=5",
        """
        for i in range(3):
            for j in range(4):
                for k in range(5):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "offsets",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j + q] += A[i + 2, k + 1] * B[k, j]
        """,
    ),
    Row(
        "steps",
        "C[m,n] += A[m,k]*B[k,n], m=ceil((m) / 2), n=ceil((-1 + n) / 3), k=ceil((l) / 2)",
        """
        for i in range(0, m, 2):
            for j in range(1, n, 3):
                for k in range(0, l, 2):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "backwards",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m, 0, -1):
            for j in range(n):
                for k in range(l, 0, -1):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "ranges",
        "C[m,n] += A[m,k]*B[k,n], m=m + -1*q, n=n, k=l + -1*q",
        """
        for i in range(q, m):
            for j in range(n):
                for k in range(q, l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "variable",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(l):
                    s += A[i, k] * B[k, j]
                C[i, j] = s
        """,
    ),
    Row(
        "variable from C",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                s = C[i, j]
                for k in range(l):
                    s += A[i, k] * B[k, j]
                C[i, j] = s
        """,
    ),
    Row(
        "variable added",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(l):
                    s += A[i, k] * B[k, j]
                C[i, j] += s
        """,
    ),
    Row(
        "variable subtracted",
        "C[m,n] += -1*A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(l):
                    s += A[i, k] * B[k, j]
                C[i, j] -= s
        """,
    ),
    Row(
        "variable counts down",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(l):
                    s = s - A[i, k] * B[k, j]
                C[i, j] = -s
        """,
    ),
    Row(
        "alpha and beta",
        "C[m,n] = beta*C[m,n] + alpha*A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(l):
                    s += A[i, k] * B[k, j]
                C[i, j] = alpha * s + beta * C[i, j]
        """,
    ),
    Row(
        "alpha on A",
        "C[m,n] += alpha*A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += alpha * A[i, k] * B[k, j]
        """,
    ),
    Row(
        "alpha on the product",
        "C[m,n] += alpha*A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += (A[i, k] * B[k, j]) * alpha
        """,
    ),
    Row(
        "two alphas",
        "C[m,n] += 2*alpha*beta*A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += 2 * alpha * A[i, k] * beta * B[k, j]
        """,
    ),
    Row(
        "alpha hoisted",
        "C[m,n] += alpha*A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for k in range(l):
                t = alpha * A[i, k]
                for j in range(n):
                    C[i, j] += t * B[k, j]
        """,
    ),
    Row(
        "beta first",
        "C[m,n] = beta*C[m,n] + alpha*A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] *= beta
                for k in range(l):
                    C[i, j] += alpha * A[i, k] * B[k, j]
        """,
    ),
    Row(
        "alpha last",
        "C[m,n] = alpha*A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] = 0.0
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
                C[i, j] *= alpha
        """,
    ),
    Row(
        "beta in a loop of its own",
        "C[m,n] = beta*C[m,n] + A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] *= beta
            for k in range(l):
                for j in range(n):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "zeros",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] = 0.0
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "zeros in a loop of their own",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] = 0.0
            for k in range(l):
                for j in range(n):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "zeros outside of the loop over columns",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for j in range(n):
            for i in range(m):
                C[i, j] = 0.0
            for k in range(l):
                for i in range(m):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "zeros of a flat stack",
        "C[b,m,n] = A[b,m,k]*B[b,k,n], b=q, m=3, n=4, k=5",
        """
        for b in range(q):
            for x in range(12):
                C[12 * b + x] = 0.0
            for i in range(3):
                for j in range(4):
                    for k in range(5):
                        C[12 * b + 4 * i + j] += A[15 * b + 5 * i + k] * B[4 * k + j + 20 * b]
        """,
        FLAT,
    ),
    Row(
        "stored in every iteration",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                s = C[i, j]
                for k in range(l):
                    s = s + A[i, k] * B[k, j]
                    C[i, j] = s
        """,
    ),
    Row(
        "stored in every iteration, from zero",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] = 0.0
                s = 0.0
                for k in range(l):
                    s = s + A[i, k] * B[k, j]
                    C[i, j] = s
        """,
    ),
    Row(
        "stored in every iteration of two loops",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l*q",
        """
        for i in range(m):
            for j in range(n):
                s = C[i, j]
                for k in range(l):
                    for p in range(q):
                        s = s + A[i, q*k+p] * B[q*k+p, j]
                        C[i, j] = s
        """,
    ),
    Row(
        "sum over two loops",
        "C[m,n] = A[m,k1,k2]*B[k1,k2,n], m=m, n=n, k1=q, k2=l",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for p in range(q):
                    for k in range(l):
                        s += A[p, i, k] * B[p, k, j]
                C[i, j] = s
        """,
        {"A": STACK["A"], "B": STACK["B"]},
    ),
    Row(
        "sum over two loops, one around C",
        "C[m,n] += A[m,k1,k2]*B[k1,k2,n], m=m, n=n, k1=q, k2=l",
        """
        for p in range(q):
            for i in range(m):
                for j in range(n):
                    s = C[i, j]
                    for k in range(l):
                        s += A[p, i, k] * B[p, k, j]
                    C[i, j] = s
        """,
        {"A": STACK["A"], "B": STACK["B"]},
    ),
    Row(
        "stack",
        "C[b,m,n] += A[b,m,k]*B[b,k,n], b=q, m=m, n=n, k=l",
        """
        for b in range(q):
            for i in range(m):
                for j in range(n):
                    for k in range(l):
                        C[b, i, j] += A[b, i, k] * B[b, k, j]
        """,
        STACK,
    ),
    Row(
        "stack of one B",
        "C[m1,m2,n] += A[m1,m2,k]*B[k,n], m1=q, m2=m, n=n, k=l",
        """
        for b in range(q):
            for i in range(m):
                for j in range(n):
                    for k in range(l):
                        C[b, i, j] += A[b, i, k] * B[k, j]
        """,
        {**STACK, "B": Layout(strides=("ldB", 1))},
    ),
    Row(
        "rows that follow one another",
        "C[m,n] += A[m,k]*B[k,n], m=50*q, n=n, k=l",
        """
        for b in range(q):
            for i in range(50):
                for j in range(n):
                    for k in range(l):
                        C[b, i, j] += A[b, i, k] * B[k, j]
        """,
        {name: Layout(strides=(2500, 50, 1)) for name in "AC"},
    ),
    Row(
        "contraction",
        "C[m1,m2,n1,n2] += A[m1,m2,k1,k2]*B[k1,k2,n1,n2], m1=3, m2=4, n1=2, n2=2, k1=3, k2=2",
        """
        for a in range(2):
            for b in range(3):
                for c in range(4):
                    for d in range(2):
                        for e in range(3):
                            for f in range(2):
                                C[a, b, c, d] += A[e, b, f, c] * B[d, f, a, e]
        """,
        TENSORS,
    ),
    Row(
        "blocks that fit",
        "C[m,n] += A[m,k]*B[k,n], m=8, n=n, k=6",
        """
        for ii in range(0, 8, 4):
            for kk in range(0, 6, 3):
                for i in range(ii, ii + 4):
                    for j in range(n):
                        for k in range(kk, kk + 3):
                            C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "six deep",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for ii in range(0, m, 2):
            for jj in range(0, n, 3):
                for kk in range(0, l, 2):
                    for i in range(ii, min(ii + 2, m)):
                        for j in range(jj, min(jj + 3, n)):
                            for k in range(kk, min(kk + 2, l)):
                                C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "six deep, numbers",
        "C[m,n] += A[m,k]*B[k,n], m=7, n=6, k=5",
        """
        for ii in range(0, 7, 2):
            for jj in range(0, 6, 3):
                for kk in range(0, 5, 2):
                    for i in range(ii, min(ii + 2, 7)):
                        for j in range(jj, min(jj + 3, 6)):
                            for k in range(kk, min(kk + 2, 5)):
                                C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "six deep, zeros in blocks",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for ii in range(0, m, 2):
            for jj in range(0, n, 3):
                for i in range(ii, min(ii + 2, m)):
                    for j in range(jj, min(jj + 3, n)):
                        C[i, j] = 0.0
                for kk in range(0, l, 2):
                    for i in range(ii, min(ii + 2, m)):
                        for j in range(jj, min(jj + 3, n)):
                            for k in range(kk, min(kk + 2, l)):
                                C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "blocks of blocks",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for x in range(0, m, 8):
            for ii in range(x, min(x + 8, m), 2):
                for i in range(ii, min(ii + 2, m)):
                    for j in range(n):
                        for k in range(l):
                            C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "blocks with steps",
        "C[m,n] += A[m,k]*B[k,n], m=ceil((m) / 2), n=n, k=l",
        """
        for ii in range(0, m, 4):
            for i in range(ii, min(ii + 4, m), 2):
                for j in range(n):
                    for k in range(l):
                        C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "matrix times vector",
        "C[m] += A[m,k]*B[k], m=m, k=l",
        """
        for i in range(m):
            for k in range(l):
                C[i] += A[i, k] * B[k]
        """,
    ),
    Row(
        "vector times matrix",
        "C[m] += B[m,k]*A[k], m=n, k=l",
        """
        for k in range(l):
            for j in range(n):
                C[j] += A[k] * B[k, j]
        """,
    ),
    Row(
        "matrix times vector, a variable",
        "C[m] = A[m,k]*B[k], m=m, k=l",
        """
        for i in range(m):
            s = 0.0
            for k in range(l):
                s += A[i, k] * B[k]
            C[i] = s
        """,
    ),
    Row(
        "widened",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(l):
                    s += f32(A[i, k]) * f32(B[k, j])
                C[i, j] = bf16(s)
        """,
        of(BF16, BF16, BF16),
    ),
    Row(
        "halves in single precision",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] = f16(f32(C[i, j]) + f32(A[i, k]) * f32(B[k, j]))
        """,
        of(F16, F16, F16),
    ),
    Row(
        "sums in double precision",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(l):
                    s += f64(A[i, k]) * f64(B[k, j])
                C[i, j] = f32(s)
        """,
    ),
    Row(
        "products in double precision",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(l):
                    s += f64(A[i, k] * B[k, j])
                C[i, j] = s
        """,
        of(F64, F32, F32),
    ),
    Row(
        "bytes",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += i32(A[i, k]) * i32(B[k, j])
        """,
        of(I32, U8, I8),
    ),
    Row(
        "bytes into bytes",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] = i8(i32(C[i, j]) + i32(A[i, k]) * i32(B[k, j]))
        """,
        of(I8, I8, I8),
    ),
    Row(
        "products of bytes in 16 bits",
        "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += i32(i16(A[i, k]) * i16(B[k, j]))
        """,
        of(I32, I8, I8),
    ),
    Row(
        "SYRK",
        "C[m,n] += A[m,k]*A[k,n], m=n, n=n, k=l, lower triangle",
        """
        for i in range(n):
            for j in range(i + 1):
                for k in range(l):
                    C[i, j] += A[i, k] * A[j, k]
        """,
    ),
    Row(
        "SYRK, upper",
        "C[m,n] += A[m,k]*A[k,n], m=n, n=n, k=l, upper triangle",
        """
        for i in range(n):
            for j in range(i, n):
                for k in range(l):
                    C[i, j] += A[i, k] * A[j, k]
        """,
    ),
    Row(
        "SYRK of columns",
        "C[m,n] += A[m,k]*A[k,n], m=n, n=n, k=l, upper triangle",
        """
        for i in range(n):
            for k in range(l):
                for j in range(i, n):
                    C[j, i] += A[k, i] * A[k, j]
        """,
    ),
    Row(
        "SYRK as Polybench writes it",
        "C[m,n] = beta*C[m,n] + alpha*A[m,k]*A[k,n], m=n, n=n, k=l, lower triangle",
        """
        for i in range(n):
            for j in range(i + 1):
                C[i, j] *= beta
            for k in range(l):
                for j in range(i + 1):
                    C[i, j] += alpha * A[i, k] * A[j, k]
        """,
    ),
    Row(
        "SYR2K",
        "C[m,n] += A[m,k]*B[k,n] + B[m,k]*A[k,n], m=n, n=n, k=l, lower triangle",
        """
        for i in range(n):
            for j in range(i + 1):
                for k in range(l):
                    C[i, j] += A[i, k] * B[j, k] + B[i, k] * A[j, k]
        """,
    ),
    Row(
        "SYR2K in two statements",
        "C[m,n] = beta*C[m,n] + alpha*A[m,k]*B[k,n] + alpha*B[m,k]*A[k,n], m=n, n=n, k=l, upper triangle",
        """
        for i in range(n):
            for j in range(i, n):
                C[i, j] *= beta
                for k in range(l):
                    C[i, j] += alpha * A[i, k] * B[j, k]
                    C[i, j] += alpha * A[j, k] * B[i, k]
        """,
    ),
    Row(
        "SYR2K in two loops",
        "C[m,n] = A[m,k]*B[k,n] + B[m,k]*A[k,n], m=n, n=n, k=l, lower triangle",
        """
        for i in range(n):
            for j in range(i + 1):
                C[i, j] = 0.0
                for k in range(l):
                    C[i, j] += A[i, k] * B[j, k]
                for k in range(l):
                    C[i, j] += B[i, k] * A[j, k]
        """,
    ),
    Row(
        "diagonals of A",
        "C[b,m] += A[b,m,k]*B[b,k], b=n, m=m, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i + j, k] * B[k, j]
        """,
    ),
    Row(
        "unrolled by hand",
        "C[m,n] += A[m,k1,k2]*B[k1,k2,n], m=m, n=n, k1=ceil((l) / 4), k2=4",
        """
        for i in range(m):
            for j in range(n):
                for k in range(0, l, 4):
                    C[i, j] += (
                        A[i, k] * B[k, j]
                        + A[i, k + 1] * B[k + 1, j]
                        + (B[k + 2, j] * A[i, k + 2] + A[i, k + 3] * B[k + 3, j])
                    )
        """,
    ),
    Row(
        "unrolled by hand, numbers",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=8",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(0, 8, 2):
                    s += A[i, k + 1] * B[k + 1, j]
                    s += A[i, k] * B[k, j]
                C[i, j] = s
        """,
    ),
    Row(
        "three products written out",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=3",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]
        """,
    ),
    Row(
        "SYR2K of blocks of one array",
        "W[m,n] += W[m,k]*W[k,n] + W[m,k]*W[k,n], m=n, n=n, k=l, lower triangle",
        """
        for i in range(n):
            for j in range(i + 1):
                for k in range(l):
                    C[i, j] += A[i, k] * B[j, k] + B[i, k] * A[j, k]
        """,
        SHARED,
    ),
    Row(
        "overwritten",
        "C[m,n] = A[m,k]*B[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] = beta * C[i, j]
                C[i, j] = 0.0
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "blocks of one array",
        "W[m,n] += W[m,k]*W[k,n], m=m, n=n, k=l",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
        SHARED,
    ),
)
