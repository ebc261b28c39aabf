"""Batched products as one compiled loop over a kernel, without Python code for each matrix."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.jit import CodeAddress, Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.team import BODY_ARGUMENTS, Environment, Team
from tilewright.llvm.values import INT64, POINTER, VOID, Type, Value, element_type, int64, null
from tilewright.machine.host import host_machine
from tilewright.machine.machine import CACHE_LINE
from tilewright.macro.work import TASK_WORK
from tilewright.preparing import once
from tilewright.spec.dtype import ACCUMULATORS, DType
from tilewright.spec.problem import FIXED_STRIDES, PRODUCT_SIZES
from tilewright.threads.pool import TEAM_WORK

_OPERANDS = ("a", "b", "c")


class BatchAxis(NamedTuple):
    """One batch axis: its length, and bytes from one matrix to the next in a, b and c."""

    length: int
    steps: tuple[int, ...]


def merge_axes(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[BatchAxis, ...]:
    """Batch axes, with adjacent ones fused if every operand is contiguous across them; length-1 axes dropped.

    Before: shape (4, 5), strides (200, 40) in a, (0, 0) in b, (500, 100) in c. After: one axis of 20.

    >>> merge_axes((4, 5), ((200, 40), (0, 0), (500, 100)))
    (BatchAxis(length=20, steps=(40, 0, 100)),)
    """
    merged: list[BatchAxis] = []
    for length, *steps in zip(shape, *strides, strict=True):
        if length == 1:
            continue
        outer = merged[-1] if merged else None
        if outer is not None and all(o == i * length for o, i in zip(outer.steps, steps, strict=True)):
            merged[-1] = BatchAxis(outer.length * length, tuple(steps))
        else:
            merged.append(BatchAxis(length, tuple(steps)))
    return tuple(merged)


#: Epilogue vectors shared by all products of a batch: a bias.
MOST_VECTORS = 1

#: Products of more multiply-adds are parallelised inside, one after the other: 5 ms on one thread.
MOST_WORK = 1 << 28
#: Multiply-adds assumed for a product of hardcoded sizes when tasks are sized.
FIXED_WORK = 1 << 14

#: Bytes of a result that are prefetched while the product before it is computed; more would not stay in L2.
MOST_AHEAD = 32 << 10

#: Tasks for each thread of a batch, so that threads wait little for the last one.
TASKS_PER_THREAD = 8


def _name(acc: DType | None, vectors: int) -> str:
    return f"tw_batch_{acc or 'fixed'}{'_vector' * vectors}"


def _emit(acc: DType | None, vectors: int) -> str:
    """The loop over kernels of an accumulator type, or over kernels of hardcoded sizes."""
    machine, name = host_machine(), _name(acc, vectors)
    module = Module(name, machine.triple, data_layout(machine))
    if acc is None:
        strides = [(stride, INT64) for stride in FIXED_STRIDES]
        _Batch(module, name, strides, whole=False).emit()
    else:
        scalar = element_type(acc)
        given = [(f"vector{number}", POINTER) for number in range(vectors)]
        rest = [*((size, INT64) for size in PRODUCT_SIZES), ("alpha", scalar), ("beta", scalar)]
        _Batch(module, name, [*given, *rest], whole=True).emit()
    return str(module)


class _Batch:
    """One loop: `count` kernel calls, with the three pointers advancing by byte strides.

    A team runs several products concurrently, each on one thread with its own scratch. If products are few
    and large, or scratch is short, each product is parallelised in turn.

    Parameters
    ----------
    rest : arguments of the kernel after its pointers.
    whole : whether it also takes scratch and a team, as kernels of run-time sizes do.
    """

    def __init__(self, module: Module, name: str, rest: list[tuple[str, Type]], *, whole: bool) -> None:
        self.module, self.name, self.rest, self.whole = module, name, rest, whole
        self.arguments = [
            ("kernel", POINTER),
            ("count", INT64),
            *((f"step_{name}", INT64) for name in _OPERANDS),
            *((name, POINTER) for name in _OPERANDS),
            *rest,
            *((("scratch", POINTER), ("scratch_step", INT64), ("parts", INT64)) if whole else ()),
            ("team", POINTER),
        ]

    def emit(self) -> None:
        """The exported function."""
        f = self.module.define(self.name, VOID, self.arguments, exported=True)
        g = f.arguments
        together = f.new_block("together")
        several, alone = f.new_block("several"), f.new_block("alone")
        f.jump_if(f.icmp("==", g["team"], null()), alone, several)
        f.place(several)
        team = Team.of(f, g["team"])
        one = f.icmp("==", team.threads, 1)
        each_by_all = f.new_block("each_by_all") if self.whole else alone
        f.jump_if(f.and_(f.not_(one), self.worthwhile(f, team.threads)), together, each_by_all)
        if self.whole:
            f.place(each_by_all)
            self.loop(f, g, int64(0), g["count"], g["scratch"], g["team"], asked=team.pointer)
            f.ret()
        f.place(alone)
        self.loop(f, g, int64(0), g["count"], g.get("scratch"), g["team"])
        f.ret()
        f.place(together)
        least = f.ceildiv(f.mul(g["count"], self.work(f)), int64(TASK_WORK))  # of a bounded length
        tasks = f.minimum(f.maximum(f.mul(team.threads, TASKS_PER_THREAD), least), g["count"])
        each = f.ceildiv(g["count"], tasks)
        environment = Environment({**g, "each": each})
        body = self.body(environment)
        team.run(f, body.callee, environment.keep(f, body), f.ceildiv(g["count"], each))
        f.ret()

    def worthwhile(self, f: Function, threads: Value) -> Value:
        """Whether to run products concurrently rather than parallelise each."""
        g = f.arguments
        several = f.icmp(">", g["count"], 1)
        if not self.whole:
            return several
        work = self.work(f)
        small = f.icmp("<=", work, TEAM_WORK)
        many = f.icmp(">=", g["count"], f.mul(threads, TASKS_PER_THREAD))
        many = f.and_(many, f.icmp("<=", work, MOST_WORK))
        possible = f.and_(several, f.icmp("<=", threads, g["parts"]))
        return f.and_(possible, f.or_(small, many))

    def work(self, f: Function) -> Value:
        """Multiply-adds of one product; those of hardcoded sizes are small."""
        if not self.whole:
            return int64(FIXED_WORK)
        m, n, k = (f.arguments[name] for name in PRODUCT_SIZES[:3])
        return f.mul(f.mul(m, n), k)

    def body(self, environment: Environment) -> Function:
        """The products of one task."""
        f = self.module.define(f"{self.name}_task", VOID, BODY_ARGUMENTS)
        g = environment.inside(f)
        begin = f.mul(f.arguments["task"], g["each"])
        end = f.minimum(f.add(begin, g["each"]), g["count"])
        scratch = None
        if self.whole:
            scratch = f.at(g["scratch"], f.mul(f.arguments["thread"], g["scratch_step"]))
        self.loop(f, g, begin, end, scratch, null())
        f.ret()
        return f

    def loop(
        self,
        f: Function,
        g: dict[str, Value],
        begin: Value,
        end: Value,
        scratch: Value | None,
        team: Value,
        asked: Value | None = None,
    ) -> None:
        """The products from `begin` to `end`; after each one the team `asked` may cancel the rest."""
        first = [f.at(g[name], f.mul(begin, g[f"step_{name}"])) for name in _OPERANDS]
        rest = [g[name] for name, _ in self.rest]
        rest += [] if scratch is None else [scratch, team]
        with f.carried_loop(begin, end, int64(1), first, "batch") as (number, pointers, advance):
            self.prefetch(f, pointers[-1], f.icmp("<", f.add(number, 1), end), g["step_c"])
            f.call(Callee(VOID, g["kernel"].text), [*pointers, *rest])
            if asked is not None:
                Team.end_if_cancelled(f, asked)
            steps = (g[f"step_{name}"] for name in _OPERANDS)
            advance([f.at(pointer, step) for pointer, step in zip(pointers, steps, strict=True)])

    def prefetch(self, f: Function, c: Value, more: Value, step: Value) -> None:
        """Prefetches the next C, if there is one: hardware follows A and B, which are read line after line.

        Register tiles write C in columns of short runs. Where it was in memory, 500 products of 60x60x16 took
        1.2 to 1.8 times as long.
        """
        near = f.and_(more, f.icmp("<=", step, MOST_AHEAD))
        following = f.at(c, step)
        with f.loop(int64(0), f.select(near, step, int64(0)), int64(CACHE_LINE), "ahead") as offset:
            f.prefetch(f.at(following, offset), write=True, locality=2)


@once
def loop_table() -> Any:
    """The addresses of the loops that exist, for machine code: an array of pointers, see `loop_place`."""
    return (ctypes.c_void_p * (len(ACCUMULATORS) + 1))()


def loop_place(acc: DType | None) -> int:
    """The place of the loop over kernels of an accumulator type, or of hardcoded sizes, in `loop_table`."""
    return len(ACCUMULATORS) if acc is None else ACCUMULATORS.index(acc)


@once
def _code(acc: DType | None, vectors: int) -> Linked:
    machine, name = host_machine(), _name(acc, vectors)
    code = cached_object(name, machine, lambda: emit_object(_emit(acc, vectors), name, machine))
    linked = Linked(code, (name,), {})
    if not vectors:
        loop_table()[loop_place(acc)] = linked.address(name)
    return linked


def make_loop(acc: DType | None) -> None:
    """Compiles the loop over kernels of an accumulator type, or of hardcoded sizes, for machine code."""
    _code(acc, 0)


@once
def batch_function(acc: DType, vectors: int = 0) -> Any:
    """The compiled loop over kernels of an accumulator type, as a ctypes function that releases the GIL.

    Kernels with an epilogue may take vectors after C, the same for all products.
    """
    scalar = acc.ctypes
    kinds: list[Any] = [CodeAddress] + [ctypes.c_int64] * 4 + [ctypes.c_void_p] * (3 + vectors)
    kinds += [ctypes.c_int64] * len(PRODUCT_SIZES) + [scalar] * 2
    kinds += [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return _code(acc, vectors).function(_name(acc, vectors), kinds)


@once
def fixed_batch_function() -> Any:
    """The compiled loop over a kernel of hardcoded sizes, for every element type."""
    kinds: list[Any] = [CodeAddress] + [ctypes.c_int64] * 4 + [ctypes.c_void_p] * 3
    kinds += [ctypes.c_int64] * len(FIXED_STRIDES) + [ctypes.c_void_p]
    return _code(None, 0).function(_name(None, 0), kinds)


def outer_offsets(axes: Sequence[BatchAxis]) -> Iterator[tuple[int, ...]]:
    """Byte offsets of a, b and c at every position of the given axes.

    >>> list(outer_offsets((BatchAxis(2, (8, 0, 16)),)))
    [(0, 0, 0), (8, 0, 16)]
    """
    for position in np.ndindex(*(axis.length for axis in axes)):
        sums = [0] * len(_OPERANDS)
        for index, axis in zip(position, axes, strict=True):
            sums = [total + index * step for total, step in zip(sums, axis.steps, strict=True)]
        yield tuple(sums)
