"""A plugin of the scheduler that gives each worker one tile of a product, on the grid that moves least.

Dask's scheduler looks at one task at a time and takes the worker that has most of its inputs. Where chunks
are scattered, tasks of a worker then lie all over the result, and it receives nearly all of both operands. A
tile of neighbouring chunks needs only its rows of A and its columns of B.

A worker is a preference: it is not waited for if it is gone, and an idle one may still take a task over.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

from tilewright.dask.library import distributed
from tilewright.dask.planning import grids
from tilewright.records import dataclass

#: Keys of chunks of results and of the steps of their sums; the last group is that of one product.
_NAMES = re.compile(r"tilewright-(?:matmul|linear|einsum|tensordot)-(sum-)?([0-9a-f]+)")


@dataclass(frozen=True)
class TaskPosition:
    """Where a task is in a product: its chunk along m and n, and its chain."""

    row: int
    column: int
    replica: int = 0


def places(keys: Iterable[Any]) -> dict[str, dict[Any, TaskPosition]]:
    """The tasks of each product among the keys of a graph; only of products without batch axes.

    >>> places([("tilewright-matmul-sum-3f", 0, 1, 2), ("tilewright-matmul-3f", 1, 2), ("other", 0, 0)])["3f"]
    ... # doctest: +NORMALIZE_WHITESPACE
    {('tilewright-matmul-sum-3f', 0, 1, 2): TaskPosition(row=1, column=2, replica=0),
     ('tilewright-matmul-3f', 1, 2): TaskPosition(row=1, column=2, replica=0)}
    """
    found: defaultdict[str, dict[Any, TaskPosition]] = defaultdict(dict)
    for key in keys:
        name = _NAMES.fullmatch(str(key[0])) if isinstance(key, tuple) else None
        if name is None:
            continue
        own = key[2:] if name[1] else key[1:]
        if len(own) == len("mn") or (name[1] and len(own) == len("mnr")):
            found[name[2]][key] = TaskPosition(*own)
    return dict(found)


def grid_of(blocks: tuple[int, int, int], workers: int, a_bytes: int, b_bytes: int) -> tuple[int, int] | None:
    """Rows and columns of the grid of workers that evens the work out, or of equals moves least.

    Parameters
    ----------
    blocks : chunks of the result along m and n, and chains of each.

    Returns
    -------
    None if there is no choice, or a worker would have nothing to do.

    >>> grid_of((8, 8, 1), 4, 100, 100), grid_of((8, 8, 1), 2, 100, 300), grid_of((8, 1, 1), 2, 100, 100)
    ((2, 2), (1, 2), None)
    """
    m, n, replicas = blocks
    if min(m, n) < 2:
        return None
    fitting = [(rows, columns) for rows, columns, own in grids(workers) if own == replicas]
    fitting = [(rows, columns) for rows, columns in fitting if rows <= m and columns <= n]

    def cost(grid: tuple[int, int]) -> tuple[int, int]:
        rows, columns = grid
        most = ceil(m / rows) * ceil(n / columns)
        return most, a_bytes * (columns - 1) + b_bytes * (rows - 1)

    return min(fitting, key=cost, default=None)


def assign(held: Mapping[tuple[int, str], int], tiles: int, workers: Sequence[str]) -> dict[int, str]:
    """A worker for each tile, those that hold the most bytes of one first.

    Parameters
    ----------
    held : bytes of the inputs of a tile that a worker has.

    >>> assign({(0, "x"): 1, (1, "x"): 3}, 2, ["x", "y"])
    {1: 'x', 0: 'y'}
    """
    found: dict[int, str] = {}
    free = dict.fromkeys(workers)
    for tile, worker in sorted(held, key=lambda one: (-held[one], one)):
        if tile not in found and worker in free:
            found[tile] = worker
            del free[worker]
    rest = iter(list(free))
    return found | {tile: next(rest) for tile in range(tiles) if tile not in found}


class PlacementPlugin(distributed.SchedulerPlugin):
    """Prefers a worker for each task of a product, when a graph arrives."""

    name = "tilewright-placement"

    def update_graph(self, scheduler: Any, *, tasks: Iterable[Any], **rest: Any) -> None:
        """Give the new products of a graph their places."""
        del rest
        running = sorted(scheduler.running, key=lambda one: str(one.address))
        if len(running) < 2 or len({one.nthreads for one in running}) > 1:
            return
        for product in places(tasks).values():
            states = {scheduler.tasks[key]: place for key, place in product.items()}
            _place(states, [str(one.address) for one in running])


def _place(states: Mapping[Any, TaskPosition], workers: Sequence[str]) -> None:
    """Prefer a worker for each task of one product."""
    rows = {row: at for at, row in enumerate(sorted({place.row for place in states.values()}))}
    columns = {column: at for at, column in enumerate(sorted({place.column for place in states.values()}))}
    blocks = len(rows), len(columns), 1 + max(place.replica for place in states.values())
    inputs = _inputs(states)
    a_bytes = sum(one.get_nbytes() for one, used in inputs.items() if len({at.row for at in used}) == 1)
    b_bytes = sum(one.get_nbytes() for one, used in inputs.items() if len({at.column for at in used}) == 1)
    grid = grid_of(blocks, len(workers), a_bytes, b_bytes)
    if grid is None:
        return

    def tile(place: TaskPosition) -> int:
        row, column = rows[place.row] * grid[0] // blocks[0], columns[place.column] * grid[1] // blocks[1]
        return (place.replica * grid[0] + row) * grid[1] + column

    held: defaultdict[tuple[int, str], int] = defaultdict(int)
    for one, used in inputs.items():
        for number in {tile(place) for place in used}:
            for worker in one.who_has or ():
                held[number, str(worker.address)] += one.get_nbytes()
    owners = assign({one: count for one, count in held.items() if one[1] in workers}, len(workers), workers)
    for state, place in states.items():
        if state.state == "released" and not state.worker_restrictions and not state.host_restrictions:
            state.worker_restrictions = {owners[tile(place)]}
            state.loose_restrictions = True


def _inputs(states: Mapping[Any, TaskPosition]) -> dict[Any, list[TaskPosition]]:
    """The pieces of operands, and the tasks that take each."""
    found: defaultdict[Any, list[TaskPosition]] = defaultdict(list)
    for state, place in states.items():
        for one in state.dependencies:
            if one not in states:
                found[one].append(place)
    return found
