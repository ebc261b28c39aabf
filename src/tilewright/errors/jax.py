"""Errors of JAX calls: `tilewright.jax`."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class JaxMissing(TilewrightError, ImportError):
    """`tilewright.jax` is imported where JAX is not installed."""

    message = "tilewright.jax needs JAX, which cannot be imported ({reason}); pip install 'tilewright[jax]'"


class JaxInterfaceUnknown(TilewrightError, ImportError):
    """The foreign function interface of the installed jaxlib is not the one that handlers are written for."""

    message = (
        "tilewright.jax knows version {required} of XLA's foreign function interface, and jaxlib {jaxlib} "
        "has version {found}; install a release of tilewright that knows it, or another jaxlib"
    )


class JaxShapeUnknown(TilewrightError, TypeError):
    """An operand whose shape JAX does not know while it traces."""

    message = (
        "{name} has shape {shape}, and kernels are chosen while JAX traces: every size must be an integer"
    )


class JaxProblemUnreadable(TilewrightError, ValueError):
    """A compiled program of JAX asks for a problem that this version cannot read."""

    message = (
        "a program that JAX compiled asks Tilewright for {found}, which version {version} cannot read; "
        "trace and compile it again"
    )


class JaxTracedOption(TilewrightError, TypeError):
    """An option that must be known while JAX traces is a traced value."""

    message = (
        "{name} is a value that JAX traces, and kernels are chosen while it traces; pass a Python value, "
        "as by jax.jit(..., static_argnames={name!r})"
    )
