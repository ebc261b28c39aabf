"""Reads the parts of one line of tile IR: names, expressions, conditions, slices."""

from __future__ import annotations

import re
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

from tilewright.errors import TileIrSyntax, TilewrightError
from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Binary,
    Compare,
    Constant,
    Expression,
    FirstElse,
    Lead,
    Name,
    Operator,
    Relation,
    Scalar,
    ScalarValue,
    TableEntry,
    Threads,
    Unless,
)
from tilewright.ir.nodes import Applied, Finish, Groups, Panels, Primitive, Slice, Stored, Tile
from tilewright.ir.verify import is_name
from tilewright.spec.dtype import BUFFER_DTYPES, DType
from tilewright.spec.epilogue import parse_step
from tilewright.spec.weights import Elements

_TOKEN = re.compile(
    r"\s*(?:(?P<float>-?\d+(?:\.(?!\.)\d*(?:e[+-]?\d+)?|e[+-]?\d+)|-?(?:inf|nan)\b)|(?P<int>\d+)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<symbol>\.\.|==|<=|[-+*<=.,;:()\[\]{}]))"
)
_TILE = re.compile(r"\s*(\d+)x(\d+)x(\d+)\b")
_STEP = re.compile(r"\s*([^\s,]+)")

_Choice = TypeVar("_Choice", bound=Enum)


