"""The code of one unit of a program: its loops replaced, and what became of each kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.loops.opt.optimise import optimise
from tilewright.loops.opt.records import OutputFormat, ProductOptions, Remark


@dataclass
class UnitCompiler:
    """What modules of a program become.

    Attributes
    ----------
    options : how products are compiled.
    remarks : one for each nest of the units so far.
    """

    options: ProductOptions = field(default_factory=ProductOptions)
    remarks: list[Remark] = field(default_factory=list)

    def code(self, bitcode: bytes, form: OutputFormat, name: str) -> bytes:
        """A module with its loops replaced.

        Parameters
        ----------
        name : of the source, for messages.
        """
        done = optimise(bitcode, form, self.options, name=name)
        self.remarks += done.remarks
        return done.content
