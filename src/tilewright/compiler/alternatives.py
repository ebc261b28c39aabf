"""The paths through a kernel between which sizes decide: predicted cycles, and why each is taken or not.

Before: ``if m <= 8: few rows, else: five loops``, and a flag for stores past the caches. After: one program
for each path, with its conditions. Conditions that loops change, such as those of edges, decide nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

from tilewright.compiler.explanation import Considered, compared, strategy_of
from tilewright.compiler.operation import Compilation, operation_of
from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Binary,
    Compare,
    Constant,
    Expression,
    Name,
    Operator,
    Relation,
    TableEntry,
)
from tilewright.ir.interpret import Interpreter
from tilewright.ir.nodes import If, Let, Loop, Primitive, Program, Statement, TileMatmul, Traffic, UnaryMap
from tilewright.ir.primitives.rows import SoftmaxRows
from tilewright.ir.text import print_condition
from tilewright.ir.trace import names_in
from tilewright.macro.counting import count_program
from tilewright.macro.levels import Cycles
from tilewright.macro.program_cost import predict_counts
from tilewright.macro.slopes import parts_of
from tilewright.records import dataclass

#: The most paths that are looked at: conditions double them.
_MOST = 12


class Decided(NamedTuple):
    """A condition and the answer that a path takes."""

    condition: AnyOf
    answer: bool


@dataclass(frozen=True)
class PredictedPath:
    """One path: what it does, its predicted cycles by part, whether it is taken, and why it is or is not.

    Attributes
    ----------
    name : short.
    meaning : in words.
    parts : cycles by part; none where it cannot compute the call.
    """

    name: str
    meaning: str
    parts: Mapping[str, float]
    taken: bool
    possible: bool
    reason: str = ""

    @property
    def cycles(self) -> float:
        """Of all parts."""
        return sum(self.parts.values())

    @property
    def considered(self) -> Considered:
        """The path as an explanation has it."""
        shares = f" ({shares_text(Cycles(**self.parts))})" if self.possible else ""
        cycles = self.cycles if self.possible else None
        return Considered(self.meaning, self.taken, f"{self.reason}{shares}", cycles)


@dataclass(frozen=True)
class Alternative:
    """A program that takes one side of each condition."""

    program: Program
    decided: tuple[Decided, ...]


def alternatives(program: Program) -> tuple[Alternative, ...]:
    """All paths of a program.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = alternatives(tw.compile(tw.Gemm(b="packed"), "znver4").nest)
    >>> [[one.answer for one in path.decided] for path in found]
    [[True], [False, True], [False, False]]
    >>> print_condition(found[1].decided[1].condition)
    'm * kc <= 393216 or n <= 256'
    """
    known = {*program.sizes, *(one.name for one in program.body if isinstance(one, Let))}
    open_paths = [Alternative(program, ())]
    found: list[Alternative] = []
    while open_paths and len(open_paths) + len(found) < _MOST:
        path = open_paths.pop(0)
        condition = next(_conditions(path.program.body, known), None)
        if condition is None:
            found.append(path)
            continue
        for answer in (True, False):
            body = _decided(path.program.body, condition, answer=answer)
            decided = (*path.decided, Decided(condition, answer))
            open_paths.append(Alternative(replace(path.program, body=body), decided))
    return tuple(found + open_paths)


def _conditions(body: tuple[Statement, ...], known: set[str]) -> Iterator[AnyOf]:
    """Conditions on nothing but known names, outermost first, and flags for stores past the caches."""
    for statement in body:
        match statement:
            case If(condition, then, otherwise):
                if then != otherwise and _is_known(condition, known):
                    yield condition
                yield from _conditions((*then, *otherwise), known)
            case Loop(body=inner):
                yield from _conditions(inner, known)
            case Primitive():
                stream = getattr(statement, "stream", None)
                if isinstance(stream, Expression) and not isinstance(stream, Constant):
                    yield _flag(stream)


def _is_known(condition: AnyOf, known: set[str]) -> bool:
    """Whether sizes alone decide a condition: neither axes of loops nor what tables hold."""
    parts = [part for term in _terms(condition) for side in (term.left, term.right) for part in _parts(side)]
    if any(isinstance(part, TableEntry) for part in parts):
        return False
    return all(part.name in known for part in parts if isinstance(part, Name))


def _parts(node: Expression) -> Iterator[Expression]:
    """An expression and all expressions inside it."""
    yield node
    for part in parts_of(node):
        yield from _parts(part)


def _terms(condition: AnyOf) -> list[Compare]:
    return [term for conjunction in condition.terms for term in conjunction.terms]


def _flag(value: Expression) -> AnyOf:
    """When a flag is not 0; min(max(x - c, 0), 1) is not where c < x."""
    match value:
        case Binary(Operator.MIN, Binary(Operator.MAX, Binary(Operator.SUB, left, Constant(less)), _), _):
            return AnyOf((AllOf((Compare(Relation.LE, Constant(less + 1), left),)),))
        case _:
            return AnyOf((AllOf((Compare(Relation.LT, Constant(0), value),)),))


def _decided(body: tuple[Statement, ...], condition: AnyOf, *, answer: bool) -> tuple[Statement, ...]:
    """A block in which a condition has its answer."""
    found: list[Statement] = []
    for statement in body:
        match statement:
            case If(one, then, otherwise) if one == condition:
                found += _decided(then if answer else otherwise, condition, answer=answer)
            case If(one, then, otherwise):
                first, second = (_decided(part, condition, answer=answer) for part in (then, otherwise))
                found.append(If(one, first, second))
            case Loop(body=inner):
                found.append(replace(statement, body=_decided(inner, condition, answer=answer)))
            case Primitive():
                found.append(_flagged(statement, condition, answer=answer))
            case _:
                found.append(statement)
    return tuple(found)


def _flagged(node: Primitive, condition: AnyOf, *, answer: bool) -> Primitive:
    """A primitive whose flag is decided."""
    stream = getattr(node, "stream", None)
    if not isinstance(stream, Expression) or isinstance(stream, Constant) or _flag(stream) != condition:
        return node
    given: dict[str, Any] = {one.name: getattr(node, one.name) for one in fields(node)}
    return type(node)(**{**given, "stream": Constant(int(answer))})


# --- what a path does ---------------------------------------------------------------------------------------


def primitives_in(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """The primitives of a block, each branch of edges too."""
    for statement in body:
        match statement:
            case Let():
                pass
            case Loop(body=inner):
                yield from primitives_in(inner)
            case If(_, then, otherwise):
                yield from primitives_in((*then, *otherwise))
            case _:
                yield statement


_TRAFFIC_WORDS = {
    Traffic.NEAR: "",
    Traffic.FAR: "reads prefetched",
    Traffic.STREAM: "stores past the caches",
}


def details_of(program: Program) -> str:
    """What tells paths of one operation apart: prefetches, stores past the caches, what is kept."""
    words: list[str] = []
    for node in primitives_in(program.body):
        if isinstance(node, UnaryMap):
            words.append(_TRAFFIC_WORDS[node.traffic])
        if isinstance(node, SoftmaxRows) and node.state is None:
            kept = "exponentials kept in a buffer" if node.kept is not None else "exponentials kept in y"
            words.append(kept)
        stream = getattr(node, "stream", None)
        if isinstance(stream, Constant):
            words.append("stores past the caches" if stream.value else "stores through the caches")
    return ", ".join(dict.fromkeys(filter(None, words)))


def path_words(state: Compilation, program: Program) -> str:
    """What a path of a kernel does: in the words of its operation, or by its primitives."""
    strategy = operation_of(state.problem).strategy
    if strategy is not None:
        words = strategy(state.with_field("nest", program))
    else:
        words = strategy_of(program, tuple(primitives_in(program.body)))
    return "; ".join(filter(None, (words, details_of(program))))


# --- costs and reasons --------------------------------------------------------------------------------------


def predicted_alternatives(
    state: Compilation,
    sizes: Mapping[str, int],
    tables: Mapping[str, Sequence[int]],
    words: Callable[[Compilation, Program], str] = path_words,
    scalars: Mapping[str, complex] | None = None,
) -> tuple[PredictedPath, ...]:
    """Every path of a kernel with its prediction, the one that is taken first, then the fastest.

    Parameters
    ----------
    state : a kernel's compilation, its nest at least.
    sizes, tables : those of the call.
    words : what a path does.
    scalars : alpha and beta, where conditions ask for them.

    Raises
    ------
    InvalidTileIr : if a size or a table is missing.
    """
    program, machine = state.nest, state.machine
    assert program is not None
    run, names = Interpreter({}, scalars or {"alpha": 1.0, "beta": 0.0}), dict(sizes)
    for statement in program.body:
        if isinstance(statement, Let):
            names[statement.name] = run.integer(statement.value, names)
    found = []
    for path in alternatives(program):
        wrong = [one for one in path.decided if run.holds(one.condition, names) is not one.answer]
        impossible = next((one for one in wrong if _requires(one, run, names)), None)
        counts = count_program(path.program, machine, sizes, tables)
        too_large = any(_exceeds(run.node, run.extents) for run in counts.runs)
        possible = impossible is None and not too_large
        cycles = predict_counts(counts, path.program, machine)
        text = "; ".join(_reason(one, names) for one in wrong)
        found.append((words(state, path.program), cycles, not wrong, possible, text))
    taken = next((cycles for _, cycles, is_taken, _, _ in found if is_taken), Cycles())
    several = len(found) > 1
    paths = [
        PredictedPath(
            meaning.partition(":")[0],
            meaning,
            cycles._asdict() if possible else {},
            is_taken,
            possible,
            _sentence(text, cycles, taken, is_taken=is_taken, possible=possible, several=several),
        )
        for meaning, cycles, is_taken, possible, text in found
    ]
    return tuple(sorted(paths, key=lambda one: (not one.taken, not one.possible, one.cycles)))


def _sentence(
    text: str, cycles: Cycles, taken: Cycles, *, is_taken: bool, possible: bool, several: bool
) -> str:
    """Why a path is taken or not."""
    if is_taken:
        return "its conditions hold" if several else "the only path of this kernel"
    if not possible:
        return f"impossible: {text}"
    return f"{text}; {compared(cycles.total, taken.total)}"


def _requires(one: Decided, run: Interpreter, names: Mapping[str, int]) -> bool:
    """Whether operands, not costs, are against a path: an equation that does not hold."""
    if not one.answer:
        return False
    return all(
        any(
            term.relation is Relation.EQ and not run.holds(AnyOf((AllOf((term,)),)), names)
            for term in conjunction.terms
        )
        for conjunction in one.condition.terms
    )


def _exceeds(node: Statement, sizes: Mapping[str, int]) -> bool:
    """Whether a register tile would be too small: the path is for fewer rows or columns."""
    if not isinstance(node, TileMatmul):
        return False
    return sizes["rows"] > node.tile.mr or sizes["columns"] > node.tile.nr


def _reason(one: Decided, names: Mapping[str, int]) -> str:
    """What the condition of a path lacks, or that another path's condition holds."""
    if one.answer:
        return unmet(one.condition, names)
    values = _values(_terms(one.condition), names)
    return f"for calls without {print_condition(one.condition)}, {values}"


