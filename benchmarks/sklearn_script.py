"""A program of scikit-learn, unchanged: with and without `tilewright run`.

    python benchmarks/sklearn_script.py --compare 5     each in new processes, in turn; ratios and differences
    python -m tilewright run benchmarks/sklearn_script.py

20,000 x 200 float32. Times are those of fitting and predicting, the fastest of a few, after one small fit of
each estimator.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROWS, COLUMNS = 20_000, 200
REPETITIONS = 5


def estimators() -> Iterator[tuple[str, Callable[[Any, Any], Any]]]:
    """Names, and functions of data and targets that give what is compared."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LinearRegression
    from sklearn.neighbors import NearestNeighbors
    from sklearn.neural_network import MLPClassifier

    def pca(x: Any, _: Any) -> Any:
        model = PCA(20, random_state=0).fit(x)
        return model.explained_variance_, model.inverse_transform(model.transform(x[:500]))

    def kmeans(x: Any, _: Any) -> Any:
        model = KMeans(20, n_init=1, max_iter=20, random_state=0).fit(x)
        return model.cluster_centers_, model.predict(x)

    def regression(x: Any, y: Any) -> Any:
        model = LinearRegression().fit(x, y)
        return model.coef_, model.predict(x)

    def neighbours(x: Any, _: Any) -> Any:
        return NearestNeighbors(n_neighbors=5, algorithm="brute").fit(x).kneighbors(x[:2000])

    def network(x: Any, y: Any) -> Any:
        model = MLPClassifier((128,), max_iter=4, random_state=0, batch_size=256)
        return model.fit(x, (y > 0).astype(int)).predict_proba(x[:500])

    yield "PCA", pca
    yield "KMeans", kmeans
    yield "LinearRegression", regression
    yield "NearestNeighbors", neighbours
    yield "MLPClassifier", network


def run() -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds and results of each estimator."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((30, COLUMNS))
    x = rng.standard_normal((ROWS, 30)) @ basis + 0.3 * rng.standard_normal((ROWS, COLUMNS))
    x = x.astype(np.float32)
    y = (x @ rng.standard_normal(COLUMNS)).astype(np.float32)
    times, results = {}, {}
    for name, function in estimators():
        function(x[:1000], y[:1000])
        times[name] = float("inf")
        for _ in range(REPETITIONS):
            begin = time.perf_counter()
            found = function(x, y)
            times[name] = min(times[name], time.perf_counter() - begin)
        parts = found if isinstance(found, tuple) else (found,)
        results |= {f"{name} {number}": np.asarray(part) for number, part in enumerate(parts)}
    return times, results


def compare(repetitions: int) -> None:
    """Both ways in turn; each is a process of its own."""
    ways = {"numpy": [sys.executable], "installed": [sys.executable, "-m", "tilewright", "run"]}
    times: dict[str, dict[str, list[float]]] = {way: {} for way in ways}
    with tempfile.TemporaryDirectory() as directory:
        for number in range(repetitions):
            for way in ("numpy", "installed") if number % 2 else ("installed", "numpy"):
                file = str(Path(directory, f"{way}.npz"))
                done = subprocess.run([*ways[way], __file__, "--save", file], check=True, capture_output=True)
                for name, seconds in json.loads(done.stdout.splitlines()[-1]).items():
                    times[way].setdefault(name, []).append(seconds)
        first, second = (np.load(str(Path(directory, f"{way}.npz"))) for way in ways)
        for name, found in times["numpy"].items():
            others = times["installed"][name]
            ratio = statistics.median(a / b for a, b in zip(found, others, strict=True))
            best = min(found), min(others)
            print(
                f"{name:>18} numpy {best[0]:6.3f} s, installed {best[1]:6.3f} s: median ratio {ratio:.2f}, "
                f"of the fastest {best[0] / best[1]:.2f}"
            )
        for key in first.files:
            a, b = first[key], second[key]
            if a.dtype.kind == "f":
                off = np.abs(a - b).max() / np.abs(a).max()
                print(f"{key:>20}: largest difference {off:.1e}, relative to the largest value")
            else:
                print(f"{key:>20}: {np.mean(a == b):.4%} equal")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--compare", type=int, default=0, help="runs of each way")
    parser.add_argument("--save", type=Path, help="where results go")
    asked = parser.parse_args()
    if asked.compare:
        compare(asked.compare)
        return
    times, results = run()
    if asked.save:
        np.savez(asked.save, **results)
    if "tilewright" in sys.modules:
        print(sys.modules["tilewright"].show_calls())
    print(json.dumps(times))


if __name__ == "__main__":
    main()
