"""How a kernel is called, apart from its program: what the object cache has beside the machine code.

A process that finds both need not import what cuts, lays and lowers a problem.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.llvm.object_cache import cached_object, outside_version, stored_object
from tilewright.machine.machine import Machine

#: Scratch buffers start on pages.
SCRATCH_ALIGNMENT = 4096


class Interface(NamedTuple):
    """What a call of a kernel needs to know of its program.

    Attributes
    ----------
    name : the kernel's name, and its exported symbol.
    code : the name of its object in the object cache.
    arguments : LLVM's types of the arguments of the C function.
    has_scratch : whether the program has buffers in scratch.
    takes_scratch, takes_team : whether the C function takes a pointer to scratch, and one to a team.
    scratch_bytes : scratch of a call of one thread.
    thread_bytes : what each further thread adds.
    """

    name: str
    code: str
    arguments: tuple[str, ...]
    has_scratch: bool
    takes_scratch: bool
    takes_team: bool
    scratch_bytes: int
    thread_bytes: int

    def scratch_bytes_for(self, threads: int) -> int:
        """Scratch of a call of some threads."""
        return self.scratch_bytes + (threads - 1) * self.thread_bytes

    def encoded(self) -> bytes:
        """The interface as the object cache has it: a field a line.

        >>> one = Interface("gemm", "gemm Gemm(...)", ("ptr", "i64"), True, True, False, 4096, 64)
        >>> Interface.decoded(one.encoded()) == one
        True
        """
        numbers = map(str, map(int, self[3:]))
        return "\0".join((self.name, self.code, " ".join(self.arguments), *numbers)).encode()

    @classmethod
    def decoded(cls, text: bytes) -> Interface:
        """The interface from what `encoded` gave."""
        name, code, arguments, *numbers = text.decode().split("\0")
        has_scratch, takes_scratch, takes_team, *sizes = map(int, numbers)
        flags = (bool(has_scratch), bool(takes_scratch), bool(takes_team))
        return cls(name, code, tuple(arguments.split(" ")), *flags, *sizes)


def _key(problem: Any) -> str:
    return f"interface {type(problem).__qualname__} {problem!r}{outside_version(problem)}"


def stored_interface(problem: Any, machine: Machine) -> Interface | None:
    """The interface of a problem's kernel, if a process has compiled that."""
    found = stored_object(_key(problem), machine)
    return None if found is None else Interface.decoded(found)


def store_interface(problem: Any, machine: Machine, interface: Interface) -> None:
    """Stores the interface of a problem's kernel."""
    cached_object(_key(problem), machine, interface.encoded)
