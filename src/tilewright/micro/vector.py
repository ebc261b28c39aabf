"""Broadcast-FMA: one element of A times a vector of B, on any row with vector registers."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, vector_type
from tilewright.machine.isa import Broadcast
from tilewright.micro.kernel import MicroKernel


class BroadcastFma(MicroKernel):
    """acc[row] += splat(A[row, p]) · B[p, vector]."""

    def load_a(self, function: Function, pointers: list[Value], widest: int) -> list[Value]:
        """A splat per row: a broadcasting load, or a lane of a vector load where FMA takes lanes."""
        size = self.dtype.size
        if not (self.adjacent_a and self.isa.broadcast is Broadcast.LANE):
            return [
                function.splat(function.load(self.element, pointer, size), widest) for pointer in pointers
            ]
        splats: list[Value] = []
        while len(splats) < len(pointers):
            count = min(self.lanes, len(pointers) - len(splats))
            several = function.load(vector_type(self.dtype, count), pointers[len(splats)], size)
            splats.extend(function.shuffle(several, several, [lane] * widest) for lane in range(count))
        return splats

    def load_b(self, function: Function, pointer: Value, width: int, mask: Value | None) -> Value:
        """One vector of B; masked lanes are not touched.

        They repeat the first element, so that they multiply what a real column multiplies: a zero
        would raise the invalid flag beside an infinity of A.
        """
        kind, size = vector_type(self.dtype, width), self.dtype.size
        if mask is None:
            return function.load(kind, pointer, size)
        first = function.splat(function.load(self.element, pointer, size), width)
        return function.masked_load(kind, pointer, mask, size, first)

    def multiply(self, function: Function, a: Value, b: Value, acc: Value | None) -> Value:
        """One multiply-add, or two instructions where the row has no fused one; or the product alone."""
        if a.type.lanes > b.type.lanes:
            a = function.shuffle(a, a, range(b.type.lanes))
        if acc is None:
            return function.float_multiply(a, b)
        return function.multiply_add(a, b, acc, fused=self.isa.tile(self.dtype).fused)
