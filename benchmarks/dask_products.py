"""Products and attention of Dask arrays on two processes of one thread, beside one thread and Dask's own.

    python benchmarks/dask_products.py product          # also da.matmul with NumPy's chunks
    python benchmarks/dask_products.py attention        # 65,536 keys in 8 chunks
    python benchmarks/dask_products.py kills --count 20 # workers are killed in the middle of products
    python benchmarks/dask_products.py plans            # of 65,536^3 on many workers, simulated

Each of the first two runs alternates the systems, and prints the best time of each. Memory is the largest
resident set of a worker process, less what it had before.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import tilewright as tw
import tilewright.dask as twd

SETTINGS = {"distributed.worker.memory.pause": False, "distributed.worker.memory.terminate": False}
SETTINGS |= {"distributed.comm.timeouts.connect": 10}


def start() -> tuple[LocalCluster, Client]:
    """Two processes of one thread."""
    dask.config.set(SETTINGS)
    options: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50, "memory_limit": "6GiB"}
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options)
    client = Client(cluster)
    client.register_plugin(twd.TilewrightPlugin(threads=1))
    return cluster, client


def reset_peak() -> int:
    """Forget the largest resident set of this process; returns the present one."""
    with open("/proc/self/clear_refs", "w") as file:  # noqa: PTH123
        file.write("5")
    return memory("VmRSS")


def memory(name: str = "VmHWM") -> int:
    """Bytes of a line of /proc/self/status."""
    with open("/proc/self/status") as file:  # noqa: PTH123
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def random_chunk(shape: tuple[int, ...], seed: int) -> Any:
    """Numbers of a chunk."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def resident(client: Client, shape: tuple[int, ...], chunks: tuple[int, ...], seed: int) -> Any:
    """An array whose chunks are in the memory of the workers, scattered as Dask placed them."""
    rng = da.random.default_rng(seed)
    array = client.persist(rng.standard_normal(shape, dtype=np.float32, chunks=chunks))
    wait(array)
    return array


