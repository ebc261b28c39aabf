"""Classes of shapes: their rows, what is tried, and which shapes of a program belong to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shares import looped

from tilewright.errors import InvalidChoice, UnsupportedDtype
from tilewright.machine.catalog import CATALOG, find_machine
from tilewright.machine.findings import Finding
from tilewright.machine.machine import Machine
from tilewright.macro.tuned import TUNABLE_BLOCKS, TUNABLE_LIMITS
from tilewright.spec.dtype import F32
from tilewright.spec.problem import ProductTypes
from tilewright.tools.explore.tuning.classes import (
    CLASSES,
    MOST_CALL_SECONDS,
    MOST_RECORDED,
    NOMINAL_HZ,
    Shape,
    ShapeClass,
    Situation,
    types_named,
)

TYPES = ProductTypes.parse(F32)
ZEN5 = Situation(find_machine("znver5"), TYPES)


def class_named(name: str) -> ShapeClass:
    return next(one for one in CLASSES if one.name == name)


def test_each_constant_has_one_class() -> None:
    constants = [name for one in CLASSES for name in one.constants]
    assert sorted(constants) == sorted(TUNABLE_BLOCKS + TUNABLE_LIMITS)
    assert len({one.name for one in CLASSES}) == len(CLASSES)
    assert CLASSES[0].constants == ("mr", "nr")  # the models choose the others for the tile


def test_other_constants_are_refused() -> None:
    with pytest.raises(InvalidChoice, match="kc"):
        replace(CLASSES[0], constants=("kc",))


@looped("machine", [entry.machine for entry in CATALOG])
def test_what_is_tried_keeps_the_models_rules(machine: Machine) -> None:
    """Every candidate is one that the models take, and shapes are short."""
    now = Situation(machine, TYPES)
    for one in CLASSES:
        for values in one.candidates(now):
            assert tuple(values) == one.constants
            tried = now.replaced(values)
            assert tried.values(one.constants) == values, (one.name, values)
            assert tried.values(one.constants) != now.values(one.constants)
            assert tried.blocking.kc == now.blocking.kc
        for shape in one.measured_shapes(now, None):
            assert min(shape[:3]) > 0
            flops = 2 * shape.m * shape.n * shape.k
            per_cycle = 2 * now.instruction.products * machine.isa.rate(now.instruction)
            assert shape.m == 1 or flops <= MOST_CALL_SECONDS * NOMINAL_HZ * per_cycle


def test_a_class_is_on_both_sides_of_its_limit() -> None:
    limits = ZEN5.limits
    rows = {shape.m <= limits.few_rows for shape in class_named("few rows").shapes(ZEN5)}
    small = {shape.n * shape.k <= limits.in_place_b for shape in class_named("small").shapes(ZEN5)}
    far = {shape.n * shape.k > limits.far_b for shape in class_named("thin").shapes(ZEN5)}
    wide = {shape.n > ZEN5.blocking.nc for shape in class_named("wide").shapes(ZEN5)}
    assert rows == small == far == {True, False}
    assert wide == {True}


def test_equal_loops_are_not_tried() -> None:
    """Where a constant does not matter, a class costs nothing."""
    assert class_named("few columns").candidates(ZEN5)
    assert class_named("few columns").variants(ZEN5) == ()
    strips = class_named("large").variants(ZEN5)
    assert [one.limits.strip for one in strips] == [12, 36, 48]
    again = replace(class_named("large"), candidates=lambda _now: [{"strip": 36}, {"strip": 36}])
    assert len(again.variants(ZEN5)) == 1


def test_the_models_choice_is_found_behind_a_tuning() -> None:
    tuned = ZEN5.replaced({"strip": 48})
    assert tuned.limits.strip == 48
    assert tuned.without(("strip",)) == ZEN5
    assert tuned.replaced({"few_rows": 48}).values(("strip", "few_rows")) == {"strip": 48, "few_rows": 48}
    other = Situation(tuned.machine, ProductTypes.parse("f64")).replaced({"few_rows": 48})
    assert [one.types for one in other.machine.tunings] == ["f32", "f64"]


COVERED: list[tuple[Shape, set[str]]] = [
    (Shape(1000, 500, 1000), {"tile", "large"}),
    (Shape(1000, 500, 1000, "a"), {"tile", "large", "conflicts"}),
    (Shape(300, 5000, 300), {"tile", "large", "wide"}),
    (Shape(200, 200, 200), {"small", "few columns"}),
    (Shape(60, 200, 200), {"few rows", "small", "few columns"}),
    (Shape(20000, 100, 100), {"tall", "few columns"}),
    (Shape(16, 1000, 1000), {"few rows"}),
    (Shape(4, 500, 500), {"thin"}),
    (Shape(500, 8, 500), {"few columns", "tall"}),
    (Shape(1, 1, 1), set()),
]


@pytest.mark.parametrize(("shape", "names"), COVERED, ids=lambda value: getattr(value, "label", ""))
def test_classes_of_a_shape(shape: Shape, names: set[str]) -> None:
    assert {one.name for one in CLASSES if one.covers(ZEN5, shape)} == names


def test_a_program_s_shapes_are_those_that_take_its_time() -> None:
    recorded = {Shape(1000 + size, 1000, 1000): float(size) for size in range(20)}
    recorded[Shape(4, 500, 500)] = 1e9
    shapes = class_named("large").measured_shapes(ZEN5, recorded)
    assert [shape.m for shape in shapes] == [1000 + size for size in range(19, 19 - MOST_RECORDED, -1)]
    assert class_named("conflicts").measured_shapes(ZEN5, recorded) == ()


def test_when_a_finding_counts() -> None:
    one = class_named("large")
    shapes = (Shape(8, 8, 8), Shape(9, 9, 9, "b"))
    labels = ("8x8x8", "9x9x9 b")

    def found(**fields: Any) -> Finding:
        plain = Finding("large", {"strip": 24}, {"strip": 48}, 1.1, 1.1, 1.1, 1.0, 9, 1.0, labels)
        return replace(plain, **fields)

    assert one.is_done(found(), ZEN5, shapes)
    assert not one.is_done(None, ZEN5, shapes)
    assert not one.is_done(found(model={"strip": 12}), ZEN5, shapes)  # the models choose otherwise now
    assert not one.is_done(found(), ZEN5, shapes[:1])


def test_names_of_types() -> None:
    for types in (("f32",), ("bf16", "bf16", "f32"), ("u8", "i8", "i32"), ("i8", "i8", "i32"), ("c64",)):
        parsed = ProductTypes.parse(*types)
        assert types_named(parsed.name) == parsed
    for name in ("", "f32f32f32f32", "f33"):
        with pytest.raises(UnsupportedDtype):
            types_named(name)


def test_the_case_of_a_shape() -> None:
    case = Shape(8, 16, 4, "b").case(ProductTypes.parse("u8", "i8", "i32"))
    assert (case.name, case.types.name) == ("gemm 8x16x4 nt", "u8i8i32")
