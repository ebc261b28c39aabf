"""Options, remarks and results of `tilewright opt`."""

from __future__ import annotations

import re
from enum import Enum

from tilewright.errors import InvalidChoice, shown
from tilewright.loops.nests.nest import Where
from tilewright.loops.splice.context import PanelAllocator
from tilewright.loops.splice.plan import ProductStrategy
from tilewright.loops.splice.threads import ThreadSource
from tilewright.machine.machine import Machine
from tilewright.records import dataclass


class OutputFormat(Enum):
    """Output format of a module; the values are file suffixes."""

    LL = ".ll"
    BITCODE = ".bc"
    OBJECT = ".o"
    ASSEMBLY = ".s"

    @property
    def is_text(self) -> bool:
        """Whether the format is human-readable."""
        return self in (OutputFormat.LL, OutputFormat.ASSEMBLY)


_SYMBOL = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class ProductOptions:
    """Options for compiling the products in a module.

    Attributes
    ----------
    target : the machine to compile for; None: CPU and features of the function that contains the product.
    strategy : how products run; AUTO selects by size at run time.
    l2_bytes, l3_bytes : cache sizes that replace those of the machine.
    assume_reassociation : permit reassociation and contraction of floating-point sums even if the program
        does not.
    threads : whose threads run large products: nobody's, those of the program's OpenMP, or a pool's.
    arena : a function of the program, ``void *name(int64_t bytes)``, whose memory kernels use for panels
        until the next call; if it returns null, the loops run. None: malloc and free.

    Raises
    ------
    InvalidChoice : arena is not a C identifier.
    """

    target: Machine | None = None
    strategy: ProductStrategy = ProductStrategy.AUTO
    l2_bytes: int | None = None
    l3_bytes: int | None = None
    assume_reassociation: bool = False
    arena: str | None = None
    threads: ThreadSource = ThreadSource.OFF

    def __post_init__(self) -> None:
        if self.arena is not None and not _SYMBOL.fullmatch(self.arena):
            raise InvalidChoice(name="arena", found=shown(self.arena), allowed="the name of a function in C")

    @property
    def memory(self) -> PanelAllocator:
        """Allocator of packed panels."""
        return PanelAllocator() if self.arena is None else PanelAllocator(self.arena, release=None)


#: The most frequent reason, which is of no interest to readers of remarks.
NO_ELEMENTS = "does not multiply two elements"


@dataclass(frozen=True)
class Remark:
    """The outcome for one loop nest.

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
    """An optimised module.

    Attributes
    ----------
    content : the module in the requested format.
    remarks : one for each nest of two loops or more, in module order.
    dumps : names and texts of intermediate steps, if requested.
    """

    content: bytes
    remarks: tuple[Remark, ...]
    dumps: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The content as text, for formats that are text."""
        return self.content.decode()

    @property
    def replaced(self) -> int:
        """Number of replaced nests."""
        return sum(remark.replaced for remark in self.remarks)
