"""The loops around unary operations: columns as they are, transposes cut for the caches."""

from __future__ import annotations

from tilewright.errors import InvalidSize
from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    Lead,
    Name,
    Relation,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.nodes import Buffer, If, Let, Loop, Program, Slice, Space, Statement, Traffic, UnaryMap
from tilewright.machine.machine import Machine
from tilewright.ops.unary.problem import Unary
from tilewright.records import dataclass
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Layout

#: Rows and columns of a block: its columns of A and rows of B may be on as many pages, and first-level
#: TLBs hold 64 to 96. Fewer rows leave nothing for diagonals of squares (docs/decisions/012-transposes.md).
BLOCK_SIDE = 64
#: At least so many lines on each side, where elements are small.
BLOCK_LINES = 2

#: Lines of B in each row of a block where rows are not whole lines apart and so are written one after the
#: other: a KiB, of which the stream prefetcher notices the first lines and fetches the others in time.
ROW_LINES = 16

#: Columns shorter than this many lines are not written past the caches: most of them would be lines' ends.
STREAMED_COLUMN_LINES = 64


@dataclass(frozen=True)
class Blocks:
    """Blocking of a unary operation; sizes in elements.

    Attributes
    ----------
    near : matrices of up to this many elements stay in L1 and are not cut.
    block : rows and columns of a block, whole lines.
    wide : columns of a block whose cache lines of B are not written whole.
    stream_from : matrices of at least this size are written with non-temporal stores.
    line_bytes : a cache line.
    """

    near: int
    block: int
    wide: int
    stream_from: int
    line_bytes: int

    def __post_init__(self) -> None:
        for name, value in self.__dict__.items():
            if value <= 0:
                raise InvalidSize(name=f"unary {name}", found=value, required="positive")


