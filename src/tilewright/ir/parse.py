"""Reads tile IR from the text that `text.print_program` writes."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.errors import TileIrSyntax
from tilewright.ir.expressions import ScalarValue
from tilewright.ir.nodes import (
    Batch,
    Buffer,
    Carry,
    Execution,
    If,
    Let,
    Loop,
    Pack,
    Program,
    Space,
    Statement,
    TileEpilogue,
    TileForm,
    TileMatmul,
    Traffic,
    UnaryMap,
)
from tilewright.ir.parse_line import Line
from tilewright.ir.primitives.registry import PRIMITIVES
from tilewright.ir.text import INDENT
from tilewright.ir.verify import is_name
from tilewright.spec.dtype import DType
from tilewright.spec.functions import UnaryOp
from tilewright.spec.parts import Parts

#: Statements of several lines, with what the others begin with.
_CONTINUED = {("matmul", "="), ("matmul", "rows"), ("matmul", "then"), ("epilogue", "then")}


def _logical_lines(text: str) -> list[Line]:
    """Lines of text; the continuation lines of a `matmul` or an `epilogue` are joined to it."""
    lines: list[Line] = []
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw.strip():
            continue
        head = raw.split(maxsplit=1)[0]
        begun = lines[-1].text.split(maxsplit=1)[0] if lines else ""
        if (begun, head) in _CONTINUED:
            lines[-1].text += " " + raw.strip()
        else:
            lines.append(Line(raw, number))
    return lines


class _Parser:
    """Recursive descent over indented lines."""

    def __init__(self, lines: list[Line]) -> None:
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

    def scalars(self) -> tuple[tuple[str, ...], DType | None]:
        """The names of scalars, and their type if the line ends with one."""
        if self.index == len(self.lines):
            raise TileIrSyntax(line=0, reason="expected 'scalars'", text="end of text")
        line = self.lines[self.index]
        line.expect("scalars")
        names = []
        while line.peek() not in ("", ":"):
            names.append(line.name())
        kind = line.dtype() if line.take(":") else None
        line.end()
        self.index += 1
        return tuple(names), kind

    def buffers(self) -> Iterator[Buffer]:
        spaces = {space.value: space for space in Space}
        while self.index < len(self.lines):
            line = self.lines[self.index]
            if line.peek() not in spaces:
                return
            space = spaces[line.next()]
            name, dtype = line.name(), line.dtype()
            size = None
            if line.take("["):
                size = line.integer()
                line.expect("]")
            line.end()
            self.index += 1
            yield Buffer(name, dtype, space, size)

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

    def _loop(self, line: Line, indent: int, keyword: str) -> Loop:
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
    def _pack(line: Line) -> Pack:
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
    def _unary(line: Line) -> UnaryMap:
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
    def _matmul(line: Line) -> TileMatmul:
        form = TileForm.OUTER
        if line.peek() in {word.value for word in TileForm}:
            form = TileForm(line.next())
        tile = line.tile()
        c = line.slice()
        beta, alpha = _Parser._factors(line)
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
        ahead = line.slice() if line.take("ahead") else None
        copied = line.slice() if line.take("copied") else None
        padded = bool(line.take("padded"))
        acc = line.dtype() if line.take("sums") else None
        split, rotated = bool(line.take("split")), bool(line.take("rotated"))
        finish = line.finish()
        line.end()
        sizes = (rows, columns, depth)
        return TileMatmul(
            *(c, a, b, *sizes, tile, alpha, beta, batch, form, carry, *weights),
            finish=finish,
            fetched=fetched,
            ahead=ahead,
            copied=copied,
            padded=padded,
            sums=acc,
            split=split,
            rotated=rotated,
        )

    @staticmethod
    def _epilogue(line: Line) -> TileEpilogue:
        c = line.slice()
        beta, alpha = _Parser._factors(line)
        sums = line.slice()
        line.expect("rows")
        rows = line.expression()
        line.expect("columns")
        columns = line.expression()
        finish = line.finish()
        line.end()
        return TileEpilogue(c, sums, rows, columns, alpha, beta, finish)

    @staticmethod
    def _factors(line: Line) -> tuple[ScalarValue, ScalarValue]:
        """beta and alpha of ``= beta * c + alpha *``."""
        line.expect("=")
        beta = line.scalar()
        line.expect("*", "c", "+")
        alpha = line.scalar()
        line.expect("*")
        return beta, alpha

    @staticmethod
    def _batch(line: Line) -> Batch:
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
    scalars, kind = parser.scalars()
    buffers = tuple(parser.buffers())
    body = parser.block(0)
    if parser.index != len(parser.lines):
        raise parser.lines[parser.index].fail("unexpected indentation")
    return Program(names[0], sizes, scalars, buffers, body, kind)
