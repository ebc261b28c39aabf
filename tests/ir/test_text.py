"""Tile IR as text: what is printed parses back to the same program, and a mistake names its line."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from shares import looped
from tiers import draws

from tilewright.errors import TileIrSyntax
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
    Unless,
)
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
    Slice,
    Space,
    Statement,
    Tile,
    TileEpilogue,
    TileForm,
    TileMatmul,
)
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_expression, print_program
from tilewright.ir.verify import RESERVED, verify
from tilewright.spec.dtype import BUFFER_DTYPES, F32
from tilewright.spec.parts import Parts

# --- programs of every shape ----------------------------------------------------------------------

#: Words of the grammar that are names where a name is expected.
KEYWORDS = (
    "rows",
    "columns",
    "depth",
    "lanes",
    "panel",
    "kr",
    "step",
    "in",
    "first",
    "else",
    "if",
    "and",
    "batch",
    "by",
    "unit",
    "carry",
    "over",
    "whole",
    "dot",
    "turned",
    "epilogue",
    "c",
)
names = st.one_of(
    st.sampled_from(("m", "x_1", "_", "e5", "inf_", "minimum", "Nan", *KEYWORDS)),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,4}", fullmatch=True).filter(lambda word: word not in RESERVED),
)
expressions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(st.builds(Constant, st.integers()), st.builds(Name, names)),
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from(Operator), inner, inner),
        st.builds(Unless, names, inner),
        st.builds(Lead, names, st.integers(1, 2**40)),
    ),
    max_leaves=12,
)
short_expressions: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Constant, st.integers()),
    st.builds(Name, names),
    st.builds(
        Binary, st.sampled_from(Operator), st.builds(Name, names), st.builds(Constant, st.integers(-9, 9))
    ),
)
comparisons = st.builds(Compare, st.sampled_from(Relation), short_expressions, short_expressions)
conjunctions = st.builds(AllOf, st.lists(comparisons, min_size=1, max_size=3).map(tuple))
conditions = st.builds(AnyOf, st.lists(conjunctions, min_size=1, max_size=3).map(tuple))
scalars = st.builds(Scalar, st.one_of(names, st.floats(allow_nan=False)))
scalar_values: st.SearchStrategy[ScalarValue] = st.one_of(
    scalars, st.builds(FirstElse, names, scalars, scalars)
)
slices = st.builds(
    Slice,
    names,
    short_expressions,
    st.tuples(short_expressions, short_expressions),
    st.one_of(st.none(), short_expressions),
    st.one_of(st.just(1), st.integers(1, 2**40)),
)
batches = st.builds(Batch, short_expressions, short_expressions, short_expressions, st.booleans())
positive = st.integers(1, 2**40)
primitives: st.SearchStrategy[Statement] = st.one_of(
    st.builds(Let, names, expressions),
    st.builds(
        Pack,
        *(slices, slices, short_expressions, short_expressions),
        *(positive, positive, positive, st.sampled_from(Parts)),
    ),
    st.builds(
        TileMatmul,
        slices,
        slices,
        slices,
        short_expressions,
        short_expressions,
        short_expressions,
        st.builds(Tile, positive, positive, positive),
        scalar_values,
        scalar_values,
        st.one_of(st.none(), batches),
        st.sampled_from(TileForm),
        st.one_of(st.none(), st.builds(Carry, slices, names)),
    ),
    st.builds(
        TileEpilogue, slices, slices, short_expressions, short_expressions, scalar_values, scalar_values
    ),
)


def blocks(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[tuple[Statement, ...]]:
    return st.lists(inner, max_size=3).map(tuple)


statements: st.SearchStrategy[Statement] = st.recursive(
    primitives,
    lambda inner: st.one_of(
        st.builds(
            Loop,
            names,
            short_expressions,
            short_expressions,
            short_expressions,
            blocks(inner),
            st.sampled_from(Execution),
        ),
        st.builds(If, conditions, blocks(inner), blocks(inner)),
    ),
    max_leaves=6,
)
buffers = st.builds(
    Buffer,
    names,
    st.sampled_from(list(BUFFER_DTYPES.values())),
    st.sampled_from(Space),
    st.one_of(st.none(), st.integers(0, 2**40)),
)
programs = st.builds(
    Program,
    names,
    st.lists(names, max_size=3).map(tuple),
    st.lists(names, max_size=3).map(tuple),
    st.lists(buffers, max_size=3).map(tuple),
    blocks(statements),
)


def program(*body: Statement) -> Program:
    return Program("p", ("m",), ("alpha",), (Buffer("a", F32, Space.ARGUMENT),), body)


@draws(300, each=12)
@given(programs)
def test_parse_is_the_inverse_of_print(before: Program) -> None:
    text = print_program(before)
    after = parse_program(text)
    assert after == before
    assert repr(after) == repr(before)  # 0.0 is not -0.0
    assert print_program(after) == text


@draws(300)
@given(expressions)
@example(Binary(Operator.SUB, Name("x"), Binary(Operator.SUB, Name("y"), Name("z"))))
@example(Binary(Operator.SUB, Name("x"), Constant(-3)))
@example(Binary(Operator.MUL, Constant(-3), Binary(Operator.ADD, Constant(-1), Name("x"))))
def test_expressions_keep_their_tree(before: Expression) -> None:
    assert parse_program(print_program(program(Let("x", before)))).body == (Let("x", before),)


X, Y, Z = Name("x"), Name("y"), Name("z")


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Binary(Operator.ADD, Binary(Operator.ADD, X, Y), Z), "x + y + z"),
        (Binary(Operator.ADD, X, Binary(Operator.ADD, Y, Z)), "x + (y + z)"),
        (Binary(Operator.SUB, X, Binary(Operator.ADD, Y, Z)), "x - (y + z)"),
        (Binary(Operator.MUL, Binary(Operator.ADD, X, Y), Z), "(x + y) * z"),
        (Binary(Operator.ADD, Binary(Operator.MUL, X, Y), Z), "x * y + z"),
        (Binary(Operator.MUL, X, Binary(Operator.MUL, Y, Z)), "x * (y * z)"),
        (Binary(Operator.SUB, X, Constant(-3)), "x - -3"),
        (Binary(Operator.MUL, Binary(Operator.MIN, X, Y), Z), "min(x, y) * z"),
        (Binary(Operator.CEILDIV, Binary(Operator.SUB, X, Y), Z), "ceildiv(x - y, z)"),
        (Unless("alpha", Binary(Operator.ROUNDUP, X, Y)), "unless(alpha, roundup(x, y))"),
    ],
)
def test_parentheses_only_where_precedence_asks(node: Expression, text: str) -> None:
    assert print_expression(node) == text


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1.0, -1.5, 1e-30, -1e-30, 1e30, 5e-324, 0.1, math.inf, -math.inf, 1e16, 12345678.9]
)
def test_floats_in_scalars(value: float) -> None:
    zero = Constant(0)
    window = Slice("a", zero, (Constant(1), zero))
    both = FirstElse("m", Scalar(value), Scalar(-value))
    node = TileMatmul(window, window, window, zero, zero, zero, Tile(1, 1), Scalar(value), both)
    (after,) = parse_program(print_program(program(node))).body
    assert repr(after) == repr(node)


def test_whole_numbers_as_scalars_are_read_as_floats() -> None:
    text = print_program(program(MATMUL)).replace("= 1.0 * c", "= -2.0 * c")
    assert "= -2.0 * c" in text
    (node,) = parse_program(text).body
    assert isinstance(node, TileMatmul)
    assert node.beta == Scalar(-2.0)


# --- a golden program: the whole grammar ------------------------------------------------------------

WINDOW = Slice("a", Constant(0), (Constant(1), Name("m")))
MATMUL = TileMatmul(
    c=Slice("a", Name("i"), (Name("m"), Constant(1))),
    a=WINDOW,
    b=WINDOW,
    rows=Constant(2),
    columns=Constant(3),
    depth=Name("m"),
    tile=Tile(2, 3, 4),
    alpha=Scalar("alpha"),
    beta=Scalar(1.0),
)
GOLDEN = """\
program p
sizes m
scalars alpha
argument a f32
thread s f64 [64]
shared t f32 [8]
let x = min(m, 3) * (m + 1)
parallel i in 0 .. m step x:
  if i == 0 and m <= 8 or x < 3:
    pack s[0; 2, 8 by 2] = a[i; 1, m] lanes 4 depth m panel 4 kr 2 unit 8 whole
  else:
    for p in x .. m step 1:
      matmul 2x3x4 a[i; m, 1]
        = (-1e-30 if p first else 1.0) * c + alpha * a[0; 1, m] . a[0; 1, m]
        rows 2 columns 3 depth m carry t[0; 4, 1] over p
