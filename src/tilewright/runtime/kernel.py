"""Compiled kernels: their code in this process, and calls on arrays that fit them."""

from __future__ import annotations

import ctypes
import math
import re
import threading
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ForeignKernel, InvalidScalar, LeadingDimension, OperandMismatch
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import emit_assembly
from tilewright.lower import scratch_layout
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine, enabled_features
from tilewright.macro.blocking import Blocking, Cover
from tilewright.pipeline import Compilation, Problem, run_stages
from tilewright.runtime.batch import Axis, batch_function, fixed_batch_function, merge_axes, outer_offsets
from tilewright.runtime.cache import cached_object
from tilewright.runtime.scratch import ScratchPool
from tilewright.runtime.special import Specials, fit
from tilewright.spec.dtype import F64, GEMM_DTYPES, DType
from tilewright.spec.problem import BatchMode, BatchReduceGemm, Gemm, Layout, Operand

Array: TypeAlias = NDArray[Any]

_INTEGERS = 9


def element_strides(array: Array) -> tuple[int, int]:
    """Strides of a 2-D array in elements; an axis of length 1 counts as contiguous.

    >>> element_strides(np.zeros((4, 1), np.float32)[:, ::-1])
    (1, 1)
    """
    rows, columns = array.shape
    size = array.itemsize
    column = 1 if columns == 1 else array.strides[1] // size
    row = columns if rows == 1 and columns > 1 else array.strides[0] // size
    return row, column


def whole_strides(array: Array) -> bool:
    """Whether elements are aligned and a whole number of elements apart (axes of length 1 aside)."""
    steps = zip(array.shape, array.strides, strict=True)
    return array.flags.aligned and all(
        length <= 1 or stride % array.itemsize == 0 for length, stride in steps
    )


def real_number(value: object, name: str) -> float:
    """A scalar factor; `InvalidScalar` for what is not a real number.

    >>> real_number(np.float32(0.5), "alpha")
    0.5
    """
    if isinstance(value, (str, bytes, complex, np.complexfloating)) or np.ndim(value) > 0:  # type: ignore[arg-type]
        raise InvalidScalar(name=name, found=repr(value))
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidScalar(name=name, found=repr(value)) from None


