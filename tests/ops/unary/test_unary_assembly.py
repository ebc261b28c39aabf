"""Machine code of unary kernels: squares of log2 permutes a vector, and nothing but whole vectors."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest
from assembly_text import innermost_loops, without_comment
from tiers import crossed, first_of
from uncompiled import uncompiled

import tilewright as tw
from tilewright.machine.cache import Cache
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa_rows import GENERIC128
from tilewright.machine.machine import Machine
from tilewright.spec.functions import UnaryOp

#: A machine of another architecture on the row that every one has.
POWER = Machine(
    name="pwr10",
    isa=GENERIC128,
    triple="powerpc64le-unknown-linux-gnu",
    cpu="pwr10",
    features="+altivec,+vsx,+power10-vector",
    l1=Cache(32 << 10, ways=8, line=128),
    l2=Cache(1 << 20, ways=8, line=128),
    l3=None,
    cores=1,
)

#: What moves lanes between two registers, loads and stores a whole register, by architecture. INS of a
#: 64-bit lane is what LLVM prefers to ZIP1 of such lanes.
PERMUTES = {
    "aarch64": r"^(zip[12]|trn[12]|uzp[12])\s|^mov\s+v\d+\.d\[\d\], v\d+\.d\[\d\]",
    "x86_64": r"^v?p?unpck[lh]|^vperm2[fi]128|^vinsert[fi]|^vshuf[fi]64x2|^mov(lh|hl)ps",
    "powerpc64le": r"^(xxmrg|vmrg|xxpermdi)",
}
LOADS = {
    "aarch64": r"^ldu?r\s+q",
    "x86_64": r"^v?movdq[ua](64)?\s+[^%]*\(|^v?mov[ua]p[sd]\s+[^%]*\(|^v?mov[ua]p[sd]\s+\(|^vmovdq\w+\s+\(",
    "powerpc64le": r"^lxvx?\s",
}
STORES = {
    "aarch64": r"^stu?r\s+q",
    "x86_64": r"^v?mov(dq[ua](64)?|[ua]p[sd])\s+%[xyz]mm\d+, .*\(",
    "powerpc64le": r"^stxvx?\s",
    "riscv64": r"^vse\d+\.v\s",
}
#: Loads and stores of less than a register.
PIECES = {
    "aarch64": r"^(ldr|str|ldur|stur)\s+[wxbhsd]\d|^(ld1|st1|ins)\s",
    "x86_64": r"^v?mov(ss|sd|d|q|l|hps|lps)\s+.*\(%r(?!sp)|^v?p(insr|extr)",
    "powerpc64le": r"^(lwz|lfs|lfd|ld|lxs|stw|stfs|stfd|std|stxs|mtvsr|mfvsr)",
}


def machine(name: str) -> Machine:
    return POWER if name == "pwr10" else find_machine(name)


def lines(kernel: tw.Kernel) -> list[str]:
    found = (without_comment(line, kernel.machine.triple) for line in kernel.assembly.splitlines())
    return [line for line in found if line and not line.startswith(".") and not line.endswith(":")]


def matching(kernel: tw.Kernel, patterns: dict[str, str]) -> list[str]:
    return [line for line in lines(kernel) if re.search(patterns[kernel.machine.arch], line)]


#: The side of the largest square of each row and element type.
SQUARES = {
    ("neoverse-v2", "f32"): 4,
    ("neoverse-v2", "f64"): 2,
    ("neoverse-n1", "i16"): 8,
    ("neoverse-n1", "i8"): 16,
    ("apple-m1", "c128"): 1,
    ("haswell", "f32"): 8,
    ("haswell", "f64"): 4,
    ("haswell", "i16"): 8,
    ("znver2", "c128"): 2,
    ("znver5", "f32"): 16,
    ("cascadelake", "f64"): 8,
    ("sapphirerapids", "i16"): 16,
    ("znver4", "i8"): 16,
    ("znver5", "c128"): 4,
    ("x86-64-v2", "f32"): 4,
    ("x86-64-v2", "f64"): 2,
    ("x86-64-v2", "i16"): 8,
    ("pwr10", "f32"): 4,
    ("pwr10", "f64"): 2,
    ("pwr10", "i16"): 8,
}


@pytest.mark.parametrize(("name", "dtype"), SQUARES, ids="-".join)
def test_a_square_takes_log2_permutes_a_vector(name: str, dtype: str) -> None:
    """Breuer, tnzr.compile, Listing 7.3.2: 4 loads, 8 permutes, 4 stores for 4x4 words on Neon."""
    side = SQUARES[name, dtype]
    kernel = uncompiled(tw.Unary("identity", side, side, dtype, b="row"), machine(name))
    assert len(matching(kernel, LOADS)) == side
    assert len(matching(kernel, PERMUTES)) == side * (side.bit_length() - 1)
    assert len(matching(kernel, STORES)) == side
    assert matching(kernel, PIECES) == []
    assert kernel.registers.spilled == 0
    assert not [
        line for line in lines(kernel) if re.search(r"\bj\w+\s+\.L|\bb(\.\w+|l)?\s+\.L|vperm[ti]", line)
    ]


def test_listing_7_3_2() -> None:
    kernel = uncompiled(tw.Unary("identity", 4, 4, b="row"), "neoverse-v2")
    text = lines(kernel)
    assert len([line for line in text if re.match(r"ldr\s+q", line)]) == 4
    assert len([line for line in text if re.match(r"zip[12]|trn[12]|mov\s+v", line)]) == 8
    assert len([line for line in text if re.match(r"str\s+q", line)]) == 4


@pytest.mark.parametrize(
    ("name", "op"),
    crossed(
        ["neoverse-v2", "haswell", "znver5", "x86-64-v2", "pwr10"],
        [op for op in UnaryOp if op is not UnaryOp.ZERO],
        5,
    ),
)
def test_no_call_leaves_the_module(op: UnaryOp, name: str) -> None:
    """No library: every function that is called is defined in the module."""
    kernel = uncompiled(tw.Unary(op, b="row"), machine(name))
    defined = set(re.findall(r"^_?(\w+):", kernel.assembly, re.MULTILINE))
    called = set(re.findall(r"^\s+(?:callq?|bl)\s+_?(\w+)", kernel.assembly, re.MULTILINE))
    assert called <= defined


#: Edges of blocks are whole vectors of fewer elements, or overlap: nothing is masked.
@pytest.mark.parametrize(("name", "op"), list(product(["haswell", "znver5"], ["identity", "gelu"])))
def test_nothing_is_masked(name: str, op: str) -> None:
    for b in ("col", "row"):
        text = uncompiled(tw.Unary(op, b=b), name).llvm_ir
        assert "llvm.masked" not in text


def vectors_of(name: str) -> tuple[object, ...]:
    """What moves are written with: the row and the length of its vectors."""
    isa = find_machine(name).isa
    return isa.arch, isa.name, isa.vector_bits


@pytest.mark.parametrize("name", first_of(targets(), vectors_of))
def test_loops_hold_whole_registers(name: str) -> None:
    """The longest loop of a copy moves four vectors a turn and spills none."""
    kernel = uncompiled(tw.Unary("identity"), name)
    vectors = [
        sum(bool(re.search(STORES[kernel.machine.arch] + r"|^stp\s+q", line)) for line in loop.instructions)
        for loop in innermost_loops(kernel.assembly, kernel.machine.triple)
    ]
    assert max(vectors) >= (2 if kernel.machine.arch == "aarch64" else 4)
    assert kernel.registers.spilled == 0


@pytest.mark.parametrize("name", ["znver5", "haswell", "x86-64-v2"])
def test_streams_write_past_the_caches_and_end_with_a_fence(name: str) -> None:
    kernel = uncompiled(tw.Unary("identity", 8192, 8192, b="row"), name)
    text = kernel.assembly
    assert re.search(r"v?movnt(dq|ps|pd)\s+%[xyz]mm", text)
    assert re.search(r"^\s+(mfence|lock\s)", text, re.MULTILINE)
    near = uncompiled(tw.Unary("identity", 64, 64, b="row"), name)
    assert "movnt" not in near.assembly
    assert "fence" not in near.assembly


def test_bytes_are_not_streamed_in_pieces() -> None:
    """16 rows of 16 bytes each would leave every combining buffer of the CPU half full."""
    assert "movnt" not in uncompiled(tw.Unary("identity", 8192, 8192, "i8", b="row"), "znver5").assembly


def test_lines_of_128_bytes() -> None:
    wide = replace(find_machine("znver5"), l1=Cache(48 << 10, ways=12, line=128))
    assert "movnt" not in uncompiled(tw.Unary("identity", 8192, 8192, b="row"), wide).assembly
