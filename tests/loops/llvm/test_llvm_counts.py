"""Loops in LLVM IR beside an interpreter: how often they run, and where each iteration writes.

Variables have 8 bits, so that every pair of bounds can be tried and most numbers wrap around somewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import pytest
from shares import EVERY_TEST_RUNS, share

from tilewright.loops.llvm.loops import nests
from tilewright.loops.llvm.module import read_module
from tilewright.loops.llvm.symbols import Candidate, Computed, IntegerOperation, SsaValue
from tilewright.loops.nests.nest import Access, Assign, CountedLoop, Extent, Refusal, Within
from tilewright.loops.nests.polynomial import Polynomial, Symbol

BITS = 8
#: Values of both bounds: around the ends of the types, and small ones.
VALUES = (-128, -127, -1, 0, 1, 3, 100, 126, 127, *((-3, 2, 7) if EVERY_TEST_RUNS else ()))
#: An iteration that no 8-bit variable reaches without having been there before.
FOREVER = 1 << BITS

TEXT = """
define void @f(ptr %p, i8 %start, i8 %bound) {{{{
entry:
  {guard}

loop:                                             ; preds = %loop, %entry
  %i = phi i8 [ %start, %entry ], [ %next, %loop ]
  %wide = {extension} i8 %i to i64
  %place = getelementptr inbounds i32, ptr %p, i64 %wide
  store i32 0, ptr %place, align 4
  %next = add {flags} i8 %i, {step}
  {widened}%more = icmp {predicate} {compared}
  br i1 %more, label %loop, label %exit

exit:                                             ; preds = %loop, %entry
  ret void
}}}}
"""
PREDICATES = ("slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", "ne", "eq")


def compares(predicate: str, left: int, right: int) -> bool:
    if predicate[0] == "u":
        left, right = left % 2**32, right % 2**32  # the order of 8 bits as well
    name = predicate if predicate in ("ne", "eq") else predicate[1:]
    return {
        "lt": left < right,
        "le": left <= right,
        "gt": left > right,
        "ge": left >= right,
        "ne": left != right,
        "eq": left == right,
    }[name]


def signed(value: int) -> int:
    return (value + 128) % 256 - 128


def run(fields: Mapping[str, str], start: int, bound: int) -> list[int] | None:
    """The places that the loop writes to; None where it is undefined, or endless."""
    if "br i1" in fields["guard"] and not compares(
        fields["predicate"], seen(fields, start), seen(fields, bound)
    ):
        return []
    places: list[int] = []
    i, step = start, int(fields["step"])
    while len(places) < FOREVER:
        places.append(4 * (i if fields["extension"] == "sext" else i % 256))
        following = signed(i + step)
        if "nsw" in fields["flags"] and following != i + step:
            return None
        if "nuw" in fields["flags"] and not 0 <= i % 256 + step % 256 < 256:
            return None
        tested = i if fields["tested"] == "%i" else following
        if not compares(fields["predicate"], seen(fields, tested), seen(fields, bound)):
            return places
        i = following
    return None


def seen(fields: Mapping[str, str], value: int) -> int:
    """What the comparison is of."""
    return value % 256 if "zext" in fields["widened"] else value


def number(value: Polynomial, known: Mapping[Symbol, int]) -> int:
    """A polynomial's value."""
    total = 0
    for monomial, factor in value.terms:
        for symbol in monomial:
            factor *= known[symbol] if symbol in known else computed(symbol, known)  # noqa: PLW2901
        total += factor
    return total


def computed(symbol: Symbol, known: Mapping[Symbol, int]) -> int:
    assert isinstance(symbol, Computed)
    operands = [number(operand, known) for operand in symbol.operands]
    match symbol.operator:
        case IntegerOperation.MAXIMUM:
            return max(operands)
        case IntegerOperation.MINIMUM:
            return min(operands)
        case IntegerOperation.QUOTIENT:
            return operands[0] // operands[1]


