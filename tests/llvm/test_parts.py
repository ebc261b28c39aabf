"""Kernels compiled by parts: the same machine code as in one module, and no part compiled twice."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from object_symbols import undefined_symbols
from tiers import first_of

import tilewright as tw
from tilewright.compiler.pipeline import run_stages
from tilewright.llvm import generation, merge_objects, parts
from tilewright.llvm.parts import emit_by_parts, split_module
from tilewright.llvm.target import emit_assembly, emit_object
from tilewright.machine.catalog import find_machine

MODULES = {
    "x86-64-v3": tw.Gemm(dtype="f32", epilogue="bias,gelu"),
    "znver4": tw.Attention(64, dtype="bf16"),
    "neoverse-v2": tw.Attention(64, dtype="f32"),
    "pwr10": tw.Attention(64, dtype="f32"),
    "rva23": tw.Gemm(dtype="f32", epilogue="bias,gelu"),
}
#: In `make test` the first one of each architecture.
each_module = pytest.mark.parametrize("name", first_of(MODULES, lambda name: find_machine(name).arch))
#: Relocations of calls that an assembler resolves where the function is in the same section, and a linker in
#: any case: R_PPC64_REL24, R_RISCV_CALL_PLT.
LINKED_CALLS = {"pwr10": 10, "rva23": 19}


def module_of(problem: Any, machine: str) -> str:
    return run_stages(problem, find_machine(machine), until="llvm").llvm


def functions_of(assembly: str) -> dict[str, list[str]]:
    """The lines of each function; local labels without the function's number in its module.

    Without POWER's room for restoring r2 behind calls to other modules, which all parts leave as it is.
    """
    bodies = re.findall(r"^(\w+):.*?\n(.*?)^\.Lfunc_end", assembly, re.MULTILINE | re.DOTALL)
    plain = {name: re.sub(r"\.L([A-Za-z_]+)\d+", r".L\1", body).splitlines() for name, body in bodies}
    return {name: [line for line in lines if line != "\tnop"] for name, lines in plain.items()}


def symbols_of(code: bytes) -> Counter[tuple[bytes, int, int]]:
    """Name, type and binding, and bits of the ABI of each symbol that is no mark of the assembler."""
    tables = merge_objects._Object(code)
    (table,) = tables.of_kind(merge_objects._SYMTAB)
    symbols = merge_objects._SYMBOL.iter_unpack(tables.data(table))
    named = ((tables.text(tables.headers[table][6], symbol[0]), *symbol[1:3]) for symbol in symbols)
    return Counter(symbol for symbol in named if not symbol[0].startswith((b"$", b".L")))


def relocations_of(code: bytes) -> Counter[int]:
    """Kinds of relocation of the instructions."""
    tables = merge_objects._Object(code)
    return Counter(
        info & 0xFFFFFFFF
        for table in tables.of_kind(merge_objects._RELA)
        if tables.names[table] == b".rela.text"
        for _, info, _ in merge_objects._RELOCATION.iter_unpack(tables.data(table))
    )


@each_module
def test_functions_are_those_of_the_whole_module(name: str) -> None:
    machine, text = find_machine(name), module_of(MODULES[name], name)
    whole = functions_of(emit_assembly(text, "whole", machine))
    split = [functions_of(emit_assembly(part, "part", machine)) for part in split_module(text)]
    assert len(split) > 3
    assert len(whole) == text.count("\ndefine ") == sum(map(len, split))
    for part in split:
        for function, lines in part.items():
            assert lines == whole[function], function
    code = emit_by_parts(text, "whole", machine)
    assert undefined_symbols(code) == set()
    assert code == emit_by_parts(text, "whole", machine)


@each_module
def test_the_object_is_that_of_the_whole_module(name: str) -> None:
    """The same symbols, and nothing for a linker to do but what it has to do in the whole."""
    machine, text = find_machine(name), module_of(MODULES[name], name)
    whole, merged = emit_object(text, "whole", machine), emit_by_parts(text, "whole", machine)
    assert symbols_of(merged) == symbols_of(whole)
    found, expected = relocations_of(merged), relocations_of(whole)
    if name in LINKED_CALLS:
        assert found.pop(LINKED_CALLS[name]) > expected.pop(LINKED_CALLS[name], 0)
    assert found == expected


@pytest.fixture
def compiled(uncached: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions that are compiled; no part is kept from earlier tests."""
    found: list[str] = []

    def emit_objects(jobs: Sequence[generation.Job], *rest: Any) -> list[bytes]:
        for job in jobs:
            found.extend(re.findall(r"^define .*?@(\w+)\(", job.text, re.MULTILINE))
        return generation.emit_objects(jobs, *rest)

    monkeypatch.setattr(parts, "emit_objects", emit_objects)
    monkeypatch.setattr(parts, "_parts", OrderedDict())
    return found


