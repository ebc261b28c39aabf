"""Plans of products on many workers: what they move, what they hold, and what a simulation says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiers import each_value

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import tilewright.dask as twd
from tilewright.dask.planning import Plan, grids
from tilewright.dask.simulation import GridProduct, simulate_grid

SIDE = (32768, 32768)


@pytest.mark.parametrize("gbits", [10, 100])
@pytest.mark.parametrize("workers", [1, 2, 4, 16, 64, 256, 1024])
@each_value
def test_plans_agree_with_the_simulation(workers: int, gbits: int) -> None:
    plan = twd.plan(SIDE, SIDE, workers=workers, gbits=gbits, gflops=1000)
    found = plan.simulate()
    assert found.bytes_moved == pytest.approx(plan.bytes_moved)
    assert 0.75 < found.seconds / plan.seconds < 1.3
    assert found.seconds >= plan.compute_seconds * 0.999
    assert found.efficiency <= 1


@pytest.mark.parametrize("gbits", [10, 100])
def test_no_other_grid_is_much_faster(gbits: int) -> None:
    plan = twd.plan(SIDE, SIDE, workers=64, gbits=gbits, gflops=1000)
    times = []
    for rows, columns, replicas in grids(64):
        m, n, k = (min(2048, -(-SIDE[0] // parts)) for parts in (rows, columns, replicas))
        other = replace(plan, rows=rows, columns=columns, replicas=replicas, chunks=(m, n, k))
        times.append(other.simulate().seconds)
    assert plan.simulate().seconds <= 1.1 * min(times)


@pytest.mark.parametrize(
    ("shapes", "workers", "memory", "algorithm"),
    [
        (((1024, 1024), (1024, 1024)), 1, None, "one worker"),
        (((1 << 20, 256), (256, 256)), 8, None, "1-D"),
        (((65536, 65536), (65536, 65536)), 64, None, "2-D (SUMMA)"),
        (((512, 1 << 20), (1 << 20, 512)), 8, None, "2.5-D"),
    ],
    ids=str,
)
def test_algorithms(
    shapes: tuple[tuple[int, int], tuple[int, int]], workers: int, memory: int | None, algorithm: str
) -> None:
    plan = twd.plan(*shapes, workers=workers, memory_limit=memory, gflops=1000)
    assert plan.algorithm == algorithm
    assert algorithm in str(plan)


def test_a_limit_excludes_plans() -> None:
    free = twd.plan(SIDE, SIDE, workers=64, gbits=10, gflops=1000)
    grid = [plan for plan in _plans(free) if plan.memory_bytes < free.memory_bytes]
    assert grid
    limit = max(plan.memory_bytes for plan in grid)
    assert twd.plan(SIDE, SIDE, workers=64, gbits=10, gflops=1000, memory_limit=limit).memory_bytes <= limit


def _plans(plan: Plan) -> list[Plan]:
    """The same product on every grid."""
    return [
        replace(plan, rows=rows, columns=columns, replicas=layers)
        for rows, columns, layers in grids(plan.workers)
    ]


def test_bytes_of_a_grid() -> None:
    """By hand: of 2 x 3 workers, each piece of A goes to two more, each of B to one more."""
    plan = replace(twd.plan((60, 60), (60, 60), workers=6), rows=2, columns=3, replicas=1)
    assert plan.bytes_moved == (2 + 1) * 60 * 60 * 4


def test_a_link_is_a_bound() -> None:
    """Two workers that compute for no time: the time of what each receives, and of the first latency."""
    one = GridProduct(1, 2, 1, 8, a_bytes=1e9, b_bytes=0, tile_bytes=0, step_seconds=0.0, gbits=8)
    found = simulate_grid(one)
    assert found.bytes_moved == 8e9
    assert found.seconds == pytest.approx(4.0, abs=0.1)


def test_transfers_overlap_with_computation() -> None:
    slow = GridProduct(2, 2, 1, 16, a_bytes=1e8, b_bytes=1e8, tile_bytes=1e8, step_seconds=1.0, gbits=8)
    assert simulate_grid(slow).seconds == pytest.approx(16.0, rel=0.05)


def test_text() -> None:
    text = str(twd.plan((65536, 65536), (65536, 65536), workers=64, memory_limit=16 << 30, gflops=1000))
    for word in ("2-D (SUMMA)", "8 x 8 x 1", "moved", "memory", "of 17.2 GB", "predicted"):
        assert word in text
