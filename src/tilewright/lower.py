"""Tile IR to LLVM: the only place where ir, micro and llvm meet."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.errors import InvalidTileIr
from tilewright.ir.nodes import (
    AnyOf,
    Binary,
    Constant,
    Execution,
    Expression,
    FirstElse,
    If,
    Let,
    Loop,
    Name,
    Operator,
    Pack,
    Program,
    Scalar,
    ScalarValue,
    Slice,
    Space,
    Statement,
    TileMatmul,
    Unless,
)
from tilewright.ir.verify import verify
from tilewright.llvm.build import (
    INT64,
    POINTER,
    VOID,
    Function,
    Module,
    Value,
    constant,
    element_type,
    int64,
    zero,
)
from tilewright.llvm.target import data_layout
from tilewright.machine.isa import Broadcast
from tilewright.machine.machine import Machine
from tilewright.micro.pack import PackKernel
from tilewright.micro.vector import BroadcastFma
from tilewright.spec.dtype import DType

#: Scratch buffers start on pages, shifted by one line each so that their heads fall into different sets.
SCRATCH_ALIGNMENT = 4096
SCRATCH_STAGGER = 1024


def scratch_layout(program: Program) -> tuple[dict[str, int], int]:
    """Byte offset of each scratch buffer in one block, and the size of the block."""
    offsets: dict[str, int] = {}
    end = 0
    for number, buffer in enumerate(program.scratch):
        assert buffer.size is not None
        start = -(-end // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT + number * SCRATCH_STAGGER
        offsets[buffer.name] = start
        end = start + buffer.size * buffer.dtype.size
    return offsets, end


@dataclass
class _Scope:
    """Values in scope: names, first iterations of axes."""

    names: dict[str, Value]
    begins: dict[str, Value] = field(default_factory=dict)

    def child(self, **names: Value) -> _Scope:
        return _Scope(self.names | names, dict(self.begins))


class _Lowering:
    def __init__(self, program: Program, machine: Machine, module: Module, function: Function) -> None:
        self.program, self.machine, self.module, self.f = program, machine, module, function
        self.scalars = {name: function.arguments[name] for name in program.scalars}
        offsets, _ = scratch_layout(program)
        self.pointers = {buffer.name: function.arguments[buffer.name] for buffer in program.arguments}
        for name, offset in offsets.items():
            self.pointers[name] = function.at(function.arguments["scratch"], offset)

    def dtype(self, buffer: str) -> DType:
        return self.program.buffer(buffer).dtype

    # --- expressions ------------------------------------------------------------------------

    def integer(self, node: Expression, scope: _Scope) -> Value:
        match node:
            case Constant(value):
                return int64(value)
            case Name(name):
                return scope.names[name]
            case Unless(scalar, value):
                given = self.scalars[scalar]
                some = self.f.differs(given, zero(given.type))
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
                at_first = self.f.compare("==", scope.names[axis], scope.begins[axis])
                return self.f.select(
                    at_first, self.scalar(first, dtype, scope), self.scalar(rest, dtype, scope)
                )
            case _:
                raise InvalidTileIr(where=repr(value), reason="is not a scalar")

    def condition(self, condition: AnyOf, scope: _Scope) -> Value:
        f = self.f
        anything: Value | None = None
        for conjunction in condition.terms:
            every: Value | None = None
            for term in conjunction.terms:
                left, right = self.integer(term.left, scope), self.integer(term.right, scope)
                test = f.compare(term.relation.value, left, right)
                every = test if every is None else f.both(every, test)
            assert every is not None
            anything = every if anything is None else f.either(anything, every)
        assert anything is not None
        return anything

    def slice(self, window: Slice, scope: _Scope) -> tuple[Value, Value, Value]:
        """Pointer to the first element and the two strides in elements."""
        size = self.dtype(window.buffer).size
        offset = self.f.mul(self.integer(window.offset, scope), size)
        first, second = (self.integer(stride, scope) for stride in window.strides)
        return self.f.at(self.pointers[window.buffer], offset), first, second

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
                case TileMatmul():
                    self.matmul(statement, scope)
                case _:
                    raise InvalidTileIr(where=repr(statement), reason="is not a statement")

    def loop(self, node: Loop, scope: _Scope) -> None:
        if node.execution is Execution.PARALLEL:
            raise InvalidTileIr(where=f"loop {node.axis}", reason="parallel loops have no lowering")
        begin, end, step = (self.integer(part, scope) for part in (node.begin, node.end, node.step))
        with self.f.loop(begin, end, step, node.axis) as position:
            inner = scope.child(**{node.axis: position})
            inner.begins[node.axis] = begin
            self.block(node.body, inner)

    def pack(self, node: Pack, scope: _Scope) -> None:
        kernel = PackKernel(self.machine.isa, self.dtype(node.source.buffer), node.panel)
        destination, _, _ = self.slice(node.destination, scope)
        source, lane, depth = self.slice(node.source, scope)
        sizes = [self.integer(node.lanes, scope), self.integer(node.depth, scope)]
        self.f.call(kernel.emit(self.module), [destination, source, lane, depth, *sizes])

    def matmul(self, node: TileMatmul, scope: _Scope) -> None:
        isa, dtype = self.machine.isa, self.dtype(node.a.buffer)
        adjacent_a = node.a.strides[0] == Constant(1) and isa.broadcast is Broadcast.LANE
        kernel = BroadcastFma(isa, dtype, node.tile, adjacent_a=adjacent_a)
        a, a_lane, a_depth = self.slice(node.a, scope)
        b, _, b_depth = self.slice(node.b, scope)
        c, c_row, c_column = self.slice(node.c, scope)
        sizes = [self.integer(part, scope) for part in (node.rows, node.columns, node.depth)]
        scalars = [self.scalar(value, dtype, scope) for value in (node.alpha, node.beta)]
        operands = [a, a_lane, a_depth, b, b_depth, c, c_row, c_column]
        self.f.call(kernel.emit(self.module), [*sizes, *operands, *scalars])


def lower(program: Program, machine: Machine) -> str:
    """The LLVM module of a program, as text.

    Its one exported function takes, in this order: the sizes as 64-bit integers, a pointer per
    argument buffer, the scalars, and a pointer to scratch (see `scratch_layout`).
    """
    verify(program)
    module = Module(program.name, machine.triple, data_layout(machine))
    dtype = program.arguments[0].dtype
    arguments = [
        *((name, INT64) for name in program.sizes),
        *((buffer.name, POINTER) for buffer in program.buffers if buffer.space is Space.ARGUMENT),
        *((name, element_type(dtype)) for name in program.scalars),
        ("scratch", POINTER),
    ]
    f = module.define(program.name, VOID, arguments, exported=True)
    lowering = _Lowering(program, machine, module, f)
    lowering.block(program.body, _Scope({name: f.arguments[name] for name in program.sizes}))
    f.ret()
    return str(module)
