"""Nodes of tile IR: buffers, windows of them, loops, and the statements on windows.

A `Program` is a function of run-time sizes (64-bit integers), scalars and argument buffers. Its
body is a tree of `Let`, `Loop` and `If` around primitives on `Slice`s. A slice is a 2-D window of
a flat buffer: an element offset and two element strides (`expressions.py`), all affine in sizes, lets and
loop axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from tilewright.ir.expressions import AnyOf, Constant, Expression, ScalarValue
from tilewright.records import dataclass
from tilewright.spec.dtype import DType, accumulator
from tilewright.spec.epilogue import Step
from tilewright.spec.functions import UnaryOp
from tilewright.spec.parts import Parts
from tilewright.spec.weights import Elements

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

# --- buffers and slices -------------------------------------------------------------------------


class Space(Enum):
    """Who owns a buffer: the caller, all threads of a call, each thread, or the function's frame."""

    ARGUMENT = "argument"
    SHARED = "shared"
    THREAD = "thread"
    LOCAL = "local"


@dataclass(frozen=True)
class Buffer:
    """A flat array; scratch buffers have a size in elements, arguments end where the caller says."""

    name: str
    dtype: DType
    space: Space
    size: int | None = None


@dataclass(frozen=True)
class Panels:
    """Lanes of a window that are stored in panels: the lanes of each, and the distance between two panels."""

    lanes: int
    stride: Expression


@dataclass(frozen=True)
class Slice:
    """A 2-D window of a buffer: element (i, p) is at offset + i·strides[0] + p·strides[1].

    The first axis is the one a register tile spreads over lanes or rows (m of A, n of B, rows of
    C); the second is the depth (of A and B) or the columns (of C). With an index the buffer is an
    array of pointers, and the window lies behind the pointer of that index.

    With an interleave of q, q consecutive elements of the second axis are adjacent, and strides[1] leads
    to the next q: element (i, p) is at offset + i·strides[0] + (p // q)·strides[1] + p % q.

    With panels of l lanes, lane i is lane i % l of a panel that starts (i // l)·stride elements on.
    """

    buffer: str
    offset: Expression
    strides: tuple[Expression, Expression]
    index: Expression | None = None
    interleave: int = 1
    panels: Panels | None = None


@dataclass(frozen=True)
class Tile:
    """A register tile mr×nr; kr consecutive depths of a lane are adjacent in packed panels of B."""

    mr: int
    nr: int
    kr: int = 1


# --- statements ---------------------------------------------------------------------------------


class Execution(Enum):
    """How a loop runs: one iteration after the other, or each as a task of its own, in any order.

    No other task of the loop reads or writes what a task writes. The content of a THREAD buffer is undefined
    when a task begins, and after the loop.
    """

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"


