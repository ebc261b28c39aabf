"""The compilers that tests drive, where they are installed, and libraries made by them."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm

#: A compiler that takes longer than this hangs.
SECONDS = 300


#: The first version of clang whose sources may add numbers of 16 bits, and of flang that is a compiler.
OLDEST = 19


@cache
def _writes_our_ir(program: str) -> bool:
    """Whether a compiler is of a version whose LLVM IR the one here reads."""
    option = "-vV" if Path(program).name == "rustc" else "--version"
    done = subprocess.run([program, option], capture_output=True, text=True, check=False)
    version = re.search(r"(?:LLVM version: |(?:clang|flang\S*) version )(\d+)", done.stdout)
    return version is not None and OLDEST <= int(version[1]) <= llvm.llvm_version_info[0]


@dataclass(frozen=True)
class Toolchain:
    """One row: a compiler and how it makes a shared library of a source.

    Attributes
    ----------
    programs : names that it may have; the first that is installed is taken.
    options : for shared libraries.
    libraries : behind the sources.
    """

    name: str
    programs: tuple[str, ...]
    options: tuple[str, ...]
    libraries: tuple[str, ...] = ()

    @property
    def program(self) -> tuple[str, ...] | None:
        """The words that start it, or None where it is not installed."""
        if self.name == "zig":
            return (sys.executable, "-m", "ziglang", "cc") if find_spec("ziglang") is not None else None
        found = next(
            (path for path in map(shutil.which, self.programs) if path and _writes_our_ir(path)), None
        )
        return None if found is None else (found,)

    def with_options(self, *more: str) -> Toolchain:
        """The compiler with further options."""
        return replace(self, options=(*self.options, *more))

    def command(self, sources: Sequence[Path], library: Path) -> list[str]:
        """What makes a shared library."""
        assert self.program is not None
        return [*self.program, *self.options, *map(str, sources), "-o", str(library), *self.libraries]


_CLANG = tuple(f"clang{suffix}" for suffix in ("-19", "-20", "-21", "-22", ""))
_SHARED = ("-O2", "-ffast-math", "-shared", "-fPIC")
CLANG = Toolchain("clang", _CLANG, (*_SHARED, "-w"), ("-lm",))
CLANG_CPP = Toolchain("clang++", _CLANG, (*_SHARED, "-std=c++20"), ("-lstdc++",))
ZIG = Toolchain("zig", (), (*_SHARED, "-w"), ("-lm",))
FLANG = Toolchain(
    "flang", tuple(f"flang{suffix}" for suffix in ("-new-19", "-20", "-21", "-22", "-new", "")), _SHARED
)
RUSTC = Toolchain("rustc", ("rustc",), ("-O", "--crate-type", "cdylib"))

#: The compiler of each source.
SOURCE_TOOLCHAINS = {
    "orders.c": CLANG,
    "sizes.c": CLANG,
    "types.c": CLANG,
    "forms.c": CLANG,
    "conditions.c": CLANG,
    "refused.c": CLANG,
    "rows.c": CLANG,
    "convolutions.c": CLANG,
    "mixed.c": CLANG,
    "epilogues.c": CLANG,
    "kernels.c": CLANG,
    "products.cpp": CLANG_CPP,
    "products.f90": FLANG,
    "products.rs": RUSTC,
}


def library(toolchain: Toolchain, path: Path, folder: Path) -> ctypes.CDLL:
    """A source as a library in a folder, made by its compiler."""
    made = folder / f"{path.name}.so"
    # What the program means, which takes a compiler less time to write down plainly.
    command = ["-O1" if word == "-O2" else word for word in toolchain.command([path], made)]
    # flang writes module files where it runs.
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(made))
