"""Attention of every row on this host, its instructions written as plain LLVM: every type and feature."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from attention_calls import FEATURES, Sizes, check, make
from emulated_rows import LENGTHS, STREAMING, emulated_kernel, emulating, every_feature
from shares import share
from tiers import crossed

from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import ISAS
from tilewright.ops.attention.problem import Attention, Schedule
from tilewright.spec.dtype import parse_dtype

#: Types of queries; every row meets most features in one of them.
TYPES = ("f32", "bf16", "f16", "f64")
#: Problems of one row and type, of each schedule one; in `make test` rows take turns.
EACH = len(Schedule)
#: More queries than two tiles of any row, more keys than a block has with caches as small as these.
SIZES = Sizes(batch=1, kv_heads=1, group=2, queries=70, keys=97)


def rows() -> Iterator[Isa]:
    """Each row with every instruction, at each length of scalable vectors, and with streaming ones."""
    for isa in ISAS:
        for bits in LENGTHS if isa.scalable else (0,):
            yield isa.limited(every_feature(isa), bits)
        streaming = isa.limited(every_feature(isa), LENGTHS[0], STREAMING[-1])
        tiles = tuple(tile for tile in streaming.tiles if tile.streaming)
        if tiles:
            yield replace(streaming, tiles=tiles + tuple(tile for tile in isa.tiles if tile.in_place))


ROWS = {f"{isa.name}-{isa.vector_bits}-{isa.tile(parse_dtype('bf16')).instruction}": isa for isa in rows()}


@pytest.mark.parametrize(("row", "dtype"), crossed(ROWS, TYPES, 4))
def test_attention_of_every_row(row: str, dtype: str) -> None:
    turn = (list(ROWS).index(row) * len(TYPES) + TYPES.index(dtype)) * EACH
    machine = emulating(ROWS[row])
    for number in share(range(turn, turn + EACH), EACH, list(ROWS).index(row)):
        schedule = tuple(Schedule)[number % 2]
        problem = Attention(20, 24, dtype, **FEATURES[number % len(FEATURES)], schedule=schedule)
        made = make(problem, SIZES)
        made.call.run(emulated_kernel(problem, machine))
        check(made)