@dataclass(frozen=True)
class Let:
    """Names the value of an expression for the statements that follow in the block."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Loop:
    """for axis = begin; axis < end; axis += step."""

    axis: str
    begin: Expression
    end: Expression
    step: Expression
    body: tuple[Statement, ...]
    execution: Execution = Execution.SEQUENTIAL

    def fused(self) -> tuple[Loop, ...]:
        """The loop and those directly inside it whose iterations are tasks together with its own.

        Before: ``parallel j: parallel i: body``. After: (j, i), whose tasks run the body of i.
        """
        match self.body:
            case (Loop(execution=Execution.PARALLEL) as inner,) if self.execution is Execution.PARALLEL:
                return (self, *inner.fused())
            case _:
                return (self,)


@dataclass(frozen=True)
class If:
    """One block or the other, decided by run-time sizes."""

    condition: AnyOf
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Stored:
    """The layout of a packed weight: its slice counts words, each of several depths of one column.

    Attributes
    ----------
    elements : what a word holds.
    zero : zero points (column, group), of float32; None where they are the middle of the elements' range.
    group : depths that share a zero point.
    """

    elements: Elements
    zero: Slice | None = None
    group: Expression = Constant(0)


@dataclass(frozen=True)
class Groups:
    """Sums of each group of depths are multiplied by scales (column, group), of float32, and then added."""

    scale: Slice
    depth: Expression


@dataclass(frozen=True)
class Pack:
    """Copies lanes × depth of `source` into micro-panels of `panel` lanes.

    Elements are converted to the destination's type, which holds every value of the source's. The lanes
    that the last panel lacks repeat the last lane of the source (so that a tile which computes them raises
    no floating-point flag of its own); depths beyond `depth`, up to a multiple of `unit`, are zero.

    Panel q starts at destination.offset + q·panel·depth (depth rounded up to unit); inside it, `kr`
    consecutive depths of one lane are adjacent, then the lanes, then the next kr depths.

    Of a `stored` source, panels of as many lanes, the integers less their zero points are packed; scales
    are left to the product (see `Groups`).
    """

    destination: Slice
    source: Slice
    lanes: Expression
    depth: Expression
    panel: int
    kr: int = 1
    unit: int = 1
    parts: Parts = Parts.WHOLE
    stored: Stored | None = None


#: Lanes of the panels of few rows or columns beside lines that are transposed in registers.
FEW_LANES = 4

#: Bits of a line that are loaded together: every instruction set interleaves inside of so many.
LINE_BITS = 128

#: Vectors of sums that a dot product adds to in turn: with two loads per multiply-add, four cover its latency
#: of 4 to 5 cycles.
DOT_SUMS = 4


class TileForm(Enum):
    """The direction of the vectors of a register tile.

    OUTER: along the columns of B, which are adjacent; each depth is an outer product. TRANSPOSED_B: few rows
    and whole columns; vectors of B are read along its adjacent depths and transposed in registers, and the
    rows of A are in panels of `FEW_LANES`. TRANSPOSED_A: the same with whole rows of A, and few columns of B
    in such panels. DOT: one column; vectors run along the depth, adjacent in A and in B, and each sum has an
    order of its own: that of `DOT_SUMS` vectors.
    """

    OUTER = "outer"
    TRANSPOSED_B = "turned"
    TRANSPOSED_A = "turned_a"
    DOT = "dot"


@dataclass(frozen=True)
class Batch:
    """A run of equal products summed in the accumulators: how many, and what leads to the next.

    a_step and b_step are elements from one operand to the next; where `addresses` holds, the slices
    of A and B instead name arrays of pointers, and their offsets apply behind each pointer.
    """

    count: Expression
    a_step: Expression
    b_step: Expression
    addresses: bool = False


@dataclass(frozen=True)
class Carry:
    """A buffer of unfinished sums, in the type of the accumulators, between the iterations of an axis.

    C, of a narrower type, would round them. The first iteration does not read them; the last one stores to C.
    """

    sums: Slice
    axis: str


@dataclass(frozen=True)
class Applied:
    """One step on a window of C; its operand is a window of the same size, where a stride of 0 repeats."""

    step: Step
    operand: Slice | None = None


@dataclass(frozen=True)
class Finish:
    """Steps between sums and the store of C, in their order.

    With an axis they are at its last iteration; before it, C holds unfinished sums or (see `Carry`) nothing.
    """

    steps: tuple[Applied, ...]
    axis: str | None = None


@dataclass(frozen=True)
class TileMatmul:
    """C[rows, columns] = alpha · Σ_p A[rows, p] · B[columns, p] + beta · C on one register tile.

    The border between macro and micro level: ``llvm.matrix.multiply`` in Kuzma et al. 2023. rows ≤ mr and
    columns ≤ nr; depth = 0 contributes 0 whatever alpha; beta = 0 does not read C.

    Sums go depth by depth, except those of dot products (see `TileForm`). With `carry`, sums of several depth
    blocks are collected before alpha and beta apply. With `stored`, B is stored as words. With `groups`, the
    sum is that of Σ_g scale_g · Σ_p, group by group. With `finish`, steps follow on the value that is stored.
    Before the depth ends C, or `fetched` in its place, is prefetched. With `ahead`, tiles of known sizes also
    prefetch what is read later, in each step of the depth a column of `ahead`. With `copied`, a tile of
    all its rows also writes B there, a panel for tiles of other rows. With `padded`, A and B have
    all rows and columns of the tile: those beyond `rows` and `columns` repeat the last ones. `sums` is the
    type of the sums where it is wider than products of A and B have by default. With `split`, elements of A
    are complex numbers that are adjacent along the depth, each of which is two depths (`Parts.SPLIT`). With
    `rotated`, those of B are complex too, each of which is two adjacent columns at two depths
    (`Parts.ROTATED`).
    """

    c: Slice
    a: Slice
    b: Slice
    rows: Expression
    columns: Expression
    depth: Expression
    tile: Tile
    alpha: ScalarValue
    beta: ScalarValue
    batch: Batch | None = None
    form: TileForm = TileForm.OUTER
    carry: Carry | None = None
    stored: Stored | None = None
    groups: Groups | None = None
    finish: Finish | None = None
    fetched: Slice | None = None
    ahead: Slice | None = None
    copied: Slice | None = None
    padded: bool = False
    sums: DType | None = None
    split: bool = False
    rotated: bool = False

    @property
    def depths_of_a(self) -> int:
        """Depths for each element of A."""
        return Parts.SPLIT.spread[1] if self.split else 1

    @property
    def spread_of_b(self) -> tuple[int, int]:
        """Columns and depths for each element of B."""
        return (Parts.ROTATED if self.rotated else Parts.WHOLE).spread


def sums_type(node: TileMatmul, a: DType, b: DType) -> DType:
    """The type of a tile's sums, given the elements of its operands in memory."""
    if node.sums is not None:
        return node.sums
    return accumulator(a.real, b.real if node.stored is None else node.stored.elements.value_type(a))


