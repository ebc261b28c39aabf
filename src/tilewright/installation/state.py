"""Whether NumPy's products are replaced in this process; asked for by `install`, contexts, or both."""

from __future__ import annotations

import atexit
import contextlib
from importlib import import_module
from typing import Any

from tilewright.calls.layout import layout_known
from tilewright.errors import InstallRefused
from tilewright.installation.loops import Loops, loops
from tilewright.installation.names import Names
from tilewright.preparing import importing, once, preparing


class State:
    """The state of this process.

    Attributes
    ----------
    wanted : whether `install` was called, and not `uninstall` after it.
    contexts : contexts of `installed` that are open.
    """

    def __init__(self) -> None:
        self.wanted, self.contexts = False, 0
        self.names = Names()
        self.loops: Loops | None = None

    @property
    def active(self) -> bool:
        """Whether NumPy's products are replaced."""
        return self.wanted or self.contexts > 0

    def install(self) -> None:
        """As `tilewright.install`."""
        with preparing:
            self._begin()
            self.wanted = True

    def uninstall(self) -> None:
        """As `tilewright.uninstall`: open contexts go on."""
        with preparing:
            self.wanted = False
            self._end()

    def enter(self) -> None:
        """One more context is open."""
        with preparing:
            self._begin()
            self.contexts += 1

    def leave(self) -> None:
        """One context fewer is open."""
        with preparing:
            self.contexts -= 1
            self._end()

    def _begin(self) -> None:
        if self.active:
            return
        check_possible()
        if self.loops is None:
            self.loops = loops()
            atexit.register(self.stop)
        self.loops.install()
        self.names.install()

    def _end(self) -> None:
        if not self.active:
            self.stop()

    def stop(self) -> None:
        """Restores everything; the last thing before the interpreter takes its modules apart."""
        if self.loops is not None:
            self.names.uninstall()
            self.loops.uninstall()


def check_possible() -> None:
    """Refuses where loops cannot be replaced.

    Raises
    ------
    InstallRefused
    """
    if _in_subinterpreter():
        raise InstallRefused(reason="this is a subinterpreter", remedy="install in the main interpreter")
    if not layout_known():
        reason = "the interpreter or NumPy has another layout than the known ones"
        raise InstallRefused(reason=reason, remedy="use CPython 3.11 to 3.14 and NumPy 2")


def _in_subinterpreter() -> bool:
    """Whether this interpreter is not the process's first; the module that knows is another since 3.13."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        with contextlib.suppress(ImportError):
            with importing:
                module = import_module(name)
            return bool(_identity(module.get_current()) != _identity(module.get_main()))
    return False


def _identity(interpreter: Any) -> int:
    """The number of an interpreter; newer versions give it together with other things."""
    return int(interpreter[0] if isinstance(interpreter, tuple) else interpreter)


@once
def state() -> State:
    """That of this process."""
    return State()
