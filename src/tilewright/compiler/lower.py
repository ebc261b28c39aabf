"""Tile IR to LLVM: the only place where ir, micro and llvm meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from tilewright.errors import InvalidTileIr
from tilewright.ir.nodes import (
    AnyOf,
    Binary,
    Carry,
    Constant,
    Element,
    Epilogue,
    Execution,
    Expression,
    Finish,
    FirstElse,
    Form,
    If,
    Lead,
    Let,
    Loop,
    Name,
    Operator,
    Pack,
    Primitive,
    Program,
    Scalar,
    ScalarValue,
    Slice,
    Space,
    Statement,
    Stored,
    Threads,
    TileMatmul,
    Traffic,
    Unary,
    Unless,
)
from tilewright.ir.separate import separate_steps
from tilewright.ir.verify import verify
from tilewright.llvm.build import Function, Module
from tilewright.llvm.target import data_layout, tuning
from tilewright.llvm.team import BODY_ARGUMENTS, Environment, Team
from tilewright.llvm.values import (
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    constant,
    element_type,
    int64,
    memory_type,
    zero,
)
from tilewright.machine.isa import MATRIX_MULTIPLY, Broadcast
from tilewright.machine.machine import Machine
from tilewright.micro.budget import OPERAND, Budget
from tilewright.micro.packing.pack import PackKernel
from tilewright.micro.packing.unpack import UnpackKernel
from tilewright.micro.tiles.dispatch import Dispatch, DispatchedWeights, TileStrides
from tilewright.micro.tiles.dot import DotKernel
from tilewright.micro.tiles.engine import EngineKernel
from tilewright.micro.tiles.epilogue import EpilogueKernel, Given, Reach
from tilewright.micro.tiles.generic import GenericKernel
from tilewright.micro.tiles.kernel import (
    BatchCall,
    GroupCall,
    KeptSums,
    MicroKernel,
    PanelCall,
    Source,
    TileCall,
)
from tilewright.micro.tiles.panels import PanelKernel
from tilewright.micro.tiles.transposed_b import TurnedKernel
from tilewright.micro.tiles.vector import VectorKernel
from tilewright.preparing import importing
from tilewright.spec.dtype import DType, Kind, accumulator
from tilewright.spec.epilogue import Activation

#: Scratch buffers start on pages, shifted by one line each so that their heads fall into different sets.
SCRATCH_ALIGNMENT = 4096
SCRATCH_STAGGER = 1024

#: Depths from which C is added to finished sums; before, starting the sums with C saves as much as it waits
#: (docs/decisions/010-add-c-last.md).
ADDED_LAST_DEPTH = 4

#: Buffers in the frame start on a cache line.
LOCAL_ALIGNMENT = 64


#: Pointers that registers hold. LLVM takes long over loops around which there are more, and where these only
#: make tasks what it finds is not felt.
FEW_POINTERS = 16


class ScratchLayout(NamedTuple):
    """Where the scratch buffers of a program stand in one block of memory.

    Attributes
    ----------
    offsets : bytes from the start of the block; of a thread's buffers, those of thread 0.
    bytes : size of the block for one thread.
    thread_bytes : from one thread's buffers to the next thread's; each further thread takes as many more.
    """

    offsets: dict[str, int]
    bytes: int
    thread_bytes: int

    def size(self, threads: int) -> int:
        """Size of the block for some threads."""
        return self.bytes + (threads - 1) * self.thread_bytes


def scratch_layout(program: Program) -> ScratchLayout:
    """What all threads share first, then one part for each thread."""
    offsets: dict[str, int] = {}
    ends: list[int] = [0]
    number = 0
    for space in (Space.SHARED, Space.THREAD):
        for buffer in program.scratch:
            if buffer.space is not space:
                continue
            assert buffer.size is not None
            start = _up(ends[-1]) + number * SCRATCH_STAGGER
            offsets[buffer.name] = start
            ends.append(start + buffer.size * buffer.dtype.size)
            number += 1
        if space is Space.SHARED:
            shared = ends[-1]
    return ScratchLayout(offsets, ends[-1], _up(ends[-1]) - shared // SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT)


def _up(size: int) -> int:
    """Rounded up to whole pages."""
    return -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT


@dataclass
class _Scope:
    """Values in scope: names, where axes begin, whether they are at their last iteration."""

    names: dict[str, Value]
    begins: dict[str, Value] = field(default_factory=dict)
    lasts: dict[str, Value] = field(default_factory=dict)

    def child(self, **names: Value) -> _Scope:
        return _Scope(self.names | names, dict(self.begins), dict(self.lasts))


class _Lowering:
    def __init__(self, program: Program, machine: Machine, module: Module, function: Function) -> None:
        self.program, self.machine, self.module, self.f = program, machine, module, function
        self.scalars = {name: function.arguments[name] for name in program.scalars}
        self.scalar_type = scalar_type(program)
        self.alike = len(set(_strides(program.body))) == 1
        self.pointers = {buffer.name: function.arguments[buffer.name] for buffer in program.arguments}
        self.team = Team.of(function, function.arguments["team"]) if has_tasks(program) else None
        if program.scratch:
            self.place_scratch(function.arguments["scratch"], int64(0))
        self.place_locals()
        self.budget = self.begin_budget(program.body)

    def begin_budget(self, body: tuple[Statement, ...]) -> Value | None:
        """The budget of the function being emitted, or None if it has no long-running work."""
        if self.team is None or not any(map(_is_long, body)):
            return None
        return Budget.begin(self.f, self.team.pointer).place

    def place_scratch(self, scratch: Value, thread: Value) -> None:
        """The scratch buffers, as a thread has them."""
        layout = scratch_layout(self.program)
        own = self.f.at(scratch, self.f.mul(thread, layout.thread_bytes))
        for buffer in self.program.scratch:
            block = scratch if buffer.space is Space.SHARED else own
            self.pointers[buffer.name] = self.f.at(block, layout.offsets[buffer.name])

    def place_locals(self) -> None:
        """The buffers in the frame of the function that is being written."""
        for buffer in self.program.buffers:
            if buffer.space is Space.LOCAL:
                assert buffer.size is not None
                kind = memory_type(buffer.dtype)
                self.pointers[buffer.name] = self.f.alloca(kind, buffer.size, LOCAL_ALIGNMENT)

    def dtype(self, buffer: str) -> DType:
        return self.program.buffer(buffer).dtype

    # --- expressions ------------------------------------------------------------------------

    def integer(self, node: Expression, scope: _Scope) -> Value:
        match node:
            case Constant(value):
                return int64(value)
            case Name(name):
                return scope.names[name]
            case Lead(buffer, unit_bytes):
                address = self.f.ptrtoint(self.pointers[buffer])
                lead_bytes = self.f.and_(self.f.sub(int64(0), address), int64(unit_bytes - 1))
                return self.f.ashr(lead_bytes, int64(self.dtype(buffer).size.bit_length() - 1))
            case Element(buffer, index):
                place = self.f.at(self.pointers[buffer], self.f.mul(self.integer(index, scope), 8))
                return self.f.load(INT64, place, 8)
            case Threads():
                return int64(1) if self.team is None else self.team.threads
            case Unless(scalar, value):
                given = self.scalars[scalar]
                some = self.f.not_equal(given, zero(given.type))
                return self.f.select(some, self.integer(value, scope), int64(0))
            case Binary(operator, left, right):
                return self.binary(operator, self.integer(left, scope), self.integer(right, scope))
            case _:
                raise InvalidTileIr(where=repr(node), reason="is not an expression")

    def binary(self, operator: Operator, left: Value, right: Value) -> Value:
        f = self.f
        match operator:
            case Operator.ADD:
                return f.add(left, right)
            case Operator.SUB:
                return f.sub(left, right)
            case Operator.MUL:
                return f.mul(left, right)
            case Operator.MIN:
                return f.minimum(left, right)
            case Operator.MAX:
                return f.maximum(left, right)
            case Operator.CEILDIV:
                return f.ceildiv(left, right)
            case Operator.ROUNDUP:
                return f.mul(f.ceildiv(left, right), right)

    def scalar(self, value: ScalarValue, dtype: DType, scope: _Scope) -> Value:
        match value:
            case Scalar(content) if isinstance(content, str):
                return self.scalars[content]
            case Scalar(content):
                return constant(dtype, float(content))
            case FirstElse(axis, first, rest):
                at_first = self.at_first(axis, scope)
                return self.f.select(
                    at_first, self.scalar(first, dtype, scope), self.scalar(rest, dtype, scope)
                )
            case _:
                raise InvalidTileIr(where=repr(value), reason="is not a scalar")

    def at_first(self, axis: str, scope: _Scope) -> Value:
        """Whether this is the first iteration of an axis."""
        return self.f.icmp("==", scope.names[axis], scope.begins[axis])

    def condition(self, condition: AnyOf, scope: _Scope) -> Value:
        f = self.f
        anything: Value | None = None
        for conjunction in condition.terms:
            every: Value | None = None
            for term in conjunction.terms:
                left, right = self.integer(term.left, scope), self.integer(term.right, scope)
                test = f.icmp(term.relation.value, left, right)
                every = test if every is None else f.and_(every, test)
            assert every is not None
            anything = every if anything is None else f.or_(anything, every)
        assert anything is not None
        return anything

    def slice(self, window: Slice, scope: _Scope) -> tuple[Value, Value, Value]:
        """Pointer to the first element and the two strides in elements."""
        offset = self.offset_bytes(window, scope)
        first, second = (self.integer(stride, scope) for stride in window.strides)
        base = self.pointers[window.buffer]
        if window.index is not None:
            base = self.f.load(POINTER, self.f.at(base, self.f.mul(self.integer(window.index, scope), 8)), 8)
        return self.f.at(base, offset), first, second

    def offset_bytes(self, window: Slice, scope: _Scope) -> Value:
        """Where the window starts in its buffer."""
        return self.f.mul(self.integer(window.offset, scope), self.dtype(window.buffer).size)

    # --- statements -------------------------------------------------------------------------

    def block(self, body: tuple[Statement, ...], scope: _Scope) -> None:
        scope = scope.child()
        for statement in body:
            match statement:
                case Let(name, value):
                    scope.names[name] = self.integer(value, scope)
                case Loop():
                    self.loop(statement, scope)
                case If(condition, then, otherwise):
                    with self.f.branch(self.condition(condition, scope)) as (on_true, on_false):
                        with on_true:
                            self.block(then, scope)
                        with on_false:
                            self.block(otherwise, scope)
                case Pack():
                    self.pack(statement, scope)
                case Unary():
                    self.unary(statement, scope)
                case TileMatmul():
                    self.matmul(statement, scope)
                case Epilogue():
                    self.epilogue(statement, scope)
                case Primitive():
                    self.primitive(statement, scope)
                case _:
                    raise InvalidTileIr(where=repr(statement), reason="is not a statement")
            if not scope.begins and isinstance(statement, (Loop, Unary)) and _streams(statement):
                self.f.fence()

    def primitive(self, node: Primitive, scope: _Scope) -> None:
        """A statement of windows, integers and scalars: a call of the function that its row makes."""
        # The elementwise functions take 3 ms to import, which products need not pay.
        with importing:
            from tilewright.compiler.primitives import emitter
            from tilewright.micro.calls import Window

        operands: dict[str, Window | Value | None] = {}
        if node.long and self.budget is not None:
            operands[OPERAND] = self.budget
        for name in (part.name for part in fields(node)):
            match getattr(node, name):
                case None:
                    operands[name] = None
                case Slice() as window:
                    operands[name] = Window(*self.slice(window, scope), self.dtype(window.buffer))
                case Expression() as value:
                    operands[name] = self.integer(value, scope)
                case value:
                    operands[name] = self.scalar(value, self.scalar_type, scope)
        emitter(type(node))(self.f, self.machine.isa, operands)
        if OPERAND in operands:
            Budget(self.f, self.budget).end_if_stopped()

    def loop(self, node: Loop, scope: _Scope) -> None:
        if node.execution is Execution.PARALLEL:
            self.tasks(node, scope)
            return
        begin, end, step = (self.integer(part, scope) for part in (node.begin, node.end, node.step))
        with self.f.loop(begin, end, step, node.axis) as position:
            inner = scope.child(**{node.axis: position})
            inner.begins[node.axis] = begin
            if _carries(node.body, node.axis):
                inner.lasts[node.axis] = self.f.icmp(">=", self.f.add(position, step), end)
            self.block(node.body, inner)

    def unpack(self, node: Pack, stored: Stored, scope: _Scope) -> None:
        """Panels of words into panels of an instruction."""
        f, window = self.f, node.source
        assert window.panels is not None
        assert window.panels.lanes == node.panel, "panels of the weight are those of the product"
        to, zero = self.dtype(node.destination.buffer), stored.zero
        shape = (node.panel, node.kr, node.unit)
        kernel = UnpackKernel(self.machine.isa, stored.elements, to, shape, zeros=zero is not None)
        (destination, _, _), (source, _, _) = self.slice(node.destination, scope), self.slice(window, scope)
        lanes, depth = self.integer(node.lanes, scope), self.integer(node.depth, scope)
        operands = [destination, source, self.integer(window.panels.apart, scope), lanes, depth]
        if zero is None:
            operands += [f.maximum(depth, int64(1)), source, int64(0), int64(0)]
        else:
            assert zero.panels is not None
            pointer, _, step = self.slice(zero, scope)
            apart = self.integer(zero.panels.apart, scope)
            operands += [self.integer(stored.group, scope), pointer, apart, step]
        f.call(kernel.emit(self.module), operands)

    def tasks(self, node: Loop, scope: _Scope) -> None:
        """A parallel loop: its body becomes a function, which the team calls for each iteration."""
        f, team = self.f, self.team
        assert team is not None, "a function with parallel loops has a team"
        loops = node.fused()
        spans = [[self.integer(part, scope) for part in (one.begin, one.end, one.step)] for one in loops]
        counts = [f.ceildiv(f.maximum(f.sub(end, begin), int64(0)), step) for begin, end, step in spans]
        total = counts[0]
        for count in counts[1:]:
            total = f.mul(total, count)
        captured = {f"name {name}": value for name, value in scope.names.items()}
        captured |= {f"begin {name}": value for name, value in scope.begins.items()}
        captured |= {f"last {name}": value for name, value in scope.lasts.items()}
        captured |= {f"scalar {name}": value for name, value in self.scalars.items()}
        arguments = [buffer.name for buffer in self.program.arguments]
        captured |= {f"pointer {name}": self.pointers[name] for name in arguments}
        if self.program.scratch:
            captured["scratch"] = f.arguments["scratch"]
        captured |= {f"count {number}": count for number, count in enumerate(counts)}
        for number, (begin, _, step) in enumerate(spans):
            captured |= {f"first {number}": begin, f"step {number}": step}
        captured |= {"team": team.pointer, "threads": team.threads}
        environment = Environment(captured)
        number = sum(name.startswith("task_") for name in self.module.functions)
        body = self.module.define(f"task_{number}_{node.axis}", VOID, BODY_ARGUMENTS)
        before = (self.pointers, self.scalars, self.budget)
        self.f, given = body, environment.inside(body)

        def inside(kind: str) -> dict[str, Value]:
            return {
                name[len(kind) + 1 :]: value for name, value in given.items() if name.startswith(f"{kind} ")
            }

        self.pointers, self.scalars = inside("pointer"), inside("scalar")
        self.team = Team(given["team"], given["threads"])
        if self.program.scratch:
            self.place_scratch(given["scratch"], body.arguments["thread"])
        self.place_locals()
        self.budget = self.begin_budget(loops[-1].body)
        inner = _Scope(inside("name"), inside("begin"), inside("last"))
        task = body.arguments["task"]
        for index in reversed(range(len(loops))):
            at, count = task, given[f"count {index}"]
            if index:  # the innermost axis is the fastest
                task = body.udiv(at, count)
                at = body.sub(at, body.mul(task, count))
            position = body.add(given[f"first {index}"], body.mul(at, given[f"step {index}"]))
            inner.names[loops[index].axis] = position
        self.block(loops[-1].body, inner)
        if _streams(loops[-1]):
            body.fence()
        body.ret()
        self.f, self.team = f, team
        self.pointers, self.scalars, self.budget = before
        team.run(f, body.callee, environment.keep(f, body), total)

    def pack(self, node: Pack, scope: _Scope) -> None:
        if node.stored is not None:
            self.unpack(node, node.stored, scope)
            return
        source, to = self.dtype(node.source.buffer), self.dtype(node.destination.buffer)
        kernel = PackKernel(self.machine.isa, source, to, node.panel, node.kr, node.unit, node.parts)
        destination, _, _ = self.slice(node.destination, scope)
        block, lane, depth = self.slice(node.source, scope)
        sizes = [self.integer(node.lanes, scope), self.integer(node.depth, scope)]
        self.f.call(kernel.emit(self.module), [destination, block, lane, depth, *sizes])

    def unary(self, node: Unary, scope: _Scope) -> None:
        # The elementwise functions take 3 ms to import, which products need not pay.
        with importing:
            from tilewright.micro.elements.element import Element
            from tilewright.micro.elements.unary import UnaryCall, Window, emit_unary

        isa, dtype = self.machine.isa, self.dtype(node.destination.buffer)
        element = Element(node.op, dtype, fused=isa.fused, half=isa.half)
        destination = Window(*self.slice(node.destination, scope))
        source = destination if node.source is None else Window(*self.slice(node.source, scope))
        sizes = (self.integer(node.rows, scope), self.integer(node.columns, scope))
        call = UnaryCall(element, node.traffic, destination, source, *sizes)
        emit_unary(self.f, isa, self.machine.l1.line, call)

    def matmul(self, node: TileMatmul, scope: _Scope) -> None:
        match node.form:
            case Form.DOT:
                self.dot(node, scope)
            case Form.TURNED:
                self.turned(node, scope)
            case Form.OUTER:
                self.outer(node, scope)

    def micro_kernel(self, node: TileMatmul) -> MicroKernel:
        """The register tile of a node: its instruction follows from the elements of its operands."""
        isa = self.machine.isa
        a, b = (Source(self.dtype(part.buffer), part.interleave > 1) for part in (node.a, node.b))
        if node.stored is not None:
            b = Source(node.stored.elements.value_type(a.dtype), packed=True)
        instruction = isa.tile(a.dtype, b.dtype)
        adjacent_a = node.a.strides[0] == Constant(instruction.interleave_a)
        adjacent_a = adjacent_a and (isa.broadcast is not Broadcast.MEMORY or instruction.m > 1)
        c = self.dtype(node.c.buffer).real
        a, b = (source._replace(dtype=source.dtype.real) for source in (a, b))
        if node.stored is not None:
            return PanelKernel(isa, instruction, node.tile, (a, b), c, node.stored.elements)
        if instruction.instruction == MATRIX_MULTIPLY:
            return GenericKernel(isa, instruction, node.tile, (a, b), c, adjacent_a=adjacent_a)
        kind = VectorKernel if instruction.m == 1 else EngineKernel
        return kind(isa, instruction, node.tile, (a, b), c, adjacent_a=adjacent_a)

    def carry(self, node: Carry, scope: _Scope) -> KeptSums:
        """Where sums wait, and whether this iteration is the first or the last."""
        sums, sums_row, _ = self.slice(node.sums, scope)
        return KeptSums(sums, sums_row, self.at_first(node.axis, scope), scope.lasts[node.axis])

    def panels(self, node: TileMatmul, scope: _Scope) -> PanelCall | None:
        """The panels of words that a tile reads."""
        if node.stored is None:
            return None
        panels = node.b.panels
        assert panels is not None
        return PanelCall(panels.lanes, self.integer(panels.apart, scope))

    def groups(self, node: TileMatmul, scope: _Scope) -> GroupCall | None:
        """Groups of depths, with their scales and zero points."""
        if node.groups is None:
            return None
        window, depth = node.groups.scale, self.integer(node.groups.depth, scope)
        assert window.panels is not None
        scale, _, step = self.slice(window, scope)
        zero = None
        if node.stored is not None and node.stored.zero is not None:
            zero, _, _ = self.slice(node.stored.zero, scope)
        apart = self.integer(window.panels.apart, scope)
        return GroupCall(depth, window.panels.lanes, apart, scale, step, zero)

    def acc(self, node: TileMatmul) -> DType:
        """The type of the sums of a product."""
        return accumulator(self.dtype(node.a.buffer).real, self.dtype(node.b.buffer).real)

    def step(self, window: Slice, depth: Value, kernel: MicroKernel) -> Value:
        """Elements from one step of the depth to the next, given the second stride of an operand."""
        k = kernel.instruction.k
        return self.f.mul(depth, k // window.interleave if window.interleave > 1 else k)

    def outer(self, node: TileMatmul, scope: _Scope) -> None:
        """A tile whose depths are outer products: written in place where its sizes are known."""
        kernel = self.micro_kernel(node)
        one = kernel.instruction
        rows, columns = node.rows, node.columns
        known = isinstance(rows, Constant) and isinstance(columns, Constant)
        if one.m > 1:  # parts of an operation go through the buffer of the dispatching function
            whole = isinstance(rows, Constant) and rows.value % one.m == 0
            known = whole and columns == Constant(node.tile.nr)
        if known and kernel.attributes is None:
            assert node.finish is None, "steps of tiles of known sizes are separated"
            self.inline(node, kernel, scope)
            return
        a, a_lane, a_depth = self.slice(node.a, scope)
        b, _, b_depth = self.slice(node.b, scope)
        c, c_row, c_column = self.slice(node.c, scope)
        sizes = [self.integer(part, scope) for part in (node.columns, node.depth)]
        scalars = [self.scalar(value, kernel.acc, scope) for value in (node.alpha, node.beta)]
        a_depth, b_depth = self.step(node.a, a_depth, kernel), self.step(node.b, b_depth, kernel)
        carry: list[Value] = []
        if node.carry is not None:
            found = self.carry(node.carry, scope)
            carry = [found.sums, found.row, *(self.f.zext(test, INT64) for test in found[2:])]
        strides = TileStrides(a_lane.known, a_depth.known, b_depth.known, c_column.known)
        if kernel.walks_ahead:  # addresses of operands under way are constants beside few pointers
            strides = TileStrides(a_depth=a_depth.known, b_depth=b_depth.known)
        elif one.m > 1 or not self.alike:
            strides = TileStrides()
        groups, more = self.groups(node, scope), []
        if groups is not None:
            zero = [] if groups.zero is None else [groups.zero]
            more = [groups.scale, groups.step, groups.depth, *zero]
        if node.fetched is not None:
            more += self.slice(node.fetched, scope)[:2]
        applied = () if node.finish is None else node.finish.steps
        for window in (one.operand for one in applied):
            more += [] if window is None else self.slice(window, scope)[:2]
        dispatch = Dispatch(
            kernel,
            pairs=node.c.interleave == 2,
            carries=node.carry is not None,
            known=strides,
            weights=DispatchedWeights(
                panels=node.stored is not None,
                scales=groups is not None,
                zeros=groups is not None and groups.zero is not None,
            ),
            fetched=0 if node.fetched is None else self.dtype(node.fetched.buffer).size,
            finish=_given(node.finish),
            padded=node.padded and one.m == 1,
        )
        operands = [*sizes, a, a_lane, a_depth, b, b_depth, c, c_row]
        if node.finish is None:
            operands = [self.integer(node.rows, scope), *operands, c_column]
        callee = dispatch.emit(self.module) if node.finish is None else dispatch.emit_whole(self.module)
        self.f.call(callee, [*operands, *scalars, *carry, *more])

    def dot(self, node: TileMatmul, scope: _Scope) -> None:
        """A tile of one column: vectors run along the depth."""
        acc = self.acc(node)
        (a, a_row, _), (b, _, _) = self.slice(node.a, scope), self.slice(node.b, scope)
        c, c_row, _ = self.slice(node.c, scope)
        sizes = [self.integer(part, scope) for part in (node.rows, node.depth)]
        scalars = [self.scalar(value, acc, scope) for value in (node.alpha, node.beta)]
        kernel = DotKernel(
            self.machine.isa, acc, *(self.dtype(part.buffer) for part in (node.a, node.b, node.c))
        )
        self.f.call(kernel.emit(self.module), [*sizes, a, a_row, b, c, c_row, *scalars])

    def turned(self, node: TileMatmul, scope: _Scope) -> None:
        """A tile of one row over a matrix that is contiguous along the depth."""
        dtype = self.dtype(node.a.buffer)
        (a, _, a_depth), (b, b_column, _) = self.slice(node.a, scope), self.slice(node.b, scope)
        c, _, _ = self.slice(node.c, scope)
        scalars = [self.scalar(value, dtype, scope) for value in (node.alpha, node.beta)]
        kernel = TurnedKernel(self.machine.isa, dtype)
        assert node.tile.nr == kernel.lanes, "lanes are columns"
        operands = [self.integer(node.depth, scope), a, a_depth, b, b_column, c]
        self.f.call(kernel.emit(self.module), [*operands, *scalars])

    def epilogue(self, node: Epilogue, scope: _Scope) -> None:
        acc, dtype = self.dtype(node.sums.buffer), self.dtype(node.c.buffer)
        sums, sums_row, _ = self.slice(node.sums, scope)
        sizes = [self.integer(part, scope) for part in (node.rows, node.columns)]
        scalars = [self.scalar(value, acc, scope) for value in (node.alpha, node.beta)]
        applied = () if node.finish is None else node.finish.steps
        windows = [one.operand for one in applied]
        pairs = node.c.interleave > 1
        strided = node.c.strides[1] != Constant(node.c.interleave)
        kernel = EpilogueKernel(
            *(self.machine.isa, acc, dtype, _given(node.finish)), pairs=pairs, strided=strided
        )
        places = [self.slice(window, scope) for window in windows if window is not None]
        pointers, strides = [place[0] for place in places], [part for place in places for part in place[1:]]
        arguments = [*sizes, *self.slice(node.c, scope), sums, sums_row, *scalars]
        self.f.call(kernel.emit(self.module), [*arguments, *pointers, *strides])

    def inline(self, node: TileMatmul, kernel: MicroKernel, scope: _Scope) -> None:
        """A tile of known rows and columns, written in place."""
        dtype = kernel.acc
        rows, columns, depth = (self.integer(part, scope) for part in (node.rows, node.columns, node.depth))
        assert rows.known is not None
        assert columns.known is not None
        (a, a_lane, a_depth), (b, _, b_depth) = self.slice(node.a, scope), self.slice(node.b, scope)
        c, c_row, _ = self.slice(node.c, scope)
        batch = None
        if node.batch is not None:
            a_step, b_step = (self.integer(part, scope) for part in (node.batch.a_step, node.batch.b_step))
            products = self.integer(node.batch.count, scope)
            batch = BatchCall(products, a_step, b_step, node.batch.addresses)
            if node.batch.addresses:
                a, b = self.pointers[node.a.buffer], self.pointers[node.b.buffer]
                batch = batch._replace(
                    a_offset=self.offset_bytes(node.a, scope), b_offset=self.offset_bytes(node.b, scope)
                )
        b_apart = b_depth
        a_depth, b_depth = self.step(node.a, a_depth, kernel), self.step(node.b, b_depth, kernel)
        whole = node.alpha == Scalar(1.0)
        call = TileCall(
            columns=columns,
            depth=depth,
            a=a,
            a_lane=a_lane,
            a_depth=a_depth,
            b=b,
            b_depth=b_depth,
            c=c,
            c_row=c_row,
            alpha=None if whole else self.scalar(node.alpha, dtype, scope),
            beta=None if node.beta == Scalar(0.0) else self.scalar(node.beta, dtype, scope),
            batch=batch,
            b_apart=b_apart,
            panels=self.panels(node, scope),
            groups=self.groups(node, scope),
            prefetch=depth.known is None,  # of a long one: C arrives while the last of it is walked
        )
        if node.carry is not None:  # C is added once, by whoever has the last sums
            call = call._replace(carry=self.carry(node.carry, scope))
        match node.beta:
            case _ if node.carry is not None:
                pass
            case Scalar(1.0) if whole:
                last = not kernel.chains or node.groups is not None or self.adds_c_last(depth, batch)
                call = call._replace(beta=None, added=last, chain=not last)
            case FirstElse(axis, Scalar(0.0), Scalar(1.0)) if whole:
                if kernel.chains and node.groups is None:
                    later = self.f.not_(self.at_first(axis, scope))
                    call = call._replace(beta=None, chain=later)
        kernel.emit_inline(self.f, rows.known, columns.known, call)

    def adds_c_last(self, depth: Value, batch: BatchCall | None) -> bool:
        """Whether C is added to finished sums; else it starts them.

        Where arithmetic takes no operand from memory, all of C would be in registers beside the sums.
        """
        products = 1 if batch is None else batch.products.known or 1
        return self.machine.isa.folds_loads and (depth.known or 0) * products >= ADDED_LAST_DEPTH


def _given(finish: Finish | None) -> tuple[Given, ...]:
    """Steps, each with how its operand is read."""
    applied = () if finish is None else finish.steps
    return tuple(Given(one.step, None if one.operand is None else _reach(one.operand)) for one in applied)


def _reach(window: Slice) -> Reach:
    """How the operand of a step follows the columns of C."""
    column = window.strides[1]
    if column == Constant(0):
        return Reach.REPEATED
    return Reach.ADJACENT if column == Constant(window.interleave) else Reach.STRIDED


def _in_registers(node: TileMatmul, program: Program, machine: Machine) -> bool:
    """Whether whole tiles take their steps in registers: those of one row an instruction, light steps.

    An activation on all of a tile's accumulators would be a thousand instructions in each of its functions:
    these go through a loop (docs/decisions/018-epilogues.md).
    """
    assert node.finish is not None
    known = isinstance(node.rows, Constant) and isinstance(node.columns, Constant)
    plain = node.form is Form.OUTER and node.stored is None and node.c.interleave == 1 and not known
    if not plain or any(isinstance(one.step, Activation) and not one.step.light for one in node.finish.steps):
        return False
    a, b = (program.buffer(window.buffer).dtype for window in (node.a, node.b))
    return machine.isa.tile(a, b).m == 1


def _carries(body: tuple[Statement, ...], axis: str) -> bool:
    """Whether a tile of a block keeps its sums between the iterations of an axis."""
    for statement in body:
        match statement:
            case TileMatmul(carry=Carry(axis=found)) if found == axis:
                return True
            case Loop(body=inner) if _carries(inner, axis):
                return True
            case If(then=then, otherwise=otherwise) if _carries((*then, *otherwise), axis):
                return True
    return False


def _strides(body: tuple[Statement, ...]) -> Iterator[tuple[Expression, ...]]:
    """Of each tile in a body, what it reads A and B by and the distance of C's columns."""
    for statement in body:
        match statement:
            case TileMatmul(a=a, b=b, c=c):
                yield *a.strides, *b.strides, c.strides[1]
            case Loop(body=inner):
                yield from _strides(inner)
            case If(then=then, otherwise=otherwise):
                yield from _strides((*then, *otherwise))


