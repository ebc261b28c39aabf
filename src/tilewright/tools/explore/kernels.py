"""Batch-reduce kernels in a compiled loop: native timing, a grid of shapes, exact verification."""

from __future__ import annotations

import csv
import json
import operator
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.calls.batch import fixed_batch_function
from tilewright.calls.compile import compile_problem
from tilewright.compiler.peak import measure_peak
from tilewright.errors import InputNotReadable
from tilewright.machine.host import host_machine
from tilewright.ops.batch_reduce.kernel import BatchReduceKernel
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.reading import open_regular, read_bounded
from tilewright.records import dataclass
from tilewright.tools.explore.statistics import median

#: The grid: every m and n up to 64, at these depths.
GRID_SIDE = 64
GRID_DEPTHS = (1, 16, 32, 64, 128)

#: Leading dimensions beyond the tight ones, in elements, when verifying with padding.
PADDING = 3

#: Kernels verified with a batch have this many products.
VERIFIED_COUNT = 16


#: Bytes of the longest file of progress: a line for each failure of the grid.
_MOST_BYTES = 64 << 20

#: A cache line of every catalogued CPU, or two of them.
LINE_BYTES = 64


@dataclass(frozen=True)
class KernelRow:
    """One measured kernel: sizes, speed, and share of the FMA peak measured beside it."""

    m: int
    n: int
    k: int
    count: int
    gflops: float
    share_of_peak: float


def grid() -> Iterator[tuple[int, int, int]]:
    """The 20,480 shapes of the grid.

    >>> sum(1 for _ in grid())
    20480
    """
    for k in GRID_DEPTHS:
        for m in range(1, GRID_SIDE + 1):
            for n in range(1, GRID_SIDE + 1):
                yield m, n, k


def sample_grid(count: int, seed: int) -> tuple[tuple[int, int, int], ...]:
    """A fixed random sample of the grid, the same for the same seed."""
    shapes = list(grid())
    chosen = np.random.default_rng(seed).choice(len(shapes), size=min(count, len(shapes)), replace=False)
    return tuple(shapes[index] for index in sorted(chosen))


def measure_kernel(problem: BatchReduceGemm, repeat: int = 5, seconds: float = 2e-3) -> KernelRow:
    """Times a column-major kernel in a compiled loop on operands in L1, the peak beside each run.

    Examples
    --------
    >>> measure_kernel(BatchReduceGemm(16, 16, 16, 1), repeat=1).gflops > 0
    True
    """
    kernel = compile_problem(problem)
    a, b, c = operands(problem, np.random.default_rng(0))
    pointers = [array.__array_interface__["data"][0] for array in (a, b, c)]
    strides = (problem.m, problem.k, problem.m, 0, 0)
    run, address = fixed_batch_function(), kernel.address

    def measure(calls: int) -> float:
        start = time.perf_counter()
        run(address, calls, 0, 0, 0, *pointers, *strides, None)
        return time.perf_counter() - start

    calls = 16
    while (elapsed := measure(calls)) < seconds / 8:
        calls *= 2
    calls = max(1, int(calls * seconds / elapsed))
    speeds, shares = [], []
    for _ in range(repeat):
        peak = measure_peak(problem.dtype, host_machine(), seconds)
        speed = problem.flops * calls / measure(calls) * 1e-9
        speeds.append(speed)
        shares.append(speed / peak)
    return KernelRow(problem.m, problem.n, problem.k, problem.count, median(speeds), median(shares))


