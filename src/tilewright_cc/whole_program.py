"""Link-time optimisation: units stay bitcode until the link, where calls between them are followed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tilewright_cc.invocation import ArgumentKind, Invocation, Stop
from tilewright_cc.processes import run

#: Magic number of LLVM bitcode.
_BITCODE = b"BC\xc0\xde"

#: Compiles modules, as one, into an object; takes the modules and the object, and returns nothing.
Merge = Callable[[Sequence[Path], Path], None]


def build_whole(invocation: Invocation, merge: Merge, folder: Path) -> int:
    """Run a command with -flto: `-c` writes unoptimised bitcode, the link compiles all of it at once.

    Archives and shared libraries are left to the linker.
    """
    if invocation.stop is Stop.OBJECT:
        statuses = (
            run(invocation.emitting(source, Path(invocation.output_of(source)), "-c"))
            for source in invocation.sources
        )
        return next(filter(None, statuses), 0)
    if invocation.stop is not Stop.PROGRAM:
        return run([*invocation.program, *(text for word in invocation.words for text in word.text)])
    modules = []
    for number, source in enumerate(invocation.sources):
        modules.append(folder / f"{number}-{Path(source.path).stem}.bc")
        status = run(invocation.emitting(source, modules[-1], "-c"))
        if status:
            return status
    modules += [Path(path) for path in bitcode_objects(invocation)]
    if not modules:
        return run([*invocation.program, *(text for word in invocation.words for text in word.text)])
    merged = folder / "program.o"
    merge(modules, merged)
    return run(invocation.linking_merged(merged, {str(path) for path in modules}))


def bitcode_objects(invocation: Invocation) -> list[str]:
    """The objects of a command that are bitcode."""
    words = [word.text[0] for word in invocation.words if word.part is ArgumentKind.LINKED]
    return [text for text in words if not text.startswith("-") and _is_bitcode(text)]


def _is_bitcode(path: str) -> bool:
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(_BITCODE)) == _BITCODE
    except OSError:
        return False  # the linker says so
