"""Statements of tile IR: blocks, loops and branches, and the primitives that are calls of one function."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum

from tilewright.compiler.lowering.expressions import Scope
from tilewright.compiler.lowering.tasks import lower_tasks, streams
from tilewright.compiler.lowering.tiles import lower_epilogue, lower_matmul
from tilewright.errors import InvalidTileIr
from tilewright.ir.expressions import Expression
from tilewright.ir.nodes import (
    Carry,
    Execution,
    If,
    Let,
    Loop,
    Pack,
    Primitive,
    Slice,
    Statement,
    Stored,
    TileEpilogue,
    TileMatmul,
    UnaryMap,
)
from tilewright.llvm.values import int64
from tilewright.micro.budget import OPERAND, Budget
from tilewright.micro.calls import Operands, UnaryCall
from tilewright.micro.emission import emitter
from tilewright.micro.packing.long_words import pack_kernel
from tilewright.micro.packing.pack import Adjacent
from tilewright.micro.packing.unpack import UnpackKernel

#: The emission of `UnaryMap`, by name as those of primitives.
UNARY = "elements.unary:emit_unary"


def lower_block(body: tuple[Statement, ...], scope: Scope) -> None:
    """Writes the statements of one block at the current position."""
    scope = scope.child()
    around = scope.f.mark
    for statement in body:
        scope.mark(statement)
        match statement:
            case Let(name, value):
                scope.names[name] = scope.integer(value)
            case Loop(execution=Execution.PARALLEL):
                lower_tasks(statement, scope, lower_block)
            case Loop():
                _loop(statement, scope)
            case If(condition, then, otherwise):
                with scope.f.branch(scope.condition(condition)) as (on_true, on_false):
                    with on_true:
                        lower_block(then, scope)
                    with on_false:
                        lower_block(otherwise, scope)
            case Pack(stored=None):
                _pack(statement, scope)
            case Pack(stored=Stored() as stored):
                _unpack(statement, stored, scope)
            case UnaryMap():
                _unary(statement, scope)
            case TileMatmul():
                lower_matmul(statement, scope)
            case TileEpilogue():
                lower_epilogue(statement, scope)
            case Primitive():
                _primitive(statement, scope)
            case _:
                raise InvalidTileIr(where=repr(statement), reason="is not a statement")
        if not scope.begins and isinstance(statement, (Loop, UnaryMap)) and streams(statement):
            scope.f.fence()
    scope.f.mark = around


def _loop(node: Loop, scope: Scope) -> None:
    begin, end, step = scope.integers(node.begin, node.end, node.step)
    with scope.f.loop(begin, end, step, node.axis) as position:
        inner = scope.child({node.axis: position})
        inner.begins[node.axis] = begin
        if _carries(node.body, node.axis):
            inner.lasts[node.axis] = scope.f.icmp(">=", scope.f.add(position, step), end)
        lower_block(node.body, inner)


def _carries(body: tuple[Statement, ...], axis: str) -> bool:
    """Whether a register tile of a block keeps its sums between the iterations of an axis."""
    for statement in body:
        match statement:
            case TileMatmul(carry=Carry(axis=found)) if found == axis:
                return True
            case Loop(body=inner) if _carries(inner, axis):
                return True
            case If(then=then, otherwise=otherwise) if _carries((*then, *otherwise), axis):
                return True
    return False


def _pack(node: Pack, scope: Scope) -> None:
    """Elements into panels of an instruction."""
    isa = scope.frame.machine.isa
    source, to = scope.dtype(node.source.buffer), scope.dtype(node.destination.buffer)
    destination, block = scope.window(node.destination), scope.window(node.source)
    known = {block.row.known: Adjacent.LANES, block.column.known: Adjacent.DEPTHS}.get(1, Adjacent.UNKNOWN)
    kernel = pack_kernel(isa, source, to, node.panel, node.kr, node.unit, node.parts, known)
    sizes = scope.integers(node.lanes, node.depth)
    operands = [destination.pointer, block.pointer, block.row, block.column, *sizes]
    scope.f.call(kernel.emit(scope.f.module), operands)


def _unpack(node: Pack, stored: Stored, scope: Scope) -> None:
    """Panels of a packed weight's words into panels of an instruction."""
    f, panels = scope.f, node.source.panels
    assert panels is not None
    assert panels.lanes == node.panel, "panels of the weight are those of the product"
    to, zero = scope.dtype(node.destination.buffer), stored.zero
    shape = (node.panel, node.kr, node.unit)
    isa = scope.frame.machine.isa
    kernel = UnpackKernel(isa, stored.elements, to, shape, zeros=zero is not None)
    destination, source = scope.window(node.destination).pointer, scope.window(node.source).pointer
    lanes, depth = scope.integers(node.lanes, node.depth)
    operands = [destination, source, scope.integer(panels.stride), lanes, depth]
    if zero is None:
        operands += [f.maximum(depth, int64(1)), source, int64(0), int64(0)]
    else:
        assert zero.panels is not None
        points = scope.window(zero)
        panel_stride = scope.integer(zero.panels.stride)
        operands += [scope.integer(stored.group), points.pointer, panel_stride, points.column]
    f.call(kernel.emit(f.module), operands)


def _unary(node: UnaryMap, scope: Scope) -> None:
    machine = scope.frame.machine
    destination = scope.window(node.destination)
    source = destination if node.source is None else scope.window(node.source)
    sizes = scope.integers(node.rows, node.columns)
    call = UnaryCall(node.op, node.traffic, destination, source, *sizes)
    emitter(UNARY)(scope.f, machine.isa, machine.l1.line, call)


def _primitive(node: Primitive, scope: Scope) -> None:
    """Windows, integers, scalars, choices: a call of the function that the primitive's emission defines."""
    operands: Operands = {}
    budget = scope.frame.budget
    if node.long and budget is not None:
        operands[OPERAND] = budget
    for name in (part.name for part in fields(node)):
        match getattr(node, name):
            case None:
                operands[name] = None
            case Slice() as window:
                operands[name] = scope.window(window)
            case Expression() as value:
                operands[name] = scope.integer(value)
            case Enum() as word:
                operands[name] = word
            case value:
                operands[name] = scope.scalar(value, scope.frame.scalar_type)
    emitter(node.emission)(scope.f, scope.frame.machine.isa, operands)
    if OPERAND in operands:
        Budget(scope.f, budget).end_if_stopped()
