"""Products with weights in words: kernels, and `matmul` where the second operand is such a `PackedMatrix`."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any, cast

import numpy as np

from tilewright.errors import ForeignPacked, InvalidChoice, MissingOut, PackedDtype
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.macro.packing import weight_lanes
from tilewright.runtime.arrays import as_operand, check_array, check_out, direct_out, product_shapes
from tilewright.runtime.gemm import GemmKernel
from tilewright.runtime.operands import Array, check_operand, data_address, element_strides, factor
from tilewright.runtime.packed import PackedMatrix
from tilewright.spec.dtype import BF16, F32, DType
from tilewright.spec.problem import Gemm, Layout
from tilewright.spec.weights import Weights


class WeightKernel(GemmKernel):
    """A kernel of a `Gemm` with `weights`: ``kernel(x, packed, c, alpha=1, beta=0)``."""

    def _make_native(self) -> Any:
        return self.__call__

    def __call__(  # type: ignore[override]
        self, a: Array, b: PackedMatrix, c: Array, *, alpha: float = 1.0, beta: float = 0.0
    ) -> Array:
        """c = alpha · a @ b + beta · c.

        Raises
        ------
        OperandMismatch : if an operand has another shape, dtype or layout, before c changes.
        ForeignPacked : if the weight is in panels of another width.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        acc = self.types.acc
        factors = (factor(alpha, "alpha", acc), factor(beta, "beta", acc))
        operands = self.problem.operands
        for operand, array in ((operands[0], a), (operands[2], c)):
            check_operand(self.name, operand, array)
        if not isinstance(b, PackedMatrix) or b.form.weights != self.problem.weights:
            required = f"a PackedMatrix of {self.problem.weights and self.problem.weights.name}"
            self._refuse(operands[1], "form", b, required)
        check_panels(b, self.machine)
        sizes = (*c.shape, a.shape[1])
        for operand, found, required_shape in (
            (operands[0], a.shape, (sizes[0], sizes[2])),
            (operands[1], b.shape, (sizes[2], sizes[1])),
        ):
            if found != required_shape:
                self._refuse(operand, "shape", found, required_shape)
        if not c.flags.writeable:
            self._refuse(operands[2], "writeable =", False, True)
        for operand, array in zip(operands, (a, b.data4d, *b.vectors.values()), strict=False):
            if np.may_share_memory(array, c):
                self._refuse(operand, "memory", "shared with c", "separate from c")
        function_ready = self.function  # a foreign kernel is refused before scratch is taken
        del function_ready
        with self.pool.block() as scratch:
            self.run_weights(a, b, c, factors, scratch)
        return c

    def run_weights(
        self, a: Array, b: PackedMatrix, c: Array, factors: tuple[float, float], scratch: int
    ) -> None:
        """One product of arrays that are known to fit."""
        (m, n), k = c.shape, a.shape[1]
        assert self.problem.weights is not None
        arrays = (a, b.data4d, c, *(b.vectors[name] for name in self.problem.weights.vectors))
        strides = (*element_strides(a), 0, 0, *element_strides(c))
        self.function(*map(data_address, arrays), m, n, k, *strides, *factors, scratch)


def check_panels(packed: PackedMatrix, machine: Machine) -> None:
    """Refuses panels of another width than the machine's."""
    lanes = weight_lanes(machine)
    if packed.form.panels.lanes != lanes:
        raise ForeignPacked(
            packed=repr(packed),
            found=f"panels of {packed.form.panels.lanes} columns",
            required=f"panels of {lanes}",
            row=machine.isa.name,
        )


_compiling = threading.Lock()


@lru_cache(maxsize=256)
def _compiled(weights: Weights, a: DType, c: DType, machine: Machine) -> WeightKernel:
    problem = Gemm(dtype=a, out_dtype=c, a=Layout.ROW, c=Layout.ROW, weights=weights)
    return WeightKernel.compiled(problem, machine)


def weight_kernel(weights: Weights, a: DType, c: DType) -> WeightKernel:
    """The kernel of products with weights of a form on this host: any sizes, rows of A and C contiguous."""
    with _compiling:
        return _compiled(weights, a, c, host_machine())


def _types(x: Array, packed: PackedMatrix, out: Array | None, dtype: Any) -> tuple[DType, DType]:
    """The types that x is taken as and that the kernel stores."""
    native = x.dtype.newbyteorder("=")
    a = BF16 if native == BF16.numpy else F32
    if a is F32 and not np.can_cast(native, np.float32, "safe"):
        raise PackedDtype(found=x.dtype, packed=repr(packed), required=F32.numpy)
    asked = dtype if dtype is not None else None if out is None else out.dtype
    if asked is None:
        return a, a
    c = a if np.dtype(asked).newbyteorder("=") == a.numpy else F32
    if dtype is not None and np.dtype(dtype) != c.numpy:
        raise InvalidChoice(name="dtype", found=np.dtype(dtype), allowed=", ".join({a.name, F32.name}))
    return a, c


def matmul(
    x: Array,
    packed: PackedMatrix,
    out: Any = None,
    *,
    dtype: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> Array:
    """alpha · x @ packed + beta · out: see `tilewright.matmul`.

    bfloat16 is multiplied as such, what else float32 holds as float32; the result is of that type, or of
    `dtype`, which may be float32.

    Raises
    ------
    PackedDtype : if x has values that float32 has not.
    InvalidChoice : if the result is asked for in another type.
    ForeignPacked : if the weight is in panels of another width.
    """
    assert packed.form.weights is not None
    given = None if out is None else check_array(out)
    a, c = _types(x, packed, given, dtype)
    shapes = product_shapes(x.shape, packed.shape)
    factors = (factor(alpha, "alpha", F32), factor(beta, "beta", F32))
    if given is None and factors[1] != 0:
        raise MissingOut(beta=beta)
    if given is not None:
        check_out(given, shapes.result, c.numpy)
    check_panels(packed, host_machine())
    operand = np.ascontiguousarray(as_operand(x, a.numpy, "a"))
    direct = given is not None and given.flags.c_contiguous and direct_out(given, c.numpy, x, packed.data4d)
    direct = direct and not any(np.may_share_memory(given, part) for part in packed.vectors.values())
    target = cast("Array", given) if direct else np.empty(shapes.result, c.numpy)
    if factors[1] != 0 and not direct:
        target[...] = given
    if target.size:
        kernel = weight_kernel(packed.form.weights, a, c)
        result = target.reshape(-1, shapes.n)
        rows = operand.reshape(len(result), shapes.k)
        with kernel.pool.block() as scratch:
            kernel.run_weights(rows, packed, result, factors, scratch)
    if given is None:
        return target
    if not direct:
        np.copyto(given, target, casting="same_kind")
    return given
