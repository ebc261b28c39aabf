"""A compiled kernel: what every kind of problem has of one, and its code in this process."""

from __future__ import annotations

import builtins
import ctypes
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from tilewright.cached import cached_property
from tilewright.compiler.lowering.interface import has_tasks, scratch_layout, signature
from tilewright.compiler.measure_core import measure_once
from tilewright.compiler.operation import Compilation, operation_of
from tilewright.compiler.pipeline import LAST_PROGRAM, finish, run_stages
from tilewright.compiler.scratch import scratch_for
from tilewright.errors import ForeignKernel, KernelNotCalled, OperandMismatch
from tilewright.ir.nodes import Program
from tilewright.ir.text import print_program
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object, stored_object
from tilewright.llvm.parts import has_parts
from tilewright.llvm.quick import quick_code
from tilewright.llvm.target import emit_assembly
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine, runs_on
from tilewright.preparing import importing, once_property, preparing
from tilewright.recorder import Numbered
from tilewright.spec.arguments import MAX_SIZE, check_integer
from tilewright.spec.dtype import find_llvm_type
from tilewright.spec.problem import Operand
from tilewright.threads.pool import MOST_THREADS, call_team, without_team
from tilewright.threads.scratch import ScratchPool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.compiler.registers import RegisterUse


def c_argument(llvm_name: str) -> Any:
    """The type in ctypes of an argument of a kernel, which LLVM spells as a pointer or a number."""
    dtype = find_llvm_type(llvm_name)
    return ctypes.c_void_p if dtype is None else dtype.ctypes