@dataclass(frozen=True)
class TileEpilogue:
    """C[rows, columns] = alpha · sums + beta · C, then steps; beta = 0 does not read C.

    The work between finished sums and the store, if sums were kept outside of C.
    """

    c: Slice
    sums: Slice
    rows: Expression
    columns: Expression
    alpha: ScalarValue
    beta: ScalarValue
    finish: Finish | None = None


class Traffic(Enum):
    """Where operands are expected, and so how a primitive moves them.

    NEAR: in the first-level cache. FAR: beyond it, so that the source is prefetched. STREAM: beyond
    every cache, so that whole lines of the destination are written past them.
    """

    NEAR = "near"
    FAR = "far"
    STREAM = "stream"


@dataclass(frozen=True)
class UnaryMap:
    """destination[rows, columns] = op(source[rows, columns]), element by element.

    The destination is the source itself or shares no memory with it; zero has no source. Slices whose
    adjacent axes differ make this a transposition.
    """

    op: UnaryOp
    destination: Slice
    source: Slice | None
    rows: Expression
    columns: Expression
    traffic: Traffic = Traffic.NEAR


class PrimitiveOperands(Protocol):
    """The fields of a primitive as numbers and arrays, while a program is interpreted."""

    def number(self, name: str) -> Any:
        """An integer or a scalar; None if the field is None."""
        ...

    def window(self, name: str, rows: int, columns: int, shift: int = 0) -> Array:
        """A window of the given size, `shift` elements further on."""
        ...

    def contiguous(self, name: str, elements: int) -> Array:
        """Adjacent elements from the first one of a window, whatever its strides."""
        ...

    def buffer(self, name: str) -> tuple[Array, int]:
        """The whole buffer of a window, and the index of the window's first element."""
        ...


@dataclass(frozen=True)
class Primitive:
    """Base of statements all of whose fields are windows, integers, scalars and choices (`ir/primitives/`).

    In text the name of each field precedes its value; a field that is None is left out.

    Attributes
    ----------
    word : the word that begins its text.
    emission : "module:function" of `micro` that writes its code.
    long : one of them may be any amount of work, so that it spends from its task's budget.
    choices : the enumeration of each field that is a member of one.
    """

    word: ClassVar[str]
    emission: ClassVar[str]
    long: ClassVar[bool] = False
    choices: ClassVar[Mapping[str, type[Enum]]] = {}

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Requirements on the windows, given their element types: whether each holds, and its text."""
        del types
        return iter(())

    def run(self, at: PrimitiveOperands) -> None:
        """The meaning of the primitive in NumPy: the oracle of its machine code."""
        raise NotImplementedError


Statement: TypeAlias = Let | Loop | If | Pack | UnaryMap | TileMatmul | TileEpilogue | Primitive


@dataclass(frozen=True)
class Program:
    """A function of sizes, scalars and buffers.

    Scalars are of `scalar_dtype`; by default of the type that products of the first two arguments have.
    """

    name: str
    sizes: tuple[str, ...]
    scalars: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    scalar_dtype: DType | None = None

    def buffer(self, name: str) -> Buffer:
        """The buffer of a name; KeyError if there is none."""
        for buffer in self.buffers:
            if buffer.name == name:
                return buffer
        raise KeyError(name)

    @property
    def arguments(self) -> tuple[Buffer, ...]:
        """Buffers the caller passes."""
        return tuple(buffer for buffer in self.buffers if buffer.space is Space.ARGUMENT)

    @property
    def needs_scratch(self) -> bool:
        """Whether callers pass a scratch pointer: every program with run-time scalars does."""
        return bool(self.scratch) or bool(self.scalars)

    @property
    def scratch(self) -> tuple[Buffer, ...]:
        """Buffers the run time provides."""
        shared = (Space.SHARED, Space.THREAD)
        return tuple(buffer for buffer in self.buffers if buffer.space in shared)
