"""Errors of PyTorch models: `tilewright.torch`."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class TorchMissing(TilewrightError, ImportError):
    """`tilewright.torch` is imported where PyTorch is not installed."""

    message = (
        "tilewright.torch needs PyTorch, which cannot be imported ({reason}); pip install 'tilewright[torch]'"
    )


class AttentionWithout(TilewrightError, NotImplementedError):
    """A model of `transformers` asks for something that the attention implementation lacks."""

    message = 'the attention implementation "tilewright" has no {what}; use attn_implementation="eager"'


class NotConvertible(TilewrightError, ValueError):
    """A node of a graph of PyTorch has no counterpart in `Graph`; PyTorch executes it."""

    message = "{reason}"
