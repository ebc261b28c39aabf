"""Whole programs on the library: the reference testers, threads and forks, R, Octave and Debian's NumPy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from blas_calls import check_tester, shared_file
from tiers import exhaustive

#: Where Debian's package libblas-test has the testers of the reference implementation.
TESTERS = next(iter(Path("/usr/lib").glob("*/blas/xblat3d")), Path("/none/xblat3d")).parent


def run(
    *command: str, stdin: Path | None = None, folder: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A program with the library in front of those that it is linked with."""
    environ = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    environ |= {"LD_PRELOAD": str(shared_file()), **variables}
    given = None if stdin is None else stdin.read_text(encoding="utf-8")
    return subprocess.run(
        command,
        env=environ,
        input=given,
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        timeout=300,
    )


@pytest.mark.skipif(not TESTERS.exists(), reason="Debian's libblas-test is not installed")
@pytest.mark.parametrize("letter", "sdcz")
def test_reference_testers(tmp_path: Path, letter: str) -> None:
    """LAPACK's sblat3 and its relatives: errors and numbers of every routine."""
    done = run(str(TESTERS / f"xblat3{letter}"), stdin=TESTERS / f"{letter}blat3.in", folder=tmp_path)
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    check_tester(done.stdout + written, 12 if letter in "sd" else 18)


@pytest.mark.skipif(not TESTERS.exists(), reason="Debian's libblas-test is not installed")
@pytest.mark.parametrize("letter", "sdcz")
def test_reference_testers_of_c(tmp_path: Path, letter: str) -> None:
    """The same of CBLAS, in both layouts. A variable of theirs is in the reference implementation."""
    done = run(
        str(TESTERS / f"x{letter}cblat3"),
        stdin=TESTERS / f"{letter}in3",
        folder=tmp_path,
        LD_LIBRARY_PATH=str(TESTERS),
    )
    check_tester(done.stdout, 18 if letter in "sd" else 27)


THREADS = """
import ctypes, os, sys
import numpy as np
library = ctypes.CDLL(sys.argv[1])
n = 300
rng = np.random.default_rng(0)
a, b = rng.standard_normal((2, n, n))

def multiply():
    c = np.zeros((n, n))
    pointers = [ctypes.c_void_p(one.ctypes.data) for one in (a, b, c)]
    one, zero = ctypes.c_double(1), ctypes.c_double(0)
    library.cblas_dgemm(101, 111, 111, n, n, n, one, pointers[0], n, pointers[1], n, zero, pointers[2], n)
    return c

def tasks():
    return len(os.listdir("/proc/self/task"))

before = tasks()
first = multiply()
assert np.allclose(first, a @ b)
print(tasks() - before, library.tilewright_blas_get_num_threads(), flush=True)
child = os.fork()
if child == 0:
    same = np.array_equal(multiply(), first)
    workers = tasks() == library.tilewright_blas_get_num_threads()
    os._exit(0 if same and workers and np.array_equal(multiply(), first) else 1)
print(os.waitpid(child, 0)[1], flush=True)
library.tilewright_blas_set_num_threads(1)
print(np.array_equal(multiply(), first), library.tilewright_blas_get_num_threads())
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
@pytest.mark.parametrize(
    ("variables", "most"),
    [
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"TILEWRIGHT_NUM_THREADS": "1", "OMP_NUM_THREADS": "8"}, 1),
        ({"TILEWRIGHT_NUM_THREADS": "2"}, 2),
        ({"TILEWRIGHT_NUM_THREADS": "none"}, 256),
    ],
)
def test_threads_and_forks(variables: dict[str, str], most: int) -> None:
    """Variables limit the threads; the child of a fork has its own; bits are the same with any number."""
    environ = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name} | variables
    environ["OPENBLAS_NUM_THREADS"] = "1"
    command = [sys.executable, "-c", THREADS, str(shared_file())]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=300)
    started, status, last = done.stdout.splitlines()
    new, limit = map(int, started.split())
    assert 1 <= limit <= most
    assert limit <= len(os.sched_getaffinity(0))
    assert new == limit - 1
    assert (status, last) == ("0", "True 1")


R_PROGRAM = """
n <- 1000; set.seed(1); a <- matrix(rnorm(n * n), n); b <- matrix(rnorm(n * n), n)
p <- a %*% b; q <- crossprod(a); i <- sample(n, 20); j <- sample(n, 20)
e <- sapply(j, function(y) sapply(i, function(x) sum(a[x, ] * b[, y])))
f <- sapply(j, function(y) sapply(i, function(x) sum(a[, x] * a[, y])))
stopifnot(max(abs(p[i, j] - e)) < 1e-11, max(abs(q[i, j] - f)) < 1e-11)
cat(length(list.files("/proc/self/task")), basename(extSoftVersion()["BLAS"]))
"""

OCTAVE_PROGRAM = """
n = 1000; a = randn(n); b = randn(n); p = a * b; q = a' * a; i = randperm(n)(1:20); e = 0;
for x = i, for y = i
  e = max([e, abs(p(x, y) - a(x, :) * b(:, y)), abs(q(x, y) - sum(a(:, x) .* a(:, y)))]);
