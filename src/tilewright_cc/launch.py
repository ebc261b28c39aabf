"""Entry points of the scripts: `tilewright cc` and `tilewright-cc`; other commands go on to Tilewright."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright_cc.build import build_units
from tilewright_cc.compilers import is_rustc
from tilewright_cc.reports import RemarkOfNest

#: Whose threads products run on, as `tilewright.loops.splice.threads.ThreadSource` has them.
THREADS_WORDS = ("--threads=off", "--threads=openmp", "--threads=own")

#: Exit status of every error that has a class in tilewright.errors.
ERROR_STATUS = 2


@dataclass
class LateUnits:
    """The compiler of modules, imported when a module needs it.

    Attributes
    ----------
    assume_reassociation, remarks, threads : options of `tilewright cc`.
    """

    assume_reassociation: bool = False
    remarks: str | None = None
    threads: str = "off"
    _units: Any = field(default=None, repr=False)

    @property
    def every_nest(self) -> bool:
        """Whether remarks are written, which list nests that multiply nothing, too."""
        return self.remarks is not None

    def write(self, modules: Sequence[Path], form: str, output: str, name: str) -> Sequence[RemarkOfNest]:
        """Write modules, linked, with their loops replaced; the remarks on their nests."""
        remarks: Sequence[RemarkOfNest] = self._compiler().write(modules, form, output, name)
        return remarks

    def write_archive(self, source: Path, output: Path) -> Sequence[RemarkOfNest]:
        """Write an archive again with its modules compiled; the remarks on their nests."""
        remarks: Sequence[RemarkOfNest] = self._compiler().write_archive(source, output)
        return remarks

    def _compiler(self) -> Any:
        if self._units is None:
            from tilewright.loops.driving.units import UnitCompiler
            from tilewright.loops.opt.records import ProductOptions
            from tilewright.loops.splice.threads import ThreadSource

            options = ProductOptions(
                assume_reassociation=self.assume_reassociation, threads=ThreadSource(self.threads)
            )
            self._units = UnitCompiler(options, every_nest=self.every_nest, forks=True)
        return self._units

    def write_remarks(self) -> None:
        """Write the remarks to the file that was asked for."""
        if self.remarks is None:
            return
        if self._units is None:
            from tilewright.loops.driving.units import UnitCompiler

            self._units = UnitCompiler()
        self._units.write_remarks(Path(self.remarks))


def split(words: Sequence[str]) -> tuple[LateUnits, list[str]] | None:
    """Options of `tilewright cc` and the compiler's command; None for what Tilewright itself has to read.

    >>> split(["--remarks", "-", "--", "clang", "-c", "a.c"])
    (LateUnits(assume_reassociation=False, remarks='-', threads='off'), ['clang', '-c', 'a.c'])
    >>> split(["--help"])
    """
    units, rest = LateUnits(), list(words)
    while rest:
        word = rest.pop(0)
        if word == "--assume-reassociation":
            units.assume_reassociation = True
        elif word == "--remarks" and rest:
            units.remarks = rest.pop(0)
        elif word.startswith("--remarks="):
            units.remarks = word.partition("=")[2]
        elif word in THREADS_WORDS:
            units.threads = word.partition("=")[2]
        elif word == "--threads" and f"{word}={rest[0] if rest else ''}" in THREADS_WORDS:
            units.threads = rest.pop(0)
        elif word == "--" or not word.startswith("-"):
            command = rest if word == "--" else [word, *rest]
            return (units, command) if command and not is_rustc(command) else None
        else:
            return None
    return None


def compile_command(words: Sequence[str]) -> int | None:
    """Run `tilewright cc`; None if Tilewright itself has to read its options."""
    found = split(words)
    if found is None:
        return None
    units, command = found
    try:
        status = build_units(command, units)
        units.write_remarks()
    except Exception as error:
        from tilewright.errors import TilewrightError

        if not isinstance(error, TilewrightError):
            raise
        print(f"tilewright: {error}", file=sys.stderr)  # noqa: T201 - a command
        return ERROR_STATUS
    return status


def main() -> None:
    """Entry point of the `tilewright` script."""
    if sys.argv[1:2] == ["cc"]:
        status = compile_command(sys.argv[2:])
        if status is not None:
            sys.exit(status)
    from tilewright.tools.cli import main as every_command

    every_command()


def compiler_main() -> None:
    """Entry point of the `tilewright-cc` script: `tilewright-cc clang -c a.c`."""
    sys.argv[1:1] = ["cc"]
    main()
