"""Unary statements and line leads in tile IR: text, rules, and what the interpreter makes of them."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import looped
from tiers import draws

from tilewright.errors import InvalidTileIr, TileIrSyntax
from tilewright.ir.expressions import Constant, Expression, Lead, Name
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Buffer, Let, Program, Slice, Space, Traffic, UnaryMap
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.spec.dtype import F32, F64, I32
from tilewright.spec.functions import UnaryOp, meaning

names = st.sampled_from(("a", "b", "m", "ld_a", "rows", "columns", "near", "unary", "lead_", "zero"))
expressions: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Constant, st.integers()),
    st.builds(Name, names),
    st.builds(Lead, names, st.integers(0, 2**40)),
    st.builds(
        Lead, names, st.integers(0, 2**40), st.builds(Name, names) | st.builds(Constant, st.integers())
    ),
    st.builds(lambda left, right: left - right, st.builds(Name, names), st.builds(Lead, names, st.just(64))),
)
slices = st.builds(Slice, names, expressions, st.tuples(expressions, expressions))
statements = st.builds(
    UnaryMap,
    st.sampled_from(UnaryOp),
    slices,
    st.none() | slices,
    expressions,
    expressions,
    st.sampled_from(Traffic),
)


@draws(300)
@given(st.lists(statements | st.builds(Let, names, expressions), max_size=4))
def test_parse_is_the_inverse_of_print(body: list[UnaryMap | Let]) -> None:
    program = Program("p", ("m",), (), (Buffer("a", I32, Space.ARGUMENT),), tuple(body))
    text = print_program(program)
    assert parse_program(text) == program
    assert print_program(parse_program(text)) == text


HEAD = """\
program p
sizes m n
scalars
argument a f32
argument b f32
argument w f64
argument q i32
local t f32 [8]
"""

SYNTAX = {
    "unary sqrt b[0; 1, m] = a[0; 1, m] rows m columns n near": "expected one of zero, identity, relu",
    "unary relu b[0; 1, m] = a[0; 1, m] rows m columns n": "unexpected end",
    "unary relu b[0; 1, m] = a[0; 1, m] rows m columns n soon": "expected one of near, far, stream",
    "unary relu b[0; 1, m] a[0; 1, m] rows m columns n near": "expected 'rows'",
    "unary relu b[0; 1, m] = a[0; 1, m] rows m columns n near 3": "trailing text",
    "let x = lead(a)": "expected ','",
    "let x = lead(a, m)": "expected an integer",
}


@pytest.mark.parametrize("line", SYNTAX)
def test_text_that_is_none(line: str) -> None:
    with pytest.raises(TileIrSyntax, match=re.escape(SYNTAX[line])):
        parse_program(HEAD + line + "\n")


RULES = {
    "unary relu b[0; 1, m] = x[0; 1, m] rows m columns n near": "buffer 'x' is not declared",
    "unary relu b[0; 1, k] = a[0; 1, m] rows m columns n near": "'k' is not a size",
    "unary relu b[0; 1, m] = a[0; 1, m] rows k columns n near": "'k' is not a size",
    "unary relu b[0; 1, m] = a[0; 1, m] rows m columns k near": "'k' is not a size",
    "unary relu b[0; 1, m] rows m columns n near": "zero has no source",
    "unary zero b[0; 1, m] = a[0; 1, m] rows m columns n near": "zero has no source",
    "unary relu b[0; 1, m] = w[0; 1, m] rows m columns n near": "differ in element type",
    "unary relu q[0; 1, m] = q[0; 1, m] rows m columns n near": "or bf16 or f16, not i32",
    "let x = lead(x, 64)": "'x' is not an argument buffer",
    "let x = lead(t, 64)": "'t' is not an argument buffer",
    "let x = lead(a, 48)": "unit 48 is not a power of two",
    "let x = lead(a, 0)": "unit 0 is not a power of two",
    "let x = lead(a, 64, q)": "'q' is not a size, let or axis in scope",
}


@pytest.mark.parametrize("line", RULES)
def test_rules(line: str) -> None:
    with pytest.raises(InvalidTileIr, match=re.escape(RULES[line])):
        verify(parse_program(HEAD + line + "\n"))


KEPT = [
    "unary relu b[0; 1, m] = a[0; 1, m] rows m columns n near",
    "unary exp w[0; m, 1] = w[0; 1, m] rows m columns n stream",
    "unary identity q[m; 2, n] = q[n; 1, 0] rows 1 columns n far",
    "unary zero q[0; 1, m] rows m columns n stream",
    "let x = lead(w, 1)",
]


@pytest.mark.parametrize("line", KEPT)
def test_what_keeps_the_rules(line: str) -> None:
    program = parse_program(HEAD + line + "\n")
    assert verify(program) is program


# --- the interpreter ------------------------------------------------------------------------------------


@looped("op", UnaryOp)
@looped("turned", [False, True])
def test_every_operation(op: UnaryOp, *, turned: bool) -> None:
    m, n = 3, 4
    a = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    b = np.full(40, 7, np.float32)
    strides = (Name("ld"), Constant(1)) if turned else (Constant(1), Name("ld"))
    source = None if op is UnaryOp.ZERO else Slice("a", Constant(2), (Constant(1), Name("ld")))
    statement = UnaryMap(op, Slice("b", Constant(1), strides), source, Constant(m), Constant(n))
    buffers = tuple(Buffer(name, F32, Space.ARGUMENT) for name in "ab")
    interpret(verify(Program("p", ("ld",), (), buffers, (statement,))), {"ld": 6}, {}, {"a": a, "b": b})
    expected = np.full(40, 7, np.float32)
    for i, j in product(range(m), range(n)):
        value = meaning(op, a[2 + i + 6 * j : 3 + i + 6 * j])
        expected[1 + (6 * i + j if turned else i + 6 * j)] = value[0]
    np.testing.assert_array_equal(b, expected)


def test_in_place() -> None:
    a = np.arange(6, dtype=np.float64)
    window = Slice("a", Constant(0), (Constant(1), Constant(2)))
    statement = UnaryMap(UnaryOp.SQUARE, window, window, Constant(2), Constant(3))
    program = verify(Program("p", (), (), (Buffer("a", F64, Space.ARGUMENT),), (statement,)))
    interpret(program, {}, {}, {"a": a})
    np.testing.assert_array_equal(a, np.arange(6.0) ** 2)


def test_a_window_that_leaves_its_buffer() -> None:
    window = Slice("a", Constant(1), (Constant(1), Constant(2)))
    statement = UnaryMap(UnaryOp.NEGATE, window, window, Constant(2), Constant(3))
    program = verify(Program("p", (), (), (Buffer("a", F64, Space.ARGUMENT),), (statement,)))
    with pytest.raises(InvalidTileIr, match="reaches elements"):
        interpret(program, {}, {}, {"a": np.zeros(6)})


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("offset", range(0, 20, 3))
def test_leads_reach_the_next_line(kind: str, offset: int) -> None:
    raw = np.zeros(64, kind)
    a = raw[offset:]
    text = f"program p\nsizes\nscalars\nargument a {'f32' if kind == 'f4' else 'f64'}\n"
    window = "a[lead(a, 64); 1, 1]"
    interpret(
        verify(parse_program(f"{text}unary exp {window} = {window} rows 1 columns 1 near\n")),
        {},
        {},
        {"a": a},
    )
    (place,) = np.flatnonzero(a)
    assert a[place:].__array_interface__["data"][0] % 64 == 0
    assert place * raw.itemsize < 64


def test_leads_behind_an_offset() -> None:
    """From the element at an offset, which may be anywhere in its line."""
    raw = np.zeros(200, "f4")
    text = "program p\nsizes first\nscalars\nargument a f32\n"
    window = "a[first + lead(a, 64, first); 1, 1]"
    program = verify(parse_program(f"{text}unary exp {window} = {window} rows 1 columns 1 near\n"))
    for first in range(40):
        raw[...] = 0
        interpret(program, {"first": first}, {}, {"a": raw})
        (place,) = np.flatnonzero(raw)
        assert 0 <= place - first < 16
        assert raw[place:].__array_interface__["data"][0] % 64 == 0