class Kernel(Numbered):
    """A compiled problem.

    Called with arrays of the problem's shapes, dtype and layouts, it computes into the last one and
    returns it. Pickles as its problem and is compiled again where it arrives.

    Attributes
    ----------
    problem, machine : what was compiled, and for which machine.
    name, symbol : the kernel's name; the exported C symbol is the same.
    blocking : register tile and cache blocks.
    flops, bytes : operations of one call, and bytes it must move; None where sizes are open.
    tile_ir, llvm_ir, assembly, object_code : what the stages made.
    header : the C header of the exported symbol.
    registers : vector registers used, and values spilled.
    native : the kernel as a builtin.
    address : where the machine code starts.

    Examples
    --------
    >>> import tilewright as tw
    >>> kernel = tw.compile(tw.Gemm(dtype="f32"))
    >>> kernel.blocking.kr
    1
    """

    __slots__ = ("__dict__", "__weakref__")

    def __init__(self, compilation: Compilation) -> None:
        self.compilation = compilation
        self._quick: builtins.bytes | None = None  # the object of quick code
        self._former: list[object] = []  # machine code that calls and recipes may use
        self.problem: Any = compilation.problem
        self.machine: Machine = compilation.machine
        self.name: str = compilation.name

    @classmethod
    def compiled(cls, problem: Any, machine: Machine | None = None) -> Self:
        """The kernel of a problem of this class, for a machine or this host."""
        kernel = cls(_compile(problem, machine or host_machine()))
        measure_once(kernel.machine)
        return kernel

    @classmethod
    def compiled_quickly(cls, problem: Any) -> Self:
        """The kernel of a problem for this host, from quick code as long as the process has some."""
        machine = host_machine()
        if not quick_code.wanted or not has_parts(machine):
            return cls.compiled(problem, machine)
        state = run_stages(problem, machine, until=LAST_PROGRAM)
        what = _what(state)
        stored = stored_object(what, machine)
        if stored is not None:
            return cls(state.with_field("object", stored))
        kernel = cls(state)
        kernel._quick = cached_object(f"{what} quick", machine, lambda: finish(state, quick=True).object)
        quick_code.add(kernel.improve)
        measure_once(machine)
        return kernel

    def improve(self) -> None:
        """Compiles well what was compiled quickly."""
        with preparing:
            if self._quick is None:
                return
            self.compilation = _finished(self.compilation)
            self._quick = None
            for name in ("_code", "function"):
                if name in self.__dict__:
                    self._former.append(self.__dict__.pop(name))

    def __reduce__(self) -> tuple[Any, ...]:
        machine = None if self.machine == host_machine() else self.machine
        return type(self).compiled, (self.problem, machine)

    def __repr__(self) -> str:
        with importing:
            from tilewright.compiler.repr_html import describe  # only for readers

        return describe(self.compilation, self.__dict__.get("registers"))

    def _repr_html_(self) -> str:
        """What notebooks show: the facts as a table, the stages' texts folded away."""
        with importing:
            from tilewright.compiler.repr_html import describe_html

        texts = {name: getattr(self, name) for name in ("tile_ir", "llvm_ir", "assembly")}
        return describe_html(self.compilation, self.registers, texts)

    @property
    def symbol(self) -> str:
        """The exported C name."""
        return self.name

    @property
    def blocking(self) -> Any:
        """How the problem is cut: cache blocks, the tiles that cover known sizes, blocks of lines."""
        return self.compilation.blocking

    @property
    def nest(self) -> Program:
        """The loop nest as tile IR."""
        return self.compilation.program

    @property
    def tile_ir(self) -> str:
        """The loop nest as tile IR text."""
        return print_program(self.nest)

    @cached_property
    def llvm_ir(self) -> str:
        """The LLVM module as text."""
        return run_stages(self.problem, self.machine, until="llvm").llvm

    @cached_property
    def assembly(self) -> str:
        """The machine code as assembly text."""
        return emit_assembly(self.llvm_ir, self.name, self.machine)

    @property
    def object_code(self) -> builtins.bytes:
        """A relocatable object file."""
        self.improve()
        return self.compilation.object

    @property
    def header(self) -> str:
        """A C header with the prototype of the exported symbol, the meaning of each argument beside it."""
        with importing:
            from tilewright.compiler.c_header import c_header  # only for readers

        return c_header(self.compilation)

    @property
    def flops(self) -> int | None:
        """Floating-point operations of one call; None where sizes are given at run time."""
        found: int | None = self.problem.flops
        return found

    @property
    def bytes(self) -> int | None:
        """Bytes that one call must move, each operand once; None where sizes are given at run time."""
        found: int | None = self.problem.bytes
        return found

    @cached_property
    def registers(self) -> RegisterUse:
        """Vector registers used, and vector values that pass through the stack, by the assembly."""
        with importing:
            from tilewright.compiler.registers import count_registers  # only for readers

        return count_registers(self.assembly)

    @once_property
    def pool(self) -> ScratchPool | None:
        """Where calls find scratch: the common pool, or this kernel's own where its blocks are larger.

        None where the program has no buffers there.
        """
        return scratch_for(self.scratch_bytes_for(MOST_THREADS)) if self.nest.scratch else None

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch that one call of one thread needs."""
        return scratch_layout(self.nest).bytes

    def scratch_bytes_for(self, threads: int) -> int:
        """Bytes of scratch that one call needs which some threads share."""
        return scratch_layout(self.nest).size(check_integer(threads, "threads", 1, MAX_SIZE))

    @once_property
    def _code(self) -> Linked:
        if not runs_on(self.machine, host_machine()):
            raise ForeignKernel(kernel=self.name, target=self.machine.name, host=host_machine().cpu)
        return Linked(self._quick or self.object_code, (self.symbol,), {})

    @property
    def address(self) -> int:
        """Where the machine code starts in this process."""
        return self._code.address(self.symbol)

    @once_property
    def function(self) -> Any:
        """The ctypes function of the C signature: pointers, sizes and strides, scalars, scratch, team.

        As the program has them: it takes no scratch where there is none, and no team without tasks.
        """
        return self._code.function(self.symbol, [c_argument(kind.text) for _, kind in signature(self.nest)])

    @cached_property
    def _last_arguments(self) -> tuple[bool, bool]:
        """Whether the C function takes scratch, and whether it takes a team."""
        return self.nest.needs_scratch, has_tasks(self.nest)

    def launch(self, arguments: Iterable[Any], work: int) -> None:
        """Run the machine code on validated arguments: those of the C signature before scratch and team.

        Parameters
        ----------
        work : in multiply-adds, which decide how many threads share the call.

        Raises
        ------
        ForeignKernel : if the kernel was compiled for another machine.
        """
        quick_code.check(work)
        function = self.function  # a foreign kernel is refused before scratch is taken
        takes_scratch, takes_team = self._last_arguments
        pool = self.pool if takes_scratch else None
        if pool is None:
            _start(function, (*arguments, None) if takes_scratch else arguments, work, team=takes_team)
            return
        with pool.block() as scratch:
            _start(function, (*arguments, scratch), work, team=takes_team)

    @once_property
    def native(self) -> Callable[..., Any]:
        """The kernel's call as a builtin, bound once: ``kernel.native(a, b, c)`` is ``kernel(a, b, c)``.

        Both are machine code for calls like one made before. Where the machine code does not know this
        interpreter's objects, it is the Python method.

        Examples
        --------
        >>> import numpy as np, tilewright as tw
        >>> kernel = tw.compile(tw.BatchReduceGemm(2, 3, 4, a="row", b="row", c="row", beta=0))
        >>> a, b = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32)
        >>> kernel.native(a, b, np.empty((2, 3), np.float32))
        array([[4., 4., 4.],
               [4., 4., 4.]], dtype=float32)
        """
        return self.__call__

    def owned(self) -> Iterator[object]:
        """Machine code, scratch and other kernels that live as long as this one."""
        for value in list(self.__dict__.values()):
            yield value
            if isinstance(value, Kernel) and value is not self:
                yield from value.owned()

    def _refuse(self, operand: Operand, what: str, found: object, required: object) -> None:
        raise OperandMismatch(kernel=self.name, name=operand.name, what=what, found=found, required=required)

    def __call__(self, *arrays: Any, **named: Any) -> NDArray[Any]:  # noqa: ARG002 - see the subclasses
        """Computes into the last array and returns it; see the subclasses."""
        raise KernelNotCalled(kernel=self.name)


def _start(function: Any, arguments: Iterable[Any], work: int, *, team: bool) -> None:
    """Run machine code, with a team behind its other arguments if it takes one."""
    if not team:
        without_team(work)
        function(*arguments)
        return
    with call_team(work) as opened:
        function(*arguments, opened)


def _compile(problem: Any, machine: Machine) -> Compilation:
    """All stages, the code generation replaced by the object cache where it has the object."""
    return _finished(run_stages(problem, machine, until=LAST_PROGRAM))


def _finished(state: Compilation) -> Compilation:
    code = cached_object(_what(state), state.machine, lambda: finish(state).object)
    return state.with_field("object", code)


def _what(state: Compilation) -> str:
    """The name of a compilation's object in the cache: all that shapes it besides machine and generator."""
    problem, machine = state.problem, state.machine
    # Of one row, machines differ in instructions and in the length of their vectors.
    names = ",".join(tile.instruction for tile in machine.isa.tiles)
    unit = f"{machine.isa.emulated} {machine.vector_bits} {machine.streaming_bits} {names}"
    asked = repr(problem)
    if operation_of(problem).shared_stem is not None:  # kernels that share code: their programs say all of it
        asked = print_program(state.program)
    return f"{state.name} {asked} {state.blocking!r} {unit}"
