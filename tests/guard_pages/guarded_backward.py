"""Runs kernels of attention's gradients whose operands touch inaccessible pages; a program, as it may fault.

    python guarded_backward.py {f32|bf16}

The row is the host's, or that of TILEWRIGHT_ISA. Lengths and heads leave tails everywhere. The exit status
says whether every byte outside of the gradients was left alone and every gradient was right.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from backward_calls import Case, Drawn, draw, errors_of
from support import GuardedMemory

from tilewright.compiler.kernel import Kernel

CASES = (
    Case(queries=1, keys=1, head_dim=1, value_dim=1),
    Case(heads=2, queries=37, keys=41, head_dim=19, value_dim=35),
    Case(heads=2, kv_heads=1, queries=75, keys=260, head_dim=64, value_dim=64, range=(-100, 190)),
    Case(queries=13, keys=23, head_dim=33, value_dim=17, mask="u8", slopes=True),
    Case(queries=13, keys=35, head_dim=16, value_dim=16, mask="f32"),
)
OUTPUTS = ("dq", "dk", "dv", "delta")
INPUTS = ("q", "k", "v", "out", "dout", "items", "lse", "mask", "slopes")


def main(dtype: str) -> None:
    calls = 0
    memories = {name: GuardedMemory(256 << 10) for name in (*INPUTS, *OUTPUTS)}
    for case in (replace(one, dtype=dtype) for one in CASES):
        kernel = Kernel.compiled(case.problem)
        for at_end in (False, True):
            drawn = draw(case)
            given: dict[str, Any] = {}
            for name, memory in memories.items():
                array = getattr(drawn.call, name)
                if array is not None:
                    array = np.ascontiguousarray(array)
                    given[name] = memory.place(array, array.strides, at_end=at_end)
            call = drawn.call._replace(**given)
            before = {name: memories[name].outside(given[name]) for name in OUTPUTS}
            call.run(kernel)
            calls += 1
            worst = max(errors_of(Drawn(call, drawn.expected)))
            if not worst < {"f32": 2e-6, "bf16": 0.01}[dtype]:
                raise SystemExit(f"wrong gradient: {case}: {worst}")
            for name, outside in before.items():
                if not np.array_equal(memories[name].outside(given[name]), outside):
                    raise SystemExit(f"bytes outside of {name} changed: {case}")
    sys.stdout.write(f"{calls} calls\n")


if __name__ == "__main__":
    main(sys.argv[1])
