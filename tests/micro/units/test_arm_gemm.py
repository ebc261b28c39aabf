"""Arm's units in whole products: what the loop over packed panels multiplies, and nothing beside it."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from assembly_text import AssemblyLoop, innermost_loops, only
from tiers import crossed

from tilewright.compiler.pipeline import run_stages
from tilewright.llvm.target import emit_assembly
from tilewright.machine.catalog import find_machine
from tilewright.machine.isa_rows import SVE
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import choose_blocking
from tilewright.ops.gemm.nest import instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.problem import Strategy

#: What a depth loop counts and jumps with.
BOOKKEEPING = {"add", "b", "cmp", "mov", "subs"}
#: Machines of every unit, as they are and at other lengths of vectors.
MACHINES = {
    **{name: find_machine(name) for name in ("neoverse-n1", "neoverse-v1", "neoverse-v2")},
    # Apple's assembly has other names for instructions.
    "apple-m1": replace(find_machine("apple-m1"), triple=find_machine("neoverse-n1").triple),
    "neoverse-v1-sve": find_machine("neoverse-v1").with_isa(SVE),
    "a64fx": find_machine("a64fx"),
    "a64fx-256": replace(find_machine("a64fx"), vector_bits=256),
    "apple-m4": find_machine("apple-m4"),
    "apple-m4-1024": replace(find_machine("apple-m4"), streaming_bits=1024),
}


def packed(a: str, b: str) -> Gemm:
    return Gemm(dtype=a, b_dtype=b, out_dtype="f32" if "f" in a else "i32", strategy=Strategy.PACKING)


@cache
def assembly(name: str, a: str, b: str) -> str:
    machine = MACHINES[name]
    state = run_stages(packed(a, b), machine, "llvm")
    return emit_assembly(state.llvm, state.name, machine)


@cache
def tile_assembly(name: str, a: str, b: str) -> str:
    """The functions of the tile alone."""
    machine = MACHINES[name]
    state = run_stages(packed(a, b), machine, "llvm")
    return emit_assembly(only(state.llvm, "tile"), state.name, machine)


def depth_loop(name: str, a: str, b: str, mnemonic: str) -> AssemblyLoop:
    """The loop of the whole tile: the one that multiplies most."""
    loops = innermost_loops(tile_assembly(name, a, b), MACHINES[name].triple)
    return max(loops, key=lambda loop: loop.counts[mnemonic])


def accumulators(machine: Machine, problem: Gemm) -> int:
    instruction = instruction_of(problem, machine.isa)
    blocking = choose_blocking(machine, instruction)
    return blocking.mr // instruction.m * blocking.nr // instruction.n


@pytest.mark.parametrize(
    ("name", "a", "b", "mnemonic"),
    [
        ("neoverse-n1", "i8", "i8", "sdot"),
        ("neoverse-n1", "u8", "u8", "udot"),
        ("apple-m1", "i8", "i8", "sdot"),
        ("apple-m1", "f16", "f16", "fmlal"),
        ("neoverse-v2", "f16", "f16", "fmlal"),
        *((name, "i8", "i8", "smmla") for name in ("neoverse-v1", "neoverse-v2", "neoverse-v1-sve")),
        *((name, "u8", "u8", "ummla") for name in ("neoverse-v1", "neoverse-v2", "neoverse-v1-sve")),
        *((name, "u8", "i8", "usmmla") for name in ("neoverse-v1", "neoverse-v2", "neoverse-v1-sve")),
        *((name, "i8", "u8", "usmmla") for name in ("neoverse-v1", "neoverse-v2", "neoverse-v1-sve")),
        *((name, "bf16", "bf16", "bfmmla") for name in ("neoverse-v1", "neoverse-v2", "neoverse-v1-sve")),
        ("a64fx", "f32", "f32", "fmla"),
        ("a64fx", "f64", "f64", "fmla"),
        ("a64fx", "i8", "i8", "sdot"),
        ("a64fx-256", "u8", "u8", "udot"),
    ],
)
def test_one_multiply_for_each_accumulator(name: str, a: str, b: str, mnemonic: str) -> None:
    """Operands are loaded, and neither they nor sums are moved."""
    machine, loop = MACHINES[name], depth_loop(name, a, b, mnemonic)
    assert loop.counts[mnemonic] == accumulators(machine, packed(a, b)) >= 20
    loads = {line.split()[0] for line in loop.matching(r"^ld")}
    assert {line.split()[0] for line in loop.instructions} - loads - {mnemonic, "b.lt"} <= BOOKKEEPING
    assert not loop.matching(r"^mov\s+[vzq]|^dup|\bsp\b")
    register = "z" if machine.isa.scalable else "v"
    assert len(loop.matching(rf"^{mnemonic}\s+{register}\d+\.")) == loop.counts[mnemonic]


@pytest.mark.parametrize(("name", "a"), [("neoverse-n1", "i8"), ("apple-m1", "i8"), ("apple-m1", "f16")])
def test_dot_products_take_a_by_element(name: str, a: str) -> None:
    """A is loaded as whole registers, and each of its words is a lane of one."""
    mnemonic = {"i8": "sdot", "f16": "fmlal"}[a]
    loop = depth_loop(name, a, a, mnemonic)
    assert len(loop.matching(r"v\d+\.(4b|h)\[\d\]$")) == loop.counts[mnemonic]
    assert not loop.matching(r"^ld1r")


@pytest.mark.parametrize(
    ("name", "a", "b", "mnemonic", "tiles"),
    crossed(
        ["apple-m4", "apple-m4-1024"],
        [
            ("f32", "f32", "fmopa", 4),
            ("f64", "f64", "fmopa", 8),
            ("f16", "f16", "fmopa", 4),
            ("bf16", "bf16", "bfmopa", 4),
            ("i8", "i8", "smopa", 4),
            ("u8", "u8", "umopa", 4),
            ("u8", "i8", "usmopa", 4),
            ("i8", "u8", "sumopa", 4),
        ],
        2,
    ),
)
def test_outer_products(name: str, a: str, b: str, mnemonic: str, tiles: int) -> None:
    """All tiles of ZA, a few times in a turn; nothing is called, and no sum is on the stack.

    In `make test` the two lengths of vectors, which the code does not know, take turns.
    """
    text = assembly(name, a, b)
    loops = innermost_loops(text, MACHINES[name].triple)
    loop = max(loops, key=lambda loop: loop.counts[mnemonic])
    assert loop.counts[mnemonic] % tiles == 0
    products = loop.matching(rf"^{mnemonic}\s+za")
    assert len({line.split()[1].partition(".")[0] for line in products}) == tiles
    assert not loop.matching(r"\bsp\b")
    assert "addsvl" not in text
    assert not re.search(r"^\s*bl\s+_?(mem|__arm)", text, re.MULTILINE)
    (start, end) = (text.count(f"sm{word}\tza") for word in ("start", "stop"))
    assert start == end > 0
