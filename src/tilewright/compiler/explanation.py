"""Explanations: how a call runs, in words, and what is read of it from tile IR."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, operation_of
from tilewright.ir.expressions import Constant
from tilewright.ir.nodes import (
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
from tilewright.notebook import columns_table, entry, facts_table
from tilewright.records import dataclass
from tilewright.threads.pool import TEAM_WORK, wanted_threads


@dataclass(frozen=True)
class Considered:
    """One strategy that was considered for a call.

    Attributes
    ----------
    strategy : what it does, in words.
    taken : whether it is taken, by all of the call or a part of it.
    reason : why it is, or is not.
    cycles : predicted cycles; None where it cannot compute the call, or no model predicts it.
    per : what the cycles are of: "" for the whole call, or such as "a key".

    Examples
    --------
    >>> print(Considered("in place", taken=True, reason="the fewest cycles", cycles=1200))
    taken                1,200 cycles  in place
      the fewest cycles
    """

    strategy: str
    taken: bool
    reason: str
    cycles: float | None = None
    per: str = ""

    @property
    def mark(self) -> str:
        """Whether it is taken, as one word."""
        return "taken" if self.taken else "not taken"

    @property
    def cost(self) -> str:
        """The prediction in words; "" where there is none."""
        if self.cycles is None:
            return ""
        return f"{self.cycles:,.0f} cycles" + (f" {self.per}" if self.per else "")

    @property
    def decision(self) -> str:
        """One line: an answer, the strategy and its cost."""
        cost = "" if self.cycles is None else f": {self.cost} estimated"
        return f"{'yes' if self.taken else 'no '}  {self.strategy}{cost}"

    def __str__(self) -> str:
        return f"{self.mark:<9} {self.cost:>{_COST_WIDTH}}  {self.strategy}\n  {self.reason}"


#: Letters that a predicted cost takes in a list of strategies: a minute of a core.
_COST_WIDTH = 23


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
    considered : each strategy that was considered: predicted cycles, and why it is taken or not.
    """

    subject: str
    kernel: str
    strategy: str
    decisions: tuple[str, ...]
    notes: tuple[str, ...]
    figures: tuple[str, ...]
    considered: tuple[Considered, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """The decisions that `considered` does not say in words."""
        answers = ("yes ", "no  ") if self.considered else ()
        return tuple(text for text in self.decisions if not text.startswith(answers))

    def __str__(self) -> str:
        lines = [self.subject, f"  {'kernel':<11}{self.kernel}", f"  {'strategy':<11}{self.strategy}"]
        for title, entries in (
            ("because", self.reasons),
            ("considered", [text for one in self.considered for text in str(one).splitlines()]),
            ("around", self.notes),
            ("figures", self.figures),
        ):
            lines += [f"  {title if not number else '':<11}{line}" for number, line in enumerate(entries)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What notebooks show."""
        facts = [("kernel", self.kernel), ("strategy", self.strategy)]
        named = (("because", self.reasons), ("around", self.notes), ("figures", self.figures))
        facts += [(title, "\n".join(entries)) for title, entries in named if entries]
        rows = [(one.mark, one.cost, one.strategy, one.reason) for one in self.considered]
        titles = ("", "predicted", "strategy considered", "because")
        return entry(self.subject, facts_table(facts), columns_table(titles, rows) if rows else "")


#: Rejected strategies that are listed.
_OTHERS = 3


def compared(cycles: float, taken: float) -> str:
    """The predicted cycles of a strategy in terms of those of the one that is taken.

    >>> compared(120, 100), compared(300, 100), compared(100, 100), compared(95, 100)
    ('20% more cycles', '3.0 times the cycles', 'as many cycles', '5% fewer cycles')
    """
    ratio = cycles / max(taken, 1e-9)
    if ratio >= 2:
        return f"{ratio:.1f} times the cycles"
    percent = f"{abs(ratio - 1):.0%}"
    if percent == "0%":
        return "as many cycles"
    return f"{percent} {'more' if ratio > 1 else 'fewer'} cycles"


def by_cost(strategies: Iterable[tuple[str, float, str]]) -> tuple[Considered, ...]:
    """Strategies between which predicted cycles decide: the first one is taken, the next best are not.

    Parameters
    ----------
    strategies : words, cycles, and what else there is to say of each.
    """
    listed = list(islice(strategies, 1 + _OTHERS))
    found = []
    for number, (words, cycles, more) in enumerate(listed):
        reason = compared(cycles, listed[0][1]) if number else "the fewest predicted cycles"
        found.append(Considered(words, not number, "; ".join(filter(None, (reason, more))), cycles))
    return tuple(found)


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
    if TileForm.TRANSPOSED_A in forms:
        return "few columns: A is read along its contiguous depths and transposed in registers"
    if TileForm.TRANSPOSED_B in forms:
        return "few rows: B is read along its contiguous depths and transposed in registers"
    if any(isinstance(node, TileEpilogue) for node in primitives):
        return "streaming: whole rows of B are read once and added to sums kept in cache"
    if "a_block" in packed:
        return "packing: panels of A are packed once and meet slices of panels of B that L2 keeps"
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
