"""Plans of a product on several workers: chunks and algorithm, by bytes moved against operations.

A grid of rows x columns x replicas workers computes a product. Each worker owns a tile of the result and
receives the pieces of its rows of A and its columns of B that others own. With one row or one column this is
the 1-D algorithm, which sends one whole operand to every worker; otherwise the 2-D one, SUMMA (van de Geijn
and Watts, Concurrency: Pract. Exper. 1997). With replicas each layer of the grid sums over a part of k, and
the layers' sums are added at the end: 2.5-D (Solomonik and Demmel, Euro-Par 2011), with less traffic for more
memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, isqrt, log2
from typing import Any

import numpy as np

from tilewright.dask.chains import DEPTH
from tilewright.dask.library import da, distributed
from tilewright.dask.simulation import GridProduct, Simulation, simulate_grid
from tilewright.errors import InvalidOperand, InvalidScalar, PlanMemory, ShapeMismatch, shown
from tilewright.errors.callers import named_in_errors
from tilewright.records import dataclass
from tilewright.spec.arguments import as_sizes, check_integer, real_number

#: Bytes of a chunk that a product is efficient on and a scheduler has time for.
_CHUNK_BYTES = 16 << 20
#: Plans whose times differ by less are taken to be equally fast; the one that moves less is chosen.
_EQUAL = 1.02
#: The most workers and replicas that a plan is searched for.
_MOST_WORKERS = 1 << 16
_MOST_REPLICAS = 64


@dataclass(frozen=True)
class Plan:
    """How a product is computed on several workers; `print` it.

    Attributes
    ----------
    m, n, k : sizes of the product, of elements of `itemsize` bytes.
    workers, rows, columns, replicas : how many workers, and the grid that they form.
    chunks : sizes of chunks along m, n and k.
    depth : pieces of each operand that one task adds.
    gbits, gflops : speed of a worker's link and of its cores.
    memory_limit : bytes of a worker, if it was given.
    """

    m: int
    n: int
    k: int
    itemsize: int
    workers: int
    rows: int
    columns: int
    replicas: int
    chunks: tuple[int, int, int]
    depth: int
    gbits: float
    gflops: float
    memory_limit: int | None = None

    @property
    def algorithm(self) -> str:
        """The name of the algorithm: "one worker", "1-D", "2-D (SUMMA)" or "2.5-D"."""
        if self.workers == 1:
            return "one worker"
        if self.replicas > 1:
            return "2.5-D"
        return "1-D" if 1 in (self.rows, self.columns) else "2-D (SUMMA)"

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of one worker's tile of the result."""
        return ceil(self.m / self.rows), ceil(self.n / self.columns)

    @property
    def tile_chunks(self) -> tuple[int, int]:
        """Chunks along m and n of one worker's tile."""
        return ceil(self.tile[0] / self.chunks[0]), ceil(self.tile[1] / self.chunks[1])

    @property
    def bytes_moved(self) -> int:
        """Bytes sent between workers: pieces of A along rows of the grid, of B along columns, and sums."""
        a, b, c = self.m * self.k, self.k * self.n, self.m * self.n
        elements = a * (self.columns - 1) + b * (self.rows - 1) + c * (self.replicas - 1)
        return elements * self.itemsize

    @property
    def memory_bytes(self) -> int:
        """A bound of one worker's memory: its shares, the pieces it received, its tile, its tasks' sums.

        Pieces are counted as if none were released before the end: a scheduler of tasks promises no order.
        """
        rows, columns = self.tile
        shares = ceil((self.m + self.n) * self.k / self.workers)
        received = 0 if self.workers == 1 else (rows + columns) * ceil(self.k / self.replicas)
        sums = 2 * self.chunks[0] * self.chunks[1]
        tile = rows * columns * (1 if self.replicas == 1 else 2)
        return (shares + received + tile + sums) * self.itemsize

    @property
    def compute_seconds(self) -> float:
        """What a worker's cores need."""
        return 2 * self.m * self.n * self.k / (self.workers * self.gflops * 1e9)

    @property
    def transfer_seconds(self) -> float:
        """What a worker's link needs."""
        return self.bytes_moved / self.workers * 8 / (self.gbits * 1e9)

    @property
    def seconds(self) -> float:
        """The predicted time: transfers beside computation, before it the first pieces, after it the sums."""
        product = self.grid_product()
        hops = 1 + log2(max(self.rows, self.columns))
        first = (
            product.transfer_seconds(product.a_bytes + product.b_bytes) * hops if self.workers > 1 else 0.0
        )
        merged = product.transfer_seconds(product.tile_bytes) * (self.replicas - 1) / self.replicas
        return max(self.compute_seconds, self.transfer_seconds - merged) + first + merged

    def grid_product(self) -> GridProduct:
        """The product as the simulation takes it."""
        rows, columns = self.tile
        steps = max(1, ceil(self.k / self.replicas / self.chunks[2]))
        deep = self.k / self.replicas / steps
        return GridProduct(
            *(self.rows, self.columns, self.replicas, steps),
            a_bytes=rows * deep * self.itemsize,
            b_bytes=columns * deep * self.itemsize,
            tile_bytes=rows * columns * self.itemsize,
            step_seconds=2 * rows * columns * deep / (self.gflops * 1e9),
            gbits=self.gbits,
        )

    def simulate(self) -> Simulation:
        """The time and the bytes moved by an event simulation of the workers, their links and cores."""
        return simulate_grid(self.grid_product())

    def __str__(self) -> str:
        mc, nc, kc = self.chunks
        limit = "" if self.memory_limit is None else f" of {self.memory_limit / 1e9:.3g}"
        operations = 2 * self.m * self.n * self.k
        lines = [f"{self.m} x {self.n} x {self.k} on {self.workers} workers: {self.algorithm}, "]
        lines[0] += f"grid {self.rows} x {self.columns} x {self.replicas}"
        lines.append(f"chunks     {mc} x {nc} x {kc} along m, n, k; a task adds up to {self.depth} products")
        lines.append(f"computed   {operations / 1e12:,.4g} T operations, {self.compute_seconds:.4g} s at ")
        lines[-1] += f"{self.gflops:g} GFLOP/s a worker"
        lines.append(f"moved      {self.bytes_moved / 1e9:,.4g} GB, {self.transfer_seconds:.4g} s at ")
        lines[-1] += f"{self.gbits:g} Gbit/s a worker"
        if self.bytes_moved:
            lines[-1] += f"; {operations / self.bytes_moved:,.0f} operations a byte"
        lines.append(f"memory     at most {self.memory_bytes / 1e9:,.4g}{limit} GB a worker")
        share = self.compute_seconds / self.seconds if self.seconds else 1.0
        lines.append(f"predicted  {self.seconds:.4g} s, efficiency {share:.0%}")
        return "\n".join(lines)


