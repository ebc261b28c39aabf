"""What passes leave of loops: the shapes that the readers of nests know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from tilewright.llvm.backends import initialize
from tilewright.llvm.canonical import inline_calls, optimise_module, shape_loops
from tilewright.loops.llvm.control_flow import Flow, NaturalLoop
from tilewright.loops.llvm.module import ParsedModule, read_module

SOURCE = (Path(__file__).parents[1] / "loops" / "opt" / "product.ll").read_text()


@pytest.fixture
def given() -> tuple[Any, Any]:
    """A module as clang's front end writes it, and its target."""
    initialize()
    module = llvm.parse_assembly(SOURCE)
    return module, llvm.Target.from_triple(module.triple).create_target_machine()


def loops_of(module: ParsedModule, name: str) -> list[NaturalLoop]:
    return [loop for top in Flow(module.functions[name]).loops for loop in top.walk()]


def test_loops_have_one_shape(given: tuple[Any, Any]) -> None:
    shape_loops(*given)
    text = str(given[0])
    assert "alloca" not in text
    module = read_module(text)
    loops = [loop for name in module.functions for loop in loops_of(module, name)]
    assert len(loops) == 3 + 4 + 2
    for loop in loops:
        assert loop.preheader is not None
        assert loop.exiting == loop.latches  # they test their condition at the end
        assert len(loop.exits) == 1


def test_inlining_keeps_loops_as_they_are(given: tuple[Any, Any]) -> None:
    inline_calls(*given)
    module = read_module(str(given[0]))
    assert [len(loops_of(module, name)) for name in ("product", "steps", "turn")] == [3, 4, 2]
    assert " x float>" not in str(given[0])


def test_optimising_makes_vectors(given: tuple[Any, Any]) -> None:
    optimise_module(*given)
    assert " x float>" in str(given[0])
