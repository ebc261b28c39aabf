"""The registry of operations: their names, and where their records (`compiler.operation.Op`) are.

It is apart from the record so that registering costs nothing: a record is imported when a problem of its
operation is compiled first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.errors import NotAProblem, shown
from tilewright.preparing import Places
from tilewright.registered import OPERATIONS, registered, registered_places


class Operations(Places):
    """The registry of operations: names, and the places of their records.

    Operations of other packages (`registered.py`) come last.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """All names; their records are not imported."""
        return tuple(dict.fromkeys((*self._places, *registered_places(OPERATIONS))))

    def __getitem__(self, name: str) -> Any:
        if name in self._places:
            return super().__getitem__(name)
        found = registered(OPERATIONS, name, object)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[Any]:
        return (self[name] for name in self.names)

    def __contains__(self, problem: Any) -> bool:
        """Whether an object is a problem of a registered operation."""
        name = getattr(problem, "operation", None)
        if isinstance(problem, type) or not isinstance(name, str):
            return False
        return name in self._places or name in registered_places(OPERATIONS)

    def of(self, problem: Any) -> Any:
        """The operation of a problem.

        Raises
        ------
        NotAProblem
        """
        if problem not in self:
            own = (self[name].problem.__name__ for name in self._places)
            known = dict.fromkeys((*own, *registered_places(OPERATIONS)))
            raise NotAProblem(known=", ".join(known), found=shown(problem))
        return self[problem.operation]


#: Every operation, in the order of `tilewright emit --help`.
OPS = Operations()

#: Functions behind the methods of `PackedMatrix`; their modules import its.
PACKED_METHODS = Places()

#: Functions behind `Kernel.explore` and `CompiledGraph.explore`: tools, whose modules import everything.
PAGES = Places()