@named_in_errors
def plan(
    a: Any,
    b: Any,
    /,
    *,
    workers: Any = None,
    memory_limit: int | None = None,
    gbits: float = 10.0,
    gflops: float = 100.0,
    itemsize: int | None = None,
) -> Plan:
    """Chooses chunks and the algorithm of a product: the fastest that fits, or of equals what moves least.

    Parameters
    ----------
    a, b : dask.array.Array, array or shape, (m, k) and (k, n)
        Batch axes in front are left alone. Of shapes elements have `itemsize` bytes, 4 by default.
    workers : int or distributed.Client
        How many workers, or the client of a cluster, whose memory limits then count too.
    memory_limit : bytes that a worker may use for it.
    gbits : speed of a worker's network link.
    gflops : speed of a worker's cores, in 10^9 operations of a product per second.

    Returns
    -------
    Plan : for ``matmul(a, b, plan=...)``; `print` it

    Raises
    ------
    InvalidOperand, ShapeMismatch, InvalidSize, InvalidScalar
    PlanMemory : no plan fits.

    Examples
    --------
    >>> import tilewright.dask as twd
    >>> twd.plan((65536, 65536), (65536, 65536), workers=64, gflops=1000).algorithm
    '2-D (SUMMA)'
    """
    m, k, n, size = _sizes(a, b, itemsize)
    count, limit = _workers(workers)
    if memory_limit is not None:
        limit = check_integer(memory_limit, "memory_limit", 1, _MOST_BYTES)
    speeds = _positive(gbits, "gbits"), _positive(gflops, "gflops")
    candidates = [
        Plan(m, n, k, size, count, *grid, _chunks((m, n, k), grid, size), DEPTH, *speeds, limit)
        for grid in grids(count)
        if grid[0] <= max(m, 1) and grid[1] <= max(n, 1) and grid[2] <= max(k, 1)
    ]
    candidates = candidates or [
        Plan(m, n, k, size, count, 1, 1, 1, _chunks((m, n, k), (1, 1, 1), size), DEPTH, *speeds, limit)
    ]
    fitting = [one for one in candidates if limit is None or one.memory_bytes <= limit]
    if not fitting:
        least = min(one.memory_bytes for one in candidates)
        raise PlanMemory(m=m, n=n, k=k, workers=count, limit=f"{limit:,}", least=f"{least:,}")
    fastest = min(one.seconds for one in fitting)
    fast = [one for one in fitting if one.seconds <= fastest * _EQUAL]
    return min(fast, key=lambda one: (one.bytes_moved, one.memory_bytes, one.seconds))


