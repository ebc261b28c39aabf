"""Writes LLVM IR: functions with loops, branches, vectors and masks, as text.

LLVM takes IR as text in any case, so values here are names with a type, and each operation appends
one line. That is several times faster than an object per instruction, and every type LLVM has can
be spelled (bfloat, scalable vectors, x86_amx). Pointers are opaque and addresses are bytes. Nothing
here emits inline assembly: LLVM has no foreign assembly parser for cross-compilation, and aborts
the process when it meets some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tilewright.llvm.control import ControlFlow
from tilewright.llvm.values import (
    INT1,
    INT32,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    element_of,
    every_lane,
    int32,
    int64,
    integer,
    is_float,
    poison,
    truth_of,
    vector_constant,
    vector_of,
    zero,
)
from tilewright.machine.arch import GRANULE_BITS, find_arch


def vector_length(vector_bits: int) -> str:
    """The attribute of a function whose scalable vectors have a known length.

    >>> vector_length(512)
    'vscale_range(4,4)'
    """
    granules = vector_bits // GRANULE_BITS
    return f"vscale_range({granules},{granules})"


class Module:
    """One LLVM module under construction.

    Parameters
    ----------
    name, triple, data_layout : as LLVM takes them.
    tuning : the CPU to schedule for, where it is another one than that to compile for.
    vector_bits : length of scalable vectors; 0 where no function has any.
    quick : whether it is quick code (`llvm/quick.py`), of as few variants of functions as will do.
    """

    def __init__(
        self,
        name: str,
        triple: str,
        data_layout: str,
        tuning: str | None = None,
        vector_bits: int = 0,
        *,
        quick: bool = False,
    ) -> None:
        # Unwind tables let profilers and debuggers walk through generated frames.
        self.attributes = "nounwind uwtable" + (f' "tune-cpu"="{tuning}"' if tuning else "")
        if vector_bits:
            self.attributes += f" {vector_length(vector_bits)}"
        self.header = (
            f"; ModuleID = '{name}'",
            f'target datalayout = "{data_layout}"',
            f'target triple = "{triple}"',
        )
        self.triple, self.vector_bits, self.quick = triple, vector_bits, quick
        #: What the text of functions may depend on: modules of one kind can share them.
        self.kind = (triple, data_layout, tuning, vector_bits, quick)
        self.functions: dict[str, Function] = {}
        self.declarations: dict[str, str] = {}

    def empty(self) -> Module:
        """Another module of this kind, without functions."""
        triple, data_layout, tuning, vector_bits, quick = self.kind
        return Module("", triple, data_layout, tuning, vector_bits, quick=quick)

    def declare(
        self, name: str, result: Type, arguments: Sequence[Type], *, variadic: bool = False
    ) -> Callee:
        """An external function or intrinsic; declared once. Of a variadic one, the fixed arguments."""
        kinds = ", ".join([*(kind.text for kind in arguments), *(["..."] if variadic else [])])
        self.declarations.setdefault(name, f"declare {result.text} @{name}({kinds})")
        return Callee(result, f"@{name}", f"{result.text} ({kinds})" if variadic else "")

    def external(self, name: str) -> Value:
        """The address of an imported symbol."""
        self.declarations.setdefault(name, f"@{name} = external global i8")
        return Value(POINTER, f"@{name}")

    def find(self, name: str) -> Callee | None:
        """A function already defined in the module."""
        return self.functions[name].callee if name in self.functions else None

    def define(
        self,
        name: str,
        result: Type,
        arguments: Sequence[tuple[str, Type]],
        *,
        exported: bool = False,
        attributes: str | None = None,
        as_written: bool = False,
        variadic: bool = False,
    ) -> Function:
        """A new function; internal unless exported. Arguments keep their names.

        Parameters
        ----------
        as_written : LLVM does not optimise the code, which halves its compile time; for loops around calls.
        attributes : as LLVM spells them, in place of those that the module's functions have. Memory and calls
            are what functions of different lengths of vectors share: no vector is an argument or a result.
        variadic : further arguments may be given, which it does not read.
        """
        function = Function(self, name, result, arguments, exported=exported, attributes=attributes)
        if as_written:
            function.attributes = f"{self.attributes if attributes is None else attributes} optnone noinline"
        function.variadic = variadic
        self.functions[name] = function
        return function

    def __str__(self) -> str:
        parts = [*self.header, *self.declarations.values()]
        for function in self.functions.values():
            parts.extend(function.lines())
        return "\n".join(parts) + "\n"


class Callee(NamedTuple):
    """Something to call: its result type, its name or a pointer, its whole type where that is variadic."""

    result: Type
    text: str
    signature: str = ""


class Function(ControlFlow):
    """One function under construction, positioned at the end of its current block."""

    def __init__(
        self,
        module: Module,
        name: str,
        result: Type,
        arguments: Sequence[tuple[str, Type]],
        *,
        exported: bool,
        attributes: str | None = None,
    ) -> None:
        super().__init__()
        self.module, self.name, self.result = module, name, result
        self.arguments = {label: Value(kind, f"%{label}") for label, kind in arguments}
        self.exported, self.attributes, self.variadic = exported, attributes, False
        self.callee = Callee(result, f"@{name}")
        self.kept_arguments: object = None  # those that bodies of tasks read (`team.py`)
        self._stack: list[str] = []
        self._opening: list[str] = []
        self._closing: list[tuple[str, Callable[[], None]]] = []
        self._text = ""

    def seal(self) -> int:
        """Keeps the text alone, of a function that is complete; its length."""
        if not self._text:
            self._text = "\n".join(self.lines())
            self.blocks.clear()
        return len(self._text)

    def lines(self) -> Iterator[str]:
        """The text of the definition."""
        if self._text:
            yield self._text
            return
        linkage = "" if self.exported else "internal "
        arguments = ", ".join([*(value.typed for value in self.arguments.values()), *["..."] * self.variadic])
        attributes = self.module.attributes if self.attributes is None else self.attributes
        yield f"define {linkage}{self.result.text} @{self.name}({arguments}) {attributes} {{"
        for block in self.blocks:
            yield f"{block.label}:"
            if block is self.blocks[0]:
                yield from self._stack
                yield from self._opening
            yield from block.lines
        yield "}"

    def surround(self, name: str, first: Callable[[], None], last: Callable[[], None]) -> None:
        """Writes something once at the function's start, and something before each return that follows."""
        if any(known == name for known, _ in self._closing):
            return
        kept, self.block.lines = self.block.lines, self._opening
        first()
        self.block.lines = kept
        self._closing.append((name, last))

    def ret(self, value: Value | None = None) -> None:
        """Ends the block by returning."""
        for _, last in self._closing:
            last()
        self.effect("ret void" if value is None else f"ret {value.typed}")
        self.block.terminated = True

    def call(self, callee: Callee, arguments: Sequence[Value]) -> Value:
        """Calls a function of this module or an imported one."""
        kind = callee.signature or callee.result.text
        text = f"call {kind} {callee.text}({', '.join(value.typed for value in arguments)})"
        if callee.result is VOID:
            self.effect(text)
            return poison(VOID)
        return self.emit(callee.result, text)

    # --- integers -----------------------------------------------------------------------------

    def _binary(self, word: str, left: Value, right: Value) -> Value:
        return self.emit(left.type, f"{word} {left.typed}, {right.text}")

    def add(self, left: Value, right: Value | int) -> Value:
        """left + right, constants folded."""
        right = integer(right, left)
        if left.known is not None and right.known is not None:
            return integer(left.known + right.known, left)
        if right.known == 0:
            return left
        return right if left.known == 0 else self._binary("add", left, right)

    def sub(self, left: Value, right: Value | int) -> Value:
        """left - right, constants folded."""
        right = integer(right, left)
        if left.known is not None and right.known is not None:
            return integer(left.known - right.known, left)
        return left if right.known == 0 else self._binary("sub", left, right)

    def mul(self, left: Value, right: Value | int) -> Value:
        """left * right, constants folded."""
        right = integer(right, left)
        if left.known is not None and right.known is not None:
            return integer(left.known * right.known, left)
        if 0 in (left.known, right.known):
            return integer(0, left)
        if right.known == 1:
            return left
        return right if left.known == 1 else self._binary("mul", left, right)

    def bytes_of(self, count: Value, bits: int) -> Value:
        """The bytes of a number of elements of some bits, which fill whole bytes; constants folded."""
        if bits % 8 == 0:
            return self.mul(count, bits // 8)
        if count.known is not None:
            return integer(count.known * bits // 8, count)
        return self.ashr(self.mul(count, bits), integer(3, count))

    def shl(self, left: Value, right: Value) -> Value:
        """left << right."""
        return self._binary("shl", left, right)

    def ashr(self, left: Value, right: Value) -> Value:
        """left >> right, keeping the sign."""
        return self._binary("ashr", left, right)

    def and_(self, left: Value, right: Value) -> Value:
        """Bitwise and."""
        return self._binary("and", left, right)

    def or_(self, left: Value, right: Value) -> Value:
        """Bitwise or."""
        return self._binary("or", left, right)

    def xor(self, left: Value, right: Value | int) -> Value:
        """Bitwise exclusive or; a constant is the same in every lane."""
        return self._binary("xor", left, right if isinstance(right, Value) else every_lane(left, right))

    def not_(self, condition: Value) -> Value:
        """The opposite of a condition."""
        return self.emit(INT1, f"xor {condition.typed}, true")

    def ceildiv(self, left: Value, right: Value) -> Value:
        """left / right rounded up, of a non-negative by a positive integer; constants folded."""
        if left.known is not None and right.known is not None:
            return integer(-(-left.known // right.known), left)
        return self._binary("udiv", self.add(left, self.sub(right, 1)), right)

    def udiv(self, left: Value, right: Value) -> Value:
        """left / right rounded down, of a non-negative by a positive integer."""
        return self._binary("udiv", left, right)

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """One value or the other; lane by lane where the condition is a vector."""
        return self.emit(then.type, f"select {condition.typed}, {then.typed}, {otherwise.typed}")

    def minimum(self, left: Value, right: Value) -> Value:
        """Signed minimum."""
        return self.select(self.icmp("<", left, right), left, right)

    def maximum(self, left: Value, right: Value) -> Value:
        """Signed maximum."""
        return self.select(self.icmp(">", left, right), left, right)

    def icmp(self, relation: str, left: Value, right: Value | int) -> Value:
        """Signed comparison: '<', '<=', '==', '!=', '>', '>='; of pointers '==' and '!='."""
        word = _RELATIONS[relation]
        return self.emit(truth_of(left.type), f"icmp {word} {left.typed}, {integer(right, left).text}")

    def freeze(self, value: Value) -> Value:
        """The same value, hidden from loop strength reduction (which would rebuild it by serial adds)."""
        return self.emit(value.type, f"freeze {value.typed}")

    def arithmetic_fence(self, value: Value) -> Value:
        """The same floats, which LLVM does not see through: parts of a register stay parts of it."""
        kind = value.type
        return self.call(self.module.declare(f"llvm.arithmetic.fence.{kind.suffix}", kind, (kind,)), [value])

    def trunc(self, value: Value, kind: Type) -> Value:
        """The low bits of an integer."""
        return self.emit(kind, f"trunc {value.typed} to {kind.text}")

    def sext(self, value: Value, kind: Type) -> Value:
        """A wider integer of the same signed value."""
        return self.emit(kind, f"sext {value.typed} to {kind.text}")

    def zext(self, value: Value, kind: Type) -> Value:
        """A wider integer of the same unsigned value."""
        return self.emit(kind, f"zext {value.typed} to {kind.text}")

    def ptrtoint(self, pointer: Value) -> Value:
        """The address in a pointer."""
        return self.emit(INT64, f"ptrtoint {pointer.typed} to i64")

    def inttoptr(self, address: Value) -> Value:
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

    def reload(self, kind: Type, pointer: Value, align: int) -> Value:
        """The same from memory each time, so that it occupies no register in between."""
        return self.emit(kind, f"load volatile {kind.text}, {pointer.typed}, align {align}")

    def store(self, value: Value, pointer: Value, align: int) -> None:
        """Writes one element or vector."""
        self.effect(f"store {value.typed}, {pointer.typed}, align {align}")

    def store_nontemporal(self, value: Value, pointer: Value, align: int) -> None:
        """Writes a vector past the caches; call `fence` before others may read it."""
        self.module.declarations.setdefault("nontemporal", "!0 = !{i32 1}")
        self.effect(f"store {value.typed}, {pointer.typed}, align {align}, !nontemporal !0")

    def fence(self) -> None:
        """What was written before is visible before what is written after."""
        self.effect("fence seq_cst")

    # --- memory that several threads write --------------------------------------------------------

    def load_acquire(self, kind: Type, pointer: Value) -> Value:
        """An integer that other threads write; what they wrote before it is visible afterwards."""
        return self.emit(kind, f"load atomic {kind.text}, {pointer.typed} acquire, align {_whole(kind)}")

    def store_release(self, value: Value, pointer: Value) -> None:
        """An integer that other threads read; what was written before is visible to them with it."""
        self.effect(f"store atomic {value.typed}, {pointer.typed} release, align {_whole(value.type)}")

    def atomic_add(self, pointer: Value, value: Value | int) -> Value:
        """Adds to a shared 64-bit integer; what it was before."""
        addend = int64(value) if isinstance(value, int) else value
        return self.emit(addend.type, f"atomicrmw add {pointer.typed}, {addend.typed} acq_rel")

    def atomic_or(self, pointer: Value, value: Value) -> Value:
        """Sets bits of a shared integer; what it was before."""
        return self.emit(value.type, f"atomicrmw or {pointer.typed}, {value.typed} acq_rel")

    def xchg(self, pointer: Value, value: Value) -> Value:
        """Writes a shared integer; what it was before."""
        return self.emit(value.type, f"atomicrmw xchg {pointer.typed}, {value.typed} acq_rel")

    def cmpxchg(self, pointer: Value, expected: Value, value: Value) -> Value:
        """Writes a shared integer if it is the expected one; whether it was."""
        pair = Type(f"{{ {value.type.text}, i1 }}", "")
        both = self.emit(pair, f"cmpxchg {pointer.typed}, {expected.typed}, {value.typed} seq_cst seq_cst")
        return self.emit(INT1, f"extractvalue {both.typed}, 1")

    def pause(self) -> None:
        """Tells the CPU that this thread polls memory; nothing where LLVM has no intrinsic for it."""
        found = find_arch(self.module.triple).pause
        if found is not None:
            name, arguments = found[0], [int32(number) for number in found[1]]
            intrinsic = self.module.declare(name, VOID, [value.type for value in arguments])
            self.call(intrinsic, arguments)

    # --- memory under masks -----------------------------------------------------------------------

    def masked_load(
        self, kind: Type, pointer: Value, mask: Value, align: int, others: Value | None = None
    ) -> Value:
        """Lanes under the mask; the bytes of the others are not touched, they are zero or from `others`."""
        if kind.lanes == 1:
            two, first = vector_of(element_of(kind), 2), self._first_of_two(mask)
            both = self.masked_load(two, pointer, first, align, others and self._pair(others))
            return self.shuffle(both, both, [0])
        signature = (POINTER, INT32, mask.type, kind)
        intrinsic = self.module.declare(f"llvm.masked.load.{kind.suffix}.p0", kind, signature)
        return self.call(intrinsic, [pointer, int32(align), mask, others or zero(kind)])

    def masked_store(self, value: Value, pointer: Value, mask: Value, align: int) -> None:
        """Writes the lanes under the mask; the bytes of the others are not touched."""
        kind = value.type
        if kind.lanes == 1:
            self.masked_store(self._pair(value), pointer, self._first_of_two(mask), align)
            return
        signature = (kind, POINTER, INT32, mask.type)
        intrinsic = self.module.declare(f"llvm.masked.store.{kind.suffix}.p0", VOID, signature)
        self.call(intrinsic, [value, pointer, int32(align), mask])

    def _first_of_two(self, mask: Value) -> Value:
        """The mask of one lane as that of two: LLVM 22 aborts on one double under a mask of SVE."""
        return self.shuffle(mask, zero(mask.type), [0, 1])

    def _pair(self, vector: Value) -> Value:
        return self.shuffle(vector, vector, [0, 0])

    def prefetch(self, pointer: Value, *, write: bool, locality: int) -> None:
        """A hint; locality 3 is the nearest cache, 2 the second level."""
        intrinsic = self.module.declare("llvm.prefetch.p0", VOID, (POINTER, INT32, INT32, INT32))
        self.call(intrinsic, [pointer, int32(int(write)), int32(locality), int32(1)])

    def alloca(self, kind: Type, count: int, align: int) -> Value:
        """A small buffer in the frame."""
        name = self.new_name()
        self._stack.append(f"{name} = alloca {kind.text}, i64 {count}, align {align}")
        return Value(POINTER, name)

    # --- vectors ------------------------------------------------------------------------------

    def splat(self, scalar: Value, lanes: int) -> Value:
        """A vector with the scalar in every lane."""
        kind = vector_of(scalar.type, lanes)
        one = self.emit(kind, f"insertelement {kind.text} poison, {scalar.typed}, i32 0")
        mask = zero(vector_of(INT32, lanes))
        return self.emit(kind, f"shufflevector {one.typed}, {kind.text} poison, {mask.typed}")

    def build_vector(self, scalars: Sequence[Value]) -> Value:
        """A vector of these lanes."""
        kind = vector_of(scalars[0].type, len(scalars))
        found = f"{kind.text} poison"
        for lane, scalar in enumerate(scalars):
            vector = self.emit(kind, f"insertelement {found}, {scalar.typed}, i32 {lane}")
            found = vector.typed
        return vector

    def shuffle(self, left: Value, right: Value, lanes: Sequence[int]) -> Value:
        """Lanes of left (0..n-1) and right (n..2n-1)."""
        kind = vector_of(element_of(left.type), len(lanes))
        mask = vector_constant(INT32, lanes)
        return self.emit(kind, f"shufflevector {left.typed}, {right.typed}, {mask.typed}")

    def extract(self, vector: Value, lane: int) -> Value:
        """One lane of a vector."""
        kind = element_of(vector.type)
        return self.emit(kind, f"extractelement {vector.typed}, i32 {lane}")

    def concatenate(self, vectors: Sequence[Value]) -> Value:
        """A power of two of vectors side by side."""
        while len(vectors) > 1:
            lanes = range(2 * vectors[0].type.lanes)
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self.shuffle(left, right, lanes) for left, right in pairs]
        return vectors[0]

    def lane_mask(self, count: Value, offset: int, lanes: int) -> Value:
        """A mask of the lanes l with offset + l < count (a 64-bit value)."""
        limit = self.splat(self.trunc(count, INT32), lanes)
        numbers = vector_constant(INT32, range(offset, offset + lanes))
        return self.icmp("<", numbers, limit)

    # --- numbers: floats round once, integers wrap around -----------------------------------------

    def times(self, left: Value, right: Value) -> Value:
        """left * right."""
        return self._binary("fmul" if is_float(left.type) else "mul", left, right)

    def plus(self, left: Value, right: Value) -> Value:
        """left + right."""
        return self._binary("fadd" if is_float(left.type) else "add", left, right)

    def minus(self, left: Value, right: Value) -> Value:
        """left - right."""
        return self._binary("fsub" if is_float(left.type) else "sub", left, right)

    def multiply_add(self, left: Value, right: Value, addend: Value, *, fused: bool) -> Value:
        """left * right + addend; floats with one rounding or two."""
        if not fused or not is_float(left.type):
            return self.plus(self.times(left, right), addend)
        kind = left.type
        intrinsic = self.module.declare(f"llvm.fma.{kind.suffix}", kind, (kind, kind, kind))
        return self.call(intrinsic, [left, right, addend])

    def not_equal(self, left: Value, right: Value) -> Value:
        """left != right; true for NaN."""
        word = "fcmp une" if is_float(left.type) else "icmp ne"
        return self.emit(truth_of(left.type), f"{word} {left.typed}, {right.text}")

    def bitcast(self, value: Value, kind: Type) -> Value:
        """The same bits as another type of the same size."""
        return value if value.type == kind else self.emit(kind, f"bitcast {value.typed} to {kind.text}")


def _whole(kind: Type) -> int:
    """Bytes of an integer, to which atomic ones are aligned."""
    return int(kind.text.removeprefix("i")) // 8


_RELATIONS = {"<": "slt", "<=": "sle", "==": "eq", "!=": "ne", ">": "sgt", ">=": "sge"}
