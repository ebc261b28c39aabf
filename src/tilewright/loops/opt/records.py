"""What `tilewright opt` takes and gives: options, remarks, the finished module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from tilewright.errors import InvalidChoice, shown
from tilewright.loops.nests.nest import Where
from tilewright.loops.splice.calls import PanelAllocator
from tilewright.loops.splice.plan import ProductStrategy
from tilewright.machine.machine import Machine


class OutputFormat(Enum):
    """How a module is written; the values are the suffixes of such files."""

    LL = ".ll"
    BITCODE = ".bc"
    OBJECT = ".o"
    ASSEMBLY = ".s"

    @property
    def is_text(self) -> bool:
        """Whether it is for people."""
        return self in (OutputFormat.LL, OutputFormat.ASSEMBLY)


_SYMBOL = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class ProductOptions:
    """How products in a module are compiled.

    Attributes
    ----------
    target : the machine that runs them; None takes the CPU and the features of the function that has them.
    strategy : how they run; AUTO chooses by size at run time.
    l2_bytes, l3_bytes : caches to cut for in the place of the machine's.
    assume_reassociation : sums of floating-point numbers may be added in another order, and products stay
        unrounded, also where the program does not say so.
    arena : a function of the program, ``void *name(int64_t bytes)``, whose memory kernels have for panels
        until it is called again; where it returns null, loops run. None: malloc and free.

    Raises
    ------
    InvalidChoice : arena is no name in C.
    """

    target: Machine | None = None
    strategy: ProductStrategy = ProductStrategy.AUTO
    l2_bytes: int | None = None
    l3_bytes: int | None = None
    assume_reassociation: bool = False
    arena: str | None = None

    def __post_init__(self) -> None:
        if self.arena is not None and not _SYMBOL.fullmatch(self.arena):
            raise InvalidChoice(name="arena", found=shown(self.arena), allowed="the name of a function in C")

    @property
    def memory(self) -> PanelAllocator:
        """Where panels come from."""
        return PanelAllocator() if self.arena is None else PanelAllocator(self.arena, release=None)


#: The reason of most nests of most programs, which nobody has to look at.
NO_ELEMENTS = "multiplies no two elements"


@dataclass(frozen=True)
class Remark:
    """What became of one loop nest.

    Examples
    --------
    >>> print(Remark(Where("mm", 3), replaced=False, text="calls printf"))
    refused mm:3, since it calls printf
    """

    where: Where
    replaced: bool
    text: str

    def __str__(self) -> str:
        return (
            f"replaced {self.where}: {self.text}"
            if self.replaced
            else f"refused {self.where}, since it {self.text}"
        )


@dataclass(frozen=True)
class Optimised:
    """A finished module.

    Attributes
    ----------
    content : the module in the form asked for.
    remarks : one for each nest of two loops or more, in the order of the module.
    dumps : what it was after each step, where that was asked for: names of steps, and texts.
    """

    content: bytes
    remarks: tuple[Remark, ...]
    dumps: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The content of a form that is text."""
        return self.content.decode()

    @property
    def replaced(self) -> int:
        """How many nests became products."""
        return sum(remark.replaced for remark in self.remarks)
