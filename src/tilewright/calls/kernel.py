"""Kernels called with arrays: the operands that a problem declares are checked, the C function is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.cached import cached_property
from tilewright.calls.operands import Array, check_operand, data_address, element_strides
from tilewright.calls.recording import repeatable
from tilewright.calls.repeated import repeated_method
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import operation_of
from tilewright.errors import InvalidScalar
from tilewright.preparing import Late
from tilewright.spec.factors import factor
from tilewright.spec.problem import Layout, Operand

#: The type of a program's scalars.
_scalar_type = Late("tilewright.compiler.lowering.interface:scalar_type")

#: Scalars of programs that have a value where a call gives none.
_DEFAULTS = {"alpha": 1.0, "beta": 0.0}


class ArrayKernel(Kernel):
    """A kernel called with the arrays of its problem's operands, in their order, then scalars by name.

    Sizes and strides of the C function are found by their names: an axis of an operand ("m"), or "rs_", "cs_"
    and "ld_" in front of an operand's name.
    """

    @cached_property
    def _declared(self) -> tuple[tuple[Operand, tuple[tuple[str, int | None], ...]], ...]:
        """The operands, each with the names and sizes of its axes."""
        return tuple((operand, operand.sizes) for operand in self.problem.operands)

    def check(self, *arrays: Array) -> None:
        """Refuses arrays that do not fit the problem's operands, of which the last one is written.

        Raises
        ------
        OperandMismatch : another number of arrays, shape, dtype or layout, or shared memory.
        """
        declared = self._declared
        if len(arrays) != len(declared):
            last, count = declared[-1][0], len(declared)
            self._refuse(last, "as its number", len(arrays), f"number {count} of the arrays")
        sizes: dict[str, int] = {}
        for (operand, axes), array in zip(declared, arrays, strict=True):
            check_operand(self.name, operand, array)
            for (axis, fixed), found in zip(axes, array.shape, strict=True):
                required = sizes.setdefault(axis, found) if fixed is None else fixed
                if found != required:
                    self._refuse(operand, f"{axis} =", found, required)
        self.check_written(*arrays)

    def check_written(self, *arrays: Array) -> None:
        """Refuses a last array that is read-only or shares memory with another one."""
        written, out = self._declared[-1][0], arrays[-1]
        if not out.flags.writeable:
            self._refuse(written, "writeable =", False, True)
        for (operand, _), array in zip(self._declared[:-1], arrays[:-1], strict=True):
            if np.may_share_memory(array, out):
                what = f"shared with {written.name}"
                self._refuse(operand, "memory", what, f"separate from {written.name}")

    @cached_property
    def _numbers(self) -> tuple[Callable[[tuple[Array, ...]], int], ...]:
        """How each size and stride of the C function follows from the arrays."""
        return tuple(map(self._number, self.nest.sizes))

    def _number(self, name: str) -> Callable[[tuple[Array, ...]], int]:
        operands = self.problem.operands
        for place, operand in enumerate(operands):
            if name in operand.axes:
                axis = operand.axes.index(name)
                return lambda arrays: arrays[place].shape[axis]
            if name in (f"rs_{operand.name}", f"cs_{operand.name}"):
                side = 0 if name.startswith("rs") else 1
                return lambda arrays: element_strides(arrays[place])[side]
            if name == f"ld_{operand.name}":
                outer = 0 if operand.layout is Layout.ROW else 1
                return lambda arrays: element_strides(arrays[place])[outer]
        raise AssertionError(f"{self.name} has no operand of the size {name}")

    @repeated_method
    def __call__(self, *arrays: Any, **scalars: Any) -> Array:
        """Computes into the last array and returns it.

        Raises
        ------
        OperandMismatch : if an array has another shape, dtype or layout, before anything changes.
        InvalidScalar : if a scalar is unknown, or no number of the type of the sums.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        program = self.nest
        unknown = sorted(set(scalars) - set(program.scalars))
        if unknown:
            required = ", ".join(program.scalars) or "no scalar"
            raise InvalidScalar(name=unknown[0], found=scalars[unknown[0]], required=required)
        acc = _scalar_type(program)
        numbers = [factor(scalars.get(name, _DEFAULTS.get(name)), name, acc) for name in program.scalars]
        self.check(*arrays)
        arguments = [*map(data_address, arrays), *(number(arrays) for number in self._numbers), *numbers]
        self.launch(arguments, operation_of(self.problem).work(self.problem, arrays))
        out: Array = arrays[-1]
        repeatable()
        return out
