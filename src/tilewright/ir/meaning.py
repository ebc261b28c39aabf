"""What the primitives of `primitives.py` mean, in NumPy: the oracle of their machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np

from tilewright.ir.nodes import Constant, Expression, FirstElse, Primitive, Scalar, Slice
from tilewright.ir.primitives import (
    Begin,
    Finite,
    Keep,
    KeyScores,
    Merge,
    MultiplyRows,
    Normalise,
    PackTable,
    ScatterTile,
    Softmax,
    SoftmaxGradient,
    Spend,
    SumProducts,
    SumValues,
)
from tilewright.ir.row_primitives import (
    LayerNormRows,
    LogSoftmaxRows,
    MaxRows,
    MeanRows,
    MinRows,
    RmsNormRows,
    SoftmaxRows,
    SumRows,
)
from tilewright.ops.rows.problem import RowOp, row_meaning
from tilewright.ops.sum_of_products.problem import product_meaning

if TYPE_CHECKING:
    from tilewright.ir.interpret import Array, Run


class _Fields:
    """The fields of a primitive as numbers and arrays."""

    def __init__(
        self, run: Run, node: Primitive, names: Mapping[str, int], first: Mapping[str, bool]
    ) -> None:
        self.run, self.node, self.names, self.first = run, node, names, first

    def number(self, name: str) -> Any:
        """An integer or a scalar; None where there is none."""
        value = getattr(self.node, name)
        if value is None:
            return None
        if isinstance(value, Expression):
            return self.run.integer(value, self.names)
        assert isinstance(value, (Scalar, FirstElse))
        return self.run.scalar(value, self.first)

    def window(self, name: str, rows: int, columns: int) -> Array:
        """A window of some size."""
        part = getattr(self.node, name)
        assert isinstance(part, Slice)
        return self.run.window(part, (rows, columns), self.names)


def _begin(at: _Fields) -> None:
    rows, columns = at.number("rows"), at.number("columns")
    at.window("out", rows, columns)[...] = 0
    sunk = at.node.sink is not None  # type: ignore[attr-defined]
    at.window("row_max", rows, 1)[...] = at.window("sink", 1, 1) if sunk else -np.inf
    at.window("row_sum", rows, 1)[...] = 1 if sunk else 0


def masked(t: Array, mask: Array) -> Array:
    """Scores under a mask: of truths, or of numbers that are added."""
    if mask.dtype == np.uint8:
        return np.where(mask != 0, t, -np.inf)
    lowest = float(ml_dtypes.finfo(mask.dtype).min)  # type: ignore[no-untyped-call]
    numbers = mask.astype(np.float64)
    return np.where(numbers <= lowest / 2, -np.inf, t + numbers)


def _softmax(at: _Fields) -> None:
    rows, columns, padded = (at.number(name) for name in ("rows", "columns", "padded"))
    node = at.node
    assert isinstance(node, Softmax)
    t = at.window("scores", rows, columns).astype(np.float64) * at.number("scale")
    i, j = np.ogrid[:rows, :columns]
    if node.key_scale is not None:
        t = t * at.window("key_scale", 1, columns)
    if node.softcap is not None:
        t = at.number("softcap") * np.tanh(t / at.number("softcap"))
    if node.slope is not None:
        t = t - at.window("slope", 1, 1) * np.abs(at.number("distance") + j - i)
    if node.mask is not None:
        t = masked(t, at.window("mask", rows, columns))
    if node.low is not None:
        t = np.where((at.number("low") + i <= j) & (j < at.number("high") + i), t, -np.inf)
    row_max, row_sum = at.window("row_max", rows, 1), at.window("row_sum", rows, 1)
    out = at.window("out", rows, at.number("out_columns"))
    old = row_max.astype(np.float64)
    new = np.maximum(old, np.max(np.where(np.isnan(t), -np.inf, t), axis=1, keepdims=True, initial=-np.inf))
    base = np.where(new == -np.inf, 0, new)
    weights, factor = np.exp(t - base), np.exp(old - base)
    row_max[...] = new
    row_sum[...] = row_sum * factor + weights.sum(axis=1, keepdims=True)
    out *= factor
    if node.weight_scale is not None:
        weights = weights * at.window("weight_scale", 1, columns)
    stored = at.window("weights", rows, padded)
    stored[:, columns:] = 0
    stored[:, :columns] = weights


def _normalise(at: _Fields) -> None:
    rows, columns = at.number("rows"), at.number("columns")
    sums = at.window("row_sum", rows, 1)
    with np.errstate(divide="ignore"):
        factor = np.where(sums == 0, 0, 1 / sums.astype(np.float64))
    values = at.window("sums", rows, columns) * factor
    at.window("to", rows, columns)[...] = values
    at.window("to_max", rows, 1)[...] = at.window("row_max", rows, 1)
    at.window("to_sum", rows, 1)[...] = sums
    if at.node.flag is not None and np.any(np.isnan(values)):  # type: ignore[attr-defined]
        at.window("flag", 1, 1)[...] = 1


def _keep(at: _Fields) -> None:
    rows, columns = at.number("rows"), at.number("columns")
    seen = at.window("weights", rows, 1) != 0
    at.window("to", rows, columns)[...] = np.where(seen, at.window("values", rows, columns), 0)


def _softmax_gradient(at: _Fields) -> None:
    rows, columns, padded = (at.number(name) for name in ("rows", "columns", "padded"))
    node = at.node
    assert isinstance(node, SoftmaxGradient)
    t = at.window("scores", rows, columns).astype(np.float64) * at.number("scale")
    products = at.window("products", rows, columns).astype(np.float64)
    i, j = np.ogrid[:rows, :columns]
    slope: Array | float = 1.0
    if node.softcap is not None:
        bounded = np.tanh(t / at.number("softcap"))
        t, slope = at.number("softcap") * bounded, 1 - bounded**2
    if node.slope is not None:
        t = t - at.window("slope", 1, 1) * np.abs(at.number("distance") + j - i)
    if node.mask is not None:
        t = masked(t, at.window("mask", rows, columns))
    if node.low is not None:
        t = np.where((at.number("low") + i <= j) & (j < at.number("high") + i), t, -np.inf)
    lse = at.window("lse", rows, 1).astype(np.float64)
    weights = np.exp(t - np.where(lse == -np.inf, np.inf, lse))
    gradients = np.where(weights == 0, 0, weights * (products - at.window("delta", rows, 1)) * slope)
    for name, values in (("weights", weights), ("gradients", gradients)):
        if getattr(node, name) is not None:
            stored = at.window(name, rows, padded)
            stored[:, columns:] = 0
            stored[:, :columns] = values


def _key_scores(at: _Fields) -> None:
    rows, keys, depth = (at.number(name) for name in ("rows", "keys", "depth"))
    if keys > 0:
        q, k = at.window("q", rows, depth), at.window("k", keys, depth)
        at.window("scores", rows, keys)[...] = q.astype(np.float64) @ k.astype(np.float64).T


def _sum_values(at: _Fields) -> None:
    rows, keys, columns = (at.number(name) for name in ("rows", "keys", "columns"))
    if keys > 0:
        weights = at.window("weights", rows, keys).astype(np.float64)
        values = at.window("values", keys, columns).astype(np.float64)
        products = weights[:, :, None] * np.where(weights[:, :, None] == 0, 0, values)
        at.window("out", rows, columns)[...] += products.sum(axis=1)


def _merge(at: _Fields) -> None:
    rows, columns = at.number("rows"), at.number("columns")
    most, others = (at.window(name, rows, 1) for name in ("row_max", "other_max"))
    new = np.maximum(most, others).astype(np.float64)
    base = np.where(new == -np.inf, 0, new)
    factor, other = np.exp(most - base), np.exp(others - base)
    for name, width in (("row_sum", 1), ("out", columns)):
        added = at.window("other" if name == "out" else "other_sum", rows, width)
        total = at.window(name, rows, width)
        total[...] = total * factor + added * other
    most[...] = new


def _finite(at: _Fields) -> None:
    values = at.window("values", 1, at.number("elements"))
    values[~np.isfinite(values.astype(np.float64))] = 0


def _pack_table(at: _Fields) -> None:
    lanes, depth, panel = (at.number(name) for name in ("lanes", "depth", "panel"))
    if not depth:
        return
    node = at.node
    assert isinstance(node, PackTable)
    rows, depths = at.window("lanes_at", lanes, 1), at.window("depths_at", depth, 1)
    held = at.run.buffers[node.source.buffer]
    assert isinstance(held, tuple)
    start = held[1] + at.run.integer(node.source.offset, at.names)
    panels = lanes // panel
    whole = held[0][start + rows + depths[:, 0]]
    order = whole.reshape(panels, panel, depth).transpose(0, 2, 1)
    part = Slice(node.to.buffer, node.to.offset, (Constant(1), Constant(1)))
    at.run.window(part, (order.size, 1), at.names)[:, 0] = order.reshape(-1)


def _scatter_tile(at: _Fields) -> None:
    rows, columns, beta = (at.number(name) for name in ("rows", "columns", "beta"))
    node = at.node
    assert isinstance(node, ScatterTile)
    held = at.run.buffers[node.to.buffer]
    assert isinstance(held, tuple)
    start = held[1] + at.run.integer(node.to.offset, at.names)
    places = start + at.window("rows_at", rows, 1) + at.window("columns_at", columns, 1).T
    values = at.window("tile", rows, columns).astype(np.float64)
    held[0][places] = values + (beta * held[0][places].astype(np.float64) if beta else 0)


def _rows(at: _Fields, op: RowOp) -> None:
    rows, columns = at.number("rows"), at.number("columns")
    eps = at.number("eps") if op.takes_eps else 0.0
    with np.errstate(all="ignore"):
        found = row_meaning(op, at.window("source", rows, columns).astype(np.float64), eps)
    if getattr(at.node, "weight", None) is not None:
        found = found * at.window("weight", 1, columns)
    if getattr(at.node, "bias", None) is not None:
        found = found + at.window("bias", 1, columns)
    if op.reduces:
        at.window("to", rows, 1)[...] = found[:, np.newaxis]
    else:
        at.window("to", rows, columns)[...] = found


def _sum_products(at: _Fields) -> None:
    node = at.node
    assert isinstance(node, SumProducts)
    rows, columns, turns = (at.number(name) for name in ("rows", "columns", "turns"))

    def turned(name: str) -> Array:
        part, step = getattr(node, name), getattr(node, f"{name}_turn")
        windows = []
        for turn in range(turns):
            moved = Slice(part.buffer, part.offset + step * turn, part.strides)
            windows.append(at.run.window(moved, (rows, columns), at.names))
        return np.stack(windows) if windows else np.zeros((0, rows, columns), part_type(name))

    def part_type(name: str) -> np.dtype[Any]:
        return at.window(name, 1, 1).dtype

    right = None if node.right is None else turned("right")
    to = at.window("to", rows, 1)[:, 0]
    found = product_meaning(turned("left"), right, (0, 2))
    to[...] = found + to if at.number("added") else found


def _multiply_rows(at: _Fields) -> None:
    shape = (at.number("rows"), at.number("columns"))
    left, right = (at.window(name, *shape) for name in ("left", "right"))
    at.window("to", *shape)[...] = product_meaning(left, right, None)


def _spend(_: _Fields) -> None:
    """Changes no buffer."""


Meaning: TypeAlias = Callable[[_Fields], None]

#: What each primitive does.
_ACTIONS: dict[type[Primitive], Meaning] = {
    Begin: _begin,
    Softmax: _softmax,
    Normalise: _normalise,
    Finite: _finite,
    Keep: _keep,
    SoftmaxGradient: _softmax_gradient,
    KeyScores: _key_scores,
    SumValues: _sum_values,
    Merge: _merge,
    PackTable: _pack_table,
    ScatterTile: _scatter_tile,
    SoftmaxRows: partial(_rows, op=RowOp.SOFTMAX),
    LogSoftmaxRows: partial(_rows, op=RowOp.LOG_SOFTMAX),
    LayerNormRows: partial(_rows, op=RowOp.LAYER_NORM),
    RmsNormRows: partial(_rows, op=RowOp.RMS_NORM),
    SumRows: partial(_rows, op=RowOp.SUM),
    MeanRows: partial(_rows, op=RowOp.MEAN),
    MaxRows: partial(_rows, op=RowOp.MAX),
    MinRows: partial(_rows, op=RowOp.MIN),
    SumProducts: _sum_products,
    MultiplyRows: _multiply_rows,
    Spend: _spend,
}


def run_primitive(run: Run, node: Primitive, names: Mapping[str, int], first: Mapping[str, bool]) -> None:
    """Carries out a primitive on the buffers of a run."""
    _ACTIONS[type(node)](_Fields(run, node, names, first))
