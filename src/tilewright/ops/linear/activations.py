"""Quantised activations: rows of 8-bit integers with scales, and their products with weights of 8 bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.calls.pieces import contiguous
from tilewright.calls.promotion import store
from tilewright.calls.recording import constant, new_array, numpy_call, repeatable
from tilewright.calls.repeated import repeated
from tilewright.errors import InvalidChoice, InvalidOperand, QuantisedWeight, ScalarOperand, ScaleShape, shown
from tilewright.machine.host import host_machine
from tilewright.macro.packing import panel_form
from tilewright.ops.gemm.epilogue_operands import bias_matrix, bias_of
from tilewright.ops.gemm.operands import check_out, direct_out, product_shapes
from tilewright.ops.linear.kernel import PackedGemmKernel, packed_kernel
from tilewright.ops.packing.call import packing_kernel
from tilewright.ops.packing.matrix import PackedMatrix, aligned_empty
from tilewright.ops.packing.words import elements_of
from tilewright.ops.quantized.rows import quantised_rows, type_to_quantise
from tilewright.recorder import Grouped, unrecorded
from tilewright.records import dataclass
from tilewright.spec.arguments import check_numbers
from tilewright.spec.dtype import BF16, F32, I8, I32, U8, DType
from tilewright.spec.epilogue import Activation, Along, Bias, Epilogue, Scale, Step
from tilewright.spec.problem import ProductTypes, Role
from tilewright.spec.records import set_fields
from tilewright.spec.weights import Elements, Weights
from tilewright.typing import ArrayLike

#: Offset of a weight's unsigned elements from their signed values.
_MIDDLE = Elements.I8.middle


@dataclass(frozen=True, eq=False, slots=True)
class QuantizedRows(Grouped):
    """Rows of 8-bit integers with one scale each: they represent scales[..., None] * q.

    Made by `tilewright.quantize_rows`, or from existing integers and scales.

    Attributes
    ----------
    q : int8, shape (..., k), contiguous.
    scales : float32, shape (...). NaN makes every result of its row NaN.
    sums : int32, shape (...): the sums of the rows of q, computed by default.

    Raises
    ------
    InvalidOperand, ScaleShape

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> rows = tw.quantize_rows(np.array([[127.0, -63.5, 2.0]], np.float32))
    >>> rows.q, rows.scales
    (array([[127, -64,   2]], dtype=int8), array([1.], dtype=float32))
    """

    q: Array
    scales: Array
    sums: Array | None = None

    def __post_init__(self) -> None:
        q = as_array(self.q, "q")
        if q.dtype != np.int8 or q.ndim < 1:
            reason = f"it is {q.dtype} of {q.ndim} dimensions, not int8 of at least one"
            raise InvalidOperand(name="q", reason=reason)
        scales = _per_row(self.scales, "scales", q.shape[:-1], np.float32)
        sums = (
            np.asarray(q.sum(axis=-1, dtype=np.int32))
            if self.sums is None
            else _per_row(self.sums, "sums", q.shape[:-1], np.int32)
        )
        set_fields(self, q=np.ascontiguousarray(q), scales=scales, sums=sums)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that the rows represent."""
        return self.q.shape

    def __repr__(self) -> str:
        return f"QuantizedRows({'x'.join(map(str, self.shape))}, int8, one scale a row)"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("quantised rows become an array by a multiplication")
        found = self.q * self.scales[..., np.newaxis]
        return found if dtype is None else found.astype(dtype)


