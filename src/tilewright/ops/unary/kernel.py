"""Kernels of `Unary`: their C function, and calls on arrays that fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.calls.operands import (
    Array,
    check_operand,
    data_address,
    element_strides,
    leading_dimension,
)
from tilewright.calls.pieces import PIECE, pieces
from tilewright.calls.recording import repeatable
from tilewright.calls.repeated import repeated_method
from tilewright.compiler.kernel import Kernel
from tilewright.errors import LeadingDimension
from tilewright.ops.unary.problem import Unary
from tilewright.preparing import once_property
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Layout, Operand
from tilewright.threads.pool import without_team


class UnaryKernel(Kernel):
    """A kernel of a `Unary`: ``kernel(a, b)``, of zero ``kernel(None, b)``.

    The C function at `address` has the signature of scalable.uni-jena.de/opt/pbtc, Listing 7.3.1:
    ``void(const void *a, void *b, int64_t ld_a, int64_t ld_b)``, leading dimensions in elements; where a
    size is not hardcoded, ``int64_t m, int64_t n`` follow. The zero kernel reads neither a nor ld_a. Strided
    kernels take ``rs_a, cs_a, rs_b, cs_b`` for the leading dimensions.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> kernel = tw.compile(tw.Unary("square", 2, 3, b="row"))
    >>> a = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    >>> kernel(a, np.empty((2, 3), np.float32))
    array([[ 0.,  1.,  4.],
           [ 9., 16., 25.]], dtype=float32)
    """

    problem: Unary

    @repeated_method
    def __call__(self, a: Array | None, b: Array) -> Array:
        """b = op(a) on arrays of the problem's shapes, dtype and layouts.

        A kernel that does not transpose may be given one array as both.

        Raises
        ------
        OperandMismatch, LeadingDimension : before b changes.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        function = self.function
        in_a, in_b = self.problem.operands
        strides_b = self._strides(in_b, b)
        self._check_shape(in_b, b, b.shape)
        if not b.flags.writeable:
            self._refuse(in_b, "writeable =", False, True)
        if self.problem.op is UnaryOp.ZERO:
            if a is not None:
                self._refuse(in_a, "type", type(a).__name__, "None: the zero kernel reads nothing")
            source: tuple[int | None, ...] = (None, 0)
        else:
            source = self._source(in_a, a, b)
        if b.size > max(PIECE, self.blocking.stream_from):
            self._in_pieces(a, b)
        elif b.size:
            without_team(b.nbytes)  # a byte takes about as long as a multiply-add
            hardcoded = self.problem.m is not None and self.problem.n is not None
            function(source[0], data_address(b), *source[1:], *strides_b, *(() if hardcoded else b.shape))
        repeatable()
        return b

    def _in_pieces(self, a: Array | None, b: Array) -> None:
        """Run the kernel of any sizes part by part, so that signal handlers run in between."""
        open_sizes = self._of_any_sizes
        for part in pieces(b.shape, b.strides, max(PIECE, self.blocking.stream_from)):
            open_sizes(None if a is None else a[part], b[part])

    @once_property
    def _of_any_sizes(self) -> UnaryKernel:
        """The kernel without fixed sizes: this one if it has none."""
        if self.problem.m is None and self.problem.n is None:
            return self
        return type(self).compiled(replace(self.problem, m=None, n=None), self.machine)

    def _source(self, operand: Operand, a: Any, b: Array) -> tuple[int, ...]:
        """Address and strides of A after its checks."""
        strides = self._strides(operand, a)
        self._check_shape(operand, a, b.shape)
        if np.may_share_memory(a, b) and not self._in_place(a, b):
            self._refuse(operand, "memory", "shared with b", "separate from b, or b itself")
        return data_address(a), *strides

    def _in_place(self, a: Array, b: Array) -> bool:
        """Return whether every element of b is computed from the element at the same address."""
        transposed = self.problem.a is Layout.COL and self.problem.b is Layout.ROW and 1 not in b.shape
        return (
            not transposed and data_address(a) == data_address(b) and element_strides(a) == element_strides(b)
        )

    def _check_shape(self, operand: Operand, array: Array, shape: tuple[int, ...]) -> None:
        """The hardcoded sizes; the others as B has them."""
        pairs = zip((operand.rows, operand.columns), shape, strict=True)
        required = tuple(given if fixed is None else fixed for fixed, given in pairs)
        if array.shape != required:
            self._refuse(operand, "shape", array.shape, required)

    def _strides(self, operand: Operand, array: Any) -> tuple[int, ...]:
        """The checked leading dimension of an operand, or both strides where the layout leaves them open."""
        if operand.layout is not Layout.STRIDED:
            return (leading_dimension(self.name, operand, array),)
        check_operand(self.name, operand, array)
        strides = element_strides(array)
        if operand.name == "b" and array.size:
            pairs = zip(strides, array.shape, strict=True)
            reach = 0
            for step, size in sorted((abs(step), size) for step, size in pairs if size > 1):
                if step <= reach:
                    raise LeadingDimension(kernel=self.name, name="b", found=step, required=reach + 1)
                reach += step * (size - 1)
        return strides
