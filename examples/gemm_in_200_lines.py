"""A JIT compiler for products C = A·B of float32, in five steps; docs/building/gemm.md walks through them.

python examples/gemm_in_200_lines.py        # measures each step beside the peak and NumPy
"""

from __future__ import annotations

import argparse
import ctypes
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.compiler.peak import measure_peak
from tilewright.llvm.build import Function, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_assembly, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, Value, element_type, int64, vector_type, zero
from tilewright.spec.dtype import F32

Array = np.ndarray[Any, np.dtype[Any]]

# --- step 0: from text to a function ------------------------------------------------------------------

MACHINE = tw.machine()
LANES = MACHINE.isa.lanes(F32)  # numbers in a vector register
FLOAT, VECTOR = element_type(F32), vector_type(F32, LANES)
BYTES = 4
ARGUMENTS = "a", "b", "c", "m", "n", "k", "a_panels", "b_panels"
POINTERS = "a", "b", "c", "a_panels", "b_panels"


def compiled(step: Callable[[Function], None]) -> tuple[Any, str]:
    """A step as a function of this process, and its assembly."""
    module = Module(step.__name__, MACHINE.triple, data_layout(MACHINE))
    kinds = [(name, POINTER if name in POINTERS else INT64) for name in ARGUMENTS]
    f = module.define(step.__name__, VOID, kinds, exported=True)
    step(f)
    f.ret()
    text = str(module)
    code = Linked(emit_object(text, step.__name__, MACHINE), (step.__name__,), {})
    native = [ctypes.c_void_p if name in POINTERS else ctypes.c_int64 for name in ARGUMENTS]
    return code.function(step.__name__, native), emit_assembly(text, step.__name__, MACHINE)


def element(f: Function, pointer: Value, row: Value, width: Value, column: Value) -> Value:
    """The address of an element of a matrix whose rows have some width."""
    return f.at(pointer, f.mul(f.add(f.mul(row, width), column), BYTES))


def size(f: Function, name: str) -> Value:
    """A size that the caller gives."""
    return f.arguments[name]


# --- step 1: three loops ------------------------------------------------------------------------------


def three_loops(f: Function) -> None:
    """C[i, j] = Σ A[i, p]·B[p, j], one number at a time."""
    a, b, c, m, n, k = (f.arguments[name] for name in ARGUMENTS[:6])
    one = int64(1)
    with f.loop(int64(0), m, one) as i, f.loop(int64(0), n, one) as j:
        with f.carried_loop(int64(0), k, one, [zero(FLOAT)]) as (p, (total,), advance):
            left = f.load(FLOAT, element(f, a, i, k, p), BYTES)
            right = f.load(FLOAT, element(f, b, p, n, j), BYTES)
            advance([f.multiply_add(left, right, total, fused=True)])
        f.store(advance.results[0], element(f, c, i, n, j), BYTES)


# --- step 2: a vector of columns ----------------------------------------------------------------------


def vectors(f: Function) -> None:
    """LANES columns at a time: n must be a multiple of them."""
    tiles(f, rows=1, columns=1)


# --- step 3: a tile of registers ----------------------------------------------------------------------

#: Vectors beside each other, and rows below each other: two vectors of B, one of A and one to spare.
ACROSS = 2
DOWN = (MACHINE.isa.vector_registers - 4) // ACROSS
MR, NR = DOWN, ACROSS * LANES


def register_tile(f: Function) -> None:
    """MR x NR sums stay in registers: each number of A is used NR times, each of B MR times."""
    tiles(f, rows=DOWN, columns=ACROSS)


def tiles(f: Function, rows: int, columns: int) -> None:
    """Tile after tile of C, with A and B where they are; m and n are multiples of the tile."""
    a, b, c, m, n, k = (f.arguments[name] for name in ARGUMENTS[:6])
    with f.loop(int64(0), n, int64(columns * LANES)) as j, f.loop(int64(0), m, int64(rows)) as i:
        start = [zero(VECTOR)] * (rows * columns)
        with f.carried_loop(int64(0), k, int64(1), start) as (p, sums, advance):
            right = row_of_vectors(f, element(f, b, p, n, j), columns)
            left = [element(f, a, f.add(i, r), k, p) for r in range(rows)]
            advance(multiplied(f, left, right, sums))
        for r in range(rows):
            for v, total in enumerate(advance.results[r * columns : (r + 1) * columns]):
                f.store(total, f.at(element(f, c, f.add(i, r), n, j), v * LANES * BYTES), BYTES)


