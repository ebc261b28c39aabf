"""Kernels of chains of linear layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tilewright.cached import cached_property
from tilewright.calls.kernel import ArrayKernel
from tilewright.calls.operands import Array, check_operand, data_address, element_strides
from tilewright.calls.recording import new_array, repeatable
from tilewright.calls.repeated import repeated_method
from tilewright.errors import ChainOperands
from tilewright.macro.packing import PanelForm, panel_form
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.packing.matrix import PackedMatrix, foreign_tiles
from tilewright.spec.arguments import check_items
from tilewright.spec.problem import Operand, Role


class LinearChainKernel(ArrayKernel):
    """A kernel of a `LinearChain`: ``kernel(x, weights, biases, out=None)``.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> kernel = tw.compile(tw.LinearChain((3, 4, 2), ("relu", None), bias=False))
    >>> weights = [tw.pack(np.ones(shape, np.float32)) for shape in ((3, 4), (4, 2))]
    >>> kernel(np.ones((1, 3), np.float32), weights)
    array([[12., 12.]], dtype=float32)
    """

    problem: LinearChain

    @cached_property
    def form(self) -> PanelForm:
        """The tiles of every weight."""
        return panel_form(self.problem.types, Role.B, self.machine)

    @repeated_method
    def __call__(
        self,
        x: Array,
        weights: Sequence[PackedMatrix],
        biases: Sequence[Array] = (),
        out: Array | None = None,
    ) -> Array:
        """Y of rows x of shape (m, in), by packed weights (in, out) and biases (out,).

        Raises
        ------
        ChainOperands : if there are more or fewer weights or biases than layers.
        OperandMismatch : if an operand has another shape, dtype or layout, before out changes.
        ForeignPacked : if a weight is in other tiles.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        problem = self.problem
        layers = len(problem.layers)
        weights = check_items(weights, "weights", "a sequence of packed matrices")
        biases = check_items(biases, "biases", "a sequence of arrays")
        self._rows(problem.operands[0], x)
        if out is not None:
            self._rows(problem.operands[-1], out)
        for name, given, required in (
            ("weights", weights, layers),
            ("biases", biases, layers if problem.bias else 0),
        ):
            if len(given) != required:
                raise ChainOperands(kernel=self.name, name=name, found=len(given), required=required)
        y = new_array((len(x), problem.sizes[-1]), problem.dtype.numpy) if out is None else out
        given_of: dict[str, Any] = {"x": x, "y": y}
        for number, weight in enumerate(weights, 1):
            given_of[f"weight{number}"] = weight
        for number, bias in enumerate(biases, 1):
            given_of[f"bias{number}"] = _as_row(bias)
        arrays = [self._checked(operand, given_of[operand.name], len(x)) for operand in problem.operands]
        self.check_written(*arrays)
        strides = element_strides(x)[0], element_strides(y)[0]
        work = len(x) * sum(inner * outer for inner, outer in pairwise(problem.sizes))
        self.launch((*map(data_address, arrays), len(x), *strides), work)
        repeatable()
        return y

    def _rows(self, operand: Operand, given: Any) -> None:
        """Raises an error unless the operand is an array of rows."""
        if not isinstance(given, np.ndarray):
            self._refuse(operand, "type", type(given).__name__, "numpy.ndarray")
        if given.ndim != 2:
            self._refuse(operand, "dimensions", given.ndim, 2)

    def _checked(self, operand: Operand, given: Any, rows: int) -> Array:
        """The array behind an operand that fits."""
        if operand.name.startswith("weight"):
            return self._weight(operand, given)
        check_operand(self.name, operand, given)
        required = (rows if operand.rows is None else operand.rows, operand.columns)
        if given.shape != required:
            self._refuse(operand, "shape", given.shape, required)
        array: Array = given
        return array

    def _weight(self, operand: Operand, packed: Any) -> Array:
        if not isinstance(packed, PackedMatrix):
            self._refuse(operand, "type", type(packed).__name__, "PackedMatrix")
        required = (operand.rows, operand.columns)
        for what, found, needed in (
            ("role", packed.role, "b"),
            ("shape", packed.shape, required),
            ("dtype", packed.form.dtype, operand.dtype),
        ):
            if found != needed:
                self._refuse(operand, what, found, needed)
        if packed.form.panels != self.form:
            raise foreign_tiles(packed, self.form, self.machine.isa.name)
        tiles: Array = packed.data4d
        return tiles


def _as_row(bias: Any) -> Any:
    """A bias of one axis as a matrix of one row."""
    return bias[np.newaxis] if isinstance(bias, np.ndarray) and bias.ndim == 1 else bias
