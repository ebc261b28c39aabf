"""One element of a unary operation in registers, and the operation on vectors of them."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import Type, Value, memory_type, vector_of
from tilewright.machine.isa import Isa
from tilewright.micro.elements.math import emit
from tilewright.micro.packing.transpose import PART_BITS
from tilewright.records import dataclass
from tilewright.spec.dtype import F32, DType
from tilewright.spec.functions import UnaryOp

#: The widest integer that vectors of every instruction set have as a lane.
WORD_BITS = 64


@dataclass(frozen=True)
class ElementOp:
    """One element of an operation's matrices.

    Moves treat every type as integers of its size, so that no bit changes; an element of 128 bits is two
    words. Their addresses need not be multiples of anything. Identity between two types of floats converts.

    Attributes
    ----------
    op, dtype : the operation and the element type of the destination.
    source : that of the source, if it is another one.
    fused : multiply-adds round once on the row.
    half : the row converts between float16 and float32.
    """

    op: UnaryOp
    dtype: DType
    source: DType
    fused: bool = True
    half: bool = True

    @property
    def converts(self) -> bool:
        """Whether elements change their type."""
        return self.source != self.dtype

    @property
    def name(self) -> str:
        """The part of functions' names that says what they do."""
        return f"{self.op.value}_{f'{self.source}_' * self.converts}{self.dtype}"

    @property
    def words(self) -> int:
        """Lanes that one element takes."""
        return 1 if self._typed else max(1, self.dtype.bits // WORD_BITS)

    @property
    def _typed(self) -> bool:
        """Whether elements are numbers, not bytes that are moved."""
        return self.op.computes or self.converts

    def _lane(self, dtype: DType) -> Type:
        """The type of one lane."""
        if self._typed:
            return memory_type(dtype)
        bits = min(dtype.bits, WORD_BITS)
        return Type(f"i{bits}", f"i{bits}")

    def _align(self, dtype: DType) -> int:
        """Bytes that every address is a multiple of."""
        return dtype.size if self._typed else 1

    def vector(self, count: int) -> Type:
        """A vector of `count` elements of the source."""
        return vector_of(self._lane(self.source), count * self.words)

    def lanes(self, isa: Isa) -> int:
        """Elements of one vector register, in the wider type."""
        return max(1, isa.vector_bits // max(self.dtype.bits, self.source.bits))

    def load(self, f: Function, pointer: Value, count: int) -> Value:
        """`count` adjacent elements."""
        return f.load(self.vector(count), pointer, self._align(self.source))

    def store(self, f: Function, value: Value, pointer: Value) -> None:
        """Writes adjacent elements."""
        f.store(value, pointer, self._align(self.dtype))

    @property
    def reads_nothing(self) -> bool:
        """Whether the result is the same for all elements."""
        return self.op is UnaryOp.ZERO

    def operate(self, f: Function, x: Value) -> Value:
        """The operation on every lane of a whole register, or of one element.

        Floats of 16 bits are computed in float32 and rounded once.

        For vectors in between, the hardware would compute unused lanes, which could raise floating-point
        flags: `operate_all` joins such vectors.
        """
        if self.converts:
            return Convert(f, half=self.half)(x, self.source, self.dtype)
        if self.op is UnaryOp.IDENTITY:
            return x
        assert x.type.lanes == 1 or x.type.lanes * self.dtype.bits >= PART_BITS
        if self.dtype.bits >= F32.bits:
            return emit(f, self.op, self.dtype, x, fused=self.fused)
        convert = Convert(f, half=self.half)
        found = emit(f, self.op, F32, convert(x, self.dtype, F32), fused=self.fused)
        return convert(found, F32, self.dtype)

    def operate_all(self, f: Function, vectors: list[Value]) -> list[Value]:
        """The operation on several vectors of one width: side by side if they fill a register only so."""
        lanes, least = vectors[0].type.lanes, PART_BITS // min(self.dtype.bits, self.source.bits)
        if not self._typed or lanes == 1 or lanes >= least:
            return [self.operate(f, x) for x in vectors]
        whole = f.concatenate(vectors)
        every = range(whole.type.lanes)
        if len(every) >= least:
            whole = self.operate(f, whole)
        else:
            whole = f.concatenate([self.operate(f, f.shuffle(whole, whole, [lane])) for lane in every])
        return [f.shuffle(whole, whole, every[first : first + lanes]) for first in every[::lanes]]
