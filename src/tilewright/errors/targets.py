"""Errors about the CPU that code is compiled for."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class UnknownTarget(TilewrightError, ValueError):
    """A target name that no row has."""

    message = "unknown target {found}, which is neither host nor triple:cpu:+features; known: {known}"


class InvalidTarget(TilewrightError, ValueError):
    """A target spelled as a triple and a CPU that are not, or for which LLVM makes no 64-bit code."""

    message = (
        "target {found}: {reason}; write triple:cpu or triple:cpu:+feature,-feature, "
        "such as aarch64-linux-gnu:neoverse-n2:+sve"
    )


class UnknownTriple(TilewrightError, ValueError):
    """A triple that LLVM has no back end for."""

    message = "LLVM knows no target triple {found}: {reason}; `cc -dumpmachine` prints that of a compiler"


class UnknownCpu(TilewrightError, ValueError):
    """A CPU that LLVM does not know."""

    message = "LLVM knows no CPU {found} of {triple}; nearest: {nearest}"


class UnknownFeature(TilewrightError, ValueError):
    """A CPU feature that LLVM does not know."""

    message = "LLVM knows no feature {found} of {triple}; nearest: {nearest}"


class FeatureNeeded(TilewrightError, ValueError):
    """A feature is changed that the platform's calling convention needs as it is."""

    message = (
        "feature {found} cannot be asked for: calls on {triple} need {needed}; leave it out, or choose a "
        "narrower row (TILEWRIGHT_ISA, isa=)"
    )


class UnknownIsa(TilewrightError, ValueError):
    """An ISA row name that does not exist."""

    message = "unknown ISA row {found}; known: {known}"


class IsaNotOnHost(TilewrightError, RuntimeError):
    """An ISA row whose instructions this CPU lacks."""

    message = "ISA row {isa} needs {features}, which this CPU lacks; choose one of: {usable}"


class NoVectorUnit(TilewrightError, RuntimeError):
    """No ISA row fits a CPU."""

    message = "no ISA row fits {cpu} ({triple}); rows: {rows}"
