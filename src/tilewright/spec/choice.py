"""Words that name the member of an enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

from tilewright.errors import InvalidChoice

_Choice = TypeVar("_Choice", bound=Enum)


def parse_choice(
    kind: type[_Choice], value: _Choice | str, name: str, allowed: Sequence[_Choice] | None = None
) -> _Choice:
    """The member of `kind` given by member or by value; `InvalidChoice` names the allowed ones.

    >>> from tilewright.spec.problem import Layout
    >>> parse_choice(Layout, "col", "a")
    <Layout.COL: 'col'>
    """
    members = tuple(kind) if allowed is None else allowed
    for member in members:
        if value in (member, member.value):
            return member
    words = ", ".join(str(member.value) for member in members)
    found = value.value if isinstance(value, Enum) else value
    raise InvalidChoice(name=name, found=repr(found), allowed=words)
