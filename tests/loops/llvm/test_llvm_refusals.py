"""Loops in LLVM IR that are no nests, each with the reason; and what is no reason."""

from __future__ import annotations

import pytest

from tilewright.loops.llvm.loops import nests
from tilewright.loops.llvm.module import read_module
from tilewright.loops.llvm.symbols import Candidate
from tilewright.loops.nests.nest import Refusal, Within

TEXT = """
declare void @count(ptr)
declare void @abort()

define float @f(ptr %p, ptr %q, i64 %n, i64 %m, i1 %flag) {{
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %a = getelementptr inbounds float, ptr %p, i64 %i
  %b = getelementptr inbounds float, ptr %q, i64 %i
  {body}

latch:
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit

exit:
  {behind}
  ret float 0.0

panic:
  call void @abort()
  unreachable
}}
"""
#: What is in the loop's first block, and why it is no nest.
BODIES = {
    "store volatile float 0.0, ptr %a, align 4": "touches memory that is volatile",
    "%x = load atomic float, ptr %a unordered, align 4": "touches memory that is atomic",
    "%x = atomicrmw fadd ptr %a, float 1.0 monotonic, align 4": "changes memory atomically",
    "fence seq_cst": "orders its accesses to memory",
    "call void @count(ptr %a)": "calls count",
    "call void @llvm.lifetime.start.p0(ptr %a)": "calls llvm.lifetime.start.p0",
    "%x = call float %p(float 0.0)": "calls a function by its address",
    "store x86_fp80 0xK00000000000000000000, ptr %a, align 16": "touches memory as x86_fp80",
    "call void @llvm.memset.p0.i64(ptr %a, i8 1, i64 %n, i1 false)": "fills memory",
    "%k = load i64, ptr %b, align 8\n  %r = getelementptr float, ptr %p, i64 %k\n  store float 0.0, ptr %r": (
        "writes memory at an address that is not affine in its indices"
    ),
    "%s = mul i64 %i, %i\n  %o = and i64 %s, %m\n  %r = getelementptr float, ptr %p, i64 %o\n"
    "  %x = load float, ptr %r, align 4\n  store float %x, ptr %a, align 4": (
        "reads memory at an address that is not affine in its indices"
    ),
}
#: The end of the loop's first block, and why it is no nest.
BRANCHES = {
    "%c = icmp eq i64 %i, %m\n  br i1 %c, label %exit, label %latch": "exits from the middle",
    "br i1 %flag, label %latch, label %panic": "may stop the program",
    "switch i64 %i, label %latch [ i64 3, label %panic ]": "has a multi-way branch",
}


def read(body: str, behind: str = "") -> Candidate | Refusal:
    module = read_module(TEXT.format(body=body, behind=behind))
    return nests(module.functions["f"], module)[0].read()


def ranges(found: Candidate | Refusal) -> list[tuple[str, str]]:
    assert isinstance(found, Candidate)
    return [(str(one.low), str(one.value)) for one in found.conditions if isinstance(one, Within)]


def reason(found: Candidate | Refusal) -> str:
    assert isinstance(found, Refusal)
    return found.reason


@pytest.mark.parametrize("body", BODIES)
def test_bodies(body: str) -> None:
    assert reason(read(f"{body}\n  br label %latch")) == BODIES[body]


@pytest.mark.parametrize("branch", BRANCHES)
def test_branches(branch: str) -> None:
    assert reason(read(branch)) == BRANCHES[branch]


def test_subscripts_that_are_checked_become_conditions() -> None:
    found = read("%c = icmp ult i64 %i, %m\n  br i1 %c, label %latch, label %panic")
    assert ranges(found) == [("0", "%m:i64"), ("0", "-1 + %m:i64 + -1*i.loop")]


@pytest.mark.parametrize(
    ("subscript", "conditions"),
    [("%i", []), ("%j", [("0", "%m:i64 + i.loop")])],
    ids=["not negative", "perhaps negative"],
)
def test_subscripts_that_count_from_the_end_become_conditions(
    subscript: str, conditions: list[tuple[str, str]]
) -> None:
    found = read(
        "%j = add nsw i64 %i, %m\n"
        f"  %negative = icmp slt i64 {subscript}, 0\n"
        "  %length = select i1 %negative, i64 %n, i64 0\n"
        f"  %place = add i64 {subscript}, %length\n"
        "  %c = getelementptr inbounds float, ptr %p, i64 %place\n"
        "  store float 0.0, ptr %c, align 4\n  br label %latch"
    )
    assert isinstance(found, Candidate)
    assert len(found.nest.body) == 1
    assert [one for one in ranges(found) if "loop" in one[1]] == conditions


