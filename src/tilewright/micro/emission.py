"""Emitters of this package by name, imported when a kernel first needs them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from tilewright.preparing import importing


@cache
def emitter(name: str) -> Callable[..., Any]:
    """The function "module:function" of this package.

    All emitters together take 40 ms to import, and a kernel needs one or two.

    >>> emitter("packing.pack_table:emit_pack_table").__name__
    'emit_pack_table'
    """
    module, _, function = name.partition(":")
    with importing:
        found: Callable[..., Any] = getattr(import_module(f"tilewright.micro.{module}"), function)
    return found
