"""An example call of a contraction: its own sizes, and operands drawn as matrices of their memory."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tilewright.compiler.example import Example, View
from tilewright.ops.contraction.kernel import ContractionKernel
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.tables.nest import TABLES

#: The length of dimensions whose size is given at run time.
_OPEN = 32


def contraction_example(kernel: ContractionKernel, wanted: Mapping[str, int]) -> Example:
    """The kernel's tables for the sizes of its problem, `_OPEN` or `wanted["size"]` where they are open.

    Examples
    --------
    >>> import tilewright as tw
    >>> problem = tw.einsum_contraction("abc,cd->abd", (4, 6, 8), (8, 5))
    >>> view = contraction_example(tw.compile(problem, "znver4"), {}).views["in0"]
    >>> view.rows, view.columns
    (24, 8)
    """
    unknown = [one for one in kernel.problem.dimensions if one.size is None]
    given = (wanted.get("size", _OPEN),) * len(unknown)
    call = kernel.prepared(given)
    problem = call.problem
    known = dict(call.tables.sizes) if call.tables is not None else {}
    tables: dict[str, tuple[int, ...]] = {}
    if call.tables is not None:
        tables = {name: tuple(one.tolist()) for name, one in zip(TABLES, call.tables.arrays, strict=True)}
    open_names = (name for name in kernel.nest.sizes if name not in known)
    sizes = dict(zip(open_names, given, strict=True)) | known
    kinds = dict.fromkeys(one.type for one in problem.dimensions)
    shape = {kind.value: prod(one.size or 0 for one in problem.of_type(kind)) for kind in kinds}
    views = {name: _view(problem, name) for name in problem.names}
    return Example(shape, sizes, tables, views)


def _view(problem: Contraction, name: str) -> View:
    """The memory of an operand as a matrix: the axes after a cut that makes it about square are columns."""
    found = [(abs(getattr(one, name)), one.size or 1) for one in problem.having(name)]
    axes = sorted((stride, size) for stride, size in found if stride)
    total = prod(size for _, size in axes)
    widths = [stride for stride, _ in axes[1:]] or [axes[-1][1] if axes else 1]
    width = min(widths, key=lambda one: abs(one * one - total))
    return View(max(1, -(-total // width)), width, width, 1, ("outer indices", "inner indices"))
