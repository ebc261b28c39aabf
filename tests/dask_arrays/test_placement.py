"""Tiles of products stay with one worker: keys, grids, and what a scheduler is told."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import dask.array as da

import tilewright.dask as twd
from tilewright.dask.placement import PlacementPlugin, assign, grid_of, places


class Piece:
    """A task of a scheduler: of an operand if it is in memory, otherwise of a product."""

    def __init__(self, key: Any, holder: Any = None) -> None:
        self.key, self.who_has = key, () if holder is None else (holder,)
        self.state = "released" if holder is None else "memory"
        self.dependencies: list[Piece] = []
        self.worker_restrictions: set[str] | None = None
        self.host_restrictions: set[str] | None = None
        self.loose_restrictions = False

    def get_nbytes(self) -> int:
        return 100


def scheduled(c: Any, workers: int, threads: tuple[int, ...] = (1,)) -> tuple[Any, dict[Any, Piece]]:
    """A scheduler with the graph of a result, whose operands are scattered over the workers."""
    graph = dict(c.__dask_graph__())
    running = [
        SimpleNamespace(address=f"tcp://{number}", nthreads=threads[number % len(threads)])
        for number in range(workers)
    ]
    tasks = {}
    for number, key in enumerate(graph):
        ours = "tilewright" in str(key[0])
        tasks[key] = Piece(key, None if ours else running[number % workers])
    for key, piece in tasks.items():
        if piece.state == "released":
            piece.dependencies = [tasks[one] for one in graph[key].dependencies if one in tasks]
    return SimpleNamespace(running=running, tasks=tasks), tasks


def product(m: int, n: int, k: int = 6, chunk: int = 1, **options: Any) -> Any:
    a, b = da.ones((m, k), chunks=chunk, dtype="f4"), da.ones((k, n), chunks=chunk, dtype="f4")
    return twd.matmul(a, b, **options)


def placed(c: Any, workers: int, **options: Any) -> dict[Any, Piece]:
    scheduler, tasks = scheduled(c, workers, **options)
    PlacementPlugin().update_graph(scheduler, tasks=list(tasks), keys=set(), client="c")
    return {key: piece for key, piece in tasks.items() if piece.state == "released"}


@pytest.mark.parametrize(("workers", "rows", "columns"), [(4, 2, 2), (6, 2, 3), (9, 3, 3)])
def test_each_worker_has_one_tile(workers: int, rows: int, columns: int) -> None:
    """All tasks of a chunk have its worker, as a preference; a worker has neighbouring chunks only."""
    own = placed(product(6, 6, 20), workers)
    found: dict[str, set[tuple[int, int]]] = {}
    assert any("sum" in key[0] for key in own)
    for key, piece in own.items():
        assert piece.loose_restrictions
        assert piece.worker_restrictions is not None
        (worker,) = piece.worker_restrictions
        found.setdefault(worker, set()).add(key[-2:])
    assert len(found) == workers
    for chunks in found.values():
        lines = [sorted({chunk[axis] for chunk in chunks}) for axis in (0, 1)]
        assert sorted(map(len, lines)) == sorted((6 // rows, 6 // columns))
        assert all(line[-1] - line[0] == len(line) - 1 for line in lines)
        assert len(chunks) == len(lines[0]) * len(lines[1])


def test_a_tile_goes_where_its_pieces_are() -> None:
    """Two tiles of two columns each: the first columns of the right operand are on the second worker."""
    c = product(4, 4)
    scheduler, tasks = scheduled(c, 2)
    (right,) = {key[0] for key, piece in tasks.items() if piece.state == "memory" and key[1] == 5}
    for key, piece in tasks.items():
        if piece.state == "memory":
            piece.who_has = (scheduler.running[int(key[0] == right and key[2] < 2)],)
    PlacementPlugin().update_graph(scheduler, tasks=list(tasks))
    owners = {key[2]: piece.worker_restrictions for key, piece in tasks.items() if key[0] == c.name}
    assert owners == {0: {"tcp://1"}, 1: {"tcp://1"}, 2: {"tcp://0"}, 3: {"tcp://0"}}


def test_replicas_have_layers() -> None:
    """Chains of a chunk are on workers of their own layer."""
    a = da.ones((4, 8), chunks=2, dtype="f4")
    plan = replace(twd.plan(a, a.T, workers=4), chunks=(2, 2, 2), replicas=2, depth=1)
    own = placed(twd.matmul(a, a.T, plan=plan), 4)
    sums = {key: next(iter(piece.worker_restrictions or ())) for key, piece in own.items() if "sum" in key[0]}
    first, second = ({worker for key, worker in sums.items() if key[-1] == layer} for layer in (0, 1))
    assert len(first) == len(second) == 2
    assert not first & second


@pytest.mark.parametrize(
    ("c", "workers", "threads"),
    [
        (product(6, 1), 2, (1,)),  # each piece is used once
        (product(2, 2), 7, (1,)),  # more workers than chunks
        (product(6, 6), 1, (1,)),
        (product(6, 6), 2, (1, 4)),  # a share of one is not that of another
    ],
)
def test_left_to_the_scheduler(c: Any, workers: int, threads: tuple[int, ...]) -> None:
    assert all(piece.worker_restrictions is None for piece in placed(c, workers, threads=threads).values())


def test_wishes_of_the_user_stay() -> None:
    scheduler, tasks = scheduled(product(4, 4), 2)
    own = [piece for piece in tasks.values() if piece.state == "released"]
    own[0].worker_restrictions = {"tcp://9"}
    PlacementPlugin().update_graph(scheduler, tasks=list(tasks))
    assert own[0].worker_restrictions == {"tcp://9"}
    assert not own[0].loose_restrictions


def test_batches_and_other_functions_are_no_products() -> None:
    x = da.ones((2, 4, 4), chunks=2, dtype="f4")
    keys = [*twd.matmul(x, x).__dask_graph__(), *twd.softmax(x[0], 1).__dask_graph__(), "plain"]
    assert places(keys) == {}


def test_grids_and_owners() -> None:
    assert grid_of((8, 8, 1), 2, 300, 100) == (2, 1)  # the larger operand stays
    assert grid_of((8, 8, 2), 8, 1, 1) == (2, 2)
    assert assign({}, 2, ["x", "y"]) == {0: "x", 1: "y"}