def timed(run: Callable[[], Any]) -> float:
    """Seconds of a call."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def product(n: int, chunk: int, repeat: int) -> None:
    """n x n x n in chunks."""
    cluster, client = start()
    a, b = (resident(client, (n, n), (chunk, chunk), seed) for seed in (0, 1))
    plan = twd.plan(a, b, workers=client, gbits=40, gflops=60)
    ours = twd.matmul(a, b)
    shown = f"{n}^3 float32, chunks of {chunk}"
    bound = plan.memory_bytes
    one, other = np.ones((n, n), np.float32), np.ones((n, n), np.float32)
    out = np.empty((n, n), np.float32)
    tw.set_num_threads(1)
    tw.matmul(one[:1024, :1024], other[:1024, :1024])
    times: dict[str, list[float]] = {"one thread": [], "tilewright.dask": [], "da.matmul": []}
    peaks = {"tilewright.dask": 0, "da.matmul": 0}
    cores: dict[str, list[float]] = {name: [] for name in times}

    def on_workers(name: str, lazy: Any) -> None:
        before, used = client.run(reset_peak), client.run(time.process_time)
        kept: list[Any] = []
        times[name].append(timed(lambda: kept.append(client.persist(lazy)) or wait(kept[0])))
        after, now = client.run(memory), client.run(time.process_time)
        cores[name].append(max(now[key] - used[key] for key in now))
        peaks[name] = max(peaks[name], *(after[key] - before[key] for key in before))
        kept.clear()
        time.sleep(0.5)

    for _ in range(repeat):
        began = time.process_time()
        times["one thread"].append(timed(lambda: tw.matmul(one, other, out)))
        cores["one thread"].append(time.process_time() - began)
        on_workers("tilewright.dask", ours)
        on_workers("da.matmul", da.matmul(a, b))
    best = {name: min(values) for name, values in times.items()}
    for name, seconds in best.items():
        peak = f", peak {peaks[name] / 2**20:.0f} MiB above the start" if name in peaks else ""
        cpu = f"{min(cores[name]):.2f} s of the busiest process's core"
        print(f"{shown}: {name} {seconds:.2f} s, {2 * n**3 / seconds / 1e9:.0f} GFLOP/s, {cpu}{peak}")
    share = 2 * n * n * 4 // 2
    least = {name: min(values) for name, values in cores.items()}
    for name in ("one thread", "da.matmul"):
        ratios = best[name] / best["tilewright.dask"], least[name] / least["tilewright.dask"]
        print(f"against {name} {ratios[0]:.2f} by the clock, {ratios[1]:.2f} by the busiest core")
    print(f"bound of a worker {bound / 2**20:.0f} MiB, {(bound - share) / 2**20:.0f} above its operands")
    client.close()
    cluster.close()


def attention(keys: int, parts: int, repeat: int) -> None:
    """Queries against many keys in chunks."""
    cluster, client = start()
    heads, d, queries = 8, 64, 256
    k, v = (resident(client, (1, heads, keys, d), (1, heads, keys // parts, d), seed) for seed in (0, 1))
    q = resident(client, (1, heads, queries, d), (1, heads, queries, d), 2)
    lazy = twd.attention(q, k, v)
    whole = [array.compute() for array in (q, k, v)]
    tw.set_num_threads(1)
    times: dict[str, list[float]] = {"one process": [], "tilewright.dask": []}
    for _ in range(repeat):
        times["one process"].append(timed(lambda: tw.attention(*whole)))
        times["tilewright.dask"].append(timed(lambda: wait(client.persist(lazy))))
    best = {name: min(values) for name, values in times.items()}
    wide = [array.astype(np.float64) for array in whole]
    error = np.abs(lazy.compute() - tw.attention(*wide)).max()
    for name, seconds in best.items():
        what = f"attention, {queries} queries of {heads} heads, {keys} keys in {parts} chunks"
        print(f"{what}: {name} {seconds:.3f} s")
    print(f"against one process {best['one process'] / best['tilewright.dask']:.2f}, error {error:.1e}")
    client.close()
    cluster.close()


def kills(count: int) -> None:
    """Workers are killed while products and attention run; results are compared to the bit."""
    cluster, client = start()
    right = interrupted = 0
    for number in range(count):
        client.wait_for_workers(2)
        pids = list(client.run(os.getpid).values())
        rng = da.random.default_rng(number)
        if number % 2:
            q = rng.standard_normal((1, 4, 512, 64), dtype=np.float32, chunks=(1, 1, 256, 64))
            k = rng.standard_normal((1, 4, 16384, 64), dtype=np.float32, chunks=(1, 1, 1024, 64))
            lazy = twd.attention(q, k, k * 0.5)
        else:
            a = rng.standard_normal((2048, 2048), dtype=np.float32, chunks=(256, 256))
            lazy = twd.matmul(a, a.T)
        future = client.compute(lazy)
        delay = 0.1 + 0.03 * (number % 10)
        timer = threading.Timer(delay, lambda pid=pids[number // 2 % 2]: os.kill(pid, signal.SIGKILL))
        timer.start()
        began = time.perf_counter()
        timer.join()
        interrupted += not future.done()
        found = future.result()
        same = np.array_equal(found, lazy.compute(scheduler="sync"))
        right += same
        seconds = time.perf_counter() - began
        print(
            f"kill {number + 1}: after {delay:.2f} s, {'right' if same else 'WRONG'}, {seconds:.1f} s",
            flush=True,
        )
    print(f"{right} of {count} right, {interrupted} killed before the end")
    client.close()
    cluster.close()


def plans(n: int, gflops: float) -> None:
    """The planned product on many workers, simulated."""
    for gbits in (10, 100):
        for workers in (1, 4, 16, 64, 256, 1024):
            plan = twd.plan((n, n), (n, n), workers=workers, gbits=gbits, gflops=gflops)
            found = plan.simulate()
            grid = f"{plan.rows} x {plan.columns} x {plan.replicas}"
            print(
                f"{workers:5} workers, {gbits:3} Gbit/s: {plan.algorithm:12} {grid:11} "
                f"moved {found.bytes_moved / 1e9:7.1f} GB, predicted {plan.seconds:8.3f} s, "
                f"simulated {found.seconds:8.3f} s, efficiency {found.efficiency:.1%}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("product", "attention", "kills", "plans"))
    parser.add_argument("--size", type=int, help="of the product, or how many keys")
    parser.add_argument("--chunk", type=int, default=1024)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--gflops", type=float, default=1000.0, help="of one worker of a plan")
    given = parser.parse_args()
    match given.what:
        case "product":
            product(given.size or 8192, given.chunk, given.repeat)
        case "attention":
            attention(given.size or 65536, 8, given.repeat)
        case "kills":
            kills(given.count)
        case _:
            plans(given.size or 65536, given.gflops)


if __name__ == "__main__":
    main()
