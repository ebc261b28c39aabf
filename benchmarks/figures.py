"""A table of figures: what is asked of each, and what is measured."""

from __future__ import annotations

from typing import NamedTuple

#: The titles of the columns.
HEADER = f"{'':62} {'asked':>8} {'found':>9}"


class Line(NamedTuple):
    """One line of the table: what is asked at least (at most where `upper`), and what was found.

    >>> print(Line("share of peak", 0.9, 0.87))
    share of peak                                                    >= 0.9      0.87 NO
    """

    what: str
    asked: float
    found: float
    note: str = ""
    upper: bool = False

    @property
    def reached(self) -> bool:
        """Whether it is what was asked."""
        return self.found <= self.asked if self.upper else self.found >= self.asked

    def __str__(self) -> str:
        """The line under `HEADER`."""
        asked = f"{'<=' if self.upper else '>='} {self.asked:g}"
        verdict = "yes" if self.reached else "NO"
        return f"{self.what:62} {asked:>8} {self.found:>9.3g} {verdict:3}  {self.note}".rstrip()
