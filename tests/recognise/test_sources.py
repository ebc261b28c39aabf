"""The programs of sources/: as many as they should be, and comments that say how to call them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from recognise.calls import SOURCES, Number, Pointer, calls, calls_of, evaluated
from recognise.drivers import Operands, drawn
from recognise.random_nests import FAMILIES, source
from recognise.toolchains import SOURCE_TOOLCHAINS


def test_as_many_nests_as_asked() -> None:
    found = Counter(call.verdict for source in SOURCE_TOOLCHAINS for call in calls(source))
    assert found["replaced"] >= 60
    assert found["refused"] >= 25


def test_every_source_has_a_compiler() -> None:
    assert {path.name for path in SOURCES.iterdir() if path.suffix != ".md"} == set(SOURCE_TOOLCHAINS)


@pytest.mark.parametrize("file", SOURCE_TOOLCHAINS)
def test_comments_stand_above_functions(file: str) -> None:
    names = [call.function for call in calls(file)]
    assert len(set(names)) == len(names)
    text = (SOURCES / file).read_text(encoding="utf-8")
    missing = [
        name for name in names if text.count(name) < 2 and file not in ("orders.c", "types.c", "refused.c")
    ]
    assert missing == []


def test_a_comment_is_read() -> None:
    call = next(call for call in calls("products.f90") if call.function == "by_reference")
    c, m, ldc = (call.arguments[place] for place in (0, 3, 6))
    assert isinstance(c, Pointer)
    assert (c.dtype, c.name, c.length, c.alone) == ("f32", "c", "ldc*n", True)
    assert isinstance(m, Number)
    assert (m.by_reference, m.value) == (True, None)
    assert isinstance(ldc, Number)
    assert evaluated(ldc.value or "", {"m": 5}) == 6
    assert (call.verdict, call.found) == ("replaced", "mk,kn->mn")


def test_operands_are_drawn_the_same_twice() -> None:
    call = calls("sizes.c")[0]
    sizes = next(drawn(call))
    first, second = Operands(call, sizes), Operands(call, sizes, guarded=True)
    assert all((first.arrays[name] == second.arrays[name]).all() for name in first.arrays)
    assert {array.dtype.name for array in first.arrays.values()} == {"float32"}


def test_random_sources_are_the_same_for_a_seed() -> None:
    text = source(7, 30)
    assert text == source(7, 30) != source(8, 30)
    families = [re.fullmatch(r"([a-z_]+)(\d+)", call.function) for call in calls_of(text, "")]
    assert [int(name[2]) for name in families if name] == list(range(30))
    assert {name[1] for name in families if name} <= FAMILIES.keys()
    mistakes = [line for line in text.splitlines() if line.startswith("/* ")][1:]
    assert 3 < len(mistakes) < 20
