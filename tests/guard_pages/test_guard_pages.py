"""Promise 3: no byte outside an operand is touched, shown by inaccessible pages at both ends of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import GUARD_PAGES, host_rows, run_python

pytestmark = pytest.mark.skipif(not GUARD_PAGES, reason="needs mprotect")

PROGRAM = str(Path(__file__).with_name("guarded.py"))

GROUPS = [
    ("matmul", "f32", "auto"),
    ("matmul", "f64", "auto"),
    ("strided", "f32", "tiling"),
    ("strided", "f32", "packing"),
    ("strided", "f64", "tiling"),
    ("strided", "f64", "packing"),
]
#: Kernels compiled for fixed layouts, on the rows that mask (the others pack every edge).
FIXED = [("fixed", "f32", "tiling"), ("fixed", "f32", "packing"), ("fixed", "f64", "auto")]


def groups() -> list[tuple[str, str, str, str]]:
    found = []
    for number, isa in enumerate(host_rows()):
        chosen = [*GROUPS, *FIXED] if number == 0 else GROUPS
        found += [(isa.name, *group) for group in chosen]
    return found


@pytest.mark.parametrize(("row", "how", "dtype", "strategy"), groups())
def test_products_beside_guards(row: str, how: str, dtype: str, strategy: str) -> None:
    assert "products" in run_python(PROGRAM, how, dtype, strategy, isa=row)


@pytest.mark.parametrize("index", [-1, "size"])
@pytest.mark.parametrize("access", ["byte.value", "byte.value = 1"])
def test_a_guard_page_ends_the_process(index: int | str, access: str) -> None:
    """The instrument itself: one byte in front of or behind the memory is a fault."""
    program = (
        "import ctypes; from support import GuardedMemory; "
        "memory = GuardedMemory(1); size = memory.bytes.size; "
        f"at = memory.bytes.__array_interface__['data'][0] + {index}; byte = ctypes.c_uint8.from_address(at)"
    )
    run_python("-c", program)
    with pytest.raises(AssertionError, match="exit status -"):
        run_python("-c", f"{program}; {access}")


VECTORS = str(Path(__file__).with_name("guarded_vectors.py"))


def vector_groups() -> list[tuple[str, str, str]]:
    """Every row through `matmul`; on the first also kernels of fixed layouts."""
    rows = [isa.name for isa in host_rows()]
    return [*((row, "matmul", dtype) for row in rows for dtype in ("f32", "f64")), (rows[0], "fixed", "f32")]


@pytest.mark.parametrize(("row", "how", "dtype"), vector_groups())
def test_vectors_and_few_rows_beside_guards(row: str, how: str, dtype: str) -> None:
    counts = run_python(VECTORS, how, dtype, isa=row).split()
    assert counts[::2] == ["dots", "turned", "one_row", "few_rows"]
    assert all(int(count) > 100 for count in counts[1::2])


BATCH_REDUCE = str(Path(__file__).with_name("guarded_batch_reduce.py"))


@pytest.mark.parametrize("row", [isa.name for isa in host_rows()])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_batch_reduce_kernels_beside_guards(row: str, dtype: str) -> None:
    assert run_python(BATCH_REDUCE, dtype, isa=row) == "80 kernels\n"


WEIGHTS = str(Path(__file__).with_name("guarded_weights.py"))


@pytest.mark.parametrize("row", [isa.name for isa in host_rows()])
@pytest.mark.parametrize(
    ("form", "dtype"), [("i8", "f32"), ("i4g32", "bf16"), ("i4g64z", "f32"), ("bf16", "f32"), ("f16", "f32")]
)
def test_weights_beside_guards(row: str, form: str, dtype: str) -> None:
    assert run_python(WEIGHTS, form, dtype, isa=row) == "990 products\n"


EPILOGUES = str(Path(__file__).with_name("guarded_epilogue.py"))


@pytest.mark.parametrize("row", [isa.name for isa in host_rows()])
@pytest.mark.parametrize(("dtype", "count"), [("f32", 288), ("f64", 144), ("i8", 144)])
def test_epilogues_beside_guards(row: str, dtype: str, count: int) -> None:
    assert run_python(EPILOGUES, dtype, isa=row) == f"{count} products\n"


@pytest.mark.parametrize("row", [isa.name for isa in host_rows()])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_quantised_rows_beside_guards(row: str, dtype: str) -> None:
    assert run_python(WEIGHTS, "rows", dtype, isa=row) == "110 products\n"


CASES = str(Path(__file__).with_name("guard_cases.py"))


@pytest.mark.parametrize("row", [isa.name for isa in host_rows()][:2])
def test_random_calls_beside_guards(row: str) -> None:
    """A sample; `python tests/guard_pages/guard_cases.py --cases N --seed S` draws as many as wanted."""
    assert run_python(CASES, "--cases", "20", "--seed", "0", isa=row, seconds=600) == "20 cases, 0 failed\n"


def test_random_calls_beside_guards_find_what_is_wrong() -> None:
    """The generator itself: a read behind an operand, bytes around `out`, other values, a changed operand."""
    program = """
import ctypes
import numpy as np
import guard_cases as cases

def place(draw):
    return draw.place(np.zeros((3, 3), np.float32)), draw.room.placed[-1][0].bytes

def beyond(draw):
    _, memory = place(draw)
    ctypes.c_uint8.from_address(memory.__array_interface__["data"][0] + memory.size).value

def around(draw):
    out, memory = place(draw)
    before = draw.surroundings(out)
    memory[memory.size // 2] = 1
    draw.check(out, np.zeros((3, 3)), out, before)

def changed(draw):
    x, _ = place(draw)
    x[1, 1] = 1
    draw.check(np.zeros(()), np.zeros(()), None, [])

def values(draw):
    draw.check(np.float32([1, 2.001]), np.array([1.0, 2.0]), None, [])

reasons = {beyond: "SIG", around: "bytes around", changed: "operand changed", values: "differ"}
for case, reason in reasons.items():
    cases.KINDS[:] = [case]
    found = list(cases.run_in_children(0, range(2)))
    assert len(found) == 2 and all(reason in text for _, text in found), found
"""
    run_python("-c", f"import sys; sys.path.insert(0, {str(Path(CASES).parent)!r})\n{program}")
