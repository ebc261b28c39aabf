"""A compiled kernel: what every kind of problem has of one, and its code in this process."""

from __future__ import annotations

import builtins
import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from tilewright.cached import cached_property
from tilewright.compiler.interface import Interface, store_interface, stored_interface
from tilewright.compiler.operation import Compilation, operation_of
from tilewright.compiler.scratch import scratch_for
from tilewright.errors import ForeignKernel, KernelNotCalled, OperandMismatch
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object, stored_object
from tilewright.llvm.quick import quick_code
from tilewright.llvm.target import emit_assembly, has_parts
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine, runs_on
from tilewright.preparing import Late, importing, once_property, preparing
from tilewright.recorder import Numbered
from tilewright.spec.arguments import MAX_SIZE, check_integer
from tilewright.spec.dtype import find_llvm_type
from tilewright.spec.operations import PAGES
from tilewright.spec.problem import Operand
from tilewright.threads.pool import MOST_THREADS, call_team, without_team
from tilewright.threads.scratch import ScratchPool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.compiler.registers import RegisterUse
    from tilewright.ir.nodes import Program

#: The compiler itself, which a process does not need for kernels that the object cache has.
_run_stages = Late("tilewright.compiler.pipeline:run_stages")
_make_programs = Late("tilewright.compiler.pipeline:make_programs")
_interface_of = Late("tilewright.compiler.pipeline:interface_of")
_emit_code = Late("tilewright.compiler.pipeline:finish")
_print_program = Late("tilewright.ir.text:print_program")
_measure_once = Late("tilewright.compiler.measure_core:measure_once")


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

    def __init__(self, compilation: Compilation, interface: Interface | None = None) -> None:
        self._state = compilation
        self._quick: builtins.bytes | None = None  # the object of quick code
        self._former: list[object] = []  # machine code that calls and recipes may use
        self.problem: Any = compilation.problem
        self.machine: Machine = compilation.machine
        self.name: str = compilation.name
        if interface is not None:
            self.__dict__["interface"] = interface

    @classmethod
    def compiled(cls, problem: Any, machine: Machine | None = None) -> Self:
        """The kernel of a problem of this class, for a machine or this host."""
        machine = machine or host_machine()
        found = cls._stored(problem, machine)
        if found is not None:
            return found
        kernel = cls(_run_stages(problem, machine, until=_LAST_PROGRAM))
        kernel._compile_well()
        store_interface(problem, machine, kernel.interface)
        _measure_once(machine)
        return kernel

    @classmethod
    def compiled_quickly(cls, problem: Any) -> Self:
        """The kernel of a problem for this host, from quick code as long as the process has some."""
        machine = host_machine()
        if not quick_code.wanted or not has_parts(machine):
            return cls.compiled(problem, machine)
        found = cls._stored(problem, machine, quick=True)
        if found is not None:
            return found
        kernel = cls(_run_stages(problem, machine, until=_LAST_PROGRAM))
        name = kernel.interface.code
        stored = stored_object(name, machine)
        if stored is None:
            state = kernel._state
            code = cached_object(_quick(name), machine, lambda: _emit_code(state, quick=True).object)
            kernel._set_quick(code)
        else:
            kernel._state = kernel._state.with_field("object", stored)
        store_interface(problem, machine, kernel.interface)
        _measure_once(machine)
        return kernel

    @classmethod
    def _stored(cls, problem: Any, machine: Machine, *, quick: bool = False) -> Self | None:
        """The kernel of a problem from the object cache alone.

        Parameters
        ----------
        quick : whether quick code will do, if there is no other.
        """
        interface = stored_interface(problem, machine)
        if interface is None:
            return None
        kernel = cls(Compilation(problem, machine, interface.name), interface)
        code = stored_object(interface.code, machine)
        if code is not None:
            kernel._state = kernel._state.with_field("object", code)
            return kernel
        code = stored_object(_quick(interface.code), machine) if quick else None
        if code is None:
            return None
        kernel._set_quick(code)
        return kernel

    def _set_quick(self, code: builtins.bytes) -> None:
        """Runs quick code until it is replaced."""
        self._quick = code
        quick_code.add(self.improve)

    def _compile_well(self) -> None:
        """Compiles the program well, or finds its object in the object cache."""
        state = self.compilation
        code = cached_object(self.interface.code, state.machine, lambda: _emit_code(state).object)
        self._state = state.with_field("object", code)

    def improve(self) -> None:
        """Compiles well what was compiled quickly."""
        with preparing:
            if self._quick is None:
                return
            self._compile_well()
            self._quick = None
            for name in ("_code", "function"):
                if name in self.__dict__:
                    self._former.append(self.__dict__.pop(name))

    @property
    def compilation(self) -> Compilation:
        """The stages that the problem has gone through."""
        if self._state.nest is None:
            self._state = _make_programs(self._state)
        return self._state

    @cached_property
    def interface(self) -> Interface:
        """How the C function is called."""
        found: Interface = _interface_of(self.compilation)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        machine = None if self.machine == host_machine() else self.machine
        return type(self).compiled, (self.problem, machine)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """What Dask names tasks by: the problem, and the machine where it is not the worker's own."""
        machine = "" if self.machine == host_machine() else self.machine.full_text
        return type(self).__name__, repr(self.problem), machine

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

    def explore(
        self,
        *targets: str | Machine,
        sizes: Mapping[str, int] | None = None,
        measure: bool = False,
        peers: Sequence[str] | None = None,
    ) -> Any:
        """A page about the kernel: blocking, packed layout, tiles, code, predicted cycles.

        Parameters
        ----------
        targets : further targets for the same problem, to compare; see `tilewright.compile`.
        sizes : lengths of axes that the problem leaves open, for the call that is drawn.
        measure : whether to run the call that is drawn on this host, beside peers, which takes seconds.
        peers : systems to measure, such as "numpy"; by default those that are installed and compute it.

        Returns
        -------
        A page with `save(path)`, `show()` and `html`; notebooks show it. It loads nothing.

        Raises
        ------
        NotMeasured : this host is not among the targets.

        Examples
        --------
        >>> import tilewright as tw
        >>> tw.compile(tw.BatchReduceGemm(16, 6, 64), "znver4").explore("neoverse-v2")
        <Exploration of brgemm_f32_16x6x64x1_ccc for znver4, neoverse-v2: save(path) or show()>
        """
        return PAGES["kernel"](self, targets, sizes, measure=measure, peers=peers)

    @property
    def symbol(self) -> str:
        """The exported C name."""
        return self.name

    @property
    def blocking(self) -> Any:
        """How the problem is cut: cache blocks, the tiles that cover known sizes, blocks of lines."""
        if self._state.blocking is None:
            found = operation_of(self.problem).cut(self.problem, self.machine)
            self._state = self._state.with_field("blocking", found)
        return self._state.blocking

    @property
    def nest(self) -> Program:
        """The loop nest as tile IR."""
        return self.compilation.program

    @property
    def tile_ir(self) -> str:
        """The loop nest as tile IR text."""
        return str(_print_program(self.nest))

    @cached_property
    def llvm_ir(self) -> str:
        """The LLVM module as text."""
        return str(_run_stages(self.problem, self.machine, until="llvm").llvm)

    @cached_property
    def assembly(self) -> str:
        """The machine code as assembly text."""
        return emit_assembly(self.llvm_ir, self.name, self.machine)

    @property
    def object_code(self) -> builtins.bytes:
        """A relocatable object file."""
        self.improve()
        if not self._state.object:
            self._compile_well()
        return self._state.object

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
        return scratch_for(self.scratch_bytes_for(MOST_THREADS)) if self.interface.has_scratch else None

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch that one call of one thread needs."""
        return self.interface.scratch_bytes

    def scratch_bytes_for(self, threads: int) -> int:
        """Bytes of scratch that one call needs which some threads share."""
        return self.interface.scratch_bytes_for(check_integer(threads, "threads", 1, MAX_SIZE))

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
        return self._code.function(self.symbol, [c_argument(kind) for kind in self.interface.arguments])

    def launch(self, arguments: Iterable[Any], work: int) -> None:
        """Run the machine code on validated arguments: those of the C signature before scratch and team.

        Parameters
        ----------
        work : in multiply-adds, which decide how many threads share the call.

        Raises
        ------
        ForeignKernel : if the kernel was compiled for another machine.
        """
        quick_code.spend(work)
        function = self.function  # a foreign kernel is refused before scratch is taken
        takes_scratch, takes_team = self.interface.takes_scratch, self.interface.takes_team
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


#: The last stage whose output is tile IR; see `pipeline.STAGES`.
_LAST_PROGRAM = "fuse_consumer"


def _quick(name: str) -> str:
    """The name in the object cache of the quick code of a kernel, by that of its object."""
    return f"{name} quick"
