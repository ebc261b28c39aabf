"""Runs kernels of tests/arm_units.py on an emulated machine: operands in, products out."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from arm_units import UnitKernel, unit_module
from grid_kernel import panels
from support import Array

from emulated.emulators import SECONDS, emulator_of, link
from tilewright.llvm.build import Module
from tilewright.llvm.target import emit_object
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.spec.dtype import DType

CALLER = Path(__file__).parent / "panels.c"


class Call(NamedTuple):
    """One call: its kernel and operands, and what it left in C."""

    kernel: UnitKernel
    name: str
    a: Array
    b: Array
    c: Array


def run_units(
    machine: Machine,
    kernels: Sequence[UnitKernel],
    calls: Sequence[tuple[int, str, Array, Array]],
    folder: Path,
    *,
    attributes: str = "",
    cpu: str = "",
) -> list[Call]:
    """Every call (the kernel's number, a name, A and B) in one run of one binary.

    Parameters
    ----------
    attributes : of every function, beside those of the module.
    cpu : properties of the emulated CPU, behind its name.
    """
    module = unit_module(machine, attributes)
    packed, results = [struct.pack("<q", len(calls))], []
    for number, kernel in enumerate(kernels):
        kernel.emit(module, f"kernel_{number}")
    for number, _, a, b in calls:
        tile = kernels[number].unit.tile
        left, right = panels(tile, a, b)
        results.append(np.empty((a.shape[0], b.shape[1]), tile.acc.numpy))
        steps = -(-a.shape[1] // tile.k)
        packed += [struct.pack("<5q", number, steps, len(left), len(right), results[-1].nbytes), left, right]
    (folder / "cases").write_bytes(b"".join(packed))
    binary = _build(machine, module, len(kernels), folder)
    command = emulator_of(machine).command(machine)
    command[-1] += cpu
    done = subprocess.run(
        [*command, str(binary), str(folder / "cases"), str(folder / "results")],
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = memoryview((folder / "results").read_bytes())
    assert len(found) == sum(c.nbytes for c in results)
    for c in results:
        c[...] = np.frombuffer(found[: c.nbytes], c.dtype).reshape(c.shape)
        found = found[c.nbytes :]
    return [
        Call(kernels[number], f"{name} {a.shape} {b.shape}", a, b, c)
        for (number, name, a, b), c in zip(calls, results, strict=True)
    ]


def _build(machine: Machine, module: Module, count: int, folder: Path) -> Path:
    names = [f"kernel_{number}" for number in range(count)]
    declared = "".join(f"void {name}(void);\n" for name in names)
    listed = ", ".join(f"(void *){name}" for name in names)
    (folder / "table.c").write_text(f"{declared}void *const kernels[] = {{{listed}}};\n")
    (folder / "units.o").write_bytes(emit_object(str(module), "units", machine))
    link(machine, [CALLER, folder / "table.c"], [folder / "units.o"], folder / "units")
    return folder / "units"


# --- operands -------------------------------------------------------------------------------------


def _ends(dtype: DType) -> tuple[int, int]:
    info = np.iinfo(dtype.numpy)  # type: ignore[type-var]
    return int(info.min), int(info.max)


def fillings(tile: TileFma, m: int, n: int, k: int) -> Iterator[tuple[str, Array, Array]]:
    """Operands by name: random, of extremes, and for floats exact, rough, large and small, and special."""
    random = np.random.default_rng(m * n + k)
    kinds = tile.a.numpy, tile.b.numpy
    if tile.a.is_integer:
        (low_a, high_a), (low_b, high_b) = _ends(tile.a), _ends(tile.b)
        a, b = random.integers(low_a, high_a + 1, (m, k)), random.integers(low_b, high_b + 1, (k, n))
        yield "random", a.astype(kinds[0]), b.astype(kinds[1])
        for end_a in (low_a, high_a):
            for end_b in (low_b, high_b):
                yield f"{end_a}*{end_b}", np.full((m, k), end_a, kinds[0]), np.full((k, n), end_b, kinds[1])
        return
    small = random.integers(-4, 5, (m, k)), random.integers(-4, 5, (k, n))
    yield "exact", small[0].astype(kinds[0]), small[1].astype(kinds[1])
    rough = random.standard_normal((m, k)), random.standard_normal((k, n))
    yield "rough", rough[0].astype(kinds[0]), rough[1].astype(kinds[1])
    reach = {"bf16": 65, "f16": 12, "f32": 60, "f64": 500}[tile.a.name]
    spread = [values * np.exp2(random.integers(-reach, reach, values.shape)) for values in rough]
    yield "spread", spread[0].astype(kinds[0]), spread[1].astype(kinds[1])
    least = {"bf16": 2.0**-133, "f16": 2.0**-24, "f32": 2.0**-149, "f64": 5e-324}[tile.a.name]
    odd, ones = np.zeros((m, k)), np.ones((k, n))
    for row, value in enumerate((least, -least, np.inf, np.nan)):
        odd[row::4, row::3] = value
    odd[2::4, 5:6] = -np.inf  # beside another infinity, if k reaches so far
    yield "special", odd.astype(kinds[0]), ones.astype(kinds[1])


# --- the arithmetic of BFDOT and BFMMLA -------------------------------------------------------------


def _flushed(values: Array) -> Array:
    """Subnormal float32 as zeros of the same sign; in float64."""
    wide: Array = np.asarray(values, np.float64)
    return np.where(np.abs(wide) < np.finfo(np.float32).smallest_normal, np.copysign(0.0, wide), wide)


def _to_odd(total: Array, error: Array) -> Array:
    """total + error, of which total is the nearest float64, as float32 rounded to odd, subnormals flushed."""
    bits = total.view(np.int64)
    # The error has the other sign: the truncated sum is the float64 before.
    bits = bits - ((error != 0) & (np.signbit(error) != np.signbit(total)))
    narrow = (bits >> 29 << 29).view(np.float64)
    inexact = (narrow.view(np.int64) != bits) | (error != 0)
    odd = np.where(inexact & np.isfinite(total), (narrow.view(np.int64) | 1 << 29).view(np.float64), total)
    largest = float(np.finfo(np.float32).max)
    return _flushed(np.where(np.abs(odd) > largest, np.copysign(np.inf, odd), odd))


def _sum(left: Array, right: Array) -> Array:
    total = left + right
    part = total - left
    error = (left - (total - part)) + (right - part)
    return _to_odd(total, np.where(np.isfinite(error), error, 0.0))


def bfdot(a: Array, b: Array) -> Array:
    """A·B by pairs of depths, as BFDotAdd of DDI 0487 with FPCR.EBF = 0; depths are padded to pairs."""
    m, k = a.shape
    pad = k % 2
    left = _flushed(np.pad(a.astype(np.float32), ((0, 0), (0, pad))))
    right = _flushed(np.pad(b.astype(np.float32), ((0, pad), (0, 0))))
    acc = np.zeros((m, b.shape[1]))
    with np.errstate(all="ignore"):
        for p in range(0, k, 2):
            products = [_sum(np.outer(left[:, q], right[q]), np.zeros_like(acc)) for q in (p, p + 1)]
            acc = _sum(acc, _sum(*products))
        return acc.astype(np.float32)
