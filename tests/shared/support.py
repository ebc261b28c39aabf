"""What several tests share: fillings, layouts, rounding bounds, exceptions, guard pages, child processes."""

from __future__ import annotations

import ctypes
import ctypes.util
import mmap
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

import tilewright as tw
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import usable_isas
from tilewright.machine.machine import enabled_features

Array: TypeAlias = NDArray[Any]

ROOT = Path(__file__).resolve().parents[2]
#: Pages that can be made inaccessible: everywhere but on Windows.
GUARD_PAGES = os.name == "posix"


def host_rows() -> tuple[Isa, ...]:
    """The instruction-set rows this process can run, best first."""
    machine = tw.machine()
    return usable_isas(machine.arch, enabled_features(machine.features))


# --- fillings and views -------------------------------------------------------------------------


def filled(shape: tuple[int, ...], dtype: DTypeLike = np.float32, seed: int = 0) -> Array:
    """Integers from -4 to 4: products of them have exact sums in every float type, in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def rough(shape: tuple[int, ...], dtype: DTypeLike = np.float32, seed: int = 0) -> Array:
    """Normal variates: their sums round, and another order of additions gives other bits."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _strided(array: Array) -> Array:
    base = np.full(tuple(2 * size + 1 for size in array.shape), 99, array.dtype)
    view: Array = base[tuple(slice(1, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def _reversed(array: Array) -> Array:
    flip = (slice(None, None, -1),) * array.ndim
    view: Array = array[flip].copy()[flip]
    return view


def _reversed_rows(array: Array) -> Array:
    view: Array = array[::-1].copy()[::-1]
    return view


def _padded(array: Array) -> Array:
    base = np.full((*array.shape[:-1], array.shape[-1] + 3), 99, array.dtype)
    view: Array = base[..., : array.shape[-1]]
    view[...] = array
    return view


#: The same values in other places of memory.
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": lambda array: np.array(array, order="C"),
    "F": lambda array: np.array(array, order="F"),
    "padded": _padded,
    "padded columns": lambda array: _padded(array.T).T,
    "strided": _strided,
    "reversed": _reversed,
    "reversed rows": _reversed_rows,
    "reversed columns": lambda array: _reversed_rows(array.T).T,
}


def unaligned(array: Array) -> Array:
    """A copy whose data start one byte behind an aligned address."""
    buffer = np.zeros(array.nbytes + 1 + array.itemsize, np.uint8)
    view = buffer[1 : 1 + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    assert array.size == 0 or not view.flags.aligned
    return view


# --- the rounding bound -------------------------------------------------------------------------


def gamma(count: int, dtype: DTypeLike) -> float:
    """γ(count) = count·u / (1 - count·u) of a float type."""
    unit = float(np.finfo(np.dtype(dtype)).eps) / 2
    return count * unit / (1 - count * unit)


def assert_accurate(
    found: Array, a: Array, b: Array, c: Array | None = None, *, alpha: float = 1.0, beta: float = 0.0
) -> None:
    """|found - exact| ≤ γ(k+2)·(|αA||B| + |βC|), the reference's own float64 rounding added."""
    wide_a, wide_b = (np.asarray(array).astype(np.float64) for array in (a, b))
    exact, magnitude = alpha * (wide_a @ wide_b), abs(alpha) * (abs(wide_a) @ abs(wide_b))
    if c is not None and beta != 0:
        exact, magnitude = exact + beta * c.astype(np.float64), magnitude + abs(beta * c.astype(np.float64))
    count = wide_a.shape[-1] + 2
    bound = (gamma(count, found.dtype) + gamma(count, np.float64)) * magnitude
    wrong = ~(abs(found.astype(np.float64) - exact) <= bound)
    assert not wrong.any(), f"{np.count_nonzero(wrong)} of {found.size} elements outside the bound"


# --- floating-point exceptions ------------------------------------------------------------------

#: <fenv.h> of glibc, musl and macOS: invalid, division by zero, overflow; underflow.
EXCEPTIONS = {"x86_64": (0x01 | 0x04 | 0x08, 0x10), "aarch64": (0x01 | 0x02 | 0x04, 0x08)}
ARCH = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
_LIBM_NAME = ctypes.util.find_library("m")
#: Whether the C library's fenv.h is known here.
FENV = ARCH in EXCEPTIONS and _LIBM_NAME is not None


@cache
def libm() -> Any:
    """The C library's mathematics."""
    return ctypes.CDLL(_LIBM_NAME)


@contextmanager
def no_flags(flags: int | None = None) -> Iterator[None]:
    """No floating-point exception of `flags` (None: none at all, but inexact) happens inside."""
    flags = sum(EXCEPTIONS[ARCH]) if flags is None else flags
    libm().feclearexcept(flags)
    yield
    raised = libm().fetestexcept(flags)
    libm().feclearexcept(flags)
    assert raised == 0, f"exceptions {raised:#x} were raised"


# --- guard pages --------------------------------------------------------------------------------


@cache
def _mprotect() -> Any:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
    return function


class GuardedMemory:
    """Pages with an inaccessible page in front and one behind.

    Parameters
    ----------
    size : bytes that must fit between the guards.
    """

    #: What the pages hold where no array stands: NaN in every float type.
    PATTERN = 0xFF

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        inner = -(-size // page) * page
        self._memory = mmap.mmap(-1, inner + 2 * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for guard in (start, start + page + inner):
            assert _mprotect()(guard, page, 0) == 0, os.strerror(ctypes.get_errno())
        self.bytes = np.frombuffer(self._memory, np.uint8, inner, page)
        self.bytes[...] = self.PATTERN
        self._placed = self.bytes[:0]

    def place(self, array: Array, steps: tuple[int, ...], *, at_end: bool) -> Array:
        """A copy of an array with the byte strides `steps`, its outermost byte beside a guard page."""
        self._placed[...] = self.PATTERN  # what is outside holds it already: the memory may be large
        reach = [max(size - 1, 0) * step for size, step in zip(array.shape, steps, strict=True)]
        below = -sum(min(0, distance) for distance in reach)
        extent = below + sum(max(0, distance) for distance in reach) + array.itemsize
        first = self.bytes.size - extent if at_end else 0
        offset, self._placed = below + first, self.bytes[first : first + extent]
        view: Array = np.ndarray(array.shape, array.dtype, self.bytes, offset, steps)
        view[...] = array
        return view

    def outside(self, view: Array) -> Array:
        """A copy of the bytes in which those of a placed array are zero."""
        copy = self.bytes.copy()
        offset = view.__array_interface__["data"][0] - self.bytes.__array_interface__["data"][0]
        np.ndarray(view.shape, view.dtype, copy, offset, view.strides)[...] = 0
        return copy


# --- bounds of time ------------------------------------------------------------------------------


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What runs inside takes at most so much of the processor's time: Python code that goes on is stopped.

    Meant for searches that would take hours, with bounds far above what is needed.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"still at work after {seconds} s of the processor's time")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- child processes ----------------------------------------------------------------------------


def run_python(*arguments: str, isa: str | None = None, seconds: float = 300) -> str:
    """The output of a Python process that can import the package and this module; it must end well.

    Of the package's variables it gets the place of the object cache only.
    """
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests/shared", "tests"))
    kept = "TILEWRIGHT_CACHE_DIR"
    environ = {
        name: value
        for name, value in os.environ.items()
        if name == kept or not name.startswith("TILEWRIGHT_")
    }
    environ |= {"PYTHONPATH": path, "PYTHONFAULTHANDLER": "1"}
    if isa is not None:
        environ["TILEWRIGHT_ISA"] = isa
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def graphs_by_python() -> int:
    """How often Python will make calls of compiled graphs that machine code does not repeat."""
    rows = [row for row in tw.show_calls() if row.function == "__call__"]
    return sum(sum(row.python.values()) for row in rows)
