"""How a call of `matmul` runs, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.layout import native_entry_possible, why_not_native
from tilewright.compiler.alternatives import predicted_alternatives, primitives_in
from tilewright.compiler.explanation import (
    Considered,
    Explanation,
    decision_text,
    figures_text,
    strategy_of,
    thread_note,
)
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation
from tilewright.errors import TilewrightError, UnsupportedArgument, shown
from tilewright.ir.nodes import Pack, Program, Statement, TileMatmul
from tilewright.ir.trace import Trace, trace
from tilewright.ops.gemm.call import PreparedProduct, prepare
from tilewright.ops.gemm.epilogue_operands import activation_word
from tilewright.ops.gemm.kernel import arranged, exact_fit, first_matrices, matmul_kernel
from tilewright.ops.gemm.native_entry import MOST_AXES
from tilewright.ops.gemm.operands import product_shapes
from tilewright.ops.gemm.paths import considered_paths
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.product_code import MAX_DIRECT_SIZE
from tilewright.ops.gemm.product_nest import SCALARS
from tilewright.ops.linear.activations import QuantizedRows
from tilewright.ops.linear.kernel import RouteKey, find_route
from tilewright.ops.linear.quantized import weight_route
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.spec.arguments import real_number
from tilewright.spec.epilogue import Along, Epilogue
from tilewright.spec.problem import PRODUCT_SIZES
from tilewright.threads.pool import limited


def gemm_trace(kernel: Kernel, sizes: tuple[int, ...], alpha: complex, beta: complex) -> Trace:
    """The decisions of a GEMM kernel for sizes and strides, alpha and beta."""
    scalars = dict(zip(SCALARS, (alpha, beta), strict=True))
    return trace(kernel.nest, dict(zip(PRODUCT_SIZES, sizes, strict=True)), scalars)


def python_reason(product: PreparedProduct, a: Any, b: Any, out: Any, options: dict[str, Any]) -> str | None:
    """Why a product does not stay in the native entry; None where it does, once that is compiled."""
    arrays = (a, b) if out is None else (a, b, out)
    if any(type(array) is not np.ndarray for array in arrays):
        return "an operand is not a plain numpy.ndarray"
    sizes = (*product.a.shape[-2:], product.b.shape[-1])
    batch = product.c.shape[:-2]
    checks = (
        (not native_entry_possible(), str(why_not_native())),
        (bool(options), f"it was given {', '.join(options)}"),
        (bool(product.copies), "an operand is copied"),
        (any(array.ndim > MOST_AXES for array in arrays), f"an operand has more than {MOST_AXES} axes"),
        (0 in batch, "the batch is empty"),
        (out is not None and out.ndim == 0, "out has no axes"),
        (max(sizes) >= MAX_DIRECT_SIZE, "a size is beyond 2**31"),
    )
    return next((reason for holds, reason in checks if holds), None)


def fused(epilogue: Epilogue) -> list[str]:
    """What is said of an epilogue, if there is one."""
    return [f"fused into the store of C: {str(epilogue).replace(',', ', ')}"] if epilogue else []


def packed_strategy(problem: Gemm, primitives: tuple[Statement, ...]) -> str:
    """What the primitives of a product with packed operands amount to, in words."""
    if not primitives:
        return "nothing to do: a size is 0"
    if any(isinstance(node, TileMatmul) and node.stored is not None for node in primitives):
        return "few rows: panels of the packed operand are read once, several side by side"
    if any(isinstance(node, Pack) and node.stored is not None for node in primitives):
        return "packing: five loops, panels of floats made of the weight's words for each depth block"
    names = " and ".join(name.upper() for name in sorted(problem.packed - {"c"}))
    tiles = {node.destination.buffer for node in primitives if isinstance(node, Pack)}
    if {"a", "b"} <= problem.packed:
        return "mmt4d: five loops around the tiles of both operands, nothing is packed"
    if tiles:
        return f"five loops around the tiles of {names}; the other operand is packed"
    return f"the tiles of {names} one after the other; A in place"


def product_words(state: Compilation, program: Program) -> str:
    """What a path of a product with packed operands does."""
    return packed_strategy(state.problem, tuple(primitives_in(program.body)))


def considered_packed(
    kernel: Kernel, sizes: tuple[int, ...], scalars: Sequence[complex]
) -> tuple[Considered, ...]:
    """The paths of a kernel of packed operands for some sizes and strides."""
    values = dict(zip(PRODUCT_SIZES, sizes, strict=True))
    factors = dict(zip(SCALARS, scalars, strict=True))
    paths = predicted_alternatives(kernel.compilation, values, {}, product_words, factors)
    return tuple(path.considered for path in paths)


def explain_packed(a: Any, b: Any, options: dict[str, Any]) -> Explanation:
    """How a product with a `PackedMatrix` runs; nothing is computed."""
    packed, other = (b, a) if isinstance(b, PackedMatrix) else (a, b)
    if isinstance(other, QuantizedRows):
        subject = f"{other!r} @ {packed!r}"
        return Explanation(subject, "not shown", "not shown for rows of 8-bit integers", (), (), ())
    if options.get("sums") is not None:
        remedy = "omit it with packed operands"
        raise UnsupportedArgument(name="sums", value=shown(options["sums"]), remedy=remedy)
    array = as_array(other, "b" if packed is a else "a")
    along = None if options.get("bias") is None else Along.COLUMN
    route_key = RouteKey(array.dtype, None, along, activation_word(options.get("activation")))
    route = (
        find_route(packed, route_key)
        if packed.form.weights is None
        else weight_route(packed, array, route_key)
    )
    kernel = route.kernel
    first, second = (array.shape, packed.shape) if packed is b else (packed.shape, array.shape)
    shapes = product_shapes(first, second)
    sizes = (shapes.m, shapes.n, shapes.k, shapes.k, 1, shapes.n, 1, shapes.n, 1)
    factors = [real_number(options.get(name, usual), name) for name, usual in (("alpha", 1), ("beta", 0))]
    way = gemm_trace(kernel, sizes, *factors)
    work = shapes.m * shapes.n * shapes.k * int(np.prod(shapes.batch, dtype=np.int64))
    notes = ["an operand is packed", thread_note(work), *fused(kernel.problem.epilogue)]
    if array.dtype != route.operand:
        notes.append(f"the other operand is copied: {array.dtype} to {route.operand}")
    count = int(np.prod(shapes.batch, dtype=np.int64))
    flops = 2 * shapes.m * shapes.n * shapes.k * count
    moved = packed.nbytes + array.nbytes + shapes.m * shapes.n * count * route.result.itemsize
    subject = f"matmul {first} @ {second}, packed: {packed!r}"
    strategy = packed_strategy(kernel.problem, way.primitives)
    decisions = tuple(map(decision_text, way.decisions))
    considered = considered_packed(kernel, sizes, factors)
    return Explanation(
        subject,
        kernel.name,
        strategy,
        decisions,
        tuple(notes),
        figures_text(kernel, flops, moved),
        considered,
    )


def explain_matmul(a: Any, b: Any, /, out: Any = None, **options: Any) -> Explanation:
    """How ``matmul(a, b, out, **options)`` runs; nothing is computed."""
    with limited(options.get("threads")):
        return _explain_matmul(a, b, out, options)


def explain_linear(
    x: Any,
    weight: Any,
    bias: Any = None,
    activation: Any = None,
    *,
    out: Any = None,
    threads: int | None = None,
) -> Explanation:
    """How ``linear(x, weight, bias, activation)`` runs; nothing is computed."""
    words = {"bias": bias, "activation": activation}
    options = {name: value for name, value in words.items() if value is not None}
    packed = isinstance(weight, PackedMatrix)
    weight = weight if packed else as_array(weight, "weight")
    shape = weight.shape[::-1] if packed else weight.shape
    try:
        found = explain_matmul(x, weight if packed else weight.T, out, threads=threads, **options)
    except TilewrightError as error:
        error.rename({"a": "x", "b": "weight"}, b=weight.shape)
        raise
    kind = f", packed: {weight!r}" if packed else ""
    return replace(found, subject=f"linear of {np.shape(x)} by a weight of {shape}{kind}")


def _explain_matmul(a: Any, b: Any, out: Any, options: dict[str, Any]) -> Explanation:
    """The same, while the number of threads is that of the call."""
    if PackedMatrix in (type(a), type(b)):
        return explain_packed(a, b, options)
    given = {name: value for name, value in options.items() if name != "threads"}
    given["activation"] = activation_word(given.get("activation"))
    product = prepare(a, b, out, **given)
    kernel = matmul_kernel(product.types, product.epilogue)
    matrices = product.matrices()
    batch = matrices[2].shape[:-2]
    notes = [*map(str, product.copies), *fused(product.epilogue)]
    if product.types.chosen is not None:
        notes.append(
            f"sums are {product.types.sums}, to which elements are converted as they are read or packed"
        )
    reason = python_reason(product, a, b, out, options)
    notes.append("native entry: no Python runs" if reason is None else f"through Python: {reason}")
    count = int(np.prod(batch, dtype=np.int64))
    subject = f"matmul {np.shape(a)} @ {np.shape(b)} in {product.types.name}"
    if count == 0:
        return Explanation(subject, kernel.name, "nothing to do: the batch is empty", (), tuple(notes), ())
    a_first, b_first, c_first = first_matrices(*matrices)
    transposed, sizes = arranged(kernel, a_first, b_first, c_first)
    if transposed:
        notes.append("computed as the transposed product, whose rows are contiguous")
    if batch:
        notes.append(f"a batch of {count} products in one compiled loop")
    types = product.types
    plain = types.a == types.b == types.c and not product.epilogue
    limits = kernel.largest_exact, kernel.ahead_from
    exact = exact_fit(matrices[0], matrices[1], matrices[2], types.a, *limits) if plain else None
    if exact is not None and (product.alpha, product.beta) == (1.0, 0.0) and (batch or reason is None):
        ahead = ", which prefetches the next product," if exact.shape.ahead else ""
        least = exact.shape.products_to_repay
        notes.append(f"a kernel of exactly these sizes{ahead} after {least:,} such products")
    m, n, k = sizes[:3]
    notes.append(thread_note(m * n * k * count))
    way = gemm_trace(kernel, sizes, product.alpha, product.beta)
    operands = m * k * types.a.size + k * n * types.b.size + m * n * types.c.size * (2 if product.beta else 1)
    flops = 2 * m * n * k * count * (4 if types.is_complex else 1)
    figures = figures_text(kernel, flops, operands * count)
    strategy = strategy_of(kernel.nest, way.primitives)
    decisions = tuple(map(decision_text, way.decisions))
    considered = considered_paths(kernel.problem, kernel.machine, sizes)
    return Explanation(subject, kernel.name, strategy, decisions, tuple(notes), figures, considered)
