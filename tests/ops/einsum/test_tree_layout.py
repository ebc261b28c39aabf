"""Orders in memory of what a tree makes on the way: golden trees, and the same numbers whatever is chosen."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
import pytest
from hypothesis import given as examples_of
from hypothesis import strategies as st
from support import Array, filled
from tiers import draws

import tilewright as tw
from tilewright.ops.einsum import steps
from tilewright.ops.einsum.labels import Axes
from tilewright.ops.einsum.plan import make_plan
from tilewright.ops.einsum.run import Types, run_plan
from tilewright.ops.einsum.steps import PairStep, PermuteStep, steps_of
from tilewright.ops.einsum.strategies import PairCosts
from tilewright.ops.einsum.tree import (
    Leaf,
    Pair,
    Permutation,
    Tree,
    parse_tree,
    print_tree,
    tree_of_path,
    walk,
)
from tilewright.ops.einsum.tree_layout import laid_out, without_permutations

F32 = PairCosts(itemsize=4, rate=32.0, by_tables=True, l2_bytes=1 << 20)

#: Subscripts (operands meet from left to right), sizes, the tree as it comes and as it is laid out.
GOLDEN: list[tuple[str, dict[str, int], str, str]] = [
    (  # a coupled-cluster term: what is summed next stands together, and a small operand is moved for it
        "mnef,aeim,bfjn->abij",
        {"a": 32, "b": 32, "e": 32, "f": 32, "m": 16, "n": 16, "i": 16, "j": 16},
        "[b,f,j,n],[[m,n,e,f],[a,e,i,m]->[n,f,a,i]]->[a,b,i,j]",
        "[[b,f,j,n]->[b,j,n,f]],[[m,n,e,f],[a,e,i,m]->[a,i,n,f]]->[a,b,i,j]",
    ),
    (  # a Tucker decomposition: each product ends with what it adds, and begins with the next sum
        "abcd,ia,jb,kc,ld->ijkl",
        {**dict.fromkeys("abcd", 20), **dict.fromkeys("ijkl", 48)},
        "[l,d],[[k,c],[[j,b],[[a,b,c,d],[i,a]->[b,c,d,i]]->[j,c,d,i]]->[k,j,d,i]]->[i,j,k,l]",
        "[l,d],[[k,c],[[j,b],[[a,b,c,d],[i,a]->[b,c,d,i]]->[c,d,i,j]]->[d,i,j,k]]->[i,j,k,l]",
    ),
    (  # a batch in the innermost axis: both operands are moved
        "ijb,jkb,bkl->bil",
        dict.fromkeys("bijkl", 32),
        "[b,k,l],[[i,j,b],[j,k,b]->[b,i,k]]->[b,i,l]",
        "[b,k,l],[[[i,j,b]->[b,i,j]],[[j,k,b]->[b,j,k]]->[b,i,k]]->[b,i,l]",
    ),
    (  # nothing to gain
        "ij,jk,kl->il",
        dict.fromkeys("ijkl", 128),
        "[k,l],[[i,j],[j,k]->[i,k]]->[i,l]",
        "[k,l],[[i,j],[j,k]->[i,k]]->[i,l]",
    ),
    (  # too small to matter
        "mnef,aeim,bfjn->abij",
        dict.fromkeys("abefmnij", 2),
        "[b,f,j,n],[[m,n,e,f],[a,e,i,m]->[n,f,a,i]]->[a,b,i,j]",
        "[b,f,j,n],[[m,n,e,f],[a,e,i,m]->[n,f,a,i]]->[a,b,i,j]",
    ),
]


def _tree(subscripts: str) -> Tree:
    text, _, output = subscripts.partition("->")
    terms = text.split(",")
    last = len(terms) - 1
    # The result of each step stands last in the list of what is left, and takes the first that is there.
    return tree_of_path(terms, output, ((0, 1), *((0, left) for left in range(last - 1, 0, -1))))


def _operands(tree: Tree, sizes: dict[str, int]) -> list[Axes]:
    leaves = sorted((node.operand, node.labels) for node in walk(tree) if isinstance(node, Leaf))
    return [Axes.adjacent(labels, sizes, F32.itemsize) for _, labels in leaves]


@pytest.mark.parametrize(("subscripts", "sizes", "before", "after"), GOLDEN)
def test_golden_trees(subscripts: str, sizes: dict[str, int], before: str, after: str) -> None:
    tree = _tree(subscripts)
    assert print_tree(tree) == before
    assert print_tree(laid_out(tree, _operands(tree, sizes), F32)) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[[0,1],[1,2]->[0,2]]->[2,0]", "[0,1],[1,2]->[2,0]"),
        ("[[0,1]->[1,0]],[1,2]->[0,2]", "[0,1],[1,2]->[0,2]"),
        ("[[[0,1]->[1,0]]->[0,1]]->[1,0]", "[0,1]->[1,0]"),
        ("[[[[0,1],[1,2]->[0,2]]->[2,0]],[2,3]->[0,3]]->[3,0]", "[[0,1],[1,2]->[2,0]],[2,3]->[3,0]"),
        ("[0,1]", "[0,1]"),
    ],
)
def test_permutations_that_nothing_needs(before: str, after: str) -> None:
    assert print_tree(without_permutations(parse_tree(before))) == after


def test_steps() -> None:
    tree = Pair(Leaf("ij", 1), Permutation(Pair(Leaf("kl", 0), Leaf("lj", 2), "kj"), "jk"), "ik")
    assert steps_of(tree, 3, dict.fromkeys("ijkl", 64)) == (
        PairStep(0, 2, ("kl", "lj", "kj"), (64, 64)),
        PermuteStep(3, (1, 0)),
        PairStep(1, 4, ("ij", "jk", "ik"), (64, 64)),
    )
    assert all(
        step.shape is None
        for step in steps_of(tree, 3, dict.fromkeys("ijkl", 2))
        if isinstance(step, PairStep)
    )


@pytest.fixture
def every_size_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders are chosen for the smallest trees too."""
    monkeypatch.setattr(steps, "LEAST_PLACED", 1)


