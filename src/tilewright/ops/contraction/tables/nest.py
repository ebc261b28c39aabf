"""The five loops of a product whose operands are located by tables (block-scatter, Matthews 2018)."""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    FirstElse,
    Name,
    Relation,
    Scalar,
    TableEntry,
    ceildiv,
    maximum,
    minimum,
)
from tilewright.ir.nodes import Buffer, If, Let, Loop, Slice, Space, Statement, Tile, TileMatmul
from tilewright.ir.primitives.tables import NO_STEP, PackTable, ScatterTile
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking
from tilewright.macro.partition import COLUMN_TASKS, ROW_TASKS, parallel, share, tasks
from tilewright.ops.gemm.cache_blocks import balanced
from tilewright.spec.dtype import DType

#: Run-time parameters in the order of the C signature: items, rows and columns in whole panels, depths, and
#: how many columns are packed at a time.
TABLE_SIZES = ("batch", "m", "n", "k", "nc")

#: Tables: element offsets of batch items, rows, columns and depths of each operand; how many depths from one
#: on keep their step, and how many such runs are as long and begin one element after the other. Rows and
#: columns come in panels, whose missing lanes repeat the last: how many lanes each panel has; the step
#: between them in the operand and in C; how many panels from each on begin one element after the previous.
TABLES = (
    *("ab", "bb", "cb", "am", "ak", "bn", "bk", "cm", "cn"),
    *("ak_run", "bk_run", "ak_turn", "bk_turn", "m_count", "n_count"),
    *("am_step", "bn_step", "cm_step", "cn_step", "am_shift", "bn_shift"),
)


def table_instruction(acc: DType, machine: Machine) -> TileFma:
    """The multiply instruction: that of the sums' type, to which packing widens."""
    return machine.isa.tile(acc, acc)


def lay_tables(
    operands: tuple[str, str], acc: DType, cut: Blocking, machine: Machine, factors: tuple[Scalar, Scalar]
) -> tuple[tuple[Statement, ...], tuple[Buffer, ...]]:
    """Algorithm 1 of Kuzma et al. 2023 with packs and tiles of `out` that follow tables; its scratch.

    Parameters
    ----------
    operands : the buffers of A and B.
    acc : the type of the sums, and of `out`.
    factors : alpha and beta.
    """
    one = table_instruction(acc, machine)
    buffers = dict(zip("abc", (*operands, "out"), strict=True))
    alpha, beta = factors[0], FirstElse("pc", factors[1], Scalar(1.0))
    m, n, k = (Name(letter) for letter in "mnk")
    jc, pc, ic, j, i = (Name(axis) for axis in ("jc", "pc", "ic", "j", "i"))
    depth = Name("depth")

    def at(buffer: str, index: Expression) -> Slice:
        return Slice(buffer, index, (Constant(1), Constant(0)))

    def pack(letter: str, side: str, first: Expression, lanes: Expression, panel: int) -> PackTable:
        """Lanes of an operand from one on, at depth pc, into panels."""
        to = Slice(f"{letter}_pack", Name("to"), (Constant(1), Constant(1)))
        number = ceildiv(first, panel)
        return PackTable(
            to,
            Slice(buffers[letter], Name(f"{letter}0"), (Constant(0), Constant(0))),
            at(f"{letter}{side}", first),
            at(f"{letter}{side}_step", number),
            at(f"{side}_count", number),
            at(f"{letter}{side}_shift", number),
            at(f"{letter}k", pc),
            at(f"{letter}k_run", pc),
            at(f"{letter}k_turn", pc),
            lanes,
            depth,
            Constant(panel),
        )

    tile = TileMatmul(
        c=Slice("out", Name("place"), (Name("row_step"), Constant(1))),
        a=Slice("a_pack", (i - ic) * depth, (Constant(1), Constant(cut.mr))),
        b=Slice("b_pack", (j - jc) * depth, (Constant(1), Constant(cut.nr))),
        rows=TableEntry("m_count", ceildiv(i, cut.mr)),
        columns=TableEntry("n_count", ceildiv(j, cut.nr)),
        depth=depth,
        tile=Tile(cut.mr, cut.nr, 1),
        alpha=alpha,
        beta=beta,
        padded=True,
    )
    held = Slice("tile", Constant(0), (Constant(cut.nr), Constant(1)))
    apart = replace(tile, c=held, beta=Scalar(0.0))
    scatter = ScatterTile(
        Slice("out", Name("c0"), (Constant(0), Constant(0))),
        held,
        at("cm", i),
        at("cn", j),
        tile.rows,
        tile.columns,
        Name("column_step"),
        tile.beta,
    )
    stepped = AllOf(
        (
            Compare(Relation.LT, Constant(NO_STEP), Name("row_step")),
            Compare(Relation.EQ, Name("column_step"), Constant(1)),
        )
    )
    place = Name("c0") + TableEntry("cm", i) + TableEntry("cn", j)
    ir = Loop(
        "i",
        ic,
        Name("row_end"),
        Constant(cut.mr),
        (
            Let("row_step", TableEntry("cm_step", ceildiv(i, cut.mr))),
            Let("place", place),
            If(AnyOf((stepped,)), (tile,), (apart, scatter)),
        ),
    )
    jr = Loop(
        "j",
        jc,
        Name("column_end"),
        Constant(cut.nr),
        (Let("column_step", TableEntry("cn_step", ceildiv(j, cut.nr))), ir),
    )
    ic_loop = parallel(
        "ic",
        Constant(0),
        m,
        Name("mc"),
        Let("row_end", minimum(ic + Name("mc"), m)),
        Let("to", Constant(0)),
        pack("a", "m", ic, Name("row_end") - ic, cut.mr),
        jr,
    )
    jp = Name("jp")
    jp_step = maximum(share(Name("column_end") - jc, cut.nr, tasks(COLUMN_TASKS)), cut.nr)
    b_loop = parallel(
        "jp",
        jc,
        Name("column_end"),
        Name("jp_step"),
        Let("to", (jp - jc) * depth),
        pack("b", "n", jp, minimum(Name("jp_step"), Name("column_end") - jp), cut.nr),
    )
    pc_loop = Loop(
        "pc",
        Constant(0),
        maximum(k, 1),
        Name("kc"),
        (Let("depth", minimum(Name("kc"), k - pc)), b_loop, ic_loop),
    )
    jc_body: tuple[Statement, ...] = (
        Let("column_end", minimum(jc + Name("nc"), n)),
        Let("jp_step", jp_step),
        pc_loop,
    )
    offsets = tuple(Let(f"{letter}0", TableEntry(f"{letter}b", Name("bi"))) for letter in "abc")
    items = Loop(
        "bi",
        Constant(0),
        Name("batch"),
        Constant(1),
        (*offsets, Loop("jc", Constant(0), n, Name("nc"), jc_body)),
    )
    body: tuple[Statement, ...] = (
        Let("kc", balanced(k, cut.kc, 1)),
        Let("mc", minimum(cut.mc, share(m, cut.mr, tasks(ROW_TASKS)))),
        items,
    )
    scratch = (
        Buffer("b_pack", one.b, Space.SHARED, cut.kc * cut.nc),
        Buffer("a_pack", one.a, Space.THREAD, cut.kc * cut.mc),
        Buffer("tile", acc, Space.THREAD, cut.mr * cut.nr),
    )
    return body, scratch
