"""Run a command of any supported compiler with its loops replaced."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.loops.driving.rust import build_rust
from tilewright.loops.driving.units import UnitCompiler
from tilewright_cc.build import build_units
from tilewright_cc.compilers import is_rustc


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
    CompilerUnknown, CompilerWithoutIr : the program is not a supported compiler.
    CompilerMissing : the program does not exist.
    OptimiserFailed : LLVM could not compile a unit.
    OutputNotWritable : an output cannot be written.
    """
    return build_rust(command, units) if is_rustc(command) else build_units(command, units)
