"""Programs for one thread: loops in sequence, shares of one."""

from __future__ import annotations

import pytest

from tilewright.compiler.pipeline import run_stages
from tilewright.ir.alone import alone
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.triangular.syr2k_problem import Syr2k

TILING = """program gemm_f32_mxnxk_rrr_tiling_avx512
sizes m n k rs_a cs_a rs_b cs_b rs_c cs_c
scalars alpha beta
argument a f32
argument b f32
argument c f32
let depths = unless(alpha, k)
let kc = min(max(roundup(ceildiv(k, max(ceildiv(k, 1024), 1)), 256), 256), max(roundup(k, 8), 8))
let shift = (lead(b, 64) - min(lead(b, 64), 1) * 32) * (1 - min(roundup(rs_b, 16) - rs_b, 1)) \
* min(max(n - 511, 0), 1)
let jn = max(roundup(n - shift, 32), 32)
let mb = max(max(roundup(m, 12), 12), 24)
for pc in 0 .. max(depths, 1) step kc:
  let depth = min(kc, depths - pc)
  for jb in 0 .. n - shift step jn:
    for ib in 0 .. m step mb:
      for j in jb + shift .. min(jb + jn + shift, n) step 32:
        for i in ib .. min(ib + mb, m) step 12:
          matmul 12x32x1 c[i * rs_c + max(j, 0); rs_c, 1]
            = (beta if pc first else 1.0) * c + alpha * a[i * rs_a + pc; rs_a, 1] \
. b[max(j, 0) + pc * rs_b; 1, rs_b]
            rows min(12, m - i) columns min(j + 32, n) - max(j, 0) depth depth
"""


def test_shares_of_one_are_the_whole() -> None:
    program = run_stages(Gemm(strategy="tiling"), find_machine("znver5"), "nest").program
    assert print_program(alone(program)) == TILING


@pytest.mark.parametrize(
    "problem", [Gemm(a="strided", b="strided", c="strided"), Gemm(dtype="bf16"), Syr2k()]
)
def test_one_thread_makes_no_tasks(problem: Gemm | Syr2k) -> None:
    program = run_stages(problem, find_machine("znver5"), "nest").program
    assert "parallel" in print_program(program)
    after = alone(program)
    assert not {"parallel", "threads"} & set(print_program(after).replace("(", " ").split())
    assert verify(alone(after)) == after
