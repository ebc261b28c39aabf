"""Compiled einsums and trees in brackets: numbers, what they say of themselves, and what they refuse."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from shares import looped
from support import Array, filled

import tilewright as tw
from tilewright.errors import (
    CompiledOperand,
    InvalidChoice,
    MalformedSubscripts,
    MalformedTree,
    OperandCount,
    OutputNotWritable,
    OutShape,
    SizeOverflow,
    TreeSizeMissing,
    UnsupportedDtype,
)
from tilewright.ops.einsum.compiled import Workspace
from tilewright.ops.einsum.tree import parse_tree, path_of_tree

#: Trees, the sizes of their dimensions, and the same as einsum.
TREES: list[tuple[str, tuple[int, ...], str]] = [
    ("[0,1],[1,2]->[0,2]", (2, 3, 4), "ab,bc->ac"),
    ("[0,1],[1,2]->[2,0]", (2, 3, 4), "ab,bc->ca"),
    ("[[0,1],[1,2]->[0,2]]->[2,0]", (2, 3, 4), "ab,bc->ca"),
    ("[0,1]->[1,0]", (2, 3), "ab->ba"),
    ("[0,1]", (2, 3), "ab->ab"),
    ("[],[0]->[0]", (3,), ",a->a"),
    ("[0,1],[0,1]->[]", (3, 4), "ab,ab->"),
    ("[0,1],[[1,2],[2,3]->[1,3]]->[3,0]", (2, 1, 4, 5), "ab,bc,cd->da"),
    ("[[[0,1]->[1,0]],[1,2]->[0,2]],[[2,3],[3,4]->[4,2]]->[0,4]", (2, 3, 4, 5, 6), "ab,bc,cd,de->ae"),
    (
        "[0,4,5,6],[[1,4,7,8],[[2,5,7,9],[3,6,8,9]->[2,5,7,3,6,8]]->[1,4,2,5,3,6]]->[0,1,2,3]",
        (9, 9, 6, 6, 4, 4, 4, 4, 4, 4),
        "aefg,behi,cfhj,dgij->abcd",
    ),
]


def operands(text: str, sizes: tuple[int, ...], dtype: Any = "f8") -> list[Array]:
    terms, _ = path_of_tree(parse_tree(text))
    first = ord("\U00010000")
    return [filled(tuple(sizes[ord(label) - first] for label in term), dtype, 1) for term in terms]


@looped("optimize", [True, False, "greedy", "auto"])
@looped(("text", "sizes", "subscripts"), TREES)
def test_trees(text: str, sizes: tuple[int, ...], subscripts: str, optimize: Any) -> None:
    given = operands(text, sizes)
    expected = np.einsum(subscripts, *given)
    run = tw.einsum_tree(text, sizes, optimize=optimize)
    assert run.shape == expected.shape
    for _ in range(2):  # the second computation takes memory of the first
        found = run(*given)
        np.testing.assert_array_equal(found, expected)
        assert not any(np.may_share_memory(found, array) for array in given)
    out = np.full(expected.shape, np.nan, order="F")
    assert run(*given, out=out, threads=1) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "i8", "c8", "c16", ml_dtypes.bfloat16])
def test_types(dtype: Any) -> None:
    text, sizes, subscripts = TREES[-2]
    given = [abs(array).astype(dtype) for array in operands(text, sizes, "f4")]
    found = tw.einsum_tree(text, sizes)(*given)
    assert found.dtype == dtype
    exact = np.einsum(subscripts, *(array.astype("c16") for array in given))
    np.testing.assert_allclose(found.astype("c16"), exact, rtol=1e-2)
    wide = tw.einsum_tree(text, sizes, dtype="c16")(*given)
    assert wide.dtype == np.complex128
    np.testing.assert_array_equal(wide, exact)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("iij,jk...,k->i...", [(3, 3, 4), (4, 5, 6, 7), (5,)]),
        ("ij,kj->i", [(2, 3), (4, 3)]),
        ("ij,jk,k", [(2, 1), (3, 4), (4,)]),
        ("ii->i", [(3, 3)]),
        ("ij->", [(3, 4)]),
        ("ij->ji", [(3, 4)]),
        ("ij,jk,ki->", [(0, 3), (3, 4), (4, 0)]),
    ],
)
def test_subscripts(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    given = [filled(shape, "f8", seed) for seed, shape in enumerate(shapes)]
    expected = np.einsum(subscripts, *given)
    for run in (
        tw.compile_einsum(subscripts, *shapes),
        tw.compile_einsum(subscripts, *given, optimize=False),
    ):
        found = run(*given)
        np.testing.assert_array_equal(found, expected)
        assert np.shape(found) == run.shape
        turned = [np.asarray(array, order="F") for array in given]
        np.testing.assert_array_equal(run(*turned), expected)


def test_out_may_be_an_operand() -> None:
    a = filled((4, 4))
    run = tw.compile_einsum("ij,jk,kl->il", a, a, a)
    expected = a @ a @ a
    run(a, a, a, out=a)
    np.testing.assert_array_equal(a, expected)


def test_calls_at_once_share_nothing() -> None:
    text, sizes, subscripts = TREES[-1]
    run = tw.einsum_tree(text, sizes, optimize=False)
    cases = [[array + number for array in operands(text, sizes)] for number in range(4)]
    wanted = [np.einsum(subscripts, *case, optimize=True) for case in cases]
    wrong: list[int] = []

    def work(number: int) -> None:
        found = [run(*cases[number]) for _ in range(20)]
        wrong.extend(number for one in found if not np.array_equal(one, wanted[number]))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(cases))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_memory_is_kept_and_bounded() -> None:
    space = Workspace()
    first = space.take((4, 4), np.dtype("f8"))
    second = space.take((2,), np.dtype("f4"))
    assert not np.may_share_memory(first, second)
    space.give_back(first)
    space.give_back(np.ones(3))  # of nobody here
    again = space.take((3, 5), np.dtype("f4"))
    assert np.may_share_memory(first, again)
    assert space.nbytes == 4 * 4 * 8 + 2 * 4


def test_what_it_says() -> None:
    run = tw.einsum_tree("[0,1],[[1,2],[2,3]->[1,3]]->[3,0]", (64, 65, 66, 67), optimize=False)
    assert run.tree == "[0,1],[[1,2],[2,3]->[1,3]]->[3,0]"
    found = run.explain()
    assert found.path == ((1, 2), (0, 1))
    assert [node.node for node in found.nodes] == ["[1,2],[2,3]->[1,3]", "[0,1],[1,3]->[3,0]"]
    assert found.nodes[0].sizes == "1=65 2=66 3=67"
    assert found.nodes[0].flops == 2 * 65 * 66 * 67
    assert found.nodes[0].moved_bytes == 4 * (65 * 66 + 66 * 67 + 65 * 67)
    assert found.flops == 2 * (65 * 66 * 67 + 64 * 65 * 67)
    assert all(0 < node.seconds < 1 for node in found.nodes)
    lines = str(found).splitlines()
    assert lines[1] == "path [(1, 2), (0, 1)]"
    assert "in place" in lines[3]
    assert "Mflop" in lines[-1]
    moved = tw.einsum_tree("[[0,1]->[1,0]],[1,2]->[0,2]", (3, 4, 5), optimize=False).explain()
    assert [node.how for node in moved.nodes] == ["permutation", "in place"]
    element = tw.compile_einsum("i,j,j->ij", (3,), (4,), (4,), optimize=False).explain()
    assert element.nodes[0].how == "element by element"


def test_each_node_is_measured() -> None:
    run = tw.einsum_tree("[[0,1]->[1,0]],[1,2]->[0,2]", (3, 4, 5), optimize=False)
    found = run.seconds(repeat=1)
    assert len(found) == 2
    assert all(0 < time < 1 for time in found)


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = tw.einsum_tree("[[0,1]->[1,0]],[1,2]->[0,2]", (3, 4, 5), optimize=False)
    run.picture(tmp_path / "tree.svg", repeat=1)
    text = (tmp_path / "tree.svg").read_text(encoding="utf-8")
    assert text.count("[0,2]") >= 1
    with pytest.raises(InvalidChoice):
        run.picture(tmp_path / "tree.txt")
    with pytest.raises(OutputNotWritable):
        run.picture(tmp_path / "none" / "tree.png", repeat=1)


def test_what_is_refused() -> None:
    run = tw.compile_einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 5))
    a, b, c = np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))
    with pytest.raises(OperandCount):
        run(a, b)
    with pytest.raises(CompiledOperand, match=r"operand 1 has shape \(4, 3\), compiled for \(3, 4\)"):
        run(a, b.T, c)
    with pytest.raises(OutShape):
        run(a, b, c, out=np.ones((5, 2)))
    with pytest.raises(MalformedSubscripts):
        tw.compile_einsum("i1", (2, 3))
    with pytest.raises(MalformedTree):
        tw.einsum_tree("[0,1", (2, 3))
    with pytest.raises(TreeSizeMissing):
        tw.einsum_tree("[0,1],[1]->[0]", (2,))
    with pytest.raises(UnsupportedDtype):
        tw.einsum_tree("[0,1],[1]->[0]", (2, 3), dtype="f7")
    with pytest.raises(InvalidChoice):
        tw.einsum_tree("[0,1],[[1,2],[2]->[1]]->[0]", (2, 3, 4), optimize="fastest")


def test_sizes_that_no_memory_has() -> None:
    shapes = (2**40, 3), (3, 2**10)
    assert tw.compile_einsum("ij,jk->ik", *shapes).shape == (2**40, 2**10)
    with pytest.raises(SizeOverflow, match="compile_einsum: operand 1 needs"):
        tw.compile_einsum("ij,jk->ik", (4, 2**40), (2**40, 2**40))
    with pytest.raises(SizeOverflow, match="compile_einsum: the result needs"):
        tw.compile_einsum("ij,jk->ik", (2**40, 0), (0, 2**40))
    with pytest.raises(SizeOverflow, match="einsum_tree: the result needs"):
        tw.einsum_tree("[0,1],[1,2]->[0,2]", (2**40, 3, 2**40))
    with pytest.raises(SizeOverflow, match="result needs"):
        tw.einsum("ij,jk->ik", np.empty((2**40, 0), np.int64), np.empty((0, 2**40), np.int64))
