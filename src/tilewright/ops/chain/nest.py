"""The nests of a chain of linear layers: pack, mmt4d and unpack (Taei and Jacob 2021), then the steps."""

from __future__ import annotations

from tilewright.ir.expressions import Constant, Expression, FirstElse, Name, Scalar, minimum
from tilewright.ir.nodes import (
    Applied,
    Buffer,
    Finish,
    Let,
    Loop,
    Pack,
    Program,
    Slice,
    Space,
    Statement,
    Tile,
    TileEpilogue,
    TileMatmul,
)
from tilewright.ir.primitives.budget import Spend
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, depth_unit, panel_bytes
from tilewright.macro.partition import THREAD_TASKS, parallel, share, tasks
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.gemm.cache_blocks import balanced, depths_of_blocks, longest_block
from tilewright.spec.epilogue import Bias

#: Run-time parameters of a chain, in the order of its C signature.
CHAIN_SIZES = ("m", "rs_x", "rs_y")

#: Blocks of rows of the usual GEMM in a block of a chain: every weight passes by once for a block. 1 and
#: 2 measured 5 and 2 % slower than 4 (layers of 1024x4096 and 4096x1024), 16 3 % (docs/decisions/019).
ROW_BLOCKS = 4


class _Layer:
    """One layer: its sizes, tile and buffers, and the nests on rows 0 .. rows of a block."""

    def __init__(self, problem: LinearChain, number: int, blocking: Blocking, one: TileFma) -> None:
        self.problem, self.number, self.blocking, self.one = problem, number, blocking, one
        self.inputs, self.outputs = problem.layers[number - 1]
        self.whole = -(-self.inputs // one.k) * one.k  # depths of a panel
        self.wide = -(-self.outputs // blocking.nr) * blocking.nr  # columns of whole tiles
        self.rows = minimum(blocking.mr, Name("rows") - Name("i"))
        self.columns = minimum(blocking.nr, Constant(self.outputs) - Name("j"))

    def buffers(self, held: int) -> tuple[Buffer, ...]:
        """Scratch for a block of so many rows: panels, tiles of sums, rows of sums, rows of results."""
        acc, kind, n = self.problem.types.acc, self.problem.dtype, self.number
        return (
            Buffer(f"panels{n}", self.one.a, Space.THREAD, held * self.whole),
            Buffer(f"tiles{n}", acc, Space.THREAD, held * self.wide),
            Buffer(f"sums{n}", acc, Space.THREAD, held * self.outputs),
            *((Buffer(f"rows{n}", kind, Space.THREAD, held * self.outputs),) if not self.is_last else ()),
        )

    @property
    def is_last(self) -> bool:
        """Whether the layer's results are those of the chain."""
        return self.number == len(self.problem.layers)

    def window(self, buffer: str, row: Expression | int, first: Expression | int = 0) -> Slice:
        """The rows of a block at (i, j), with the given row stride in elements."""
        i, j = Name("i"), Name("j")
        offset = i * row + j if first == 0 else (i + first) * row + j
        stride = row if isinstance(row, Expression) else Constant(row)
        return Slice(buffer, offset, (stride, Constant(1)))

    def tile(self) -> Slice:
        """The tile of sums at (i, j)."""
        mr, nr = self.blocking.mr, self.blocking.nr
        offset = Name("i") * self.wide + Name("j") * mr
        return Slice(f"tiles{self.number}", offset, (Constant(nr), Constant(1)))

    def over_tiles(self, *body: Statement) -> Loop:
        """Every register tile of the block, column after column of them."""
        rows = Loop("i", Constant(0), Name("rows"), Constant(self.blocking.mr), body)
        return Loop("j", Constant(0), Constant(self.outputs), Constant(self.blocking.nr), (rows,))

    def pack(self) -> Pack:
        """x, or the results of the layer before, into panels of the whole depth."""
        kr = self.one.interleave_a
        if self.number == 1:
            source = Slice("x", Name("ib") * Name("rs_x"), (Name("rs_x"), Constant(1)))
        else:
            source = Slice(f"rows{self.number - 1}", Constant(0), (Constant(self.inputs), Constant(1)))
        strides = (Constant(kr), Constant(kr * self.blocking.mr))
        panels = Slice(f"panels{self.number}", Constant(0), strides, interleave=kr)
        depth = Constant(self.inputs)
        return Pack(panels, source, Name("rows"), depth, self.blocking.mr, kr, self.one.k)

    def product(self) -> Loop:
        """mmt4d: panels times a packed weight into tiles, depth block by depth block."""
        mr, nr, kr, kr_a = self.blocking.mr, self.blocking.nr, self.one.kr, self.one.interleave_a
        i, j, pc = Name("i"), Name("j"), Name("pc")
        a = Slice(
            f"panels{self.number}",
            i * self.whole + pc * mr,
            (Constant(kr_a), Constant(kr_a * mr)),
            interleave=kr_a,
        )
        b = Slice(
            f"weight{self.number}", j * self.whole + pc * nr, (Constant(kr), Constant(kr * nr)), interleave=kr
        )
        tile = TileMatmul(
            c=self.tile(),
            a=a,
            b=b,
            rows=self.rows,
            columns=self.columns,
            depth=Name("depth"),
            tile=Tile(mr, nr, kr),
            alpha=Scalar(1.0),
            beta=FirstElse("pc", Scalar(0.0), Scalar(1.0)),
        )
        unit, chain = depth_unit(self.one), self.one.sum_depths
        most = longest_block(self.blocking.kc, unit, chain)
        kc = depths_of_blocks(Constant(self.inputs), most, unit, chain)
        depth = Let("depth", minimum(kc, Constant(self.inputs) - pc))
        work = Name("rows") * self.outputs * Name("depth")
        return Loop("pc", Constant(0), Constant(self.inputs), kc, (depth, Spend(work), self.over_tiles(tile)))

    def unpack(self) -> Loop:
        """Tiles into rows of sums."""
        rows = self.window(f"sums{self.number}", self.outputs)
        return self.over_tiles(self._moved(rows, self.tile()))

    def steps(self) -> Loop:
        """Epilogue steps between sums and results: bias and activation."""
        to = self.window(f"rows{self.number}", self.outputs)
        if self.is_last:
            to = self.window("y", Name("rs_y"), Name("ib"))
        applied = []
        for step in self.problem.epilogue(self.number - 1).steps:
            strides = (Constant(0), Constant(1))
            operand = Slice(f"bias{self.number}", Name("j"), strides) if isinstance(step, Bias) else None
            applied.append(Applied(step, operand))
        finish = Finish(tuple(applied)) if applied else None
        return self.over_tiles(self._moved(to, self.window(f"sums{self.number}", self.outputs), finish))

    def _moved(self, to: Slice, source: Slice, finish: Finish | None = None) -> TileEpilogue:
        return TileEpilogue(to, source, self.rows, self.columns, Scalar(1.0), Scalar(0.0), finish)


def rows_of_block(problem: LinearChain, blocking: Blocking, machine: Machine, one: TileFma) -> int:
    """Rows of x that go through all layers together, so that what is between two layers stays in cache.

    The panels of the widest layer take at most as much as the panel of B of one product.
    """
    most = int(panel_bytes(machine)) // one.a.bytes(max(problem.sizes))
    rows = min(ROW_BLOCKS * blocking.mc, most)
    return max(blocking.mr, rows // blocking.mr * blocking.mr)


def build_chain(problem: LinearChain, blocking: Blocking, machine: Machine, name: str) -> Program:
    """The tile IR of a chain, layer after layer, each of its nests by itself: see `ir.fuse`.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.macro.blocking import choose_blocking
    >>> machine = find_machine("znver5")
    >>> chain = LinearChain((64, 128), ("relu",))
    >>> program = build_chain(chain, choose_blocking(machine, machine.isa.tile(chain.dtype)), machine, "g")
    >>> [buffer.name for buffer in program.scratch]
    ['panels1', 'tiles1', 'sums1']
    """
    one = machine.isa.tile(problem.dtype)
    layers = [_Layer(problem, number, blocking, one) for number in range(1, len(problem.sizes))]
    held = rows_of_block(problem, blocking, machine, one)
    body: list[Statement] = [Let("rows", minimum(Name("block"), Name("m") - Name("ib")))]
    for layer in layers:
        body += [layer.pack(), layer.product(), layer.unpack(), layer.steps()]
    blocks = parallel("ib", Constant(0), Name("m"), Name("block"), *body)
    alone = balanced(Name("m"), held, blocking.mr)
    block = minimum(alone, share(Name("m"), blocking.mr, tasks(THREAD_TASKS)))
    arguments = []
    for operand in problem.operands:
        packed = operand.name.startswith("weight")
        arguments.append(Buffer(operand.name, one.b if packed else operand.dtype, Space.ARGUMENT))
    return Program(
        name=name,
        sizes=CHAIN_SIZES,
        scalars=(),
        buffers=(*arguments, *(buffer for layer in layers for buffer in layer.buffers(held))),
        body=(Let("block", block), blocks),
    )