def operands(
    problem: BatchReduceGemm, random: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Column-major a, b and c, one behind the other, each from the start of a cache line.

    So no vector crosses lines that it need not cross, and no operand stands a multiple of 4 KiB from
    another by chance, which x86 takes for the same address.
    """
    shapes = (
        (problem.count, problem.k, problem.m),
        (problem.count, problem.n, problem.k),
        (problem.n, problem.m),
    )
    size = problem.dtype.size
    lines = [-(-int(np.prod(shape)) * size // LINE_BYTES) for shape in shapes]
    memory = np.zeros((sum(lines) + 1) * LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % LINE_BYTES
    found = []
    for shape, count in zip(shapes, lines, strict=True):
        flat = memory[start : start + int(np.prod(shape)) * size].view(problem.dtype.numpy)
        # Centred on 0, so that sums that grow over millions of calls stay finite.
        flat[:] = random.random(flat.size) - 0.5
        found.append(flat.reshape(shape))
        start += count * LINE_BYTES
    a, b, c = found
    return a, b, c


def write_csv(rows: Sequence[KernelRow], path: Path) -> None:
    """The rows as CSV, one line a kernel."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(KernelRow.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


# --- verification -------------------------------------------------------------------------------


def _column_major(
    random: np.random.Generator, count: int, rows: int, columns: int, padding: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """(count, rows, columns) of small integers, each matrix column-major with a padded leading dimension."""
    held = random.integers(-2, 3, (count, columns, rows + padding)).astype(dtype)
    return held[:, :, :rows].transpose(0, 2, 1)


def verify_kernel(kernel: BatchReduceKernel, padding: int) -> bool:
    """Whether a column-major kernel gives the exact integers, and leaves the padding of C alone."""
    problem = kernel.problem
    random = np.random.default_rng(problem.m * 4096 + problem.n * 64 + problem.k)
    dtype = problem.dtype.numpy
    a = _column_major(random, problem.count, problem.m, problem.k, padding, dtype)
    b = _column_major(random, problem.count, problem.k, problem.n, padding, dtype)
    held = random.integers(-2, 3, (problem.n, problem.m + padding)).astype(dtype)
    before = held.copy()
    c = held[:, : problem.m].T
    expected = problem.reference(a, b, c)
    kernel(a, b, c)
    exact = np.array_equal(c, expected)
    return exact and np.array_equal(held[:, problem.m :], before[:, problem.m :])


@dataclass
class Checkpoint:
    """How far a verification of the grid came; kept in a file, so that it resumes."""

    done: int = 0
    failed: list[tuple[int, int, int, int, int]] | None = None

    @classmethod
    def load(cls, path: Path) -> Checkpoint:
        """The progress stored in a file; a new one if the file is missing or was not written by this class.

        Raises
        ------
        InputNotReadable : if the file cannot be read, or is no regular file.
        """
        if not path.exists():
            return cls(failed=[])
        try:
            with open_regular(path, _MOST_BYTES) as stream:
                content = json.loads(read_bounded(stream, _MOST_BYTES))
            return cls(operator.index(content["done"]), [tuple(entry) for entry in content["failed"]])
        except OSError as error:
            raise InputNotReadable(path=str(path), reason=error.strerror or str(error)) from error
        except (ValueError, KeyError, TypeError, RecursionError):
            return cls(failed=[])

    def save(self, path: Path) -> None:
        """Writes the file."""
        path.write_text(json.dumps({"done": self.done, "failed": self.failed}), encoding="utf-8")


def verify_grid(
    state: Path,
    shapes: Sequence[tuple[int, int, int]],
    on_step: Callable[[], None] = lambda: None,
    save_every: int = 200,
) -> Checkpoint:
    """Verifies shapes with one product and with a batch, tight and padded leading dimensions.

    Parameters
    ----------
    state : where the progress is kept; a second run goes on from there.
    shapes : (m, n, k) in a fixed order.
    on_step : called after each shape.
    """
    progress = Checkpoint.load(state)
    assert progress.failed is not None
    try:
        for number in range(progress.done, len(shapes)):
            m, n, k = shapes[number]
            for count in (1, VERIFIED_COUNT):
                kernel = compile_problem(BatchReduceGemm(m, n, k, count))
                wrong = [padding for padding in (0, PADDING) if not verify_kernel(kernel, padding)]
                progress.failed.extend((m, n, k, count, padding) for padding in wrong)
            progress.done = number + 1
            if progress.done % save_every == 0:
                progress.save(state)
            on_step()
    finally:  # also after Control-C
        progress.save(state)
    return progress