class Kernel:
    """A compiled problem.

    Called with arrays of the problem's shapes, dtype and layouts, it computes into the last one and
    returns it. Pickles as its problem and is compiled again where it arrives.

    Attributes
    ----------
    problem, machine : what was compiled, and for which machine.
    name, symbol : the kernel's name; the exported C symbol is the same.
    blocking : register tile and cache blocks.
    tile_ir, llvm_ir, assembly, object_code : what the stages made.

    Examples
    --------
    >>> import tilewright as tw
    >>> kernel = tw.compile(tw.Gemm(dtype="f32"))
    >>> kernel.blocking.kr
    1
    """

    def __init__(self, compilation: Compilation) -> None:
        self._compilation = compilation
        self.problem: Problem = compilation.problem
        self.machine: Machine = compilation.machine
        self.name: str = compilation.name

    def __reduce__(self) -> tuple[Any, ...]:
        target = None if self.machine == host_machine() else self.machine
        return compile_problem, (self.problem, target)

    def __repr__(self) -> str:
        return f"<tilewright.Kernel {self.name} for {self.machine.cpu}>"

    @property
    def symbol(self) -> str:
        """The exported C name."""
        return self.name

    @property
    def blocking(self) -> Blocking | Cover:
        """How the problem is cut: cache blocks, or the tiles that cover known sizes."""
        assert self._compilation.blocking is not None
        return self._compilation.blocking

    @property
    def tile_ir(self) -> str:
        """The loop nest as tile IR text."""
        from tilewright.ir.text import print_program  # only for readers

        assert self._compilation.nest is not None
        return print_program(self._compilation.nest)

    @cached_property
    def llvm_ir(self) -> str:
        """The LLVM module as text."""
        return run_stages(self.problem, self.machine, until="llvm").llvm

    @cached_property
    def assembly(self) -> str:
        """The machine code as assembly text."""
        return emit_assembly(self.llvm_ir, self.name, self.machine)

    @property
    def object_code(self) -> bytes:
        """A relocatable object file."""
        return self._compilation.object

    @property
    def flops(self) -> int | None:
        """Floating-point operations of one call; None where sizes are given at run time."""
        return self.problem.flops

    @cached_property
    def registers(self) -> RegisterUse:
        """Vector registers used, and vector values that pass through the stack, by the assembly."""
        return count_registers(self.assembly)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch that one call needs."""
        assert self._compilation.nest is not None
        return scratch_layout(self._compilation.nest)[1]

    @cached_property
    def _code(self) -> Linked:
        if not runs_on(self.machine, host_machine()):
            raise ForeignKernel(kernel=self.name, target=self.machine.name, host=host_machine().cpu)
        return Linked(self.object_code, (self.symbol,), {})

    @property
    def address(self) -> int:
        """Where the machine code starts in this process."""
        return self._code.address(self.symbol)

    def _refuse(self, operand: Operand, what: str, found: object, required: object) -> None:
        raise OperandMismatch(kernel=self.name, name=operand.name, what=what, found=found, required=required)

    def __call__(self, *arrays: Any, **scalars: float) -> Array:
        """Computes into the last array and returns it; see the subclasses."""
        raise NotImplementedError


class GemmKernel(Kernel):
    """A kernel of a `Gemm`: ``kernel(a, b, c, alpha=1, beta=0)``."""

    problem: Gemm

    @property
    def blocking(self) -> Blocking:
        """Register tile and cache blocks."""
        assert isinstance(self._compilation.blocking, Blocking)
        return self._compilation.blocking

    @cached_property
    def function(self) -> Any:
        """The ctypes function: pointers, sizes and strides, alpha, beta, scratch."""
        scalar = ctypes.c_double if self.problem.dtype is F64 else ctypes.c_float
        kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * _INTEGERS + [scalar] * 2 + [ctypes.c_void_p]
        return ctypes.CFUNCTYPE(None, *kinds)(self.address)

    @cached_property
    def _turnable(self) -> bool:
        problem = self.problem
        free = all(operand.layout is Layout.STRIDED for operand in problem.operands)
        return free and problem.m is None and problem.n is None

    @cached_property
    def _pool(self) -> ScratchPool:
        """The common scratch, or this kernel's own where its blocks are larger."""
        common = scratch_pool()
        return common if self.scratch_bytes <= common.size else ScratchPool(self.scratch_bytes)

    def run(self, a: Array, b: Array, c: Array, alpha: float, beta: float, scratch: int) -> None:
        """One product of arrays that are known to fit: aligned, native, one dtype, no overlap.

        Where nothing is fixed at compile time, a column-major C is computed as the transposed product,
        which makes its rows contiguous.
        """
        if self._turnable and _better_turned(a, c):
            a, b, c = b.T, a.T, c.T
        self.function(*(_data(array) for array in (a, b, c)), *_sizes(a, b, c), alpha, beta, scratch)

    def run_batch(self, a: Array, b: Array, c: Array, alpha: float, beta: float, scratch: int) -> None:
        """A batch of products of arrays that fit: the axes before the last two are the same in all."""
        batch = c.shape[:-2]
        if 0 in batch:
            return
        first = (0,) * len(batch)
        matrices = [array[first] for array in (a, b, c)]
        axes = merge_axes(batch, [array.strides[:-2] for array in (a, b, c)])
        if not axes:
            self.run(matrices[0], matrices[1], matrices[2], alpha, beta, scratch)
            return
        # The longest axis runs in compiled code; the others, if any do not merge, around it.
        longest = max(axes, key=lambda axis: axis.length)
        others = [axis for axis in axes if axis is not longest]
        steps = longest.steps
        if self._turnable and _better_turned(matrices[0], matrices[2]):
            matrices = [matrices[1].T, matrices[0].T, matrices[2].T]
            others = [axis._replace(steps=_turned(axis.steps)) for axis in others]
            steps = _turned(steps)
        if alpha == 1 and beta == 0 and self._run_special(matrices, longest.length, steps, others):
            return
        sizes = _sizes(*matrices)
        pointers = [_data(matrix) for matrix in matrices]
        run = batch_function(self.problem.dtype)
        for offsets in outer_offsets(others):
            places = (pointer + offset for pointer, offset in zip(pointers, offsets, strict=True))
            run(self.address, longest.length, *steps, *places, *sizes, alpha, beta, scratch)

    def _run_special(
        self, matrices: list[Array], count: int, steps: tuple[int, ...], others: list[Axis]
    ) -> bool:
        """A batch of one small shape through its own kernel, if it has one; the same bits either way.

        Both sum the depths of one kc in order, so k must fit in one.
        """
        found = fit(matrices[0], matrices[1], matrices[2], self.problem.dtype)
        if found is None or found.shape.k > self.blocking.kc:
            return False
        products = count * math.prod(axis.length for axis in others)
        kernel = _specials().find(found.shape, products)
        if kernel is None:
            return False
        run, address = fixed_batch_function(), kernel.address
        pointers = [_data(matrix) for matrix in matrices]
        for offsets in outer_offsets(others):
            places = (pointer + offset for pointer, offset in zip(pointers, offsets, strict=True))
            run(address, count, *steps, *places, *found.leading)
        return True

    def __call__(  # type: ignore[override]
        self, a: Array, b: Array, c: Array, *, alpha: float = 1.0, beta: float = 0.0
    ) -> Array:
        """c = alpha · a @ b + beta · c on arrays of the problem's shapes, dtype and layouts.

        Raises
        ------
        OperandMismatch : if an array has another shape, dtype or layout, before c changes.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        factors = (real_number(alpha, "alpha"), real_number(beta, "beta"))
        self._check(a, b, c)
        function_ready = self.function  # a foreign kernel is refused before scratch is taken
        del function_ready
        with self._pool.block() as scratch:
            self.run(a, b, c, *factors, scratch)
        return c

    def _check(self, *arrays: Array) -> None:
        sizes: dict[str, int] = {}
        axes = (("m", "k"), ("k", "n"), ("m", "n"))
        for operand, array, names in zip(self.problem.operands, arrays, axes, strict=True):
            check_operand(self.name, operand, array)
            for name, found in zip(names, array.shape, strict=True):
                fixed = getattr(self.problem, name)
                required = sizes.setdefault(name, found) if fixed is None else fixed
                if found != required:
                    self._refuse(operand, f"{name} =", found, required)
        c = arrays[2]
        if not c.flags.writeable:
            self._refuse(self.problem.operands[2], "writeable =", False, True)
        for operand, array in zip(self.problem.operands[:2], arrays[:2], strict=True):
            if np.may_share_memory(array, c):
                self._refuse(operand, "memory", "shared with c", "separate from c")


class BatchReduceKernel(Kernel):
    """A kernel of a `BatchReduceGemm`: ``kernel(a, b, c)`` with a (count, m, k) and b (count, k, n).

    The C function at `address` has the signature of seed 002's Listing 7.2.1: ``void(const void *a,
    const void *b, void *c, int64_t ld_a, int64_t ld_b, int64_t ld_c, int64_t br_stride_a, int64_t
    br_stride_b)``, leading dimensions and strides in elements. With batch="address", a and b are
    arrays of `count` pointers, and the batch strides are not read.
    """

    problem: BatchReduceGemm

    @property
    def blocking(self) -> Cover:
        """The register tiles that cover the sizes."""
        assert isinstance(self._compilation.blocking, Cover)
        return self._compilation.blocking

    @cached_property
    def function(self) -> Any:
        """The ctypes function of the C signature."""
        kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 5
        return ctypes.CFUNCTYPE(None, *kinds)(self.address)

    def __call__(self, a: Any, b: Any, c: Array) -> Array:  # type: ignore[override]
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
        if not c.flags.writeable:
            self._refuse(in_c, "writeable =", False, True)
        for operand, singles in ((in_a, single_a), (in_b, single_b)):
            if any(np.may_share_memory(single, c) for single in singles):
                self._refuse(operand, "memory", "shared with c", "separate from c")
        if problem.batch is BatchMode.ADDRESS:
            pointers = [
                (ctypes.c_void_p * problem.count)(*(_data(single) for single in singles))
                for singles in (single_a, single_b)
            ]
            leading = (self._leading(in_a, single_a[0]), self._leading(in_b, single_b[0]), ld_c)
            function(*pointers, _data(c), *leading, 0, 0)
            return c
        steps = [self._step(operand, array) for operand, array in ((in_a, a), (in_b, b))]
        leading = (self._leading(in_a, single_a[0]), self._leading(in_b, single_b[0]), ld_c)
        function(_data(single_a[0]), _data(single_b[0]), _data(c), *leading, *steps)
        return c

    def _batch(self, operand: Operand, arrays: Any) -> list[Array]:
        """The matrices of one input, each checked."""
        if isinstance(arrays, np.ndarray) and arrays.ndim == 2 and self.problem.count == 1:
            arrays = [arrays]
        if self.problem.batch is BatchMode.STRIDE and not isinstance(arrays, (np.ndarray, list)):
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
        check_operand(self.name, operand, array)
        if array.shape != (operand.rows, operand.columns):
            self._refuse(operand, "shape", array.shape, (operand.rows, operand.columns))
        axis = 0 if operand.layout is Layout.ROW else 1
        length, least = array.shape[axis], array.shape[1 - axis]
        found = array.strides[axis] // array.itemsize if length > 1 else least
        if found < least:
            raise LeadingDimension(kernel=self.name, name=operand.name, found=found, required=least)
        return int(found)


def _better_turned(a: Array, c: Array) -> bool:
    """Whether Cᵀ = Bᵀ·Aᵀ suits better: a column-major C, or a column-major A times one column."""
    row, column = element_strides(c)
    return row == 1 and (column != 1 or (c.shape[1] == 1 and element_strides(a)[0] == 1))


def _turned(steps: tuple[int, ...]) -> tuple[int, ...]:
    """Steps of a, b, c for the transposed product, where b comes first."""
    return steps[1], steps[0], steps[2]


def _sizes(a: Array, b: Array, c: Array) -> tuple[int, ...]:
    """m, n, k and the strides of three matrices in elements, as the C function takes them."""
    (m, k), n = a.shape, b.shape[1]
    return m, n, k, *element_strides(a), *element_strides(b), *element_strides(c)


def _data(array: Array) -> int:
    """The address of the first element (ndarray.ctypes takes several microseconds for it)."""
    return int(array.__array_interface__["data"][0])


class RegisterUse(NamedTuple):
    """Vector registers in an assembly text, and vector moves from and to the stack."""

    used: int
    spilled: int


_VECTOR_REGISTER = re.compile(r"%[xyz]mm(\d+)|(?<![\w%$.])[vqds](\d+)\b")
_STACK_STORE = re.compile(r"%[xyz]mm\d+, -?\d*\(%rsp\)|\bst[rp]\s+q\d+.*\[sp")


def count_registers(assembly: str) -> RegisterUse:
    r"""Distinct vector registers that an assembly names, and vector stores to its stack frame.

    >>> count_registers("\tvfmadd231ps %zmm1, %zmm2, %zmm31\n\tvmovups %zmm1, 64(%rsp)")
    RegisterUse(used=3, spilled=1)
    """
    found = {number for match in _VECTOR_REGISTER.finditer(assembly) for number in match.groups() if number}
    return RegisterUse(len(found), len(_STACK_STORE.findall(assembly)))


def check_operand(kernel: str, operand: Operand, array: Array) -> None:
    """Refuses an array whose type, dtype, rank, alignment or layout differs from the operand's."""

    def refuse(what: str, found: object, required: object) -> None:
        raise OperandMismatch(kernel=kernel, name=operand.name, what=what, found=found, required=required)

    if not isinstance(array, np.ndarray):
        refuse("type", type(array).__name__, "numpy.ndarray")
    if array.dtype != operand.dtype.numpy:
        refuse("dtype", array.dtype, operand.dtype.numpy)
    if array.ndim != 2:
        refuse("dimensions", array.ndim, 2)
    if not whole_strides(array):
        refuse("alignment", "unaligned elements", "aligned elements")
    axis = {Layout.ROW: 1, Layout.COL: 0}.get(operand.layout)
    if axis is not None and array.size and array.shape[axis] > 1 and array.strides[axis] != array.itemsize:
        refuse(
            f"stride of axis {axis}",
            array.strides[axis],
            f"{array.itemsize} bytes ({operand.layout.value} layout)",
        )


