"""How products are to be run that replace loops: seed 004's strategies, lowerings, and sizes of caches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from tilewright.errors import InvalidSize
from tilewright.machine.isa import Lowering
from tilewright.machine.machine import Cache, Machine


class Strategy(Enum):
    """Seed 004's ways to run a product (§4.1.3); AUTO takes what is fastest for the sizes, at run time."""

    AUTO = "auto"
    INTRINSIC = "intrinsic"
    TILING = "tiling"
    PACKING = "packing"


@dataclass(frozen=True)
class Options:
    """What a user asks for.

    Attributes
    ----------
    strategy : how products run.
    lowering : whether register tiles are written for the target, or left to LLVM's matrix intrinsics.
    l2_bytes, l3_bytes : caches to cut for, as seed 004 lets its users say; None: the machine's.
    """

    strategy: Strategy = Strategy.AUTO
    lowering: Lowering = Lowering.TARGET
    l2_bytes: int | None = None
    l3_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("l2_bytes", "l3_bytes"):
            found = getattr(self, name)
            if found is not None and found <= 0:
                raise InvalidSize(name=name, found=found, required="a positive number of bytes")

    def machine(self, machine: Machine) -> Machine:
        """The machine that kernels are cut for.

        >>> from tilewright.machine.catalog import find_machine
        >>> Options(l2_bytes=2**18).machine(find_machine("znver5")).l2.size
        262144
        """
        l2, l3 = machine.l2, machine.l3
        if self.l2_bytes is not None:
            l2 = replace(l2, size=self.l2_bytes)
        if self.l3_bytes is not None:
            l3 = Cache(self.l3_bytes, l2.ways, l2.line) if l3 is None else replace(l3, size=self.l3_bytes)
        return replace(machine, l2=l2, l3=l3).with_lowering(self.lowering)
