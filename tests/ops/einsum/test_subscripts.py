"""Subscripts of einsum: terms, labels over shapes, paths, and where a text is wrong."""

from __future__ import annotations

import string
from random import Random
from typing import Any

import pytest
from opt_einsum import paths

from tilewright.errors import (
    AxesWithoutLabels,
    EllipsisNotInOutput,
    InvalidChoice,
    InvalidPath,
    LabelSizes,
    MalformedSubscripts,
    OperandCount,
    OutputLabelRepeated,
    OutputLabelUnknown,
    SublistLabel,
    TilewrightError,
)
from tilewright.ops.einsum.order import find_path
from tilewright.ops.einsum.subscripts import interleaved, lay_over, parse

PARSED = {
    "ij,jk->ik": (("ij", "jk"), "ik"),
    "ij,jk": (("ij", "jk"), "ik"),
    "ba": (("ba",), "ab"),
    "aB": (("aB",), "Ba"),
    "ii": (("ii",), ""),
    "": (("",), ""),
    "->": (("",), ""),
    ",": (("", ""), ""),
    " i j , j k -> k i ": (("ij", "jk"), "ki"),
    "...ij,...jk": ((".ij", ".jk"), ".ik"),
    "i...j -> ...ij": (("i.j",), ".ij"),
    "ij->...ij": (("ij",), ".ij"),
}


@pytest.mark.parametrize(("text", "terms"), PARSED.items())
def test_terms(text: str, terms: tuple[tuple[str, ...], str]) -> None:
    equation = parse(text)
    assert (equation.inputs, equation.output) == terms


#: Text, the class, and the column of the character that is wrong.
MALFORMED: list[tuple[str, type[TilewrightError], int]] = [
    ("i1", MalformedSubscripts, 2),
    ("iö->i", MalformedSubscripts, 2),
    ("i.j", MalformedSubscripts, 2),
    ("ij, j..k", MalformedSubscripts, 6),
    ("i. ..", MalformedSubscripts, 2),
    ("....", MalformedSubscripts, 4),
    ("...i...", MalformedSubscripts, 5),
    ("i->......", MalformedSubscripts, 7),
    ("ij-j", MalformedSubscripts, 3),
    ("ij>j", MalformedSubscripts, 3),
    ("ij->j->i", MalformedSubscripts, 6),
    ("ij->>j", MalformedSubscripts, 5),
    ("ij->i,j", MalformedSubscripts, 6),
    ("ij->iji", OutputLabelRepeated, 7),
    ("ij,jk->i l", OutputLabelUnknown, 10),
]


@pytest.mark.parametrize(("text", "kind", "column"), MALFORMED)
def test_the_wrong_character_is_pointed_at(text: str, kind: type[TilewrightError], column: int) -> None:
    with pytest.raises(kind) as caught:
        parse(text)
    *_, written, pointer = str(caught.value).split("\n")
    assert written == f"    {text}"
    assert pointer == " " * (4 + column - 1) + "^"


LAID: list[tuple[str, list[tuple[int, ...]], tuple[str, ...], tuple[int, ...]]] = [
    ("ij,jk", [(2, 3), (3, 4)], ("ij", "jk"), (2, 4)),
    ("ij,jk", [(2, 1), (3, 4)], ("ij", "jk"), (2, 4)),
    ("ij,jk", [(2, 1), (0, 4)], ("ij", "jk"), (2, 4)),
    ("...i,...i", [(5, 1, 3), (4, 3)], ("βαi", "αi"), (5, 4)),
    ("i...,...", [(3,), (6, 2)], ("i", "βα"), (6, 2, 3)),
    ("...->...", [()], ("",), ()),
]


@pytest.mark.parametrize(("text", "shapes", "inputs", "shape"), LAID)
def test_labels_of_axes(
    text: str, shapes: list[tuple[int, ...]], inputs: tuple[str, ...], shape: tuple[int, ...]
) -> None:
    found = lay_over(parse(text), shapes)
    assert (found.inputs, found.shape) == (inputs, shape)


