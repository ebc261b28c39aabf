"""Attributes that a nest reads: they are read once, so that they must not be computed."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from tilewright.loops.python.views import AsWritten

#: Attributes that are read without checking how their class defines them.
PLAIN_ATTRIBUTES = frozenset({"shape", "ndim", "size", "strides"})
#: Attribute lookups that cannot be overridden per attribute.
PLAIN_LOOKUPS: tuple[object, ...] = (object.__getattribute__, types.ModuleType.__getattribute__)

#: Names from left to right.
AttributePath: TypeAlias = tuple[str, ...]


def attribute_paths(expressions: Iterable[ast.expr]) -> tuple[AttributePath, ...]:
    """The attributes that some expressions read."""
    paths = set()
    for expression in expressions:
        for node in ast.walk(expression):
            parts = ast.unparse(node).split(".") if isinstance(node, ast.Attribute) else []
            while parts and parts[-1] in PLAIN_ATTRIBUTES:
                parts.pop()
            if len(parts) > 1 and all(part.isidentifier() for part in parts):
                paths.add(tuple(parts))
    return tuple(sorted(paths))


def check_attributes(paths: Iterable[AttributePath], named: Mapping[str, Any]) -> None:
    """Check that attributes are not properties, which may return a different value each time."""
    for path in paths:
        owner = named[path[0]]
        for name in path[1:]:
            found = inspect.getattr_static(owner, name)
            slot = isinstance(found, types.MemberDescriptorType)
            if hasattr(type(found), "__get__") and not slot:
                raise AsWritten(f"{'.'.join(path)} is a property")
            lookup: object = type(owner).__getattribute__
            if not any(lookup is plain for plain in PLAIN_LOOKUPS):
                raise AsWritten(f"{type(owner).__name__} computes its attributes")
            owner = getattr(owner, name)
