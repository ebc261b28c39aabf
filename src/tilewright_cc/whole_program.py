"""Link-time optimisation: units stay bitcode until the link, where calls between them are followed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tilewright_cc.archives import BITCODE, find_bitcode
from tilewright_cc.invocation import ArgumentKind, Invocation, Stop
from tilewright_cc.processes import run

#: Compiles modules, as one, into an object; takes the modules and the object, and returns nothing.
Merge = Callable[[Sequence[Path], Path], None]

#: Writes an archive again with its modules compiled into objects.
CompileArchive = Callable[[Path, Path], None]


def build_whole(invocation: Invocation, merge: Merge, compile_archive: CompileArchive, folder: Path) -> int:
    """Run a command with -flto: `-c` writes unoptimised bitcode, the link compiles all of it at once.

    Archives that are named by their paths are compiled member by member: the linker chooses members, so calls
    are not followed into them. Archives named by -l, and shared libraries, are left to the linker.
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
    archives = _compiled_archives(invocation, compile_archive, folder)
    if not modules and all(path == compiled for path, compiled in archives.items()):
        return run([*invocation.program, *(text for word in invocation.words for text in word.text)])
    merged = folder / "program.o" if modules else None
    if merged is not None:
        merge(modules, merged)
    return run(invocation.linking_merged(merged, {str(path) for path in modules}, archives))


def _compiled_archives(
    invocation: Invocation, compile_archive: CompileArchive, folder: Path
) -> dict[str, str]:
    """The archives of a command that need no plug-in, and what the linker takes in the place of each."""
    found: dict[str, str] = {}
    for path in dict.fromkeys(invocation.archives):
        match find_bitcode(Path(path)):
            case True:
                compiled = folder / f"{len(found)}-{Path(path).name}"
                compile_archive(Path(path), compiled)
                found[path] = str(compiled)
            case False:
                found[path] = path
            case None:
                continue
    return found


def bitcode_objects(invocation: Invocation) -> list[str]:
    """The objects of a command that are bitcode."""
    words = [word.text[0] for word in invocation.words if word.part is ArgumentKind.LINKED]
    return [text for text in words if not text.startswith("-") and _is_bitcode(text)]


def _is_bitcode(path: str) -> bool:
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(BITCODE[0])) in BITCODE
    except OSError:
        return False  # the linker says so
