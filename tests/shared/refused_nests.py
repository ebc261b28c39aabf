"""Nests of loops that look like products and are none, each with a part of the reason."""

from __future__ import annotations

from nest_layouts import Row, of

from tilewright.spec.dtype import F32, F64, I8, I16, I32, I64

REFUSED = (
    Row(
        "no store",
        "stores nothing",
        """
        for i in range(m):
            for k in range(l):
                s = A[i, k] * B[k, i]
        """,
    ),
    Row(
        "a hole",
        "calls hole()",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    hole()
        """,
    ),
    Row(
        "no product",
        "does not sum products",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] = A[i, j]
        """,
    ),
    Row(
        "outer product",
        "sums nothing",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] += A[i] * B[j]
        """,
    ),
    Row(
        "elementwise product",
        "sums nothing",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] += A[i, j] * B[i, j]
        """,
    ),
    Row(
        "rows of dot products",
        "no matrix",
        """
        for i in range(m):
            for k in range(l):
                C[i] += A[i, k] * B[i, k]
        """,
    ),
    Row(
        "squares of rows",
        "no matrix",
        """
        for i in range(m):
            for k in range(l):
                C[i] += A[i, k] * A[i, k]
        """,
    ),
    Row(
        "three factors",
        "multiplies 3 elements",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * A[k, j] * B[k, j]
        """,
    ),
    Row(
        "a bias",
        "adds elements of D",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j] + D[j]
        """,
    ),
    Row(
        "a number added",
        "adds numbers to C",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j] + 1
        """,
    ),
    Row(
        "a sum that begins at one",
        "adds numbers to C",
        """
        for i in range(m):
            for j in range(n):
                s = 1.0
                for k in range(l):
                    s += A[i, k] * B[k, j]
                C[i, j] = s
        """,
    ),
    Row(
        "product of sums",
        "multiplies sums",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += (A[i, k] + A[i, 0]) * (B[0, j] + 1) * B[k, j]
        """,
    ),
    Row(
        "a sum that nobody resets",
        "carries s",
        """
        for i in range(m):
            s = 0.0
            for j in range(n):
                for k in range(l):
                    s += A[i, k] * B[k, j]
                C[i, j] = s
        """,
    ),
    Row(
        "a sum that nobody sets",
        "carries s",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    s += A[i, k] * B[k, j]
                C[i, j] = s
        """,
    ),
    Row(
        "a sum set at the outermost loop only",
        "carries s",
        """
        for i in range(m):
            for k in range(l):
                s += A[i, k] * B[k]
            C[i] = s
        """,
    ),
    Row(
        "a sum that is scaled on the way",
        "reads s",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(l):
                    s = beta * s + A[i, k] * B[k, j]
                C[i, j] = s
        """,
    ),
    Row(
        "the wrong sum",
        "reads s",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                t = 0.0
                for k in range(l):
                    s = t + A[i, k] * B[k, j]
                C[i, j] = s
        """,
    ),
    Row(
        "the last product only",
        "reads s, which the last iteration",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    s = A[i, k] * B[k, j]
                C[i, j] = s
        """,
    ),
    Row(
        "stored in one of two loops that sum",
        "carries s",
        """
        for i in range(m):
            for j in range(n):
                s = C[i, j]
                for k in range(l):
                    for p in range(q):
                        s = s + A[i, q * k + p] * B[q * k + p, j]
                        C[i, j] = s
                    for p in range(q):
                        s = s + A[i, q * k + p] * B[q * k + p, j]
        """,
    ),
    Row(
        "a product with nothing",
        "multiplies by 0",
        """
        for i in range(m):
            for j in range(n):
                C[i, j] *= 0.0
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "stored in every iteration without a sum",
        "clears C inside of the loop over k",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] = A[i, k] * B[k, j]
        """,
    ),
    Row(
        "C of before the loop",
        "from before another store",
        """
        for i in range(m):
            for j in range(n):
                t = C[i, j]
                for k in range(l):
                    C[i, j] = t + A[i, k] * B[k, j]
        """,
    ),
    Row(
        "C of before zeros",
        "from before another store",
        """
        for i in range(m):
            for j in range(n):
                t = C[i, j]
                C[i, j] = 0.0
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
                C[i, j] += t
        """,
    ),
    Row(
        "zeros inside of the loop over k",
        "inside of the loop over k",
        """
        for i in range(m):
            for k in range(l):
                for j in range(n):
                    C[i, j] = 0.0
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "zeros in every depth",
        "clears C inside of the loop over k",
        """
        for k in range(l):
            for i in range(m):
                for j in range(n):
                    C[i, j] = 0.0
            for i in range(m):
                for j in range(n):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "beta inside of the loop over k",
        "scales C inside of the loop over k",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] = beta * C[i, j] + A[i, k] * B[k, j]
        """,
    ),
    Row(
        "zeros of half of C",
        "stores into other elements of C",
        """
        for i in range(m):
            for j in range(q):
                C[i, j] = 0.0
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "zeros of the transposed C",
        "stores into C twice",
        """
        for i in range(n):
            for j in range(n):
                C[j, i] = 0.0
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "zeros of a triangle",
        "stores into other elements of C",
        """
        for i in range(n):
            for j in range(i + 1):
                C[i, j] = 0.0
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "zeros afterwards",
        "overwrites the sum",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
                C[i, j] = 0.0
        """,
    ),
    Row(
        "a product that another one replaces",
        "overwrites the sum",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
                C[i, j] = 0.0
                for k in range(q):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "a time loop",
        "in no subscript",
        """
        for t in range(q):
            for i in range(m):
                for j in range(n):
                    for k in range(l):
                        C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "a time loop with zeros",
        "clears C inside of the loop over t",
        """
        for t in range(q):
            for i in range(m):
                for j in range(n):
                    C[i, j] = 0.0
                    for k in range(l):
                        C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "C read beside",
        "different subscripts",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j] + C[i, j + 1]
        """,
    ),
    Row(
        "C of the row above",
        "reads C as a factor",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += C[i - 1, k] * B[k, j]
        """,
    ),
    Row(
        "C is A",
        "reads C as a factor",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += C[i, k] * B[k, j]
        """,
    ),
    Row(
        "C times something",
        "reads C as a factor",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += C[i, j] * B[k, j]
        """,
    ),
    Row(
        "another C",
        "stores into D and into C",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
                    D[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "the sum stored twice",
        "stores into D and into C",
        """
        for i in range(m):
            for j in range(n):
                s = 0.0
                for k in range(l):
                    s += A[i, k] * B[k, j]
                C[i, j] = s
                D[i, j] = s
        """,
    ),
    Row(
        "two products",
        "adds two products",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j] + A[i, k + 1] * D[k, j]
        """,
    ),
    Row(
        "unrolled by hand, one product twice",
        "adds two products",
        """
        for i in range(m):
            for j in range(n):
                for k in range(0, l, 2):
                    C[i, j] += A[i, k] * B[k, j] + A[i, k + 1] * B[k, j]
        """,
    ),
    Row(
        "unrolled by hand, one product missing",
        "adds 3 products",
        """
        for i in range(m):
            for j in range(n):
                for k in range(0, l, 4):
                    C[i, j] += A[i, k] * B[k, j] + A[i, k + 1] * B[k + 1, j] + A[i, k + 3] * B[k + 3, j]
        """,
    ),
    Row(
        "unrolled by hand, one factor",
        "adds two products",
        """
        for i in range(m):
            for j in range(n):
                for k in range(0, l, 2):
                    C[i, j] += A[i, k] * B[k, j] + 2 * A[i, k + 1] * B[k + 1, j]
        """,
    ),
    Row(
        "no sum of indices",
        "not affine in loop indices",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i * k, k] * B[k, j]
        """,
    ),
    Row(
        "a factor of rows",
        "in the result only",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k]
        """,
    ),
    Row(
        "a sum of one factor",
        "in one factor only",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += A[i, k] * B[j]
        """,
    ),
    Row(
        "a triangle of depths",
        "runs the loop over k3 for a number of times that depends on i1",
        """
        for i in range(m):
            for j in range(n):
                for k in range(i + 1):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "a triangle beside the diagonal",
        "runs the loop over j2 for a number of times that depends on i1",
        """
        for i in range(n):
            for j in range(i):
                for k in range(l):
                    C[i, j] += A[i, k] * A[j, k]
        """,
    ),
    Row(
        "a triangle without its diagonal, upper",
        "runs the loop over j2 for a number of times that depends on i1",
        """
        for i in range(n):
            for j in range(i + 1, n):
                for k in range(l):
                    C[i, j] += A[i, k] * A[j, k]
        """,
    ),
    Row(
        "a triangle of a product",
        "one triangle of a product of two matrices",
        """
        for i in range(n):
            for j in range(i + 1):
                for k in range(l):
                    C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "SYR2K with two alphas",
        "not each other's transposes",
        """
        for i in range(n):
            for j in range(i + 1):
                for k in range(l):
                    C[i, j] += alpha * A[i, k] * B[j, k] + beta * B[i, k] * A[j, k]
        """,
    ),
    Row(
        "SYR2K of three matrices",
        "not each other's transposes",
        """
        for i in range(n):
            for j in range(i + 1):
                for k in range(l):
                    C[i, j] += A[i, k] * B[j, k] + B[i, k] * D[j, k]
        """,
    ),
    Row(
        "blocks beyond the end",
        "runs the loop over i2 for a number of times that depends on ii1",
        """
        for ii in range(0, m, 4):
            for i in range(ii, min(ii + 5, m)):
                for j in range(n):
                    for k in range(l):
                        C[i, j] += A[i, k] * B[k, j]
        """,
    ),
    Row(
        "rounded elements",
        "rounds elements of A from f64 to f32",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += f32(A[i, k]) * B[k, j]
        """,
        of(F32, F64, F32),
    ),
    Row(
        "wrapped sums widened",
        "accumulates in i32 and widens the sum to i64",
        """
        for i in range(m):
            for j in range(n):
                s = 0
                for k in range(l):
                    s += i32(A[i, k]) * i32(B[k, j])
                C[i, j] = i64(s)
        """,
        of(I64, I8, I8),
    ),
    Row(
        "wrapped sums of two products widened",
        "accumulates in i16 and widens the sum to i32",
        """
        for i in range(n):
            for j in range(i + 1):
                for k in range(l):
                    C[i, j] += i32(i16(A[i, k]) * i16(B[j, k]) + i16(B[i, k]) * i16(A[j, k]))
        """,
        of(I32, I8, I8),
    ),
    Row(
        "wrapped products widened",
        "accumulates in i8",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += i32(A[i, k] * B[k, j])
        """,
        of(I32, I8, I8),
    ),
    Row(
        "integers into floats",
        "converts i16 to f32",
        """
        for i in range(m):
            for j in range(n):
                for k in range(l):
                    C[i, j] += f32(A[i, k]) * B[k, j]
        """,
        of(F32, I16, F32),
    ),
)
