"""Every row's kernels on this host, its instructions written as plain LLVM: every instruction, every type.

Floats are small integers, whose sums are exact, so that results are equal to the bit: rounded once where C is
narrow. Integers are of the whole range, and sums wrap around.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from emulated_rows import (
    LAYOUTS,
    LENGTHS,
    STREAMING,
    drawn,
    emulated_kernel,
    emulating,
    every_feature,
    in_layout,
    shapes_around,
    stored,
    without_amx,
)
from shares import cover
from tiers import crossed, exhaustive, named

import tilewright as tw
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.isa_rows import AVX512, ISAS, NEON, SVE, VSX
from tilewright.machine.machine import Machine
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import I4, parse_dtype

#: Products of two types, and of one into another: A, B, C.
TYPES = (
    *(("f32", "f32", "f32"), ("f64", "f64", "f64"), ("c64", "c64", "c64"), ("c128", "c128", "c128")),
    *(("bf16", "bf16", "f32"), ("bf16", "bf16", "bf16"), ("f16", "f16", "f32"), ("f16", "f16", "f16")),
    *(("bf16", "f32", "f32"), ("f16", "bf16", "f16"), ("f64", "f32", "f32")),
    *(("i8", "i8", "i32"), ("i8", "i8", "i8"), ("u8", "u8", "i32"), ("u8", "i8", "i32"), ("i8", "u8", "i16")),
    *(("i4", "i4", "i32"), ("u4", "i8", "i32"), ("i16", "i16", "i32"), ("i16", "i16", "i16")),
    *(("i32", "i32", "i32"), ("i64", "i64", "i64"), ("i64", "i8", "i32")),
)
BATCHES = (("f32", "f32"), ("f64", "f64"), ("bf16", "bf16"), ("i8", "i8"), ("u8", "i32"), ("c64", "c64"))
#: With C's first elements, and without them.
COEFFICIENTS = ((1.0, 0.0), (2.0, -1.0))


def rows() -> Iterator[Isa]:
    """Each row with every instruction that it has, at each length; the streaming ones by themselves."""
    for isa in ISAS:
        for bits in LENGTHS if isa.scalable else (0,):
            yield isa.limited(every_feature(isa), bits)
        for bits in STREAMING:
            tiles = isa.limited(every_feature(isa), LENGTHS[0], bits).tiles
            streaming = tuple(tile for tile in tiles if tile.streaming)
            if streaming:
                yield replace(isa, tiles=streaming)


def kind(isa: Isa, tile: TileFma) -> str:
    """An instruction of a row with the types it multiplies."""
    return f"{isa.name}-{tile.instruction}-{tile.a}-{tile.b}"


INSTRUCTIONS = [(isa, tile) for isa in rows() for tile in isa.tiles]
#: Those that `make test` runs: every instruction, every pair of types, every type of sums on each row, and
#: one in eight of those that differ from others in the length of vectors only.
KINDS = [kind(*one) for one in INSTRUCTIONS]
REPEATED = [number for number, one in enumerate(KINDS) if one in KINDS[:number]]
CHOSEN = {
    *cover(
        {
            number: {(isa.name, tile.acc), tile.instruction, (tile.a, tile.b)}
            for number, (isa, tile) in enumerate(INSTRUCTIONS)
            if number not in REPEATED
        }
    ),
    *REPEATED[::8],
}


def check_gemm(problem: Gemm, machine: Machine, shapes: Sequence[tuple[int, int, int]]) -> None:
    kernel = emulated_kernel(problem, machine)
    random = np.random.default_rng(len(shapes))
    for (m, n, k), (alpha, beta) in zip(shapes, itertools.cycle(COEFFICIENTS)):
        operands = zip(problem.operands, ((m, k), (k, n), (m, n)), strict=True)
        a, b, c = (
            in_layout(drawn(random, operand.dtype, shape), operand.layout) for operand, shape in operands
        )
        expected = stored(problem.reference(a, b, c, alpha=alpha, beta=beta), problem.out_dtype)
        if beta == 0 and not problem.out_dtype.is_integer:
            c[...] = np.nan
        kernel(a, b, c, alpha=alpha, beta=beta)
        np.testing.assert_array_equal(c, expected, err_msg=f"{kernel.name} {m}x{n}x{k} {alpha} {beta}")


@pytest.mark.parametrize(
    ("isa", "tile"),
    [
        pytest.param(
            *one,
            id=f"{kind(*one)}-{one[1].m}x{one[1].n}",
            marks=() if number in CHOSEN else exhaustive,
        )
        for number, one in enumerate(INSTRUCTIONS)
    ],
)
def test_every_instruction(isa: Isa, tile: TileFma) -> None:
    """As the only one of its row, on operands and sums of its own types.

    Packed, as small products are not where the strategy is chosen; every second one in place if it can be.
    """
    machine = emulating(isa, tile)
    number = isa.tiles.index(tile)
    a, b, c = LAYOUTS[(number * 2) % len(LAYOUTS)]  # turned, its operands change places
    strategy = "tiling" if tile.in_place and number % 2 else "packing"
    left, right = (parse_dtype(panel.numpy) for panel in (tile.a, tile.b))  # in arrays: not packed
    problem = Gemm(dtype=left, b_dtype=right, out_dtype=tile.acc, a=a, b=b, c=c, strategy=strategy)
    check_gemm(problem, machine, shapes_around(problem, machine))


@pytest.mark.parametrize(("isa", "types"), crossed(ISAS, ([types] for types in TYPES), len(ISAS)), ids=named)
def test_every_row_and_type(isa: Isa, types: tuple[str, str, str]) -> None:
    """With the instruction that the row has for them; layouts and strategies take turns.

    In `make test` each type on one row; with the row's own instructions tests/emulated multiplies the others.

    AMX, whose operands are always packed, takes those that are to be packed.
    """
    number = TYPES.index(types) + ISAS.index(isa)
    a, b, c = LAYOUTS[number % len(LAYOUTS)]
    strategy = ("packing", "auto", "tiling")[number % 3]
    isa = isa.limited(every_feature(isa), LENGTHS[-1])
    machine = emulating(isa if strategy == "packing" else without_amx(isa))
    problem = Gemm(dtype=types[0], b_dtype=types[1], out_dtype=types[2], a=a, b=b, c=c, strategy=strategy)
    check_gemm(problem, machine, shapes_around(problem, machine))


@pytest.mark.parametrize("layout", ["row", "col"])
def test_every_pair_of_nibbles(layout: str) -> None:
    """All 256 products of two integers of 4 bits, at each place of a word in the panels and behind it."""
    machine = emulating(VSX.limited(every_feature(VSX)))
    assert machine.isa.tile(I4).a.held == 2
    kernel = emulated_kernel(Gemm(dtype="i4", out_dtype="i32", a=layout, b=layout), machine)
    every = np.arange(-8, 8)
    for depths, place in ((1, 0), *((8, place) for place in range(8)), (11, 7), (11, 8), (11, 10)):
        a, b = np.zeros((16, depths), int), np.zeros((depths, 16), int)
        a[:, place] = b[place] = every
        operands = (in_layout(array.astype(I4.numpy), kernel.problem.a) for array in (a, b))
        c = np.zeros((16, 16), np.int32)
        kernel(*operands, c)
        np.testing.assert_array_equal(c, np.outer(every, every), err_msg=f"depth {place} of {depths}")


@pytest.mark.parametrize(("isa", "dtype", "out"), crossed((NEON, SVE, VSX, AVX512), BATCHES, 4), ids=named)
def test_batches(isa: Isa, dtype: str, out: str) -> None:
    """Sums of several products of known sizes, none of them a multiple of a tile's."""
    machine = emulating(isa.limited(every_feature(isa), LENGTHS[-1], STREAMING[-1]))
    for (m, n, k, count), c, beta in (((5, 45, 7, 3), "row", 0), ((19, 9, 18, 2), "col", 1)):
        problem = BatchReduceGemm(
            m, n, k, count, dtype=dtype, out_dtype=out, a="row", b="row", c=c, beta=beta
        )
        random = np.random.default_rng(m)
        a = drawn(random, problem.dtype, (count, m, k))
        b = drawn(random, problem.b_dtype, (count, k, n))
        found = in_layout(drawn(random, problem.out_dtype, (m, n)), problem.c)
        expected = stored(problem.reference(a, b, found), problem.out_dtype)
        emulated_kernel(problem, machine)(a, b, found)
        np.testing.assert_array_equal(found, expected, err_msg=f"{isa.name} {problem}")


def test_names_lead_to_emulated_machines() -> None:
    """A target of the command line and of `compile`, which runs here."""
    kernel = tw.compile(Gemm(dtype="bf16", out_dtype="f32"), "emulate:neoverse-v2")
    a, b = (drawn(np.random.default_rng(0), kernel.problem.dtype, (3, 3)) for _ in range(2))
    c = np.zeros((3, 3), np.float32)
    np.testing.assert_array_equal(kernel(a, b, c), a.astype(np.float32) @ b.astype(np.float32))
    assert kernel.machine.isa.tile(kernel.problem.dtype).instruction == "bfmmla"
