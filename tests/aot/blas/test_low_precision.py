"""Products of bfloat16 and of bytes under oneMKL's names."""

from __future__ import annotations

import ctypes
from itertools import product
from typing import Any

import numpy as np
import pytest
from blas_calls import library
from support import Array

from tilewright.aot.blas.routines import COLUMN_MAJOR, ROW_MAJOR

LAYOUTS: dict[int, Any] = {ROW_MAJOR: "C", COLUMN_MAJOR: "F"}
PLAIN, TRANSPOSED = 111, 112
ROW_OFFSET, COLUMN_OFFSET, FIXED_OFFSET = 171, 172, 173


def pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def stored(matrix: Array, transpose: int, layout: int) -> tuple[Array, int]:
    """The array whose op() is the matrix, and its leading dimension."""
    found: Array = (matrix.T if transpose == TRANSPOSED else matrix).copy(LAYOUTS[layout])
    return found, found.shape[1] if layout == ROW_MAJOR else found.shape[0]


def bytes_of(rng: np.random.Generator, shape: tuple[int, int], *, unsigned: bool) -> Array:
    low, high, kind = (0, 256, np.uint8) if unsigned else (-128, 128, np.int8)
    return rng.integers(low, high, shape).astype(kind)


@pytest.mark.parametrize(
    ("layout", "offset"), list(product(LAYOUTS, (ROW_OFFSET, COLUMN_OFFSET, FIXED_OFFSET)))
)
def test_bytes(layout: int, offset: int) -> None:
    """Row-major, A is unsigned and B signed; column-major the reverse."""
    rng, function = np.random.default_rng(offset), library().cblas_gemm_s8u8s32
    function.restype = None
    factors = ((1, 0, 0, 0), (1, 0, 3, -2), (0.5, 1.5, -7, 4), (1, 1, 0, 5), (-2, 0, 100, -128))
    for number, (trans_a, trans_b) in enumerate(product((PLAIN, TRANSPOSED), repeat=2)):
        for (m, n, k), (alpha, beta, ao, bo) in product(((5, 7, 3), (40, 33, 65), (2, 3, 0)), factors):
            a = bytes_of(rng, (m, k), unsigned=layout == ROW_MAJOR)
            b = bytes_of(rng, (k, n), unsigned=layout == COLUMN_MAJOR)
            c = rng.integers(-1000, 1000, (m, n)).astype(np.int32)
            more = rng.integers(-50, 50, {ROW_OFFSET: n, COLUMN_OFFSET: m}.get(offset, 1)).astype(np.int32)
            added = more[:, None] if offset == COLUMN_OFFSET else more
            exact = (a.astype(np.int64) + ao) @ (b.astype(np.int64) + bo)
            expected = np.rint(alpha * exact + beta * c + added)
            (given_a, lda), (given_b, ldb) = stored(a, trans_a, layout), stored(b, trans_b, layout)
            result, ldc = stored(c, PLAIN, layout)
            scalars = [ctypes.c_float(alpha), ctypes.c_float(beta), ctypes.c_int8(ao), ctypes.c_int8(bo)]
            function(
                *(layout, trans_a, trans_b, offset, m, n, k, scalars[0], pointer(given_a), max(lda, 1)),
                *(scalars[2], pointer(given_b), max(ldb, 1), scalars[3], scalars[1], pointer(result), ldc),
                pointer(more),
            )
            assert np.array_equal(result, expected), (number, m, n, k, alpha, beta, ao, bo)


def test_bytes_are_kept_in_range() -> None:
    """A result beyond 32 bits is the nearest number that they hold."""
    a, b = np.full((1, 4), 255, np.uint8), np.full((4, 2), 127, np.int8)
    b[:, 1] = -128
    c, none = np.zeros((1, 2), np.int32), np.zeros(1, np.int32)
    library().cblas_gemm_s8u8s32(
        *(
            ROW_MAJOR,
            PLAIN,
            PLAIN,
            FIXED_OFFSET,
            1,
            2,
            4,
            ctypes.c_float(1e6),
            pointer(a),
            4,
            ctypes.c_int8(0),
        ),
        *(pointer(b), 2, ctypes.c_int8(0), ctypes.c_float(0), pointer(c), 2, pointer(none)),
    )
    assert c.tolist() == [[2**31 - 1, -(2**31)]]


@pytest.mark.parametrize(
    ("change", "number"),
    [
        ({0: 5}, 1),
        ({1: 5}, 2),
        ({2: 5}, 3),
        ({3: 5}, 4),
        ({4: -1}, 5),
        ({5: -1}, 6),
        ({6: -1}, 7),
        ({9: 3}, 10),
        ({12: 1}, 13),
        ({16: 1}, 17),
    ],
)
def test_bytes_refuse(capfd: pytest.CaptureFixture[str], change: dict[int, int], number: int) -> None:
    """The place of an invalid argument."""
    nothing, zero = ctypes.c_void_p(0), ctypes.c_int8(0)
    arguments = [ROW_MAJOR, PLAIN, PLAIN, FIXED_OFFSET, 1, 2, 4, ctypes.c_float(1), nothing, 4, zero]
    arguments += [nothing, 2, zero, ctypes.c_float(0), nothing, 2, nothing]
    for at, value in change.items():
        arguments[at] = value
    library().cblas_gemm_s8u8s32(*arguments)
    assert capfd.readouterr().err == f"Parameter {number} to routine cblas_gemm_s8u8s32 was incorrect\n"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bfloat16(layout: int) -> None:
    """Factors of 16 bits, sums and results of 32."""
    rng, function = np.random.default_rng(layout), library().cblas_gemm_bf16bf16f32
    function.restype = None
    for trans_a, trans_b in product((PLAIN, TRANSPOSED), repeat=2):
        bits = [
            (rng.integers(0x3F00, 0x4080, shape) << 16).astype(np.uint32) for shape in ((40, 65), (65, 33))
        ]
        a, b = (one.view(np.float32).astype(np.float64) for one in bits)
        c = rng.standard_normal((40, 33)).astype(np.float32)
        halves = [(one >> 16).astype(np.uint16) for one in bits]
        (given_a, lda), (given_b, ldb) = (
            stored(halves[0], trans_a, layout),
            stored(halves[1], trans_b, layout),
        )
        result, ldc = stored(c, PLAIN, layout)
        half, two = ctypes.c_float(0.5), ctypes.c_float(2)
        function(
            *(layout, trans_a, trans_b, 40, 33, 65, half, pointer(given_a), lda, pointer(given_b), ldb),
            *(two, pointer(result), ldc),
        )
        np.testing.assert_allclose(result, 0.5 * a @ b + 2 * c, rtol=1e-5)
