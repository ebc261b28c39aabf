"""Run compiler commands with loops replaced: each source to LLVM IR, optimisation, code, then the link."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tilewright_cc.invocation import Invocation, SourceFile, Stop
from tilewright_cc.nests import may_have_products
from tilewright_cc.processes import run, warn
from tilewright_cc.reports import PASS, RemarkOfNest, diagnostics, optimisation_record
from tilewright_cc.whole_program import CompileArchive, Merge, build_whole

#: Sources that are LLVM IR, which may have been optimised before.
_IR_SUFFIXES = (".ll", ".bc")


class Units(Protocol):
    """The compiler of modules: tilewright.loops.driving.units has it."""

    @property
    def every_nest(self) -> bool:
        """Whether nests of loops that multiply nothing are of interest, for remarks."""

    def write(self, modules: Sequence[Path], form: str, output: str, name: str) -> Sequence[RemarkOfNest]:
        """Write modules, linked, with their loops replaced; the remarks on their nests.

        Parameters
        ----------
        form : ".o", ".s", ".bc" or ".ll".
        output : a path, or "-".
        name : of the source, for messages.
        """

    def write_archive(self, source: Path, output: Path) -> Sequence[RemarkOfNest]:
        """Write an archive again with its modules compiled; the remarks on their nests."""


def build_units(command: Sequence[str], units: Units) -> int:
    """Run a command of clang, flang or zig, with the loop nests of each source replaced.

    A source without nests of loops that multiply is compiled by its compiler alone.

    Parameters
    ----------
    command : the compiler and its options, as a shell would run it.
    units : the compiler of units; collects remarks.

    Returns
    -------
    int
        The exit status: that of the first command that fails, or 0.

    Raises
    ------
    CompilerUnknown, CompilerWithoutIr : the program is not a supported compiler.
    CompilerMissing : the program does not exist.
    OptimiserFailed : LLVM could not compile a unit.
    OutputNotWritable : an output cannot be written.
    """
    invocation = Invocation.read(command)
    sources = invocation.sources
    several_in_one = invocation.stop is not Stop.PROGRAM and len(sources) > 1 and invocation.output
    whole = invocation.is_whole_program and invocation.stop is not Stop.OTHER and not several_in_one
    if not whole and (invocation.stop is Stop.OTHER or not sources or several_in_one):
        # There is nothing to optimise, or the compiler rejects the command: show its own messages.
        return run(list(command))
    if invocation.not_driven is not None:
        warn(
            f"{invocation.not_driven} needs passes of {invocation.compiler.name} that do not run where loops "
            f"are replaced: {', '.join(source.path for source in sources)} is compiled without replacing any"
        )
        return run(list(command))
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        if whole:
            return build_whole(
                invocation, _merging(invocation, units), _archiving(invocation, units), Path(folder)
            )
        return _build(invocation, units, Path(folder))


def _merging(invocation: Invocation, units: Units) -> Merge:
    """Compiles all modules of a program as one."""
    name = invocation.output or "a.out"

    def merge(modules: Sequence[Path], merged: Path) -> None:
        _report(invocation, name, units.write(modules, ".o", str(merged), name))

    return merge


def _archiving(invocation: Invocation, units: Units) -> CompileArchive:
    """Compiles the modules of an archive."""

    def compile_archive(source: Path, output: Path) -> None:
        _report(invocation, source.name, units.write_archive(source, output))

    return compile_archive


def _build(invocation: Invocation, units: Units, folder: Path) -> int:
    program = invocation.stop is Stop.PROGRAM
    objects = []
    for number, source in enumerate(invocation.sources):
        text = folder / f"{number}-{Path(source.path).stem}.ll"
        output = str(text.with_suffix(".o")) if program else invocation.output_of(source)
        status = run(invocation.emitting(source, text)) or _compile(invocation, source, text, output, units)
        if status:
            return status
        objects.append(Path(output))
    return run(invocation.linking(objects)) if program else 0


def _compile(invocation: Invocation, source: SourceFile, text: Path, output: str, units: Units) -> int:
    """Write the code of one source, given the text of its LLVM IR."""
    optimised = source.path.endswith(_IR_SUFFIXES)
    ir = text.read_text(encoding="utf-8", errors="surrogateescape")
    every = units.every_nest or invocation.reports("-Rpass-missed", PASS)
    if may_have_products(ir, least_loops=1 if optimised else 2, any_nest=every):
        bitcode = text.with_suffix(".bc")
        status = run(invocation.assembling(text, bitcode))
        if not status:
            _report(invocation, output, units.write([bitcode], invocation.stop.suffix, output, source.path))
        return status
    if invocation.compiler.finishes_ir and invocation.from_source is None:
        return run(invocation.finishing(str(text), output))
    return _run_quietly(invocation.finishing(source.path, output, source.language))


def _report(invocation: Invocation, output: str, remarks: Sequence[RemarkOfNest]) -> None:
    """Show remarks as the compiler's own options ask for those of its passes."""
    passed, missed = invocation.reports("-Rpass", PASS), invocation.reports("-Rpass-missed", PASS)
    sys.stderr.write(diagnostics(remarks, passed=passed, missed=missed))
    record = invocation.record_of(output)
    if record is not None:
        Path(record).write_text(optimisation_record(remarks), encoding="utf-8")


def _run_quietly(command: Sequence[str]) -> int:
    """Run a command whose warnings were shown before; they are shown again if it fails."""
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE)
    if done.returncode:
        sys.stderr.buffer.write(done.stderr)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode
