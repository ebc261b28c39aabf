"""What the functions of products depend on besides the products: their program."""

from __future__ import annotations

from tilewright.loops.splice.threads import TeamFunctions
from tilewright.records import dataclass


@dataclass(frozen=True)
class PanelAllocator:
    """Allocator of packed panels.

    Attributes
    ----------
    allocate : a function that takes a number of bytes and returns memory, or null on failure.
    release : a function that frees that memory; None if nothing is freed, as for an arena.
    """

    allocate: str = "malloc"
    release: str | None = "free"


@dataclass(frozen=True)
class Context:
    """Properties of the surrounding program that a product's function depends on.

    Attributes
    ----------
    attributes : target attributes of its caller, in LLVM syntax.
    memory : allocator of packed panels.
    teams : opens and closes teams of threads; None for one thread.
    """

    attributes: str
    memory: PanelAllocator
    teams: TeamFunctions | None = None