def unmet(condition: AnyOf, names: Mapping[str, int]) -> str:
    """What a condition that does not hold lacks, with values: the comparisons of its nearest alternative.

    >>> rows = Compare(Relation.LE, Name("m"), Constant(8))
    >>> unmet(AnyOf((AllOf((rows,)),)), {"m": 100})
    'needs m <= 8, m = 100'
    """
    run = Interpreter({}, {"alpha": 1.0, "beta": 0.0})
    lacking = [
        [term for term in conjunction.terms if not run.holds(AnyOf((AllOf((term,)),)), names)]
        for conjunction in condition.terms
    ]
    nearest = min(lacking, key=len)
    needs = " and ".join(print_condition(AnyOf((AllOf((term,)),))) for term in nearest)
    return f"needs {needs}, {_values(nearest, names)}"


def _values(terms: Sequence[Compare], names: Mapping[str, int]) -> str:
    """The names that comparisons mention, with their values."""
    mentioned = [name for term in terms for side in (term.left, term.right) for name in names_in(side)]
    return ", ".join(f"{name} = {names[name]}" for name in dict.fromkeys(mentioned))


def shares_text(cycles: Cycles) -> str:
    """The parts of predicted cycles that take at least a hundredth of them.

    >>> shares_text(Cycles(multiply=90, l2=10))
    'multiply 90%, l2 10%'
    """
    total = max(cycles.total, 1.0)
    parts = sorted(cycles._asdict().items(), key=lambda part: -part[1])
    return ", ".join(f"{name} {value / total:.0%}" for name, value in parts if value >= total / 100)