def test_kernels_share_parts(compiled: list[str]) -> None:
    """Attention multiplies with the tiles of products: only what these lack is compiled."""
    machine = find_machine("x86-64-v3")
    product = module_of(tw.Gemm(dtype="f32"), machine.name)
    attention = module_of(tw.Attention(64, dtype="f32"), machine.name)
    emit_by_parts(product, "gemm", machine)
    tiles = {name for name in compiled if name.startswith("tile")}
    assert tiles
    compiled.clear()
    emit_by_parts(attention, "attention", machine)
    assert compiled
    assert not tiles & set(compiled)
    assert set(re.findall(r"@(tile\w+)\(", attention)) == tiles


def test_parts_are_stored(compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another process finds them in the object cache."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", "1")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    machine = find_machine("x86-64-v2")
    text = module_of(tw.Gemm(dtype="f64"), machine.name)
    code = emit_by_parts(text, "gemm", machine)
    assert any(name.startswith("tile") for name in compiled)
    compiled.clear()
    parts._parts.clear()
    assert emit_by_parts(text, "gemm", machine) == code
    assert compiled
    assert not any(name.startswith("tile") for name in compiled)


def test_machines_with_other_caches_share_stored_parts(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a part is compiled for is the CPU, not the sizes of its caches."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", "1")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    machine = find_machine("x86-64-v2")
    smaller = replace(machine, l2=replace(machine.l2, size=machine.l2.size // 2))
    text = module_of(tw.Gemm(dtype="f64"), machine.name)
    code = emit_by_parts(text, "gemm", machine)
    compiled.clear()
    parts._parts.clear()
    assert emit_by_parts(text, "gemm", smaller) == code
    assert not any(name.startswith("tile") for name in compiled)
    parts._parts.clear()
    emit_by_parts(text, "gemm", replace(machine, features=machine.features + ",+avx"))
    assert any(name.startswith("tile") for name in compiled)


def test_names_may_have_signs(compiled: list[str]) -> None:
    """Fixed strides that are negative are part of a tile's name."""
    machine = find_machine("x86-64-v2")
    text = module_of(tw.Gemm(dtype="f64"), machine.name).replace("@tile_", "@tile_c-2_")
    assert len(split_module(text)) > 1
    assert undefined_symbols(emit_by_parts(text, "gemm", machine)) == set()


def test_metadata_is_declared_in_its_part() -> None:
    text = module_of(tw.Unary("identity", dtype="i16", a="strided", b="strided"), "x86-64-v4")
    declared = "!0 = !{i32 1}"
    for part in split_module(text):
        assert (declared in part) == ("!nontemporal !0" in part)
    assert declared in text


def test_few_parts_are_kept(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_MOST_PARTS", 2)
    machine = find_machine("x86-64-v2")
    text = module_of(tw.Gemm(dtype="f64"), machine.name)
    assert emit_by_parts(text, "gemm", machine) == emit_by_parts(text, "gemm", machine)
    assert len(parts._parts) == 2
