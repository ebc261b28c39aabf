"""Errors of loop recognition: sources, modules and the compilers that are driven."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class NotAccelerated(TilewrightError, TypeError):
    """The argument of `accelerate` is not a function, or that of `accelerate.report` was not accelerated."""

    message = (
        "accelerate takes a function written in Python or compiled by Numba, and accelerate.report what it "
        "returned; found {found}"
    )


class SourceMissing(TilewrightError, OSError):
    """The source code of an accelerated function cannot be found."""

    message = (
        "accelerate reads the source of {name}, which Python cannot find; define the function in a file, "
        "not with exec or in an interactive session"
    )


class CompilerUnknown(TilewrightError, ValueError):
    """The compiler of a `tilewright cc` command is not supported."""

    message = (
        "cannot replace loops in the output of {found}; the command after -- must be one of clang, clang++, "
        "zig cc, zig c++, flang or rustc, also with a version as in clang-19"
    )


class CompilerMissing(TilewrightError, FileNotFoundError):
    """The program of a command is not found."""

    message = "program {program} not found; install it, or give its path"


class CompilerWithoutIr(TilewrightError, ValueError):
    """A `tilewright cc` command of GCC, which writes no LLVM IR."""

    message = (
        "{found} writes no LLVM IR, in which loops are replaced; compile the files with these loops by "
        "`tilewright cc -- {other} ... -c`, all others by {found}, and link with {found}: "
        "docs/reference/loops.md#gcc-and-gfortran"
    )


class NotAModule(TilewrightError, ValueError):
    """A source is not a valid LLVM module."""

    message = (
        "{name} is not a module that LLVM {version} reads: {reason}; "
        "it takes text (.ll) and bitcode (.bc) of LLVM 15 to {version}, as `clang -emit-llvm` writes it"
    )


class ArchiveInvalid(TilewrightError, ValueError):
    """The loops in an archive cannot be replaced."""

    message = (
        "{name} is not an archive that `tilewright opt` reads: {reason}; it takes archives of bitcode and "
        "ELF objects, as `llvm-ar rcs` writes them; nothing was written"
    )


class ThreadsInNumba(TilewrightError, ValueError):
    """`accelerate` cannot give the nests of a Numba function several threads."""

    message = (
        "threads is {found}, but products in the code of Numba run on one thread: leave threads out, or "
        "accelerate the function without numba.njit"
    )


class ThreadsNotOnTarget(TilewrightError, ValueError):
    """Threads of replaced nests are not supported for the system or architecture of a module."""

    message = (
        "threads={found} does not work for {triple}; programs of Linux on {known} have threads, others take "
        "threads=off"
    )


class OptimiserFailed(TilewrightError, RuntimeError):
    """The process that optimises a module failed."""

    message = "{name} could not be optimised: {reason}; nothing was written"


class TargetNotOfModule(TilewrightError, ValueError):
    """The target has a different architecture than the module."""

    message = (
        "--target {found} is {arch}, {name} is for {triple}; name a machine of that architecture, "
        "or omit --target: then each function is compiled for the CPU that it names"
    )