#: The largest memory limit.
_MOST_BYTES = 1 << 62


def grids(workers: int) -> Iterator[tuple[int, int, int]]:
    """Every grid of so many workers.

    >>> list(grids(2))
    [(1, 2, 1), (2, 1, 1), (1, 1, 2)]
    """
    for replicas in _divisors(workers):
        if replicas <= _MOST_REPLICAS:
            layer = workers // replicas
            yield from ((rows, layer // rows, replicas) for rows in _divisors(layer))


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


def _chunks(sizes: tuple[int, int, int], grid: tuple[int, int, int], itemsize: int) -> tuple[int, int, int]:
    """Sizes of chunks along m, n and k: about square, equal parts of a worker's share."""
    edge = isqrt(_CHUNK_BYTES // itemsize)
    found = []
    for size, parts in zip(sizes, grid, strict=True):
        share = max(1, ceil(size / parts))
        found.append(ceil(share / ceil(share / edge)))
    return found[0], found[1], found[2]


def cut(size: int, chunk: int) -> tuple[int, ...]:
    """An axis in chunks of a size, the last one shorter.

    >>> cut(7, 3), cut(0, 3)
    ((3, 3, 1), (0,))
    """
    whole, rest = divmod(size, chunk)
    return (chunk,) * whole + ((rest,) if rest or not whole else ())


def _sizes(a: Any, b: Any, itemsize: Any) -> tuple[int, int, int, int]:
    """m, k, n and bytes of an element.

    Raises
    ------
    InvalidOperand, ShapeMismatch, InvalidSize
    """
    shapes = []
    for name, given in (("a", a), ("b", b)):
        array = isinstance(given, (np.ndarray, da.Array))
        shape = as_sizes(given.shape if array else given)
        if shape is None or len(shape) < len("mk"):
            reason = f"found {shown(given)}, must be an array or a shape of two sizes or more, all known"
            raise InvalidOperand(name=name, reason=reason)
        shapes.append(shape)
    left, right = shapes
    if left[-1] != right[-2]:
        raise ShapeMismatch(a=left, b=right, inner_a=left[-1], inner_b=right[-2])
    known = [one.dtype.itemsize for one in (a, b) if isinstance(one, (np.ndarray, da.Array))]
    size = max(known, default=4) if itemsize is None else check_integer(itemsize, "itemsize", 1, 64)
    return left[-2], left[-1], right[-1], size


def _workers(workers: Any) -> tuple[int, int | None]:
    """How many workers, and the least memory limit of those of a client.

    Raises
    ------
    InvalidSize
    """
    if isinstance(workers, distributed.Client):
        found = workers.scheduler_info(n_workers=-1)["workers"].values()
        limits = [one["memory_limit"] for one in found if one["memory_limit"]]
        return max(1, len(found)), min(limits, default=None)
    return check_integer(
        workers, "workers", 1, _MOST_WORKERS, "a number of workers or a distributed.Client"
    ), None


def _positive(value: Any, name: str) -> float:
    """A positive number.

    Raises
    ------
    InvalidScalar
    """
    number = real_number(value, name)
    if not 0 < number < float("inf"):
        raise InvalidScalar(name=name, found=shown(value), required="a positive number")
    return number
