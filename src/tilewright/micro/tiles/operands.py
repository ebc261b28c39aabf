"""The operands of one register tile, as its micro-kernel receives them; strides in elements."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, int64
from tilewright.spec.dtype import DType

if TYPE_CHECKING:
    from tilewright.micro.tiles.steps import TileSteps


class TilePart(NamedTuple):
    """One straight-line tile: its rows, the lanes of each vector of a row, whether the last is masked."""

    rows: int
    widths: tuple[int, ...]
    masked: bool

    @property
    def fmas(self) -> int:
        """Multiply-adds of one depth, and accumulators."""
        return self.rows * len(self.widths)


class Source(NamedTuple):
    """How one operand of a tile is stored: its element type, and whether it is in packed panels.

    A panel holds elements of the instruction's own type, `kr` consecutive depths of a lane adjacent, in whole
    steps.
    """

    dtype: DType
    packed: bool = False


class OperandA(NamedTuple):
    """A: its first element, and the distance between rows and between steps of the depth."""

    pointer: Value
    lane: Value
    depth: Value


class PanelCall(NamedTuple):
    """Panels of a packed weight: lanes of each, and the distance between two panels."""

    lanes: int
    stride: Value


class OperandB(NamedTuple):
    """B: its first element, and the distance between steps of the depth.

    Attributes
    ----------
    row : distance between two depths of one step, where B is not packed and a step has several.
    panels : where B is the words of a packed weight, of which a tile reads several panels.
    """

    pointer: Value
    depth: Value
    row: Value | None = None
    panels: PanelCall | None = None


class OperandC(NamedTuple):
    """C: its first element, and the distance between rows.

    Attributes
    ----------
    rows : rows that C has, where a tile computes more; those of A beyond repeat the last one and are stored
        in its place.
    """

    pointer: Value
    row: Value
    rows: Value | None = None


class Update(NamedTuple):
    """How sums and C are combined: C = alpha · sums + beta · C.

    Attributes
    ----------
    alpha : None means 1.
    beta : None means that C is overwritten, or read as the next two say.
    added : C is added to the finished sums (alpha = beta = 1).
    chain : sums start with what C holds (alpha = beta = 1): always, or if a run-time condition holds.
    """

    alpha: Value | None = None
    beta: Value | None = None
    added: bool = False
    chain: Value | bool = False


class Prefetch(NamedTuple):
    """Rows to prefetch before the depth ends: the first element, the row stride, bytes of an element."""

    pointer: Value
    row: Value
    size: int


class Ahead(NamedTuple):
    """What steps of a known depth prefetch: the first one's place, and bytes from one step to the next."""

    pointer: Value
    step: int


class Copied(NamedTuple):
    """Where a tile writes what it reads of B: the first step's place, and bytes from one step to the next."""

    pointer: Value
    step: int


class FetchSlot(Enum):
    """What a tile that prefetches rows of B keeps in memory: its other steps have no registers to spare.

    INTO_L2 : whether lines are to stay in L2. TURN : an address from which on they are so many bytes ahead
    instead as BESIDE says, in the next column of tiles.
    """

    INTO_L2 = 0
    TURN = 1
    BESIDE = 2


class Fetch(NamedTuple):
    """Which row of B a step prefetches, and where to.

    Attributes
    ----------
    first_read : whether the tile is the first to read its rows, which then prefetches; None: it does.
    ahead : bytes from the row of a step to the one that it prefetches.
    slots : where the values of `FetchSlot` stand; None: rows are near, with the next panel behind the last.
    """

    first_read: Value | None
    ahead: Value
    slots: Value | None = None


class BatchCall(NamedTuple):
    """A batch of products: how many, the steps in elements; or arrays of pointers in place of A and B."""

    products: Value
    a_step: Value
    b_step: Value
    addresses: bool
    a_offset: Value = int64(0)  # bytes behind each pointer
    b_offset: Value = int64(0)


