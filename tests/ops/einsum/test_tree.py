"""Trees of contractions: the bracket form read and written, where a text is wrong, sizes, paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given as examples_of
from hypothesis import strategies as st
from shares import looped

from tilewright.errors import (
    MalformedTree,
    TilewrightError,
    TreeDimensionLost,
    TreeDimensionRepeated,
    TreeDimensionUnknown,
    TreeSize,
    TreeSizeMissing,
)
from tilewright.ops.einsum.tree import (
    Leaf,
    Pair,
    Permutation,
    Tree,
    label_of,
    names_of,
    parse_tree,
    path_of_tree,
    print_tree,
    rebuilt,
    tree_of_path,
    tree_sizes,
    walk,
)


def _labels(*numbers: int) -> str:
    return "".join(map(label_of, numbers))


A, B = Leaf(_labels(0, 1), 0), Leaf(_labels(1, 2), 1)

PARSED: dict[str, Tree] = {
    "[0,1]": A,
    "[]": Leaf("", 0),
    "[0,1],[1,2]->[0,2]": Pair(A, B, _labels(0, 2)),
    "[[0,1],[1,2]->[0,2]]": Pair(A, B, _labels(0, 2)),
    "[0,1]->[1,0]": Permutation(A, _labels(1, 0)),
    "[[0,1]->[1,0]],[1,2]->[0,2]": Pair(Permutation(A, _labels(1, 0)), B, _labels(0, 2)),
    "[0,1],[[1,2]->[2,1]]->[0,2]": Pair(A, Permutation(B, _labels(2, 1)), _labels(0, 2)),
    " [ 0 ,1 ] ,\n[1, 2] -> [0,2]\t": Pair(A, B, _labels(0, 2)),
    "[0,1],[1,0]->[]": Pair(A, Leaf(_labels(1, 0), 1), ""),
    "[],[0]->[0]": Pair(Leaf("", 0), Leaf(_labels(0), 1), _labels(0)),
    "[[[999999]->[999999]]->[999999]]": Permutation(
        Permutation(Leaf(_labels(999999), 0), _labels(999999)), _labels(999999)
    ),
}


@pytest.mark.parametrize("text", PARSED)
def test_trees(text: str) -> None:
    assert parse_tree(text) == PARSED[text]


#: Text, the class, and the column of the character that is wrong.
WRONG: list[tuple[str, type[TilewrightError], int]] = [
    ("", MalformedTree, 1),
    ("0,1", MalformedTree, 1),
    ("[", MalformedTree, 2),
    ("[0", MalformedTree, 3),
    ("[0,", MalformedTree, 4),
    ("[0,]", MalformedTree, 4),
    ("[0 1]", MalformedTree, 4),
    ("[-1]", MalformedTree, 2),
    ("[a]", MalformedTree, 2),
    ("[1000000]", MalformedTree, 2),
    ("[[0]]", MalformedTree, 5),
    ("[0],[0]", MalformedTree, 8),
    ("[0],[0],[0]->[0]", MalformedTree, 8),
    ("[0],->[0]", MalformedTree, 5),
    ("[0]->", MalformedTree, 6),
    ("[0]->0", MalformedTree, 6),
    ("[0]->[0]]", MalformedTree, 9),
    ("[[0]->[0]", MalformedTree, 10),
    ("[[0],[0]->[0],[0]]", MalformedTree, 14),
    ("[0,1]\n,[1\n2]->[0]", MalformedTree, 11),
    ("[0,0]->[0]", TreeDimensionRepeated, 4),
    ("[0],[0]->[0, 0]", TreeDimensionRepeated, 14),
    ("[0,1],[1]->[0,2]", TreeDimensionUnknown, 15),
    ("[0]->[1]", TreeDimensionUnknown, 7),
    ("[0,1],[0]->[0]", TreeDimensionLost, 13),
    ("[0],[0,1]->[]", TreeDimensionLost, 13),
    ("[0,1]->[0]", TreeDimensionLost, 9),
]


@looped(("text", "kind", "column"), WRONG)
def test_the_wrong_character_is_pointed_at(text: str, kind: type[TilewrightError], column: int) -> None:
    with pytest.raises(kind) as caught:
        parse_tree(text)
    *_, written, pointer = str(caught.value).split("\n")
    assert written == f"    {text}".replace("\n", " ")
    assert pointer == " " * (4 + column - 1) + "^"


def test_deep_trees_are_read_and_written() -> None:
    """Deeper than Python's recursion goes."""
    count = 3000
    text = "[" * count + "[0]" + "->[0]]" * count
    tree = parse_tree(text)
    assert print_tree(tree) == text[1:-1]
    assert sum(1 for _ in walk(tree)) == count + 1
    assert rebuilt(tree, lambda node: node) is not tree


