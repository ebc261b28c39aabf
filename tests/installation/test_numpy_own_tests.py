"""NumPy's own tests of products pass with kernels in them, as many as without."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiers import exhaustive

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(__file__).with_name("numpy_own_tests.py"))
FOLDER = Path(np.__file__).parent

#: Parts of NumPy's tests that take seconds.
CLASSES = {
    "numpy._core.tests.test_multiarray": ("TestMatmul", "TestMatmulOperator", "TestVdot", "TestInner"),
    "numpy._core.tests.test_ufunc": ("TestUfuncGenericLoops",),
}

#: All files with tests of products, and the words that choose them.
FILES = (
    *(f"numpy._core.tests.test_{name}" for name in ("einsum", "multiarray", "numeric", "ufunc", "overrides")),
    *(f"numpy._core.tests.test_{name}" for name in ("regression", "errstate", "multithreading")),
    *(f"numpy.lib.tests.test_{name}" for name in ("function_base", "shape_base")),
    *("numpy.linalg", "numpy.matrixlib", "numpy.ma.tests.test_core", "numpy.ma.tests.test_extras"),
)
WORDS = (
    "TestMatmul TestDot TestVdot TestInner matmul dot einsum Einsum vecdot matvec vecmat gufunc signature "
    "core_dim tensordot kron Kron cov Cov corr linalg multi_dot inner matrix_multiply Norm"
)
#: The first fails wherever ml_dtypes is imported, whose types NumPy's tables then have; others take 8 GiB.
OTHERS = "not test_correct_hash_dict and not huge"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hypothesis") is None or not (FOLDER / "_core" / "tests").is_dir(),
    reason="NumPy's tests, or what they need, are not installed",
)


def outcomes(folder: str, way: str, *arguments: str, seconds: float) -> tuple[dict[str, str], int]:
    """The outcome of each test that did not pass, and the calls that kernels took."""
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests/shared", "tests"))
    command = [sys.executable, PROGRAM, way, "-q", "-rfE", "--rootdir", folder, "--pyargs", *arguments]
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=folder,
    )
    assert " passed" in done.stdout, done.stdout + done.stderr
    failed = dict(re.findall(r"^(?:FAILED|ERROR) (\S+)(.*)$", done.stdout, re.MULTILINE))
    (calls,) = re.findall(r"^(\d+) calls taken$", done.stdout, re.MULTILINE)
    return failed, int(calls)


def test_a_selection_passes(tmp_path: Path) -> None:
    chosen = [f"{file}::{name}" for file, names in CLASSES.items() for name in names]
    failed, calls = outcomes(str(tmp_path), "forced", *chosen, seconds=600)
    assert failed == {}
    assert calls > 1000


@exhaustive
@pytest.mark.parametrize("way", ["forced", "installed"])
def test_as_many_pass_as_without(tmp_path: Path, way: str) -> None:
    chosen = [*FILES, "-k", f"({' or '.join(WORDS.split())}) and {OTHERS}"]
    failed, calls = outcomes(str(tmp_path), way, *chosen, seconds=3600)
    expected, none = outcomes(str(tmp_path), "none", *chosen, seconds=3600)
    assert failed.keys() <= expected.keys()
    assert calls > none == 0
