"""Reads tile IR from the text that `text.print_program` writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

from tilewright.errors import TileIrSyntax, TilewrightError
from tilewright.ir.nodes import (
    AllOf,
    AnyOf,
    Applied,
    Batch,
    Binary,
    Buffer,
    Carry,
    Compare,
    Constant,
    Execution,
    Expression,
    Finish,
    FirstElse,
    Groups,
    If,
    Lead,
    Let,
    Loop,
    Name,
    Operator,
    Pack,
    Panels,
    Parts,
    Primitive,
    Program,
    Relation,
    Scalar,
    ScalarValue,
    Slice,
    Space,
    Statement,
    Stored,
    TableEntry,
    Threads,
    Tile,
    TileEpilogue,
    TileForm,
    TileMatmul,
    Traffic,
    UnaryMap,
    Unless,
)
from tilewright.ir.primitives import PRIMITIVES
from tilewright.ir.text import INDENT
from tilewright.ir.verify import is_name
from tilewright.spec.dtype import BUFFER_DTYPES
from tilewright.spec.epilogue import parse_step
from tilewright.spec.functions import UnaryOp
from tilewright.spec.weights import Elements

_TOKEN = re.compile(
    r"\s*(?:(?P<float>-?\d+(?:\.(?!\.)\d*(?:e[+-]?\d+)?|e[+-]?\d+)|-?(?:inf|nan)\b)|(?P<int>\d+)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<symbol>\.\.|==|<=|[-+*<=.,;:()\[\]{}]))"
)
_TILE = re.compile(r"\s*(\d+)x(\d+)x(\d+)\b")
_STEP = re.compile(r"\s*([^\s,]+)")

#: Statements of several lines, with what the others begin with.
_CONTINUED = {("matmul", "="), ("matmul", "rows"), ("matmul", "then"), ("epilogue", "then")}


_Choice = TypeVar("_Choice", bound=Enum)


class _Line:
    """A cursor over the tokens of one logical line."""

    def __init__(self, text: str, number: int) -> None:
        self.text, self.number, self.position = text, number, 0

    def fail(self, reason: str) -> TileIrSyntax:
        return TileIrSyntax(line=self.number, reason=reason, text=self.text.strip())

    def _match(self) -> re.Match[str] | None:
        return _TOKEN.match(self.text, self.position)

    def peek(self) -> str:
        found = self._match()
        return found.group().strip() if found else ""

    def next(self) -> str:
        found = self._match()
        if found is None:
            raise self.fail(
                "unexpected end" if not self.text[self.position :].strip() else "unknown character"
            )
        self.position = found.end()
        return found.group().strip()

    def take(self, word: str) -> bool:
        if self.peek() == word:
            self.next()
            return True
        return False

    def expect(self, *words: str) -> None:
        for word in words:
            found = self.peek()
            if found != word:
                raise self.fail(f"expected {word!r}, found {found!r}")
            self.next()

    def tile(self) -> Tile:
        found = _TILE.match(self.text, self.position)
        if found is None:
            raise self.fail("expected a tile such as 12x32x1")
        self.position = found.end()
        mr, nr, kr = map(int, found.groups())
        return Tile(mr, nr, kr)

    def applied(self) -> Applied:
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
        token = self.next()
        if not token.isdigit():
            raise self.fail(f"expected an integer, found {token!r}")
        return int(token)

    def name(self) -> str:
        token = self.next()
        if not is_name(token):
            raise self.fail(f"expected a name, found {token!r}")
        return token

    def choice(self, kind: type[_Choice]) -> _Choice:
        token = self.next()
        for member in kind:
            if member.value == token:
                return member
        raise self.fail(f"expected one of {', '.join(str(member.value) for member in kind)}, found {token!r}")

    def end(self) -> None:
        if self.text[self.position :].strip():
            raise self.fail("trailing text")

    # expressions, by precedence

    def expression(self) -> Expression:
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
            self.expect(")")
            return Lead(buffer, unit_bytes)
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
        if not self.take("stored"):
            return None
        elements = self.choice(Elements)
        if not self.take("zero"):
            return Stored(elements)
        zero = self.slice()
        self.expect("every")
        return Stored(elements, zero, self.expression())

    def groups(self) -> Groups | None:
        if not self.take("scale"):
            return None
        scale = self.slice()
        self.expect("every")
        return Groups(scale, self.expression())

    def primitive(self, kind: type[Primitive]) -> Primitive:
        """A statement of windows, integers and scalars, each behind its name."""
        values: dict[str, Any] = {}
        for field in fields(kind):
            if self.take(field.name):
                values[field.name] = self._field(str(field.type))
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


def _logical_lines(text: str) -> list[_Line]:
    """Lines of text; the continuation lines of a `matmul` or an `epilogue` are joined to it."""
    lines: list[_Line] = []
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw.strip():
            continue
        head = raw.split(maxsplit=1)[0]
        begun = lines[-1].text.split(maxsplit=1)[0] if lines else ""
        if (begun, head) in _CONTINUED:
            lines[-1].text += " " + raw.strip()
        else:
            lines.append(_Line(raw, number))
    return lines


class _Parser:
    """Recursive descent over indented lines."""

    def __init__(self, lines: list[_Line]) -> None:
        self.lines, self.index = lines, 0

    def indent(self) -> int:
        if self.index == len(self.lines):
            return -1
        text = self.lines[self.index].text
        return len(text) - len(text.lstrip())

    def header(self, keyword: str) -> list[str]:
        if self.index == len(self.lines):
            raise TileIrSyntax(line=0, reason=f"expected {keyword!r}", text="end of text")
        line = self.lines[self.index]
        words = line.text.split()
        if words[0] != keyword:
            raise line.fail(f"expected {keyword!r}")
        for word in words[1:]:
            if not is_name(word):
                raise line.fail(f"expected a name, found {word!r}")
        self.index += 1
        return words[1:]

    def buffers(self) -> Iterator[Buffer]:
        spaces = {space.value: space for space in Space}
        while self.index < len(self.lines):
            line = self.lines[self.index]
            if line.peek() not in spaces:
                return
            space = spaces[line.next()]
            name, dtype = line.name(), line.name()
            if dtype not in BUFFER_DTYPES:
                raise line.fail(f"unknown dtype {dtype!r}")
            size = None
            if line.take("["):
                size = line.integer()
                line.expect("]")
            line.end()
            self.index += 1
            yield Buffer(name, BUFFER_DTYPES[dtype], space, size)

    def block(self, indent: int) -> tuple[Statement, ...]:
        body: list[Statement] = []
        while self.indent() == indent:
            body.append(self.statement(indent))
        if self.indent() > indent:
            raise self.lines[self.index].fail("unexpected indentation")
        return tuple(body)

    def statement(self, indent: int) -> Statement:
        line = self.lines[self.index]
        self.index += 1
        keyword = line.next()
        match keyword:
            case "let":
                name = line.name()
                line.expect("=")
                value = line.expression()
                line.end()
                return Let(name, value)
            case "for" | "parallel":
                return self._loop(line, indent, keyword)
            case "if":
                condition = line.condition()
                line.expect(":")
                line.end()
                then = self.block(indent + len(INDENT))
                otherwise: tuple[Statement, ...] = ()
                if self.indent() == indent and self.lines[self.index].text.strip() == "else:":
                    self.index += 1
                    otherwise = self.block(indent + len(INDENT))
                return If(condition, then, otherwise)
            case "pack":
                return self._pack(line)
            case "unary":
                return self._unary(line)
            case "matmul":
                return self._matmul(line)
            case "epilogue":
                return self._epilogue(line)
            case word if word in PRIMITIVES:
                return line.primitive(PRIMITIVES[word])
            case _:
                raise line.fail(f"unknown statement {keyword!r}")

    def _loop(self, line: _Line, indent: int, keyword: str) -> Loop:
        axis = line.name()
        line.expect("in")
        begin = line.expression()
        line.expect("..")
        end = line.expression()
        line.expect("step")
        step = line.expression()
        line.expect(":")
        line.end()
        execution = Execution.SEQUENTIAL if keyword == "for" else Execution.PARALLEL
        return Loop(axis, begin, end, step, self.block(indent + len(INDENT)), execution)

    @staticmethod
    def _pack(line: _Line) -> Pack:
        destination = line.slice()
        line.expect("=")
        source = line.slice()
        line.expect("lanes")
        lanes = line.expression()
        line.expect("depth")
        depth = line.expression()
        line.expect("panel")
        panel = line.integer()
        line.expect("kr")
        kr = line.integer()
        line.expect("unit")
        unit = line.integer()
        parts = line.choice(Parts)
        stored = line.stored()
        line.end()
        return Pack(destination, source, lanes, depth, panel, kr, unit, parts, stored)

    @staticmethod
    def _unary(line: _Line) -> UnaryMap:
        op = line.choice(UnaryOp)
        destination = line.slice()
        source = line.slice() if line.take("=") else None
        line.expect("rows")
        rows = line.expression()
        line.expect("columns")
        columns = line.expression()
        traffic = line.choice(Traffic)
        line.end()
        return UnaryMap(op, destination, source, rows, columns, traffic)

    @staticmethod
    def _matmul(line: _Line) -> TileMatmul:
        form = TileForm.OUTER
        if line.peek() in {word.value for word in TileForm}:
            form = TileForm(line.next())
        tile = line.tile()
        c = line.slice()
        line.expect("=")
        beta = line.scalar()
        line.expect("*", "c", "+")
        alpha = line.scalar()
        line.expect("*")
        a = line.slice()
        line.expect(".")
        b = line.slice()
        line.expect("rows")
        rows = line.expression()
        line.expect("columns")
        columns = line.expression()
        line.expect("depth")
        depth = line.expression()
        batch = _Parser._batch(line) if line.take("batch") else None
        carry = None
        if line.take("carry"):
            sums = line.slice()
            line.expect("over")
            carry = Carry(sums, line.name())
        weights = line.stored(), line.groups()
        fetched = line.slice() if line.take("fetch") else None
        padded = bool(line.take("padded"))
        finish = line.finish()
        line.end()
        sizes = (rows, columns, depth)
        return TileMatmul(
            *(c, a, b, *sizes, tile, alpha, beta, batch, form, carry, *weights),
            finish=finish,
            fetched=fetched,
            padded=padded,
        )

    @staticmethod
    def _epilogue(line: _Line) -> TileEpilogue:
        c = line.slice()
        line.expect("=")
        beta = line.scalar()
        line.expect("*", "c", "+")
        alpha = line.scalar()
        line.expect("*")
        sums = line.slice()
        line.expect("rows")
        rows = line.expression()
        line.expect("columns")
        columns = line.expression()
        finish = line.finish()
        line.end()
        return TileEpilogue(c, sums, rows, columns, alpha, beta, finish)

    @staticmethod
    def _batch(line: _Line) -> Batch:
        count = line.expression()
        line.expect("by")
        a_step = line.expression()
        line.expect(",")
        b_step = line.expression()
        return Batch(count, a_step, b_step, line.take("addresses"))


def parse_program(text: str) -> Program:
    """The program that `print_program` wrote; `TileIrSyntax` names the line of a mistake."""
    parser = _Parser(_logical_lines(text))
    names = parser.header("program")
    if len(names) != 1:
        raise parser.lines[0].fail("a program has one name")
    sizes = tuple(parser.header("sizes"))
    scalars = tuple(parser.header("scalars"))
    buffers = tuple(parser.buffers())
    body = parser.block(0)
    if parser.index != len(parser.lines):
        raise parser.lines[parser.index].fail("unexpected indentation")
    return Program(names[0], sizes, scalars, buffers, body)
