"""Builds LLVM functions: loops, branches, vectors, masks; every gap of llvmlite is filled here.

Pointers are opaque; addresses are bytes. Nothing here emits inline assembly: LLVM has no foreign
assembly parser for cross-compilation, and aborts the process when it meets some.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import llvmlite.ir as ir

from tilewright.spec.dtype import DType, Kind

Value: TypeAlias = Any  # llvmlite ships no type information
Type: TypeAlias = Any

INT1: Type = ir.IntType(1)
INT8: Type = ir.IntType(8)
INT32: Type = ir.IntType(32)
INT64: Type = ir.IntType(64)
POINTER: Type = ir.PointerType()
VOID: Type = ir.VoidType()

_FLOATS: dict[int, Type] = {32: ir.FloatType(), 64: ir.DoubleType()}


def element_type(dtype: DType) -> Type:
    """The LLVM type of one element."""
    return _FLOATS[dtype.bits] if dtype.kind is Kind.FLOAT else ir.IntType(dtype.bits)


def vector_type(dtype: DType, lanes: int) -> Type:
    """<lanes x element>; LLVM treats one lane as a vector too."""
    return ir.VectorType(element_type(dtype), lanes)


def int64(value: int) -> Value:
    """A 64-bit constant."""
    return ir.Constant(INT64, value)


def constant(dtype: DType, value: float) -> Value:
    """A floating-point constant."""
    return ir.Constant(element_type(dtype), value)


class _Literal(ir.Constant):  # type: ignore[misc]
    """A constant written as one word; llvmlite spells vectors out lane by lane, which parses slowly."""

    def __init__(self, kind: Type, text: str) -> None:
        self.type, self.constant, self.text = kind, None, text

    def _to_string(self) -> str:
        return f"{self.type} {self.text}"

    def get_reference(self) -> str:
        return self.text


def poison(kind: Type) -> Value:
    """A value nobody reads."""
    return _Literal(kind, "poison")


def zero(kind: Type) -> Value:
    """All bits zero, of any type."""
    if isinstance(kind, (ir.VectorType, ir.ArrayType)):
        return _Literal(kind, "zeroinitializer")
    return _Literal(kind, "null") if isinstance(kind, ir.PointerType) else ir.Constant(kind, 0)


def null() -> Value:
    """The null pointer."""
    return zero(POINTER)


def _constant(value: Value) -> int | None:
    """The integer of a constant value, None for anything computed at run time."""
    return value.constant if isinstance(value, ir.Constant) and isinstance(value.constant, int) else None


def _suffix(kind: Type) -> str:
    """How an intrinsic's name spells a type: v16f32."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{kind.element.intrinsic_name}"
    return str(kind.intrinsic_name)


class Module:
    """One LLVM module under construction."""

    def __init__(self, name: str, triple: str, data_layout: str) -> None:
        self.module: Any = ir.Module(name)
        self.module.triple = triple
        self.module.data_layout = data_layout

    def declare(self, name: str, result: Type, arguments: Sequence[Type]) -> Value:
        """An external function or intrinsic; declared once."""
        if name in self.module.globals:
            return self.module.globals[name]
        return ir.Function(self.module, ir.FunctionType(result, list(arguments)), name)

    def find(self, name: str) -> Value | None:
        """A function already in the module."""
        return self.module.globals.get(name)

    def external(self, name: str) -> Value:
        """The address of an imported symbol, as a pointer value."""
        if name in self.module.globals:
            return self.module.globals[name]
        variable = ir.GlobalVariable(self.module, INT8, name)
        variable.type = POINTER  # llvmlite gives globals the typed pointers of old
        return variable

    def define(
        self, name: str, result: Type, arguments: Sequence[tuple[str, Type]], *, exported: bool = False
    ) -> Function:
        """A new function; internal unless exported. Arguments are named for readable IR."""
        function = ir.Function(self.module, ir.FunctionType(result, [kind for _, kind in arguments]), name)
        function.linkage = "external" if exported else "internal"
        function.attributes.add("nounwind")
        # Unwind tables let profilers and debuggers walk through generated frames.
        function.attributes.add("uwtable")
        for value, (label, _) in zip(function.args, arguments, strict=True):
            value.name = label
        return Function(self, function)

    def __str__(self) -> str:
        return str(self.module)


