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
from tilewright.calls.recording import repeatable
from tilewright.calls.repeated import repeated_method
from tilewright.errors import (
    ForeignPacked,
    InvalidChoice,
    PackedDtype,
    PackedRole,
    UnsupportedDtype,
)
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.macro.packing import PanelForm, panel_form, weight_lanes
from tilewright.ops.gemm.epilogue_operands import (
    activation_of,
    matmul_epilogue,
)
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.operands import product_types
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.packing.matrix import PackedMatrix, foreign_tiles
from tilewright.spec.epilogue import Along, Epilogue
from tilewright.spec.factors import factor
from tilewright.spec.problem import Layout, Operand, ProductTypes, Role
from tilewright.threads.pool import call_team

#: Axes of A, B and C by name.
_AXES = {"a": "mk", "b": "kn", "c": "mn"}


class PackedGemmKernel(GemmKernel):
    """A kernel of a `Gemm` with operands in packed layout: ``kernel(a, b, c, alpha=1, beta=0)``.

    A packed operand is a `PackedMatrix` or its tiles, a C-contiguous array of four axes, of which C must be
    one. A size known only from tiles is that of whole tiles. Quantised weights are a `PackedMatrix`.
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

    @repeated_method
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
        self.check_written(*arrays)
        vectors = [b.vectors[name] for name in self._vectors]
        for vector in vectors:
            self.check_written(a, vector, c)
        steps = self.step_matrices(c, operands, (m, n), factors)
        function_ready = self.function  # a foreign kernel is refused before scratch is taken
        del function_ready
        with self.pool.block() as scratch:
            self.run_packed(arrays, (m, n, k), factors, scratch, (*vectors, *steps))
        repeatable()
        return c

    @cached_property
    def _vectors(self) -> tuple[str, ...]:
        """The names of what quantised weights have beside their elements: scales, zeros."""
        return () if self.problem.weights is None else self.problem.weights.vectors

    def run_packed(
        self,
        arrays: list[Array],
        sizes: tuple[int, int, int],
        factors: tuple[float, float],
        scratch: int,
        operands: Sequence[Array] = (),
    ) -> None:
        """Run one product of validated arrays; packed ones are passed as their tiles.

        Vectors of quantised weights come first among `operands`. Those of the epilogue are matrices: see
        `steps.step_matrices`.
        """
        strides: list[int] = []
        for array in arrays:
            strides += element_strides(array) if array.ndim == 2 else (0, 0)
        pointers = map(data_address, (*arrays, *operands))
        strides += self.residual_strides(operands[len(self._vectors) :])
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
            elif isinstance(given, PackedMatrix) or (operand.name == "b" and problem.weights is not None):
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

    def _check_matrix(self, operand: Operand, packed: Any) -> None:
        weights = self.problem.weights
        if weights is not None and operand.name == "b":
            if not isinstance(packed, PackedMatrix) or packed.form.weights != weights:
                self._refuse(operand, "form", packed, f"a PackedMatrix of {weights.name}")
            check_panels(packed, self.machine)
            return
        if operand.name == "c":
            self._refuse(operand, "type", "PackedMatrix, which is immutable", "an array of four axes")
        if packed.role != operand.name:
            raise PackedRole(found=packed.role, required=operand.name)
        if packed.form.panels != self.forms[operand.name]:
            raise foreign_tiles(packed, self.forms[operand.name], self.machine.isa.name)
        if packed.form.dtype != operand.dtype:
            self._refuse(operand, "dtype", packed.form.dtype, operand.dtype)

    def _check_tiles(self, operand: Operand, tiles: Any) -> None:
        form = self.forms[operand.name]
        if not isinstance(tiles, np.ndarray):
            self._refuse(operand, "type", type(tiles).__name__, "PackedMatrix or numpy.ndarray")
        for what, found, required in (
            ("dtype", tiles.dtype, form.storage.cell.numpy),
            ("dimensions", tiles.ndim, 4),
            ("tiles", tiles.shape[-2:], form.tile),
            ("contiguous, aligned =", (tiles.flags.c_contiguous, tiles.flags.aligned), (True, True)),
        ):
            if found != required:
                self._refuse(operand, what, found, required)


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

    kernel: PackedGemmKernel
    operand: np.dtype[Any]
    sums: np.dtype[Any]
    result: np.dtype[Any]
    beside: tuple[Array, ...] = ()


class RouteKey(NamedTuple):
    """A kind of product with a packed matrix: the keys of `PackedMatrix.routes`.

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


def find_route(packed: PackedMatrix, route_key: RouteKey) -> Route:
    """The kernel for the product of an operand of some type with a packed one.

    Raises
    ------
    PackedDtype : if the type that the matrix was packed for cannot hold all values of the operand's type.
    ForeignPacked : if this host uses other tiles.
    StepDtype, InvalidChoice : if an activation is undefined for the sums' type, or unknown.
    """
    route = cast("Route | None", packed.routes.get(route_key))
    if route is None:  # finding one takes longer than small products do
        route = packed.routes[route_key] = _find_route(packed, route_key)
    return route


def _find_route(packed: PackedMatrix, route_key: RouteKey) -> Route:
    form, other, computed = packed.form, route_key.other, route_key.computed
    role, fallback = form.role, form.other.numpy
    native = other.newbyteorder("=")
    for kind in (native, fallback):
        if kind == fallback and not np.can_cast(native, fallback, "safe"):
            raise PackedDtype(found=other, packed=repr(packed), required=fallback)
        try:
            result = promoted_dtype(kind, packed.dtype) if computed is None else computed
            if result is None:
                raise no_common_dtype(kind, packed.dtype)
            activation = activation_of(route_key.activation, result)
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
            epilogue = matmul_epilogue(route_key.along, activation)
            epilogue.typed(types.sums, types.c)  # refuses steps without a meaning on the sums
            kernel = packed_kernel(types, role, epilogue)
            return Route(kernel, operand.numpy, types.sums.numpy, types.c.numpy)
    if computed is not None and stored != form.dtype:
        name, allowed = "the type of the result", f"{packed.dtype}, which {packed!r} was packed for"
        raise InvalidChoice(name=name, found=computed, allowed=allowed)
    raise foreign_tiles(packed, panels, host_machine().isa.name)


def _types(
    role: Role, other: np.dtype[Any], packed: np.dtype[Any], result: np.dtype[Any], *, signed: bool
) -> ProductTypes:
    a, b = (packed, other) if role is Role.A else (other, packed)
    return product_types(a, b, result, signed=signed)
