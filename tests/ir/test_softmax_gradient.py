"""What tile IR asks of a `SoftmaxGradient`, and what that means at single elements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support import Array

from tilewright.errors import InvalidTileIr
from tilewright.ir.expressions import Constant, Scalar
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Buffer, Program, Slice, Space
from tilewright.ir.parse import parse_program
from tilewright.ir.primitives.attention import Finite, SoftmaxGradient
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.spec.dtype import F32, F64

ROWS, COLUMNS, PADDED = 2, 3, 4


def window(buffer: str, row: int = PADDED, column: int = 1) -> Slice:
    return Slice(buffer, Constant(0), (Constant(row), Constant(column)))


NODE = SoftmaxGradient(
    gradients=window("gradients"),
    scores=window("scores"),
    products=window("products"),
    lse=window("lse", 1, 0),
    delta=window("delta", 1, 0),
    rows=Constant(ROWS),
    columns=Constant(COLUMNS),
    padded=Constant(PADDED),
    scale=Scalar(0.5),
    weights=window("weights"),
)
NAMES = ("scores", "products", "weights", "gradients", "lse", "delta", "slope")


def program(node: SoftmaxGradient, **dtypes: object) -> Program:
    buffers = tuple(Buffer(name, dtypes.get(name, F32), Space.ARGUMENT) for name in NAMES)  # type: ignore[arg-type]
    return Program("p", (), (), buffers, (node,))


def run(node: SoftmaxGradient, lse: tuple[float, float] = (1.0, 2.0)) -> tuple[Array, Array]:
    """Weights and gradients of scores 2, 4, 6 and 2, 4, NaN, products 1, 2, 3 and a delta of 1."""
    arrays = {name: np.full(ROWS * PADDED, np.nan, np.float32) for name in NAMES}
    arrays["scores"][:7] = 2, 4, 6, np.nan, 2, 4, np.nan
    arrays["products"][:7] = 1, 2, 3, np.nan, 1, 2, 3
    arrays["lse"][:2], arrays["delta"][:2], arrays["slope"][:1] = lse, 1, 0.25
    interpret(program(node), {}, {}, arrays)
    weights, gradients = (arrays[name].reshape(ROWS, PADDED) for name in ("weights", "gradients"))
    return weights, gradients


def test_weights_and_gradients() -> None:
    weights, gradients = run(NODE)
    assert np.allclose(weights[0], [1, np.e, np.e**2, 0])
    assert np.allclose(gradients[0], [0, np.e, 2 * np.e**2, 0])
    assert np.isnan([weights[1, 2], gradients[1, 2]]).all()
    assert weights[1, 3] == gradients[1, 3] == 0


def test_a_row_sees_its_range_only() -> None:
    weights, gradients = run(replace(NODE, low=Constant(0), high=Constant(1)))
    assert np.allclose(weights, [[1, 0, 0, 0], [0, 1, 0, 0]] * np.exp([[0], [0]]))
    assert (gradients[:, 2:] == 0).all()


def test_a_row_that_saw_nothing_has_nothing() -> None:
    weights, gradients = run(NODE, lse=(-np.inf, 2.0))
    assert (weights[0] == 0).all()
    assert (gradients[0] == 0).all()


def test_a_softcap_bounds_and_flattens() -> None:
    weights, gradients = run(replace(NODE, softcap=Scalar(2.0)))
    bounded = np.tanh(np.array([1, 2, 3]) / 2)
    assert np.allclose(weights[0, :3], np.exp(2 * bounded - 1))
    assert np.allclose(gradients[0, :3], weights[0, :3] * [0, 1, 2] * (1 - bounded**2))


def test_slopes_fall_with_the_distance() -> None:
    weights, _ = run(replace(NODE, slope=window("slope", 0, 0), distance=Constant(-1)))
    assert np.allclose(weights[0, :3], np.exp(np.array([0.75, 2, 2.75]) - 1))


def test_text_is_read_back() -> None:
    whole = program(
        replace(NODE, low=Constant(0), high=Constant(1), softcap=Scalar(2.0), mask=window("slope"))
    )
    assert parse_program(print_program(whole)) == whole


def test_what_is_not_finite_becomes_nothing() -> None:
    node, values = Finite(window("scores", 0), Constant(5)), np.array([1, np.nan, -np.inf, 2, np.inf, np.nan])
    buffers = (Buffer("scores", F32, Space.ARGUMENT),)
    given = values.astype(np.float32)
    interpret(Program("p", (), (), buffers, (node,)), {}, {}, {"scores": given})
    assert np.array_equal(given, [1, 0, 0, 2, 0, np.nan], equal_nan=True)
    with pytest.raises(InvalidTileIr, match="adjacent"):
        verify(Program("p", (), (), buffers, (replace(node, values=window("scores", 0, 2)),)))


BROKEN = [
    (replace(NODE, gradients=window("gradients", 1, 4)), {}, "adjacent"),
    (NODE, {"delta": F64}, "one type"),
    (replace(NODE, low=Constant(0)), {}, "low and high"),
    (replace(NODE, slope=window("slope", 0, 0)), {}, "slope and distance"),
]


@pytest.mark.parametrize(("node", "dtypes", "reason"), BROKEN, ids=[reason for *_, reason in BROKEN])
def test_rules(node: SoftmaxGradient, dtypes: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidTileIr, match=reason):
        verify(program(node, **dtypes))
