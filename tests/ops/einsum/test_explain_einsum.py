"""`explain` of einsum: the way of every kind of pair, and that nothing is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Array

import tilewright as tw
from tilewright.errors import LabelSizes
from tilewright.ops.einsum import matmul_pair, table_pair
from tilewright.ops.einsum.explain import WALKS, explain_einsum
from tilewright.ops.sum_of_products.problem import Walk


def ones(*shape: int, dtype: Any = np.float32) -> Array:
    return np.ones(shape, dtype)


#: Operands that no L2 holds, so that copies of them cost more than tables on every core.
PAST_L2 = (ones(200, 64, 200), ones(200, 64, 200))
CALLS: dict[str, tuple[tuple[Any, ...], str, str]] = {
    "matrices": (("ij,jk->ik", ones(64, 64), ones(64, 64)), "ij,jk->ik in place: matmul", "gemm_f32"),
    "a batch": (("bij,bjk->bik", ones(3, 8, 9), ones(3, 9, 7)), "bij,bjk->bik in place", "gemm_f32"),
    "tables": (("aib,bja->ij", *PAST_L2), "aib,bja->ij by tables", "contraction_packed_gemm_f32"),
    "copies": (("aib,bja->ij", ones(4, 8, 4), ones(4, 8, 4)), "aib,bja->ij the", "gemm_f32"),
    "types without tables": (
        ("aib,bja->ij", ones(48, 64, 48, dtype="i4"), ones(48, 64, 48, dtype="i4")),
        *("aib,bja->ij the", "gemm_i32"),
    ),
    "elements": (("ij,ij->ij", ones(3, 4), ones(3, 4)), "ij,ij->ij element by element", ""),
    "a sum": (
        ("ij->i", ones(3, 4)),
        "summed over labels of this operand only: vectors along",
        "products_along",
    ),
    "a sum of columns": (("ij->j", ones(3, 4)), "summed over labels of this operand only", "products_across"),
    "an outer product": (("i,j->ij", ones(3), ones(9)), "i,j->ij element by element: one", "products_spread"),
    "a type without kernel": (
        ("i,i->i", ones(3, dtype=bool), ones(3, dtype=bool)),
        "i,i->i element by",
        "none",
    ),
    "a view": (("ij->ji", ones(3, 4)), "a view", "none"),
    "three": (("ij,jk,kl->li", ones(30, 40), ones(40, 50), ones(50, 60)), "2 pairs", "gemm_f32"),
    "lists": ((ones(3, 4), [0, 1], ones(4, 5), [1, 2]), "AB,BC->AC in place", "gemm_f32"),
}


@pytest.mark.parametrize("name", CALLS)
def test_ways(name: str) -> None:
    arguments, strategy, kernel = CALLS[name]
    found = tw.explain(tw.einsum, *arguments)
    assert found.strategy.startswith(strategy)
    assert found.kernel.startswith(kernel)
    assert str(found).startswith("einsum ")


def test_decisions_name_costs() -> None:
    found = tw.explain(tw.einsum, "aib,bja->ij", *PAST_L2).decisions
    assert found[0].startswith("yes  aib,bja->ij by tables: ")
    assert [line[:3] for line in found[1:]] == ["no "] * (len(found) - 1) != []
    assert all(line.endswith(" cycles estimated") for line in found)


def test_operands_and_options() -> None:
    found = tw.explain(tw.einsum, "ii,ij->j", ones(3, 3), ones(3, 4), threads=1)
    assert found.notes[0].startswith("operand 0: a view")
    assert found.figures == ("24 flops, 100 bytes at least",)
    assert "float64" in tw.explain(tw.einsum, "i,i", ones(3), ones(3), dtype="f8").subject
    given = tw.explain(tw.einsum, "ij,jk,kl", ones(2, 9), ones(9, 9), ones(9, 2), optimize=[(1, 2), (0, 1)])
    assert given.notes[0].startswith("jk,kl->jl")


def test_nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands whose product would take minutes; no array of the size of a result is written."""
    large = np.lib.stride_tricks.as_strided(ones(1), (200, 20_000, 200), (0, 0, 0))
    monkeypatch.setattr(table_pair.TablePair, "compute", None)
    monkeypatch.setattr(matmul_pair, "_moved", None)
    small = ones(4, 8, 4)
    assert "copied" in tw.explain(tw.einsum, "aib,bja->ij", small, small).strategy
    out = np.full((3, 5), 7, np.float32)
    tw.explain(tw.einsum, "ij,jk->ik", ones(3, 4), ones(4, 5), out=out)
    assert (out == 7).all()
    assert (
        tw.explain(tw.einsum, "aib,bja->ij", large, large).figures[0].startswith("32,000,000,000,000 flops")
    )


def test_every_walk_has_words() -> None:
    assert set(WALKS) == set(Walk)


def test_errors_are_those_of_the_call() -> None:
    with pytest.raises(LabelSizes):
        tw.explain(tw.einsum, "ij,jk", ones(2, 3), ones(4, 5))
    assert tw.einsum.__name__ == explain_einsum.__name__.removeprefix("explain_")
