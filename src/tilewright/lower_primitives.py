"""What each primitive of `ir/primitives.py` is in machine code: one row a primitive."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.nodes import Primitive
from tilewright.ir.primitives import Begin, Keep, Normalise, Softmax, SoftmaxGradient
from tilewright.llvm.build import Function
from tilewright.machine.isa import Isa
from tilewright.micro.softmax import Operands, emit_begin, emit_keep, emit_normalise, emit_softmax
from tilewright.micro.softmax_gradient import emit_softmax_gradient

#: Writes a call of a primitive's function into a function.
LOWERED: dict[type[Primitive], Callable[[Function, Isa, Operands], None]] = {
    Begin: emit_begin,
    Keep: emit_keep,
    Normalise: emit_normalise,
    Softmax: emit_softmax,
    SoftmaxGradient: emit_softmax_gradient,
}
