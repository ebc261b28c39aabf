"""Nests that are found in LLVM IR, as clang 19 and rustc 1.95 write it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from llvm_nest_text import candidate_text
from shares import looped

from tilewright.loops.llvm.loops import nests
from tilewright.loops.llvm.module import ParsedModule, read_module
from tilewright.loops.nests.nest import Refusal

HERE = Path(__file__).parent


@cache
def module_of(name: str) -> ParsedModule:
    return read_module((HERE / f"{name}.ll").read_text(encoding="utf-8"))


def found(name: str, function: str) -> str:
    """The first nest of a function as text, or the reason why there is none."""
    module = module_of(name)
    candidate = nests(module.functions[function], module)[0].read()
    return f"refused: it {candidate.reason}" if isinstance(candidate, Refusal) else candidate_text(candidate)


def sections() -> dict[tuple[str, str], str]:
    """The texts of nests.txt by file and function."""
    text = (HERE / "nests.txt").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in text.split("== ")[1:])
    return {(head.split()[0], head.split()[1]): body.strip("\n") for head, _, body in parts}


@looped(("name", "function"), sections())
def test_nests(name: str, function: str) -> None:
    assert found(name, function) == sections()[name, function]
