"""Table of supported compilers that emit LLVM IR, and parsing of their program names."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class CompilerDriver:
    """One row: a compiler with clang's command line.

    Attributes
    ----------
    name : as messages call it.
    programs : regular expression of its program names, without ".exe".
    suffixes : of the sources that it compiles to LLVM IR.
    ir : options that make it emit IR with source-level loops, neither vectorised nor unrolled.
    finishes_ir : whether it makes of that IR the code that it makes of the source.
    """

    name: str
    programs: str
    suffixes: tuple[str, ...]
    ir: tuple[str, ...]
    finishes_ir: bool


_C = (".c", ".i", ".cc", ".cpp", ".cxx", ".c++", ".C", ".cp", ".CPP", ".ii", ".ll", ".bc")
_FORTRAN = tuple(
    f".{suffix}"
    for lower in ("f", "for", "ftn", "f90", "f95", "f03", "f08", "f18")
    for suffix in (lower, lower.upper())
)

#: Output of the front end at O1 and above, so that functions may be optimised later; names are kept for
#: remarks, and lines without debug information, as for remarks of LLVM's own.
_CLANG_IR = ("-Xclang", "-disable-llvm-passes", "-fno-discard-value-names", "-Rpass=tilewright")
#: flang cannot stop before LLVM's passes: those that transform loops are disabled one by one.
_FLANG_IR = tuple(
    word
    for option in ("-vectorize-loops=false", "-vectorize-slp=false", "-unroll-count=1")
    for word in ("-mllvm", option)
)

#: Compilers of GCC, and the compiler that takes their place for files with loops.
_WITHOUT_IR = {
    r"(.*-)?(gcc|cc)(-\d+)?": "clang",
    r"(.*-)?(g\+\+|c\+\+)(-\d+)?": "clang++",
    r"(.*-)?gfortran(-\d+)?": "flang",
}

#: Sanitizers, which compilers insert with passes of their own.
_CHECKS = "address|hwaddress|memory|memtag|thread|dataflow|cfi|fuzzer|safe-stack|type"
#: Options for passes that do not run when the front end stops, or for a code model that kernels do not have.
NOT_DRIVEN = re.compile(
    rf"-fsanitize=.*\b({_CHECKS}).*"
    r"|-f(profile|cs-profile|coverage|xray|memory-profile|instrument-functions)\b.*"
    r"|-?-coverage|-pg|-mcmodel=(?!small$).*"
)

COMPILERS = (
    CompilerDriver("clang", r"clang(\+\+)?(-\d+)?", _C, _CLANG_IR, finishes_ir=True),
    CompilerDriver("zig", r"zig", _C, _CLANG_IR, finishes_ir=True),
    CompilerDriver("flang", r"flang(-new)?(-\d+)?", _FORTRAN, _FLANG_IR, finishes_ir=False),
)
#: The compiler with a different command line: rust.py.
RUSTC = r"rustc"

#: Words between a program's name and the options: `zig cc`, `python -m ziglang c++`.
_ZIG_MODES = ("cc", "c++")


def split_program(command: Sequence[str]) -> tuple[CompilerDriver, tuple[str, ...], tuple[str, ...]]:
    """The row of a command, its program and its options.

    Raises
    ------
    CompilerWithoutIr : the program is a compiler of GCC.
    CompilerUnknown : the program is not a supported compiler.

    Examples
    --------
    >>> row, program, options = split_program(["/usr/bin/clang++-19", "-O2", "a.cpp"])
    >>> row.name, program, options
    ('clang', ('/usr/bin/clang++-19',), ('-O2', 'a.cpp'))
    """
    words = tuple(command)
    if not words:
        raise _unknown("")
    name = program_name(words[0])
    if re.fullmatch(r"python[\d.]*", name) and words[1:3] == ("-m", "ziglang"):
        name, length = "zig", 3
        words = (sys.executable if words[0] == "python" else words[0], *words[1:])
    else:
        length = 1
    for row in COMPILERS:
        if re.fullmatch(row.programs, name):
            if row.name == "zig":
                if words[length : length + 1] not in [(mode,) for mode in _ZIG_MODES]:
                    raise _unknown("zig")
                length += 1
            return row, words[:length], words[length:]
    raise _unknown(name)


def _unknown(name: str) -> Exception:
    """The error about a program: "" if there is none, "zig" if it is not run as a C compiler."""
    from tilewright import errors

    for programs, other in _WITHOUT_IR.items():
        if re.fullmatch(programs, name):
            return errors.CompilerWithoutIr(found=name, other=other)
    texts = {"": "no command", "zig": f"zig without {' or '.join(_ZIG_MODES)} after it"}
    return errors.CompilerUnknown(found=texts.get(name, name))


def is_rustc(command: Sequence[str]) -> bool:
    """Whether a command is one of rustc."""
    return bool(command) and re.fullmatch(RUSTC, program_name(command[0])) is not None


def program_name(program: str) -> str:
    """The name of a program without its folder and suffix.

    >>> program_name("/usr/bin/clang-19"), program_name("clang++.exe")
    ('clang-19', 'clang++')
    """
    return PurePath(program).name.removesuffix(".exe")