@st.composite
def networks(draw: st.DrawFn) -> tuple[str, list[Array]]:
    """Subscripts of three to five operands of any strides."""
    labels = string.ascii_letters[: draw(st.integers(2, 7))]
    sizes = {label: draw(st.integers(1, 4)) for label in labels}
    terms = draw(
        st.lists(
            st.lists(st.sampled_from(labels), unique=True, max_size=4).map("".join), min_size=3, max_size=5
        )
    )
    dtype = draw(st.sampled_from(["f4", "f8", "i4", "c8", "f2"]))
    given = []
    for seed, term in enumerate(terms):
        order = draw(st.permutations(range(len(term))))
        whole = filled(tuple(sizes[term[axis]] for axis in order), dtype, seed)
        given.append(whole.transpose(np.argsort(order)) if order else whole)
    known = sorted({label for term in terms for label in term})
    output = draw(st.lists(st.sampled_from(known), unique=True)) if known else []
    return f"{','.join(terms)}->{''.join(output)}", given


@pytest.mark.usefixtures("every_size_counts")
@draws(150)
@examples_of(networks())
def test_numbers_do_not_depend_on_orders(network: tuple[str, list[Any]]) -> None:
    text, given = network
    expected = np.einsum(text, *given)
    places = tuple((array.shape, array.strides, array.dtype.kind) for array in given)
    plan = make_plan(text, places, "auto")
    types = Types.of(expected.dtype)
    out = np.zeros(expected.shape, expected.dtype)
    for found in (run_plan(plan, given, None, types), run_plan(plan, given, out, types)):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_a_laid_out_tree_computes_what_numpy_does() -> None:
    sizes = {**dict.fromkeys("abcd", 12), **dict.fromkeys("ijkl", 20)}
    text = "abcd,ia,jb,kc,ld->ijkl"
    given = [filled(tuple(sizes[label] for label in term), "f8", 1) for term in text[:16].split(",")]
    expected = np.einsum(text, *given, optimize=True)
    np.testing.assert_array_equal(tw.einsum(text, *given), expected)
    path = ["einsum_path", (0, 1), (0, 3), (0, 2), (0, 1)]
    np.testing.assert_array_equal(tw.einsum(text, *given, optimize=path), expected)
