"""Errors of building kernel libraries."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class SpecUnreadable(TilewrightError, OSError):
    """A list of kernels that is not there, or is not TOML."""

    message = "cannot read the list of kernels {path}: {reason}"


class InvalidSpec(TilewrightError, ValueError):
    """A list of kernels with something in it that no kernel has."""

    message = "{path}, {where}: {reason}"


class NoResolver(TilewrightError, ValueError):
    """A target for which no program can choose at run time."""

    message = (
        "target {target} ({triple}) cannot be in a library: {reason}; targets are those of Linux on {known}"
    )


class UntestableFeature(TilewrightError, ValueError):
    """Code that depends on a feature which a program cannot see at run time."""

    message = (
        "target {target} is compiled with {features}, which no bit shows to a program on {arch}; "
        "choose a target without, such as triple:cpu:-feature"
    )


class MixedTargets(TilewrightError, ValueError):
    """Targets of different architectures in one library."""

    message = "targets {targets} are of {found}; a library is of one architecture, write one for each"


class TargetNeverChosen(TilewrightError, ValueError):
    """Two targets, one of which no CPU would take."""

    message = "target {target} runs on no CPU that does not take {other} before it; leave one of them out"


class InvalidTargetList(TilewrightError, ValueError):
    """A list of targets in which one is missing or named twice."""

    message = "targets are {found}: {reason}; write a comma list such as x86-64-v2,x86-64-v3"
