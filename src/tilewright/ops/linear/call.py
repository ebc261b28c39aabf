"""Products with packed operands: kernels, and `matmul` where an operand is a `PackedMatrix`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import DTypeLike

from tilewright.cached import cached_property
from tilewright.calls.batch import batch_function, merge_axes, outer_offsets
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array, check_operand, data_address, element_strides
from tilewright.calls.promotion import kind_of, no_common_dtype, promoted_dtype, store
from tilewright.errors import (
    ForeignPacked,
    MissingOut,
    PackedDtype,
    PackedRole,
    UnsupportedArgument,
    UnsupportedDtype,
)
from tilewright.machine.host import host_machine
from tilewright.macro.packing import PanelForm, panel_form
from tilewright.ops.gemm.call import (
    as_operand,
    check_array,
    check_operand_cast,
    check_out,
    convert,
    direct_out,
    merge_rows,
    product_shapes,
    product_types,
    result_dtype,
    wanted_dtype,
)
from tilewright.ops.gemm.epilogue_operands import (
    activation_of,
    activation_word,
    bias_matrix,
    bias_of,
    matmul_epilogue,
)
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.preparing import importing
from tilewright.spec.arguments import check_number
from tilewright.spec.epilogue import Along, Epilogue
from tilewright.spec.factors import factor
from tilewright.spec.problem import Layout, Operand, ProductTypes, Role
from tilewright.threads.pool import call_team

if TYPE_CHECKING:
    from tilewright.ops.linear.quantized import WeightKernel

#: Axes of A, B and C by name.
_AXES = {"a": "mk", "b": "kn", "c": "mn"}


class PackedGemmKernel(GemmKernel):
    """A kernel of a `Gemm` with operands in packed layout: ``kernel(a, b, c, alpha=1, beta=0)``.

    A packed operand is a `PackedMatrix` or its tiles, a C-contiguous array of four axes, of which C must be
    one. A size known only from tiles is that of whole tiles.
    """

    @cached_property
    def forms(self) -> dict[str, PanelForm]:
        """The tiles of each packed operand."""
        types, blocking = self.types, self.blocking
        forms = {
            "a": panel_form(types, Role.A, self.machine),
            "b": panel_form(types, Role.B, self.machine),
            # Tiles of C: rows are lanes, all columns of a tile are adjacent.
            "c": PanelForm(types.c.real, blocking.mr, blocking.nr, blocking.nr),
        }
        return {name: forms[name] for name in self.problem.packed}

    def _make_native(self) -> Any:
        return self.__call__

    def __call__(
        self, a: Any, b: Any, c: Array, *, alpha: complex = 1.0, beta: complex = 0.0, **operands: Any
    ) -> Array:
        """c = alpha · a @ b + beta · c and its epilogue on operands of the problem's layouts.

        Raises
        ------
        OperandMismatch : if an operand has another shape, dtype or layout, before c changes.
        ForeignPacked : if a packed matrix is in other tiles.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        acc = self.types.acc
        factors = (factor(alpha, "alpha", acc), factor(beta, "beta", acc))
        m, n, k = self._sizes_of((a, b, c))
        arrays = [part.data4d if isinstance(part, PackedMatrix) else part for part in (a, b, c)]
        if not c.flags.writeable:
            self._refuse(self.problem.operands[2], "writeable =", False, True)
        for operand, array in zip(self.problem.operands[:2], arrays[:2], strict=True):
            if np.may_share_memory(array, c):
                self._refuse(operand, "memory", "shared with c", "separate from c")
        steps = self.step_matrices(c, operands, (m, n), factors)
        with self.pool.block() as scratch:
            self.run_packed(arrays, (m, n, k), factors, scratch, steps)
        return c

    def run_packed(
        self,
        arrays: list[Array],
        sizes: tuple[int, int, int],
        factors: tuple[float, float],
        scratch: int,
        operands: Sequence[Array] = (),
    ) -> None:
        """Run one product of validated arrays; packed ones are passed as their tiles.

        Operands of the epilogue are matrices: see `steps.step_matrices`.
        """
        strides: list[int] = []
        for array in arrays:
            strides += element_strides(array) if array.ndim == 2 else (0, 0)
        pointers = map(data_address, (*arrays, *operands))
        strides += self.residual_strides(operands)
        with call_team(math.prod(sizes)) as team:
            self.function(*pointers, *sizes, *strides, *factors, scratch, team)

    def _sizes_of(self, operands: tuple[Any, Any, Any]) -> tuple[int, int, int]:
        """m, n and k, which all operands agree on."""
        problem, known = self.problem, {}
        for name in "mnk":
            if getattr(problem, name) is not None:
                known[name] = getattr(problem, name)

        def learn(operand: Operand, shape: tuple[int, ...]) -> None:
            for axis, found in zip(_AXES[operand.name], shape, strict=True):
                if known.setdefault(axis, found) != found:
                    self._refuse(operand, f"{axis} =", found, known[axis])

        tiles = []
        for operand, given in zip(problem.operands, operands, strict=True):
            if operand.layout is not Layout.PACKED:
                check_operand(self.name, operand, given)
                learn(operand, given.shape)
            elif isinstance(given, PackedMatrix):
                self._check_matrix(operand, given)
                learn(operand, given.shape)
            else:
                tiles.append((operand, given))
        for operand, given in tiles:
            self._check_tiles(operand, given)
            form = self.forms[operand.name]
            across, deep = form.parts.spread
            whole = given.shape[0] * form.lanes // across, given.shape[1] * form.kr // deep
            axes = _AXES[operand.name] if operand.name != "b" else "nk"
            for axis, size in zip(axes, whole, strict=True):
                known.setdefault(axis, size)
        for operand, given in tiles:
            lanes, depth = (known[axis] for axis in (_AXES[operand.name] if operand.name != "b" else "nk"))
            required = self.forms[operand.name].shape(lanes, depth)
            if given.shape != required:
                self._refuse(operand, "shape", given.shape, required)
        return known["m"], known["n"], known["k"]

    def _check_matrix(self, operand: Operand, packed: PackedMatrix) -> None:
        if operand.name == "c":
            self._refuse(operand, "type", "PackedMatrix, which is immutable", "an array of four axes")
        if packed.role != operand.name:
            raise PackedRole(found=packed.role, required=operand.name)
        form = self.forms[operand.name]
        if packed.form.panels != form:
            raise _foreign(packed, form, self.machine.isa.name)
        if packed.form.dtype != operand.dtype:
            self._refuse(operand, "dtype", packed.form.dtype, operand.dtype)

    def _check_tiles(self, operand: Operand, tiles: Any) -> None:
        form = self.forms[operand.name]
        if not isinstance(tiles, np.ndarray):
            self._refuse(operand, "type", type(tiles).__name__, "PackedMatrix or numpy.ndarray")
        for what, found, required in (
            ("dtype", tiles.dtype, form.storage.numpy),
            ("dimensions", tiles.ndim, 4),
            ("tiles", tiles.shape[-2:], (form.lanes, form.kr)),
            ("contiguous, aligned =", (tiles.flags.c_contiguous, tiles.flags.aligned), (True, True)),
        ):
            if found != required:
                self._refuse(operand, what, found, required)


