"""The examples of docs/reference/dask.md run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import exhaustive

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import tilewright as tw

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "dask.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The examples of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_examples_and_what_they_say() -> None:
    names: dict[str, Any] = {}
    said = 0
    for block in blocks("python"):
        exec(block, names)
        for expression, value in re.findall(r"^(\S.*?)  # (.+)$", block, re.MULTILINE):
            assert repr(eval(expression, names)) == value
            said += 1
    assert said == 2


def test_the_table_of_simulations_is_true() -> None:
    rows = re.findall(
        r"^\| ([\d,]+) \| (\d+) Gbit/s \| (\S+) × (\S+) × (\S+) \| (\d+) GB ", PAGE, re.MULTILINE
    )
    assert len(rows) == 6
    import tilewright.dask as twd

    for workers, gbits, *grid, moved in rows:
        count = int(workers.replace(",", ""))
        plan = twd.plan((65536, 65536), (65536, 65536), workers=count, gbits=int(gbits), gflops=1000)
        assert [plan.rows, plan.columns, plan.replicas] == [int(one) for one in grid]
        assert round(plan.bytes_moved / 1e9) == int(moved)


def test_functions_of_the_table_exist() -> None:
    import tilewright.dask as twd

    named = set(re.findall(r"`(\w+)\(", PAGE.partition("## Memory")[0]))
    assert named == {*twd.__all__} - {"Plan", "TilewrightPlugin", "workers"}


@exhaustive  # it takes 15 s to start
def test_ray() -> None:
    """In a process of its own, which Ray starts others from."""
    pytest.importorskip("ray")
    (block,) = blocks("python ray")
    checks = (
        "assert np.allclose(out, tw.attention(q, k, k), atol=1e-6)\nassert np.allclose(c, a @ b, rtol=1e-5)\n"
    )
    done = run(block, checks)
    if "OSError" in done.stderr or "Timed out" in done.stderr or "ray.exceptions" in done.stderr:
        pytest.skip("Ray does not start here")
    assert done.returncode == 0, done.stderr


def test_mpi() -> None:
    """On one rank, and with the operation called as MPI calls it."""
    pytest.importorskip("mpi4py")
    (block,) = blocks("python mpi")
    checks = (
        "assert np.allclose(out, tw.attention(q, k, k), atol=1e-6)\n"
        "assert np.allclose(c, a @ b)\n"
        "cuts = k[:, :, :20], k[:, :, 20:]\n"
        "halves = [tw.attention_partial(q, cut, cut).packed() for cut in cuts]\n"
        "merge(memoryview(halves[0]).cast('B'), memoryview(halves[1]).cast('B'), None)\n"
        "assert np.allclose(halves[1][..., :-2], tw.attention(q, k, k), atol=1e-6)\n"
    )
    done = run(block, checks)
    if "cannot load MPI library" in done.stderr or "libmpi" in done.stderr:
        pytest.skip("no MPI library is installed")
    assert done.returncode == 0, done.stderr


def run(block: str, checks: str) -> Any:
    """A block in a process of its own, then checks of its names."""
    head = "import numpy as np\nimport tilewright as tw\n"
    path = Path(tw.__file__).resolve().parents[1]
    script = f"import sys\nsys.path.insert(0, {str(path)!r})\n{head}{block}\n{checks}"
    assert np is not None
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300
    )
