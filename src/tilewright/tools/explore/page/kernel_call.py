"""One call of any kernel on operands that its program asks for: what pages draw, ready to be measured."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.example import Example
from tilewright.compiler.kernel import Kernel, c_argument
from tilewright.compiler.operation import operation_of
from tilewright.ir.nodes import Buffer
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.jit import CodeAddress, Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, Type, element_type, int64
from tilewright.machine.machine import Machine
from tilewright.macro.counting import reaches
from tilewright.spec.dtype import find_llvm_type

#: Values of scalars by their names, where they are not 1: sums do not grow from call to call.
_SCALARS = {"beta": 0.0, "eps": 1e-5, "scale": 0.125}
#: Bytes behind what the counted windows reach: vectors of whole lines, and lanes of a last panel.
_ROOM = 1 << 16
#: Random integers are below this; those of the widest type are 0, since they may be indices.
_INTEGERS = 100


class ExampleCall:
    """A kernel with operands of its own, random where they hold elements; one thread computes.

    Examples
    --------
    >>> import tilewright as tw
    >>> from tilewright.compiler.matrix_example import example_of
    >>> kernel = tw.compile(tw.RowFunction("softmax"))
    >>> call = ExampleCall(kernel, example_of(kernel, {"rows": 2, "columns": 5}))
    >>> call.run(3)
    >>> call.operands["y"][:10].reshape(2, 5).sum(axis=1).round(3).tolist()
    [1.0, 1.0]
    """

    def __init__(self, kernel: Kernel, example: Example, seed: int = 0) -> None:
        kernel.improve()
        program, interface = kernel.nest, kernel.interface
        generator = np.random.default_rng(seed)
        reach = reaches(program, kernel.machine, example.sizes, example.tables)
        for name, view in example.views.items():  # rows of a table that are found by indices are not counted
            last = (view.rows - 1) * view.row_stride + (view.columns - 1) * view.column_stride
            size = (last + 1) * program.buffer(name).dtype.bits / 8
            reach[name] = max(size, reach.get(name, 0.0))
        self.operands: dict[str, NDArray[Any]] = {
            buffer.name: _operand(buffer, reach.get(buffer.name, 0.0), example.tables, generator)
            for buffer in program.arguments
        }
        self._kept: list[NDArray[Any]] = []
        for name in operation_of(kernel.problem).pointers(kernel.problem):
            self._behind_pointers(program.buffer(name), kernel.problem.count, reach[name], generator)
        addresses = [array.ctypes.data for array in self.operands.values()]
        sizes = [example.sizes[name] for name in program.sizes]
        first = len(addresses) + len(sizes)
        kinds = interface.arguments[first : first + len(program.scalars)]
        scalars = [
            _scalar(_SCALARS.get(name, 1.0), kind) for name, kind in zip(program.scalars, kinds, strict=True)
        ]
        self._kernel, self._given = kernel, (*addresses, *sizes, *scalars)
        self._rest = (None,) * interface.takes_team
        self._loop = _repeated(interface.arguments, kernel.machine)

    def _behind_pointers(
        self, buffer: Buffer, count: int, reach: float, generator: np.random.Generator
    ) -> None:
        """An operand that is an array of pointers to matrices, which are kept as long as the call."""
        found = [_operand(buffer, reach, {}, generator) for _ in range(count)]
        self._kept += found
        self.operands[buffer.name] = np.array([one.ctypes.data for one in found], np.uintp)

    def run(self, calls: int) -> None:
        """Run the machine code some times, in a loop of machine code."""
        pool = self._kernel.pool
        with nullcontext() if pool is None else pool.block() as scratch:
            held = (scratch,) * self._kernel.interface.takes_scratch
            self._loop(self._kernel.address, calls, *self._given, *held, *self._rest)


def _operand(
    buffer: Buffer, reach: float, tables: Mapping[str, tuple[int, ...]], generator: np.random.Generator
) -> NDArray[Any]:
    """An array that holds what a buffer's windows reach: a table, or random elements."""
    if buffer.name in tables:
        return np.array(tables[buffer.name] or (0,), np.int64)
    dtype: np.dtype[Any] = buffer.dtype.numpy
    elements = int(reach + _ROOM) // dtype.itemsize
    if buffer.dtype.is_integer and dtype.itemsize == np.dtype(np.int64).itemsize:
        return np.zeros(elements, dtype)
    if buffer.dtype.is_integer:
        return generator.integers(0, _INTEGERS, elements).astype(dtype)
    return (generator.standard_normal(elements, np.float32) / 8).astype(dtype)


def _scalar(value: float, llvm_name: str) -> float | int:
    """A scalar argument in the type that the C function takes."""
    dtype = find_llvm_type(llvm_name)
    return int(value) if dtype is not None and dtype.is_integer else value


def _type(llvm_name: str) -> Type:
    dtype = find_llvm_type(llvm_name)
    return POINTER if dtype is None else element_type(dtype)


def _repeated(arguments: Sequence[str], machine: Machine) -> Any:
    """`repeated(kernel, calls, arguments...)`: a loop around kernels of a signature."""
    name = f"tw_repeated_{'_'.join(arguments)}"

    def emit() -> bytes:
        module = Module(name, machine.triple, data_layout(machine))
        given = [(f"given{at}", _type(kind)) for at, kind in enumerate(arguments)]
        f = module.define(name, VOID, [("kernel", POINTER), ("calls", INT64), *given], exported=True)
        with f.loop(int64(0), f.arguments["calls"], int64(1), "call"):
            f.call(Callee(VOID, f.arguments["kernel"].text), [f.arguments[one] for one, _ in given])
        f.ret()
        return emit_object(str(module), name, machine)

    linked = Linked(cached_object(name, machine, emit), (name,), {})
    return linked.function(name, [CodeAddress, ctypes.c_int64, *map(c_argument, arguments)])