def has_tasks(program: Program) -> bool:
    """Whether a program has parallel loops, and so takes a team."""
    return any(map(_has_tasks, program.body))


def _has_tasks(statement: Statement) -> bool:
    match statement:
        case Loop(execution=Execution.PARALLEL):
            return True
        case Loop(body=body):
            return any(map(_has_tasks, body))
        case If(then=then, otherwise=otherwise):
            return any(map(_has_tasks, (*then, *otherwise)))
        case _:
            return False


def _is_long(statement: Statement) -> bool:
    """Return whether a statement spends from the budget of its function; tasks have their own."""
    match statement:
        case Primitive(long=long):
            return long
        case Loop(execution=Execution.PARALLEL):
            return False
        case Loop(body=body):
            return any(map(_is_long, body))
        case If(then=then, otherwise=otherwise):
            return any(map(_is_long, (*then, *otherwise)))
        case _:
            return False


def _makes_tasks(statement: Statement) -> bool:
    """Whether nothing is left to do in a statement but to make tasks: loops, decisions and names."""
    match statement:
        case Loop(execution=Execution.PARALLEL) | Let():
            return True
        case Loop(body=body):
            return all(map(_makes_tasks, body))
        case If(then=then, otherwise=otherwise):
            return all(map(_makes_tasks, (*then, *otherwise)))
        case _:
            return False