def _foreign(packed: PackedMatrix, form: PanelForm, row: str) -> ForeignPacked:
    stored = packed.form.panels
    return ForeignPacked(
        packed=repr(packed),
        found=f"tiles {stored.lanes}x{stored.kr} of {stored.storage}",
        required=f"{form.lanes}x{form.kr} of {form.storage}",
        row=row,
    )


@cache
def packed_kernel(types: ProductTypes, role: Role, epilogue: Epilogue) -> PackedGemmKernel:
    """The kernel of products with one packed operand on this host: any sizes, any strides of the others."""
    layouts: dict[str, Any] = {
        name: Layout.PACKED if name == role.value else Layout.STRIDED for name in "abc"
    }
    kinds: dict[str, Any] = {"dtype": types.a, "b_dtype": types.b, "out_dtype": types.c}
    kernel: PackedGemmKernel = kernel_for(Gemm(**kinds, **layouts, epilogue=epilogue))
    return kernel


class Route(NamedTuple):
    """How products of one type with a packed matrix run.

    Attributes
    ----------
    kernel : the kernel.
    operand, sums, result : element types that the other operand and a bias are converted to, and of C.
    beside : arrays that the kernel takes in addition to the tiles.
    """

    kernel: PackedGemmKernel | WeightKernel
    operand: np.dtype[Any]
    sums: np.dtype[Any]
    result: np.dtype[Any]
    beside: tuple[Array, ...] = ()


class Wish(NamedTuple):
    """A requested product with a packed matrix: the keys of `PackedMatrix.routes`.

    Attributes
    ----------
    other : element type of the other operand.
    computed : element type of the result; None: NumPy's promotion.
    along, activation : the axis of a bias and the activation after it, or None.
    """

    other: np.dtype[Any]
    computed: np.dtype[Any] | None = None
    along: Along | None = None
    activation: str | None = None


def find_route(packed: PackedMatrix, wish: Wish) -> Route:
    """The kernel for the product of an operand of some type with a packed one.

    Raises
    ------
    PackedDtype : if the type that the matrix was packed for cannot hold all values of the operand's type.
    ForeignPacked : if this host uses other tiles.
    StepDtype, InvalidChoice : if an activation is undefined for the sums' type, or unknown.
    """
    route = cast("Route | None", packed.routes.get(wish))
    if route is None:  # finding one takes longer than small products do
        route = packed.routes[wish] = _find_route(packed, wish)
    return route


