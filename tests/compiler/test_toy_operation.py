"""A new operation is one folder and one line: everything else follows from its record."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from toy_operation.problem import Squared
from typer.testing import CliRunner

import tilewright as tw
from tilewright.errors import NotAProblem, OperandMismatch
from tilewright.spec.operations import OPS
from tilewright.tools.cli import app


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The one line."""
    OPS.add("squared", "toy_operation.op:SQUARED")
    yield
    OPS.remove("squared")


def test_compiled_and_called() -> None:
    kernel: Any = tw.compile(Squared())
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(kernel(a, np.empty_like(a)), a * a)
    assert kernel.name.startswith("squared_f32_mxn_rr_")
    assert tw.compile(Squared(3, 4)).flops == 12


def test_arguments_are_checked() -> None:
    kernel: Any = tw.compile(Squared(n=4))
    a = np.ones((3, 4), np.float32)
    for wrong in (
        (a.astype(np.float64), a.copy()),  # dtype
        (a, np.ones((2, 4), np.float32)),  # m
        (a[:, :3], a[:, :3].copy()),  # n, which is fixed
        (a, a),  # shared memory
        (np.asfortranarray(a), a.copy()),  # layout
        (a,),  # too few
    ):
        with pytest.raises(OperandMismatch):
            kernel(*wrong)
    fixed = np.ones((3, 4), np.float32)
    fixed.flags.writeable = False
    with pytest.raises(OperandMismatch):
        kernel(a, fixed)


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("tile", "unary square"),
        ("llvm", "define"),
        ("asm", "squared_f32_mx8_rr_avx2:"),
        ("header", "float *b"),
    ],
)
def test_emitted(form: str, word: str) -> None:
    result = CliRunner().invoke(app, ["emit", "squared", "--n", "8", "--emit", form, "--target", "haswell"])
    assert result.exit_code == 0, result.output
    assert word in result.stdout
    assert "squared" in CliRunner().invoke(app, ["emit", "--help"]).stdout


def test_the_header_compiles(tmp_path: Any) -> None:
    text = tw.compile(Squared(), "haswell").header
    assert "/* A: m x n, row-major */" in text
    assert "/* rows of A and rows of B */" in text
    assert "B = A * A, element by element." in text
    (tmp_path / "squared.h").write_text(text)
    pytest.importorskip("ziglang")
    (tmp_path / "squared.c").write_text('#include "squared.h"\n')
    files = ["-c", str(tmp_path / "squared.c"), "-o", str(tmp_path / "squared.o")]
    command = [sys.executable, "-m", "ziglang", "cc", *files]
    subprocess.run(command, check=True)


def test_explained() -> None:
    found = tw.explain(Squared())
    assert "squared_f32_mxn_rr_" in str(found)


def test_unregistered_problems_are_refused() -> None:
    OPS.remove("squared")
    with pytest.raises(NotAProblem):
        tw.compile(Squared())
    OPS.add("squared", "toy_operation.op:SQUARED")
