"""Runs contractions whose operands touch inaccessible pages; a program, as a fault ends only itself.

    python guarded_contraction.py

The row is the host's, or that of TILEWRIGHT_ISA. The exit status says whether every byte outside of out was
left alone and every result was right.
"""

from __future__ import annotations

import sys
from random import Random

import numpy as np
from contraction_cases import Case, random_case
from shares import EVERY_TEST_RUNS
from support import GuardedMemory

import tilewright as tw
from tilewright.ops.contraction.main import FirstTouch

CASES = 16 if EVERY_TEST_RUNS else 10
TYPES = ("f32", "f32", "f64", "bf16", "i8", "c64")
BYTES = 4 << 20


def check(case: Case, memories: dict[str, GuardedMemory], *, at_end: bool) -> None:
    """One contraction and its checks."""
    problem, expected = case.problem, case.expected()
    arrays = {
        name: memories[name].place(case.values[name], case.steps(name), at_end=at_end)
        for name in problem.names
    }
    out = arrays["out"]
    if problem.first is not FirstTouch.NONE or problem.is_unary:
        out[...] = 77
    before = memories["out"].outside(out)
    bias = arrays.pop("bias", None)
    tw.compile(problem)(*arrays.values(), bias=bias, sizes=case.sizes)
    if not np.array_equal(out, expected):
        raise SystemExit(f"wrong result: {problem}")
    if not np.array_equal(memories["out"].outside(out), before):
        raise SystemExit(f"bytes outside of out changed: {problem}")


def main() -> None:
    """Runs the cases, the operands of each at one end."""
    memories = {name: GuardedMemory(BYTES) for name in ("in0", "in1", "out", "bias")}
    for seed in range(CASES):
        case = random_case(Random(seed), dtypes=TYPES, lengths=(1, 2, 3, 5, 7, 16, 17, 33))
        check(case, memories, at_end=seed % 2 == 0)
    sys.stdout.write(f"{CASES} cases\n")


if __name__ == "__main__":
    main()
