"""`matmul` where the second operand is a weight in words."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np

from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array
from tilewright.calls.pieces import contiguous, copy_to
from tilewright.calls.promotion import store
from tilewright.calls.recording import new_array
from tilewright.errors import InvalidChoice, MissingOut, PackedDtype
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.ops.gemm.epilogue_operands import bias_matrix, bias_of, matmul_epilogue
from tilewright.ops.gemm.operands import as_operand, check_out, direct_out, product_shapes
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.linear import kernel as packed_gemm
from tilewright.ops.linear.kernel import PackedGemmKernel, Route, check_panels
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.spec.dtype import BF16, F32, DType
from tilewright.spec.epilogue import Along, Epilogue
from tilewright.spec.factors import factor
from tilewright.spec.problem import Layout
from tilewright.spec.weights import Weights


@cache
def _compiled(
    weights: Weights, types: tuple[DType, DType], epilogue: Epilogue, machine: Machine
) -> PackedGemmKernel:
    a, c = types
    problem = Gemm(dtype=a, out_dtype=c, a=Layout.ROW, c=Layout.ROW, weights=weights, epilogue=epilogue)
    kernel: PackedGemmKernel = kernel_for(problem, machine)
    return kernel


def weight_kernel(weights: Weights, types: tuple[DType, DType], epilogue: Epilogue) -> PackedGemmKernel:
    """The kernel of products with weights of a form on this host: any sizes, rows of A and C contiguous.

    Parameters
    ----------
    types : of A and of C.
    """
    return _compiled(weights, types, epilogue, host_machine())


def _kernel_of(
    packed: PackedMatrix, types: tuple[DType, DType], along: Along | None, activation: str | None
) -> PackedGemmKernel:
    """The kernel of products with a weight, found once for each; for the host as it was at the first use."""
    key = ("weights", types, along, activation)
    found: PackedGemmKernel | None = packed.routes.get(key)
    if found is None:
        assert packed.form.weights is not None
        check_panels(packed, host_machine())
        epilogue = matmul_epilogue(along, activation)
        found = packed.routes[key] = weight_kernel(packed.form.weights, types, epilogue)
    return found


def weight_types(x: Array, packed: PackedMatrix, wanted: np.dtype[Any] | None) -> tuple[DType, DType]:
    """The types that x is taken as and that the kernel stores."""
    native = x.dtype.newbyteorder("=")
    a = BF16 if native == BF16.numpy else F32
    if a is F32 and not np.can_cast(native, np.float32, "safe"):
        raise PackedDtype(found=x.dtype, packed=repr(packed), required=F32.numpy)
    return a, a if wanted is None or wanted == a.numpy else F32


def weight_route(packed: PackedMatrix, x: Array, route_key: packed_gemm.RouteKey) -> Route:
    """The kernel for x and a quantised weight; see `linear.kernel.find_route` for other packed matrices."""
    weights = packed.form.weights
    assert weights is not None
    types = a, c = weight_types(x, packed, route_key.computed)
    kernel = weight_kernel(weights, types, matmul_epilogue(route_key.along, route_key.activation))
    beside = tuple(packed.vectors[name] for name in weights.vectors)
    return Route(kernel, a.numpy, F32.numpy, c.numpy, beside)


class ProductRequest(NamedTuple):
    """The arguments of a product with a quantised weight, without its operands."""

    out: Array | None
    dtype: np.dtype[Any] | None
    alpha: complex
    beta: complex
    bias: Any
    activation: str | None


def matmul(x: Array, packed: PackedMatrix, request: ProductRequest) -> Array:
    """activation(alpha · x @ packed + beta · out + bias): see `tilewright.matmul`.

    bfloat16 is multiplied as such, other types that fit float32 as float32; the result has that type, or
    `dtype`, which may be float32.

    Raises
    ------
    PackedDtype : if float32 cannot represent all values of x's type.
    InvalidChoice : if another result type is requested.
    ForeignPacked : if the weight's panels have another width.
    """
    assert packed.form.weights is not None
    given, asked = (
        request.out,
        request.dtype if request.dtype is not None or request.out is None else request.out.dtype,
    )
    types = a, c = weight_types(x, packed, None if asked is None else asked.newbyteorder("="))
    if request.dtype is not None and request.dtype != c.numpy:
        raise InvalidChoice(name="dtype", found=request.dtype, allowed=f"{a.name}, {F32.name}")
    shapes = product_shapes(x.shape, packed.shape)
    factors = (factor(request.alpha, "alpha", F32), factor(request.beta, "beta", F32))
    if given is None and factors[1] != 0:
        raise MissingOut(function="matmul", beta=request.beta)
    if given is not None:
        check_out(given, shapes.result, c.numpy)
    vectors, along = [], None
    if request.bias is not None:
        vector, along = bias_of(request.bias, shapes.result, (x.ndim == 1, False))
        vectors = [vector]
    kernel = _kernel_of(packed, types, along, request.activation)
    avoid = [] if given is None else [given]
    vectors = [bias_matrix(vector, kernel.types, c.numpy, avoid) for vector in vectors]
    operand = contiguous(as_operand(x, a.numpy, "a"))
    inputs = (x, packed.data4d, *packed.vectors.values())
    direct = given is not None and given.flags.c_contiguous
    direct = direct and all(direct_out(cast("Array", given), c.numpy, x, part) for part in inputs)
    target = cast("Array", given) if direct else new_array(shapes.result, c.numpy)
    if factors[1] != 0 and not direct:
        copy_to(target, cast("Array", given))
    if target.size:
        # One element of a bias for each row: the rows of a batch are not merged.
        m = shapes.m if along is Along.ROW else target.size // shapes.n
        results = target.reshape(-1, m, shapes.n)
        rows = operand.reshape(len(results), m, shapes.k)
        beside = (*(packed.vectors[name] for name in packed.form.weights.vectors), *vectors)
        with kernel.pool.block() as scratch:
            for left, result in zip(rows, results, strict=True):
                sizes = (m, shapes.n, shapes.k)
                kernel.run_packed([left, packed.data4d, result], sizes, factors, scratch, beside)
    if given is None:
        return target
    if not direct:
        store(target, given)
    return given
