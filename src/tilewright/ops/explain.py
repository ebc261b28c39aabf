"""`tilewright.explain`: how a call or a problem runs, asked of the room of its operation."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tilewright.calls.compile import compile_problem
from tilewright.calls.exchange import exchanged
from tilewright.calls.repeated import as_served, is_repeated, path_of
from tilewright.compiler.explanation import (
    Considered,
    Explanation,
    decision_text,
    figures_text,
    kernel_strategy,
    strategy_of,
)
from tilewright.compiler.operation import Problem
from tilewright.errors import NotExplained, TilewrightError, shown
from tilewright.errors.callers import name_caller
from tilewright.ops.attention.explain import explain_attention
from tilewright.ops.contraction.explain import explain_contraction
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.einsum.explain import explain_einsum
from tilewright.ops.elementwise.explain import explain_function
from tilewright.ops.gemm.paths import considered_paths
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.matmul.explain import (
    considered_packed,
    explain_linear,
    explain_matmul,
    fused,
    gemm_trace,
    packed_strategy,
)
from tilewright.ops.triangular.explain import explain_triangles
from tilewright.spec.operations import OPS
from tilewright.spec.problem import Layout


def _tight(problem: Gemm) -> tuple[int, ...] | None:
    """Sizes of a GEMM whose sizes and layouts are known, with tight leading dimensions."""
    m, n, k = problem.m, problem.n, problem.k
    if m is None or n is None or k is None:
        return None
    strides: list[int] = []
    for operand, rows, columns in zip(problem.operands, (m, k, m), (k, n, n), strict=True):
        strides += [1, rows] if operand.layout is Layout.COL else [columns, 1]
    return (m, n, k, *strides)


def explain_problem(problem: Problem, target: Any = None) -> Explanation:
    """How the kernel of a problem runs, with operands as tight as its layouts allow."""
    if isinstance(problem, Contraction):
        return explain_contraction(problem, target)
    kernel = compile_problem(problem, target)
    sizes = _tight(problem) if isinstance(problem, Gemm) else None
    notes = [f"for {kernel.machine.name}, row {kernel.machine.isa.name}"]
    if isinstance(problem, Gemm):
        notes += fused(problem.epilogue)
    decisions: tuple[str, ...] = ()
    considered: tuple[Considered, ...] = ()
    if sizes is not None:
        way = gemm_trace(kernel, sizes, 1.0, 0.0)
        decisions, strategy = (
            tuple(map(decision_text, way.decisions)),
            strategy_of(kernel.nest, way.primitives),
        )
        if isinstance(problem, Gemm):
            considered = considered_paths(problem, kernel.machine, sizes)
        if isinstance(problem, Gemm) and (problem.packed or problem.weights):
            considered = considered_packed(kernel, sizes, (1.0, 0.0))
            strategy = packed_strategy(problem, way.primitives)
        notes.append("with alpha = 1, beta = 0 and tight leading dimensions")
    elif isinstance(problem, Gemm):
        strategy = (
            f"{problem.strategy.value}: decided by the sizes of each call; explain(matmul, a, b) shows one"
        )
    else:
        strategy = kernel_strategy(kernel.compilation)
    figures = figures_text(kernel, kernel.flops, kernel.problem.bytes)
    return Explanation(repr(problem), kernel.name, strategy, decisions, tuple(notes), figures, considered)


#: Functions that have explanations of their own, by name.
CALLS: dict[str, Callable[..., Explanation]] = {
    "matmul": explain_matmul,
    "linear": explain_linear,
    "einsum": explain_einsum,
    "attention": explain_attention,
    "syrk": partial(explain_triangles, "syrk"),
    "syr2k": partial(explain_triangles, "syr2k"),
    "trmm": partial(explain_triangles, "trmm"),
}
#: The modules that define these.
_HOMES = (
    "tilewright",
    "tilewright.ops.matmul.linear",
    "tilewright.ops.attention.public",
    "tilewright.ops.triangular.public",
)
#: The modules of functions of rows and of elements, all of which are explained alike.
_FUNCTIONS = (
    "tilewright.ops.rows.public",
    "tilewright.ops.rows.public_reductions",
    "tilewright.ops.elementwise.public",
    "tilewright.ops.binary.public",
    "tilewright.ops.rotary.public",
)


#: Functions of NumPy that run on this package after `tilewright.install`, with what explains their calls.
installed_functions: dict[Any, Callable[..., Explanation]] = {}

#: Options of calls whose kernels are not explained, but the path they take.
_PATH_ONLY = {"axes", "casting", "order", "subok", "return_stats"}


def explain(subject: Any, /, *arguments: Any, **options: Any) -> Explanation:
    """Which strategy and kernel a call or a problem takes, and why.

    Parameters
    ----------
    subject : a problem, or a function of this package: ``explain(matmul, a, b, out=c)``. After
        `tilewright.install` also ``explain(numpy.matmul, a, b)`` and its relatives.
    arguments, options : those of the function; of a problem, the target it is compiled for.

    Returns
    -------
    Explanation
        Prints as text; its fields hold the kernel, the strategy, each decision with the values it looked
        at, what happens around the kernel (copies, Python, batches), blocking, flops and bytes. Nothing
        is computed.

    Raises
    ------
    NotExplained, and what the call itself would raise.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> a, x = np.ones((64, 64), np.float32), np.ones((64, 1), np.float32)
    >>> tw.explain(tw.matmul, a, x).strategy
    'dot products: vectors run along the depth, rows of A are read once'
    """
    function = isinstance(subject, (types.FunctionType, types.BuiltinFunctionType))
    known = function and (subject.__module__ in (*_HOMES, *_FUNCTIONS) or is_repeated(subject))
    try:
        return _explained(subject, arguments, options)
    except (TilewrightError, TypeError) as error:
        if known and not isinstance(error, NotExplained):
            name_caller(error, subject.__name__, subject, arguments, options)
        else:
            name_caller(error, "explain", explain_problem, (subject, *arguments), options)
        raise


def _explained(subject: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Explanation:
    """How a problem or a call of a function runs."""
    if subject in OPS:
        inspect.signature(explain_problem).bind(subject, *arguments, **options)
        return explain_problem(subject, *arguments, **options)
    two = len(arguments) == 2 and not options  # what is said of NumPy's functions depends on two operands
    if two and isinstance(subject, np.ufunc) and subject in installed_functions:
        return installed_functions[subject](*arguments)
    function = isinstance(subject, (types.FunctionType, types.BuiltinFunctionType))
    name, home = (subject.__name__, subject.__module__) if function else (None, None)
    arguments = as_served(subject, arguments)
    if home in (*_HOMES, *_FUNCTIONS) or is_repeated(subject):
        inspect.signature(subject).bind(*arguments, **options)  # refuses what a call would refuse
    found = None
    exchange = exchanged(subject, arguments, options) if home is not None else None
    values, named = (arguments, options) if exchange is None else (exchange.arguments, exchange.named)
    if is_repeated(subject) and (set(options) & _PATH_ONLY or not (name in CALLS or home in _FUNCTIONS)):
        shapes = ", ".join(str(value.shape) for value in values if hasattr(value, "shape"))
        found = Explanation(f"{name} of {shapes}", "not shown", "not shown for calls like this", (), (), ())
    elif home in _HOMES and name in CALLS:
        found = CALLS[name](*values, **named)
    elif home in _FUNCTIONS and hasattr(subject, "__self__"):
        found = explain_function(subject, *values, **named)
    if found is not None:
        ours = exchange is None and any(note.startswith("native entry") for note in found.notes)
        if ours or not is_repeated(subject):
            return found
        notes = [note for note in found.notes if not note.startswith(("through Python", "native entry"))]
        return replace(found, notes=(*notes, path_of(subject, arguments, options)))
    raise NotExplained(found=shown(subject), known=", ".join(f"tilewright.{name}" for name in CALLS))