def choose_blocks(problem: Unary, machine: Machine) -> Blocks:
    """Choose the blocking of a unary operation on a machine.

    A and B fit into L1 together up to half of it each. Blocks are whole lines on both sides, so that a
    line which a leading dimension of a power of two would evict is used up at once. B bypasses the
    caches if it alone fills half of the last level: it would evict A and itself before anything
    reads it.

    >>> from tilewright.machine.catalog import find_machine
    >>> choose_blocks(Unary("identity"), find_machine("znver5")).block
    64
    """
    size, line = problem.dtype.size, machine.l1.line
    elements = max(1, line // size)
    last = machine.l3 or machine.l2
    return Blocks(
        near=machine.l1.size // (2 * size),
        block=max(BLOCK_SIDE, BLOCK_LINES * elements),
        wide=ROW_LINES * elements,
        stream_from=last.size // (2 * size),
        line_bytes=line,
    )


@dataclass(frozen=True)
class _Nest:
    """State shared by every nest of one unary operation: sizes, row and column strides of A and B."""

    problem: Unary
    blocks: Blocks
    m: Expression
    n: Expression
    a: tuple[Expression, Expression]
    b: tuple[Expression, Expression]
    led: bool = True  # the buffers begin with the first element, so that lines can be counted from there

    @property
    def elements(self) -> Expression:
        """Elements of each matrix."""
        return self.m * self.n

    def of_b(self, i: Expression, j: Expression) -> Slice:
        """B from an element on."""
        return Slice("b", i * self.b[0] + j * self.b[1], self.b)

    def of_a(self, i: Expression, j: Expression) -> Slice | None:
        """A from an element on; none for zero."""
        if self.problem.op is UnaryOp.ZERO:
            return None
        return Slice("a", i * self.a[0] + j * self.a[1], self.a)

    def block(
        self,
        place: tuple[Expression, Expression],
        size: tuple[Expression, Expression],
        traffic: Traffic,
    ) -> tuple[Statement, ...]:
        """One block of B from one of A."""
        (rows, columns), op = size, self.problem.op
        b, a = self.of_b(*place), self.of_a(*place)
        # A function of many instructions would be repeated for every vector of a square: it runs over the
        # block of B once more.
        if self.b[1] == Constant(1) and not op.single:
            moved = UnaryMap(UnaryOp.IDENTITY, b, a, rows, columns, traffic)
            return (moved, UnaryMap(op, b, b, rows, columns))
        return (UnaryMap(op, b, a, rows, columns, traffic),)


def _either(
    relation: Relation,
    left: Expression,
    right: Expression,
    then: tuple[Statement, ...],
    otherwise: tuple[Statement, ...],
) -> tuple[Statement, ...]:
    """Emit one statement or the other; the choice is made here if the comparison is constant."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        difference = left.value - right.value
        holds = {Relation.EQ: difference == 0, Relation.LE: difference <= 0, Relation.LT: difference < 0}
        return then if holds[relation] else otherwise
    condition = AnyOf((AllOf((Compare(relation, left, right),)),))
    return (If(condition, then, otherwise),)


def _columns(nest: _Nest) -> tuple[Statement, ...]:
    """Column by column; one long column where both leading dimensions are the number of rows.

    Before: m×n. After: (m·n)×1 where nothing lies between columns; long columns of what no cache holds
    go past them.
    """
    zero, one, blocks = Constant(0), Constant(1), nest.blocks
    long_column = STREAMED_COLUMN_LINES * blocks.line_bytes // nest.problem.dtype.size

    def cut(rows: Expression, columns: Expression) -> tuple[Statement, ...]:
        near = nest.block((zero, zero), (rows, columns), Traffic.NEAR)
        if not nest.problem.op.single:
            return near
        streamed = nest.block((zero, zero), (rows, columns), Traffic.STREAM)
        if columns != one:
            streamed = _either(Relation.LE, Constant(long_column), rows, streamed, near)
        return _either(Relation.LE, Constant(blocks.stream_from), nest.elements, streamed, near)

    leading = [nest.b[1]] if nest.problem.op is UnaryOp.ZERO else [nest.a[1], nest.b[1]]
    flat = AllOf(tuple(Compare(Relation.EQ, stride, nest.m) for stride in leading))
    return (If(AnyOf((flat,)), cut(nest.elements, one), cut(nest.m, nest.n)),)


def _transposed(nest: _Nest) -> tuple[Statement, ...]:
    """A transpose in blocks of whole cache lines.

    The first block of rows ends where a line of A begins, so that each line is read once: with a leading
    dimension of a power of two it would be evicted before its second half is needed. Where rows of B are
    whole lines apart, the first block of columns ends where a line of B begins, and lines are written
    whole; of matrices that no cache holds, past the caches.
    """
    blocks, zero = nest.blocks, Constant(0)
    i, j = Name("i"), Name("j")
    size = (Name("i_size"), Name("j_size"))

    def steps(first: str, extent: Expression, lead: Expression, step: int, *body: Statement) -> Loop:
        """Loop steps aligned to cache lines: the first step has the length of the lead."""
        axis, place = f"{first}c", Let(first, maximum(Name(f"{first}c"), 0))
        length = Let(f"{first}_size", minimum(Name(axis) + step, extent) - Name(first))
        return Loop(axis, lead - roundup(lead, step), extent, Constant(step), (place, length, *body))

    def rows(step: int, *body: Statement) -> Loop:
        return steps("i", nest.m, Name("top"), step, *body)

    def columns(step: int, lead: Expression, *body: Statement) -> Loop:
        return steps("j", nest.n, lead, step, *body)

    far, left = nest.block((i, j), size, Traffic.FAR), Name("left")
    by_lines: tuple[Statement, ...] = (rows(blocks.block, columns(blocks.block, left, *far)),)
    if nest.problem.op.single and nest.led:
        past = nest.block((i, j), size, Traffic.STREAM)
        streamed = columns(blocks.block, left, rows(blocks.block, *past))
        by_lines = _either(Relation.LE, Constant(blocks.stream_from), nest.elements, (streamed,), by_lines)
    line = max(1, blocks.line_bytes // nest.problem.dtype.size)
    leading = nest.b[0]
    through = _either(
        Relation.EQ,
        leading,
        roundup(leading, line),
        (Let("left", Lead("b", blocks.line_bytes) if nest.led else zero), *by_lines),
        (rows(blocks.block, columns(blocks.wide, zero, *far)),),
    )
    top = Let("top", Lead("a", blocks.line_bytes) if nest.led else zero)
    near = nest.block((zero, zero), (nest.m, nest.n), Traffic.NEAR)
    return _either(Relation.LE, nest.elements, Constant(blocks.near), near, (top, *through))


def _scattered(nest: _Nest) -> tuple[Statement, ...]:
    """Any strides: element by element, in blocks that keep the lines of both sides in L1."""
    zero, step = Constant(0), nest.blocks.block
    i, j = Name("i"), Name("j")
    size = (minimum(step, nest.m - i), minimum(step, nest.n - j))
    inner = Loop("j", zero, nest.n, Constant(step), nest.block((i, j), size, Traffic.NEAR))
    return (Loop("i", zero, nest.m, Constant(step), (inner,)),)


def lay_unary(
    problem: Unary,
    blocks: Blocks,
    sizes: tuple[Expression, Expression],
    strides: tuple[tuple[Expression, Expression], tuple[Expression, Expression]],
    *,
    led: bool,
) -> tuple[Statement, ...]:
    """B = op(A) on blocks of known strides: columns, a transpose, or element by element.

    Parameters
    ----------
    sizes : rows and columns.
    strides : of A and of B, by row and column.
    led : the buffers a and b begin with the first element of each.
    """
    a, b = strides
    nest, one = _Nest(problem, blocks, *sizes, a, b, led), Constant(1)
    if b[0] == one and (a[0] == one or problem.op is UnaryOp.ZERO):
        return _columns(nest)
    return _transposed(nest) if a[0] == b[1] == one else _scattered(nest)


def sizes_of(problem: Unary) -> tuple[str, ...]:
    """Run-time parameters behind the two pointers: Breuer, tnzr.compile, Listing 7.3.1, then sizes.

    >>> sizes_of(Unary("relu", 64, 48)), sizes_of(Unary("relu"))
    (('ld_a', 'ld_b'), ('ld_a', 'ld_b', 'm', 'n'))
    """
    strided = problem.a is Layout.STRIDED
    strides = ("rs_a", "cs_a", "rs_b", "cs_b") if strided else ("ld_a", "ld_b")
    return strides if problem.m is not None and problem.n is not None else (*strides, "m", "n")


def build_unary(problem: Unary, blocks: Blocks, name: str) -> Program:
    """The tile IR of a unary operation.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> problem = Unary("identity", 4, 4, b="row")
    >>> program = build_unary(problem, choose_blocks(problem, find_machine("neoverse-v2")), "kernel")
    >>> len(program.body)
    1
    """
    m = Name("m") if problem.m is None else Constant(problem.m)
    n = Name("n") if problem.n is None else Constant(problem.n)
    one, ld_a, ld_b = Constant(1), Name("ld_a"), Name("ld_b")
    if problem.a is Layout.STRIDED:
        body = _any_strides(problem, blocks, m, n)
    elif problem.b is Layout.COL:
        body = _columns(_Nest(problem, blocks, m, n, (one, ld_a), (one, ld_b)))
    elif problem.op is UnaryOp.ZERO:
        body = _columns(_Nest(problem, blocks, n, m, (one, ld_a), (one, ld_b)))
    else:
        body = _transposed(_Nest(problem, blocks, m, n, (one, ld_a), (ld_b, one)))
    buffers = tuple(Buffer(operand, problem.dtype, Space.ARGUMENT) for operand in ("a", "b"))
    return Program(name=name, sizes=sizes_of(problem), scalars=(), buffers=buffers, body=body)


def _any_strides(problem: Unary, blocks: Blocks, m: Expression, n: Expression) -> tuple[Statement, ...]:
    """The fastest nest the strides allow: columns, a transpose, or element by element."""
    one = Constant(1)
    rs_a, cs_a, rs_b, cs_b = (Name(word) for word in ("rs_a", "cs_a", "rs_b", "cs_b"))
    columns = _columns(_Nest(problem, blocks, m, n, (one, cs_a), (one, cs_b)))
    transposed = _transposed(_Nest(problem, blocks, m, n, (one, cs_a), (rs_b, one)))
    scattered = _scattered(_Nest(problem, blocks, m, n, (rs_a, cs_a), (rs_b, cs_b)))

    def both_one(first: Name, second: Name) -> AnyOf:
        return AnyOf((AllOf((Compare(Relation.EQ, first, one), Compare(Relation.EQ, second, one))),))

    return (If(both_one(rs_a, rs_b), columns, (If(both_one(rs_a, cs_b), transposed, scattered),)),)
