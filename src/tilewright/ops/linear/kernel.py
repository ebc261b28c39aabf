"""Kernels of products with packed operands, and which of them multiplies a `PackedMatrix`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np

from tilewright.cached import cached_property
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array, check_operand, data_address, element_strides
from tilewright.calls.promotion import kind_of, no_common_dtype, promoted_dtype
from tilewright.errors import (
    ForeignPacked,
    PackedDtype,
    PackedRole,
    UnsupportedDtype,
)
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.macro.packing import PanelForm, panel_form, weight_lanes
from tilewright.ops.gemm.call import (
    product_types,
)
from tilewright.ops.gemm.epilogue_operands import (
    activation_of,
    matmul_epilogue,
)
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.spec.epilogue import Along, Epilogue
from tilewright.spec.factors import factor
from tilewright.spec.problem import Layout, Operand, ProductTypes, Role
from tilewright.threads.pool import call_team

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


class WeightKernel(GemmKernel):
    """A kernel of a `Gemm` with `weights`: ``kernel(x, packed, c, alpha=1, beta=0)``."""

    def _make_native(self) -> Any:
        return self.__call__

    def __call__(  # type: ignore[override]
        self,
        a: Array,
        b: PackedMatrix,
        c: Array,
        *,
        alpha: complex = 1.0,
        beta: complex = 0.0,
        **operands: Any,
    ) -> Array:
        """c = alpha · a @ b + beta · c and its epilogue, whose operands have their names.

        Raises
        ------
        OperandMismatch : if an operand has another shape, dtype or layout, before c changes.
        ForeignPacked : if the weight's panels have another width.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        acc = self.types.acc
        factors = (factor(alpha, "alpha", acc), factor(beta, "beta", acc))
        places = self.problem.operands
        for operand, array in ((places[0], a), (places[2], c)):
            check_operand(self.name, operand, array)
        if not isinstance(b, PackedMatrix) or b.form.weights != self.problem.weights:
            required = f"a PackedMatrix of {self.problem.weights and self.problem.weights.name}"
            self._refuse(places[1], "form", b, required)
        check_panels(b, self.machine)
        sizes = (*c.shape, a.shape[1])
        for operand, found, required_shape in (
            (places[0], a.shape, (sizes[0], sizes[2])),
            (places[1], b.shape, (sizes[2], sizes[1])),
        ):
            if found != required_shape:
                self._refuse(operand, "shape", found, required_shape)
        if not c.flags.writeable:
            self._refuse(places[2], "writeable =", False, True)
        for operand, array in (
            (places[0], a),
            *((places[1], part) for part in (b.data4d, *b.vectors.values())),
        ):
            if np.may_share_memory(array, c):
                self._refuse(operand, "memory", "shared with c", "separate from c")
        steps = self.step_matrices(c, operands, (sizes[0], sizes[1]), factors)
        function_ready = self.function  # a foreign kernel is refused before scratch is taken
        del function_ready
        with self.pool.block() as scratch:
            self.run_weights(a, b, c, factors, scratch, steps)
        return c

    def run_weights(
        self,
        a: Array,
        b: PackedMatrix,
        c: Array,
        factors: tuple[float, float],
        scratch: int,
        steps: Sequence[Array] = (),
    ) -> None:
        """Run one product of validated arrays; `steps` are the operands of the epilogue."""
        assert self.problem.weights is not None
        vectors = (*(b.vectors[name] for name in self.problem.weights.vectors), *steps)
        self.run_packed([a, b.data4d, c], (*c.shape, a.shape[1]), factors, scratch, vectors)

    def run_packed(
        self,
        arrays: list[Array],
        sizes: tuple[int, ...],
        factors: tuple[float, float],
        scratch: int,
        operands: Sequence[Array] = (),
    ) -> None:
        """Run one product of validated arrays; operands: vectors of the weight, then of the steps."""
        (a, _, c), (m, n, k) = arrays, sizes
        strides = (*element_strides(a), 0, 0, *element_strides(c))
        arrays = [*arrays, *operands]
        with call_team(m * n * k) as team:
            self.function(*map(data_address, arrays), m, n, k, *strides, *factors, scratch, team)


def check_panels(packed: PackedMatrix, machine: Machine) -> None:
    """Refuses panels of another width than the machine's."""
    lanes = weight_lanes(machine)
    if packed.form.panels.lanes != lanes:
        raise ForeignPacked(
            packed=repr(packed),
            found=f"panels of {packed.form.panels.lanes} columns",
            required=f"panels of {lanes}",
            row=machine.isa.name,
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
