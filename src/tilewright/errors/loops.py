"""Errors of loop recognition: sources, modules and the compilers that are driven."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class NotAccelerated(TilewrightError, TypeError):
    """`accelerate` is given something that is no function, or is asked about one that it has not seen."""

    message = (
        "accelerate takes a function written in Python or compiled by Numba, and accelerate.report what it "
        "returned; found {found}"
    )


class SourceMissing(TilewrightError, OSError):
    """The source of a function whose loops are to be read is not there."""

    message = (
        "accelerate reads the source of {name}, which Python does not find; write the function into a file, "
        "not into exec or an interactive session without source"
    )


class CompilerUnknown(TilewrightError, ValueError):
    """A program that is driven but writes no LLVM IR, as far as is known."""

    message = (
        "cannot replace loops in what {found} compiles; the command behind -- is one of clang, clang++, "
        "zig cc, zig c++, flang or rustc, also with a version as in clang-19"
    )


class CompilerMissing(TilewrightError, FileNotFoundError):
    """A program that a command names is not there."""

    message = "there is no program {program}; install it, or name it with its folder"


class OptionNotDriven(TilewrightError, ValueError):
    """An option that asks for passes of a compiler which do not run where its front end stops."""

    message = (
        "{option} is done by passes of {compiler} that do not run when loops are replaced; leave the option "
        "out, or compile this source by {compiler} alone"
    )


class RustcNotDriven(TilewrightError, ValueError):
    """A command of rustc that ends in something whose code is not handed to a linker."""

    message = (
        "rustc is driven by way of its linker: {option} is {found}, must be of {allowed}; for a library "
        "write its LLVM IR with --emit=llvm-bc and run `tilewright opt`"
    )


class NotAModule(TilewrightError, ValueError):
    """A source that LLVM cannot read, or whose code breaks the rules of LLVM IR."""

    message = (
        "{name} is not a module that LLVM {version} reads: {reason}; "
        "it takes text (.ll) and bitcode (.bc) of LLVM 15 to {version}, as `clang -emit-llvm` writes it"
    )


class OptimiserFailed(TilewrightError, RuntimeError):
    """LLVM ended the process that optimised a module, or it could not be started."""

    message = "{name} could not be optimised: {reason}; nothing was written"


class TargetNotOfModule(TilewrightError, ValueError):
    """A target of another architecture than the module's."""

    message = (
        "--target {found} is {arch}, {name} is for {triple}; name a machine of that architecture, "
        "or none: then functions are compiled for the CPUs that they name themselves"
    )
