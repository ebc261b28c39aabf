"""Kernels of `BatchReduceGemm`: their C function, and calls on arrays that fit."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.calls.kernel import ArrayKernel
from tilewright.calls.operands import Array, data_address, leading_dimension
from tilewright.calls.recording import repeatable
from tilewright.calls.repeated import repeated_method
from tilewright.ops.batch_reduce.problem import BatchMode, BatchReduceGemm
from tilewright.spec.problem import Operand
from tilewright.threads.pool import without_team


class BatchReduceKernel(ArrayKernel):
    """A kernel of a `BatchReduceGemm`: ``kernel(a, b, c)`` with a (count, m, k) and b (count, k, n).

    The C function at `address` has the signature of scalable.uni-jena.de/opt/pbtc, Listing 7.2.1:
    ``void(const void *a, const void *b, void *c, int64_t ld_a, int64_t ld_b, int64_t ld_c,
    int64_t br_stride_a, int64_t br_stride_b)``, leading dimensions and strides in elements. With
    batch="address", a and b are arrays of `count` pointers, and the batch strides are not read; with
    batch="ahead", they lead to the next product. Arrays are one product, which has no next one.
    """

    problem: BatchReduceGemm

    @repeated_method
    def __call__(self, a: Any, b: Any, c: Array) -> Array:
        """c = beta · c + Σ a[i] @ b[i].

        With batch="address", a and b are sequences of `count` matrices of one leading dimension each.

        Raises
        ------
        OperandMismatch, LeadingDimension : before c changes.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        problem, function = self.problem, self.function
        in_a, in_b, in_c = problem.operands
        single_a, single_b = self._batch(in_a, a), self._batch(in_b, b)
        ld_c = self._leading(in_c, c)
        for pair in zip(single_a, single_b, strict=True):
            self.check_written(*pair, c)
        if problem.batch is BatchMode.ADDRESS:
            pointers = [
                (ctypes.c_void_p * problem.count)(*(data_address(single) for single in singles))
                for singles in (single_a, single_b)
            ]
            leading = (self._leading(in_a, single_a[0]), self._leading(in_b, single_b[0]), ld_c)
            function(*pointers, data_address(c), *leading, 0, 0)
            return c
        steps = [self._step(operand, array) for operand, array in ((in_a, a), (in_b, b))]
        leading = (self._leading(in_a, single_a[0]), self._leading(in_b, single_b[0]), ld_c)
        without_team(problem.flops // 2)
        function(data_address(single_a[0]), data_address(single_b[0]), data_address(c), *leading, *steps)
        repeatable()
        return c

    def _batch(self, operand: Operand, arrays: Any) -> list[Array]:
        """The matrices of one input, each checked."""
        if isinstance(arrays, np.ndarray) and arrays.ndim == 2 and self.problem.count == 1:
            arrays = [arrays]
        if self.problem.batch is not BatchMode.ADDRESS and not isinstance(arrays, (np.ndarray, list)):
            self._refuse(operand, "type", type(arrays).__name__, "numpy.ndarray")
        single = isinstance(arrays, np.ndarray) and arrays.ndim == 0
        if single or not isinstance(arrays, (np.ndarray, Sequence)):
            self._refuse(operand, "type", type(arrays).__name__, "matrices, one for each product")
        if len(arrays) != self.problem.count:
            self._refuse(operand, "count", len(arrays), self.problem.count)
        singles = list(arrays)
        leading = {self._leading(operand, single) for single in singles}
        if len(leading) != 1:
            self._refuse(operand, "leading dimensions", sorted(leading), "one for the whole batch")
        return singles

    def _step(self, operand: Operand, array: Any) -> int:
        if self.problem.count == 1:
            return 0
        if not isinstance(array, np.ndarray):
            self._refuse(operand, "type", type(array).__name__, "a 3-D numpy.ndarray")
        if array.strides[0] % array.itemsize:
            self._refuse(operand, "batch stride", array.strides[0], f"a multiple of {array.itemsize} bytes")
        return int(array.strides[0] // array.itemsize)

    def _leading(self, operand: Operand, array: Array) -> int:
        """The checked leading dimension of one matrix in elements."""
        found = leading_dimension(self.name, operand, array)
        if array.shape != (operand.rows, operand.columns):
            self._refuse(operand, "shape", array.shape, (operand.rows, operand.columns))
        return found
