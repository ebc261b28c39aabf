"""Tests of numbers run code that LLVM compiles without optimisation, in a third of the time.

Their subject is what the IR says. Its bits do not depend on the level, which tests/llvm/test_quick.py
compares, and one module in `WELL_COMPILED` is compiled well here too. `make test-all` compiles everything
well, and so do tests of other folders in any run: threads, emulated machines. Programs beside guard pages are
children that ask for it themselves: accesses, too, are what the IR says.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

from tilewright.llvm import generation, parts, target
from tilewright.machine.machine import Machine

#: Folders and files below `tests` whose kernels of this host are compiled so, but for `compiled_well` tests.
FOLDERS = (
    "aot",
    "array_api",
    "calls",
    "dask_arrays",
    "graph",
    "jax_calls",
    "micro/packing/test_pack_native.py",
    "micro/tiles/test_generic.py",
    "onnx_models",
    "ops/attention",
    "ops/batch_reduce",
    "ops/binary",
    "ops/chain",
    "ops/contraction",
    "ops/einsum",
    "ops/elementwise",
    "ops/embedding",
    "ops/gemm",
    "ops/linear",
    "ops/matmul",
    "ops/mmt4d",
    "ops/packing",
    "ops/quantized",
    "ops/rotary",
    "ops/rows",
    "ops/sampling",
    "ops/sum_of_products",
    "ops/transpose",
    "ops/triangular",
    "ops/unary",
    "pytorch",
    "tools",
    "weights",
)
#: Of modules, one in so many is compiled well, by a digest of its text: the same ones in every run.
WELL_COMPILED = 16

_TESTS = Path(__file__).resolve().parents[1]
_emit_well = target.emit_object
_emit_all_well = generation.emit_objects


class _Level:
    """Whether modules are compiled quickly now, and where the objects of a run are kept."""

    quick = False
    cache_dir = os.environ.get("TILEWRIGHT_CACHE_DIR", "")


@cache
def has_quick_code(path: Path) -> bool:
    """Whether the tests of a file run code that is compiled without optimisation."""
    return any(path.is_relative_to(_TESTS / folder) for folder in FOLDERS)


def _level_of(text: str, machine: Machine, level: int) -> int:
    """The level at which a module is compiled by the test that runs now, in place of the package's."""
    here = machine.triple.partition("-")[0] == platform.machine()
    quick = _Level.quick and here and crc32(text.encode()) % WELL_COMPILED
    return target.QUICK_LEVEL if quick else level


def emit_object(text: str, name: str, machine: Machine, level: int = target.CODEGEN_LEVEL) -> bytes:
    """As the package's own, at the level of the test that runs now."""
    return _emit_well(text, name, machine, _level_of(text, machine, level))


def emit_objects(jobs: Sequence[generation.Job], name: str, machine: Machine) -> list[bytes]:
    """As the package's own, at the level of the test that runs now."""
    jobs = [job._replace(level=_level_of(job.text, machine, job.level)) for job in jobs]
    return _emit_all_well(jobs, name, machine)


def install() -> None:
    """Puts both functions in the place of the package's own, in modules that have them and in later ones."""
    for own, function in ((_emit_well, emit_object), (_emit_all_well, emit_objects)):
        for module in list(sys.modules.values()):
            if getattr(module, function.__name__, None) is own:
                vars(module)[function.__name__] = function


def choose_level(item: pytest.Item) -> None:
    """The level for a test."""
    _set_level(quick=has_quick_code(item.path) and item.get_closest_marker("compiled_well") is None)


def run_quickly() -> None:
    """Code of this process, a child of a test, is compiled without optimisation from now on."""
    install()
    _set_level(quick=True)


def _set_level(*, quick: bool) -> None:
    """What is compiled at each level has an object cache of its own, and parts that are kept in memory."""
    if quick != _Level.quick:
        parts._parts.clear()
    _Level.quick = quick
    if _Level.cache_dir:
        well = Path(_Level.cache_dir)
        os.environ["TILEWRIGHT_CACHE_DIR"] = str(well / "quick" if quick else well)
    elif quick:  # a program that a person runs has the user's cache, which must keep what is compiled well
        os.environ["TILEWRIGHT_CACHE"] = "0"