def count(extent: Extent, known: Mapping[Symbol, int]) -> int:
    return max(extent.least, min(-(-number(bound.span, known) // bound.step) for bound in extent.bounds))


def holds(condition: Within, known: Mapping[Symbol, int]) -> bool:
    """Whether a condition holds in all iterations."""
    low, high = number(condition.low, known), number(condition.high, known)
    ranges = [range(count(extent, known)) for _, extent in condition.loops]
    indices = [index for index, _ in condition.loops]
    every = (dict[Symbol, int](zip(indices, numbers, strict=True)) for numbers in product(*ranges))
    return all(low <= number(condition.value, {**known, **found}) < high for found in every)


def promised(candidate: Candidate, start: int, bound: int) -> list[int] | None:
    """The places that the nest writes to; None where a condition does not hold."""
    known: dict[Symbol, int] = {SsaValue.of("%start", "i8"): start, SsaValue.of("%bound", "i8"): bound}
    conditions = [one for one in candidate.conditions if isinstance(one, Within)]
    if not all(holds(condition, known) for condition in conditions):
        return None
    nest: CountedLoop = candidate.nest
    (statement,) = nest.body
    assert isinstance(statement, Assign)
    assert isinstance(statement.target, Access)
    offset = statement.target.offset
    return [number(offset, {**known, nest.index: i}) for i in range(count(nest.extent, known))]


def read(fields: Mapping[str, str]) -> Candidate | Refusal:
    text = TEXT.format(**fields).format(**fields)
    module = read_module(text.replace("add  i8", "add i8"))
    return nests(module.functions["f"], module)[0].read()


def forms() -> Iterator[dict[str, str]]:
    flags = ("", "nsw", "nuw", "nuw nsw")
    for predicate, step, flag, tested in product(PREDICATES, (1, -1, 2, -3), flags, ("%i", "%next")):
        for extension, guarded in (("sext", False), ("zext", True)):
            guard = f"%enter = icmp {predicate} i8 %start, %bound\n  br i1 %enter, label %loop, label %exit"
            fields = {
                "predicate": predicate,
                "step": str(step),
                "flags": flag,
                "tested": tested,
                "extension": extension,
                "guard": guard if guarded else "br label %loop",
            }
            yield {**fields, **PLAIN}
            if not guarded:
                yield from (
                    {**fields, **WIDENED, "widened": WIDENED["widened"].format(word)} for word in WORDS
                )


#: How the two sides of the comparison are compared: as they are, or with more bits.
PLAIN = {"widened": "", "compared": "i8 {tested}, %bound"}
WIDENED = {
    "widened": "%t = {0} i8 {{tested}} to i32\n  %b = {0} i8 %bound to i32\n  ",
    "compared": "i32 %t, %b",
}
WORDS = ("sext", "zext")


@pytest.mark.parametrize("predicate", PREDICATES)
def test_counts_and_places(predicate: str) -> None:
    """What a nest promises is what the loop does, wherever its conditions hold and behaviour is defined.

    In `make test` each predicate takes a third of the forms, the next one others.
    """
    taken, own = 0, [one for one in forms() if one["predicate"] == predicate]
    for fields in share(own, 3, PREDICATES.index(predicate)):
        candidate = read(fields)
        if isinstance(candidate, Refusal):
            continue
        for start, bound in product(VALUES, VALUES):
            found = run(fields, start, bound)
            if found is None or ("br i1" in fields["guard"] and not found):
                continue
            expected = promised(candidate, start, bound)
            if expected is not None:
                taken += 1
                assert expected == found, (fields, start, bound)
    assert taken > 100 or predicate == "eq"


@pytest.mark.parametrize(
    ("predicate", "step", "flags"),
    [("slt", "1", ""), ("slt", "2", "nsw"), ("sgt", "-1", "nsw"), ("ult", "1", ""), ("ne", "1", "nuw")],
)
def test_usual_loops_are_read(predicate: str, step: str, flags: str) -> None:
    fields = {
        "predicate": predicate,
        "step": step,
        "flags": flags,
        "tested": "%next",
        "extension": "sext",
        **PLAIN,
    }
    candidate = read({**fields, "guard": "br label %loop"})
    assert isinstance(candidate, Candidate)
    assert promised(candidate, 3 if step[0] != "-" else 7, 7 if step[0] != "-" else 3) is not None


@pytest.mark.parametrize(("predicate", "step"), [("slt", "-1"), ("sgt", "1"), ("eq", "1"), ("ne", "-3")])
def test_loops_that_run_until_they_wrap_are_refused(predicate: str, step: str) -> None:
    fields = {
        "predicate": predicate,
        "step": step,
        "flags": "",
        "tested": "%next",
        "extension": "sext",
        **PLAIN,
    }
    found = read({**fields, "guard": "br label %loop"})
    assert isinstance(found, Refusal)
    assert found.reason == "has a trip count that is not affine"