def row_of_vectors(f: Function, pointer: Value, count: int) -> list[Value]:
    """Vectors that stand one after the other."""
    return [f.load(VECTOR, f.at(pointer, v * LANES * BYTES), BYTES) for v in range(count)]


def multiplied(
    f: Function, left: Sequence[Value], right: Sequence[Value], sums: Sequence[Value]
) -> list[Value]:
    """The sums of a tile after one depth: each number of A times each vector of B."""
    found = []
    for r, pointer in enumerate(left):
        every = f.splat(f.load(FLOAT, pointer, BYTES), LANES)
        for v, vector in enumerate(right):
            found.append(f.multiply_add(every, vector, sums[r * len(right) + v], fused=True))
    return found


# --- step 4: panels, and step 5: cache blocks ---------------------------------------------------------

#: A panel of B (KC x NR) takes half of L1, a block of A (MC x KC) half of L2, NC columns of B some of L3.
KC = MACHINE.l1.size // 2 // (NR * BYTES)
MC = max(MACHINE.l2.size // 2 // (KC * BYTES) // MR, 1) * MR
NC = 4096 // NR * NR


def panels(f: Function) -> None:
    """Both operands are copied into the order in which tiles read them, whole depths at a time."""
    blocked(f, size(f, "m"), size(f, "n"), size(f, "k"))


def cache_blocks(f: Function) -> None:
    """The same in blocks that fit the caches (Goto and van de Geijn 2008)."""
    blocked(f, int64(MC), int64(NC), int64(KC))


def blocked(f: Function, mc: Value, nc: Value, kc: Value) -> None:
    """Five loops around the tile. Panels are padded with zeros; of the last tiles a part is stored."""
    a, b, c, m, n, k, a_panels, b_panels = (f.arguments[name] for name in ARGUMENTS)
    edge, one, mr, nr = f.alloca(FLOAT, MR * NR, 64), int64(1), int64(MR), int64(NR)
    with f.loop(int64(0), n, nc) as jc, f.loop(int64(0), k, kc) as pc:
        columns, depth = f.minimum(nc, f.sub(n, jc)), f.minimum(kc, f.sub(k, pc))
        pack(f, (b_panels, NR), element(f, b, pc, n, jc), (columns, depth), (one, n))
        with f.loop(int64(0), m, mc) as ic:
            rows = f.minimum(mc, f.sub(m, ic))
            pack(f, (a_panels, MR), element(f, a, ic, k, pc), (rows, depth), (k, one))
            with f.loop(int64(0), columns, nr) as j, f.loop(int64(0), rows, mr) as i:
                left = element(f, a_panels, i, depth, int64(0))
                right = element(f, b_panels, j, depth, int64(0))
                place = element(f, c, f.add(ic, i), n, f.add(jc, j))
                for row in range(MR):  # C comes from memory while the tile is computed
                    f.prefetch(element(f, place, int64(row), n, int64(0)), write=True, locality=3)
                sums = panel_product(f, left, right, depth)
                down, across = f.minimum(mr, f.sub(rows, i)), f.minimum(nr, f.sub(columns, j))
                is_whole = f.and_(f.icmp("==", down, MR), f.icmp("==", across, NR))
                with f.branch(is_whole) as (whole, part):
                    with whole:
                        add_tile(f, sums, place)
                    with part:
                        add_part(f, sums, edge, place, (down, across))


Pair = tuple[Value, Value]


def pack(f: Function, to: tuple[Value, int], source: Value, sizes: Pair, strides: Pair) -> None:
    """Panels of `width` lines: depth by depth, the numbers of all lines; zeros beyond the last line."""
    (panels, width), (lines, depth), (apart, along), one = to, sizes, strides, int64(1)
    with f.loop(int64(0), lines, int64(width)) as first, f.loop(int64(0), depth, one) as p:
        place = f.at(panels, f.mul(f.add(f.mul(first, depth), f.mul(p, width)), BYTES))
        row = f.at(source, f.mul(f.add(f.mul(first, apart), f.mul(p, along)), BYTES))
        left = f.sub(lines, first)
        if apart.known == 1:  # lines of B are adjacent: whole vectors
            with f.branch(f.icmp(">=", left, width)) as (whole, part):
                with whole:
                    for v, vector in enumerate(row_of_vectors(f, row, width // LANES)):
                        f.store(vector, f.at(place, v * LANES * BYTES), BYTES)
                with part:
                    pack_numbers(f, (place, width), row, left, apart)
        else:
            pack_numbers(f, (place, width), row, left, apart)


def pack_numbers(f: Function, to: tuple[Value, int], row: Value, lines: Value, apart: Value) -> None:
    """One depth of a panel, number by number."""
    place, width = to
    for number in range(width):
        exists = f.minimum(int64(number), f.sub(lines, 1))
        value = f.load(FLOAT, f.at(row, f.mul(f.mul(exists, apart), BYTES)), BYTES)
        value = f.select(f.icmp("<", int64(number), lines), value, zero(FLOAT))
        f.store(value, f.at(place, number * BYTES), BYTES)


def panel_product(f: Function, left: Value, right: Value, depth: Value) -> list[Value]:
    """The sums of a tile, whose operands stand in the order of their use."""
    start = [zero(VECTOR)] * (MR * ACROSS)
    with f.carried_loop(int64(0), depth, int64(1), [left, right, *start], "p") as (_, (a, b, *sums), advance):
        found = multiplied(f, [f.at(a, r * BYTES) for r in range(MR)], row_of_vectors(f, b, ACROSS), sums)
        advance([f.at(a, MR * BYTES), f.at(b, NR * BYTES), *found])
    return advance.results[2:]


def add_tile(f: Function, sums: Sequence[Value], place: Value) -> None:
    """C += the sums of a whole tile."""
    for index, total in enumerate(sums):
        row, vector = divmod(index, ACROSS)
        at = f.at(element(f, place, int64(row), size(f, "n"), int64(0)), vector * LANES * BYTES)
        f.store(f.plus(f.load(VECTOR, at, BYTES), total), at, BYTES)


def add_part(f: Function, sums: Sequence[Value], edge: Value, place: Value, shape: Pair) -> None:
    """C += the first rows and columns of a tile, by way of memory."""
    for index, total in enumerate(sums):
        f.store(total, f.at(edge, index * LANES * BYTES), BYTES)
    with f.loop(int64(0), shape[0], int64(1)) as i, f.loop(int64(0), shape[1], int64(1)) as j:
        at, own = element(f, place, i, size(f, "n"), j), element(f, edge, i, int64(NR), j)
        f.store(f.plus(f.load(FLOAT, at, BYTES), f.load(FLOAT, own, BYTES)), at, BYTES)


# --- measurement --------------------------------------------------------------------------------------

STEPS: tuple[Callable[[Function], None], ...] = (three_loops, vectors, register_tile, panels, cache_blocks)


def product(run: Any, a: Array, b: Array, c: Array, room: Sequence[Array]) -> None:
    """C += A·B by a compiled step (the first three: C = A·B)."""
    (m, k), n = a.shape, b.shape[1]
    run(*(x.ctypes.data for x in (a, b, c)), m, n, k, *(x.ctypes.data for x in room))


def room_for(m: int, n: int, k: int) -> tuple[Array, Array]:
    """Memory for the panels of A and of B."""
    return np.zeros((m + MR) * k, np.float32), np.zeros((n + NR) * k, np.float32)


def measured(step: Callable[[Function], None], n: int) -> tuple[float, str]:
    """GFLOPS of a step for square matrices, checked against NumPy, and its assembly."""
    run, assembly = compiled(step)
    if step in STEPS[:3]:  # they have whole tiles alone
        n = -(-n // math.lcm(MR, NR)) * math.lcm(MR, NR)
    a, b = (np.random.default_rng(seed).standard_normal((n, n), dtype=np.float32) for seed in (0, 1))
    room, times = room_for(n, n, n), []
    for _ in range(2 if step is three_loops else 9):
        c = np.zeros((n, n), np.float32)
        started = time.perf_counter()
        product(run, a, b, c, room)
        times.append(time.perf_counter() - started)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-3)
    return 2 * n**3 / min(times) / 1e9, assembly


def main() -> None:
    """Print the speed of each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", type=int, default=1024, help="rows, columns and depth")
    parser.add_argument("--assembly", choices=[step.__name__ for step in STEPS], help="print that of a step")
    options = parser.parse_args()
    for step in STEPS:
        speed, assembly = measured(step, options.size)
        if options.assembly == step.__name__:
            print(assembly)
        peak = max(measure_peak(F32, MACHINE, 0.02) for _ in range(5))
        print(f"{step.__name__:14} {speed:7.1f} GFLOPS, {speed / peak:6.1%} of the peak of {peak:.0f}")


if __name__ == "__main__":
    main()
