"""Errors of building kernel libraries."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class SpecUnreadable(TilewrightError, OSError):
    """A library specification is missing or is not TOML."""

    message = "cannot read the library specification {path}: {reason}"


class InvalidSpec(TilewrightError, ValueError):
    """Invalid entry in a library specification."""

    message = "{path}, {where}: {reason}"


class NoResolver(TilewrightError, ValueError):
    """No run-time CPU dispatch exists for a target."""

    message = "target {target} ({triple}) cannot be in a library: {reason}; supported: Linux on {known}"


class UntestableFeature(TilewrightError, ValueError):
    """A target needs a CPU feature that cannot be detected at run time."""

    message = (
        "target {target} uses {features}, which a program on {arch} cannot detect at run time; "
        "choose a target without it, such as triple:cpu:-feature"
    )


class MixedTargets(TilewrightError, ValueError):
    """A library has targets of different architectures."""

    message = "targets {targets} have the architectures {found}; build one library for each architecture"


class TargetNeverChosen(TilewrightError, ValueError):
    """A target of a library would never be selected."""

    message = (
        "target {target} would never be selected: every CPU that can run it selects {other} first; omit one "
        "of them"
    )


class InvalidTargetList(TilewrightError, ValueError):
    """A list of targets has an empty or repeated entry."""

    message = "targets are {found}: {reason}; write a comma-separated list such as x86-64-v2,x86-64-v3"


class VariantsDiffer(TilewrightError, ValueError):
    """A kernel of a library takes different arguments on two of its targets."""

    message = (
        "kernel {name} takes the arguments ({first}) on {target} and ({second}) on {other}, so no "
        "function has both; build one library for each of these targets"
    )


class NoLinker(TilewrightError, OSError):
    """No linker for shared libraries was found."""

    message = (
        "a shared library needs a linker, and none of these was found: {tried}; "
        "pip install ziglang, or write a static archive"
    )


class LinkFailed(TilewrightError, RuntimeError):
    """The linker refused the objects of a shared library."""

    message = "{command} cannot link {name}: {reason}"
