"""Errors of compiling problems and calling kernels."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class NotAProblem(TilewrightError, TypeError):
    """The first argument of `compile` is not a problem record."""

    speaker = "compile"
    message = "found {found}, must be a problem record ({known})"


class KernelNotCalled(TilewrightError, TypeError, NotImplementedError):
    """A kernel that takes pointers only is called with arrays."""

    message = (
        "kernel {kernel} takes pointers and strides, not arrays: call the public function that uses it, "
        "or its machine code through kernel.function; kernel.header has its C signature"
    )


class StepOperands(TilewrightError, TypeError):
    """A kernel call has missing or unexpected epilogue operands."""

    message = "kernel {kernel}: the epilogue needs {required}, given: {found}; pass each operand by keyword"


class ChainOperands(TilewrightError, ValueError):
    """The number of weights or biases is not the number of layers of the chain."""

    message = "kernel {kernel}: {found} {name} are given, must be {required}: one for each layer"


class SizeOverflow(TilewrightError, OverflowError):
    """A product of sizes exceeds 64 bits."""

    message = "{what} needs {found} elements, more than {limit}; split the problem"


class ScratchAllocation(TilewrightError, MemoryError):
    """Scratch memory for packed panels could not be allocated."""

    message = (
        "could not allocate {size} bytes of scratch for packed panels: {reason}; free memory, or "
        "set TILEWRIGHT_L3_BYTES lower to use smaller panels"
    )


class CalledWhileImporting(TilewrightError, RuntimeError):
    """The package was called from a signal handler or finaliser that interrupted one of its imports."""

    message = (
        "tilewright was called by a signal handler or finaliser that interrupted an import of its own "
        "thread; call the function once before installing the handler"
    )


class ForeignKernel(TilewrightError, RuntimeError):
    """A kernel compiled for another CPU is called."""

    message = (
        "kernel {kernel} was compiled for {target} and cannot run on this CPU ({host}); "
        "compile it with target=None"
    )


class OperandMismatch(TilewrightError, ValueError):
    """An array does not match the kernel's operand."""

    message = "kernel {kernel}: operand {name} has {what} {found}, must be {required}"


class LeadingDimension(TilewrightError, ValueError):
    """A leading dimension is shorter than the rows or columns."""

    message = (
        "kernel {kernel}: operand {name} has leading dimension {found}, must be at least {required} "
        "elements; pass an array whose rows do not overlap"
    )


class BlockNotMultiple(TilewrightError, ValueError):
    """A cache block is not a multiple of the register tile."""

    speaker = "blocking"
    message = "{block} is {size}, must be a multiple of {of} = {unit}"


class NoRegisterTile(TilewrightError, ValueError):
    """No register tile satisfies the constraints."""

    message = "no register tile fits {registers} vector registers of {lanes} lanes for {dtype} on {isa}"


class InvalidTileIr(TilewrightError, ValueError):
    """Tile IR that breaks a rule of `ir.verify`."""

    message = "tile IR: {where}: {reason}"


class TileIrSyntax(TilewrightError, ValueError):
    """Invalid text of tile IR."""

    message = "tile IR text, line {line}: {reason}: {text}"


class CompilationFailed(TilewrightError, RuntimeError):
    """LLVM rejected a generated module."""

    message = "LLVM rejected the module of {kernel}: {reason}; please report this with the kernel's `llvm_ir`"
