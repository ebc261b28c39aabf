"""tilewright.dask on a cluster of two processes, of which workers are killed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import exhaustive

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import dask.array as da
from dask_cluster import (
    PATIENCE,
    MemoryWatch,
    kill_in_the_middle,
    products_of_a_worker,
    running_cluster,
    slow,
)
from distributed import Nanny, wait

import tilewright as tw
import tilewright.dask as twd
from tilewright.dask.placement import PlacementPlugin


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Any, Any]]:
    """One cluster for all tests of this file; idle, its processes take a tenth of a core."""
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(running_cluster())
        except (TimeoutError, OSError) as error:
            pytest.skip(f"no cluster starts on this host: {error}")
        yield found


@pytest.fixture
def cluster(running: tuple[Any, Any]) -> Any:
    """The cluster, with both workers."""
    cluster, client = running
    client.wait_for_workers(2, timeout=PATIENCE)
    return cluster


@pytest.fixture
def client(running: tuple[Any, Any], cluster: Any) -> Any:
    """The client of the cluster."""
    return running[1]


def operands(n: int, chunk: int, seed: int = 0) -> tuple[Any, Any]:
    """Two square matrices in chunks, which take some time to come."""
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in "ab")
    return slow(da.from_array(a, chunks=chunk)), slow(da.from_array(b, chunks=chunk))


def test_threads_are_shared_and_tasks_named(cluster: Any, client: Any) -> None:
    rows = twd.workers(client)
    cores = tw.get_num_threads()
    assert len(rows) == 2
    for row in rows.values():
        assert row["threads"] == max(1, cores // 2) or row["threads"] == 1
        assert row["threads"] * 2 <= max(cores, 2)
    a, _ = operands(64, 32)
    future = client.compute(twd.matmul(a, a.T, plan=twd.plan(a, a.T, workers=client)))
    wait(future, timeout=PATIENCE)
    assert "tilewright-matmul" in cluster.scheduler.task_prefixes


def test_each_worker_is_given_a_tile(cluster: Any, client: Any) -> None:
    """The plugin of workers brings that of the scheduler, once; its tasks have the preference."""
    assert PlacementPlugin.name in cluster.scheduler.plugins
    a, b = operands(96, 16)
    future = client.persist(twd.matmul(a, b))
    wait(future, timeout=PATIENCE)
    own = [cluster.scheduler.tasks[key] for key in future.__dask_keys__()[0]]
    preferred = {next(iter(one.worker_restrictions or ())) for one in own}
    assert preferred == set(cluster.scheduler.workers)
    assert all(one.loose_restrictions for one in own)


def check_product_with_a_killed_worker(cluster: Any, client: Any, seed: int) -> None:
    """The product is right, to the bit, whoever computed which part of it."""
    for _ in range(5):  # the computation may end before the worker does
        a, b = operands(192, 32, seed)
        product = twd.matmul(a, b)
        future = client.compute(product)
        unfinished = kill_in_the_middle(cluster, client, future, "tilewright-matmul", after=2 + seed % 7)
        found = future.result(timeout=PATIENCE)
        expected = product.compute(scheduler="sync")
        assert np.array_equal(found, expected)
        np.testing.assert_allclose(found, a.compute() @ b.compute(), atol=1e-3)
        client.wait_for_workers(2, timeout=PATIENCE)
        if unfinished:
            return
        seed += 1000
    pytest.skip("no product could be interrupted on this host")


def check_attention_with_a_killed_worker(cluster: Any, client: Any, seed: int) -> None:
    """Attention is right, to the bit."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        q, k, v = (rng.standard_normal((1, 2, size, 16)).astype(np.float32) for size in (64, 1024, 1024))
        parts = [da.from_array(x, chunks=(1, 1, rows, 16)) for x, rows in ((q, 32), (k, 64), (v, 64))]
        merged = twd.attention(parts[0], *map(slow, parts[1:]), causal=True)
        future = client.compute(merged)
        unfinished = kill_in_the_middle(cluster, client, future, "tilewright-attention", after=2 + seed % 5)
        found = future.result(timeout=PATIENCE)
        assert np.array_equal(found, merged.compute(scheduler="sync"))
        np.testing.assert_allclose(found, tw.attention(q, k, v, causal=True), atol=2e-6)
        client.wait_for_workers(2, timeout=PATIENCE)
        if unfinished:
            return
    pytest.skip("no attention could be interrupted on this host")


def test_a_worker_is_killed_in_a_product(cluster: Any, client: Any) -> None:
    check_product_with_a_killed_worker(cluster, client, 0)


def test_a_worker_is_killed_in_attention(cluster: Any, client: Any) -> None:
    check_attention_with_a_killed_worker(cluster, client, 0)


@exhaustive
@pytest.mark.parametrize("seed", range(1, 11))
def test_workers_are_killed(cluster: Any, client: Any, seed: int) -> None:
    check_product_with_a_killed_worker(cluster, client, seed)
    check_attention_with_a_killed_worker(cluster, client, seed)


def test_memory_is_bounded(cluster: Any, client: Any) -> None:
    """What workers hold is within the plan, and less than what a stack of partial products takes."""
    a, b = operands(256, 64)
    plan = replace(twd.plan(a, b, workers=2), chunks=(64, 64, 64), depth=2)
    with MemoryWatch(cluster) as ours:
        wait(client.persist(twd.matmul(a, b, plan=plan)), timeout=PATIENCE)
    assert 0 < ours.most <= plan.memory_bytes


@exhaustive
def test_a_cold_worker_compiles_nothing(cluster: Any, client: Any, tmp_path: Path) -> None:
    """It has a cache of its own, which the others fill before its first task."""
    warm = next(iter(twd.workers(client)))
    client.submit(products_of_a_worker, workers=[warm], pure=False).result(timeout=PATIENCE)

    async def start() -> Any:
        environment = {"TILEWRIGHT_CACHE_DIR": str(tmp_path / "objects")}
        return await Nanny(cluster.scheduler_address, nthreads=1, env=environment, name="cold")

    nanny = cluster.sync(start)
    try:
        address = nanny.worker_address
        cold = twd.workers(client)[address]
        assert cold["received"] > 0
        compiled = client.submit(products_of_a_worker, workers=[address], pure=False).result(timeout=PATIENCE)
        assert compiled == 0
        assert twd.workers(client)[address]["compilations"] == 0
    finally:
        cluster.sync(asyncio.wait_for, nanny.close(), PATIENCE)
