"""Which way a program goes: decisions with the values they looked at, primitives once."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.ir.expressions import AllOf, AnyOf, Compare, Constant, Name, Relation, Unless
from tilewright.ir.nodes import If, Let, Loop, Program
from tilewright.ir.trace import trace
from tilewright.machine.catalog import find_machine
from tilewright.macro.blocking import choose_blocking
from tilewright.ops.gemm.nest import build_gemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.product_nest import decide
from tilewright.spec.problem import PRODUCT_SIZES


def condition(left: object, relation: Relation, right: int) -> AnyOf:
    return AnyOf((AllOf((Compare(relation, left, Constant(right)),)),))  # type: ignore[arg-type]


def test_decisions_carry_the_values_they_looked_at() -> None:
    body = (
        Let("x", Name("m") * 2),
        If(condition(Name("x"), Relation.LE, 6), (Loop("i", Constant(4), Name("m"), Constant(1), ()),)),
        If(condition(Unless("alpha", Name("m")), Relation.EQ, 0), ()),
    )
    program = Program("p", ("m",), ("alpha",), (), body)
    found = trace(program, {"m": 3}, {"alpha": 0.0}).decisions
    assert [(decision.holds, decision.values) for decision in found] == [(True, {"x": 6}), (True, {"m": 3})]
    found = trace(program, {"m": 4}, {"alpha": 1.0}).decisions
    assert [(decision.holds, decision.values) for decision in found] == [(False, {"x": 8}), (False, {"m": 4})]


def test_loops_without_a_turn_are_not_entered() -> None:
    inner = If(condition(Name("i"), Relation.EQ, 0), ())
    program = Program("p", ("m",), (), (), (Loop("i", Constant(0), Name("m"), Constant(1), (inner,)),))
    assert trace(program, {"m": 0}, {}).decisions == ()
    assert len(trace(program, {"m": 9}, {}).decisions) == 1


def test_each_primitive_of_a_run_once() -> None:
    machine = find_machine("znver5")
    problem = Gemm(strategy="packing")
    program = build_gemm(problem, choose_blocking(machine, machine.isa.tile(problem.dtype)), machine, "g")
    sizes = dict(zip(PRODUCT_SIZES, (5000, 5000, 5000, 5000, 1, 5000, 1, 5000, 1), strict=True))
    found = trace(program, sizes, {"alpha": 1.0, "beta": 0.0}).primitives
    assert [type(node).__name__ for node in found] == ["Pack", "Pack", "TileMatmul"]


@pytest.mark.parametrize(
    ("terms", "side"),
    [
        (((1, Relation.EQ, 1),), "then"),
        (((1, Relation.EQ, 2),), "otherwise"),
        (((2, Relation.LE, 2), (1, Relation.LT, 2)), "then"),
        (((2, Relation.LT, 2), ("m", Relation.EQ, 1)), "otherwise"),
        (((1, Relation.EQ, 1), ("m", Relation.EQ, 1)), None),
        ((("m", Relation.EQ, 1),), None),
    ],
)
def test_known_decisions_are_taken_at_once(
    terms: tuple[tuple[object, Relation, int], ...], side: str
) -> None:
    def operand(value: Any) -> Name | Constant:
        return Name(value) if isinstance(value, str) else Constant(int(str(value)))

    compares = tuple(Compare(relation, operand(left), Constant(right)) for left, relation, right in terms)
    then, otherwise = (Let("then", Constant(1)),), (Let("otherwise", Constant(2)),)
    found = decide(AnyOf((AllOf(compares),)), then, otherwise)
    if side is None:
        (statement,) = found
        assert statement == If(condition(Name("m"), Relation.EQ, 1), then, otherwise)
    else:
        assert found == (then if side == "then" else otherwise)


def test_one_possible_conjunction_is_enough() -> None:
    never = AllOf((Compare(Relation.EQ, Constant(1), Constant(2)),))
    maybe = AllOf((Compare(Relation.EQ, Name("m"), Constant(2)),))
    (statement,) = decide(AnyOf((never, maybe)), (), ())
    assert statement == If(AnyOf((maybe,)), (), ())
