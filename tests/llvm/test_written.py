"""Functions that modules share: written once, the same text in each, forgotten when there are too many."""

from __future__ import annotations

import pytest
from uncompiled import uncompiled

import tilewright as tw
from tilewright.llvm import written
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.values import INT64, VOID
from tilewright.micro.tiles.dispatch import Dispatch


def module(triple: str = "x86_64", *, quick: bool = False) -> Module:
    return Module("m", triple, "e", quick=quick)


class Writer:
    """Defines a function of some lines that calls an intrinsic, and counts how often."""

    def __init__(self, name: str = "f", lines: int = 1) -> None:
        self.name, self.lines, self.count = name, lines, 0

    def __call__(self, module: Module) -> Callee:
        self.count += 1
        f = module.define(self.name, VOID, [("x", INT64)])
        for _ in range(self.lines):
            f.call(module.declare("llvm.assume", VOID, [INT64]), [f.arguments["x"]])
        f.ret()
        return f.callee


def test_each_module_has_the_functions_and_what_they_declare() -> None:
    write = Writer()
    texts = []
    for one in (module(), module()):
        f = one.define("main", VOID, [("x", INT64)], exported=True)
        f.call(written.write_once(one, "declared", write), [f.arguments["x"]])
        f.ret()
        texts.append(str(one))
    assert write.count == 1
    assert texts[0] == texts[1]
    assert texts[0].count("declare void @llvm.assume(i64)") == texts[0].count("define internal void @f(") == 1


def test_modules_of_other_kinds_have_their_own() -> None:
    write = Writer()
    for one in (module(), module("aarch64"), module(quick=True), module()):
        written.write_once(one, "of a kind", write)
    assert write.count == 3


def test_no_more_text_is_kept_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "_kept", type(written._kept)())
    monkeypatch.setattr(written, "MOST_BYTES", 1000)
    first, second = Writer("first", 20), Writer("second", 20)
    for write in (first, second, second, first):
        written.write_once(module(), write.name, write)
    assert (first.count, second.count) == (2, 1)
    assert len(written._kept) == 1
    large = Writer("large", 100)  # of which the latest is kept all the same
    for _ in range(2):
        written.write_once(module(), "large", large)
    assert large.count == 1


class Interrupted:
    """A key that is hashed in Python, where a signal handler may run: it writes another function."""

    def __init__(self) -> None:
        self.hashed, self.handling = 0, False

    def __hash__(self) -> int:
        if not self.handling:
            self.handling = True
            self.hashed += 1
            name = f"of a handler {self.hashed}"
            written.write_once(module(), name, Writer(name))
            self.handling = False
        return 1


def test_a_signal_handler_may_write_between_any_two_bytecodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "_kept", type(written._kept)())
    monkeypatch.setattr(written, "MOST_BYTES", 1000)
    key, write = Interrupted(), Writer("interrupted", 3)
    for _ in range(5):
        written.write_once(module(), key, write)
    assert key.hashed > 5
    assert write.count == 1


def test_kernels_share_their_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two products that differ in a size, the second writes no tile, and has the text it has alone."""
    problems = tw.Gemm(dtype="f32"), tw.Gemm(dtype="f32", m=100)
    kept = type(written._kept)
    monkeypatch.setattr(written, "_kept", kept())
    alone = uncompiled(problems[1], "znver4").llvm_ir
    monkeypatch.setattr(written, "_kept", kept())
    assert uncompiled(problems[0], "znver4").llvm_ir
    monkeypatch.setattr(Dispatch, "_emit_height", None)
    assert uncompiled(problems[1], "znver4").llvm_ir == alone
