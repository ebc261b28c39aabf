"""The verifier: each rule broken once, everything else as it should be."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from shares import looped

from tilewright.errors import InvalidTileIr
from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Binary,
    Compare,
    Constant,
    FirstElse,
    Name,
    Operator,
    Relation,
    Scalar,
    Unless,
)
from tilewright.ir.nodes import (
    Applied,
    Batch,
    Buffer,
    Carry,
    Finish,
    If,
    Let,
    Loop,
    Pack,
    Panels,
    Program,
    Slice,
    Space,
    Statement,
    Tile,
    TileEpilogue,
    TileForm,
    TileMatmul,
)
from tilewright.ir.verify import is_name, verify
from tilewright.spec.dtype import C64, F32, F64, I8, I32
from tilewright.spec.epilogue import parse_step
from tilewright.spec.parts import Parts

ZERO, ONE = Constant(0), Constant(1)
BUFFERS = (
    Buffer("a", F32, Space.ARGUMENT),
    Buffer("c", F32, Space.ARGUMENT),
    Buffer("wide", F64, Space.ARGUMENT),
    Buffer("whole", I8, Space.ARGUMENT),
    Buffer("pairs", C64, Space.ARGUMENT),
    Buffer("counts", I32, Space.ARGUMENT),
    Buffer("panel", F32, Space.THREAD, 64),
    Buffer("bytes", I8, Space.THREAD, 64),
)
WINDOW = Slice("a", Name("i") * Name("m"), (ONE, Name("m")))
PANEL = Slice("panel", ZERO, (ONE, Constant(4)))
PACK = Pack(PANEL, WINDOW, Name("x"), Constant(2), panel=4)
PAIRS = replace(PACK, source=Slice("pairs", ZERO, (ONE, Name("m"))), parts=Parts.ROTATED)
MATMUL = TileMatmul(
    c=Slice("c", Name("i"), (Name("m"), ONE)),
    a=WINDOW,
    b=PANEL,
    rows=Constant(2),
    columns=Name("x"),
    depth=Constant(2),
    tile=Tile(2, 4),
    alpha=Scalar("alpha"),
    beta=FirstElse("i", Scalar("beta"), Scalar(1.0)),
)
ROWS = Slice("a", Name("i") * Name("m"), (Name("m"), ONE))
SPLIT = replace(MATMUL, a=replace(ROWS, buffer="pairs"), split=True)
ROTATED = replace(SPLIT, b=Slice("pairs", ZERO, (ONE, Name("m"))), rotated=True)
#: B in place, its rows in a panel for others.
COPYING = replace(MATMUL, b=WINDOW, copied=PANEL)
FEW = Slice("panel", ZERO, (ONE, Constant(4)), panels=Panels(4, Constant(8)))
PLAIN = replace(MATMUL, alpha=Scalar(1.0), beta=Scalar(0.0))
TURNED = replace(PLAIN, a=FEW, b=ROWS, columns=Constant(4), form=TileForm.TRANSPOSED_B)
TURNED_A = replace(PLAIN, a=ROWS, b=FEW, rows=Constant(2), form=TileForm.TRANSPOSED_A)
DOT = replace(MATMUL, a=ROWS, b=ROWS, columns=ONE, tile=Tile(2, 1), form=TileForm.DOT)
EPILOGUE = TileEpilogue(
    c=Slice("c", Name("i"), (Name("m"), ONE)),
    sums=Slice("panel", ZERO, (Constant(4), ONE)),
    rows=Constant(2),
    columns=Name("x"),
    alpha=Scalar("alpha"),
    beta=FirstElse("i", Scalar("beta"), Scalar(1.0)),
)
TEST = AnyOf((AllOf((Compare(Relation.LT, Name("i"), Name("m")),)),))
LET = Let("x", Unless("alpha", Name("m")))
LOOP = Loop("i", ZERO, Name("m"), ONE, (LET, If(TEST, (PACK, MATMUL), (LET,))))
GOOD = Program("p", ("m",), ("alpha", "beta"), BUFFERS, (LOOP,))


def body(*statements: Statement) -> Program:
    return replace(GOOD, body=statements)


def inside(*statements: Statement) -> Program:
    """Statements at the place of the pack and the matmul, where i and x are in scope."""
    return body(replace(LOOP, body=(LET, *statements)))


def test_the_program_that_the_table_breaks_is_good() -> None:
    others = (TURNED, TURNED_A, DOT, SPLIT, ROTATED, COPYING, EPILOGUE)
    good = replace(LOOP, body=(LET, If(TEST, (PACK, PAIRS, MATMUL), others)))
    assert verify(body(good)) == body(good)


def test_elements_that_are_converted_are_good() -> None:
    """Panels may hold wider elements than their source, sums more than C, and words several depths."""
    interleaved = replace(PANEL, strides=(Constant(2), Constant(8)), interleave=2)
    packed = replace(MATMUL, b=interleaved, carry=Carry(PANEL, "i"))
    mixed = replace(MATMUL, a=Slice("wide", ZERO, (ONE, ONE)))
    narrowed = replace(EPILOGUE, sums=Slice("wide", ZERO, (ONE, ONE)))
    words = replace(PACK, destination=interleaved, kr=2, unit=4)
    program = inside(words, packed, mixed, narrowed)
    assert verify(program) == program


def test_a_name_is_free_again_after_its_block() -> None:
    loop = replace(LOOP, body=(LET,))
    program = body(loop, loop, LET)
    assert verify(program) is program


def finish(text: str, operand: Slice | None = None, axis: str | None = None) -> Finish:
    """One step."""
    return Finish((Applied(parse_step(text), operand),), axis)


#: A product of bytes into floats.
BYTES = replace(MATMUL, a=Slice("bytes", ZERO, (ONE, ONE)), b=Slice("bytes", ZERO, (ONE, ONE)))

BAD_SLICE = Slice("nowhere", ZERO, (ONE, ONE))
BAD_OFFSET = Slice("a", Name("q"), (ONE, ONE))
BAD_STRIDE = Slice("a", ZERO, (ONE, Name("q")))

RULES: dict[str, tuple[Program, str, str]] = {
    "a copy of other elements": (
        inside(replace(COPYING, copied=replace(PANEL, buffer="wide"))),
        "matmul c",
        "another element type",
    ),
    "a copy in no panel": (
        inside(replace(COPYING, copied=replace(PANEL, strides=(ONE, Constant(5))))),
        "matmul c",
        "into rows of a panel",
    ),
    "a copy by a tile of some rows": (
        inside(replace(COPYING, rows=Name("x"))),
        "matmul c",
        "a tile of whole height copies B",
    ),
    "a copy between unfinished sums": (
        inside(replace(COPYING, carry=Carry(PANEL, "i"))),
        "matmul c",
        "only tiles of plain products copy B",
    ),
    "a copy nowhere": (inside(replace(COPYING, copied=BAD_SLICE)), "matmul c", "nowhere"),
    "a tile of numbers split": (inside(replace(MATMUL, a=ROWS, split=True)), "matmul c", "a tile splits f32"),
    "complex numbers whole": (inside(replace(SPLIT, split=False)), "matmul c", "a tile does not split c64"),
    "complex columns whole": (
        inside(replace(ROTATED, rotated=False)),
        "matmul c",
        "a tile of c64 can't read c64",
    ),
    "columns of numbers rotated": (inside(replace(SPLIT, rotated=True)), "matmul c", "can't read f32 in B"),
    "complex columns beside numbers": (
        inside(replace(ROTATED, a=ROWS, split=False)),
        "matmul c",
        "a tile of f32 can't read c64 in B",
    ),
    "complex columns in panels": (
        inside(replace(ROTATED, b=replace(ROTATED.b, panels=Panels(4, Constant(8))))),
        "matmul c",
        "complex elements of B must be in place",
    ),
    "complex numbers apart": (
        inside(replace(SPLIT, a=replace(WINDOW, buffer="pairs"))),
        "matmul c",
        "complex elements of A must be adjacent along the depth",
    ),
    "declared twice: sizes": (replace(GOOD, sizes=("m", "m")), "p", "declared twice"),
    "declared twice: size and scalar": (replace(GOOD, sizes=("m", "beta")), "p", "declared twice"),
    "declared twice: size and buffer": (replace(GOOD, sizes=("m", "a")), "p", "declared twice"),
    "program name": (replace(GOOD, name="p q"), "p q", "'p q' is not a name"),
    "size name": (replace(GOOD, sizes=("m", "min")), "p", "'min' is not a name"),
    "scalar name": (replace(GOOD, scalars=("alpha", "beta", "inf")), "p", "'inf' is not a name"),
    "let name": (body(Let("3x", ZERO)), "let 3x", "'3x' is not a name"),
    "axis name": (body(replace(LOOP, axis="é")), "loop é", "'é' is not a name"),
    "scratch without size": (
        replace(GOOD, buffers=(*BUFFERS, Buffer("s", F32, Space.SHARED))),
        "buffer s",
        "scratch has a size, an argument has none",
    ),
    "argument with size": (
        replace(GOOD, buffers=(*BUFFERS, Buffer("s", F32, Space.ARGUMENT, 4))),
        "buffer s",
        "scratch has a size, an argument has none",
    ),
    "let: unknown name": (body(Let("x", Name("q"))), "let x", "'q' is not a size, let or axis in scope"),
    "let: itself": (body(Let("x", Name("x"))), "let x", "'x' is not a size, let or axis in scope"),
    "let: after its block": (
        body(replace(LOOP, body=(LET,)), Let("y", Name("x"))),
        "let y",
        "'x' is not a size, let or axis in scope",
    ),
    "let: a scalar is no integer": (
        body(Let("x", Name("alpha"))),
        "let x",
        "'alpha' is not a size, let or axis in scope",
    ),
    "let: nested name": (
        body(Let("x", Unless("alpha", Name("m") + Name("q")))),
        "let x",
        "'q' is not a size, let or axis in scope",
    ),
    "let: in use by a size": (body(Let("m", ZERO)), "let m", "'m' is already in use"),
    "let: in use by a scalar": (body(Let("alpha", ZERO)), "let alpha", "'alpha' is already in use"),
    "let: in use by a buffer": (body(Let("a", ZERO)), "let a", "'a' is already in use"),
    "let: twice in a block": (body(Let("x", ZERO), Let("x", ZERO)), "let x", "'x' is already in use"),
    "axis: in use": (body(Let("i", ZERO), LOOP), "loop i", "'i' is already in use"),
    "unless: not a scalar": (
        body(Let("x", Unless("m", ONE))),
        "let x",
        "'m' is not a scalar parameter",
    ),
    "expression: not a node": (
        body(Let("x", Binary(Operator.ADD, Name("m"), "n"))),  # type: ignore[arg-type]
        "'n'",
        "is not an expression",
    ),
    "expression: divisor": (
        body(Let("x", Binary(Operator.CEILDIV, Name("m"), ZERO))),
        "let x",
        "divisor 0 is not positive",
    ),
    "expression: multiple of a negative": (
        body(Let("x", Binary(Operator.ROUNDUP, Name("m"), Constant(-8)))),
        "let x",
        "divisor -8 is not positive",
    ),
    "loop: begin": (body(replace(LOOP, begin=Name("q"))), "loop i", "'q' is not a size"),
    "loop: end": (body(replace(LOOP, end=Name("i"))), "loop i", "'i' is not a size"),
    "loop: step in scope": (body(replace(LOOP, step=Name("q"))), "loop i", "'q' is not a size"),
    "loop: step positive": (body(replace(LOOP, step=ZERO)), "loop i", "step 0 is not positive"),
    "if: unknown name": (
        body(If(AnyOf((AllOf((Compare(Relation.LT, ONE, Name("q")),)),)), ())),
        "if",
        "'q' is not a size",
    ),
    "if: no alternatives": (body(If(AnyOf(()), ())), "if", "a condition has at least one comparison"),
    "if: no comparison": (body(If(AnyOf((AllOf(()),)), ())), "if", "a condition has at least one comparison"),
    "if: inside then": (body(If(AnyOf((AllOf((Compare(Relation.EQ, ONE, ONE),)),)), (PACK,))), "pack", "'i'"),
    "if: inside else": (
        body(If(AnyOf((AllOf((Compare(Relation.EQ, ONE, ONE),)),)), (), (PACK,))),
        "pack",
        "'i'",
    ),
    "statement": (body(ZERO), "Constant(value=0)", "is not a statement"),  # type: ignore[arg-type]
    "pack: destination declared": (
        inside(replace(PACK, destination=BAD_SLICE)),
        "pack nowhere",
        "buffer 'nowhere' is not declared",
    ),
    "pack: source declared": (inside(replace(PACK, source=BAD_SLICE)), "pack panel", "'nowhere'"),
    "pack: source offset": (inside(replace(PACK, source=BAD_OFFSET)), "pack panel", "'q' is not a size"),
    "pack: lanes": (inside(replace(PACK, lanes=Name("q"))), "pack panel", "'q' is not a size"),
    "pack: depth": (inside(replace(PACK, depth=Name("q"))), "pack panel", "'q' is not a size"),
    "pack: panel": (inside(replace(PACK, panel=0)), "pack panel", "panel, kr and unit must be positive"),
    "pack: kr": (inside(replace(PACK, kr=0)), "pack panel", "panel, kr and unit must be positive"),
    "pack: unit": (inside(replace(PACK, unit=-2)), "pack panel", "panel, kr and unit must be positive"),
    "pack: whole words": (
        inside(replace(PACK, kr=4, unit=6)),
        "pack panel",
        "unit 6 is not a multiple of kr 4",
    ),
    "pack: a narrower type": (
        inside(replace(PACK, source=Slice("wide", ZERO, (ONE, ONE)))),
        "pack panel",
        "f64 can't be packed as whole f32",
    ),
    "pack: integers that no float of the type is": (
        inside(replace(PACK, source=Slice("counts", ZERO, (ONE, ONE)))),
        "pack panel",
        "i32 can't be packed as whole f32",
    ),
    "pack: floats as integers": (
        inside(replace(PACK, destination=replace(PACK.destination, buffer="bytes"))),
        "pack bytes",
        "f32 can't be packed as whole i8",
    ),
    "pack: pairs as they are": (
        inside(replace(PACK, source=Slice("pairs", ZERO, (ONE, ONE)))),
        "pack panel",
        "c64 can't be packed as whole f32",
    ),
    "pack: parts of what has none": (
        inside(replace(PACK, parts=Parts.SPLIT)),
        "pack panel",
        "f32 can't be packed as split f32",
    ),
    "pack: parts, interleaved": (
        inside(replace(PAIRS, kr=2, unit=2)),
        "pack panel",
        "parts of complex numbers are not interleaved",
    ),
    "pack: an interleave": (
        inside(replace(PACK, destination=replace(PANEL, interleave=0))),
        "pack panel",
        "an interleave must be positive",
    ),
    "pack: into its source": (
        inside(replace(PACK, destination=replace(PACK.destination, buffer=PACK.source.buffer))),
        "pack a",
        "the destination must be another buffer than the source",
    ),
    "matmul: C declared": (inside(replace(MATMUL, c=BAD_SLICE)), "matmul nowhere", "'nowhere'"),
    "matmul: A declared": (inside(replace(MATMUL, a=BAD_SLICE)), "matmul c", "'nowhere'"),
    "matmul: A stride": (inside(replace(MATMUL, a=BAD_STRIDE)), "matmul c", "'q' is not a size"),
    "matmul: B declared": (inside(replace(MATMUL, b=BAD_SLICE)), "matmul c", "'nowhere'"),
    "matmul: B lanes adjacent": (
        inside(replace(MATMUL, b=Slice("panel", ZERO, (Constant(2), ONE)))),
        "matmul c",
        "lanes of B must be adjacent",
    ),
    "matmul: B lanes known to be adjacent": (
        inside(replace(MATMUL, b=Slice("panel", ZERO, (Name("m"), ONE)))),
        "matmul c",
        "lanes of B must be adjacent",
    ),
    "matmul: rows": (inside(replace(MATMUL, rows=Name("q"))), "matmul c", "'q' is not a size"),
    "matmul: columns": (inside(replace(MATMUL, columns=Name("q"))), "matmul c", "'q' is not a size"),
    "matmul: depth": (inside(replace(MATMUL, depth=Name("q"))), "matmul c", "'q' is not a size"),
    "matmul: alpha": (
        inside(replace(MATMUL, alpha=Scalar("gamma"))),
        "matmul c",
        "'gamma' is not a scalar parameter",
    ),
    "matmul: a size is no scalar": (
        inside(replace(MATMUL, alpha=Scalar("m"))),
        "matmul c",
        "'m' is not a scalar parameter",
    ),
    "matmul: scalar of first": (
        inside(replace(MATMUL, beta=FirstElse("i", Scalar("gamma"), Scalar(1.0)))),
        "matmul c",
        "'gamma' is not a scalar parameter",
    ),
    "matmul: scalar of rest": (
        inside(replace(MATMUL, beta=FirstElse("i", Scalar(1.0), Scalar("gamma")))),
        "matmul c",
        "'gamma' is not a scalar parameter",
    ),
    "matmul: first of a let": (
        inside(replace(MATMUL, beta=FirstElse("x", Scalar(0.0), Scalar(1.0)))),
        "matmul c",
        "'x' is not an enclosing axis",
    ),
    "matmul: not a scalar": (
        inside(replace(MATMUL, beta=1.0)),  # type: ignore[arg-type]
        "matmul c",
        "1.0 is not a scalar",
    ),
    "matmul: mr": (inside(replace(MATMUL, tile=Tile(0, 4))), "matmul c", "mr, nr and kr must be positive"),
    "matmul: nr": (inside(replace(MATMUL, tile=Tile(2, 0))), "matmul c", "mr, nr and kr must be positive"),
    "matmul: kr": (inside(replace(MATMUL, tile=Tile(2, 4, 0))), "matmul c", "mr, nr and kr must be positive"),
    "matmul: element types of A and B": (
        inside(replace(MATMUL, a=Slice("whole", ZERO, (ONE, ONE)))),
        "matmul c",
        "f32 can't hold products of i8 and f32",
    ),
    "matmul: element type of C": (
        inside(replace(MATMUL, c=Slice("whole", ZERO, (ONE, ONE)))),
        "matmul whole",
        "i8 can't hold products of f32 and f32",
    ),
    "matmul: sums declared": (
        inside(replace(MATMUL, carry=Carry(BAD_SLICE, "i"))),
        "matmul c",
        "buffer 'nowhere' is not declared",
    ),
    "matmul: sums over what is no axis": (
        inside(replace(MATMUL, carry=Carry(PANEL, "x"))),
        "matmul c",
        "'x' is not an enclosing axis",
    ),
    "matmul: an interleave": (
        inside(replace(MATMUL, a=replace(WINDOW, interleave=-1))),
        "matmul c",
        "an interleave must be positive",
    ),
    "matmul: words of B adjacent": (
        inside(replace(MATMUL, b=replace(PANEL, interleave=2))),
        "matmul c",
        "lanes of B must be adjacent (first stride 1, or the interleave)",
    ),
    "matmul: batch count": (inside(replace(MATMUL, batch=Batch(Name("q"), ONE, ONE))), "matmul c", "'q'"),
    "matmul: batch step of A": (inside(replace(MATMUL, batch=Batch(ONE, Name("q"), ONE))), "matmul c", "'q'"),
    "matmul: batch step of B": (inside(replace(MATMUL, batch=Batch(ONE, ONE, Name("q")))), "matmul c", "'q'"),
    "outer: depths of B adjacent instead of lanes": (
        inside(replace(MATMUL, b=ROWS)),
        "matmul c",
        "lanes of B must be adjacent",
    ),
    "turned: depths of B adjacent": (
        inside(replace(TURNED, b=Slice("a", ZERO, (ONE, Name("m"))))),
        "matmul c",
        "depths of B must be adjacent (second stride 1)",
    ),
    "turned: columns of C adjacent": (
        inside(replace(TURNED, c=Slice("c", ZERO, (ONE, Name("m"))))),
        "matmul c",
        "columns of C must be adjacent (second stride 1)",
    ),
    "turned: some of the columns": (
        inside(replace(TURNED, columns=Constant(3))),
        "matmul c",
        "a turned tile has all of its columns",
    ),
    "turned: rows in no panels": (
        inside(replace(TURNED, a=replace(FEW, panels=None))),
        "matmul c",
        "rows of A must be in panels, and C take plain sums",
    ),
    "turned: panels of other lanes": (
        inside(replace(TURNED, a=replace(FEW, panels=Panels(2, Constant(8))))),
        "matmul c",
        "rows of A must be in panels, and C take plain sums",
    ),
    "turned: sums and a factor": (
        inside(replace(TURNED, alpha=Scalar("alpha"))),
        "matmul c",
        "rows of A must be in panels, and C take plain sums",
    ),
    "turned: sums and C": (
        inside(replace(TURNED, beta=Scalar(1.0))),
        "matmul c",
        "rows of A must be in panels, and C take plain sums",
    ),
    "turned: other types": (
        inside(replace(TURNED, b=Slice("wide", ZERO, (Name("m"), ONE)))),
        "matmul c",
        "the operands of a turned tile have one type",
    ),
    "turned rows: depths of A adjacent": (
        inside(replace(TURNED_A, a=WINDOW)),
        "matmul c",
        "depths of A must be adjacent (second stride 1)",
    ),
    "turned rows: columns of C adjacent": (
        inside(replace(TURNED_A, c=Slice("c", ZERO, (ONE, Name("m"))))),
        "matmul c",
        "columns of C must be adjacent (second stride 1)",
    ),
    "turned rows: some of the rows": (
        inside(replace(TURNED_A, rows=ONE)),
        "matmul c",
        "a tile of turned rows has all of them",
    ),
    "turned rows: columns in no panels": (
        inside(replace(TURNED_A, b=replace(FEW, panels=None))),
        "matmul c",
        "columns of B must be in panels, and C take plain sums",
    ),
    "turned: no batch": (
        inside(replace(TURNED, batch=Batch(ONE, ONE, ONE))),
        "matmul c",
        "a turned tile has no batch",
    ),
    "dot: depths of A adjacent": (
        inside(replace(DOT, a=WINDOW)),
        "matmul c",
        "depths of A must be adjacent (second stride 1)",
    ),
    "dot: depths of B adjacent": (
        inside(replace(DOT, b=Slice("a", ZERO, (ONE, Name("m"))))),
        "matmul c",
        "depths of B must be adjacent (second stride 1)",
    ),
    "dot: one column": (
        inside(replace(DOT, columns=Constant(2))),
        "matmul c",
        "a dot product has one column",
    ),
    "dot: a number of columns that is known": (
        inside(replace(DOT, columns=Name("x"))),
        "matmul c",
        "a dot product has one column",
    ),
    "dot: no batch": (
        inside(replace(DOT, batch=Batch(ONE, ONE, ONE))),
        "matmul c",
        "a dot tile has no batch",
    ),
    "dot: element types": (
        inside(replace(DOT, b=Slice("whole", ZERO, (ONE, ONE)))),
        "matmul c",
        "f32 can't hold products of f32 and i8",
    ),
    "epilogue: C declared": (inside(replace(EPILOGUE, c=BAD_SLICE)), "epilogue nowhere", "'nowhere'"),
    "epilogue: sums declared": (inside(replace(EPILOGUE, sums=BAD_SLICE)), "epilogue c", "'nowhere'"),
    "epilogue: offset of C": (inside(replace(EPILOGUE, c=BAD_OFFSET)), "epilogue a", "'q' is not a size"),
    "epilogue: rows": (inside(replace(EPILOGUE, rows=Name("q"))), "epilogue c", "'q' is not a size"),
    "epilogue: columns": (inside(replace(EPILOGUE, columns=Name("q"))), "epilogue c", "'q' is not a size"),
    "epilogue: alpha": (
        inside(replace(EPILOGUE, alpha=Scalar("gamma"))),
        "epilogue c",
        "'gamma' is not a scalar parameter",
    ),
    "epilogue: first of what is no axis": (
        inside(replace(EPILOGUE, beta=FirstElse("m", Scalar(0.0), Scalar(1.0)))),
        "epilogue c",
        "'m' is not an enclosing axis",
    ),
    "epilogue: columns of the sums adjacent": (
        inside(replace(EPILOGUE, sums=PANEL)),
        "epilogue c",
        "columns of the sums must be adjacent (second stride 1)",
    ),
    "epilogue: sums narrower than C": (
        inside(replace(EPILOGUE, c=Slice("wide", ZERO, (ONE, ONE)))),
        "epilogue wide",
        "sums of f32 do not narrow to f64",
    ),
    "epilogue: sums of another kind": (
        inside(replace(EPILOGUE, sums=Slice("bytes", ZERO, (ONE, ONE)))),
        "epilogue c",
        "sums of i8 do not narrow to f32",
    ),
    "steps: axis": (
        inside(replace(MATMUL, finish=finish("relu", axis="m"))),
        "matmul c",
        "'m' is not an enclosing axis",
    ),
    "steps: types": (
        inside(replace(EPILOGUE, finish=finish("saturate"))),
        "epilogue c",
        "C is f32, not an integer of 8 or 16 bits",
    ),
    "steps: operand missing": (
        inside(replace(MATMUL, finish=finish("bias:f32"))),
        "matmul c",
        "bias:f32 has an operand too many or too few",
    ),
    "steps: operand too many": (
        inside(replace(MATMUL, finish=finish("relu", WINDOW))),
        "matmul c",
        "relu has an operand too many or too few",
    ),
    "steps: element type of an operand": (
        inside(replace(MATMUL, finish=finish("bias:bf16", WINDOW))),
        "matmul c",
        "bias:bf16 reads elements of f32",
    ),
    "steps: a type that is not told": (
        inside(replace(MATMUL, finish=finish("bias", WINDOW))),
        "matmul c",
        "bias reads elements of f32",
    ),
    "steps: window of an operand": (
        inside(replace(MATMUL, finish=finish("bias:f32", replace(WINDOW, buffer="nothing")))),
        "matmul c",
        "buffer 'nothing' is not declared",
    ),
    "steps: unfinished sums in a C of another kind": (
        inside(replace(BYTES, finish=finish("scale:f32", WINDOW, axis="i"))),
        "matmul c",
        "f32 can't hold unfinished sums of i8",
    ),
}


@looped("rule", RULES)
def test_each_rule_is_checked(rule: str) -> None:
    broken, where, reason = RULES[rule]
    with pytest.raises(InvalidTileIr, match=re.escape(reason)) as caught:
        verify(broken)
    assert where in str(caught.value.where)
    assert str(caught.value).startswith("tile IR: ")


@pytest.mark.parametrize(
    ("word", "good"), [("m", True), ("_1", True), ("1", False), ("", False), ("a b", False)]
)
def test_names(word: str, good: bool) -> None:
    assert is_name(word) is good
