"""Functions of NumPy that are replaced by name: the same results, and NumPy's in every other case."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest
from installed_loops import taking_everything
from tiers import each_value

import tilewright as tw
from tilewright.installation.state import state

#: Untyped: most calls here are wrong, or of types that stubs do not know.
NUMPY: Any = np

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((24, 30)), RNG.standard_normal((30, 28))
T, U = RNG.standard_normal((5, 6, 7)), RNG.standard_normal((6, 7, 8))

CALLS: dict[str, Any] = {
    "dot": lambda a, b: NUMPY.dot(a, b),  # noqa: PLW0108 - looked up in each call
    "inner": lambda a, b: NUMPY.inner(a, b.T),
    "tensordot": lambda a, b: np.tensordot(a, b, 1),
    "tensordot axes=": lambda a, b: np.tensordot(a, b, axes=([1], [0])),
    "einsum": lambda a, b: NUMPY.einsum("ij,jk->ik", a, b),
    "einsum optimize": lambda a, b: NUMPY.einsum("ij,jk->ki", a, b, optimize=True),
    "kron": lambda a, b: NUMPY.kron(a[:5, :5], b[:5, :5]),
    "multi_dot": lambda a, b: np.linalg.multi_dot([a, b, b.T]),
    "cov": lambda a, b: np.cov(a),
    "linalg.tensordot": lambda a, b: np.linalg.tensordot(a, b, axes=1),
    "matrix_power": lambda a, b: np.linalg.matrix_power(a[:20, :20], 3),
}


def taken() -> int:
    return sum(one.taken for one in state().names.functions.values())


@pytest.mark.parametrize("letter", "efdFDbl")
@pytest.mark.parametrize("name", CALLS)
@each_value
def test_results_are_those_of_numpy(name: str, letter: str) -> None:
    if name == "matrix_power" and letter in "eb":
        pytest.skip("powers overflow")
    a, b = ((one * 4).astype(letter) for one in (A, B))
    expected = CALLS[name](a, b)
    with taking_everything():
        before = taken()
        found = CALLS[name](a, b)
        assert taken() > before or name in ("cov", "matrix_power", "linalg.tensordot")
    assert found.dtype == expected.dtype
    scale = np.abs(expected).max()
    tolerance = 0 if np.dtype(letter).kind in "iu" else 20 * float(np.finfo(letter).eps) * scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def outcome(function: Any, *arguments: Any, **named: Any) -> tuple[Any, set[str]]:
    """The type of the result or of the error with its text, and the warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            result: Any = type(function(*arguments, **named))
        except Exception as error:
            result = type(error), str(error)
    return result, {str(one.message) for one in found}


class Subclass(np.ndarray[Any, Any]):
    """A subclass."""


