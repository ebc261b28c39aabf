"""What other installed packages register by entry points: operations, machines and rows of instructions.

A package says in its pyproject.toml::

    [project.entry-points."tilewright.operations"]
    squared = "my_package.op:SQUARED"

Entry points are looked up when a name is not one of this package's, or when all names are listed, so that
nobody else pays for them. docs/adding.md says what each group holds.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib import import_module
from typing import Any

from tilewright.errors import RegisteredName
from tilewright.preparing import Late, importing

OPERATIONS, MACHINES, ROWS = "tilewright.operations", "tilewright.machines", "tilewright.rows"

_entry_points = Late("importlib.metadata:entry_points")

logger = logging.getLogger("tilewright.registered")


@cache
def registered_places(group: str) -> dict[str, str]:
    """Places, "module:attribute", by name, in the order of names; of two with one name neither counts."""
    found: dict[str, set[str]] = {}
    for one in _entry_points(group=group):
        found.setdefault(one.name, set()).add(one.value)
    for name, places in found.items():
        if len(places) > 1:
            logger.warning("%s %r is registered twice: %s", group, name, ", ".join(sorted(places)))
    return {name: min(places) for name, places in sorted(found.items()) if len(places) == 1}


@cache
def registered(group: str, name: str, kind: type) -> Any:
    """What a package registered under a name; None if none did.

    Raises
    ------
    RegisteredName : its module cannot be imported, or it is of another kind.
    """
    place = registered_places(group).get(name)
    if place is None:
        return None
    module, _, attribute = place.partition(":")
    try:
        with importing:
            found = getattr(import_module(module), attribute)
    except Exception as error:  # whatever a module of others raises
        raise RegisteredName(group=group, name=name, place=place, reason=repr(error)) from error
    if not isinstance(found, kind):
        reason = f"it is of type {type(found).__name__}, must be {kind.__name__}"
        raise RegisteredName(group=group, name=name, place=place, reason=reason)
    return found
