"""An example call of a product by tables: row-major matrices, whose places tables hold."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.compiler.example import OPEN_SIZE, Example, View
from tilewright.compiler.kernel import Kernel
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.tables.nest import TABLES
from tilewright.ops.contraction.tables.primitive import table_axes
from tilewright.ops.contraction.tables.tables import tables_of


def table_example(kernel: Kernel, wanted: Mapping[str, int]) -> Example:
    """The tables of C[m, n] = A[m, k] · B[k, n] for three matrices without gaps.

    Examples
    --------
    >>> import tilewright as tw
    >>> from tilewright.ops.contraction.tables.problem import TableProduct
    >>> found = table_example(tw.compile(TableProduct("f32"), "znver4"), {"m": 3, "n": 5, "k": 4})
    >>> found.tables["am"][:3], found.views["b"].columns
    ((0, 4, 8), 5)
    """
    m, n, k = (wanted.get(name, OPEN_SIZE) for name in "mnk")
    matrices = Contraction(
        [
            Dimension("m", "primitive", m, in0=k, out=n),
            Dimension("n", "primitive", n, in1=1, out=1),
            Dimension("k", "primitive", k, in0=1, in1=n),
        ]
    )
    axes = table_axes(matrices, swapped=False)
    tables = tables_of(kernel.problem.sums, kernel.machine, kernel.blocking, axes)
    found = {name: tuple(one.tolist()) for name, one in zip(TABLES, tables.arrays, strict=True)}
    views = {
        "out": View(m, n, n, 1, ("m", "n")),
        "a": View(m, k, k, 1, ("m", "k")),
        "b": View(k, n, n, 1, ("k", "n")),
    }
    return Example({"m": m, "n": n, "k": k}, dict(tables.sizes), found, views)
