"""The text of a problem record: the call that makes it, without what is as by default."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from functools import cache
from inspect import signature
from typing import Any

from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Epilogue


def constructor_text(record: Any) -> str:
    """`__repr__` of problems: records that differ have texts that differ, so it is part of cache keys.

    Parameters
    ----------
    record : of a dataclass whose fields have the names of its constructor's parameters.

    Examples
    --------
    >>> from tilewright.ops.gemm.problem import Gemm
    >>> Gemm(64, None, 32, "bf16", out_dtype="f32", epilogue="relu")
    Gemm(m=64, k=32, dtype='bf16', out_dtype='f32', epilogue='relu')
    """
    kind: Any = type(record)
    defaults = _defaults(kind)
    parts = []
    for field in dataclasses.fields(record):
        value, default = getattr(record, field.name), defaults.get(field.name)
        if field.repr and not _as_by_default(record, field.name, value, default):
            parts.append(f"{field.name}={_shown(value)}")
    return f"{type(record).__qualname__}({', '.join(parts)})"


@cache
def _defaults(kind: type) -> Mapping[str, Any]:
    """The defaults of a constructor's parameters."""
    return {name: one.default for name, one in signature(kind).parameters.items()}


def _as_by_default(record: Any, name: str, value: Any, default: Any) -> bool:
    """Whether a field has the value that it has if it is not given."""
    if default is not None:
        return type(_word(value)) is type(_word(default)) and bool(_word(value) == _word(default))
    if name.endswith("_dtype") and isinstance(value, DType):
        # A type that is not given is A's; of integers results are wider, so they are always shown.
        return value == getattr(record, "dtype", None) and not value.is_integer
    return value is None or (isinstance(value, Epilogue) and not value)


def _word(value: Any) -> Any:
    """What callers write for a value."""
    match value:
        case DType(name=name):
            return name
        case Enum(value=word):
            return word
        case Epilogue():
            return str(value)
        case _:
            return value


def _shown(value: Any) -> str:
    """A value as callers write it."""
    if isinstance(value, tuple) and type(value) is tuple:
        inner = ", ".join(map(_shown, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(_word(value))