end, end
assert(e < 1e-11); printf("%d", numel(glob("/proc/self/task/*")));
"""

NUMPY_PROGRAM = """
import os
import numpy as np
a, b = np.random.randn(2, 1000, 1000)
p, q = a @ b, a.T @ a
for i, j in np.random.randint(0, 1000, (20, 2)):
    assert abs(p[i, j] - (a[i] * b[:, j]).sum()) < 1e-11 and abs(q[i, j] - (a[:, i] * a[:, j]).sum()) < 1e-11
loaded = "libtilewright_blas" in open("/proc/self/maps").read()
print(len(os.listdir("/proc/self/task")), loaded)
"""


@exhaustive
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r() -> None:
    """`%*%` and `crossprod` of 1000 x 1000, by one thread and by two; R names the library as its BLAS."""
    found = [
        run("Rscript", "-e", R_PROGRAM, TILEWRIGHT_NUM_THREADS=count, OPENBLAS_NUM_THREADS="1")
        for count in "12"
    ]
    counts = [one.stdout.split() for one in found]
    assert [name for _, name in counts] == [shared_file().name] * 2, [one.stderr for one in found]
    assert int(counts[1][0]) - int(counts[0][0]) == min(2, len(os.sched_getaffinity(0))) - 1


@exhaustive
@pytest.mark.skipif(shutil.which("octave-cli") is None, reason="Octave is not installed")
def test_octave() -> None:
    """Products of 1000 x 1000, by one thread and by two."""
    found = [
        run(
            "octave-cli",
            "-q",
            "--eval",
            OCTAVE_PROGRAM,
            TILEWRIGHT_NUM_THREADS=count,
            OPENBLAS_NUM_THREADS="1",
        )
        for count in "12"
    ]
    counts = [int(one.stdout) for one in found]
    assert counts[1] - counts[0] == min(2, len(os.sched_getaffinity(0))) - 1


def debian_numpy() -> bool:
    """Whether the system's Python has NumPy, which Debian links with libblas.so.3."""
    python = Path("/usr/bin/python3")
    return python.exists() and Path("/usr/lib/python3/dist-packages/numpy").exists()


@exhaustive
@pytest.mark.skipif(not debian_numpy(), reason="Debian's python3-numpy is not installed")
def test_numpy_of_debian() -> None:
    """Products of 1000 x 1000, by one thread and by two."""
    found = [
        run("/usr/bin/python3", "-c", NUMPY_PROGRAM, TILEWRIGHT_NUM_THREADS=count, OPENBLAS_NUM_THREADS="1")
        for count in "12"
    ]
    counts = [one.stdout.split() for one in found]
    assert [loaded for _, loaded in counts] == ["True"] * 2, [one.stderr for one in found]
    assert int(counts[1][0]) - int(counts[0][0]) == min(2, len(os.sched_getaffinity(0))) - 1
