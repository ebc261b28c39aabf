"""Errors of compiling problems and calling kernels."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class NotAProblem(TilewrightError, TypeError):
    """`compile` is given something that is no problem record."""

    message = "compile takes a problem ({known}), found {found}"


class KernelNotCalled(TilewrightError, TypeError, NotImplementedError):
    """A kernel whose problem has no call with arrays is called."""

    message = (
        "kernel {kernel} takes pointers and strides, not arrays: call the function of tilewright that it is "
        "a part of, or its code by kernel.function; kernel.header says how"
    )


class StepOperands(TilewrightError, TypeError):
    """A kernel is called without an operand of its epilogue, or with one that it does not take."""

    message = "kernel {kernel}: the epilogue needs {required}, given: {found}; pass each operand by its name"


class ChainOperands(TilewrightError, ValueError):
    """More or fewer weights or biases than a chain has layers."""

    message = "kernel {kernel}: {found} {name} are given, it takes {required}, one for each layer"


class SizeOverflow(TilewrightError, OverflowError):
    """A product of sizes exceeds 64 bits."""

    message = "{what} needs {found} elements, more than {limit}; split the problem"


class ScratchAllocation(TilewrightError, MemoryError):
    """The operating system did not give memory for packed panels."""

    message = (
        "could not allocate {size} bytes of scratch for packed panels: {reason}; free memory, or "
        "set TILEWRIGHT_L3_BYTES lower to use smaller panels"
    )


class CalledWhileImporting(TilewrightError, RuntimeError):
    """A signal handler or finaliser called the package while its thread was importing a part of it."""

    message = (
        "tilewright was called by a signal handler or finaliser that interrupted an import of its own "
        "thread; call the same function once before the handler is installed"
    )


class ForeignKernel(TilewrightError, RuntimeError):
    """A kernel for another CPU is called."""

    message = (
        "kernel {kernel} was compiled for {target} and cannot run on this CPU ({host}); "
        "compile it with target=None"
    )


class OperandMismatch(TilewrightError, ValueError):
    """An array does not fit the kernel it is given to."""

    message = "kernel {kernel}: operand {name} has {what} {found}, must be {required}"


class LeadingDimension(TilewrightError, ValueError):
    """A leading dimension shorter than the rows or columns it separates."""

    message = (
        "kernel {kernel}: operand {name} has leading dimension {found}, must be at least {required} "
        "elements; pass an array that does not overlap itself"
    )


class BlockNotMultiple(TilewrightError, ValueError):
    """A cache block that register tiles do not fill."""

    message = "blocking: {block} is {size}, must be a multiple of {of} = {unit}"


class NoRegisterTile(TilewrightError, ValueError):
    """No register tile satisfies the constraints."""

    message = "no register tile fits {registers} vector registers of {lanes} lanes for {dtype} on {isa}"


class InvalidTileIr(TilewrightError, ValueError):
    """Tile IR that breaks a rule of `ir.verify`."""

    message = "tile IR: {where}: {reason}"


class TileIrSyntax(TilewrightError, ValueError):
    """Text that is not tile IR."""

    message = "tile IR text, line {line}: {reason}: {text}"


class CompilationFailed(TilewrightError, RuntimeError):
    """LLVM rejected a generated module."""

    message = (
        "LLVM rejected the module of {kernel}: {reason}; "
        "please report this with the output of `tilewright emit --emit llvm`"
    )