def runs_on(machine: Machine, host: Machine) -> bool:
    """Whether a host has every feature that LLVM may use for a machine."""
    same_arch = machine.arch == host.arch
    return same_arch and enabled_features(machine.features) <= enabled_features(host.features)


def resolve_target(target: str | Machine | None) -> Machine:
    """The machine of a target: None or "host", a catalogue name, or a machine record."""
    if isinstance(target, Machine):
        return target
    if target is None or target == "host":
        return host_machine()
    from tilewright.machine.catalog import find_machine  # the table is only for cross-compilation

    return find_machine(target)


@overload
def compile_problem(problem: Gemm, target: str | Machine | None = None) -> GemmKernel: ...


@overload
def compile_problem(problem: BatchReduceGemm, target: str | Machine | None = None) -> BatchReduceKernel: ...


def compile_problem(problem: Problem, target: str | Machine | None = None) -> Kernel:
    """Compiles a problem for this host or another machine.

    Parameters
    ----------
    problem : what to compute.
    target : None for this host, a name of `targets()`, or a `Machine`.

    Raises
    ------
    UnknownTarget, UnsupportedDtype, CompilationFailed

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.compile(tw.Gemm(m=8, n=8, k=8)).flops
    1024
    """
    return _KINDS[type(problem)](_compile(problem, resolve_target(target)))


