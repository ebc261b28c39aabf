"""Errors of the command line and of benchmarks."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class PackageMissing(TilewrightError, ImportError):
    """An optional package is not installed."""

    message = "{purpose} needs the package {package}, which is not installed; run: pip install {install}"


class ToolMissing(TilewrightError, FileNotFoundError):
    """An external tool is not on the PATH."""

    message = "{purpose} needs {tool}, which is not on the PATH; Debian and Ubuntu: apt-get install {package}"


class NoInnerLoop(TilewrightError, ValueError):
    """A kernel has no innermost loop whose cycles could be estimated."""

    message = (
        "kernel {kernel} has no loop that multiplies vectors: it is fully unrolled; choose a larger depth"
    )


class ModelFailed(TilewrightError, RuntimeError):
    """llvm-mca has no model of a CPU, or rejects its assembly."""

    message = (
        "llvm-mca {version} cannot model {cpu} ({triple}): {reason}; install one of a newer LLVM, "
        "or choose a target with a CPU that it models (triple:cpu:+features)"
    )


class WorkerFailed(TilewrightError, RuntimeError):
    """A worker process of a benchmark failed."""

    message = "measuring {system} failed: {reason}"


class WrongResult(TilewrightError, ArithmeticError):
    """The result of a benchmarked system is outside the error bound."""

    message = (
        "{system} computed {problem} wrongly: row {row}, column {column} is {found}, float64 gives "
        "{expected}, the bound on the difference is {bound}; nothing was timed"
    )


class WrongMove(TilewrightError, ArithmeticError):
    """The result of a benchmarked transpose is wrong."""

    message = "{system} did not transpose a {shape} array of {dtype}; nothing was timed"


class InputNotReadable(TilewrightError, OSError):
    """A file named on the command line cannot be read."""

    message = "cannot read {path}: {reason}; name a file that exists, or - for standard input"


class BinaryToTerminal(TilewrightError, ValueError):
    """Object code would be written to a terminal."""

    message = "object code is binary and standard output is a terminal; write it to a file with -o FILE"


class OutputNotWritable(TilewrightError, OSError):
    """An output file cannot be written."""

    message = "cannot write {path}: {reason}; choose another file"


class ReportInvalid(TilewrightError, ValueError):
    """A file is no report of the whole benchmark."""

    message = "{path} is no report of `tilewright bench --report`: {reason}; write one with --json FILE"


class ReportOfAnotherRun(TilewrightError, ValueError):
    """A file of results was measured on another machine, with other versions, or in another form."""

    message = (
        "{path} has results of another run: {found} there, {wanted} here; add --fresh to measure anew and "
        "replace it, or name another file with --json"
    )


class OtherBits(TilewrightError, ArithmeticError):
    """A kernel with tuned constants gives another result than the models' kernel."""

    message = (
        "{problem}: with the constants {constants} the result has other bits than without; nothing was kept; "
        "please report this"
    )


class ScriptFailed(TilewrightError, RuntimeError):
    """A program whose products were to be recorded failed, or made no product that is tuned."""

    message = "{script}: {reason}; nothing was measured"
