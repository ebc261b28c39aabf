"""Rules every tile IR program keeps; checked between stages and before anything is lowered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum

from tilewright.errors import InvalidTileIr, StepDtype
from tilewright.ir.expressions import (
    Binary,
    Constant,
    Expression,
    FirstElse,
    Lead,
    Name,
    Operator,
    Scalar,
    ScalarValue,
    TableEntry,
    Threads,
    Unless,
)
from tilewright.ir.nodes import (
    FEW_LANES,
    Execution,
    Finish,
    If,
    Let,
    Loop,
    Pack,
    Primitive,
    Program,
    Slice,
    Space,
    Statement,
    Stored,
    TileEpilogue,
    TileForm,
    TileMatmul,
    UnaryMap,
)
from tilewright.spec.dtype import F32, FUNCTION_DTYPES, I64, DType, Kind, accumulator, wider_sums
from tilewright.spec.epilogue import Epilogue
from tilewright.spec.functions import UnaryOp
from tilewright.spec.parts import Parts

#: Keywords that may appear in place of a name in the text of tile IR, and so cannot be names.
RESERVED = frozenset(
    ("min", "max", "ceildiv", "roundup", "unless", "lead", "threads", "element", "inf", "nan")
)


def is_name(word: str) -> bool:
    """Whether a word can name a program, size, scalar, buffer, let or axis, in text and in LLVM IR."""
    return word.isidentifier() and word.isascii() and word not in RESERVED


def _parts(node: Expression) -> Iterator[Expression]:
    """The expression and every expression inside it."""
    yield node
    match node:
        case Binary(_, left, right):
            yield from _parts(left)
            yield from _parts(right)
        case Unless(_, value) | TableEntry(_, value) | Lead(offset=value):
            yield from _parts(value)
        case Constant() | Name() | Threads():
            return
        case _:
            raise InvalidTileIr(where=repr(node), reason="is not an expression")


def _of_few(node: TileMatmul, few: Slice) -> bool:
    """Whether an operand has panels of a few lanes, and C takes plain sums."""
    lanes, depths = Constant(1), Constant(FEW_LANES)
    panels = few.panels is not None and few.panels.lanes == FEW_LANES and few.strides == (lanes, depths)
    plain = (node.alpha, node.beta) == (Scalar(1.0), Scalar(0.0))
    return panels and plain and node.carry is None and node.finish is None and node.groups is None


class _Verifier:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.buffers = {buffer.name: buffer for buffer in program.buffers}
        self.in_task = False

    def expression(self, node: Expression, scope: frozenset[str], where: str) -> None:
        for part in _parts(node):
            match part:
                case Name(name) if name not in scope:
                    raise InvalidTileIr(where=where, reason=f"{name!r} is not a size, let or axis in scope")
                case Lead(buffer, unit_bytes):
                    known = self.buffers.get(buffer)
                    if known is None or known.space is not Space.ARGUMENT:
                        raise InvalidTileIr(where=where, reason=f"{buffer!r} is not an argument buffer")
                    if unit_bytes <= 0 or unit_bytes & (unit_bytes - 1):
                        raise InvalidTileIr(where=where, reason=f"unit {unit_bytes} is not a power of two")
                case TableEntry(buffer):
                    held = self.buffers.get(buffer)
                    if held is None or held.dtype != I64:
                        raise InvalidTileIr(where=where, reason=f"{buffer!r} is not a buffer of i64")
                case Unless(scalar) if scalar not in self.program.scalars:
                    raise InvalidTileIr(where=where, reason=f"{scalar!r} is not a scalar parameter")
                case Binary(Operator.CEILDIV | Operator.ROUNDUP, _, Constant(divisor)) if divisor <= 0:
                    raise InvalidTileIr(where=where, reason=f"divisor {divisor} is not positive")

    def scalar(self, value: ScalarValue, axes: frozenset[str], where: str) -> None:
        parts = (value.first, value.rest) if isinstance(value, FirstElse) else (value,)
        if isinstance(value, FirstElse) and value.axis not in axes:
            raise InvalidTileIr(where=where, reason=f"{value.axis!r} is not an enclosing axis")
        for part in parts:
            if not isinstance(part, Scalar):
                raise InvalidTileIr(where=where, reason=f"{part!r} is not a scalar")
            if isinstance(part.value, str) and part.value not in self.program.scalars:
                raise InvalidTileIr(where=where, reason=f"{part.value!r} is not a scalar parameter")

    def slice(self, window: Slice, scope: frozenset[str], where: str) -> None:
        if window.buffer not in self.buffers:
            raise InvalidTileIr(where=where, reason=f"buffer {window.buffer!r} is not declared")
        index = () if window.index is None else (window.index,)
        if window.panels is not None:
            self.expression(window.panels.stride, scope, where)
            if window.panels.lanes <= 0:
                raise InvalidTileIr(where=where, reason="panels have at least one lane")
        for part in (window.offset, *window.strides, *index):
            self.expression(part, scope, where)
        if window.interleave <= 0:
            raise InvalidTileIr(where=where, reason="an interleave must be positive")

    def block(self, body: tuple[Statement, ...], scope: frozenset[str], axes: frozenset[str]) -> None:
        for statement in body:
            match statement:
                case Let(name, value):
                    self.expression(value, scope, f"let {name}")
                    self.fresh(name, scope, f"let {name}")
                    scope = scope | {name}
                case Loop(execution=Execution.PARALLEL):
                    self.tasks(statement, scope, axes)
                case Loop(axis, begin, end, step, inner):
                    for part in (begin, end, step):
                        self.expression(part, scope, f"loop {axis}")
                    if isinstance(step, Constant) and step.value <= 0:
                        raise InvalidTileIr(where=f"loop {axis}", reason=f"step {step.value} is not positive")
                    self.fresh(axis, scope, f"loop {axis}")
                    self.block(inner, scope | {axis}, axes | {axis})
                case If(condition, then, otherwise):
                    if not condition.terms or not all(part.terms for part in condition.terms):
                        raise InvalidTileIr(where="if", reason="a condition has at least one comparison")
                    for conjunction in condition.terms:
                        for term in conjunction.terms:
                            self.expression(term.left, scope, "if")
                            self.expression(term.right, scope, "if")
                    self.block(then, scope, axes)
                    self.block(otherwise, scope, axes)
                case Pack():
                    self.pack(statement, scope)
                case UnaryMap():
                    self.unary(statement, scope)
                case TileMatmul():
                    self.matmul(statement, scope, axes)
                case TileEpilogue():
                    self.epilogue(statement, scope, axes)
                case Primitive():
                    self.primitive(statement, scope, axes)
                case _:
                    raise InvalidTileIr(where=repr(statement), reason="is not a statement")

    def tasks(self, loop: Loop, scope: frozenset[str], axes: frozenset[str]) -> None:
        """A parallel loop: tasks have no order, so no first and no last one, and no tasks of their own."""
        if self.in_task:
            raise InvalidTileIr(where=f"loop {loop.axis}", reason="a task has no parallel loops")
        inside = scope
        for one in loop.fused():
            for part in (one.begin, one.end, one.step):
                self.expression(part, scope, f"loop {one.axis}")
            if isinstance(one.step, Constant) and one.step.value <= 0:
                raise InvalidTileIr(where=f"loop {one.axis}", reason=f"step {one.step.value} is not positive")
            self.fresh(one.axis, inside, f"loop {one.axis}")
            inside |= {one.axis}
        self.in_task = True
        self.block(one.body, inside, axes)
        self.in_task = False

    def fresh(self, name: str, scope: frozenset[str], where: str) -> None:
        if not is_name(name):
            raise InvalidTileIr(where=where, reason=f"{name!r} is not a name")
        if name in scope or name in self.program.scalars or name in self.buffers:
            raise InvalidTileIr(where=where, reason=f"{name!r} is already in use")

    def pack(self, node: Pack, scope: frozenset[str]) -> None:
        where = f"pack {node.destination.buffer}"
        self.slice(node.destination, scope, where)
        self.slice(node.source, scope, where)
        self.expression(node.lanes, scope, where)
        self.expression(node.depth, scope, where)
        if min(node.panel, node.kr, node.unit) <= 0:
            raise InvalidTileIr(where=where, reason="panel, kr and unit must be positive")
        if node.unit % node.kr:
            raise InvalidTileIr(where=where, reason=f"unit {node.unit} is not a multiple of kr {node.kr}")
        to, source = (self.buffers[window.buffer].dtype for window in (node.destination, node.source))
        if node.stored is not None:
            self.stored(node.stored, node.source, scope, where)
            source = node.stored.elements.value_type(to)
        counts = source.is_integer and to.kind is Kind.FLOAT and to.significand >= source.significand
        if not (counts or to.holds(source.real)) or (node.parts is Parts.WHOLE) is (
            source.kind is Kind.COMPLEX
        ):
            raise InvalidTileIr(where=where, reason=f"{source} can't be packed as {node.parts.value} {to}")
        if node.parts is not Parts.WHOLE and node.kr != 1:
            raise InvalidTileIr(where=where, reason="parts of complex numbers are not interleaved")
        if node.destination.buffer == node.source.buffer:
            raise InvalidTileIr(where=where, reason="the destination must be another buffer than the source")

    def unary(self, node: UnaryMap, scope: frozenset[str]) -> None:
        where = f"unary {node.destination.buffer}"
        windows = [node.destination] if node.source is None else [node.destination, node.source]
        for window in windows:
            self.slice(window, scope, where)
        self.expression(node.rows, scope, where)
        self.expression(node.columns, scope, where)
        if (node.source is None) is not (node.op is UnaryOp.ZERO):
            raise InvalidTileIr(where=where, reason="zero has no source, every other operation has one")
        element, *others = (self.buffers[window.buffer].dtype for window in windows)
        if others and others[0] != element:
            self.cast(node, (others[0], element), where)
        if node.op.computes and element not in FUNCTION_DTYPES:
            needed = " or ".join(map(str, FUNCTION_DTYPES))
            raise InvalidTileIr(where=where, reason=f"{node.op.value} needs {needed}, not {element}")

    def cast(self, node: UnaryMap, types: tuple[DType, DType], where: str) -> None:
        """Identity between two types of floats converts; its windows are adjacent alike."""
        assert node.source is not None
        adjacent = node.destination.strides[0] == node.source.strides[0] == Constant(1)
        if node.op is not UnaryOp.IDENTITY or not adjacent or not set(types) <= set(FUNCTION_DTYPES):
            raise InvalidTileIr(where=where, reason="source and destination differ in element type")

    def matmul(self, node: TileMatmul, scope: frozenset[str], axes: frozenset[str]) -> None:
        where = f"matmul {node.c.buffer}"
        for window in filter(None, (node.c, node.a, node.b, node.fetched, node.ahead, node.copied)):
            self.slice(window, scope, where)
        for part in (node.rows, node.columns, node.depth):
            self.expression(part, scope, where)
        if node.batch is not None:
            for part in (node.batch.count, node.batch.a_step, node.batch.b_step):
                self.expression(part, scope, where)
        self.scalar(node.alpha, axes, where)
        self.scalar(node.beta, axes, where)
        self.form(node, where)
        if node.carry is not None:
            self.slice(node.carry.sums, scope, where)
            if node.carry.axis not in axes:
                raise InvalidTileIr(where=where, reason=f"{node.carry.axis!r} is not an enclosing axis")
        if min(node.tile.mr, node.tile.nr, node.tile.kr) <= 0:
            raise InvalidTileIr(where=where, reason="mr, nr and kr must be positive")
        a, b, c = (self.buffers[window.buffer].dtype for window in (node.a, node.b, node.c))
        if node.groups is not None:
            self.weights(node.groups.scale, node.groups.depth, scope, where)
        if node.stored is not None:
            self.stored(node.stored, node.b, scope, where)
            b = node.stored.elements.value_type(a)
        if node.split is not (a.kind is Kind.COMPLEX):
            verb = "splits" if node.split else "does not split"
            raise InvalidTileIr(where=where, reason=f"a tile {verb} {a}")
        if node.rotated is not (b.kind is Kind.COMPLEX) or (node.rotated and not node.split):
            raise InvalidTileIr(where=where, reason=f"a tile of {a} can't read {b} in B")
        if node.copied is not None:
            self.copied(node, node.copied, where)
        a, b = a.real, b.real
        if a.is_integer != b.is_integer or (node.finish is None and a.is_integer != c.is_integer):
            raise InvalidTileIr(where=where, reason=f"{c} can't hold products of {a} and {b}")
        sums = accumulator(a, b) if node.sums is None else node.sums
        if sums != accumulator(a, b) and sums not in wider_sums(accumulator(a, b)):
            raise InvalidTileIr(where=where, reason=f"sums of {sums} can't hold products of {a} and {b}")
        self.finish(node.finish, (sums, c), scope, axes, where)
        waits = node.finish is not None and node.finish.axis is not None and node.carry is None
        if waits and c.is_integer != a.is_integer:
            raise InvalidTileIr(where=where, reason=f"{c} can't hold unfinished sums of {a} and {b}")

    def copied(self, node: TileMatmul, panel: Slice, where: str) -> None:
        """A panel that a tile writes: of B's own elements, a depth after another, by one whole product."""
        if self.buffers[panel.buffer].dtype != self.buffers[node.b.buffer].dtype:
            raise InvalidTileIr(where=where, reason="a copy of B has another element type")
        if panel.strides != (Constant(1), Constant(node.tile.nr)) or node.rows != Constant(node.tile.mr):
            raise InvalidTileIr(where=where, reason="a tile of whole height copies B, into rows of a panel")
        if any(part is not None for part in (node.batch, node.stored, node.finish, node.carry)):
            raise InvalidTileIr(where=where, reason="only tiles of plain products copy B")

    def stored(self, how: Stored, window: Slice, scope: frozenset[str], where: str) -> None:
        """A packed weight: words of its type, in panels."""
        if self.buffers[window.buffer].dtype != how.elements.storage:
            raise InvalidTileIr(
                where=where, reason=f"words of {how.elements.value} must be stored as {how.elements.storage}"
            )
        if window.panels is None or window.strides[0] != Constant(how.elements.unit):
            raise InvalidTileIr(where=where, reason="words must be in panels, with those of a depth adjacent")
        if how.zero is not None:
            self.weights(how.zero, how.group, scope, where)

    def weights(self, window: Slice, group: Expression, scope: frozenset[str], where: str) -> None:
        """Scales or zero points: float32, in panels."""
        self.slice(window, scope, where)
        self.expression(group, scope, where)
        if self.buffers[window.buffer].dtype != F32:
            raise InvalidTileIr(where=where, reason="scales and zero points are f32")
        if window.panels is None or window.strides[0] != Constant(1):
            raise InvalidTileIr(
                where=where, reason="scales must be in panels, with those of a group adjacent"
            )
        if isinstance(group, Constant) and group.value <= 0:
            raise InvalidTileIr(where=where, reason=f"a group of {group.value} depths is not positive")

    def form(self, node: TileMatmul, where: str) -> None:
        one = Constant(1)
        rules: tuple[tuple[bool, str], ...]
        match node.form:
            case TileForm.OUTER:
                adjacent = node.b.strides[0] == Constant(node.b.interleave)
                rules = ((adjacent, "lanes of B must be adjacent (first stride 1, or the interleave)"),)
            case TileForm.TRANSPOSED_B:
                rules = (
                    (node.b.strides[1] == one, "depths of B must be adjacent (second stride 1)"),
                    (node.c.strides[1] == one, "columns of C must be adjacent (second stride 1)"),
                    (node.columns == Constant(node.tile.nr), "a turned tile has all of its columns"),
                    (_of_few(node, node.a), "rows of A must be in panels, and C take plain sums"),
                )
            case TileForm.TRANSPOSED_A:
                rules = (
                    (node.a.strides[1] == one, "depths of A must be adjacent (second stride 1)"),
                    (node.c.strides[1] == one, "columns of C must be adjacent (second stride 1)"),
                    (node.rows == Constant(node.tile.mr), "a tile of turned rows has all of them"),
                    (_of_few(node, node.b), "columns of B must be in panels, and C take plain sums"),
                )
            case TileForm.DOT:
                rules = (
                    (node.a.strides[1] == one, "depths of A must be adjacent (second stride 1)"),
                    (node.b.strides[1] == one, "depths of B must be adjacent (second stride 1)"),
                    (node.columns == one, "a dot product has one column"),
                )
        if node.form in (TileForm.TRANSPOSED_A, TileForm.TRANSPOSED_B):
            types = {self.buffers[part.buffer].dtype.real for part in (node.a, node.b, node.c)}
            rules = (*rules, (len(types) == 1, "the operands of a turned tile have one type"))
        if node.rotated:
            plain = node.b.interleave == 1 and node.b.panels is None and node.form is TileForm.OUTER
            rules = (*rules, (plain, "complex elements of B must be in place"))
        if node.split:
            adjacent = node.a.strides[1] == one and node.a.interleave == 1
            rules = (*rules, (adjacent, "complex elements of A must be adjacent along the depth"))
        for holds, reason in rules:
            if not holds:
                raise InvalidTileIr(where=where, reason=reason)
        if node.form is not TileForm.OUTER and node.batch is not None:
            raise InvalidTileIr(where=where, reason=f"a {node.form.value} tile has no batch")

    def epilogue(self, node: TileEpilogue, scope: frozenset[str], axes: frozenset[str]) -> None:
        where = f"epilogue {node.c.buffer}"
        for window in (node.c, node.sums):
            self.slice(window, scope, where)
        for part in (node.rows, node.columns):
            self.expression(part, scope, where)
        self.scalar(node.alpha, axes, where)
        self.scalar(node.beta, axes, where)
        if node.sums.strides[1] != Constant(1):
            raise InvalidTileIr(where=where, reason="columns of the sums must be adjacent (second stride 1)")
        c, sums = (self.buffers[window.buffer].dtype for window in (node.c, node.sums))
        self.finish(node.finish, (sums, c), scope, axes, where)

    def primitive(self, node: Primitive, scope: frozenset[str], axes: frozenset[str]) -> None:
        """A statement of windows, integers, scalars and choices, with rules of its own."""
        for field in fields(node):
            where = f"{node.word} {field.name}"
            match getattr(node, field.name):
                case None:
                    continue
                case Slice() as window:
                    self.slice(window, scope, where)
                case Expression() as value:
                    self.expression(value, scope, where)
                case Enum() as word:
                    if not isinstance(word, node.choices.get(field.name, ())):
                        raise InvalidTileIr(where=where, reason=f"{word} is not a choice of this field")
                case scalar:
                    self.scalar(scalar, axes, where)
        windows = {field.name: getattr(node, field.name) for field in fields(node)}
        types = {
            name: self.buffers[window.buffer].dtype
            for name, window in windows.items()
            if isinstance(window, Slice)
        }
        for holds, reason in node.rules(types):
            if not holds:
                raise InvalidTileIr(where=node.word, reason=reason)

    def finish(
        self,
        node: Finish | None,
        types: tuple[DType, DType],
        scope: frozenset[str],
        axes: frozenset[str],
        where: str,
    ) -> None:
        """The steps between sums and C, given their types; their result must narrow to C."""
        value, c = types
        if node is not None:
            if node.axis is not None and node.axis not in axes:
                raise InvalidTileIr(where=where, reason=f"{node.axis!r} is not an enclosing axis")
            steps = Epilogue(one.step for one in node.steps)
            try:
                typed = steps.typed(value, c)
            except StepDtype as error:
                raise InvalidTileIr(where=where, reason=str(error)) from None
            for one, known in zip(node.steps, typed, strict=True):
                if (one.operand is None) is not (known.operand is None):
                    raise InvalidTileIr(where=where, reason=f"{one.step} has an operand too many or too few")
                if one.operand is not None:
                    self.slice(one.operand, scope, where)
                    found = self.buffers[one.operand.buffer].dtype
                    if one.step != known.step or known.element != found:
                        raise InvalidTileIr(where=where, reason=f"{one.step} reads elements of {found}")
            value = c if steps.saturates else typed[-1].dtype
        if c.is_integer != value.is_integer or c.bits > value.bits:
            raise InvalidTileIr(where=where, reason=f"sums of {types[0]} do not narrow to {c}")


def verify(program: Program) -> Program:
    """The program itself, or `InvalidTileIr` naming the statement and the rule it breaks."""
    names = [*program.sizes, *program.scalars, *(buffer.name for buffer in program.buffers)]
    for name in (program.name, *names):
        if not is_name(name):
            raise InvalidTileIr(where=program.name, reason=f"{name!r} is not a name")
    if len(set(names)) != len(names):
        raise InvalidTileIr(where=program.name, reason="a size, scalar or buffer is declared twice")
    for buffer in program.buffers:
        if (buffer.size is None) != (buffer.space is Space.ARGUMENT):
            raise InvalidTileIr(
                where=f"buffer {buffer.name}", reason="scratch has a size, an argument has none"
            )
    _Verifier(program).block(program.body, frozenset(program.sizes), frozenset())
    return program
