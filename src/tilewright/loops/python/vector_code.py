"""Python code of a plan: slices of arrays, contractions, and operations on whole arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from tilewright.loops.nests.effects import Refused
from tilewright.loops.nests.nest import (
    Access,
    Factor,
    FunctionCall,
    InvariantScalar,
    Load,
    Minus,
    Number,
    Quotient,
    Select,
    SquareRoot,
    Sum,
    Times,
    Value,
    Where,
)
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.python.vector_plan import PlanStep, SerialLoop, StripLoop, WholeStatement
from tilewright.loops.python.vector_statements import ArrayElement, VectorLoop, VectorTerm

#: Rows of a strip of a triangle.
STRIP = 64
#: Relations as Python has them.
RELATIONS = {"ogt": ">", "olt": "<", "oge": ">=", "ole": "<=", "oeq": "==", "une": "!="}
#: Letters of dimensions.
_LETTERS = "ijklmnpqrstuvwxyzabcdefgho"


#: Where an axis starts, and how far loops move it.
_Axis: TypeAlias = tuple[Polynomial, Sequence[tuple[Index, Polynomial]]]


class PlanCode:
    """Writes the lines of a plan.

    Parameters
    ----------
    arrays, integers, scalars : variables of the code, by array expression and symbol.
    """

    def __init__(
        self, arrays: Mapping[str, str], integers: Mapping[Symbol, str], scalars: Mapping[Symbol, str]
    ) -> None:
        self.arrays, self.scalars = arrays, scalars
        self.names: dict[Symbol, str] = dict(integers)
        self.lines: list[str] = []
        self._depth = 1
        self._letters: dict[Index, str] = {}
        self._count = 0

    def write(self, steps: Sequence[PlanStep]) -> None:
        """Writes steps."""
        for step in steps:
            match step:
                case SerialLoop(loop=loop, steps=inner):
                    self._open(self._loop_header(loop))
                    self.write(inner)
                    self._depth -= 1
                case WholeStatement():
                    self._whole(step)
                case StripLoop():
                    self._strips(step)

    def text(self, value: Polynomial) -> str:
        """An integer as a Python expression."""
        parts = []
        for monomial, coefficient in value.terms:
            names = [self.names[symbol] for symbol in monomial]
            shown = [str(coefficient), *names] if coefficient != 1 or not names else names
            parts.append("*".join(shown))
        return f"({' + '.join(parts)})" if parts else "0"

    def _named(self, symbol: Symbol) -> str:
        """A variable for a symbol."""
        self._count += 1
        self.names[symbol] = name = f"v{self._count}"
        return name

    def _line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def _open(self, header: str) -> None:
        self._line(header)
        self._depth += 1

    def _loop_header(self, loop: VectorLoop) -> str:
        name = self._named(loop.index)
        first, end = self.text(loop.first), self.text(loop.end)
        bounds = f"{end} - 1, {first} - 1, -1" if loop.descends else f"{first}, {end}"
        return f"for {name} in range({bounds}):"

    # Strips

    def _strips(self, step: StripLoop) -> None:
        whole, outer, inner = step.whole, step.outer, step.inner
        ends = (inner.count.substitute({outer.index: at}) for at in (outer.first, outer.end - 1))
        free = {loop.index: loop for loop in whole.free} | {outer.index: outer, inner.index: inner}
        counts = {inner.index: f"max({', '.join(map(self.text, ends))})"}
        self._check_apart(whole.statement.target, free, counts)
        begin, end = Symbol(f"begin of {outer.index}"), Symbol(f"end of {outer.index}")
        self._named(begin)
        self._named(end)
        first, last = self.text(outer.first), self.text(outer.end)
        sign = f"{last} - 1, {first} - 1, -{STRIP}" if outer.descends else f"{first}, {last}, {STRIP}"
        self._open(f"for {self.names[begin]} in range({sign}):")
        if outer.descends:
            self._line(f"{self.names[end]} = {self.names[begin]} + 1")
            self._line(f"{self.names[begin]} = max({first}, {self.names[end]} - {STRIP})")
        else:
            self._line(f"{self.names[end]} = min({self.names[begin]} + {STRIP}, {last})")
        rows = replace(outer, first=Polynomial.of(begin), end=Polynomial.of(end))
        border = Symbol(f"border of {inner.index}")
        at = Polynomial.of(border)
        if outer.index in inner.end.indices:
            most = self.text(inner.end.substitute({outer.index: Polynomial.of(begin)}))
            value = f"max({most}, {self.text(inner.first)})"
            far, near = replace(inner, end=at), replace(inner, first=at)
        else:
            least = self.text(inner.first.substitute({outer.index: Polynomial.of(end) - 1}))
            value = f"min({least}, {self.text(inner.end)})"
            far, near = replace(inner, first=at), replace(inner, end=at)
        self._line(f"{self._named(border)} = {value}")
        self._open(self._loop_header(rows))
        self._whole(_with_loops(whole, {outer.index: rows, inner.index: near}, serial=outer.index))
        self._depth -= 1
        del self.names[outer.index]
        together = _with_loops(whole, {outer.index: rows, inner.index: far})
        if any(inner in term.sums for term in whole.statement.terms):
            together = replace(together, statement=replace(together.statement, adds=True))
        self._whole(together)
        self._depth -= 1

    # Operations on whole arrays

    def _whole(self, whole: WholeStatement) -> None:
        statement = whole.statement
        free = {loop.index: loop for loop in whole.free}
        for term in statement.terms:
            free |= {loop.index: loop for loop in term.sums}
        target = statement.target
        around = [loop for loop in whole.free if loop.index in target.indices or not statement.adds]
        summed = [loop for loop in whole.free if loop not in around]
        counts = [f"{self.text(loop.count)} > 0" for loop in (*around, *summed)]
        if counts:
            self._open(f"if {' and '.join(counts)}:")
        labels, view = self._view(target, free)
        self._check_apart(target, free, {})
        if statement.value is not None:
            total = self._value(statement.value, dict(statement.places), free, labels)
        else:
            parts = [self._term(term, summed, free, labels, statement.line) for term in statement.terms]
            total = " + ".join(parts) or "0"
        if not labels:
            self._line(f"{view} {'+=' if statement.adds else '='} {total}")
        elif statement.adds:
            self._line(f"t = {view}")
            self._line(f"np.add(t, {total}, out=t, casting='same_kind')")
        else:
            self._line(f"{view}[...] = {total}")
        self._depth -= bool(counts)

    def _term(
        self,
        term: VectorTerm,
        around: Sequence[VectorLoop],
        free: Mapping[Index, VectorLoop],
        labels: Sequence[Index],
        line: int | None,
    ) -> str:
        """One term of what is stored, with an axis for each label of the target."""
        self._letters = {}
        sums = [*around, *term.sums]
        views = [self._view(element, free) for element in term.elements]
        factor = self._factor(term.factor)
        moved = {index for own, _ in views for index in own}
        if any(loop.index not in moved for loop in sums):
            raise Refused(Where("", line), "adds the same elements several times")
        if not sums:
            factors = [_expanded(text, own, labels) for own, text in views]
            return " * ".join([*([factor] if factor or not factors else []), *factors]) or "1"
        result = [index for index in labels if index in moved]
        if len(views) == 1:
            ((own, text),) = views
            axes = tuple(place for place, index in enumerate(own) if index not in result)
            kept = [index for index in own if index in result]
            found = _expanded(f"total({text}, {axes})", kept, labels)
        else:
            parts = ",".join("".join(map(self._letter, own)) for own, _ in views)
            letters = "".join(map(self._letter, result))
            shown = ", ".join(text for _, text in views)
            found = _expanded(f"contract('{parts}->{letters}', {shown})", result, labels)
        found = f"{factor} * {found}" if factor else found
        counts = " and ".join(f"{self.text(loop.count)} > 0" for loop in term.sums)
        return f"({found} if {counts} else 0)" if counts else found

    def _letter(self, index: Index) -> str:
        return self._letters.setdefault(index, _LETTERS[len(self._letters) % len(_LETTERS)])

    def _factor(self, factor: Factor) -> str:
        parts = [self.scalars[scalar.symbol] for scalar in factor.scalars]
        if factor.number != 1:
            parts.insert(0, f"({factor.number!r})")
        return " * ".join(parts)

    def _view(self, element: ArrayElement, free: Mapping[Index, VectorLoop]) -> tuple[list[Index], str]:
        """The elements of all iterations: the loop of each axis, and the code."""
        name, axes = self.arrays[element.array], _axes(element, free)
        starts = [self.text(start) for start, _ in axes]
        every = [index for _, moves in axes for index, _ in moves]
        if _is_plain(axes):
            shown = [self._slice(start, moves, free) for start, (_, moves) in zip(starts, axes, strict=True)]
            return every, f"{name}[{', '.join(shown)}]"
        labels = list(dict.fromkeys(every))
        counts = "".join(f"{self.text(free[label].count)}, " for label in labels)
        begins = "".join(f"{start}, " for start in starts)
        return labels, f"strided({name}, ({begins}), ({self._steps(axes, labels)}), ({counts}))"

    def _steps(self, axes: Sequence[_Axis], labels: Sequence[Index]) -> str:
        """How far each label moves each axis."""
        steps = ""
        for label in labels:
            strides = (dict(moves).get(label, Polynomial()) for _, moves in axes)
            steps += f"({''.join(f'{self.text(stride)}, ' for stride in strides)}), "
        return steps

    def _check_apart(
        self, target: ArrayElement, free: Mapping[Index, VectorLoop], most: Mapping[Index, str]
    ) -> None:
        """A line that finds out whether iterations write different elements, where strides are variables.

        `most` has the counts of loops whose own counts depend on others.
        """
        axes = _axes(target, free)
        if _is_plain(axes):
            return
        labels = list(dict.fromkeys(index for _, moves in axes for index, _ in moves))
        counts = "".join(f"{most.get(label) or self.text(free[label].count)}, " for label in labels)
        self._line(f"apart({self.arrays[target.array]}, ({self._steps(axes, labels)}), ({counts}))")

    def _slice(
        self, start: str, moves: Sequence[tuple[Index, Polynomial]], free: Mapping[Index, VectorLoop]
    ) -> str:
        if not moves:
            return start
        ((index, stride),) = moves
        count = self.text(free[index].count)
        step = stride.constant
        return f"{start}:{start}+{count}" if step == 1 else f"stepped({start}, {count}, {step})"

    def _value(
        self,
        value: Value,
        places: Mapping[Access, ArrayElement],
        free: Mapping[Index, VectorLoop],
        labels: Sequence[Index],
    ) -> str:
        """An expression, element by element."""

        def of(part: Value) -> str:
            return self._value(part, places, free, labels)

        match value:
            case Load(access=access):
                own, text = self._view(places[access], free)
                return _expanded(text, own, labels)
            case Number(value=number):
                return f"({number!r})"
            case InvariantScalar(symbol=symbol):
                return self.scalars[symbol]
            case Sum(left=left, right=Minus(value=right)):
                return f"({of(left)} - {of(right)})"
            case Sum(left=left, right=right):
                return f"({of(left)} + {of(right)})"
            case Times(left=left, right=right):
                return f"({of(left)} * {of(right)})"
            case Quotient(left=left, right=right):
                return f"quotient({of(left)}, {of(right)})"
            case Minus(value=inner):
                return f"(-{of(inner)})"
            case SquareRoot(value=inner):
                return f"root({of(inner)})"
            case FunctionCall(function=function, operands=operands):
                return f"np.{function}({', '.join(map(of, operands))})"
            case Select(relation=relation, left=left, right=right, then=then, otherwise=otherwise):
                test = f"{of(left)} {RELATIONS[relation]} {of(right)}"
                return f"choice({test}, {of(then)}, {of(otherwise)})"
            case _:
                raise Refused(Where(""), "has a value that is not computed element by element")


def _with_loops(
    whole: WholeStatement, changed: Mapping[Index, VectorLoop], *, serial: Index | None = None
) -> WholeStatement:
    """A statement over other ranges."""

    def of(loops: Sequence[VectorLoop]) -> tuple[VectorLoop, ...]:
        return tuple(changed.get(loop.index, loop) for loop in loops)

    statement = whole.statement
    terms = tuple(replace(term, sums=of(term.sums)) for term in statement.terms)
    made = replace(statement, loops=of(statement.loops), terms=terms)
    return WholeStatement(made, whole.serial if serial is None else whole.serial | {serial})


def _axes(element: ArrayElement, free: Mapping[Index, VectorLoop]) -> list[_Axis]:
    """The first subscript of each axis, and its strides."""
    axes: list[_Axis] = []
    for subscript in element.subscripts:
        form = subscript.linear(list(free))
        if form is None:
            raise Refused(Where(""), f"has a subscript of {element.array} that is a product of variables")
        moves = [(index, stride) for index, stride in form.coefficients if stride]
        start = form.rest
        for index, stride in moves:
            start = start + free[index].first * stride
        axes.append((start, moves))
    return axes


def _is_plain(axes: Sequence[_Axis]) -> bool:
    """Whether each axis is moved by one loop of its own at most, by a known stride."""
    every = [index for _, moves in axes for index, _ in moves]
    known = all(
        len(moves) < 2 and all(stride.constant is not None for _, stride in moves) for _, moves in axes
    )
    return known and len(set(every)) == len(every)


def _expanded(text: str, own: Sequence[Index], labels: Sequence[Index]) -> str:
    """An array with axes in the order of the target's, and axes of length 1 for those that it has not."""
    if list(own) == list(labels) or not own:
        return text
    kept = [label for label in labels if label in own]
    order = tuple(list(own).index(label) for label in kept)
    if order != tuple(range(len(own))):
        text = f"{text}.transpose({order})"
    places = [":" if label in own else "None" for label in labels]
    while places and places[0] == "None":
        places.pop(0)
    return f"{text}[{', '.join(places)}]" if "None" in places else text


def statements_in(steps: Sequence[PlanStep]) -> Iterator[WholeStatement]:
    """The statements of a plan."""
    for step in steps:
        match step:
            case SerialLoop(steps=inner):
                yield from statements_in(inner)
            case StripLoop(whole=whole):
                yield whole
            case WholeStatement():
                yield step
