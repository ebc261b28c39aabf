"""The handler of this process: its table of programs, and what it calls Python for.

XLA may call the handler from any thread and without the GIL, several times at once. Programs are never freed,
as those of JAX that run them may live as long as the process.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from typing import Any

from tilewright.calls.interpreter import FUNCTIONS as PYTHON_FUNCTIONS
from tilewright.errors import ScratchAllocation
from tilewright.jax.frame import XlaBuffer
from tilewright.jax.handler_code import (
    HANDLER,
    MESSAGES,
    SCRATCH_SLOTS,
    ProgramField,
    TableField,
    emit_handler,
)
from tilewright.jax.library import check_interface, jax
from tilewright.jax.problem import Problem
from tilewright.jax.program import Program, prepare
from tilewright.llvm.builtin import address_of
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import emit_object
from tilewright.machine.host import host_machine
from tilewright.preparing import once, preparing
from tilewright.threads.lifetime import reset_after_forks
from tilewright.threads.pool import thread_pool
from tilewright.threads.scratch import ScratchPool

#: The target of custom calls. Programs that JAX stores name it, so its meaning never changes.
TARGET = "tilewright"

#: Slots of the first table of programs.
_SLOTS = 256

_POINTER = ctypes.c_void_p
_C = ctypes.CDLL(None)


class _Scratch:
    """Blocks of one size for the handler, which takes them without the GIL."""

    def __init__(self, size: int) -> None:
        self.slots = (ctypes.c_int64 * SCRATCH_SLOTS)()
        self._pool = ScratchPool(size)
        self._mapped = 0

    @property
    def address(self) -> int:
        """The address of the slots."""
        return ctypes.addressof(self.slots)

    def map(self) -> int:
        """One more block."""
        if self._mapped == SCRATCH_SLOTS:
            raise ScratchAllocation(size=self._pool.size, reason=f"{SCRATCH_SLOTS} calls are running")
        block = self._pool.take()
        self._mapped += 1
        return block

    def reset(self) -> None:
        """In the child of a fork: the blocks of calls that were running are gone."""
        ctypes.memset(self.slots, 0, ctypes.sizeof(self.slots))
        self._mapped = 0


class Handler:
    """The handler, registered with JAX.

    Parameters
    ----------
    target : the name of the custom calls that it serves.

    Attributes
    ----------
    programs : those prepared in this process, by their keys.
    """

    def __init__(self, target: str = TARGET) -> None:
        self.programs: dict[tuple[int, int], Program] = {}
        self._addresses: dict[int, Program] = {}
        self._scratch: dict[int, _Scratch] = {}
        self._texts: dict[str, ctypes.Array[ctypes.c_char]] = {}
        self._tables: list[array[int]] = []  # handlers may read a former one
        self._table = ctypes.c_void_p()
        self._grow(_SLOTS)
        reset_after_forks(self._reset)
        self._callbacks = {
            "prepare": _callback(self._prepare, _POINTER, _POINTER, ctypes.c_int64, _POINTER),
            "scratch": _callback(self._map_scratch, _POINTER, _POINTER, _POINTER),
            "supply": _callback(self._supply, None, ctypes.c_int64),
            "python_call": _callback(self._call, _POINTER, _POINTER, _POINTER, _POINTER),
        }
        self._code = self._link()
        self.function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._code.address(HANDLER))
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(self.function), platform="cpu")

    def _link(self) -> Linked:
        machine = host_machine()
        code = cached_object(HANDLER, machine, lambda: emit_object(emit_handler(machine), HANDLER, machine))
        environment = _default_environment()
        imports = {
            "tw_programs": ctypes.addressof(self._table),
            "tw_pool": thread_pool().address,
            "tw_fegetenv": address_of(_C.fegetenv),
            "tw_fesetenv": address_of(_C.fesetenv),
            "tw_default_environment": environment,
            **{f"tw_{name}": address_of(one) for name, one in self._callbacks.items()},
            **{f"tw_message_{int(number)}": self._text(text) for number, text in MESSAGES.items()},
            **{
                f"tw_{name}": address_of(getattr(ctypes.pythonapi, str(PYTHON_FUNCTIONS[name].source)))
                for name in ("allocate", "free")
            },
        }
        return Linked(code, (HANDLER,), imports)

    def _text(self, text: str) -> int:
        """The address of a text, which stays."""
        if text not in self._texts:
            self._texts[text] = ctypes.create_string_buffer(text.encode())
        return ctypes.addressof(self._texts[text])

    def _reset(self) -> None:
        for scratch in self._scratch.values():
            scratch.reset()

    # --- programs ----------------------------------------------------------------------------

    def find(self, problem: Problem) -> Program:
        """The program of a problem, prepared if there is none.

        Raises
        ------
        The errors of the public function that the problem calls.
        """
        found = self.programs.get(problem.key)
        return self.add(problem) if found is None else found

    def add(self, problem: Problem) -> Program:
        """Prepares a problem, also if it has a program, whose place the new one takes."""
        program = prepare(problem)
        with preparing:
            tables = []
            for size in program.scratch_bytes:
                if size not in self._scratch:
                    self._scratch[size] = _Scratch(size)
                tables.append(self._scratch[size].address)
            program.set_scratch(tables)
            self._addresses[program.address] = program  # keeps a former one too: handlers may run it
            known = problem.key in self.programs
            self.programs[problem.key] = program
            if not known and 2 * len(self.programs) > self._tables[-1][TableField.MASK]:
                self._grow(2 * (self._tables[-1][TableField.MASK] + 1))
            else:
                _put(self._tables[-1], program)
        return program

    def _grow(self, slots: int) -> None:
        """A larger table with all programs in the place of the former one."""
        table = array("q", [slots - 1] + [0] * slots)
        for program in self.programs.values():
            _put(table, program)
        self._tables.append(table)
        self._table.value = table.buffer_info()[0]  # last: who finds it reads all of it

    # --- what machine code calls --------------------------------------------------------------

    def _prepare(self, text: int, size: int, place: int) -> int | None:
        """Writes the address of the program of a problem; the address of an error's text, or null."""
        try:
            program = self.add(Problem.parse(ctypes.string_at(text, size).decode()))
        except Exception as error:  # whatever it is, XLA reports it
            return self._text(f"{type(error).__name__}: {error}")
        ctypes.c_void_p.from_address(place).value = program.address
        return None

    def _map_scratch(self, table: int, place: int) -> int | None:
        """Writes the address of one more block for a table."""
        try:
            with preparing:
                (scratch,) = (one for one in self._scratch.values() if one.address == table)
                ctypes.c_void_p.from_address(place).value = scratch.map()
        except Exception as error:
            return self._text(f"{type(error).__name__}: {error}")
        return None

    def _supply(self, threads: int) -> None:
        """Starts the workers of so many threads."""
        thread_pool().supply(threads)

    def _call(self, program: int, operands: int, results: int) -> int | None:
        """Computes a problem whose steps machine code does not know."""
        found = self._addresses[program]
        try:
            found.call_in_python(
                _buffers(operands, len(found.problem.operands)), _buffers(results, len(found.problem.results))
            )
        except Exception as error:
            return self._text(f"{type(error).__name__}: {error}")
        return None


