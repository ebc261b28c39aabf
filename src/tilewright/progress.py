"""Progress bars on standard error, for work that takes over two seconds, where a person sees them."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from tilewright.preparing import importing
from tilewright.settings import read_settings

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress

#: Seconds that work is expected to take at least before a bar appears.
SHOWN_FROM = 2.0
#: Seconds after which the steps that are done foretell how long the rest takes: a first kernel takes longer.
FORETOLD_AFTER = 0.5


def is_seen() -> bool:
    """Whether bars are shown: to a terminal, unless TILEWRIGHT_PROGRESS is 0."""
    return sys.stderr is not None and sys.stderr.isatty() and read_settings().progress


class Steps:
    """Work of many steps, as a context; a bar appears as soon as the steps done so far foretell a long time.

    Of several that are open at once, only the first has a bar. Nothing is shown by threads other than the
    main one, nor where standard error is not a terminal.

    Parameters
    ----------
    title : what is done.
    total : the number of steps.
    done : steps that an earlier process has done.
    at_once : show the bar from the start, and keep its clock running: for commands that take long.

    Examples
    --------
    >>> with Steps("compile", total=3) as steps:
    ...     for _ in range(3):
    ...         steps.advance()
    """

    #: The one that has a bar.
    _shown: Steps | None = None

    def __init__(self, title: str, total: float, *, done: float = 0, at_once: bool = False) -> None:
        self.title, self.total, self.done = title, total, done
        self._before, self._at_once = done, at_once
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._at_once:
            self._show()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            Steps._shown = None

    @property
    def expected_seconds(self) -> float:
        """How long all steps will take if the rest takes what those took that are done."""
        done = self.done - self._before
        return (time.monotonic() - self._started) * (self.total - self._before) / done if done > 0 else 0.0

    def _is_long(self) -> bool:
        """Whether the work takes so long that a person wants to know."""
        elapsed = time.monotonic() - self._started
        return elapsed >= FORETOLD_AFTER and self.expected_seconds >= SHOWN_FROM

    def advance(self, steps: float = 1, title: str | None = None) -> None:
        """Some more steps are done; `title` says what comes next."""
        self.reach(self.done + steps, title)

    def reach(self, done: float, title: str | None = None) -> None:
        """So many steps are done altogether."""
        self.done, self.title = done, title or self.title
        if self._bar is None and (self._at_once or self._is_long()):
            self._show()
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, description=self.title)
            if not self._at_once:
                self._bar.refresh()

    def _show(self) -> None:
        """Show the bar, if none is shown and somebody sees it."""
        if Steps._shown is not None or threading.current_thread() is not threading.main_thread():
            return
        if not is_seen():
            return
        with importing:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        Steps._shown = self
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
        )
        console = Console(stderr=True)
        self._bar = Progress(*columns, console=console, transient=True, auto_refresh=self._at_once)
        self._task = self._bar.add_task(self.title, total=self.total)
        self._bar.update(self._task, completed=self.done)
        self._bar.start()
