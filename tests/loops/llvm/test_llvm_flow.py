"""Dominators and loops, beside a definition by reachability."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tiers import draws

from tilewright.loops.llvm.control_flow import Flow
from tilewright.loops.llvm.module import FunctionDefinition, read_module


def function_of(edges: dict[int, list[int]]) -> FunctionDefinition:
    """A function whose block n goes to the blocks in edges[n]."""
    lines = ["define void @f(i32 %x) {"]
    for number, successors in edges.items():
        lines.append(f"b{number}:")
        match successors:
            case []:
                lines.append("  ret void")
            case [only]:
                lines.append(f"  br label %b{only}")
            case [first, *others]:
                lines.append(f"  switch i32 %x, label %b{first} [")
                lines += [f"    i32 {case}, label %b{one}" for case, one in enumerate(others)]
                lines.append("  ]")
        lines.append("")
    return read_module("\n".join([*lines, "}"])).functions["f"]


def reached(edges: dict[int, list[int]], without: int | None = None) -> set[int]:
    """Blocks that are reached from block 0 without passing another."""
    found, left = set[int](), [0]
    while left:
        block = left.pop()
        if block not in found and block != without:
            found.add(block)
            left += edges[block]
    return found


@st.composite
def graphs(draw: st.DrawFn) -> dict[int, list[int]]:
    count = draw(st.integers(1, 9))
    blocks = st.lists(st.integers(1, count - 1), max_size=3, unique=True) if count > 1 else st.just([])
    return {number: draw(blocks) for number in range(count)}


@draws(200)
@given(graphs())
def test_dominators_and_loops_of_random_graphs(edges: dict[int, list[int]]) -> None:
    flow = Flow(function_of(edges))
    alive = reached(edges)
    assert set(flow.order) == {f"b{one}" for one in alive}
    dominated = {one: alive - reached(edges, without=one) for one in alive}
    for above in alive:
        for block in alive:
            assert flow.dominates(f"b{above}", f"b{block}") == (block in dominated[above])
    headers = {one for block in alive for one in edges[block] if block in dominated[one]}
    loops = [loop for top in flow.loops for loop in top.walk()]
    assert {loop.header for loop in loops} == {f"b{one}" for one in headers}
    for loop in loops:
        for child in loop.children:
            assert child.blocks < loop.blocks
        for label in loop.blocks:
            assert flow.dominates(loop.header, label)
        assert set(loop.exits).isdisjoint(loop.blocks)


NEST = {0: [1, 6], 1: [2], 2: [3], 3: [3, 4], 4: [2, 5], 5: [6], 6: []}


def test_a_nest() -> None:
    flow = Flow(function_of(NEST))
    (outer,) = flow.loops
    (inner,) = outer.children
    assert (outer.header, outer.preheader, outer.latches, outer.exiting, outer.exits, outer.depth) == (
        "b2", "b1", ("b4",), ("b4",), ("b5",), 2,
    )  # fmt: skip
    assert (inner.header, inner.preheader, inner.exits) == ("b3", "b2", ("b4",))
    assert flow.innermost("b3") is inner
    assert flow.innermost("b4") is outer
    assert flow.innermost("b6") is None


def test_each_loop_stands_in_the_smallest_around_it() -> None:
    deep = {0: [1], 1: [2], 2: [3], 3: [3, 4], 4: [2, 5], 5: [1, 6], 6: []}
    (outer,) = Flow(function_of(deep)).loops
    (middle,) = outer.children
    (inner,) = middle.children
    assert (outer.header, middle.header, inner.header, outer.depth) == ("b1", "b2", "b3", 3)
    assert [loop.header for loop in outer.walk()] == ["b1", "b2", "b3"]


def test_an_entry_from_a_branch_is_no_preheader() -> None:
    (loop,) = Flow(function_of({0: [1, 2], 1: [1, 2], 2: []})).loops
    assert loop.preheader is None
    assert loop.exits == ("b2",)


def test_a_cycle_of_two_entries_is_no_loop() -> None:
    assert Flow(function_of({0: [1, 2], 1: [2], 2: [1, 3], 3: []})).loops == ()
