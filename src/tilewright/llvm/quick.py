"""Quick code: compiled without optimisation for the first calls of a process, then once more.

LLVM takes a quarter of the time without optimisation. Machine code that arrives there with each call counts
the calls down, and hands one to Python when there are none left; Python then compiles everything well.
Functions in which a call spends its time, such as register tiles, are compiled well in any case.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence

from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object, stored_object
from tilewright.llvm.target import CODEGEN_LEVEL, QUICK_LEVEL, emit_object
from tilewright.machine.machine import Machine
from tilewright.preparing import preparing

#: Calls of quick code in a process; each 2^`QUICK_UNIT_BITS` multiply-adds of a product count as one more.
#: Edges and strided operands take several times as long: all calls lose about what compiling well takes.
QUICK_CALLS = 256
QUICK_UNIT_BITS = 20

#: Multiply-adds of a call that quick code does not serve.
QUICK_WORK = 1 << 26

#: Multiply-adds that an element of B counts as: quick code copies strided ones element by element.
QUICK_COPY = 16


class QuickState(ctypes.Structure):
    """What machine code reads: whether any quick code is in use, and how many calls of it are left."""

    _fields_ = (("in_use", ctypes.c_int64), ("left", ctypes.c_int64))


class QuickCode:
    """What was compiled quickly in this process, and what follows when it has been compiled well."""

    def __init__(self) -> None:
        self._state = QuickState(0, QUICK_CALLS)
        self._improve: list[Callable[[], None]] = []
        self._then: list[Callable[[], None]] = []

    @property
    def address(self) -> int:
        """The address of the state, for machine code."""
        return ctypes.addressof(self._state)

    @property
    def wanted(self) -> bool:
        """Whether code is still compiled quickly."""
        return bool(self._state.left > 0)

    @property
    def unfinished(self) -> bool:
        """Whether something is still to be compiled well, now or when the calls have been counted."""
        return bool(self._state.left > 0 or self._improve or self._then)

    def add(self, improve: Callable[[], None]) -> None:
        """Adds code that was compiled quickly: what compiles it well and puts that in its place."""
        self._improve.append(improve)
        self._state.in_use = 1

    def then(self, follow: Callable[[], None]) -> None:
        """What is to be done when everything has been compiled well."""
        self._then.append(follow)

    def count(self) -> None:
        """Counts a call that Python makes; after the last one, compiles everything well."""
        if self.wanted:
            self._state.left -= 1
        if not self.wanted:
            self.finish()

    def check(self, work: int) -> None:
        """Compiles everything well if a call has more multiply-adds than quick code serves."""
        if work > QUICK_WORK:
            self.finish()

    def spend(self, work: int) -> None:
        """Counts the multiply-adds of a call that Python makes, before it makes it."""
        self._state.left -= work >> QUICK_UNIT_BITS if self.wanted else 0
        if work > QUICK_WORK or not self.wanted:
            self.finish()

    def finish(self) -> None:
        """Compiles everything well, now and from here on."""
        if not self.unfinished:
            return
        with preparing:
            self._state.left = min(self._state.left, 0)
            # A step that a signal handler interrupts is done again by a later call.
            for steps in (self._improve, self._then):
                while steps:
                    step = steps[0]
                    step()
                    if step in steps:
                        steps.remove(step)
            self._state.in_use = 0


#: The quick code of this process.
quick_code = QuickCode()


class EntryCode:
    """Machine code that builtins enter, which may be quick code at first.

    Parameters
    ----------
    what : its name in the object cache.
    emit : the module. Its code counts calls down while quick code is in use, whether or not it is quick code
        itself: entries may come from the object cache when a kernel does not.
    installed : called when the code has been replaced.
    """

    def __init__(
        self,
        what: str,
        machine: Machine,
        emit: Callable[[], str],
        exports: Sequence[str],
        imports: Mapping[str, int],
        installed: Callable[[], None],
    ) -> None:
        self._what, self._machine, self._emit, self._installed = what, machine, emit, installed
        self._exports, self._imports = exports, {**imports, "tw_quick_state": quick_code.address}
        self._codes: list[Linked] = []  # calls may be in progress in the former one
        stored = stored_object(what, machine) if quick_code.wanted else None
        if stored is None and quick_code.wanted:
            self._link(f"{what} quick", QUICK_LEVEL)
            quick_code.add(self._improve)
        elif stored is None:
            self._link(what, CODEGEN_LEVEL)
        else:
            self._codes.append(Linked(stored, exports, self._imports))

    def _link(self, what: str, level: int) -> None:
        def compiled() -> bytes:
            return emit_object(self._emit(), self._what, self._machine, level)

        code = cached_object(what, self._machine, compiled)
        self._codes.append(Linked(code, self._exports, self._imports))

    def _improve(self) -> None:
        self._link(self._what, CODEGEN_LEVEL)
        self._installed()

    def address(self, name: str) -> int:
        """Where an exported function starts."""
        return self._codes[-1].address(name)