def _buffers(items: int, count: int) -> list[int]:
    """The addresses of the data of a list of buffers."""
    pointers = (ctypes.c_void_p * count).from_address(items)
    return [XlaBuffer.from_address(pointer or 0).data for pointer in pointers]


def _put(table: array[int], program: Program) -> None:
    """Puts a program into the first free slot of its key, or into that of another program with the key."""
    mask = table[TableField.MASK]
    at, key = program.words[ProgramField.KEY] & mask, program.problem.key
    while True:
        slot = TableField.SLOTS + at
        there = table[slot]
        if not there or tuple((ctypes.c_int64 * 2).from_address(there)) == key:
            table[slot] = program.address
            return
        at = (at + 1) & mask


def _callback(function: Callable[..., Any], result: Any, *arguments: Any) -> Any:
    """A C function that takes the GIL and calls Python."""
    return ctypes.CFUNCTYPE(result, *arguments)(function)


def _default_environment() -> int:
    """The address that `fesetenv` takes for the floating-point environment of a new program.

    FE_DFL_ENV is -1 in the C libraries of Linux for most architectures; that for POWER and macOS have a
    variable.
    """
    for name in ("__fe_dfl_env", "_FE_DFL_ENV"):
        try:
            return ctypes.addressof(ctypes.c_byte.in_dll(_C, name))
        except ValueError:
            continue
    return (1 << 64) - 1


@once
def handler() -> Handler:
    """The handler of this process.

    Raises
    ------
    JaxInterfaceUnknown
    """
    check_interface()
    return Handler()