def test_calls_that_change_nothing_are_passed() -> None:
    found = read("call void @llvm.assume(i1 %flag)\n  store float 0.0, ptr %a, align 4\n  br label %latch")
    assert isinstance(found, Candidate)
    assert len(found.nest.body) == 1


def test_numbers_of_iterations_may_be_used_behind_a_nest() -> None:
    found = read("br label %latch", "%end = phi i64 [ %next, %latch ]")
    assert isinstance(found, Candidate)
    assert [(name, str(value)) for name, value in found.place.leaving] == [("%end", "%n:i64")]
    # A loop that tests at its end runs once where n is 0 or less.
    assert ranges(found) == [("1", "%n:i64")]


@pytest.mark.parametrize(
    ("behind", "left"),
    [("%x = fadd float %v, 1.0", "%v"), ("%x = phi float [ %v, %latch ]", "%v")],
)
def test_elements_behind_a_nest(behind: str, left: str) -> None:
    found = read("%v = load float, ptr %a, align 4\n  br label %latch", behind)
    assert reason(found) == f"leaves {left} to the code after it"


def test_values_from_one_iteration_to_the_next() -> None:
    text = TEXT.format(body="%t = fadd fast float %s, 1.0\n  br label %latch", behind="")
    text = text.replace("  %a = ", "  %s = phi float [ 0.0, %entry ], [ %t, %latch ]\n  %a = ")
    module = read_module(text)
    found = nests(module.functions["f"], module)[0].read()
    assert reason(found) == "carries a value from one iteration of its outermost loop to the next"


def test_several_ways_back() -> None:
    text = TEXT.format(body="br i1 %flag, label %loop, label %latch", behind="")
    text = text.replace("[ %next, %latch ]", "[ %next, %latch ], [ %i, %loop ]")
    module = read_module(text)
    found = nests(module.functions["f"], module)[0].read()
    assert reason(found) == "has several back edges"


def test_pointers_of_32_bits() -> None:
    text = TEXT.format(body="store float 0.0, ptr %a, align 4\n  br label %latch", behind="")
    module = read_module('target datalayout = "e-p:32:32"\n' + text)
    found = nests(module.functions["f"], module)[0].read()
    assert reason(found) == "has pointers of other than 64 bits"


#: A loop of two copies of a body that ends between them: 5 iterations of the body, 3 of the first copy.
ENDS_BETWEEN_COPIES = """
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b, i64 %n) {{
entry:
  br label %rows

rows:
  %i = phi i64 [ 0, %entry ], [ %i.next, %row ]
  %c.i = getelementptr inbounds i64, ptr %c, i64 %i
  %begun = load i64, ptr %c.i, align 8
  %i.5 = mul nsw i64 %i, 5
  %a.i = getelementptr inbounds i64, ptr %a, i64 %i.5
  br label %first

first:
  %p = phi i64 [ 0, %rows ], [ %p.next, %second ]
  %sum = phi i64 [ %begun, %rows ], [ %sum.second, %second ]
  %a.p = getelementptr inbounds i64, ptr %a.i, i64 %p
  %x = load i64, ptr %a.p, align 8
  %b.p = getelementptr inbounds i64, ptr %b, i64 %p
  %y = load i64, ptr %b.p, align 8
  %product = mul i64 %x, %y
  %sum.first = add i64 %sum, %product
  {first}
  %last = icmp eq i64 %p, 4
  br i1 %last, label %row, label %second

second:
  %q = or disjoint i64 %p, 1
  %a.q = getelementptr inbounds i64, ptr %a.i, i64 %q
  %x.second = load i64, ptr %a.q, align 8
  %b.q = getelementptr inbounds i64, ptr %b, i64 %q
  %y.second = load i64, ptr %b.q, align 8
  %product.second = mul i64 %x.second, %y.second
  %sum.second = add i64 %sum.first, %product.second
  {second}
  %p.next = add nuw nsw i64 %p, 2
  br label %first

row:
  {behind}
  %i.next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %exit, label %rows

exit:
  ret void
}}
"""


def read_ending_between_copies(first: str, second: str, behind: str) -> Candidate | Refusal:
    module = read_module(ENDS_BETWEEN_COPIES.format(first=first, second=second, behind=behind))
    return nests(module.functions["f"], module)[0].read()


def test_a_loop_that_ends_between_two_copies_that_store() -> None:
    found = read_ending_between_copies(
        "store i64 %sum.first, ptr %c.i, align 8", "store i64 %sum.second, ptr %c.i, align 8", ""
    )
    assert reason(found) == "stores elements before it tests whether it ends"


def test_a_sum_of_a_loop_that_ends_between_two_copies() -> None:
    found = read_ending_between_copies("", "", "store i64 %sum.first, ptr %c.i, align 8")
    assert isinstance(found, Candidate)
    assert "uses a value of the last iteration of an inner loop" in str(found.nest.body[-1])