class Function:
    """One function under construction, positioned at the end of its current block."""

    def __init__(self, module: Module, function: Value) -> None:
        self.module, self.function = module, function
        self.builder: Any = ir.IRBuilder(function.append_basic_block("entry"))
        self.arguments: dict[str, Value] = {value.name: value for value in function.args}

    # --- integers ---------------------------------------------------------------------------

    def add(self, left: Value, right: Value | int) -> Value:
        """left + right on 64-bit integers, constants folded."""
        right = int64(right) if isinstance(right, int) else right
        if _constant(right) == 0:
            return left
        return self.builder.add(left, right)

    def sub(self, left: Value, right: Value | int) -> Value:
        """left - right."""
        return self.builder.sub(left, int64(right) if isinstance(right, int) else right)

    def mul(self, left: Value, right: Value | int) -> Value:
        """left * right, constants folded."""
        right = int64(right) if isinstance(right, int) else right
        known = _constant(right)
        if known == 1:
            return left
        if known == 0:
            return int64(0)
        if _constant(left) is not None and known is not None:
            return int64(_constant(left) * known)
        return self.builder.mul(left, right)

    def ceildiv(self, left: Value, right: Value) -> Value:
        """left / right rounded up, of a non-negative by a positive integer."""
        return self.builder.udiv(self.add(left, self.sub(right, 1)), right)

    def minimum(self, left: Value, right: Value) -> Value:
        """Signed minimum."""
        return self.builder.select(self.builder.icmp_signed("<", left, right), left, right)

    def maximum(self, left: Value, right: Value) -> Value:
        """Signed maximum."""
        return self.builder.select(self.builder.icmp_signed(">", left, right), left, right)

    def opaque(self, value: Value) -> Value:
        """The same value, hidden from loop strength reduction (which would rebuild it by serial adds)."""
        frozen = ir.instructions.Instruction(self.builder.block, value.type, "freeze", [value])
        self.builder._insert(frozen)  # llvmlite has no public way to add an instruction it does not know
        return frozen

    def compare(self, relation: str, left: Value, right: Value | int) -> Value:
        """Signed comparison: '<', '<=', '==', '!=', '>', '>='."""
        return self.builder.icmp_signed(relation, left, int64(right) if isinstance(right, int) else right)

    # --- memory -----------------------------------------------------------------------------

    def at(self, pointer: Value, offset_bytes: Value | int) -> Value:
        """pointer + offset_bytes."""
        if isinstance(offset_bytes, int):
            offset_bytes = int64(offset_bytes)
        if _constant(offset_bytes) == 0:
            return pointer
        return self.builder.gep(pointer, [offset_bytes], source_etype=INT8)

    def load(self, kind: Type, pointer: Value, align: int) -> Value:
        """One element, vector or pointer."""
        return self.builder.load(pointer, typ=kind, align=align)

    def store(self, value: Value, pointer: Value, align: int) -> None:
        """Writes one element or vector."""
        self.builder.store(value, pointer, align=align)

    def masked_load(self, kind: Type, pointer: Value, mask: Value, align: int) -> Value:
        """Lanes under the mask; the others are zero and their bytes are not touched."""
        intrinsic = self.module.declare(
            f"llvm.masked.load.{_suffix(kind)}.p0", kind, (POINTER, INT32, mask.type, kind)
        )
        return self.builder.call(intrinsic, [pointer, ir.Constant(INT32, align), mask, zero(kind)])

    def masked_store(self, value: Value, pointer: Value, mask: Value, align: int) -> None:
        """Writes the lanes under the mask; the bytes of the others are not touched."""
        kind = value.type
        intrinsic = self.module.declare(
            f"llvm.masked.store.{_suffix(kind)}.p0", VOID, (kind, POINTER, INT32, mask.type)
        )
        self.builder.call(intrinsic, [value, pointer, ir.Constant(INT32, align), mask])

    def prefetch(self, pointer: Value, *, write: bool, locality: int) -> None:
        """A hint; locality 3 is the nearest cache, 2 the second level."""
        intrinsic = self.module.declare("llvm.prefetch.p0", VOID, (POINTER, INT32, INT32, INT32))
        flags = [ir.Constant(INT32, number) for number in (int(write), locality, 1)]
        self.builder.call(intrinsic, [pointer, *flags])

    def stack(self, kind: Type, count: int, align: int) -> Value:
        """A small buffer in the frame, placed in the entry block."""
        with self.builder.goto_entry_block():
            slot = self.builder.alloca(kind, size=count)
            slot.align = align
        return self.builder.bitcast(slot, POINTER) if slot.type != POINTER else slot

    # --- vectors ----------------------------------------------------------------------------

    def splat(self, scalar: Value, lanes: int) -> Value:
        """A vector with the scalar in every lane."""
        kind = ir.VectorType(scalar.type, lanes)
        one = self.builder.insert_element(poison(kind), scalar, ir.Constant(INT32, 0))
        mask = ir.Constant(ir.VectorType(INT32, lanes), None)
        return self.builder.shuffle_vector(one, poison(kind), mask)

    def shuffle(self, left: Value, right: Value, lanes: Sequence[int]) -> Value:
        """Lanes of left (0..n-1) and right (n..2n-1)."""
        mask = ir.Constant(ir.VectorType(INT32, len(lanes)), list(lanes))
        return self.builder.shuffle_vector(left, right, mask)

    def first_lanes(self, count: Value, offset: int, lanes: int) -> Value:
        """A mask of the lanes l with offset + l < count (a 64-bit value)."""
        limit = self.splat(self.builder.trunc(count, INT32), lanes)
        numbers = ir.Constant(ir.VectorType(INT32, lanes), list(range(offset, offset + lanes)))
        return self.builder.icmp_signed("<", numbers, limit)

    def multiply_add(self, left: Value, right: Value, addend: Value, *, fused: bool) -> Value:
        """left * right + addend on floats, with one rounding or two."""
        if not fused:
            return self.builder.fadd(self.builder.fmul(left, right), addend)
        kind = left.type
        intrinsic = self.module.declare(f"llvm.fma.{_suffix(kind)}", kind, (kind, kind, kind))
        return self.builder.call(intrinsic, [left, right, addend])

    # --- control flow -----------------------------------------------------------------------

    @contextmanager
    def loop(
        self, begin: Value, end: Value, step: Value, name: str = "i"
    ) -> Iterator[Value]:
        """for i = begin; i < end; i += step, tested before the first iteration."""
        with self.carried_loop(begin, end, step, (), name) as (index, _, advance):
            yield index
            advance(())

    @contextmanager
    def carried_loop(
        self, begin: Value, end: Value, step: Value, initial: Sequence[Value], name: str = "i"
    ) -> Iterator[tuple[Value, tuple[Value, ...], Advance]]:
        """A loop that carries values in registers.

        Yields (index, carried values, advance); the body calls ``advance(next values)`` once, last.
        After the block the final values are in ``advance.results``.
        """
        builder = self.builder
        body = builder.append_basic_block(f"{name}.body")
        done = builder.append_basic_block(f"{name}.done")
        before = builder.block
        builder.cbranch(builder.icmp_signed("<", begin, end), body, done)
        builder.position_at_end(body)
        index = builder.phi(INT64, name)
        index.add_incoming(begin, before)
        carried = [builder.phi(value.type) for value in initial]
        advance = Advance()
        yield index, tuple(carried), advance
        following = builder.add(index, step)
        latch = builder.block
        builder.cbranch(builder.icmp_signed("<", following, end), body, done)
        index.add_incoming(following, latch)
        builder.position_at_end(done)
        for phi, start, value in zip(carried, initial, advance.values, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(value, latch)
            result = builder.phi(start.type)
            result.add_incoming(start, before)
            result.add_incoming(value, latch)
            advance.results.append(result)

    @contextmanager
    def branch(self, condition: Value, *, likely: bool | None = None) -> Iterator[tuple[Any, Any]]:
        """``with f.branch(c) as (then, otherwise): with then: ...; with otherwise: ...``."""
        with self.builder.if_else(condition, likely=likely) as blocks:
            yield blocks

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Runs the block if the condition holds."""
        with self.builder.if_then(condition):
            yield

    def call(self, callee: Value, arguments: Sequence[Value]) -> Value:
        """Calls a function of this module or an imported one."""
        return self.builder.call(callee, list(arguments))

    def call_pointer(
        self, pointer: Value, result: Type, kinds: Sequence[Type], arguments: Sequence[Value]
    ) -> Value:
        """Calls through a pointer."""
        kind = ir.FunctionType(result, list(kinds))
        return self.builder.call(_Callee(pointer, kind), list(arguments))

    def ret(self, value: Value | None = None) -> None:
        """Ends the current block by returning."""
        if value is None:
            self.builder.ret_void()
        else:
            self.builder.ret(value)


class _Callee:
    """A pointer with the signature it is called by; llvmlite's own calls need a typed pointer."""

    def __init__(self, pointer: Value, signature: Type) -> None:
        self.pointer, self.function_type, self.type = pointer, signature, pointer.type

    def get_reference(self) -> str:
        return str(self.pointer.get_reference())


class Advance:
    """Collects the next values of a carried loop, then holds its results."""

    def __init__(self) -> None:
        self.values: tuple[Value, ...] = ()
        self.results: list[Value] = []

    def __call__(self, values: Sequence[Value]) -> None:
        self.values = tuple(values)
