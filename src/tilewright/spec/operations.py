"""The registry of operations: their names, and where their records (`compiler.operation.Op`) are.

It is apart from the record so that registering costs nothing: a record is imported when a problem of its
operation is compiled first.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from tilewright.errors import NotAProblem, shown
from tilewright.preparing import importing


class Operations:
    """The registry of operations: names, and where their records are."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}
        self._records: dict[str, Any] = {}

    def add(self, name: str, place: str) -> None:
        """Registers an operation by the place of its record, "module:NAME"."""
        self._places[name] = place
        self._records.pop(name, None)

    def remove(self, name: str) -> None:
        """Takes an operation out of the registry."""
        del self._places[name]
        self._records.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all operations; their records are not imported."""
        return tuple(self._places)

    def __iter__(self) -> Iterator[Any]:
        return (self[name] for name in self._places)

    def __getitem__(self, name: str) -> Any:
        found = self._records.get(name)
        if found is None:
            module, _, attribute = self._places[name].partition(":")
            with importing:
                found = self._records[name] = getattr(import_module(module), attribute)
        return found

    def __contains__(self, problem: Any) -> bool:
        """Whether an object is a problem of a registered operation."""
        name = getattr(problem, "operation", None)
        return not isinstance(problem, type) and isinstance(name, str) and name in self._places

    def of(self, problem: Any) -> Any:
        """The operation of a problem.

        Raises
        ------
        NotAProblem
        """
        if problem not in self:
            known = dict.fromkeys(operation.problem.__name__ for operation in self)
            raise NotAProblem(known=", ".join(known), found=shown(problem))
        return self[problem.operation]


#: Every operation, in the order of `tilewright emit --help`.
OPS = Operations()
