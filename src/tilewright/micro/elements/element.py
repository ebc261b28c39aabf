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
    words. Their addresses need not be multiples of anything.

    Attributes
    ----------
    op, dtype : the operation and the element type.
    fused : multiply-adds round once on the row.
    half : the row converts between float16 and float32.
    """

    op: UnaryOp
    dtype: DType
    fused: bool = True
    half: bool = True

    @property
    def words(self) -> int:
        """Lanes that one element takes."""
        return 1 if self.op.computes else max(1, self.dtype.bits // WORD_BITS)

    @property
    def lane(self) -> Type:
        """The type of one lane."""
        if self.op.computes:
            return memory_type(self.dtype)
        bits = min(self.dtype.bits, WORD_BITS)
        return Type(f"i{bits}", f"i{bits}")

    @property
    def align(self) -> int:
        """Bytes that every address is a multiple of."""
        return self.dtype.size if self.op.computes else 1

    def vector(self, count: int) -> Type:
        """A vector of `count` elements."""
        return vector_of(self.lane, count * self.words)

    def lanes(self, isa: Isa) -> int:
        """Elements of one vector register."""
        return max(1, isa.vector_bits // self.dtype.bits)

    def load(self, f: Function, pointer: Value, count: int) -> Value:
        """`count` adjacent elements."""
        return f.load(self.vector(count), pointer, self.align)

    def store(self, f: Function, value: Value, pointer: Value) -> None:
        """Writes adjacent elements."""
        f.store(value, pointer, self.align)

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
        lanes, least = vectors[0].type.lanes, PART_BITS // self.dtype.bits
        if self.op is UnaryOp.IDENTITY or lanes == 1 or lanes >= least:
            return [self.operate(f, x) for x in vectors]
        whole = f.concatenate(vectors)
        every = range(whole.type.lanes)
        if len(every) >= least:
            whole = self.operate(f, whole)
        else:
            whole = f.concatenate([self.operate(f, f.shuffle(whole, whole, [lane])) for lane in every])
        return [f.shuffle(whole, whole, every[first : first + lanes]) for first in every[::lanes]]
