"""Explanations: how a call runs, in words, and what is read of it from tile IR."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, operation_of
from tilewright.ir.nodes import (
    Constant,
    Pack,
    Program,
    Slice,
    Space,
    Statement,
    TileEpilogue,
    TileForm,
    TileMatmul,
    UnaryMap,
)
from tilewright.ir.text import print_condition
from tilewright.ir.trace import Decision, trace
from tilewright.records import dataclass
from tilewright.threads.pool import TEAM_WORK, wanted_threads


@dataclass(frozen=True)
class Explanation:
    """How a call runs.

    Attributes
    ----------
    subject : the call or problem in words.
    kernel : the name of the kernel that it takes.
    strategy : what the kernel does with these sizes.
    decisions : each condition it met, with the values it looked at and whether it holds.
    notes : what happens around the kernel: copies, the entry, the batch.
    figures : blocking, flops, bytes.
    paths : for each path that can compute the product, predicted cycles and whether it is taken.
    """

    subject: str
    kernel: str
    strategy: str
    decisions: tuple[str, ...]
    notes: tuple[str, ...]
    figures: tuple[str, ...]
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.subject, f"  kernel    {self.kernel}", f"  strategy  {self.strategy}"]
        for title, entries in (
            ("because", self.decisions),
            ("paths", self.paths),
            ("around", self.notes),
            ("figures", self.figures),
        ):
            lines += [f"  {title if not number else '':<9} {entry}" for number, entry in enumerate(entries)]
        return "\n".join(lines)

    __repr__ = __str__


#: Rejected strategies that are listed.
_OTHERS = 3


def ranked(strategies: Iterable[str]) -> tuple[str, ...]:
    """Decisions between strategies: the first one is taken, the next best are rejected.

    >>> ranked(["in place: 10 cycles", "copied: 12 cycles"])
    ('yes  in place: 10 cycles', 'no   copied: 12 cycles')
    """
    listed = islice(strategies, 1 + _OTHERS)
    return tuple(f"{'no ' if number else 'yes'}  {words}" for number, words in enumerate(listed))


def strategy_of(program: Program, primitives: tuple[Statement, ...]) -> str:
    """What the primitives of a run amount to, in words."""
    forms = {node.form for node in primitives if isinstance(node, TileMatmul)}
    packed = {node.destination.buffer for node in primitives if isinstance(node, Pack)}
    moves = [node for node in primitives if isinstance(node, UnaryMap)]
    if not primitives:
        return "nothing to do: a size is 0"
    if moves:
        transposed = any(node.source is not None and _turns(node.source, node.destination) for node in moves)
        return "blocks transposed in registers" if transposed else "element by element, in whole vectors"
    if TileForm.DOT in forms:
        return "dot products: vectors run along the depth, rows of A are read once"
    if TileForm.TRANSPOSED_B in forms:
        return "one row: B is read along its contiguous depths and transposed in registers"
    if any(isinstance(node, TileEpilogue) for node in primitives):
        return "streaming: whole rows of B are read once and added to sums kept in cache"
    if "a_pack" in packed:
        return "packing: five loops around packed panels of A and B (Kuzma et al. 2023, Algorithm 1)"
    if "b_pack" in packed:
        return "packing: five loops around packed panels of B, A in place strip by strip"
    if packed and all(program.buffer(name).space is Space.LOCAL for name in packed):
        return "straight tiles of known sizes; the vector operand is transposed into a small panel first"
    if packed:
        return "tiling: A in place, B copied one micro-panel at a time"
    if not program.sizes or "alpha" not in program.scalars:
        return "straight tiles of known sizes, operands in place"
    return "tiling: A and B in place"


def _turns(source: Slice, destination: Slice) -> bool:
    """Whether the adjacent axes of two slices differ."""
    one = Constant(1)
    return [stride == one for stride in source.strides] != [stride == one for stride in destination.strides]


def decision_text(decision: Decision) -> str:
    """One decision: the condition, its answer, the values."""
    values = ", ".join(f"{name} = {value}" for name, value in decision.values.items())
    return f"{'yes' if decision.holds else 'no '}  {print_condition(decision.condition)}   ({values})"


def figures_text(kernel: Kernel, flops: int | None, moved: int | None) -> tuple[str, ...]:
    """How a kernel is cut, and the arithmetic intensity of a call."""
    found = [repr(kernel.blocking)]
    if flops is not None and moved is not None:
        found.append(f"{flops:,} flops, {moved:,} bytes at least, {flops / max(moved, 1):.2f} flops a byte")
    return tuple(found)


def thread_note(work: int) -> str:
    """How many threads a call of so many multiply-adds takes."""
    threads = wanted_threads()
    if threads == 1:
        return "one thread"
    if work <= TEAM_WORK:
        return f"one thread: no more than {TEAM_WORK:,} multiply-adds"
    return f"{threads} threads, fewer while other calls run"


def kernel_strategy(state: Compilation) -> str:
    """How a kernel runs: the words of its operation, or else its primitives in a run with sizes of 1."""
    in_words = operation_of(state.problem).strategy
    if in_words is not None:
        return in_words(state)
    way = trace(state.program, dict.fromkeys(state.program.sizes, 1), {})
    return strategy_of(state.program, way.primitives)