@pytest.mark.parametrize(
    ("text", "shapes", "kind", "words"),
    [
        ("ij,jk", [(2, 3)], OperandCount, ("1 operands", "name 2")),
        ("ij", [(2, 3), (3, 4)], OperandCount, ("2 operands", "name 1")),
        ("ij", [(2,)], AxesWithoutLabels, ("operand 0", "(2,)", "2 axes")),
        ("i,i", [(2,), (2, 3)], AxesWithoutLabels, ("operand 1", "'i'", "'...'")),
        ("...ij", [(2,)], AxesWithoutLabels, ("'...ij'",)),
        ("ij,jk", [(2, 3), (4, 5)], LabelSizes, ("'j'", "size 3 in operand 0", "4 in operand 1")),
        ("i,i,i", [(1,), (3,), (2,)], LabelSizes, ("size 3 in operand 1", "2 in operand 2")),
        ("ii", [(1, 3)], LabelSizes, ("'i'", "size 1 in operand 0", "3 in operand 0")),
        ("...,...", [(2, 3), (4, 1)], LabelSizes, ("axis -2",)),
        ("i...->i", [(2, 3, 4)], EllipsisNotInOutput, ("2 axes",)),
    ],
)
def test_shapes_that_do_not_fit(
    text: str, shapes: list[tuple[int, ...]], kind: type[TilewrightError], words: tuple[str, ...]
) -> None:
    with pytest.raises(kind) as caught:
        lay_over(parse(text), shapes)
    assert all(word in str(caught.value) for word in words), caught.value


def test_lists_of_labels() -> None:
    assert interleaved(("a", [0, 27], "b", (27, 1))) == ("Ab,bB", ["a", "b"])
    assert interleaved(("a", [..., 0], [0, ...])) == ("...A->A...", ["a"])


@pytest.mark.parametrize(
    "arguments", [("a", "ij"), ("a", [52]), ("a", [-1]), ("a", ["i"]), ("a", [0], "out"), ("a", 0)]
)
def test_lists_that_are_none(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(SublistLabel):
        interleaved(arguments)


def test_an_operand_without_a_list() -> None:
    with pytest.raises(OperandCount):
        interleaved(("a",))


CHAIN = lay_over(parse("ij,jk,kl,l"), [(9, 8), (8, 7), (7, 6), (6,)])


@pytest.mark.parametrize(
    ("optimize", "path"),
    [
        (False, ((0, 1), (0, 2), (0, 1))),
        (None, ((0, 1), (0, 2), (0, 1))),
        (True, ((2, 3), (1, 2), (0, 1))),
        ("optimal", ((2, 3), (1, 2), (0, 1))),
        (("optimal", 1000), ((2, 3), (1, 2), (0, 1))),
        (["einsum_path", (0, 1), (0, 1, 2)], ((0, 1), (0, 1, 2))),
        ([(0, 1, 2, 3)], ((0, 1, 2, 3),)),
    ],
)
def test_paths(optimize: Any, path: tuple[tuple[int, ...], ...]) -> None:
    found = find_path(CHAIN, optimize)
    assert tuple(tuple(sorted(step)) for step in found) == path


@pytest.mark.parametrize(
    ("optimize", "kind"),
    [
        ("quick", InvalidChoice),
        (3, InvalidPath),
        ([], InvalidPath),
        ([(0, 1)], InvalidPath),
        ([(0, 4), (0, 1), (0, 1)], InvalidPath),
        ([(0, 0), (0, 1), (0, 1)], InvalidPath),
        ([("0", 1), (0, 1), (0, 1)], InvalidPath),
        ([0, 1], InvalidPath),
    ],
)
def test_paths_that_are_none(optimize: Any, kind: type[TilewrightError]) -> None:
    with pytest.raises(kind):
        find_path(CHAIN, optimize)


@pytest.mark.parametrize("operands", [3, 4])
def test_orders_of_few_operands_are_those_that_opt_einsum_finds(operands: int) -> None:
    """Also where several cost the same: the first one that the search visits."""
    random = Random(operands)
    for _ in range(200):
        labels = string.ascii_lowercase[: random.randint(2, 6)]
        sizes = {label: random.choice((1, 2, 3, 8, 9)) for label in labels}
        terms = [
            "".join(random.sample(labels, random.randint(1, min(len(labels), 3)))) for _ in range(operands)
        ]
        used = sorted(set("".join(terms)))
        text = f"{','.join(terms)}->{''.join(random.sample(used, random.randint(0, len(used))))}"
        indexing = lay_over(parse(text), [tuple(sizes[label] for label in term) for term in terms])
        sets = [frozenset(term) for term in indexing.inputs]
        expected = paths.optimal(sets, frozenset(indexing.output), dict(indexing.sizes))
        assert find_path(indexing, "auto") == tuple(map(tuple, expected)), (text, sizes)
