"""Kernels of `Contraction`: their C function, and calls on the memory of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.cached import cached_property
from tilewright.calls.operands import Array, data_address, overlaps_itself
from tilewright.calls.recording import repeatable
from tilewright.calls.repeated import repeated_method
from tilewright.compiler.kernel import Kernel
from tilewright.errors import OutOverlapsItself
from tilewright.macro.blocking import Blocking
from tilewright.macro.partition import MOVED_WORK
from tilewright.ops.contraction.memory import check_memory, reach
from tilewright.ops.contraction.primitive import PrimitiveForm
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.tables.primitive import swaps, table_axes
from tilewright.ops.contraction.tables.tables import Tables, run_tables, tables_of
from tilewright.spec.arguments import check_sizes
from tilewright.spec.problem import Layout, Operand

#: Tuples of run-time sizes of which a kernel remembers what it has checked.
REMEMBERED_SIZES = 64


class ContractionCall(NamedTuple):
    """A prepared call for one tuple of sizes.

    Attributes
    ----------
    problem : with these sizes.
    work : multiply-adds, or as long as they take.
    tables : of the primitive dimensions, where it runs over tables.
    reaches : the lowest and the highest element of each operand.
    shortest : the length of the shortest dimension.
    """

    problem: Contraction
    work: int
    tables: Tables | None
    reaches: tuple[tuple[int, int], ...]
    shortest: int


class ContractionKernel(Kernel):
    """A kernel of a `Contraction`: ``kernel(in0, in1, out)``, of one operand ``kernel(in0, out)``.

    Operands are memory: arrays of the element types and of any shape, whose first element is that of index 0
    in every dimension. They hold all elements of the operand between their first byte and their last; a
    negative stride needs an array that begins behind, such as ``x[::-1]``.

    The C function at `address` takes pointers to in0, in1, out, bias (as `Contraction.names` says), the
    tables of `tables.nest.TABLES` where the primitive is packed_gemm, the sizes given at run time, the
    lengths of tables, then scratch and a team where the program has them.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> product = tw.Contraction([
    ...     tw.Dimension("m", "sequential", 2, in0=3, out=4),
    ...     tw.Dimension("n", "primitive", 4, in1=1, out=1),
    ...     tw.Dimension("k", "primitive", 3, in0=1, in1=4),
    ... ], main="gemm")
    >>> a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    >>> tw.compile(product)(a, b, np.empty((2, 4), np.float32))
    array([[3., 3., 3., 3.],
           [3., 3., 3., 3.]], dtype=float32)
    """

    problem: Contraction

    @cached_property
    def _elements(self) -> tuple[tuple[str, Any], ...]:
        """The names of operands and their NumPy types, in the order of a call."""
        return tuple((name, self.problem.element_of(name).numpy) for name in self.problem.names)

    @cached_property
    def _place_of_out(self) -> int:
        return self.problem.names.index("out")

    @cached_property
    def _calls(self) -> dict[tuple[int, ...], ContractionCall]:
        return {}

    @repeated_method
    def __call__(self, *operands: Array, bias: Array | None = None, sizes: Sequence[int] = ()) -> Array:
        """Computes into the last operand and returns it.

        Parameters
        ----------
        operands : in0, in1 and out; of a function of one operand in0 and out, which may be the same memory
            where all strides are.
        bias : what first touch copies, where it does.
        sizes : of the dimensions whose size is given at run time, in their order.

        Raises
        ------
        OperandMismatch : an operand that is missing or too many, of another type, not aligned, read-only, or
            sharing memory with out.
        ContractionMemory : an array that is shorter than its operand.
        OutOverlapsItself : if strides put several elements of out in one place.
        InvalidSize : if sizes are missing.
        ForeignKernel : if the kernel was compiled for another machine.

        Nothing is written before these checks.
        """
        problem = self.problem
        given = (*operands, *(() if bias is None else (bias,)))
        names = problem.names
        if len(given) != len(names):
            self._refuse(_operand(problem, names[-1]), "operands", len(given), ", ".join(names))
        key = check_sizes(sizes, "sizes")
        call = self._calls.get(key)
        out: Array = given[self._place_of_out]
        if call is None:
            # Checked first: tables are as long as dimensions, which arrays that are too short do not bound.
            call = self._described(key)
            self._check(call, given, out)
            call = self._with_tables(call, key)
        else:
            self._check(call, given, out)
        if call.shortest > 0:
            self._run(call, given, key)
            repeatable()
        elif all(one.size != 0 for one in call.problem.having("out")):
            _fill(call.problem, dict(zip(names, given, strict=True)))
        return out

    def _described(self, sizes: tuple[int, ...]) -> ContractionCall:
        """The prepared call for these sizes, without its tables."""
        problem = self.problem.sized(sizes)
        written = problem.having("out")
        shape = tuple(one.size or 0 for one in written)
        steps = tuple(one.out for one in written)
        probe = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), shape, steps, writeable=False)
        if overlaps_itself(probe):
            raise OutOverlapsItself(shape=shape, strides=steps)
        elements = prod(one.size or 0 for one in problem.dimensions)
        work = elements * (MOVED_WORK if problem.is_unary else 1)
        shortest = min((one.size or 0 for one in problem.dimensions), default=1)
        reaches = tuple(reach(problem.having(name), name) for name in problem.names)
        return ContractionCall(problem, work, None, reaches, shortest)

    def prepared(self, sizes: tuple[int, ...]) -> ContractionCall:
        """The prepared call for these sizes, from the cache."""
        return self._with_tables(self._described(sizes), sizes)

    def _with_tables(self, call: ContractionCall, sizes: tuple[int, ...]) -> ContractionCall:
        if PrimitiveForm.of(self.problem) is PrimitiveForm.TABLES and call.shortest > 0:
            cut = self.blocking
            assert isinstance(cut, Blocking)
            axes = table_axes(call.problem, swapped=swaps(self.problem))
            tables = tables_of(call.problem.types.acc, self.machine, cut, axes)
            call = call._replace(tables=tables)
        if len(self._calls) >= REMEMBERED_SIZES:
            self._calls.clear()
        self._calls[sizes] = call
        return call

    def _check(self, call: ContractionCall, arrays: tuple[Any, ...], out: Array) -> None:
        """Refuses what the machine code could not take."""
        problem = call.problem
        for array, (name, dtype), (low, high) in zip(arrays, self._elements, call.reaches, strict=True):
            if not isinstance(array, np.ndarray):
                self._refuse(_operand(problem, name), "type", type(array).__name__, "numpy.ndarray")
            if array.dtype != dtype:
                self._refuse(_operand(problem, name), "dtype", array.dtype, dtype)
            flags = array.flags
            if not flags.aligned:
                self._refuse(_operand(problem, name), "alignment", "unaligned elements", "aligned elements")
            if low < 0 or high >= array.size or not flags.c_contiguous:
                check_memory(problem.having(name), name, array)
        if not out.flags.writeable:
            self._refuse(_operand(problem, "out"), "writeable =", False, True)
        for array, (name, _) in zip(arrays, self._elements, strict=True):
            if name != "out" and np.may_share_memory(array, out) and not _same_place(problem, array, out):
                self._refuse(_operand(problem, name), "memory", "shared with out", "separate from out")

    def _run(self, call: ContractionCall, arrays: tuple[Array, ...], sizes: tuple[int, ...]) -> None:
        """The machine code on arrays that fit."""
        if call.tables is None:
            self.launch((*map(data_address, arrays), *sizes), call.work)
        else:
            run_tables(self, arrays, call.tables, sizes)


def _operand(problem: Contraction, name: str) -> Operand:
    """An operand as messages name it."""
    return Operand(name, None, None, problem.element_of(name), Layout.STRIDED)


def _same_place(problem: Contraction, array: Array, out: Array) -> bool:
    """Whether a function of one operand computes every element in its own place."""
    alike = problem.is_unary and all(one.in0 == one.out for one in problem.dimensions)
    return alike and data_address(array) == data_address(out)


def _fill(problem: Contraction, arrays: dict[str, Array]) -> None:
    """A product of depth 0: first touch and last touch alone, which no loop reaches."""
    view = problem.view("out", arrays["out"])
    found = problem.reference(arrays["in0"], arrays["in1"], arrays["out"], arrays.get("bias"))
    view[...] = found.astype(view.dtype)