class Line:
    """A cursor over the tokens of one logical line."""

    def __init__(self, text: str, number: int) -> None:
        self.text, self.number, self.position = text, number, 0

    def fail(self, reason: str) -> TileIrSyntax:
        """The error of text that is no tile IR."""
        return TileIrSyntax(line=self.number, reason=reason, text=self.text.strip())

    def _match(self) -> re.Match[str] | None:
        return _TOKEN.match(self.text, self.position)

    def peek(self) -> str:
        """The next token; empty at the end."""
        found = self._match()
        return found.group().strip() if found else ""

    def next(self) -> str:
        """Take the next token."""
        found = self._match()
        if found is None:
            raise self.fail(
                "unexpected end" if not self.text[self.position :].strip() else "unknown character"
            )
        self.position = found.end()
        return found.group().strip()

    def take(self, word: str) -> bool:
        """Take a word if it comes next; whether it did."""
        if self.peek() == word:
            self.next()
            return True
        return False

    def expect(self, *words: str) -> None:
        """Take these words, which must come next."""
        for word in words:
            found = self.peek()
            if found != word:
                raise self.fail(f"expected {word!r}, found {found!r}")
            self.next()

    def tile(self) -> Tile:
        """A register tile, `6x16x1`."""
        found = _TILE.match(self.text, self.position)
        if found is None:
            raise self.fail("expected a tile such as 12x32x1")
        self.position = found.end()
        mr, nr, kr = map(int, found.groups())
        return Tile(mr, nr, kr)

    def dtype(self) -> DType:
        """An element type by its name."""
        found = self.name()
        if found not in BUFFER_DTYPES:
            raise self.fail(f"unknown dtype {found!r}")
        return BUFFER_DTYPES[found]

    def applied(self) -> Applied:
        """A step of an epilogue and its operand."""
        found = _STEP.match(self.text, self.position)
        if found is None:
            raise self.fail("expected a step of an epilogue")
        try:
            step = parse_step(found[1])
        except TilewrightError as error:
            raise self.fail(str(error)) from None
        self.position = found.end()
        return Applied(step, None if self.peek() in ("", ",", "at") else self.slice())

    def finish(self) -> Finish | None:
        """The steps after the last sum, if any."""
        if not self.take("then"):
            return None
        steps = [self.applied()]
        while self.take(","):
            steps.append(self.applied())
        axis = None
        if self.take("at"):
            self.expect("last")
            axis = self.name()
        return Finish(tuple(steps), axis)

    def integer(self) -> int:
        """A number."""
        token = self.next()
        if not token.isdigit():
            raise self.fail(f"expected an integer, found {token!r}")
        return int(token)

    def name(self) -> str:
        """A name."""
        token = self.next()
        if not is_name(token):
            raise self.fail(f"expected a name, found {token!r}")
        return token

    def choice(self, kind: type[_Choice]) -> _Choice:
        """A member of an enum."""
        token = self.next()
        for member in kind:
            if member.value == token:
                return member
        raise self.fail(f"expected one of {', '.join(str(member.value) for member in kind)}, found {token!r}")

    def end(self) -> None:
        """Refuse text behind the statement."""
        if self.text[self.position :].strip():
            raise self.fail("trailing text")

    # expressions, by precedence

    def expression(self) -> Expression:
        """A sum of products."""
        left = self._product()
        while self.peek() in ("+", "-"):
            operator = Operator(self.next())
            left = Binary(operator, left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._atom()
        while self.take("*"):
            left = Binary(Operator.MUL, left, self._atom())
        return left

    def _atom(self) -> Expression:
        token = self.next()
        if token.isdigit():
            return Constant(int(token))
        if token == "-":
            return Constant(-self.integer())
        if token == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if token == "unless":
            self.expect("(")
            scalar = self.name()
            self.expect(",")
            value = self.expression()
            self.expect(")")
            return Unless(scalar, value)
        if token == "lead":
            self.expect("(")
            buffer = self.name()
            self.expect(",")
            unit_bytes = self.integer()
            offset: Expression = Constant(0)
            if self.peek() == ",":
                self.next()
                offset = self.expression()
            self.expect(")")
            return Lead(buffer, unit_bytes, offset)
        if token in (Operator.MIN.value, Operator.MAX.value, Operator.CEILDIV.value, Operator.ROUNDUP.value):
            self.expect("(")
            left = self.expression()
            self.expect(",")
            right = self.expression()
            self.expect(")")
            return Binary(Operator(token), left, right)
        if token == "element":
            self.expect("(")
            buffer = self.name()
            self.expect(",")
            index = self.expression()
            self.expect(")")
            return TableEntry(buffer, index)
        if token == "threads":
            return Threads()
        if is_name(token):
            return Name(token)
        raise self.fail(f"expected an expression, found {token!r}")

    def _compare(self) -> Compare:
        left = self.expression()
        token = self.next()
        if token not in {relation.value for relation in Relation}:
            raise self.fail(f"expected a comparison, found {token!r}")
        return Compare(Relation(token), left, self.expression())

    def condition(self) -> AnyOf:
        """Comparisons joined by `and` and `or`."""
        terms = []
        while True:
            conjunction = [self._compare()]
            while self.take("and"):
                conjunction.append(self._compare())
            terms.append(AllOf(tuple(conjunction)))
            if not self.take("or"):
                return AnyOf(tuple(terms))

    def _plain_scalar(self) -> Scalar:
        token = self.next()
        if is_name(token):
            return Scalar(token)
        try:
            return Scalar(float(token))
        except ValueError:
            raise self.fail(f"expected a scalar, found {token!r}") from None

    def scalar(self) -> ScalarValue:
        """A scalar, or one for the first iteration and another for the rest."""
        if not self.take("("):
            return self._plain_scalar()
        first = self._plain_scalar()
        self.expect("if")
        axis = self.name()
        self.expect("first", "else")
        rest = self._plain_scalar()
        self.expect(")")
        return FirstElse(axis, first, rest)

    def slice(self) -> Slice:
        """A buffer, an offset and strides."""
        buffer = self.name()
        index = None
        if self.take("{"):
            index = self.expression()
            self.expect("}")
        self.expect("[")
        offset = self.expression()
        self.expect(";")
        lane = self.expression()
        self.expect(",")
        depth = self.expression()
        interleave = self.integer() if self.take("by") else 1
        panels = None
        if self.take("panels"):
            lanes = self.integer()
            self.expect("apart")
            panels = Panels(lanes, self.expression())
        self.expect("]")
        return Slice(buffer, offset, (lane, depth), index, interleave, panels)

    def stored(self) -> Stored | None:
        """The form of quantised elements, if any."""
        if not self.take("stored"):
            return None
        elements = self.choice(Elements)
        if not self.take("zero"):
            return Stored(elements)
        zero = self.slice()
        self.expect("every")
        return Stored(elements, zero, self.expression())

    def groups(self) -> Groups | None:
        """The scales of groups of depths, if any."""
        if not self.take("scale"):
            return None
        scale = self.slice()
        self.expect("every")
        return Groups(scale, self.expression())

    def primitive(self, kind: type[Primitive]) -> Primitive:
        """A statement of windows, integers, scalars and choices, each behind its name."""
        values: dict[str, Any] = {}
        for field in fields(kind):
            if self.take(field.name):
                choices = kind.choices.get(field.name)
                values[field.name] = self._field(str(field.type)) if choices is None else self.choice(choices)
            elif "None" in str(field.type):
                values[field.name] = None
            else:
                raise self.fail(f"expected {field.name!r}")
        self.end()
        return kind(**values)

    def _field(self, annotation: str) -> Any:
        if annotation.startswith("Slice"):
            return self.slice()
        return self.expression() if annotation.startswith("Expression") else self.scalar()
