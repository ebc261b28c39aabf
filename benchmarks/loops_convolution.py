"""A direct convolution in C, through ``tilewright cc``, through clang alone, and PyTorch's: one thread.

``python benchmarks/loops_convolution.py`` prints the shortest and the median time of each, taken in turn, and
the ratios. ``--channels``, ``--size`` and ``--window`` are those of the convolution, ``--rounds`` how often
each is called. Without PyTorch its line is left out.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.tools.explore.rounds import compare_calls
from tilewright.tools.explore.statistics import median

CLANG = next(filter(None, map(shutil.which, ("clang-19", "clang"))), "clang")
FLAGS = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")
#: The convolution; x has the border that the window needs.
SOURCE = """
void conv(float *restrict y, const float *restrict x, const float *restrict w) {
  for (int o = 0; o < CHANNELS; o++)
    for (int i = 0; i < SIZE; i++)
      for (int j = 0; j < SIZE; j++) {
        float sum = 0;
        for (int c = 0; c < CHANNELS; c++)
          for (int p = 0; p < WINDOW; p++)
            for (int q = 0; q < WINDOW; q++)
              sum += x[(c * (SIZE + WINDOW - 1) + i + p) * (SIZE + WINDOW - 1) + j + q]
                     * w[((o * CHANNELS + c) * WINDOW + p) * WINDOW + q];
        y[(o * SIZE + i) * SIZE + j] = sum;
      }
}
"""
#: Results that differ by more of the largest element than this are wrong.
TOLERANCE = 1e-5

Array = NDArray[np.float32]


def compiled(driver: list[str], names: dict[str, int], folder: Path, name: str) -> Any:
    """The function, compiled by a driver of clang."""
    source, library = folder / "conv.c", folder / f"{name}.so"
    source.write_text(SOURCE, encoding="utf-8")
    words = [*driver, CLANG, *FLAGS, *(f"-D{key}={value}" for key, value in names.items())]
    subprocess.run([*words, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library)).conv


def torch_call(x: Array, w: Array) -> Callable[[], Any]:
    """PyTorch's convolution of the same operands, on one thread."""
    import torch
    from torch.nn.functional import conv2d

    torch.set_num_threads(1)
    image, weight = torch.from_numpy(x)[None], torch.from_numpy(w)
    return lambda: conv2d(image, weight).numpy()[0]


def main() -> None:
    """Compiles, compares results, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("channels", 64), ("size", 56), ("window", 3), ("rounds", 30)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    names = {name.upper(): getattr(given, name) for name in ("channels", "size", "window")}
    random = np.random.default_rng(1)
    whole = given.size + given.window - 1
    x = random.random((given.channels, whole, whole), np.float32) - np.float32(0.5)
    w = random.random((given.channels, given.channels, given.window, given.window), np.float32)
    results = {
        name: np.empty((given.channels, given.size, given.size), np.float32)
        for name in ("clang", "tilewright")
    }
    with tempfile.TemporaryDirectory() as folder:
        drivers = {"clang": [], "tilewright": [sys.executable, "-m", "tilewright", "cc", "--"]}
        functions = {name: compiled(driver, names, Path(folder), name) for name, driver in drivers.items()}

        def call(name: str) -> Callable[[], Any]:
            places = [ctypes.c_void_p(one.ctypes.data) for one in (results[name], x, w)]
            return lambda: functions[name](*places)

        calls = {name: call(name) for name in functions}
        if find_spec("torch"):
            calls["torch"] = torch_call(x, w)
        found = {name: one() for name, one in calls.items()} | results
        right = np.lib.stride_tricks.sliding_window_view(x, (given.window, given.window), (1, 2))
        expected = np.einsum("cijpq,ocpq->oij", right.astype(np.float64), w, optimize=True)
        for name, result in found.items():
            error = np.abs(result - expected).max() / np.abs(expected).max()
            assert error < TOLERANCE, f"{name}: {error:.1e}"
        samples = compare_calls(calls, given.rounds, rest=0.0)
    ours = samples["tilewright"]
    for name, times in samples.items():
        print(
            f"{name:12} shortest {min(times) * 1e3:8.2f} ms  median {median(times) * 1e3:8.2f} ms"
            f"  over tilewright {min(times) / min(ours):6.2f} {median(times) / median(ours):6.2f}"
        )


if __name__ == "__main__":
    main()
