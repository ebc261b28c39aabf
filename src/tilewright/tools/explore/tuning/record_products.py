"""The products that a program computes, for `tilewright tune --record`: their types, sizes and number.

The program runs in a process of its own, where machine code hands every call to Python, as it does while a
call is recorded (`recorder.recordings`), and the two methods of `GemmKernel` that run products are replaced
by ones that count first. Nothing is added to a process that records nothing. Counted are products of matrices
that are not packed, also inside of other functions, and each product of a batch; not what runs kernels of its
own (attention, packed weights, schedules of contractions), nor what child processes compute.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilewright.calls.operands import Array, element_strides
from tilewright.errors import ScriptFailed
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.recorder import recordings
from tilewright.spec.problem import Layout, ProductTypes
from tilewright.tools.explore.tuning.classes import Shape

#: Different products of a program that are told apart; further ones are left out.
MOST_SHAPES = 4096

#: Types as the names of A, B and C, and a shape.
Key = tuple[tuple[str, str, str], Shape]

_START = (
    "import json, sys; start = json.loads(sys.argv[1]); sys.path[:] = start['path']; "
    "from tilewright.tools.explore.tuning.record_products import main; main(start['out'], start['arguments'])"
)


def shape_of(a: Array, b: Array, c: Array) -> Shape:
    """The product of matrices as it is computed: a column-major C as the transposed product.

    >>> import numpy as np
    >>> a, b, c = np.empty((2, 3)), np.empty((4, 3)).T, np.empty((2, 4))
    >>> shape_of(a, b, c).label
    '2x4x3 b'
    """
    if element_strides(c)[1] != 1:
        a, b = b.T, a.T
    (m, k), n = a.shape, b.shape[1]
    columns = [name for name, array in (("a", a), ("b", b)) if element_strides(array)[1] != 1]
    return Shape(m, n, k, "".join(columns) or "n")


@contextmanager
def products_counted() -> Iterator[Counter[Key]]:
    """Context in which products are counted, in every thread."""
    found: Counter[Key] = Counter()
    inside = threading.local()
    run, run_batch = GemmKernel.run, GemmKernel.run_batch

    def count(kernel: GemmKernel, matrices: Sequence[Array], times: int) -> None:
        problem = kernel.problem
        free = all(operand.layout is Layout.STRIDED for operand in problem.operands)
        if not free or 0 in (*matrices[0].shape, *matrices[1].shape):
            return
        types = kernel.types
        key = (str(types.a), str(types.b), str(types.c)), shape_of(*matrices)
        if key in found or len(found) < MOST_SHAPES:
            found[key] += times

    def counted_run(self: GemmKernel, a: Array, b: Array, c: Array, *rest: Any, **named: Any) -> None:
        if not getattr(inside, "batch", False):
            count(self, (a, b, c), 1)
        run(self, a, b, c, *rest, **named)

    def counted_batch(self: GemmKernel, a: Array, b: Array, c: Array, *rest: Any, **named: Any) -> None:
        batch = c.shape[:-2]
        if c.size:
            first = (0,) * len(batch)
            count(self, (a[first], b[first], c[first]), c.size // (c.shape[-1] * c.shape[-2]))
        inside.batch = True
        try:
            run_batch(self, a, b, c, *rest, **named)
        finally:
            inside.batch = False

    GemmKernel.run, GemmKernel.run_batch = counted_run, counted_batch  # type: ignore[method-assign]
    recordings.append(None)
    try:
        yield found
    finally:
        recordings.pop()
        GemmKernel.run, GemmKernel.run_batch = run, run_batch  # type: ignore[method-assign]


def main(out: str, arguments: Sequence[str]) -> None:
    """Run a program in this process and write what it computed."""
    sys.argv[:] = arguments
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
    with products_counted() as found:
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        finally:
            rows = [[*types, *shape, count] for (types, shape), count in found.items()]
            Path(out).write_text(json.dumps(rows), encoding="utf-8")


def record_products(arguments: Sequence[str]) -> dict[ProductTypes, dict[Shape, float]]:
    """Run a program, and return the operations it spent on each product, by types.

    Parameters
    ----------
    arguments : the script and its arguments.

    Raises
    ------
    ScriptFailed : the program fails, or computes no product that can be tuned.
    """
    script = arguments[0]
    if not Path(script).is_file():
        raise ScriptFailed(script=script, reason="there is no such file")
    with tempfile.TemporaryDirectory(prefix="tilewright-record-") as folder:
        out = Path(folder) / "products"
        start = {"path": sys.path, "out": str(out), "arguments": list(arguments)}
        status = subprocess.run([sys.executable, "-c", _START, json.dumps(start)], check=False).returncode
        if status:
            raise ScriptFailed(script=script, reason=f"it ended with status {status}")
        rows = json.loads(out.read_text(encoding="utf-8"))
    found: dict[ProductTypes, dict[Shape, float]] = {}
    for a, b, c, m, n, k, trans, count in rows:
        shapes = found.setdefault(ProductTypes.parse(a, b, c), {})
        shapes[Shape(m, n, k, trans)] = 2.0 * m * n * k * count
    if not found:
        raise ScriptFailed(script=script, reason="it computed no product of matrices that are not packed")
    return found