UNUSUAL: dict[str, Any] = {
    "mismatch": lambda: NUMPY.dot(A, A),
    "scalars": lambda: NUMPY.dot(2.0, A),
    "lists": lambda: NUMPY.dot([[1, 2]], [[3], [4]]),
    "objects": lambda: NUMPY.dot(A.astype(object), B),
    "booleans": lambda: NUMPY.dot(A > 0, B > 0),
    "types": lambda: NUMPY.dot(A.astype(np.float32), B),
    "masked": lambda: NUMPY.dot(np.ma.masked_less(A, 0), B),
    "matrices": lambda: NUMPY.dot(A.view(np.matrix), B),
    "subclass": lambda: NUMPY.einsum("ij,jk->ik", A.view(Subclass), B),
    "out": lambda: NUMPY.dot(A, B, out=np.empty((24, 28))),
    "wrong out": lambda: NUMPY.dot(A, B, out=np.empty((24, 28), np.float32)),
    "three axes": lambda: NUMPY.dot(T, U),
    "unknown keyword": lambda: NUMPY.inner(A, A, wrong=1),
    "no arguments": lambda: NUMPY.dot(),  # noqa: PLW0108 - looked up in each call
    "one argument": lambda: NUMPY.kron(A),
    "one operand": lambda: NUMPY.einsum("ij->ji", A),
    "sublists": lambda: NUMPY.einsum(A, [0, 1], B, [1, 2]),
    "wrong order": lambda: NUMPY.einsum("ij,jk->ik", A, B, optimize="wrong"),
    "wrong path": lambda: NUMPY.einsum("ij,jk->ik", A, B, optimize=["einsum_path", (0, 5)]),
    "greedy": lambda: NUMPY.einsum("ij,jk,kl->il", A, B, B.T, optimize="greedy"),
    "path": lambda: NUMPY.einsum("ij,jk->ik", A, B, optimize=["einsum_path", (0, 1)]),
    "wrong subscripts": lambda: NUMPY.einsum("ij,jk->il", A, B),
    "ellipsis": lambda: NUMPY.einsum("...j,jk->...k", A, B),
    "einsum out": lambda: NUMPY.einsum("ij,jk->ik", A, B, out=np.empty((24, 28))),
    "einsum dtype": lambda: NUMPY.einsum("ij,jk->ik", A, B, dtype=np.float32, casting="same_kind"),
    "einsum mismatch": lambda: NUMPY.einsum("ij,jk->ik", A, A),
    "wrong axes": lambda: np.tensordot(A, B, axes=3),
    "overflow": lambda: NUMPY.dot(A * 1e308, B * 1e308),
    "overflow of inner": lambda: NUMPY.inner(A * 1e308, A * 1e308),
    "overflow of tensordot": lambda: np.tensordot(A * 1e308, B * 1e308, 1),
    "overflow of einsum": lambda: NUMPY.einsum("ij,jk->ik", A * 1e308, B * 1e308),
    "overflow of ordered einsum": lambda: NUMPY.einsum("ij,jk->ik", A * 1e308, B * 1e308, optimize=True),
    "overflow of kron": lambda: NUMPY.kron(A * 1e308, A),
    "infinite": lambda: NUMPY.dot(np.full((24, 30), np.inf), B),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_everything_else_is_as_before(name: str) -> None:
    with np.errstate(under="ignore"):
        expected = outcome(UNUSUAL[name])
        with taking_everything():
            assert outcome(UNUSUAL[name]) == expected


def test_dot_with_out_has_the_same_bits() -> None:
    out = np.empty((24, 28))
    with taking_everything():
        before = taken()
        assert NUMPY.dot(A, B, out) is out
        assert NUMPY.dot(A, B, out=out) is out
        assert taken() == before + 2
        np.testing.assert_array_equal(out, NUMPY.dot(A, B))
        for wrong in (out.T, np.empty((28, 24)).T, np.empty((24, 28), np.float32), A, "no array"):
            with pytest.raises((ValueError, TypeError)):
                NUMPY.dot(A, B, out=wrong)
        square = A[:, :24].copy()
        expected = square @ square
        assert NUMPY.dot(square, square, out=square) is square
        np.testing.assert_allclose(square, expected, rtol=1e-12)
        assert taken() == before + 3


def test_errstate_is_obeyed() -> None:
    large, small = (A * 1e307, B * 1e307), (A * 1e-300, B * 1e-300)
    with taking_everything():
        with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="in dot"):
            NUMPY.dot(*large)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isinf(NUMPY.dot(*map(np.abs, large))).any()
        with np.errstate(under="raise"), pytest.raises(FloatingPointError, match="underflow"):
            np.tensordot(*small, 1)


def test_modules_that_use_a_name_of_numpy_are_served() -> None:
    module: Any = sys.modules["numpy.linalg._linalg"]  # where `multi_dot` looks for `dot`

    before = module.dot
    with tw.installed():
        assert module.dot is NUMPY.dot
        assert NUMPY.dot is not before
    assert module.dot is before
