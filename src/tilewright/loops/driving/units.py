"""Compilation of the units of a program, with loops replaced and remarks collected."""

from __future__ import annotations

import sys
from dataclasses import field
from pathlib import Path

from tilewright.loops.opt.files import STANDARD, write_file, write_remarks
from tilewright.loops.opt.optimise import optimise
from tilewright.loops.opt.records import OutputFormat, ProductOptions, Remark
from tilewright.records import dataclass


@dataclass
class UnitCompiler:
    """Compiles modules of one program.

    Attributes
    ----------
    options : how products are compiled.
    every_nest : whether remarks on nests that multiply nothing are of interest.
    remarks : remarks on the nests of all units so far.
    """

    options: ProductOptions = field(default_factory=ProductOptions)
    every_nest: bool = False
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

    def write(self, bitcode: Path, form: str, output: str, name: str) -> None:
        """Write the code of a module, complete or not at all; "-" is standard output.

        Raises
        ------
        OptimiserFailed : LLVM could not compile it.
        OutputNotWritable : the output cannot be written.
        """
        code = self.code(bitcode.read_bytes(), OutputFormat(form), name)
        if Path(output) == STANDARD:
            sys.stdout.buffer.write(code)
        else:
            write_file(Path(output), code)

    def write_remarks(self, path: Path | None) -> None:
        """Write a line for each nest to a file; "-" is standard error."""
        write_remarks(path, self.remarks)
