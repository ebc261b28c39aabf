"""Compilation of the units of a program, with loops replaced and remarks collected."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

from tilewright.loops.opt.archives import optimise_archive
from tilewright.loops.opt.files import STANDARD, write_file, write_remarks
from tilewright.loops.opt.linked import link_modules
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
    forks : whether child processes may be forks of this one, as in a command.
    remarks : remarks on the nests of all units so far.
    """

    options: ProductOptions = field(default_factory=ProductOptions)
    every_nest: bool = False
    forks: bool = False
    remarks: list[Remark] = field(default_factory=list)

    def code(self, bitcode: bytes, form: OutputFormat, name: str) -> bytes:
        """The code of a module with its loops replaced.

        Parameters
        ----------
        name : of the source, for messages.
        """
        done = optimise(bitcode, form, self.options, name=name, forks=self.forks)
        self.remarks += (_in_file(one, name) for one in done.remarks)
        return done.content

    def write(self, modules: Sequence[Path], form: str, output: str, name: str) -> Sequence[Remark]:
        """Write the code of modules, linked, complete or not at all; "-" is standard output.

        Returns
        -------
        Sequence[Remark]
            The remarks on its nests.

        Raises
        ------
        OptimiserFailed : LLVM could not compile it.
        OutputNotWritable : the output cannot be written.
        """
        before = len(self.remarks)
        first, *others = (path.read_bytes() for path in modules)
        code = self.code(link_modules(first, others, name) if others else first, OutputFormat(form), name)
        if Path(output) == STANDARD:
            sys.stdout.buffer.write(code)
        else:
            write_file(Path(output), code)
        return self.remarks[before:]

    def write_archive(self, source: Path, output: Path) -> Sequence[Remark]:
        """Write an archive again with its modules compiled, complete or not at all.

        Returns
        -------
        Sequence[Remark]
            The remarks on its nests.

        Raises
        ------
        ArchiveInvalid, NotAModule, OptimiserFailed : a member could not be compiled.
        OutputNotWritable : the output cannot be written.
        """
        done = optimise_archive(source.read_bytes(), self.options, name=str(source), forks=self.forks)
        write_file(output, done.content)
        self.remarks += done.remarks
        return done.remarks

    def write_remarks(self, path: Path | None) -> None:
        """Write the remarks so far to a file in the format of its suffix; "-" is standard error."""
        write_remarks(path, self.remarks)


def _in_file(remark: Remark, name: str) -> Remark:
    """The remark with the path of its source as the command has it; flang writes the last part only."""
    if remark.where.file in ("", Path(name).name):
        return replace(remark, where=replace(remark.where, file=name))
    return remark
