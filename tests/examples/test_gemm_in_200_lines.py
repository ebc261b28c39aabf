"""The tutorial's compiler is right for any size, and as short as it says."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import gemm_in_200_lines as tutorial
import numpy as np
import pytest

SOURCE = Path(tutorial.__file__).read_text(encoding="utf-8")
STEPS = {step.__name__: step for step in tutorial.STEPS}


@pytest.mark.parametrize("name", STEPS)
def test_steps_multiply(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are made small, so that there are several of each, and partial ones."""
    monkeypatch.setattr(tutorial, "KC", 16)
    monkeypatch.setattr(tutorial, "MC", 2 * tutorial.MR)
    monkeypatch.setattr(tutorial, "NC", 2 * tutorial.NR)
    run, _ = tutorial.compiled(STEPS[name])
    whole = tutorial.MR * 2, tutorial.NR * 2, 21
    anything = ((1, 1, 1), (5 * tutorial.MR + 1, 5 * tutorial.NR + 3, 35), (tutorial.MR - 1, tutorial.NR, 16))
    for m, n, k in (whole, *(anything if name in ("panels", "cache_blocks", "three_loops") else ())):
        rng = np.random.default_rng(m)
        a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
        c = np.zeros((m, n), np.float32)
        tutorial.product(run, a, b, c, tutorial.room_for(m, n, k))
        np.testing.assert_allclose(c, a.astype(float) @ b, rtol=1e-4, atol=1e-4)


def test_the_compiler_has_two_hundred_lines() -> None:
    compiler, _ = SOURCE.split("# --- measurement")
    assert sum(1 for line in compiler.splitlines() if line.strip()) <= 200


def test_the_program_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(
        sys, "argv", ["gemm_in_200_lines.py", "--size", str(math.lcm(tutorial.MR, tutorial.NR))]
    )
    tutorial.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(STEPS)
