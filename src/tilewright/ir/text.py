"""Prints tile IR as text, which `parse.parse_program` reads back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum

from tilewright.ir.expressions import (
    AnyOf,
    Binary,
    Constant,
    Expression,
    FirstElse,
    Lead,
    Name,
    Operator,
    Scalar,
    ScalarValue,
    TableEntry,
    Threads,
    Unless,
)
from tilewright.ir.nodes import (
    Batch,
    Execution,
    Finish,
    Groups,
    If,
    Let,
    Loop,
    Pack,
    Primitive,
    Program,
    Slice,
    Statement,
    Stored,
    TileEpilogue,
    TileForm,
    TileMatmul,
    UnaryMap,
)

#: The indentation of one block.
INDENT = "  "

_PRECEDENCE = {Operator.ADD: 1, Operator.SUB: 1, Operator.MUL: 2}


def print_expression(node: Expression, outer: int = 0) -> str:
    """One expression; parentheses only where precedence requires them."""
    match node:
        case Constant(value):
            return str(value)
        case Name(name):
            return name
        case Threads():
            return "threads"
        case Unless(scalar, value):
            return f"unless({scalar}, {print_expression(value)})"
        case Lead(buffer, unit_bytes, Constant(0)):
            return f"lead({buffer}, {unit_bytes})"
        case Lead(buffer, unit_bytes, offset):
            return f"lead({buffer}, {unit_bytes}, {print_expression(offset)})"
        case TableEntry(buffer, index):
            return f"element({buffer}, {print_expression(index)})"
        case Binary(operator, left, right) if operator in _PRECEDENCE:
            level = _PRECEDENCE[operator]
            text = f"{print_expression(left, level)} {operator.value} {print_expression(right, level + 1)}"
            return f"({text})" if level < outer else text
        case Binary(operator, left, right):
            return f"{operator.value}({print_expression(left)}, {print_expression(right)})"
        case _:
            raise TypeError(f"not an expression: {node!r}")


def print_condition(condition: AnyOf) -> str:
    """A condition as infix text."""
    return " or ".join(
        " and ".join(
            f"{print_expression(term.left)} {term.relation.value} {print_expression(term.right)}"
            for term in conjunction.terms
        )
        for conjunction in condition.terms
    )


def _print_scalar(value: ScalarValue) -> str:
    match value:
        case Scalar(str() as name):
            return name
        case Scalar(content):
            return repr(float(content))
        case FirstElse(axis, first, rest):
            return f"({_print_scalar(first)} if {axis} first else {_print_scalar(rest)})"
        case _:
            raise TypeError(f"not a scalar: {value!r}")


def _print_slice(window: Slice) -> str:
    lane, depth = (print_expression(stride) for stride in window.strides)
    index = "" if window.index is None else f"{{{print_expression(window.index)}}}"
    interleave = "" if window.interleave == 1 else f" by {window.interleave}"
    panels = ""
    if window.panels is not None:
        panels = f" panels {window.panels.lanes} apart {print_expression(window.panels.stride)}"
    return f"{window.buffer}{index}[{print_expression(window.offset)}; {lane}, {depth}{interleave}{panels}]"


def _print_stored(stored: Stored | None) -> str:
    if stored is None:
        return ""
    zero = ""
    if stored.zero is not None:
        zero = f" zero {_print_slice(stored.zero)} every {print_expression(stored.group)}"
    return f" stored {stored.elements.value}{zero}"


def _print_groups(groups: Groups | None) -> str:
    if groups is None:
        return ""
    return f" scale {_print_slice(groups.scale)} every {print_expression(groups.depth)}"


def _print_statement(statement: Statement, indent: str) -> Iterator[str]:
    match statement:
        case Let(name, value):
            yield f"{indent}let {name} = {print_expression(value)}"
        case Loop(axis, begin, end, step, body, execution):
            word = "for" if execution is Execution.SEQUENTIAL else "parallel"
            begin_text, end_text, step_text = map(print_expression, (begin, end, step))
            yield f"{indent}{word} {axis} in {begin_text} .. {end_text} step {step_text}:"
            yield from _print_block(body, indent + INDENT)
        case If(condition, then, otherwise):
            yield f"{indent}if {print_condition(condition)}:"
            yield from _print_block(then, indent + INDENT)
            if otherwise:
                yield f"{indent}else:"
                yield from _print_block(otherwise, indent + INDENT)
        case Pack(destination, source, lanes, depth, panel, kr, unit, parts, stored):
            sizes = f"lanes {print_expression(lanes)} depth {print_expression(depth)} panel {panel} kr {kr}"
            sizes += f" unit {unit} {parts.value}{_print_stored(stored)}"
            yield f"{indent}pack {_print_slice(destination)} = {_print_slice(source)} {sizes}"
        case UnaryMap(op, destination, source, rows, columns, traffic):
            given = "" if source is None else f" = {_print_slice(source)}"
            sizes = f"rows {print_expression(rows)} columns {print_expression(columns)} {traffic.value}"
            yield f"{indent}unary {op.value} {_print_slice(destination)}{given} {sizes}"
        case TileMatmul():
            yield from _print_matmul(statement, indent)
        case TileEpilogue(c, sums, rows, columns, alpha, beta, finish):
            total = f"{_print_scalar(beta)} * c + {_print_scalar(alpha)} * {_print_slice(sums)}"
            sizes = f"rows {print_expression(rows)} columns {print_expression(columns)}"
            yield f"{indent}epilogue {_print_slice(c)} = {total} {sizes}"
            yield from _print_finish(finish, indent)
        case Primitive():
            yield f"{indent}{statement.word}{''.join(_print_fields(statement))}"
        case _:
            raise TypeError(f"not a statement: {statement!r}")


def _print_fields(node: Primitive) -> Iterator[str]:
    for field in fields(node):
        match getattr(node, field.name):
            case None:
                continue
            case Slice() as window:
                yield f" {field.name} {_print_slice(window)}"
            case Expression() as value:
                yield f" {field.name} {print_expression(value)}"
            case Enum(value=word):
                yield f" {field.name} {word}"
            case scalar:
                yield f" {field.name} {_print_scalar(scalar)}"


def _print_matmul(node: TileMatmul, indent: str) -> Iterator[str]:
    form = "" if node.form is TileForm.OUTER else f"{node.form.value} "
    tile = f"{form}{node.tile.mr}x{node.tile.nr}x{node.tile.kr}"
    yield f"{indent}matmul {tile} {_print_slice(node.c)}"
    product = f"{_print_scalar(node.alpha)} * {_print_slice(node.a)} . {_print_slice(node.b)}"
    yield f"{indent}{INDENT}= {_print_scalar(node.beta)} * c + {product}"
    sizes = (node.rows, node.columns, node.depth)
    rows, columns, depth = map(print_expression, sizes)
    batch = "" if node.batch is None else _print_batch(node.batch)
    carry = "" if node.carry is None else f" carry {_print_slice(node.carry.sums)} over {node.carry.axis}"
    weights = _print_stored(node.stored) + _print_groups(node.groups)
    fetched = "" if node.fetched is None else f" fetch {_print_slice(node.fetched)}"
    fetched += "" if node.ahead is None else f" ahead {_print_slice(node.ahead)}"
    fetched += "" if node.copied is None else f" copied {_print_slice(node.copied)}"
    padded = " padded" if node.padded else ""
    sums = "" if node.sums is None else f" sums {node.sums}"
    split = " split" * node.split + " rotated" * node.rotated
    sizes_text = f"rows {rows} columns {columns} depth {depth}"
    yield f"{indent}{INDENT}{sizes_text}{batch}{carry}{weights}{fetched}{padded}{sums}{split}"
    yield from _print_finish(node.finish, indent)


def _print_finish(finish: Finish | None, indent: str) -> Iterator[str]:
    if finish is None:
        return
    steps = ", ".join(
        str(one.step) if one.operand is None else f"{one.step} {_print_slice(one.operand)}"
        for one in finish.steps
    )
    yield f"{indent}{INDENT}then {steps}{'' if finish.axis is None else f' at last {finish.axis}'}"


def _print_batch(batch: Batch) -> str:
    count, a_step, b_step = map(print_expression, (batch.count, batch.a_step, batch.b_step))
    return f" batch {count} by {a_step}, {b_step}{' addresses' if batch.addresses else ''}"


def _print_block(body: tuple[Statement, ...], indent: str) -> Iterator[str]:
    for statement in body:
        yield from _print_statement(statement, indent)


def statement_lines(program: Program) -> list[int | None]:
    """For each line of `print_program` the number of its statement; None for declarations.

    Statement 0 is the first of the body, and those inside a statement follow it; so do the lines of `else`
    and of what else a statement prints beside them.
    """
    found: list[int | None] = [None] * (3 + len(program.buffers))
    count = 0

    def number(body: tuple[Statement, ...]) -> None:
        nonlocal count
        for statement in body:
            own, count = count, count + 1
            match statement:
                case Loop(body=inner):
                    found.append(own)
                    number(inner)
                case If(then=then, otherwise=otherwise):
                    found.append(own)
                    number(then)
                    found.extend([own] if otherwise else [])
                    number(otherwise)
                case _:
                    found.extend(own for _ in _print_statement(statement, ""))

    number(program.body)
    return found


def print_program(program: Program) -> str:
    """The whole program, one construct a line.

    Examples
    --------
    >>> from tilewright.ir.nodes import Let
    >>> print(print_program(Program("p", ("m",), (), (), (Let("x", Name("m") * 2),))), end="")
    program p
    sizes m
    scalars
    let x = m * 2
    """
    lines = [f"program {program.name}"]
    lines.append(" ".join(("sizes", *program.sizes)))
    kind = () if program.scalar_dtype is None else (":", str(program.scalar_dtype))
    lines.append(" ".join(("scalars", *program.scalars, *kind)))
    for buffer in program.buffers:
        size = "" if buffer.size is None else f" [{buffer.size}]"
        lines.append(f"{buffer.space.value} {buffer.name} {buffer.dtype}{size}")
    lines.extend(_print_block(program.body, ""))
    return "\n".join(lines) + "\n"
