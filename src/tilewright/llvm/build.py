"""Writes LLVM IR: functions with loops, branches, vectors and masks, as text.

LLVM takes IR as text in any case, so values here are names with a type, and each operation appends
one line. That is several times faster than an object per instruction, and every type LLVM has can
be spelled (bfloat, scalable vectors, x86_amx). Pointers are opaque and addresses are bytes. Nothing
here emits inline assembly: LLVM has no foreign assembly parser for cross-compilation, and aborts
the process when it meets some.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from tilewright.spec.dtype import DType, Kind

# --- types and values ---------------------------------------------------------------------------


class Type(NamedTuple):
    """An LLVM type: its spelling, and how intrinsic names spell it."""

    text: str
    suffix: str
    lanes: int = 0


INT1 = Type("i1", "i1")
INT8 = Type("i8", "i8")
INT32 = Type("i32", "i32")
INT64 = Type("i64", "i64")
POINTER = Type("ptr", "p0")
VOID = Type("void", "")

_FLOATS = {32: Type("float", "f32"), 64: Type("double", "f64")}


def element_type(dtype: DType) -> Type:
    """The LLVM type of one element."""
    return _FLOATS[dtype.bits] if dtype.kind is Kind.FLOAT else Type(f"i{dtype.bits}", f"i{dtype.bits}")


def vector_of(element: Type, lanes: int) -> Type:
    """<lanes x element>."""
    return Type(f"<{lanes} x {element.text}>", f"v{lanes}{element.suffix}", lanes)


def vector_type(dtype: DType, lanes: int) -> Type:
    """<lanes x element> of a project element type; LLVM treats one lane as a vector too."""
    return vector_of(element_type(dtype), lanes)


class Value(NamedTuple):
    """A typed operand: a name of this function, a global, or a constant (then `known` may hold it)."""

    type: Type
    text: str
    known: int | None = None

    @property
    def typed(self) -> str:
        """Type and operand, as most instructions want them."""
        return f"{self.type.text} {self.text}"


def int64(value: int) -> Value:
    """A 64-bit constant."""
    return Value(INT64, str(value), value)


def int32(value: int) -> Value:
    """A 32-bit constant."""
    return Value(INT32, str(value), value)


def constant(dtype: DType, value: float) -> Value:
    """A floating-point constant, by its bits: LLVM spells f32 as the double of the same value."""
    exact = struct.unpack("f", struct.pack("f", value))[0] if dtype.bits == 32 else value
    (bits,) = struct.unpack("<Q", struct.pack("<d", exact))
    return Value(element_type(dtype), f"0x{bits:016X}")


def poison(kind: Type) -> Value:
    """A value nobody reads."""
    return Value(kind, "poison")


def zero(kind: Type) -> Value:
    """All bits zero, of any type."""
    return Value(kind, "zeroinitializer")


def null() -> Value:
    """The null pointer."""
    return Value(POINTER, "null")


# --- modules ------------------------------------------------------------------------------------


class Module:
    """One LLVM module under construction."""

    def __init__(self, name: str, triple: str, data_layout: str, tuning: str | None = None) -> None:
        # Unwind tables let profilers and debuggers walk through generated frames.
        self.attributes = "nounwind uwtable" + (f' "tune-cpu"="{tuning}"' if tuning else "")
        self.header = (
            f"; ModuleID = '{name}'",
            f'target datalayout = "{data_layout}"',
            f'target triple = "{triple}"',
        )
        self.functions: dict[str, Function] = {}
        self.declarations: dict[str, str] = {}

    def declare(self, name: str, result: Type, arguments: Sequence[Type]) -> Callee:
        """An external function or intrinsic; declared once."""
        kinds = ", ".join(kind.text for kind in arguments)
        self.declarations.setdefault(name, f"declare {result.text} @{name}({kinds})")
        return Callee(result, f"@{name}")

    def external(self, name: str) -> Value:
        """The address of an imported symbol."""
        self.declarations.setdefault(name, f"@{name} = external global i8")
        return Value(POINTER, f"@{name}")

    def find(self, name: str) -> Callee | None:
        """A function already defined in the module."""
        return self.functions[name].callee if name in self.functions else None

    def define(
        self, name: str, result: Type, arguments: Sequence[tuple[str, Type]], *, exported: bool = False
    ) -> Function:
        """A new function; internal unless exported. Arguments keep their names."""
        function = Function(self, name, result, arguments, exported=exported)
        self.functions[name] = function
        return function

    def __str__(self) -> str:
        parts = [*self.header, *self.declarations.values()]
        for function in self.functions.values():
            parts.extend(function.lines())
        return "\n".join(parts) + "\n"


class Callee(NamedTuple):
    """Something to call: its result type, and its name or a pointer."""

    result: Type
    text: str


class Block:
    """A basic block: a label and its lines; phi lines are completed when their loop ends."""

    __slots__ = ("label", "lines", "terminated")

    def __init__(self, label: str) -> None:
        self.label = label
        self.lines: list[str] = []
        self.terminated = False


class Phi:
    """A phi under construction: reserves its line, and is a value at once."""

    __slots__ = ("block", "incoming", "line", "value")

    def __init__(self, block: Block, value: Value) -> None:
        self.block, self.value, self.line = block, value, len(block.lines)
        self.incoming: list[str] = []
        block.lines.append("")

    def add(self, value: Value, origin: Block) -> None:
        """The value where control comes from a block."""
        self.incoming.append(f"[{value.text}, %{origin.label}]")
        joined = ", ".join(self.incoming)
        self.block.lines[self.line] = f"{self.value.text} = phi {self.value.type.text} {joined}"


# --- functions ----------------------------------------------------------------------------------


class Function:
    """One function under construction, positioned at the end of its current block."""

    def __init__(
        self,
        module: Module,
        name: str,
        result: Type,
        arguments: Sequence[tuple[str, Type]],
        *,
        exported: bool,
    ) -> None:
        self.module, self.name, self.result = module, name, result
        self.arguments = {label: Value(kind, f"%{label}") for label, kind in arguments}
        self.exported = exported
        self.callee = Callee(result, f"@{name}")
        self._count = 0
        self._stack: list[str] = []
        self.blocks: list[Block] = []
        self.block = self.new_block("entry")
        self.blocks.append(self.block)

    def lines(self) -> Iterator[str]:
        """The text of the definition."""
        linkage = "" if self.exported else "internal "
        arguments = ", ".join(value.typed for value in self.arguments.values())
        yield f"define {linkage}{self.result.text} @{self.name}({arguments}) {self.module.attributes} {{"
        for block in self.blocks:
            yield f"{block.label}:"
            if block is self.blocks[0]:
                yield from self._stack
            yield from block.lines
        yield "}"

    # --- instructions and blocks --------------------------------------------------------------

    def _name(self) -> str:
        self._count += 1
        return f"%.{self._count}"

    def emit(self, kind: Type, text: str) -> Value:
        """Appends ``%new = text``."""
        name = self._name()
        self.block.lines.append(f"{name} = {text}")
        return Value(kind, name)

    def effect(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.block.lines.append(text)

    def new_block(self, label: str) -> Block:
        """A block with a unique label, not yet placed."""
        self._count += 1
        return Block(f"{label}.{self._count}")

    def place(self, block: Block) -> None:
        """Puts a block at the end of the function and goes on in it."""
        self.blocks.append(block)
        self.block = block

    def jump(self, target: Block) -> None:
        """Ends the block by going to another."""
        self.effect(f"br label %{target.label}")
        self.block.terminated = True

    def jump_if(self, condition: Value, then: Block, otherwise: Block) -> None:
        """Ends the block by going to one of two."""
        self.effect(f"br i1 {condition.text}, label %{then.label}, label %{otherwise.label}")
        self.block.terminated = True

    def ret(self, value: Value | None = None) -> None:
        """Ends the block by returning."""
        self.effect("ret void" if value is None else f"ret {value.typed}")
        self.block.terminated = True

    def call(self, callee: Callee, arguments: Sequence[Value]) -> Value:
        """Calls a function of this module or an imported one."""
        text = f"call {callee.result.text} {callee.text}({', '.join(value.typed for value in arguments)})"
        if callee.result is VOID:
            self.effect(text)
            return poison(VOID)
        return self.emit(callee.result, text)

    # --- integers -----------------------------------------------------------------------------

    def _binary(self, word: str, left: Value, right: Value) -> Value:
        return self.emit(left.type, f"{word} {left.typed}, {right.text}")

    def add(self, left: Value, right: Value | int) -> Value:
        """left + right, constants folded."""
        right = _integer(right, left)
        if left.known is not None and right.known is not None:
            return Value(left.type, str(left.known + right.known), left.known + right.known)
        if right.known == 0:
            return left
        return right if left.known == 0 else self._binary("add", left, right)

    def sub(self, left: Value, right: Value | int) -> Value:
        """left - right, constants folded."""
        right = _integer(right, left)
        if left.known is not None and right.known is not None:
            return Value(left.type, str(left.known - right.known), left.known - right.known)
        return left if right.known == 0 else self._binary("sub", left, right)

    def mul(self, left: Value, right: Value | int) -> Value:
        """left * right, constants folded."""
        right = _integer(right, left)
        if left.known is not None and right.known is not None:
            return Value(left.type, str(left.known * right.known), left.known * right.known)
        if 0 in (left.known, right.known):
            return Value(left.type, "0", 0)
        if right.known == 1:
            return left
        return right if left.known == 1 else self._binary("mul", left, right)

    def shift_left(self, left: Value, right: Value) -> Value:
        """left << right."""
        return self._binary("shl", left, right)

    def shift_right(self, left: Value, right: Value) -> Value:
        """left >> right, keeping the sign."""
        return self._binary("ashr", left, right)

    def both(self, left: Value, right: Value) -> Value:
        """Bitwise and."""
        return self._binary("and", left, right)

    def either(self, left: Value, right: Value) -> Value:
        """Bitwise or."""
        return self._binary("or", left, right)

    def negate(self, condition: Value) -> Value:
        """The opposite of a condition."""
        return self.emit(INT1, f"xor {condition.typed}, true")

    def ceildiv(self, left: Value, right: Value) -> Value:
        """left / right rounded up, of a non-negative by a positive integer."""
        return self._binary("udiv", self.add(left, self.sub(right, 1)), right)

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """One value or the other; lane by lane where the condition is a vector."""
        return self.emit(then.type, f"select {condition.typed}, {then.typed}, {otherwise.typed}")

    def minimum(self, left: Value, right: Value) -> Value:
        """Signed minimum."""
        return self.select(self.compare("<", left, right), left, right)

    def maximum(self, left: Value, right: Value) -> Value:
        """Signed maximum."""
        return self.select(self.compare(">", left, right), left, right)

    def compare(self, relation: str, left: Value, right: Value | int) -> Value:
        """Signed comparison: '<', '<=', '==', '!=', '>', '>='; of pointers '==' and '!='."""
        word = _RELATIONS[relation]
        return self.emit(_truth(left.type), f"icmp {word} {left.typed}, {_integer(right, left).text}")

    def differs(self, left: Value, right: Value) -> Value:
        """Floating-point left != right; true for NaN."""
        return self.emit(_truth(left.type), f"fcmp une {left.typed}, {right.text}")

    def opaque(self, value: Value) -> Value:
        """The same value, hidden from loop strength reduction (which would rebuild it by serial adds)."""
        return self.emit(value.type, f"freeze {value.typed}")

    def truncate(self, value: Value, kind: Type) -> Value:
        """The low bits of an integer."""
        return self.emit(kind, f"trunc {value.typed} to {kind.text}")

    def extend(self, value: Value, kind: Type) -> Value:
        """A wider integer of the same signed value."""
        return self.emit(kind, f"sext {value.typed} to {kind.text}")

    def as_integer(self, pointer: Value) -> Value:
        """The address in a pointer."""
        return self.emit(INT64, f"ptrtoint {pointer.typed} to i64")

    def as_pointer(self, address: Value) -> Value:
        """The pointer to an address."""
        return self.emit(POINTER, f"inttoptr {address.typed} to ptr")

    # --- memory -------------------------------------------------------------------------------

    def at(self, pointer: Value, offset_bytes: Value | int) -> Value:
        """pointer + offset_bytes."""
        offset = int64(offset_bytes) if isinstance(offset_bytes, int) else offset_bytes
        if offset.known == 0:
            return pointer
        return self.emit(POINTER, f"getelementptr i8, {pointer.typed}, {offset.typed}")

    def load(self, kind: Type, pointer: Value, align: int) -> Value:
        """One element, vector or pointer."""
        return self.emit(kind, f"load {kind.text}, {pointer.typed}, align {align}")

    def store(self, value: Value, pointer: Value, align: int) -> None:
        """Writes one element or vector."""
        self.effect(f"store {value.typed}, {pointer.typed}, align {align}")

    def masked_load(
        self, kind: Type, pointer: Value, mask: Value, align: int, others: Value | None = None
    ) -> Value:
        """Lanes under the mask; the bytes of the others are not touched, they are zero or from `others`."""
        signature = (POINTER, INT32, mask.type, kind)
        intrinsic = self.module.declare(f"llvm.masked.load.{kind.suffix}.p0", kind, signature)
        return self.call(intrinsic, [pointer, int32(align), mask, others or zero(kind)])

    def masked_store(self, value: Value, pointer: Value, mask: Value, align: int) -> None:
        """Writes the lanes under the mask; the bytes of the others are not touched."""
        kind = value.type
        signature = (kind, POINTER, INT32, mask.type)
        intrinsic = self.module.declare(f"llvm.masked.store.{kind.suffix}.p0", VOID, signature)
        self.call(intrinsic, [value, pointer, int32(align), mask])

    def prefetch(self, pointer: Value, *, write: bool, locality: int) -> None:
        """A hint; locality 3 is the nearest cache, 2 the second level."""
        intrinsic = self.module.declare("llvm.prefetch.p0", VOID, (POINTER, INT32, INT32, INT32))
        self.call(intrinsic, [pointer, int32(int(write)), int32(locality), int32(1)])

    def stack(self, kind: Type, count: int, align: int) -> Value:
        """A small buffer in the frame."""
        name = self._name()
        self._stack.append(f"{name} = alloca {kind.text}, i64 {count}, align {align}")
        return Value(POINTER, name)

    # --- vectors ------------------------------------------------------------------------------

    def splat(self, scalar: Value, lanes: int) -> Value:
        """A vector with the scalar in every lane."""
        kind = vector_of(scalar.type, lanes)
        one = self.emit(kind, f"insertelement {kind.text} poison, {scalar.typed}, i32 0")
        mask = zero(vector_of(INT32, lanes))
        return self.emit(kind, f"shufflevector {one.typed}, {kind.text} poison, {mask.typed}")

    def shuffle(self, left: Value, right: Value, lanes: Sequence[int]) -> Value:
        """Lanes of left (0..n-1) and right (n..2n-1)."""
        element = left.type.text.split(" x ", 1)[1].rstrip(">")
        kind = vector_of(Type(element, left.type.suffix.lstrip("v0123456789")), len(lanes))
        mask = _vector_constant(INT32, lanes)
        return self.emit(kind, f"shufflevector {left.typed}, {right.typed}, {mask.typed}")

    def first_lanes(self, count: Value, offset: int, lanes: int) -> Value:
        """A mask of the lanes l with offset + l < count (a 64-bit value)."""
        limit = self.splat(self.truncate(count, INT32), lanes)
        numbers = _vector_constant(INT32, range(offset, offset + lanes))
        return self.compare("<", numbers, limit)

    def float_multiply(self, left: Value, right: Value) -> Value:
        """left * right on floats."""
        return self._binary("fmul", left, right)

    def multiply_add(self, left: Value, right: Value, addend: Value, *, fused: bool) -> Value:
        """left * right + addend on floats, with one rounding or two."""
        if not fused:
            return self._binary("fadd", self.float_multiply(left, right), addend)
        kind = left.type
        intrinsic = self.module.declare(f"llvm.fma.{kind.suffix}", kind, (kind, kind, kind))
        return self.call(intrinsic, [left, right, addend])

    # --- control flow -------------------------------------------------------------------------

    @contextmanager
    def loop(self, begin: Value, end: Value, step: Value, name: str = "i") -> Iterator[Value]:
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
        body, done = self.new_block(f"{name}.body"), self.new_block(f"{name}.done")
        before = self.block
        self.jump_if(self.compare("<", begin, end), body, done)
        self.place(body)
        index = self._phi(INT64)
        index.add(begin, before)
        carried = [self._phi(value.type) for value in initial]
        advance = Advance()
        yield index.value, tuple(phi.value for phi in carried), advance
        following = self._binary("add", index.value, step)
        latch = self.block
        self.jump_if(self.compare("<", following, end), body, done)
        index.add(following, latch)
        self.place(done)
        for phi, start, value in zip(carried, initial, advance.values, strict=True):
            phi.add(start, before)
            phi.add(value, latch)
            result = self._phi(start.type)
            result.add(start, before)
            result.add(value, latch)
            advance.results.append(result.value)

    @contextmanager
    def once_if(
        self, condition: Value, initial: Sequence[Value]
    ) -> Iterator[tuple[tuple[Value, ...], Advance]]:
        """A block that changes values in registers, run only if the condition holds.

        Yields (values, advance); the block calls ``advance(changed values)`` once, last. Afterwards
        ``advance.results`` holds the changed values or the initial ones.
        """
        then, join = self.new_block("once"), self.new_block("join")
        before = self.block
        self.jump_if(condition, then, join)
        self.place(then)
        advance = Advance()
        yield tuple(initial), advance
        after = self.block
        self.jump(join)
        self.place(join)
        for start, value in zip(initial, advance.values, strict=True):
            phi = self._phi(start.type)
            phi.add(start, before)
            phi.add(value, after)
            advance.results.append(phi.value)

    def _phi(self, kind: Type) -> Phi:
        return Phi(self.block, Value(kind, self._name()))

    @contextmanager
    def branch(
        self, condition: Value
    ) -> Iterator[tuple[AbstractContextManager[None], AbstractContextManager[None]]]:
        """``with f.branch(c) as (then, otherwise): with then: ...; with otherwise: ...``."""
        then, otherwise, join = self.new_block("then"), self.new_block("else"), self.new_block("join")
        self.jump_if(condition, then, otherwise)

        @contextmanager
        def inside(block: Block) -> Iterator[None]:
            self.place(block)
            yield
            if not self.block.terminated:
                self.jump(join)

        yield inside(then), inside(otherwise)
        self.place(join)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Runs the block if the condition holds."""
        then, join = self.new_block("then"), self.new_block("join")
        self.jump_if(condition, then, join)
        self.place(then)
        yield
        if not self.block.terminated:
            self.jump(join)
        self.place(join)


class Advance:
    """Collects the next values of a carried loop, then holds its results."""

    def __init__(self) -> None:
        self.values: tuple[Value, ...] = ()
        self.results: list[Value] = []

    def __call__(self, values: Sequence[Value]) -> None:
        """Sets what the next iteration starts with."""
        self.values = tuple(values)


_RELATIONS = {"<": "slt", "<=": "sle", "==": "eq", "!=": "ne", ">": "sgt", ">=": "sge"}


def _integer(value: Value | int, like: Value) -> Value:
    return Value(like.type, str(value), value) if isinstance(value, int) else value


def _truth(kind: Type) -> Type:
    return vector_of(INT1, kind.lanes) if kind.lanes else INT1


def _vector_constant(element: Type, values: Sequence[int]) -> Value:
    text = ", ".join(f"{element.text} {value}" for value in values)
    return Value(vector_of(element, len(values)), f"<{text}>")
