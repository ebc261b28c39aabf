"""Commands of compilers, run with loops replaced on the way: each source to LLVM IR, code, then the link."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from tilewright.driving.compilers import is_rustc
from tilewright.driving.invocation import Invocation, Source, Stop
from tilewright.driving.processes import run
from tilewright.driving.rust import build_rust
from tilewright.errors import OutputNotWritable

#: What replaces the loops of a module: bitcode, and what to make of it -> the content of the file.
Optimise: TypeAlias = Callable[[bytes, Stop], bytes]


def build(command: Sequence[str], optimise: Optimise, options: Sequence[str] = ()) -> int:
    """Run a command of clang, flang, zig or rustc so that each module passes through `optimise`.

    Parameters
    ----------
    command : the compiler and its options, as a shell would run it.
    optimise : module to code.
    options : those of `tilewright opt` that `optimise` was made of; for processes that rustc starts.

    Returns
    -------
    int
        The exit status: that of the first command that fails, or 0.

    Raises
    ------
    CompilerUnknown : the program is none that writes LLVM IR.
    CompilerMissing : there is no such program here.
    OutputNotWritable : an object cannot be written.
    """
    if is_rustc(command):
        return build_rust(command, options)
    invocation = Invocation.read(command)
    sources = invocation.sources
    several_in_one = invocation.stop is not Stop.PROGRAM and len(sources) > 1 and invocation.output
    if invocation.stop is Stop.OTHER or not sources or several_in_one:
        # Nothing to optimise, or what the compiler itself refuses, in its own words.
        return run(list(command))
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        return _build(invocation, optimise, Path(folder))


def _build(invocation: Invocation, optimise: Optimise, folder: Path) -> int:
    objects = []
    for number, source in enumerate(invocation.sources):
        bitcode = folder / f"{number}-{Path(source.path).stem}.bc"
        status = run(invocation.compiling(source, bitcode))
        if status:
            return status
        linked = invocation.stop is Stop.PROGRAM
        code = optimise(bitcode.read_bytes(), Stop.OBJECT if linked else invocation.stop)
        objects.append(_written(invocation, source, code, bitcode.with_suffix(".o")))
    return run(invocation.linking(objects)) if invocation.stop is Stop.PROGRAM else 0


def _written(invocation: Invocation, source: Source, code: bytes, temporary: Path) -> Path:
    if invocation.stop is Stop.PROGRAM:
        temporary.write_bytes(code)
        return temporary
    output = invocation.output_of(source)
    if output == "-":
        sys.stdout.buffer.write(code)
        return Path(output)
    try:
        Path(output).write_bytes(code)
    except OSError as error:
        raise OutputNotWritable(path=output, reason=error.strerror or str(error)) from error
    return Path(output)
