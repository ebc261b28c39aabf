"""Promise 3: no byte outside an operand is touched, shown by inaccessible pages at both ends of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from shares import EVERY_TEST_RUNS, share
from support import GUARD_PAGES, host_rows, run_python

pytestmark = pytest.mark.skipif(not GUARD_PAGES, reason="needs mprotect")

#: Accesses of memory do not depend on how well they are compiled.
QUICK = () if EVERY_TEST_RUNS else ("--quick",)
ROWS = [isa.name for isa in host_rows()]

#: The programs of each operation, and what their lines must say.
PRODUCTS = {
    f"guarded {words}": "products"
    for words in (
        "matmul f32 auto",
        "matmul f64 auto",
        "strided f64 tiling",
        "strided f32 tiling",
        "strided f32 packing",
        "strided f64 packing",
    )
}
#: Kernels compiled for fixed layouts, on the rows that mask (the others pack every edge).
FIXED = {f"guarded fixed {words}": "products" for words in ("f32 tiling", "f32 packing", "f64 auto")}
#: Few rows and columns, each kind often: with two lanes, sizes around multiples of a vector coincide.
KINDS = r"dots \d{3,} turned \d{2,} few_columns \d{2,} one_row \d{3,} few_rows \d{2,}"
VECTORS = {f"guarded_vectors matmul {dtype}": KINDS for dtype in ("f32", "f64")}
FIXED_VECTORS = {"guarded_vectors fixed f32": KINDS}
BATCH_REDUCE = {f"guarded_batch_reduce {dtype} TURN": r"\b(16|24|80) kernels" for dtype in ("f32", "f64")}
WEIGHTS = {
    f"guarded_weights {words}": r"\b(330|990) products"
    for words in ("i8 f32", "i4g32 bf16", "i4g64z f32", "bf16 f32", "f16 f32")
}
QUANTISED_ROWS = {f"guarded_weights rows {dtype}": "110 products" for dtype in ("f32", "bf16")}
EPILOGUES = {
    "guarded_epilogue f32 TURN": r"\b(96|288) products",
    "guarded_epilogue f64 TURN": r"\b(48|144) products",
    "guarded_epilogue i8 TURN": r"\b(48|144) products",
}
UNARY = {f"guarded_unary {dtype}": "calls" for dtype in ("f32", "f64", "i8", "i16", "c128")}
ROW_FUNCTIONS = {f"guarded_rows {dtype} TURN": "calls" for dtype in ("f32", "f64", "bf16", "f16")}
GRADIENTS = {f"guarded_backward {dtype}": "10 calls" for dtype in ("f32", "bf16")}
CONTRACTIONS = {"guarded_contraction": "cases"}
#: NumPy's own products, by its letters of types.
INSTALLED = {f"guarded_loops {letters}": "cases of" for letters in ("fdeF", "bHil")}


def on_rows() -> list[ParameterSet]:
    """The programs that run in one process of a row; in `make test` each row takes a part of some tables.

    Element types of one table differ in the types of loads and stores: the next row takes the next ones.
    `TURN` is the number of the row, which decides what a program runs in `make test`.
    """
    found = []
    for number, row in enumerate(ROWS):
        first = number == 0
        tables = {
            "products": shared(PRODUCTS, 2, number)
            | (shared(FIXED, 2, 0) | FIXED_VECTORS if first else {})
            | shared(VECTORS, 2, number),
            "fused": EPILOGUES | shared(QUANTISED_ROWS, 2, number) | shared(WEIGHTS, 2, number),
            "functions": shared(UNARY, 2, number) | shared(ROW_FUNCTIONS, 2, number),
            "others": shared(BATCH_REDUCE, 2, number)
            | shared(GRADIENTS, 2, number)
            | (CONTRACTIONS if number < 2 else {})
            | shared(INSTALLED, 2, number),
        }
        for name, programs in tables.items():
            turned = {program.replace("TURN", str(number)): said for program, said in programs.items()}
            found.append(pytest.param(row, turned, id=f"{row}-{name}"))
    return found


def shared(programs: dict[str, str], each: int, first: int) -> dict[str, str]:
    """A row's share of a table."""
    return dict(share(programs.items(), each, first))


@pytest.mark.parametrize(("row", "programs"), on_rows())
def test_programs_beside_guards(row: str, programs: dict[str, str]) -> None:
    output = run_python("tests/guard_pages/every.py", *QUICK, *programs, isa=row, seconds=600)
    lines = dict(line.split(": ") for line in output.splitlines())
    assert lines.keys() == programs.keys()
    for program, said in programs.items():
        assert re.search(said, lines[program]), output


@pytest.mark.parametrize("index", [-1, "size"])
@pytest.mark.parametrize("access", ["byte.value", "byte.value = 1"])
def test_a_guard_page_ends_the_process(index: int | str, access: str) -> None:
    """The instrument itself: one byte in front of or behind the memory is a fault."""
    program = (
        "import ctypes; from support import GuardedMemory; "
        "memory = GuardedMemory(1); size = memory.bytes.size; "
        f"at = memory.bytes.__array_interface__['data'][0] + {index}; byte = ctypes.c_uint8.from_address(at)"
    )
    with pytest.raises(AssertionError, match="exit status -"):
        run_python("-c", f"{program}; {access}")


#: Calls of a sample.
CALLS = 20 if EVERY_TEST_RUNS else 6
CASES = str(Path(__file__).with_name("guard_cases.py"))


@pytest.mark.parametrize("row", ROWS[:2])
def test_random_calls_beside_guards(row: str) -> None:
    """A sample; `python tests/guard_pages/guard_cases.py --cases N --seed S` draws as many as wanted."""
    assert run_python(CASES, "--cases", str(CALLS), "--seed", "0", isa=row, seconds=600) == (
        f"{CALLS} cases, 0 failed\n"
    )


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
