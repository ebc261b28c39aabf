"""Errors about the CPU that code is compiled for."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class UnknownTarget(TilewrightError, ValueError):
    """Unknown target name."""

    message = "unknown target {found}: neither host nor a known name nor triple:cpu:+features; known: {known}"


class InvalidTarget(TilewrightError, ValueError):
    """Invalid triple:cpu target, or one without 64-bit code."""

    message = (
        "target {found}: {reason}; write triple:cpu or triple:cpu:+feature,-feature, "
        "such as aarch64-linux-gnu:neoverse-n2:+sve"
    )


class UnknownTriple(TilewrightError, ValueError):
    """LLVM has no back end for a triple."""

    message = (
        "LLVM does not know the target triple {found}: {reason}; `cc -dumpmachine` prints the triple of a "
        "compiler"
    )


class UnknownCpu(TilewrightError, ValueError):
    """A CPU that LLVM does not know."""

    message = "LLVM does not know the CPU {found} of {triple}; nearest: {nearest}"


class UnknownFeature(TilewrightError, ValueError):
    """A CPU feature that LLVM does not know."""

    message = "LLVM does not know the feature {found} of {triple}; nearest: {nearest}"


class FeatureNeeded(TilewrightError, ValueError):
    """A feature required by the calling convention cannot be changed."""

    message = (
        "feature {found} is not possible: the calling convention of {triple} needs {needed}; omit it, or "
        "choose a narrower ISA row (TILEWRIGHT_ISA, isa=)"
    )


class UnknownIsa(TilewrightError, ValueError):
    """Unknown name of an ISA row."""

    message = "unknown ISA row {found}; known: {known}"


class RegisteredName(TilewrightError, RuntimeError):
    """What another package registered under a name cannot be used."""

    message = "{name} of the entry points {group} is {place}: {reason}"


class IsaNotOnHost(TilewrightError, RuntimeError):
    """The CPU of this machine lacks the instructions of an ISA row."""

    message = "ISA row {isa} needs {features}, which this CPU lacks; choose one of: {usable}"


class NoVectorUnit(TilewrightError, RuntimeError):
    """No ISA row fits a CPU."""

    message = "no ISA row supports {cpu} ({triple}); rows: {rows}"