matmul dot 4x1x1 a[x; m, 1]
  = 0.0 * c + 1.0 * a[0; m, 1] . a[0; 1, 1]
  rows min(4, m) columns 1 depth m
matmul turned 1x8x1 a[0; m, 1]
  = 1.0 * c + alpha * a[0; m, 1] . a[0; m, 1]
  rows 1 columns 8 depth m padded
epilogue a[x; m, 1] = alpha * c + 1.0 * t[0; 4, 1] rows 2 columns m - 1
let y = unless(alpha, ceildiv(m, 2))
"""


def test_golden() -> None:
    parsed = parse_program(GOLDEN)
    assert print_program(parsed) == GOLDEN
    assert parsed.sizes == ("m",)
    assert [(buffer.name, buffer.space, buffer.size) for buffer in parsed.buffers] == [
        ("a", Space.ARGUMENT, None),
        ("s", Space.THREAD, 64),
        ("t", Space.SHARED, 8),
    ]
    first, loop, dot, turned, epilogue, last = parsed.body
    assert isinstance(first, Let)
    assert isinstance(last, Let)
    assert isinstance(loop, Loop)
    assert loop.execution is Execution.PARALLEL
    (choice,) = loop.body
    assert isinstance(choice, If)
    assert choice.condition == AnyOf(
        (
            AllOf(
                (
                    Compare(Relation.EQ, Name("i"), Constant(0)),
                    Compare(Relation.LE, Name("m"), Constant(8)),
                )
            ),
            AllOf((Compare(Relation.LT, Name("x"), Constant(3)),)),
        )
    )
    (inner,) = choice.otherwise
    assert isinstance(inner, Loop)
    (node,) = inner.body
    assert isinstance(node, TileMatmul)
    assert node.beta == FirstElse("p", Scalar(-1e-30), Scalar(1.0))
    assert node.tile == Tile(2, 3, 4)
    assert node.carry == Carry(Slice("t", Constant(0), (Constant(4), Constant(1))), "p")
    (pack,) = choice.then
    assert isinstance(pack, Pack)
    assert (pack.destination.interleave, pack.source.interleave) == (2, 1)
    assert (pack.panel, pack.kr, pack.unit, pack.parts) == (4, 2, 8, Parts.WHOLE)
    assert isinstance(dot, TileMatmul)
    assert isinstance(turned, TileMatmul)
    assert (node.padded, dot.padded, turned.padded) == (False, False, True)
    assert (node.form, dot.form, turned.form) == (TileForm.OUTER, TileForm.DOT, TileForm.TRANSPOSED_B)
    assert epilogue == TileEpilogue(
        c=Slice("a", Name("x"), (Name("m"), Constant(1))),
        sums=Slice("t", Constant(0), (Constant(4), Constant(1))),
        rows=Constant(2),
        columns=Name("m") - 1,
        alpha=Scalar(1.0),
        beta=Scalar("alpha"),
    )


def test_blank_lines_and_tight_spacing_are_read() -> None:
    text = GOLDEN.replace("0 .. m", "0..m").replace("x = min(m, 3) * (m + 1)", "x=min(m,3)*(m+1)")
    assert parse_program("\n" + text.replace("\n", "\n\n")) == parse_program(GOLDEN)


# --- mistakes -----------------------------------------------------------------------------------------

HEAD = "program p\nsizes m\nscalars alpha\nargument a f32\n"
PACK_LINE = "pack a[0; 1, 1] = a[0; 1, 1] lanes 1 depth 1 panel 1 kr 1 unit 1 whole"
MATMUL_LINE = "matmul 2x3x1 a[0; m, 1] = 1.0 * c + alpha * a[0; 1, m] . a[0; 1, m] rows 1 columns 1 depth m"
DOT_LINE = MATMUL_LINE.replace("matmul", "matmul dot")
EPILOGUE_LINE = "epilogue a[0; m, 1] = 1.0 * c + alpha * a[0; m, 1] rows 1 columns m"


@looped(
    ("text", "line", "reason"),
    [
        ("", 0, "expected 'program'"),
        ("sizes m\n", 1, "expected 'program'"),
        ("program p\n", 0, "expected 'sizes'"),
        ("program p\nscalars\n", 2, "expected 'sizes'"),
        ("program p\nsizes\nsizes\n", 3, "expected 'scalars'"),
        ("\n\nprogram p q\nsizes\nscalars\n", 3, "a program has one name"),
        ("program\nsizes\nscalars\n", 1, "a program has one name"),
        ("program p\nsizes m, n\nscalars\n", 2, "expected a name, found 'm,'"),
        ("program p\nsizes m\nscalars inf\n", 3, "expected a name, found 'inf'"),
        (HEAD + "argument b f33\n", 5, "unknown dtype 'f33'"),
        (HEAD + "thread b f32 [x]\n", 5, "expected an integer, found 'x'"),
        (HEAD + "thread b f32 [8\n", 5, "expected ']', found ''"),
        (HEAD + "argument b f32 f32\n", 5, "trailing text"),
        (HEAD + "argument min f32\n", 5, "expected a name, found 'min'"),
        (HEAD + "frob x\n", 5, "unknown statement 'frob'"),
        (HEAD + "else:\n", 5, "unknown statement 'else'"),
        (HEAD + "let x = m\nlet y = @\n", 6, "unknown character"),
        (HEAD + "let x =\n", 5, "unexpected end"),
        (HEAD + "let x m\n", 5, "expected '=', found 'm'"),
        (HEAD + "let 3 = m\n", 5, "expected a name, found '3'"),
        (HEAD + "let max = m\n", 5, "expected a name, found 'max'"),
        (HEAD + "let x = m +\n", 5, "unexpected end"),
        (HEAD + "let x = m m\n", 5, "trailing text"),
        (HEAD + "let x = (m + 1\n", 5, "expected ')', found ''"),
        (HEAD + "let x = min(m)\n", 5, "expected ',', found ')'"),
        (HEAD + "let x = unless(3, m)\n", 5, "expected a name, found '3'"),
        (HEAD + "let x = -m\n", 5, "expected an integer, found 'm'"),
        (HEAD + "let x = 1.5\n", 5, "expected an expression, found '1.5'"),
        (HEAD + "let x = nan\n", 5, "expected an expression, found 'nan'"),
        (HEAD + "for i in 0 .. m step 1\n", 5, "expected ':', found ''"),
        (HEAD + "for i in 0 .. m:\n", 5, "expected 'step', found ':'"),
        (HEAD + "for i in 0 m step 1:\n", 5, "expected '..', found 'm'"),
        (HEAD + "for i in 0 .. m step 1: let x = m\n", 5, "trailing text"),
        (HEAD + "for i in 0 .. m step 1:\n    let x = m\n", 6, "unexpected indentation"),
        (HEAD + "for i in 0 .. m step 1:\n let x = m\n", 6, "unexpected indentation"),
        (HEAD + "  let x = m\n", 5, "unexpected indentation"),
        (HEAD + "if m > 3:\n", 5, "unknown character"),
        (HEAD + "if m + 3:\n", 5, "expected a comparison, found ':'"),
        (HEAD + "if m < 3 and:\n", 5, "expected an expression, found ':'"),
        (HEAD + "if m < 3: let x = m\n", 5, "trailing text"),
        (
            HEAD + "pack a[0; 1] = a[0; 1, 1] lanes 1 depth 1 panel 1 kr 1 unit 1 whole\n",
            5,
            "expected ',', found ']'",
        ),
        (HEAD + "pack a[0; 1, 1] = a[0; 1, 1] lanes 1 depth 1 panel m kr 1\n", 5, "expected an integer"),
        (HEAD + "pack a[0; 1, 1] = a[0; 1, 1] lanes 1 depth 1 panel 1\n", 5, "expected 'kr', found ''"),
        (HEAD + PACK_LINE.replace("unit 1", "") + "\n", 5, "expected 'unit', found 'whole'"),
        (HEAD + PACK_LINE.replace("unit 1", "unit m") + "\n", 5, "expected an integer, found 'm'"),
        (
            HEAD + PACK_LINE.replace("whole", "torn") + "\n",
            5,
            "one of whole, split, rotated, found 'torn'",
        ),
        (HEAD + PACK_LINE.replace("1, 1]", "1, 1 by x]", 1) + "\n", 5, "expected an integer, found 'x'"),
        (HEAD + PACK_LINE.replace("1, 1]", "1, 1 2]", 1) + "\n", 5, "expected ']', found '2'"),
        (HEAD + MATMUL_LINE + " carry a[0; 1, 1]\n", 5, "expected 'over', found ''"),
        (HEAD + MATMUL_LINE + " carry a[0; 1, 1] over 3\n", 5, "expected a name, found '3'"),
        (HEAD + MATMUL_LINE + " carry over p\n", 5, "expected '[', found 'p'"),
        (HEAD + MATMUL_LINE.replace("2x3x1", "2x3") + "\n", 5, "expected a tile such as 12x32x1"),
        (HEAD + MATMUL_LINE.replace("1.0 * c", "[ * c") + "\n", 5, "expected a scalar, found '['"),
        (HEAD + MATMUL_LINE.replace("1.0 * c", "nan if * c") + "\n", 5, "expected '*', found 'if'"),
        (HEAD + MATMUL_LINE.replace("1.0 * c", "(1.0 if i else 2.0) * c") + "\n", 5, "expected 'first'"),
        (HEAD + MATMUL_LINE.replace("* c", "* d") + "\n", 5, "expected 'c', found 'd'"),
        (HEAD + MATMUL_LINE.replace("rows 1", "") + "\n", 5, "expected 'rows', found 'columns'"),
        (HEAD + "\n\n" + MATMUL_LINE.replace(" rows", "\n    rows") + " 7\n", 7, "trailing text"),
        (HEAD + DOT_LINE.replace("dot", "dots") + "\n", 5, "expected a tile such as 12x32x1"),
        (HEAD + DOT_LINE.replace("dot", "dot dot") + "\n", 5, "expected a tile such as 12x32x1"),
        (HEAD + DOT_LINE.replace("dot 2x3x1", "dot") + "\n", 5, "expected a tile such as 12x32x1"),
        (HEAD + DOT_LINE.replace("dot 2x3x1", "2x3x1 dot") + "\n", 5, "expected '[', found 'a'"),
        (HEAD + EPILOGUE_LINE.replace(" = ", " ") + "\n", 5, "expected '=', found '1.0'"),
        (HEAD + EPILOGUE_LINE.replace("a[0; m, 1] =", "=") + "\n", 5, "expected a name, found '='"),
        (HEAD + EPILOGUE_LINE.replace("c +", "d +") + "\n", 5, "expected 'c', found 'd'"),
        (HEAD + EPILOGUE_LINE.replace("c + alpha * ", "") + "\n", 5, "expected 'c', found 'a'"),
        (HEAD + EPILOGUE_LINE.replace("alpha", "(1.0 if)") + "\n", 5, "expected a name, found ')'"),
        (HEAD + EPILOGUE_LINE.replace("m, 1] rows", "m] rows") + "\n", 5, "expected ',', found ']'"),
        (HEAD + EPILOGUE_LINE.replace("rows 1 ", "") + "\n", 5, "expected 'rows', found 'columns'"),
        (HEAD + EPILOGUE_LINE.replace(" columns m", "") + "\n", 5, "expected 'columns', found ''"),
        (HEAD + EPILOGUE_LINE + " depth m\n", 5, "trailing text"),
    ],
)
def test_a_mistake_names_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(TileIrSyntax, match=re.escape(reason)) as caught:
        parse_program(text)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"tile IR text, line {line}: ")


def test_the_lines_of_the_mistake_table_themselves_parse() -> None:
    text = HEAD + f"{PACK_LINE}\n{MATMUL_LINE}\n{DOT_LINE}\n{EPILOGUE_LINE}\n"
    pack, matmul, dot, epilogue = parse_program(text).body
    assert isinstance(pack, Pack)
    assert isinstance(matmul, TileMatmul)
    assert dot == replace(matmul, form=TileForm.DOT)
    assert isinstance(epilogue, TileEpilogue)


def test_the_form_of_outer_products_is_not_printed() -> None:
    text = print_program(program(MATMUL))
    assert "matmul 2x3x4" in text
    assert parse_program(text.replace("matmul", "matmul outer")) == program(MATMUL)


@pytest.mark.parametrize("node", [object(), Scalar(1.0)])
def test_printing_what_is_not_tile_ir_raises(node: object) -> None:
    with pytest.raises(TypeError, match="not an expression"):
        print_expression(node)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a statement"):
        print_program(program(node))  # type: ignore[arg-type]


@draws(200)
@given(st.text(max_size=30), st.integers(0, 16))
def test_any_damage_is_a_syntax_error_or_a_program(damage: str, at: int) -> None:
    lines = GOLDEN.splitlines()
    lines[at % len(lines)] += damage
    try:
        parse_program("\n".join(lines))
    except TileIrSyntax as error:
        assert "tile IR text, line" in str(error)  # noqa: PT017


def test_weights_in_words_as_text() -> None:
    """Panels of a window, how its words are stored, and scales by groups."""
    scale, zero = "s[0; 1, 0 panels 32 apart 32]", "z[0; 1, 32 panels 32 apart 64]"
    words = "b[0; 1, 32 panels 32 apart k * 4]"
    text = f"""\
program p
sizes n k
scalars
argument a f32
argument b i32
argument c f32
argument s f32
argument z f32
shared w bf16 [4096]
matmul 1x128x1 c[0; n, 1]
  = 0.0 * c + 1.0 * a[0; k, 1] . {words}
  rows 1 columns 128 depth k stored i4 zero {zero} every 64 scale {scale} every k
pack w[0; 2, 64 by 2] = {words} lanes n depth k panel 32 kr 2 unit 2 whole stored i8
"""
    program = parse_program(text)
    assert print_program(program) == text
    assert verify(program) == program
