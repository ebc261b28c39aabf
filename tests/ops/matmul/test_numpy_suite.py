"""NumPy's own tests of its products, with this package's functions under their names."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shares import EVERY_TEST_RUNS
from support import ROOT

TESTS = Path(np.__file__).parent

#: Files, with the classes or functions of each that are run.
PLACES = (
    "_core/tests/test_einsum.py",
    "_core/tests/test_multiarray.py::TestMatmul",
    "_core/tests/test_multiarray.py::TestInner",
    "_core/tests/test_multiarray.py::test_matmul_axes",
    "_core/tests/test_ufunc.py",
    "lib/tests/test_shape_base.py::TestKron",
    "matrixlib/tests/test_interaction.py",
    "linalg/tests/test_linalg.py::TestMultiDot",
)
#: What the names of tests have in them, of files that test much else too; sums of one type stand for all.
WORDS = (
    *("TestEinsum and not einsum_sums and not Path", "einsum_sums_float32"),
    *(["einsum_sums_int16"] if EVERY_TEST_RUNS else []),
    # Shapes of products of all types, for which small kernels are compiled by the dozen.
    *(["TestMatmul"] if EVERY_TEST_RUNS else ["TestMatmul and not test_shapes"]),
    *("TestInner", "matmul_axes", "TestKron", "TestMultiDot", "kron", "inner_scalar"),
    *("vecdot", "matvec", "vecmat", "axes_argument", "axis_argument", "keepdims_argument", "out_broadcasts"),
    *("TestUfunc and output_argument", "InspectSignature"),
)


@pytest.mark.skipif(
    importlib.util.find_spec("numpy._core.tests.test_einsum") is None,
    reason="NumPy is here without its tests",
)
def test_numpys_own_tests(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(tmp_path / "pytest.ini"), "-p", "numpy_names"]
    # NumPy's assertions are functions with messages of their own. Rewriting `assert` takes 5 s.
    command += [
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
        # Failures that are expected are formatted too. Each takes half a second in pytest's own style.
        "--tb=native",
        "-k",
        " or ".join(f"({word})" for word in WORDS),
    ]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "shared")])
    done = subprocess.run(
        [*command, *(str(TESTS / place) for place in PLACES)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
