"""Marks on lines of LLVM IR: the statement of tile IR that each was written for."""

from __future__ import annotations

import re

import pytest

import tilewright as tw
from tilewright.compiler.lowering.expressions import MARK
from tilewright.compiler.lowering.program import lower_marked
from tilewright.ir.nodes import If, Loop, Program, Statement, TileMatmul
from tilewright.ir.text import print_program, statement_lines

PROBLEMS = {
    "products": tw.BatchReduceGemm(7, 5, 9, 2),
    "tasks and branches": tw.Unary("relu", 64, 48),
    "rows": tw.Elementwise("relu"),
    "contraction": tw.einsum_contraction("abc,cd->abd", (4, 6, 8), (8, 5)),
}


def statements(body: tuple[Statement, ...]) -> list[Statement]:
    found: list[Statement] = []
    for one in body:
        found.append(one)
        match one:
            case Loop(body=inner):
                found += statements(inner)
            case If(then=then, otherwise=otherwise):
                found += statements((*then, *otherwise))
    return found


def fused_inside(program: Program) -> set[int]:
    """The numbers of loops that are lowered with the one around them."""
    numbered = statements(program.body)
    inner = {id(one) for node in numbered if isinstance(node, Loop) for one in node.fused()[1:]}
    return {number for number, node in enumerate(numbered) if id(node) in inner}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_marks_are_comments_that_name_every_statement(problem: tw.Unary) -> None:
    kernel = tw.compile(problem, "znver4")
    program, marked = lower_marked(kernel.nest, kernel.machine)
    assert re.sub(f"{re.escape(MARK)}\\d+$", "", marked, flags=re.MULTILINE) == kernel.llvm_ir
    numbers = set(map(int, re.findall(f"{re.escape(MARK)}(\\d+)$", marked, flags=re.MULTILINE)))
    nodes = statements(program.body)
    assert numbers <= set(range(len(nodes)))
    # A let of a constant, and the loops of fused tasks, write no line of their own.
    unwritten = set(range(len(nodes))) - numbers - fused_inside(program)
    assert not [nodes[number] for number in unwritten if isinstance(nodes[number], Loop | If | TileMatmul)]


def test_lines_of_tile_ir_are_numbered_in_the_order_of_statements() -> None:
    kernel = tw.compile(tw.Elementwise("relu"), "znver4")
    text = print_program(kernel.nest).splitlines()
    numbers = statement_lines(kernel.nest)
    assert len(text) == len(numbers)
    nodes = statements(kernel.nest.body)
    for line, number in zip(text, numbers, strict=True):
        words = {"for": Loop, "parallel": Loop, "if": If, "else:": If}
        kind = words.get(line.split()[0])
        if kind is not None:
            assert number is not None
            assert isinstance(nodes[number], kind)
    assert {number for number in numbers if number is not None} == set(range(len(nodes)))