def _per_row(value: Any, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """An array with one number for each row of q."""
    found = check_numbers(as_array(value, name), name)
    if found.shape != shape:
        raise ScaleShape(name=name, found=found.shape, required=shape, each="row of q")
    return np.asarray(found, dtype, order="C")


@repeated
def quantize_rows(x: ArrayLike) -> QuantizedRows:
    """Quantise activations to 8-bit integers with one scale per row, for products with 8-bit weights.

    q = x / s rounded to nearest, ties to even; s = max|x| / 127 of the row in float32, 1 where that is 0.
    A row that holds NaN or an infinity gets the scale NaN (and q = 0), so that all of its results are NaN.

    Parameters
    ----------
    x : array_like
        Shape (..., k), float32, float16 or bfloat16; anything else is converted to float32.

    Returns
    -------
    QuantizedRows
        `linear` and `matmul` take it as their first operand, with ``quantize_weights(w, bits=8)``: the sums
        of integers are exact and become floats once: float32, or bfloat16 by `dtype` or `out`.

    Raises
    ------
    InvalidOperand

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> x, w = np.ones((2, 64), np.float32), np.ones((64, 3), np.float32)
    >>> tw.linear(tw.quantize_rows(x), tw.quantize_weights(w)).round(3)
    array([[64., 64., 64.],
           [64., 64., 64.]], dtype=float32)
    """
    array = as_array(x, "x")
    if not array.ndim:
        raise ScalarOperand(name="x")
    dtype = type_to_quantise(array.dtype)
    if dtype is None:
        raise InvalidOperand(name="x", reason=f"its dtype {array.dtype} is not a float type")
    given = contiguous(array, dtype.numpy)
    leading, k = given.shape[:-1], given.shape[-1]
    found = quantised_rows(given.reshape(math.prod(leading), k), dtype)
    repeatable()
    return QuantizedRows(found.q.reshape(array.shape), *(part.reshape(leading) for part in found[1:]))


def _steps(along: Along | None, activation: str | None) -> Epilogue:
    """The epilogue of sums of q · u: subtract the middle of u, scale, add a bias, apply an activation."""
    steps: list[Step] = [Bias(Along.ROW, I32), Scale(Along.ROW, F32), Scale(Along.COLUMN, F32)]
    if along is not None:
        steps.append(Bias(along, F32))
    return Epilogue(steps if activation is None else [*steps, Activation(activation)])


def _tiles(packed: PackedMatrix) -> Array:
    """The unsigned elements of a weight in the tiles of the host's int8 by uint8 product.

    On most machines these are the weight's own bytes; otherwise they are packed once and cached with it.
    """
    form = panel_form(ProductTypes.parse(I8, U8, I32), Role.B, host_machine())
    if form == packed.form.panels:
        return packed.data4d
    kept = packed.routes.get(form)
    if kept is None:
        kernel = packing_kernel(Role.B, U8, I8, host_machine())
        lanes, depth = Role.B.lanes_and_depth(packed.shape)
        data = aligned_empty(form.shape(lanes, depth), form.storage.cell.numpy)
        with unrecorded():
            kernel.run(contiguous(elements_of(packed), np.dtype(np.uint8)), data)
        kept = packed.routes.setdefault(form, data)  # machine code has the address of the first one
    tiles: Array = kept
    return tiles


def _route(
    packed: PackedMatrix, c: DType, along: Along | None, activation: str | None
) -> tuple[PackedGemmKernel, Array, Array]:
    """The kernel, the weight's tiles and its scales (1, n), found once for each weight."""
    key = ("rows", c, along, activation)
    found: tuple[PackedGemmKernel, Array, Array] | None = packed.routes.get(key)
    if found is None:
        epilogue = _steps(along, activation)
        kernel = packed_kernel(ProductTypes.parse(I8, U8, c, epilogue=epilogue), Role.B, epilogue)
        columns = packed.vectors["scales"].reshape(1, -1)[:, : packed.shape[1]]
        found = packed.routes.setdefault(key, (kernel, _tiles(packed), columns))
    return found


def matmul(
    x: QuantizedRows,
    packed: Any,
    out: Array | None,
    *,
    dtype: np.dtype[Any] | None,
    bias: Any,
    activation: str | None,
) -> Array:
    """activation(x @ packed + bias): exact sums of integers, scaled and rounded once; see `tw.matmul`.

    All leading axes are fused: x is one tall matrix of rows.

    Raises
    ------
    QuantisedWeight : unless the weight has 8 bits, one scale per column and no zero points.
    InvalidChoice : if the requested result type is neither float32 nor bfloat16.
    """
    if not isinstance(packed, PackedMatrix) or packed.form.weights != Weights(Elements.I8):
        raise QuantisedWeight(
            found=shown(packed) if isinstance(packed, PackedMatrix) else type(packed).__name__
        )
    if dtype is not None and dtype not in (F32.numpy, BF16.numpy):
        raise InvalidChoice(name="dtype", found=dtype, allowed="f32, bf16")
    wanted = dtype if dtype is not None or out is None else out.dtype
    c = BF16 if wanted is not None and wanted == BF16.numpy else F32
    shapes = product_shapes(x.shape, packed.shape)
    if out is not None:
        check_out(out, shapes.result, c.numpy)
    vectors, along = [], None
    if bias is not None:
        vector, along = bias_of(bias, shapes.result, (x.q.ndim == 1, False))
        if along is Along.ROW:  # an element for each row of the last two axes
            vector = np.broadcast_to(vector[:, 0], shapes.result[:-1]).reshape(-1, 1)
        vectors = [vector]
    kernel, tiles, columns = _route(packed, c, along, activation)
    if tiles is not packed.data4d:
        constant(tiles)
    vectors = [bias_matrix(v, ProductTypes.parse(F32), np.dtype(np.float32), []) for v in vectors]
    direct = out is not None and direct_out(out, c.numpy, x.q, packed.data4d)
    direct = direct and out is not None and (out.ndim == 2 or out.flags.c_contiguous)
    target = out if direct and out is not None else new_array(shapes.result, c.numpy)
    if target.size:
        assert x.sums is not None
        offsets = new_array((x.sums.size, 1), np.int32)
        numpy_call(np.multiply, x.sums.reshape(-1, 1), np.int32(-_MIDDLE), offsets)
        steps = (offsets, x.scales.reshape(-1, 1), columns, *vectors)
        sizes = (len(offsets), shapes.n, shapes.k)
        rows = x.q.reshape(len(offsets), shapes.k)
        results = target if target.ndim == 2 else target.reshape(len(offsets), shapes.n)
        with kernel.pool.block() as scratch:
            kernel.run_packed([rows, tiles, results], sizes, (1, 0), scratch, steps)
    if out is None:
        return target
    if not direct:
        store(target, out)
    return out
