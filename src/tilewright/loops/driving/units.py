"""Compilation of the units of a program, with loops replaced and remarks collected."""

from __future__ import annotations

from dataclasses import field

from tilewright.loops.opt.optimise import optimise
from tilewright.loops.opt.records import OutputFormat, ProductOptions, Remark
from tilewright.records import dataclass


@dataclass
class UnitCompiler:
    """Compiles modules of one program.

    Attributes
    ----------
    options : how products are compiled.
    remarks : remarks on the nests of all units so far.
    """

    options: ProductOptions = field(default_factory=ProductOptions)
    remarks: list[Remark] = field(default_factory=list)

    def code(self, bitcode: bytes, form: OutputFormat, name: str) -> bytes:
        """The code of a module with its loops replaced.

        Parameters
        ----------
        name : of the source, for messages.
        """
        done = optimise(bitcode, form, self.options, name=name)
        self.remarks += done.remarks
        return done.content
