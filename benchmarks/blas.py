"""Products of the BLAS library of this package against those of OpenBLAS, one thread, in one process.

    python benchmarks/blas.py [--library FILE] [--peer FILE] [--rounds N]

Both take turns in random order. OPENBLAS_CORETYPE and the like must not be set: OpenBLAS then takes its best
kernels, which the first line names.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.tools.explore.rounds import median_seconds

SIZES = (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
#: Seconds of one measurement, filled by repeating short calls.
SECONDS = 5e-3


def made_library() -> str:
    """The library for this host, in a temporary folder."""
    folder = tempfile.mkdtemp(prefix="tilewright-blas-")
    command = [sys.executable, "-m", "tilewright", "emit", "blas", folder, "--form", "shared"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return str(Path(folder) / "libtilewright_blas.so")


def found_peer() -> str:
    """OpenBLAS of NumPy's wheel."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    return str(next(folder.glob("libscipy_openblas*")))


def routine(library: ctypes.CDLL, name: str) -> tuple[Callable[..., None], Any]:
    """A routine by one of the names that builds give it, and the type of its integers."""
    spellings = {
        f"{name}_": ctypes.c_int32,
        f"scipy_{name}_64_": ctypes.c_int64,
        f"scipy_{name}_": ctypes.c_int32,
    }
    for spelled, kind in spellings.items():
        if hasattr(library, spelled):
            function = getattr(library, spelled)
            function.restype = None
            return function, kind
    raise SystemExit(f"the library has no {name}")


def core_name(library: ctypes.CDLL) -> str:
    """The kernels that OpenBLAS has chosen."""
    for prefix, suffix in (("", ""), ("scipy_", "64_"), ("scipy_", "")):
        if hasattr(library, f"{prefix}openblas_get_corename{suffix}"):
            function = getattr(library, f"{prefix}openblas_get_corename{suffix}")
            function.restype = ctypes.c_char_p
            return str(function().decode())
    return "unknown"


def set_one_thread(name: str, library: ctypes.CDLL) -> None:
    """Makes a library use one thread."""
    prefixes, suffixes = ("tilewright_blas_", "openblas_", "scipy_openblas_"), ("", "64_")
    for symbol in (f"{prefix}set_num_threads{suffix}" for prefix in prefixes for suffix in suffixes):
        if hasattr(library, symbol):
            getattr(library, symbol)(1)
            return
    raise SystemExit(f"the threads of {name} cannot be set")


def call_of(library: ctypes.CDLL, letter: str, n: int, operands: tuple[Any, ...]) -> Callable[[], None]:
    """C = A B, column-major."""
    function, kind = routine(library, f"{letter}gemm")
    a, b, c = operands
    one, zero = np.ones(1, a.dtype), np.zeros(1, a.dtype)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (one, a, b, zero, c)]
    size, plain = ctypes.byref(kind(n)), ctypes.c_char_p(b"N")
    first, second = (plain, plain, size, size, size, pointers[0], pointers[1], size), pointers[2:]
    arguments = (*first, second[0], size, second[1], second[2], size)
    kept = (one, zero)

    def call() -> None:
        function(*arguments)
        assert kept

    return call


def main() -> None:
    """Prints a line for each type and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library")
    parser.add_argument("--peer")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    libraries = {
        "tilewright": ctypes.CDLL(given.library or made_library()),
        "openblas": ctypes.CDLL(given.peer or found_peer()),
    }
    for name, library in libraries.items():
        set_one_thread(name, library)
    print(f"OpenBLAS kernels: {core_name(libraries['openblas'])}")
    for letter, dtype in (("s", np.float32), ("d", np.float64)):
        for n in SIZES:
            rng = np.random.default_rng(n)
            a, b = (np.asfortranarray(rng.standard_normal((n, n)).astype(dtype)) for _ in "ab")
            exact, c = a.astype(np.float64) @ b.astype(np.float64), np.zeros((n, n), dtype, order="F")
            calls = {name: call_of(library, letter, n, (a, b, c)) for name, library in libraries.items()}
            for call in calls.values():
                c[...] = np.nan
                call()
                assert np.abs(c - exact).max() <= n * np.finfo(dtype).eps * np.abs(exact).max()
            times = median_seconds(calls, given.rounds, SECONDS)
            speed = {name: 2e-9 * n**3 / found for name, found in times.items()}
            ratio = speed["tilewright"] / speed["openblas"]
            shown = "  ".join(f"{name} {value:6.1f}" for name, value in speed.items())
            print(f"{letter}gemm {n:5}  {shown} GFLOPS  ratio {ratio:.3f}", flush=True)


if __name__ == "__main__":
    main()
