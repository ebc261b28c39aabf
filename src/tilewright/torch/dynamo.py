"""Public functions under Dynamo: some become operators of graphs, the others are called outside of graphs."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch._dynamo import trace_rules
from torch._dynamo.guards import GuardBuilder
from torch._dynamo.variables import PolyfilledFunctionVariable
from torch._dynamo.variables.builder import VariableBuilder

import tilewright as tw
from tilewright.torch.operators import attention, linear, matmul

#: Public functions that are applied when modules are imported; loading them takes a second.
_DECORATORS = ("accelerate",)
#: Python packages that a call may enter, whose frames would be traced otherwise.
_OUTSIDE = ("llvmlite", "ml_dtypes", "opt_einsum")


def _call_outside(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that a graph breaks at."""
    return torch._dynamo.disable(function, reason="machine code of Tilewright", wrapping=False)


_linear_outside = _call_outside(tw.linear)
_matmul_outside = _call_outside(tw.matmul)
_attention_outside = _call_outside(tw.attention)


def _traced_linear(
    x: Any, weight: Any, bias: Any = None, activation: Any = None, *, out: Any = None, threads: Any = None
) -> Any:
    if isinstance(x, torch.Tensor) and isinstance(weight, torch.Tensor) and out is None and threads is None:
        return linear(x, weight, bias, activation)
    return _linear_outside(x, weight, bias, activation, out=out, threads=threads)


def _traced_matmul(a: Any, b: Any, /, *rest: Any, **options: Any) -> Any:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and not rest and not options:
        return matmul(a, b)
    return _matmul_outside(a, b, *rest, **options)


def _traced_outside(function: Callable[..., Any]) -> Callable[..., Any]:
    outside = _call_outside(function)

    def traced(*arguments: Any, **named: Any) -> Any:
        return outside(*arguments, **named)

    return traced


#: Options of `tw.attention` that the operator has.
_ATTENTION_OPTIONS = ("mask", "causal", "scale", "window", "softcap")


def _traced_attention(q: Any, k: Any, v: Any, **options: Any) -> Any:
    tensors = isinstance(q, torch.Tensor) and isinstance(k, torch.Tensor) and isinstance(v, torch.Tensor)
    known = tensors and all(name in _ATTENTION_OPTIONS for name in options)
    if known and q.ndim == k.ndim == v.ndim and q.shape[:-3] == k.shape[:-3] == v.shape[:-3]:
        return attention(q, k, v, **options)
    return _attention_outside(q, k, v, **options)


#: Public functions that become operators.
_TRACED: dict[str, Callable[..., Any]] = {
    "linear": _traced_linear,
    "matmul": _traced_matmul,
    "attention": _traced_attention,
}


def teach_dynamo() -> None:
    """Makes every public function safe to meet: called once, by the import of `tilewright.torch`.

    Frames of this package and of what it calls are not traced, but for `tilewright.torch`.
    """
    for module in pkgutil.iter_modules(tw.__path__):
        if module.name != "torch":
            trace_rules.add(f"tilewright.{module.name}")
    for name in _OUTSIDE:
        trace_rules.add(name)
    for name in tw.__all__:
        if name in _DECORATORS:
            continue
        function = getattr(tw, name)
        if not isinstance(function, (BuiltinFunctionType, FunctionType)):
            continue
        traced = _TRACED.get(name) or _traced_outside(function)
        _substitute(function, traced)


def _substitute(function: Callable[..., Any], traced: Callable[..., Any]) -> None:
    """Makes Dynamo trace another function in place of one.

    PyTorch finds the other one in a dictionary. Builtins have no place there, since their hashes change when
    they get machine code: its table by identities leads to the wrapper in Python, which has one.
    """
    wrapper = torch.compiler.substitute_in_graph(function, skip_signature_check=True)(traced)

    def build(builder: VariableBuilder, _: Any) -> PolyfilledFunctionVariable:
        guards: Any = builder.install_guards(GuardBuilder.ID_MATCH)
        return PolyfilledFunctionVariable(wrapper, source=builder.source, **guards)

    VariableBuilder._id_dispatch()[id(function)] = build
