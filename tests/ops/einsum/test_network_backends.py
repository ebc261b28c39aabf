"""Libraries of tensor networks that take their arithmetic from this package by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import filled

from tilewright.ops.einsum import products

TERMS, OUTPUT = (("i", "a"), ("a", "j", "b"), ("b", "k", "c"), ("c", "l")), ("i", "j", "k", "l")
SIZES = dict(zip("ijklabc", (3, 4, 5, 6, 7, 8, 9), strict=True))


def _given(more: int) -> tuple[list[Any], Any]:
    """A network whose sizes no other test has: a call that has been prepared is not seen again."""
    shapes = [tuple(SIZES[label] + more for label in term) for term in TERMS]
    given = [filled(shape, "f8", seed) for seed, shape in enumerate(shapes)]
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
    given, expected = _given(0)
    found = opt_einsum.contract("ia,ajb,bkc,cl->ijkl", *given, backend="tilewright")
    np.testing.assert_array_equal(found, expected)
    assert len(calls) == len(TERMS) - 1


def test_cotengra(calls: list[Any]) -> None:
    cotengra = pytest.importorskip("cotengra")
    given, expected = _given(1)
    sizes = {label: size + 1 for label, size in SIZES.items()}
    tree = cotengra.array_contract_tree(TERMS, OUTPUT, sizes)
    np.testing.assert_array_equal(tree.contract(given, backend="tilewright"), expected)
    assert len(calls) == len(TERMS) - 1


def test_quimb(calls: list[Any]) -> None:
    quimb = pytest.importorskip("quimb.tensor")
    given, expected = _given(2)
    network = quimb.TensorNetwork(
        quimb.Tensor(array, inds=term) for array, term in zip(given, TERMS, strict=True)
    )
    found = network.contract(output_inds=OUTPUT, backend="tilewright")
    np.testing.assert_array_equal(found.data, expected)
    assert len(calls) == len(TERMS) - 1
