"""Libraries of tensor networks that take their arithmetic from this package by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import filled

from tilewright.ops.einsum import products

TERMS, OUTPUT = (("i", "a"), ("a", "j", "b"), ("b", "k", "c"), ("c", "l")), ("i", "j", "k", "l")
SIZES = dict(zip("ijklabc", (3, 4, 5, 6, 7, 8, 9), strict=True))


def _given() -> tuple[list[Any], Any]:
    given = [filled(tuple(SIZES[label] for label in term), "f8", seed) for seed, term in enumerate(TERMS)]
    return given, np.einsum("ia,ajb,bkc,cl->ijkl", *given)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The products that went through this package."""
    seen: list[Any] = []
    before = products._contract

    def counted(function: str, *rest: Any) -> Any:
        seen.append(function)
        return before(function, *rest)

    monkeypatch.setattr(products, "_contract", counted)
    return seen


def test_opt_einsum(calls: list[Any]) -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    given, expected = _given()
    found = opt_einsum.contract("ia,ajb,bkc,cl->ijkl", *given, backend="tilewright")
    np.testing.assert_array_equal(found, expected)
    assert len(calls) == len(TERMS) - 1


def test_cotengra(calls: list[Any]) -> None:
    cotengra = pytest.importorskip("cotengra")
    given, expected = _given()
    tree = cotengra.array_contract_tree(TERMS, OUTPUT, SIZES)
    np.testing.assert_array_equal(tree.contract(given, backend="tilewright"), expected)
    assert len(calls) == len(TERMS) - 1


def test_quimb(calls: list[Any]) -> None:
    quimb = pytest.importorskip("quimb.tensor")
    given, expected = _given()
    network = quimb.TensorNetwork(
        quimb.Tensor(array, inds=term) for array, term in zip(given, TERMS, strict=True)
    )
    found = network.contract(output_inds=OUTPUT, backend="tilewright")
    np.testing.assert_array_equal(found.data, expected)
    assert len(calls) == len(TERMS) - 1
