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

#: Seconds over which a bar estimates its speed: all of the work, as steps differ.
ESTIMATED_OVER = 3600.0
#: Seconds after which a bar appears: shorter work shows nothing.
SHOWN_FROM = 2.0


def is_seen() -> bool:
    """Whether bars are shown: to a terminal, unless TILEWRIGHT_PROGRESS is 0."""
    return sys.stderr is not None and sys.stderr.isatty() and read_settings().progress


class Steps:
    """Work of many steps, as a context; a bar appears once it has taken two seconds.

    Of several that are open at once, only the first has a bar. Nothing is shown by threads other than the
    main one, nor where standard error is not a terminal.

    Parameters
    ----------
    title : what is done.
    total : the number of steps.
    done : steps that an earlier process has done.
    timed : let a timer show the bar, not the end of a step, and keep its clock running: for commands, whose
        steps may be long.

    Examples
    --------
    >>> with Steps("compile", total=3) as steps:
    ...     for _ in range(3):
    ...         steps.advance()
    """

    #: The one that has a bar, or whose timer will show one.
    _shown: Steps | None = None

    def __init__(self, title: str, total: float, *, done: float = 0, timed: bool = False) -> None:
        self.title, self.total, self.done = title, total, done
        self._is_timed = timed
        self._started = time.monotonic()
        self._timer: threading.Timer | None = None
        self._bar: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._is_timed and self._takes_the_terminal():
            self._timer = threading.Timer(SHOWN_FROM, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()  # it may be showing the bar
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if Steps._shown is self:
            Steps._shown = None

    def advance(self, steps: float = 1, title: str | None = None) -> None:
        """Some more steps are done; `title` says what comes next."""
        self.reach(self.done + steps, title)

    def reach(self, done: float, title: str | None = None) -> None:
        """So many steps are done altogether."""
        self.done, self.title = done, title or self.title
        if self._bar is None and self._is_due() and self._takes_the_terminal():
            self._show()
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, description=self.title)
            if not self._is_timed:
                self._bar.refresh()

    def _is_due(self) -> bool:
        """Whether work without a timer has taken so long that a person wants to know, and goes on."""
        is_long = time.monotonic() - self._started >= SHOWN_FROM
        return not self._is_timed and is_long and self.done < self.total

    def _takes_the_terminal(self) -> bool:
        """Reserves the terminal for this bar, if none has it and somebody sees it."""
        if Steps._shown is not None or threading.current_thread() is not threading.main_thread():
            return False
        if is_seen():
            Steps._shown = self
        return Steps._shown is self

    def _show(self) -> None:
        """Shows the bar."""
        with importing:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
        )
        bar = Progress(
            *columns,
            console=Console(stderr=True),
            transient=True,
            auto_refresh=self._is_timed,
            speed_estimate_period=ESTIMATED_OVER,
        )
        self._task = bar.add_task(self.title, total=self.total)
        bar.update(self._task, completed=self.done)
        bar.start()
        self._bar = bar