class KeptSums(NamedTuple):
    """Sums kept outside of C between the depth blocks of one product, in the type of the accumulators.

    At the first block they are not read, and after the last one they go to C.
    """

    sums: Value
    row: Value  # elements from one row of sums to the next
    first: Value
    last: Value


#: The place of the scales in `GroupCall.pointers`.
SCALE = 2


class GroupCall(NamedTuple):
    """Groups of depths, each with a scale of its own for every column, of the type of the accumulators.

    Scales are stored in panels of `lanes` columns, `panel_stride` elements from each other; `step` elements
    lead to those of the next group. Zero points, if there are any, are stored likewise.
    """

    depth: Value
    lanes: int
    panel_stride: Value
    scale: Value
    step: Value
    zero: Value | None

    def pointers(self, call: TileCall) -> list[Value]:
        """What moves from group to group: A, B, the scales and, where there are any, zero points."""
        return [call.a.pointer, call.b.pointer, self.scale, *([] if self.zero is None else [self.zero])]

    def one(self, f: Function, call: TileCall, first: Value, pointers: Sequence[Value]) -> TileCall:
        """The call for the one group that begins at a depth and these `pointers`."""
        a, b, scale, *zeros = pointers
        groups = self._replace(scale=scale, zero=zeros[0] if zeros else None)
        depth = f.minimum(self.depth, f.sub(call.depth, first))
        return call.moved(a, b)._replace(depth=depth, groups=groups, prefetch=None)

    def places(self, f: Function, pointer: Value, part: TilePart, size: int) -> list[Value]:
        """Addresses of the scales or zero points of each vector of columns, of one group."""
        found, before = [], 0
        for width in part.widths:
            panel, lane = divmod(before, self.lanes)
            start = f.at(pointer, f.mul(self.panel_stride, panel * size)) if panel else pointer
            found.append(f.at(start, lane * size))
            before += width
        return found


class TileCall(NamedTuple):
    """The operands of one tile, and what it does besides the plain product.

    Attributes
    ----------
    batch : several products are summed.
    carry : sums are kept outside of C between depth blocks.
    groups : sums of groups of depths are scaled.
    prefetch : rows to fetch before the depth ends: C, or what is read next.
    ahead : what each step of a known depth prefetches besides.
    copied : where B is written as a panel.
    fetch : which rows of B are prefetched, where the call is a part of a deeper one.
    steps : an epilogue on the values that are stored.
    padded : B has all columns of the tile.
    most_depth : a bound of the depth, if it is known to have one.
    first_read : whether the tile is the first to read its rows of B, which it then prefetches; None if it
        never does.
    far : rows of B are prefetched in any case.
    last_row : the number of the last row, which may be that of the row before; None: as many as a tile has.
    """

    columns: Value
    depth: Value
    a: OperandA
    b: OperandB
    c: OperandC
    update: Update = Update()
    batch: BatchCall | None = None
    carry: KeptSums | None = None
    groups: GroupCall | None = None
    prefetch: Prefetch | None = None
    ahead: Ahead | None = None
    copied: Copied | None = None
    fetch: Fetch | None = None
    steps: TileSteps | None = None
    padded: bool = False
    most_depth: int | None = None
    first_read: Value | None = None
    far: bool = False
    last_row: Value | None = None

    def row(self, number: int, rows: int) -> Value | int:
        """The number in memory of one of the rows that a tile computes."""
        return number if self.last_row is None or number < rows - 1 else self.last_row

    def copied_from(self, f: Function, depth: Value) -> TileCall:
        """The same call, whose copy of B begins at some depth of the panel."""
        if self.copied is None:
            return self
        pointer = f.at(self.copied.pointer, f.mul(depth, self.copied.step))
        return self._replace(copied=self.copied._replace(pointer=pointer))

    def moved(self, a: Value, b: Value) -> TileCall:
        """The same call on A and B at other addresses."""
        return self._replace(a=self.a._replace(pointer=a), b=self.b._replace(pointer=b))
