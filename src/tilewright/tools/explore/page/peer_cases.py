"""Which row of the benchmark computes what a problem does: how peers are measured beside a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from string import ascii_letters
from typing import Any

from tilewright.ops.attention.problem import Attention
from tilewright.ops.contraction.main import FirstTouch, Main
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.rows.problem import RowFunction
from tilewright.ops.unary.problem import Unary
from tilewright.spec.dtype import F32
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Layout
from tilewright.spec.row_functions import RowOp
from tilewright.spec.weights import Weights
from tilewright.tools.bench.case import OperationCase
from tilewright.tools.bench.families import OPERATIONS
from tilewright.tools.bench.families.linear import GROUP
from tilewright.tools.explore.attention.cases import AttentionCase
from tilewright.tools.explore.cases import Case
from tilewright.tools.explore.measured import Measured

#: Weights of few bits that the benchmark has, by the names of their operations.
_WEIGHTS = {
    Weights.parse("i8"): "linear, 8-bit weight",
    Weights.parse(f"i4g{GROUP}"): "linear, 4-bit weight",
}


def case_of(problem: Any, shape: Mapping[str, int]) -> Measured | None:
    """The row of the benchmark that is a problem of some lengths; None where peers have no call for it.

    Parameters
    ----------
    shape : lengths of the problem's axes, as an example call has them.

    Examples
    --------
    >>> case_of(RowFunction("softmax"), {"batch": 1, "outer": 1, "rows": 8, "columns": 4}).name
    'softmax 8x4'
    >>> case_of(Gemm(64, 32, 16, epilogue="bias,gelu", b="col"), {"m": 64, "n": 32, "k": 16}).name
    'linear with GELU gelu 64x32x16'
    """
    match problem:
        case Gemm():
            return _product(problem, {name: shape[name] for name in "mnk"})
        case Attention():
            return _attention(problem, shape)
        case RowFunction() if problem.dtype is F32 and problem.layout is Layout.ROW:
            return _function(_row_name(problem), shape)
        case Elementwise() if problem == Elementwise(problem.op):
            return _function(problem.op.value, shape)
        case Unary() if problem == Unary(UnaryOp.IDENTITY, problem.m, problem.n, a="col", b="row"):
            return _function("transpose", {"rows": shape["n"], "columns": shape["m"]})
        case Contraction() if isinstance(problem.main, Main) and not problem.last:
            return _contraction(problem) if problem.first is FirstTouch.ZERO else None
    return None


def _product(problem: Gemm, sizes: dict[str, int]) -> Measured | None:
    """A product of two matrices as they are, or a linear layer."""
    plain = {problem.a, problem.b} <= {Layout.ROW, Layout.COL} and problem.c is Layout.ROW
    if plain and not problem.epilogue and problem.weights is None:
        return Case(replace(problem, m=sizes["m"], n=sizes["n"], k=sizes["k"]))
    layer = problem.a is Layout.ROW and problem.c is Layout.ROW
    if not layer or (problem.dtype, problem.b_dtype, problem.out_dtype) != (F32,) * 3:
        return None
    first, _, option = str(problem.epilogue).partition(",")
    if first != "bias" or option not in ("", "gelu", "relu"):
        return None
    name = "linear with GELU" if option == "gelu" else "linear"
    if problem.weights is not None:
        name = _WEIGHTS.get(problem.weights, "")
    elif problem.b is Layout.PACKED:
        name = "linear, packed weight"
    elif problem.b is not Layout.COL:
        return None
    if name not in OPERATIONS:
        return None
    return OperationCase(name, tuple(sizes.items()), option=option or "bias")


def _attention(problem: Attention, shape: Mapping[str, int]) -> Measured | None:
    """One head; of bounded ones, the bounds that the example has are causal."""
    d, dtype, bounded = problem.head_dim, problem.dtype, problem.bounded
    if problem != Attention(d, dtype=dtype, bounded=bounded, schedule=problem.schedule):
        return None
    return AttentionCase(1, 1, 1, shape["queries"], shape["keys"], d, str(dtype), causal=bounded)


def _contraction(problem: Contraction) -> Measured | None:
    """The einsum of arrays in memory order, a label for each dimension, where they have no gaps."""
    if (problem.dtype, problem.in1_dtype, problem.out_dtype) != (F32,) * 3:
        return None
    sizes = {label: one.size or 0 for label, one in zip(ascii_letters, problem.dimensions, strict=False)}
    terms = []
    for name in ("in0", "in1", "out"):
        strides = {label: getattr(one, name) for label, one in zip(sizes, problem.dimensions, strict=False)}
        labels = sorted(filter(strides.get, strides), key=lambda label: -strides[label])
        dense = 1
        for label in reversed(labels):
            if strides[label] != dense:
                return None
            dense *= sizes[label]
        terms.append("".join(labels))
    if not all(sizes.values()) or len(sizes) < len(problem.dimensions):
        return None
    return OperationCase("einsum", tuple(sizes.items()), option=f"{terms[0]},{terms[1]}->{terms[2]}")


def _row_name(problem: RowFunction) -> str:
    """The benchmark's name of a function of rows; of norms, where it takes what the benchmark gives."""
    given = (problem.weight is not None, problem.bias is not None)
    wanted = {
        RowOp.SOFTMAX: (False, False),
        RowOp.SUM: (False, False),
        RowOp.LAYER_NORM: (True, True),
        RowOp.RMS_NORM: (True, False),
    }
    if wanted.get(problem.op) != given:
        return ""
    return "sum of rows" if problem.op is RowOp.SUM else str(problem.op.value)


def _function(name: str, shape: Mapping[str, int]) -> Measured | None:
    """A function of one matrix, if the benchmark has it."""
    if name not in OPERATIONS or shape.get("batch", 1) * shape.get("outer", 1) != 1:
        return None
    return OperationCase(name, (("rows", shape["rows"]), ("columns", shape["columns"])))