def _streams(statement: Statement) -> bool:
    """Whether a statement writes past the caches, which a fence must end before the function returns."""
    match statement:
        case Unary(traffic=traffic):
            return traffic is Traffic.STREAM
        case Loop(body=body):
            return any(map(_streams, body))
        case If(then=then, otherwise=otherwise):
            return any(map(_streams, (*then, *otherwise)))
        case _:
            return False


def scalar_type(program: Program) -> DType:
    """The type of a program's scalars and of primitives' numbers: of sums of its first operands' products."""
    a, b = (buffer.dtype for buffer in (program.arguments * 2)[:2])
    if a.is_integer != b.is_integer:  # words of a weight, whose elements are taken for A's type
        b = a
    floats = a.kind is b.kind is Kind.FLOAT
    return accumulator(a.real, b.real) if program.scalars or floats else a


def signature(program: Program) -> list[tuple[str, Type]]:
    """The arguments of a program's function, in order; see `lower`."""
    scalar = element_type(scalar_type(program)) if program.scalars else POINTER
    return [
        *((buffer.name, POINTER) for buffer in program.arguments),
        *((name, INT64) for name in program.sizes),
        *((name, scalar) for name in program.scalars),
        *((("scratch", POINTER),) if program.needs_scratch else ()),
        *((("team", POINTER),) if has_tasks(program) else ()),
    ]


def lower(program: Program, machine: Machine) -> str:
    """The LLVM module of a program, as text.

    Its one exported function takes, in this order: a pointer per argument buffer, the sizes as
    64-bit integers, the scalars, a pointer to scratch where there is any (see `scratch_layout`), and one to
    a team where there are parallel loops (see `llvm/team.py`).
    """
    program = separate_steps(verify(program), lambda node: _in_registers(node, program, machine))
    layout = data_layout(machine)
    module = Module(program.name, machine.triple, layout, tuning(machine), machine.function_bits)
    made = len(program.arguments) > FEW_POINTERS and all(map(_makes_tasks, program.body))
    f = module.define(program.name, VOID, signature(program), exported=True, as_written=made)
    lowering = _Lowering(program, machine, module, f)
    lowering.block(program.body, _Scope({name: f.arguments[name] for name in program.sizes}))
    f.ret()
    return str(module)
