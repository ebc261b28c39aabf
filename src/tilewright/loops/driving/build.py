"""Run compiler commands with loops replaced: each source to LLVM IR, optimisation, code, then the link."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tilewright.errors import OptionNotDriven
from tilewright.loops.driving.compilers import is_rustc
from tilewright.loops.driving.invocation import Invocation, Stop
from tilewright.loops.driving.processes import run
from tilewright.loops.driving.rust import build_rust
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt.files import STANDARD, write_file


def build(command: Sequence[str], units: UnitCompiler) -> int:
    """Run a command of clang, flang, zig or rustc, with the loop nests of each source replaced.

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
    CompilerUnknown : the program is not a supported compiler.
    CompilerMissing : the program does not exist.
    OptionNotDriven : an option requires compiler passes that would not run.
    RustcNotDriven : rustc does not invoke a linker for this kind of output.
    OptimiserFailed : LLVM could not compile a unit.
    OutputNotWritable : an output cannot be written.
    """
    if is_rustc(command):
        return build_rust(command, units)
    invocation = Invocation.read(command)
    sources = invocation.sources
    if sources and invocation.not_driven is not None:
        raise OptionNotDriven(option=invocation.not_driven, compiler=invocation.compiler.name)
    several_in_one = invocation.stop is not Stop.PROGRAM and len(sources) > 1 and invocation.output
    if invocation.stop is Stop.OTHER or not sources or several_in_one:
        # There is nothing to optimise, or the compiler rejects the command: show its own messages.
        return run(list(command))
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        return _build(invocation, units, Path(folder))


def _build(invocation: Invocation, units: UnitCompiler, folder: Path) -> int:
    stop = invocation.stop
    objects = []
    for number, source in enumerate(invocation.sources):
        bitcode = folder / f"{number}-{Path(source.path).stem}.bc"
        status = run(invocation.compiling(source, bitcode))
        if status:
            return status
        code = units.code(bitcode.read_bytes(), stop.form, source.path)
        output = bitcode.with_suffix(".o") if stop is Stop.PROGRAM else Path(invocation.output_of(source))
        if output == STANDARD:
            sys.stdout.buffer.write(code)
        else:
            write_file(output, code)
        objects.append(output)
    return run(invocation.linking(objects)) if stop is Stop.PROGRAM else 0
