"""Statements of a program as a part of another: operands elsewhere, factors known, no tasks in tasks."""

from __future__ import annotations

from tilewright.ir.expressions import Name
from tilewright.ir.parse import parse_program
from tilewright.ir.relocate import Place, Relocation
from tilewright.ir.text import print_program

HEAD = """program part
sizes n base
scalars alpha beta
argument a f32
argument b f32
argument c f32
"""
BEFORE = (
    HEAD
    + """let depths = unless(alpha, n)
parallel i in 0 .. n step 8:
  for pc in 0 .. depths step 4:
    matmul 8x16x1 c[i * 16; 16, 1]
      = (beta if pc first else 1.0) * c + alpha * a[i; 1, 8] . b[pc; 1, 16]
      rows 8 columns 16 depth 4
"""
)
AFTER = (
    HEAD
    + """let depths = n
for i in 0 .. n step 8:
  for pc in 0 .. depths step 4:
    matmul 8x16x1 c[base + i * 16; 16, 1]
      = (0.0 if pc first else 1.0) * c + 1.0 * b[i; 1, 8] . a[pc; 1, 16]
      rows 8 columns 16 depth 4
"""
)
PLACES = {"a": Place("b"), "b": Place("a"), "c": Place("c", Name("base"))}


def relocated(text: str, alpha: float, *, in_task: bool) -> str:
    program = parse_program(text)
    body = Relocation(PLACES, {"alpha": alpha, "beta": 0.0}, in_task).block(program.body)
    return print_program(program.__class__(**{**program.__dict__, "body": body}))


def test_before_and_after() -> None:
    assert relocated(BEFORE, 1.0, in_task=True) == AFTER
    assert relocated(BEFORE, 1.0, in_task=False) == AFTER.replace("for i", "parallel i")
    assert "let depths = 0\n" in relocated(BEFORE, 0.0, in_task=True)


def test_nothing_to_change() -> None:
    body = parse_program(BEFORE).body
    assert Relocation({}, {}, in_task=False).block(body)[0] is body[0]


def test_lines_are_counted_from_the_first_element() -> None:
    text = HEAD + "let lead_c = lead(c, 64)\n"
    assert "lead(c, 64, base)" in relocated(text, 1.0, in_task=False)
    assert "lead(b, 64)\n" in relocated(text.replace("lead(c", "lead(a"), 1.0, in_task=False)