def _find_route(packed: PackedMatrix, wish: Wish) -> Route:
    form, other, computed = packed.form, wish.other, wish.computed
    role, fallback = form.role, form.other.numpy
    native = other.newbyteorder("=")
    for kind in (native, fallback):
        if kind == fallback and not np.can_cast(native, fallback, "safe"):
            raise PackedDtype(found=other, packed=repr(packed), required=fallback)
        try:
            result = promoted_dtype(kind, packed.dtype) if computed is None else computed
            if result is None:
                raise no_common_dtype(kind, packed.dtype)
            activation = activation_of(wish.activation, result)
            signed = activation is not None and kind_of(result) == "i"
            types = _types(role, kind, packed.dtype, result, signed=signed)
        except UnsupportedDtype:
            if kind == fallback:
                raise
            continue
        stored = types.a if role is Role.A else types.b
        panels = panel_form(types, role, host_machine())
        if stored == form.dtype and panels == form.panels:
            operand = types.b if role is Role.A else types.a
            epilogue = matmul_epilogue(wish.along, activation)
            epilogue.typed(types.sums, types.c)  # refuses steps without a meaning on the sums
            kernel = packed_kernel(types, role, epilogue)
            return Route(kernel, operand.numpy, types.sums.numpy, types.c.numpy)
    raise _foreign(packed, panels, host_machine().isa.name)


def _types(
    role: Role, other: np.dtype[Any], packed: np.dtype[Any], result: np.dtype[Any], *, signed: bool
) -> ProductTypes:
    a, b = (packed, other) if role is Role.A else (other, packed)
    return product_types(a, b, result, signed=signed)


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    dtype: DTypeLike | None = None,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    bias: Any = None,
    activation: str | None = None,
) -> Array:
    """alpha · a @ b + beta · out, where a or b is a `PackedMatrix`; see `tilewright.matmul`."""
    activation = activation_word(activation)
    alpha, beta = check_number(alpha, "alpha"), check_number(beta, "beta")
    dtype = None if dtype is None else wanted_dtype(dtype)
    if out is None and dtype is None and alpha == 1 and beta == 0:
        product = _plain(a, b, bias, activation)
        if product is not None:
            return product
    with importing:
        from tilewright.ops.linear import activations as rows

    if isinstance(a, rows.QuantizedRows):
        for name, value, usual in (("alpha", alpha, 1), ("beta", beta, 0)):
            if value != usual:
                raise UnsupportedArgument(name=name, value=value, remedy=f"pass {usual} with quantised rows")
        given = None if out is None else check_array(out)
        return rows.matmul(a, b, given, dtype=dtype, bias=bias, activation=activation)
    if isinstance(a, PackedMatrix) and isinstance(b, PackedMatrix):
        b = np.asarray(b)  # one of them is unpacked: weights are one side of a product
    packed, other = (b, a) if isinstance(b, PackedMatrix) else (a, b)
    side = "b" if packed is b else "a"
    if packed.role != side:
        raise PackedRole(found=packed.role, required=side)
    array = convert(other, "a" if side == "b" else "b")
    if packed.form.weights is not None:
        with importing:
            from tilewright.ops.linear import quantized as weights

        found = None if out is None else check_array(out)
        return weights.matmul(array, packed, weights.Wish(found, dtype, alpha, beta, bias, activation))
    given = None if out is None else check_array(out)
    first, second = (array.shape, packed.shape) if side == "b" else (packed.shape, array.shape)
    shapes = product_shapes(first, second)
    wish = Wish(array.dtype, None, None, activation)
    if dtype is not None or given is not None:
        wish = wish._replace(computed=result_dtype(array, np.empty(0, packed.dtype), given, dtype))
    vectors = []
    if bias is not None:
        vector, along = bias_of(bias, shapes.result, (len(first) == 1, len(second) == 1))
        vectors.append(vector)
        wish = wish._replace(along=along)
    route = find_route(packed, wish)
    kernel, acc = cast("PackedGemmKernel", route.kernel), route.kernel.types.acc
    alpha, beta = factor(alpha, "alpha", acc), factor(beta, "beta", acc)
    if given is None and beta != 0:
        raise MissingOut(function="matmul", beta=beta)
    if given is not None:
        check_out(given, shapes.result, route.result)
    name = "a" if side == "b" else "b"
    check_operand_cast(array, route.result, name)
    operand = as_operand(array, route.operand, name)
    avoid = [] if given is None else [given]
    vectors = [bias_matrix(vector, kernel.types, route.result, avoid) for vector in vectors]
    direct = given is not None and direct_out(given, route.result, operand, packed.data4d)
    target = cast("Array", given) if direct else np.empty(shapes.result, route.result)
    if beta != 0 and not direct:
        target[...] = given
    by_row = any(vector.shape[1] == 1 and vector.shape[0] != 1 for vector in vectors)
    matrices = _matrices(operand, target, side, merge=not by_row)
    with kernel.pool.block() as scratch:
        call = _Call(packed, side, (shapes.m, shapes.n, shapes.k), (alpha, beta), vectors)
        _run(kernel, call, matrices, scratch)
    if given is None:
        return cast("Array", target[()])
    if not direct:
        store(target, given)
    return given


