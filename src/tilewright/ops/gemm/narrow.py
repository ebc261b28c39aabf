"""Few rows against a packed weight: reading it is the work, and every panel is read once, in order."""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.expressions import Constant, Expression, Name, maximum, minimum, roundup
from tilewright.ir.nodes import Let, Loop, Slice, Statement, Tile, TileMatmul
from tilewright.machine.isa import Isa, TileFma
from tilewright.macro.partition import COLUMN_TASKS, TASK_ELEMENTS, bounded, parallel, share, tasks
from tilewright.ops.gemm.product_nest import Nest
from tilewright.spec.dtype import BF16, F32
from tilewright.spec.weights import Elements

#: Rows of the tallest tile: beyond, multiply-adds outweigh the bytes even of float32.
NARROW_ROWS = 8

#: Rows up to which words are unpacked again for every 8 rows: that costs a quarter of their multiply-adds,
#: and panels of floats would be written and read for few uses.
NARROW_STORED_ROWS = 32

#: Times at most that words of 4 bits are unpacked, for other rows each time: with AVX2, up to 16 rows.
#: They take twice the operations of wider ones: 24 rows of 384x1536 took 556 us, and 423 through panels.
MOST_UNPACKINGS = 4

#: The same beside an engine, whose tiles take as long for one row as for 16. Products of 1, 2, 4 and 8 rows
#: of bfloat16 with 2048x2048 on an Emerald Rapids: by 8 bits 270, 260, 420 and 830 us in vectors, and 890
#: through AMX, for which words become panels; by 4 bits 220, 310, 490, 950, and 850; by bfloat16 500, 500,
#: 590, 850, and 530, 520, 470, 420. Float8 is converted by way of subnormal numbers, which these
#: vectors flush.
BESIDE_ENGINE = {Elements.BF16: 2, Elements.I8: 8, Elements.I4: 4}

#: Panels that one tile reads side by side: 8 vectors of sums cover the latency of two multiply-adds a cycle,
#: and four streams are few for the hardware's prefetchers.
MOST_PANELS = 4

#: Share of the vector registers that sums and words may take; constants and operands of A need the others:
#: Unpacking 4-bit integers uses 12 constants.
WORDS_SHARE = 5 / 8


def plain_elements(instruction: TileFma) -> Elements | None:
    """Element types of panels in the instruction's own operand format, if few-row words are such panels."""
    forms = {(F32, 1): Elements.F32, (BF16, 2): Elements.BF16}
    return forms.get((instruction.b, instruction.kr))


def _heights(isa: Isa, nest: Nest) -> dict[int, int]:
    """Panels of the tile of each height, tallest first."""
    vectors = nest.tile.nr // isa.lanes(nest.types.acc)
    one = isa.row_tile(nest.instruction)
    sums = one.kr if one is not None and one.joins else 1  # of a row of a vector
    found: dict[int, int] = {}
    height = NARROW_ROWS
    while height:
        panels = min(MOST_PANELS, int(isa.vector_registers * WORDS_SHARE) // ((height * sums + 1) * vectors))
        if panels:
            found[height] = 1 << panels.bit_length() - 1
        height //= 2
    return found


def most_rows(isa: Isa, nest: Nest, elements: Elements) -> int:
    """Rows up to which tiles read a packed operand, or the words of a weight, themselves; 0 for none."""
    if nest.instruction.is_matrix_engine:
        return BESIDE_ENGINE.get(elements, 0)
    if nest.weights is None:
        return NARROW_ROWS
    if elements is not Elements.I4:
        return NARROW_STORED_ROWS
    return min(NARROW_STORED_ROWS, MOST_UNPACKINGS * max(_heights(isa, nest)))


def narrow(nest: Nest, isa: Isa, elements: Elements) -> tuple[Statement, ...]:
    """Tiles of 8, 4, 2 and 1 rows and as many panels as their sums leave registers for.

    A block of panels passes through a depth block for every height, so that more rows than one tile has find
    it in L2. The order of each sum is that of every other nest: depth by depth within a group, group by group
    within kc, then block by block. Columns behind the last whole block go through tiles of one panel.
    """
    sizes, lanes, one_row = nest.sizes, nest.tile.nr, isa.row_tile(nest.instruction)
    assert one_row is not None, "few rows need an instruction"
    a_in_place = replace(nest, instruction=one_row).a_in_place()
    heights = _heights(isa, nest)
    across = lanes * max(heights.values())
    i, j, jb = Name("i"), Name("j"), Name("jb")

    def tile(nest: Nest, rows: Expression, columns: Expression, shape: Tile) -> TileMatmul:
        one = nest.matmul(a_in_place, nest.stored_b(elements, j), columns)
        return replace(one, rows=rows, columns=columns, tile=shape, stored=nest.stored(elements, j))

    def kept(row: int, first: Expression) -> Nest:
        """Sums of a narrower C, kept in a buffer beside the block until they are final."""
        place = Slice("sums", i * row + (j - first), (Constant(row), Constant(1)))
        return replace(nest, sums=place if nest.carries else None)

    block: list[Statement] = []
    begin: Expression = Constant(0)
    for height, panels in heights.items():
        width, end = panels * lanes, Name(f"rows{height}")
        one = tile(kept(across, jb), Constant(height), Constant(width), Tile(height, width, nest.tile.kr))
        columns = Loop("j", jb, jb + across, Constant(width), (one,))
        block.append(Loop("i", begin, end, Constant(height), (columns,)))
        begin = end
    rest = tile(
        kept(lanes, j), minimum(2, sizes.m - i), minimum(lanes, sizes.n - j), Tile(2, lanes, nest.tile.kr)
    )
    jt, jn = Name("jt"), Name("jn")
    of_block = nest.depth_loop_of_task(sizes.m * across, *block)
    blocks = Loop("jb", jt, minimum(jt + jn, Name("wide")), Constant(across), (of_block,))
    edge = Loop("i", Constant(0), sizes.m, Constant(2), (rest,))
    parts = bounded(tasks(COLUMN_TASKS), sizes.n * sizes.k, TASK_ELEMENTS)
    return (
        *(Let(f"rows{height}", _whole(sizes.m, height)) for height in heights),  # in tiles of this height
        Let("wide", _whole(sizes.n, across)),  # columns of whole blocks
        Let("jn", share(Name("wide"), across, parts)),
        parallel("jt", Constant(0), Name("wide"), jn, blocks),
        Loop("j", Name("wide"), sizes.n, Constant(lanes), (nest.depth_loop_of_task(sizes.m * lanes, edge),)),
    )


def _whole(extent: Expression, unit: int) -> Expression:
    """The largest multiple of a unit that is at most the extent."""
    return extent if unit == 1 else roundup(maximum(extent + (1 - unit), 0), unit)
