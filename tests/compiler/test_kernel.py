"""Kernel objects: what they say of themselves, calls on arrays that fit and on arrays that do not."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from shares import looped
from support import (
    GUARD_PAGES,
    LAYOUTS,
    Array,
    assert_accurate,
    filled,
    host_rows,
    rough,
    run_python,
    unaligned,
)
from tiers import crossed, pairwise

import tilewright as tw
from tilewright.errors import ForeignKernel, InvalidScalar, OperandMismatch

#: An array of each layout, by name of the layout it is for.
FITTING = {"row": ("C", "padded"), "col": ("F", "padded columns"), "strided": tuple(LAYOUTS)}


@cache
def compiled(*sizes: int | None, dtype: str = "f32", a: str = "row", b: str = "row", c: str = "row") -> Any:
    m, n, k = sizes or (None, None, None)
    return tw.compile(tw.Gemm(m, n, k, dtype, a=a, b=b, c=c))


@pytest.mark.parametrize(("dtype", "a", "b", "c"), pairwise(("f32", "f64"), *[("row", "col", "strided")] * 3))
def test_run_time_sizes(dtype: str, a: str, b: str, c: str) -> None:
    """Combinations of contiguous axes, also where a size of 1 makes the layout ambiguous."""
    layouts = a, b, c
    kernel = compiled(dtype=dtype, a=a, b=b, c=c)
    kind = kernel.problem.dtype.numpy
    for m, n, k in itertools.product((1, 2, 37), (1, 2, 70), (0, 1, 9, 40)):
        left, right, content = filled((m, k), kind, 1), filled((k, n), kind, 2), filled((m, n), kind, 3)
        for number in range(2):
            arrays = [
                LAYOUTS[FITTING[layout][number]](array)
                for layout, array in zip(layouts, (left, right, content), strict=True)
            ]
            found = kernel(*arrays, alpha=2, beta=-1)
            assert found is arrays[2]
            assert np.array_equal(found, 2 * (left @ right) - content), (m, n, k)


@pytest.mark.parametrize(
    ("sizes", "layouts"),
    crossed(
        [((8, 8, 8),), ((37, 70, 9),), ((1, 33, 5),), ((33, 1, 5),), ((5, 6, 0),), ((64, 64, 600),)],
        [(("row", "row", "row"),), (("col", "row", "col"),), (("row", "col", "strided"),)],
        2,
    ),
)
def test_fixed_sizes(sizes: tuple[int, int, int], layouts: tuple[str, str, str]) -> None:
    m, n, k = sizes
    names = dict(zip("abc", layouts, strict=True))
    kernel = compiled(*sizes, **names)
    assert kernel.flops == 2 * m * n * k
    left, right = rough((m, k), seed=1), rough((k, n), seed=2)
    for number in range(2):
        a, b = (LAYOUTS[FITTING[names[w]][number]](x) for w, x in (("a", left), ("b", right)))
        c = LAYOUTS[FITTING[names["c"]][number]](np.full((m, n), np.nan, np.float32))
        assert_accurate(kernel(a, b, c), left, right)


@looped("layout_a", LAYOUTS)
@looped("layout_c", LAYOUTS)
def test_strided_takes_every_layout(layout_a: str, layout_c: str) -> None:
    kernel = compiled(a="strided", b="strided", c="strided")
    a, b = filled((13, 9), seed=1), filled((9, 35), seed=2)
    c = LAYOUTS[layout_c](np.full((13, 35), np.nan, np.float32))
    assert np.array_equal(kernel(LAYOUTS[layout_a](a), LAYOUTS["reversed"](b), c), a @ b)


@pytest.mark.parametrize("step", [3, 2**40 + 4, 0, -8])
def test_single_axes_with_wild_strides(step: int) -> None:
    kernel = compiled(a="strided", b="strided", c="strided")
    row, many = filled((1, 37), seed=1), filled((37, 41), seed=2)
    c = as_strided(np.full(41, np.nan, np.float32), (1, 41), (step, 4))
    kernel(as_strided(row, (1, 37), (step, 4)), many, c)
    assert np.array_equal(c, row @ many)


def test_description() -> None:
    kernel = compiled(16, 32, 8)
    assert kernel.name == kernel.symbol
    assert "16x32x8" in kernel.name
    assert kernel.name in repr(kernel)
    assert kernel.name in kernel.llvm_ir
    assert f"{kernel.name}:" in kernel.assembly
    assert kernel.name.encode() in kernel.object_code
    assert kernel.name in kernel.tile_ir
    assert kernel.flops == 2 * 16 * 32 * 8
    assert kernel.blocking.mc % kernel.blocking.mr == 0
    assert kernel.problem == tw.Gemm(16, 32, 8)
    assert compiled().flops is None


# --- arrays that do not fit ------------------------------------------------------------------------

A, B, C = filled((4, 5), seed=1), filled((5, 6), seed=2), np.zeros((4, 6), np.float32)


def frozen() -> Array:
    array = C.copy()
    array.flags.writeable = False
    return array


WRONG: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("list", {"a": A.tolist()}, ("operand a", "type", "list", "numpy.ndarray")),
    ("none", {"c": None}, ("operand c", "NoneType")),
    ("dtype", {"a": A.astype(float)}, ("operand a", "float64", "float32")),
    ("byte order", {"b": B.astype(">f4")}, ("operand b", ">f4", "float32")),
    ("vector", {"b": B[:, 0]}, ("operand b", "dimensions 1", "2")),
    ("batch", {"c": C[None]}, ("operand c", "dimensions 3", "2")),
    ("unaligned", {"a": unaligned(A)}, ("operand a", "alignment")),
    ("column-major a", {"a": np.array(A, order="F")}, ("operand a", "stride of axis 1", "16", "4 bytes")),
    ("column-major c", {"c": np.array(C, order="F")}, ("operand c", "stride of axis 1", "16", "4 bytes")),
    ("reversed", {"b": B[:, ::-1]}, ("operand b", "stride of axis 1", "-4")),
    ("rows of a", {"a": A[:3]}, ("operand a", "m =", "3", "4")),
    ("depth of a", {"a": A[:, :4]}, ("operand a", "k =", "4", "5")),
    ("depth of b", {"b": B[:4]}, ("operand b", "k =", "4", "5")),
    ("columns of b", {"b": B[:, :3]}, ("operand b", "n =", "3", "6")),
    ("rows of c", {"c": C[:3]}, ("operand c", "m =", "3", "4")),
    ("columns of c", {"c": C[:, :2]}, ("operand c", "n =", "2", "6")),
    ("read-only c", {"c": frozen()}, ("operand c", "writeable")),
]


@looped(("name", "changed", "words"), WRONG)
@looped("sizes", [(4, 6, 5), ()])
def test_operands_that_do_not_fit(
    name: str, changed: dict[str, Any], words: tuple[str, ...], sizes: tuple[int, ...]
) -> None:
    kernel = compiled(*sizes)
    arrays = {"a": A, "b": B, "c": np.full_like(C, 7)} | changed
    with pytest.raises(OperandMismatch) as caught:
        kernel(*arrays.values())
    assert isinstance(caught.value, ValueError)
    message = str(caught.value)
    assert kernel.name in message
    if sizes:  # with run-time sizes another operand may be the one that differs
        for word in words:
            assert word in message
    if "c" not in changed:
        assert (arrays["c"] == 7).all()


@pytest.mark.parametrize("name", ["a", "b"])
def test_operands_that_share_memory_with_c(name: str) -> None:
    kernel = compiled()
    square = filled((5, 5))
    a, b = (square if own == name else square.copy() for own in "ab")
    with pytest.raises(OperandMismatch, match=f"operand {name} has memory shared with c"):
        kernel(a, b, square)
    assert np.array_equal(square, filled((5, 5)))


@pytest.mark.parametrize("keywords", [{"alpha": 1j}, {"beta": 1j}, {"alpha": None}, {"beta": "x"}])
def test_scalars_that_are_no_numbers(keywords: dict[str, Any]) -> None:
    c = np.full_like(C, 7)
    with pytest.raises(InvalidScalar, match=f"{next(iter(keywords))} is .*, must be a real number") as caught:
        compiled()(A, B, c, **keywords)
    assert isinstance(caught.value, TypeError)
    assert (c == 7).all()


@pytest.mark.parametrize("sizes", [(4, 6, 5), ()], ids=["fixed", "run-time"])
def test_kernels_of_other_machines_do_not_run(sizes: tuple[int, ...]) -> None:
    foreign = "znver5" if tw.machine().arch == "aarch64" else "neoverse-v2"
    m, n, k = sizes or (None, None, None)
    kernel = tw.compile(tw.Gemm(m, n, k), foreign)
    c = np.full_like(C, 7)
    with pytest.raises(ForeignKernel, match=f"{kernel.name} was compiled for {foreign}") as caught:
        kernel(A, B, c)
    assert isinstance(caught.value, RuntimeError)
    assert tw.machine().cpu in str(caught.value)
    assert (c == 7).all()
    assert kernel.object_code


# --- scratch ---------------------------------------------------------------------------------------

#: A product that fills the panels of a kernel cut for a larger last cache, on scratch with a guard behind it.
LARGE_PANELS = """
import ctypes, mmap, os, sys, numpy as np, tilewright as tw
from support import filled
real, protect = mmap.mmap, ctypes.CDLL(None).mprotect
protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
def guarded(handle, length, **options):
    memory = real(handle, length + mmap.PAGESIZE, **options)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert protect(start + length, mmap.PAGESIZE, 0) == 0
    return memory
mmap.mmap = guarded
small, large = (tw.machine(sys.argv[1], l3_bytes=size) for size in (2**20, 2**26))
m, n, k = 50, 8200, 512
a, b = filled((m, k)), filled((k, n), seed=1)
expected = a @ b
for strategy in ("tiling", "packing"):  # each in a process that has no scratch yet
    child = os.fork()
    if not child:
        for machine in (small, large, small):
            kernel = tw.compile(tw.Gemm(strategy=strategy), machine)
            assert np.array_equal(kernel(a, b, np.empty((m, n), np.float32)), expected)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, strategy
print("enough")
"""


@pytest.mark.skipif(not GUARD_PAGES, reason="needs mprotect")
@pytest.mark.parametrize("row", [isa.name for isa in host_rows()])
def test_scratch_suffices(row: str) -> None:
    """A kernel gets a block of at least the size it writes, whatever machine record it was cut for."""
    assert "enough" in run_python("-c", LARGE_PANELS, row)