_KINDS: dict[type[Problem], type[Kernel]] = {Gemm: GemmKernel, BatchReduceGemm: BatchReduceKernel}


@cache
def _specials() -> Specials:
    return Specials(compile_problem)


def _compile(problem: Problem, machine: Machine) -> Compilation:
    """All stages, the code generation replaced by the object cache where it has the object."""
    state = run_stages(problem, machine, until="nest")
    what = f"{state.name} {problem!r} {state.blocking!r}"
    code = cached_object(what, machine, lambda: run_stages(problem, machine).object)
    return state.with_field("object", code)


_compiling = threading.RLock()

#: The kernels behind `matmul` that this process has, by name of the element type.
matmul_kernels: dict[str, GemmKernel] = {}


@cache
def _matmul_kernel(dtype: DType, machine: Machine) -> GemmKernel:
    layouts = Layout.STRIDED
    return GemmKernel(_compile(Gemm(dtype=dtype, a=layouts, b=layouts, c=layouts), machine))


def matmul_kernel(dtype: DType) -> GemmKernel:
    """The kernel behind `matmul` for one element type: any sizes, any strides.

    Made for the host as the environment described it at the first use of the type.
    """
    kernel = matmul_kernels.get(dtype.name)
    if kernel is None:
        with _compiling:
            kernel = matmul_kernels.setdefault(dtype.name, _matmul_kernel(dtype, host_machine()))
    return kernel


#: The one pool, once made; a list so that the common case takes no lock.
_pools: list[ScratchPool] = []


@cache
def _scratch_pool() -> ScratchPool:
    layout = Layout.STRIDED
    needed = 0
    for dtype in GEMM_DTYPES:
        problem = Gemm(dtype=dtype, a=layout, b=layout, c=layout)
        nest = run_stages(problem, host_machine(), until="nest").nest
        assert nest is not None
        needed = max(needed, scratch_layout(nest)[1])
    return ScratchPool(needed)


def scratch_pool() -> ScratchPool:
    """The scratch of every GEMM on this host."""
    if not _pools:
        with _compiling:  # native code keeps the address of the one pool's table
            _pools.append(_scratch_pool())
    return _pools[0]
