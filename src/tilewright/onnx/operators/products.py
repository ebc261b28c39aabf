"""Products of matrices."""

from __future__ import annotations

import numpy as np

from tilewright.graph.sizes import size_of
from tilewright.graph.value import Value
from tilewright.onnx.call import NodeCall, NotSupported, OperatorTable, Results, is_kind
from tilewright.ops.quantized.public import pack_quantized

OPERATORS = OperatorTable()


@OPERATORS.add("MatMul")
def matmul(call: NodeCall) -> Results:
    """a @ b."""
    return call.graph.matmul(call.value(0), call.value(1))


def _swapped(call: NodeCall, x: Value) -> Value:
    order = list(range(x.ndim))
    order[-2:] = order[:-3:-1]
    return call.graph.transpose(x, order)


@OPERATORS.add("Gemm")
def gemm(call: NodeCall) -> Results:
    """alpha · a @ b + beta · c, either factor transposed."""
    a, b, c = call.value(0), call.value(1), call.optional(2)
    if a.ndim != 2 or b.ndim != 2:
        raise NotSupported("factors need two axes")
    alpha, beta = float(call.attribute("alpha", 1.0)), float(call.attribute("beta", 1.0))
    folded = alpha != 1 and is_kind(b, "f") and call.graph.known(b) is not None
    if folded:  # the factor of a constant weight is multiplied once
        b, alpha = b * call.graph.number(b, alpha), 1.0
    a = call.graph.transpose(a) if call.flag("transA") else a
    b = call.graph.transpose(b) if call.flag("transB") else b
    found = call.graph.matmul(a, b, alpha=alpha)
    if c is None or beta == 0:
        return found
    return found + (c if beta == 1 else c * call.graph.number(c, beta))


@OPERATORS.add("com.microsoft:FusedMatMul")
def fused_matmul(call: NodeCall) -> Results:
    """alpha · a @ b, either factor transposed."""
    a, b = call.value(0), call.value(1)
    a = _swapped(call, a) if call.flag("transA") else a
    b = _swapped(call, b) if call.flag("transB") else b
    if call.flag("transBatchA") or call.flag("transBatchB"):
        raise NotSupported("exchanged batch axes")
    return call.graph.matmul(a, b, alpha=float(call.attribute("alpha", 1.0)))


@OPERATORS.add("Einsum")
def einsum(call: NodeCall) -> Results:
    """A contraction; an ellipsis becomes labels of its own."""
    equation, values = str(call.attribute("equation", "")).replace(" ", ""), call.values()
    given, arrow, result = equation.partition("->")
    terms = given.split(",")
    if len(terms) != len(values):
        raise NotSupported(f"{len(terms)} terms for {len(values)} operands")
    free = [chr(code) for code in range(ord("A"), ord("z") + 1) if chr(code).isalpha()]
    free = [letter for letter in free if letter not in equation]
    depths = [x.ndim - len(term.replace("...", "")) for x, term in zip(values, terms, strict=True)]
    depth = max((one for one, term in zip(depths, terms, strict=True) if "..." in term), default=0)
    if depth < 0 or depth > len(free):
        raise NotSupported(f"{equation!r} does not fit its operands")
    labels = "".join(free[:depth])
    if not arrow:
        letters = given.replace(",", "").replace("...", "")
        result = "..." * ("..." in given) + "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    operands, spelled = [], []
    for x, term, own in zip(values, terms, depths, strict=True):
        wide = labels[len(labels) - own :] if "..." in term else ""
        written = term.replace("...", wide)
        kept = [at for at, label in enumerate(written) if not (label in wide and x.shape[at] == size_of(1))]
        operands.append(call.graph.reshape(x, [x.shape[at] for at in kept]))
        spelled.append("".join(written[at] for at in kept))
    used = "".join(spelled)
    target = result.replace("...", labels)
    present = "".join(label for label in target if label in used)
    found = call.graph.einsum(f"{','.join(spelled)}->{present}", *operands)
    sizes = iter(found.shape)
    return call.graph.reshape(found, [next(sizes) if label in used else size_of(1) for label in target])


# --- integers ---------------------------------------------------------------------------------------


@OPERATORS.add("MatMulInteger")
def matmul_integer(call: NodeCall) -> Results:
    """(a - its zero point) @ (b - its zero point), in int32."""
    return call.graph.matmul_integer(call.value(0), call.value(1), call.optional(2), call.optional(3))


@OPERATORS.add("QLinearMatMul")
def quantised_matmul(call: NodeCall) -> Results:
    """The product of two quantised matrices, quantised."""
    g = call.graph
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = (call.value(number) for number in range(8))
    if not (a.dtype.itemsize == b.dtype.itemsize == 1 and is_kind(a, "iu") and is_kind(b, "iu")):
        raise NotSupported(f"factors of {a.dtype} and {b.dtype}")
    if is_vector(b_zero) != is_vector(b_scale):
        raise NotSupported("a scale and a zero point of b need one shape")
    sums = g.matmul_integer(a, b, a_zero, b_zero)
    by_row = g.reshape(a_scale, (-1, 1)) if is_vector(a_scale) else a_scale
    factor = g.cast(by_row, "f32") * g.cast(b_scale, "f32") / g.cast(scale, "f32")
    return quantised(call, g.cast(sums, "f32") * factor, zero)


def is_vector(x: Value) -> bool:
    """Whether a scale has more than one element."""
    return x.ndim == 1 and x.shape[0].constant != 1


def quantised(call: NodeCall, scaled: Value, zero: Value) -> Value:
    """Rounded floats plus a zero point, limited to the zero point's type."""
    g, limits = call.graph, np.iinfo(zero.dtype)
    moved = g.unary("rint", scaled) + g.cast(zero, scaled.dtype)
    return g.cast(g.clipped(moved, g.number(moved, limits.min), g.number(moved, limits.max)), zero.dtype)


@OPERATORS.add("com.microsoft:MatMulNBits")
def matmul_of_few_bits(call: NodeCall) -> Results:
    """x @ (a weight of 4 or 8 bits with scales by blocks of its depth)ᵀ + bias."""
    k, n, group = (call.integer(name) for name in ("K", "N", "block_size"))
    bits = call.attribute("bits", 4)
    call.ignore("accuracy_level", "weight_prepacked")
    if bits not in (4, 8):
        raise NotSupported(f"{bits} bits")
    if k % group:
        raise NotSupported(f"a depth of {k} in blocks of {group}")
    if call.has(4):
        raise NotSupported("input 4 (g_idx)")
    blocks = k // group
    q = _unpacked(call.array(1), bits).reshape(n, -1)[:, :k].T
    scales = call.array(2).reshape(n, blocks).T.astype(np.float32)
    zeros = None
    if call.has(3):
        given = call.array(3)
        if given.dtype != np.uint8:
            raise NotSupported("zero points that are floats")
        zeros = _unpacked(given.reshape(n, -1), bits)[:, :blocks].T
    weight = pack_quantized(
        np.ascontiguousarray(q),
        scales,
        None if zeros is None else np.ascontiguousarray(zeros),
        bits=bits,
        group=group,
    )
    return call.graph.linear(call.value(0), weight, call.optional(5))


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Bytes as elements; of 4 bits the low half comes first."""
    if bits == 8:
        return packed
    halves = np.stack([packed & 15, packed >> 4], axis=-1)
    return halves.reshape(*packed.shape[:-1], -1)
