"""Operations, machines and rows of instructions that another package registers by entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright import registered
from tilewright.errors import RegisteredName, UnknownIsa, UnknownTarget
from tilewright.llvm.object_cache import outside_version
from tilewright.machine.catalog import CatalogEntry, find_machine
from tilewright.machine.isa_rows import find_isa
from tilewright.ops.gemm.problem import Gemm

HERE = Path(__file__).resolve().parent
#: The example of docs/adding.md.
PACKAGE = HERE.parent / "toy_operation"

PROGRAM = """
import numpy as np, tilewright as tw
from toy_operation.problem import Squared
from tilewright.spec.operations import OPS
assert "squared" in OPS.names and OPS.names[0] == "gemm", OPS.names
a = np.arange(12, dtype=np.float32).reshape(3, 4)
kernel = tw.compile(Squared())
assert np.array_equal(kernel(a, np.empty_like(a)), a * a)
assert "toy-core" in tw.targets()
there = tw.compile(tw.Gemm(4, 4, 4), target="toy-core")
assert "neon" in there.name and "fmla" in there.assembly
emulated = tw.compile(tw.Gemm(4, 4, 4), target="emulate:toy-core")
from tilewright.machine.isa_rows import find_isa
assert find_isa("toy-row").vector_registers == 30
print("right")
"""


def installed(folder: Path, points: str) -> None:
    """A distribution as pip installs it, with entry points of its own."""
    found = folder / "toy_package-1.0.dist-info"
    found.mkdir(parents=True)
    (found / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: toy-package\nVersion: 1.0\n", encoding="utf-8"
    )
    (found / "entry_points.txt").write_text(points, encoding="utf-8")


POINTS = """[tilewright.operations]
squared = toy_operation.op:SQUARED

[tilewright.machines]
toy-core = toy_operation.machines:TOY_CORE

[tilewright.rows]
toy-row = toy_operation.machines:TOY_ROW
"""


def test_a_package_registers_all_three(tmp_path: Path) -> None:
    installed(tmp_path, POINTS)
    paths = [os.fspath(tmp_path), os.fspath(PACKAGE.parent), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "right\n", done.stderr


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Entry points of every group, as if installed."""
    found: dict[str, str] = {}
    for name in ("tilewright.machine.catalog", "tilewright.machine.isa_rows", "tilewright.spec.operations"):
        monkeypatch.setattr(import_module(name), "registered_places", lambda group: found)
    monkeypatch.setattr(registered, "registered_places", lambda group: found)
    registered.registered.cache_clear()
    return found


def test_what_is_registered_wrongly(places: dict[str, str]) -> None:
    places.update({"absent": "no_such_module:X", "lacks": "math:no_such", "other": "math:pi"})
    for name, reason in (("absent", "no_such_module"), ("lacks", "no_such"), ("other", "type float")):
        with pytest.raises(RegisteredName, match=f"{name} of the entry points .*{reason}"):
            find_machine(name)
        with pytest.raises(RegisteredName, match=reason):
            find_isa(name)
    with pytest.raises(UnknownTarget, match="absent"):
        find_machine("absant")
    with pytest.raises(UnknownIsa, match=r"avx2, .*, lacks"):
        find_isa("lack")


def test_names_of_this_package_are_never_looked_up(places: dict[str, str]) -> None:
    places["znver5"] = places["avx2"] = "math:pi"
    assert isinstance(find_machine("znver5"), tw.machine().__class__)
    assert find_isa("avx2").vector_bits == 256


def test_two_of_one_name_are_none(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    class Point:
        def __init__(self, name: str, value: str) -> None:
            self.name, self.value = name, value

    given = [Point("b", "m:b"), Point("a", "m:a"), Point("a", "n:a"), Point("b", "m:b")]
    monkeypatch.setattr(registered, "_entry_points", lambda group: given)
    registered.registered_places.cache_clear()
    try:
        assert registered.registered_places("some") == {"b": "m:b"}
    finally:
        registered.registered_places.cache_clear()
    assert "'a' is registered twice: m:a, n:a" in caplog.text


def test_objects_of_other_packages_are_keyed_by_their_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_package_of_others"
    package.mkdir()
    (package / "__init__.py").write_text("class Problem: pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import some_package_of_others as others  # type: ignore[import-not-found]

    from tilewright.llvm.object_cache import _version_of

    problem: Any = others.Problem()
    before = outside_version(problem)
    assert before.startswith(" some_package_of_others ")
    assert before == outside_version(problem)
    (package / "__init__.py").write_text("class Problem: size = 3\n", encoding="utf-8")
    _version_of.cache_clear()
    assert outside_version(problem) != before
    assert outside_version(Gemm()) == ""
    assert isinstance(CatalogEntry, type)
