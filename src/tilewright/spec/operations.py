"""The registry of operations: their names, and where their records (`compiler.operation.Op`) are.

It is apart from the record so that registering costs nothing: a record is imported when a problem of its
operation is compiled first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.errors import NotAProblem, shown
from tilewright.preparing import Places


class Operations(Places):
    """The registry of operations: names, and the places of their records."""

    def __iter__(self) -> Iterator[Any]:
        return (self[name] for name in self.names)

    def __contains__(self, problem: Any) -> bool:
        """Whether an object is a problem of a registered operation."""
        name = getattr(problem, "operation", None)
        return not isinstance(problem, type) and isinstance(name, str) and name in self.names

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

#: Functions behind the methods of `PackedMatrix`; their modules import its.
PACKED_METHODS = Places()