def _plain(a: Any, b: Any, bias: Any, activation: str | None) -> Array | None:
    """A contiguous matrix times a packed one, whose route is known: without anything else that takes time."""
    if type(a) is not np.ndarray or type(b) is not PackedMatrix:
        return None
    along = None if bias is None else Along.COLUMN
    route = cast("Route | None", b.routes.get((a.dtype, None, along, activation)))
    if route is None or a.dtype != route.operand or a.ndim != 2 or not a.flags.carray:
        return None
    (m, k), (depth, n) = a.shape, b.shape
    if k != depth or b.form.role is not Role.B:
        return None
    vectors: tuple[Array, ...] = ()
    if bias is not None:
        fits = type(bias) is np.ndarray and bias.shape == (n,) and bias.dtype == route.sums
        if not fits or not bias.flags.carray:
            return None
        vectors = (bias[np.newaxis],)
    c = np.empty((m, n), route.result)
    with route.kernel.pool.block() as scratch:
        route.kernel.run_packed([a, b.data4d, c], (m, n, k), (1, 0), scratch, (*route.beside, *vectors))
    return c


def _matrices(operand: Array, target: Array, side: str, *, merge: bool) -> tuple[Array, Array]:
    """The other operand and C with two axes or more, rows of a batch merged where they can be."""
    if operand.ndim == 1 and side == "b":
        return operand[np.newaxis, :], target[..., np.newaxis, :]
    if operand.ndim == 1:
        return operand[:, np.newaxis], target[..., np.newaxis]
    if side == "b" and operand.ndim > 2 and merge:
        tall, _, c = merge_rows(operand, np.empty((0, 0)), target)
        return tall, c
    return operand, target


class _Call(NamedTuple):
    """The arguments shared by every product of a batch."""

    packed: PackedMatrix
    side: str
    sizes: tuple[int, int, int]
    factors: tuple[float, float]
    vectors: list[Array]

    def arrays(self, other: Array, c: Array) -> list[Array]:
        """A, B and C of one product."""
        tiles = self.packed.data4d
        return [other, tiles, c] if self.side == "b" else [tiles, other, c]


def _run(kernel: PackedGemmKernel, call: _Call, matrices: tuple[Array, Array], scratch: int) -> None:
    """Every product of a batch, whose longest axis runs in compiled code."""
    other, c = matrices
    batch, sizes = c.shape[:-2], call.sizes
    if 0 in c.shape:
        return
    if call.side == "b":
        sizes = (c.shape[-2], *sizes[1:])  # rows of a batch are merged
    axes = merge_axes(batch, _steps(call, other, c))
    if not axes or call.vectors or kernel.problem.epilogue:  # the compiled loop has no place for vectors
        for index in np.ndindex(batch):
            arrays = call.arrays(other[index], c[index])
            kernel.run_packed(arrays, sizes, call.factors, scratch, call.vectors)
        return
    first = (0,) * len(batch)
    arrays = call.arrays(other[first], c[first])
    longest = max(axes, key=lambda axis: axis.length)
    others = [axis for axis in axes if axis is not longest]
    strides = [s for array in arrays for s in (element_strides(array) if array.ndim == 2 else (0, 0))]
    pointers = [data_address(array) for array in arrays]
    run, step = batch_function(kernel.types.acc), kernel.scratch_step
    with call_team(math.prod(sizes) * longest.length) as team:
        rest = (*sizes, *strides, *call.factors, scratch, step, kernel.scratch_parts, team)
        for offsets in outer_offsets(others):
            places = (pointer + offset for pointer, offset in zip(pointers, offsets, strict=True))
            run(kernel.address, longest.length, *longest.steps, *places, *rest)


def _steps(call: _Call, other: Array, c: Array) -> list[tuple[int, ...]]:
    """Bytes from one product of a batch to the next along each axis, in A, B and C."""
    still = (0,) * (c.ndim - 2)
    pair = [other.strides[:-2], still] if call.side == "b" else [still, other.strides[:-2]]
    return [*pair, c.strides[:-2]]