@pytest.mark.parametrize("sizes", [(2, 3, 4), [2, 3, 4, 9], {0: 2, 1: 3, 2: 4}, np.array([2, 3, 4])])
def test_sizes(sizes: Any) -> None:
    assert tree_sizes(parse_tree("[0,1],[1,2]->[0,2]"), sizes) == dict(
        zip(_labels(0, 1, 2), (2, 3, 4), strict=True)
    )


@pytest.mark.parametrize(
    ("sizes", "kind", "words"),
    [
        ((2, 3), TreeSizeMissing, ("dimension 2", "0, 1")),
        ({0: 2, 2: 4}, TreeSizeMissing, ("dimension 1", "0, 2")),
        ((2, 3, -1), TreeSize, ("dimension 2", "-1")),
        ((2, 3.0, 1), TreeSize, ("dimension 1", "3.0")),
        ((True, 3, 1), TreeSize, ("dimension 0", "True")),
    ],
)
def test_sizes_that_are_none(
    sizes: Sequence[int] | Mapping[int, int], kind: type[TilewrightError], words: tuple[str, ...]
) -> None:
    with pytest.raises(kind) as caught:
        tree_sizes(parse_tree("[0,1],[1,2]->[0,2]"), sizes)
    assert all(word in str(caught.value) for word in words), caught.value


def test_names() -> None:
    assert (names_of("ij"), names_of(_labels(10, 2)), names_of("")) == ("ij", "[10,2]", "")


@pytest.mark.parametrize(
    ("terms", "output", "path", "text"),
    [
        (("ij", "jk"), "ki", ((0, 1),), "[i,j],[j,k]->[k,i]"),
        (("ij", "jk", "kl"), "il", ((0, 1), (0, 1)), "[k,l],[[i,j],[j,k]->[i,k]]->[i,l]"),
        (("ij", "jk", "kl"), "il", ((0, 1, 2),), "[k,l],[[i,j],[j,k]->[i,k]]->[i,l]"),
        (("bi", "bj", "i", "j"), "b", ((0, 2), (0, 1), (0, 1)), "[[b,i],[i]->[b]],[[b,j],[j]->[b]]->[b]"),
        (("i",), "i", ((0,),), "[i]"),
    ],
)
def test_paths_become_trees(
    terms: tuple[str, ...], output: str, path: tuple[tuple[int, ...], ...], text: str
) -> None:
    tree = tree_of_path(terms, output, path)
    assert print_tree(tree) == text


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Any tree over few dimensions: nodes meet in some order, some of them moved."""
    operands = draw(st.lists(st.lists(st.integers(0, 6), unique=True, max_size=4), min_size=1, max_size=5))
    left: list[Tree] = [Leaf(_labels(*own), number) for number, own in enumerate(operands)]
    while len(left) > 1:
        place = draw(st.integers(0, len(left) - 2))
        first, second = left[place : place + 2]
        labels = [
            label
            for label in dict.fromkeys(first.labels + second.labels)
            if not (label in first.labels and label in second.labels and draw(st.booleans()))
        ]
        left[place : place + 2] = [Pair(first, second, "".join(draw(st.permutations(labels))))]
        if draw(st.booleans()):
            moved = "".join(draw(st.permutations(left[place].labels)))
            left[place] = Permutation(left[place], moved)
    return left[0]


@examples_of(trees())
def test_what_is_printed_reads_back(tree: Tree) -> None:
    assert parse_tree(print_tree(tree)) == tree


@examples_of(trees())
def test_trees_become_paths(tree: Tree) -> None:
    """The path makes a tree of the same meetings."""
    terms, path = path_of_tree(tree)
    assert terms == tuple(node.labels for node in walk(tree) if isinstance(node, Leaf))
    if len(terms) < 2:
        assert path == ()
        return
    again = tree_of_path(terms, tree.labels, path)
    assert _meetings(again) == _meetings(tree)


def _meetings(tree: Tree) -> set[frozenset[int]]:
    """The operands below each pair."""
    found, below = set(), []
    for node in walk(tree):
        match node:
            case Leaf(operand=operand):
                below.append(frozenset((operand,)))
            case Pair():
                below.append(below.pop() | below.pop())
                found.add(below[-1])
            case _:
                pass
    return found
