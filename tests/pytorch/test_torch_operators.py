"""Operators of PyTorch: their schemas, fake kernels and gradients, and public functions under Dynamo."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from shares import EVERY_TEST_RUNS
from tiers import exhaustive

torch = pytest.importorskip("torch")

import tilewright as tw  # noqa: E402
import tilewright.torch as twt  # noqa: E402
from tilewright.typing import ActivationName  # noqa: E402

LINEAR = "tilewright::linear"
ACTIVATIONS = (None, *get_args(ActivationName))


@pytest.fixture(autouse=True)
def seed() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def normal(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def wide(*shape: int) -> Any:
    return normal(*shape, dtype=torch.float64)


#: Operands of attention, and its other arguments.
PLAIN = (None, None, None, None, None, None)
UPPER_LEFT = (None, "upper_left", 0.3, None, None, None)
WINDOW = (None, "lower_right", None, 2, None, 5.0)


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        ("linear", lambda: (normal(2, 3, 8), normal(5, 8), normal(5), "gelu")),
        ("matmul", lambda: (normal(3, 1, 4, 5), normal(2, 5, 6))),
        ("attention", lambda: (normal(2, 4, 6, 8), normal(2, 2, 7, 8), normal(2, 2, 7, 8), *WINDOW)),
        pytest.param("linear", lambda: (wide(8), wide(5, 8), None, None), marks=exhaustive),
        pytest.param("matmul", lambda: (normal(5, 4).T, normal(6, 5).T), marks=exhaustive),
        pytest.param(
            "matmul",
            lambda: (normal(4, 5, dtype=torch.bfloat16), normal(5, 6, dtype=torch.bfloat16)),
            marks=exhaustive,
        ),
        pytest.param(
            "attention",
            lambda: (wide(2, 4, 6, 8), wide(2, 2, 7, 8), wide(2, 2, 7, 8), *UPPER_LEFT),
            marks=exhaustive,
        ),
        pytest.param(
            "attention", lambda: (normal(6, 8), normal(7, 8), normal(7, 8), *PLAIN), marks=exhaustive
        ),
        pytest.param(
            "attention",
            lambda: (
                *(normal(2, n, 4, 8).transpose(1, 2) for n in (6, 7, 7)),
                normal(1, 1, 6, 7),
                *PLAIN[1:],
            ),
            marks=exhaustive,
        ),
    ],
)
def test_opcheck(operator: str, arguments: Callable[[], tuple[Any, ...]]) -> None:
    torch.library.opcheck(getattr(torch.ops.tilewright, operator).default, arguments())


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_of_linear(activation: Any) -> None:
    def function(x: Any, weight: Any, bias: Any) -> Any:
        return twt.linear(x, weight, bias, activation)

    operands = wide(2, 3), wide(2, 3), wide(2)
    assert torch.autograd.gradcheck(function, operands)
    if activation == "silu" or EVERY_TEST_RUNS:
        assert torch.autograd.gradgradcheck(function, operands)


@pytest.mark.parametrize(
    "shapes", [((2, 1, 2, 3), (2, 3, 2)), ((3,), (3, 2)), ((2, 3), (3,)), ((3,), (3,))], ids=str
)
def test_gradients_of_matmul(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (wide(*shape) for shape in shapes)
    assert torch.allclose(twt.matmul(a, b), torch.matmul(a, b))
    assert torch.autograd.gradcheck(twt.matmul, (a, b))


EACH_OPTION = pytest.mark.parametrize(
    "options",
    [
        {},
        {"causal": True, "softcap": 1.5, "scale": 0.7, "window": (3, None)},
        pytest.param({"causal": "upper_left"}, marks=exhaustive),
        pytest.param({"window": (1, 1)}, marks=exhaustive),
    ],
    ids=str,
)


@EACH_OPTION
def test_gradients_of_attention(options: dict[str, Any]) -> None:
    """Of float64 by PyTorch's operations, against which those of the kernels are compared."""
    operands = wide(1, 4, 3, 4), wide(1, 2, 5, 4), wide(1, 2, 5, 3)
    assert torch.autograd.gradcheck(lambda q, k, v: twt.attention(q, k, v, **options), operands)
    single = [one.detach().float().requires_grad_() for one in operands]
    gradient = torch.randn(1, 4, 3, 3)
    found = torch.autograd.grad(twt.attention(*single, **options), single, gradient)
    expected = torch.autograd.grad(twt.attention(*operands, **options), operands, gradient.double())
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a.double(), b, atol=1e-5)


def test_gradients_of_masks() -> None:
    operands = wide(1, 2, 3, 4), wide(1, 2, 5, 4), wide(1, 2, 5, 3)
    added = wide(1, 1, 3, 5)
    assert torch.autograd.gradcheck(
        lambda q, k, v, mask: twt.attention(q, k, v, mask=mask, softcap=3.0), (*operands, added)
    )
    seen = torch.rand(1, 1, 3, 5) > 0.4
    seen[0, 0, 1] = False  # a query that sees no key
    assert torch.autograd.gradcheck(lambda q, k, v: twt.attention(q, k, v, mask=seen), operands)


def test_attention_is_that_of_pytorch() -> None:
    q, k, v = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 7, 8), torch.randn(2, 4, 7, 8)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(twt.attention(q, k, v, causal="upper_left"), expected, atol=1e-6)


# --- public functions under Dynamo ----------------------------------------------------------------


def used(x: Any) -> Any:
    q = x.reshape(1, 1, *x.shape)
    return tw.linear(x, x, activation="gelu") + tw.matmul(x, x) + tw.attention(q, q, q, causal=True)[0, 0]


@pytest.mark.parametrize("backend", ["aot_eager", "tilewright"])
def test_public_functions_become_operators(backend: str) -> None:
    x = torch.randn(4, 4)
    with torch.no_grad():
        expected = used(x)  # they have machine code from here on
        assert torch.allclose(torch.compile(used, backend=backend, fullgraph=True)(x), expected, atol=1e-6)
    y = x.clone().requires_grad_()
    torch.compile(used, backend=backend, fullgraph=True)(y).sum().backward()
    assert y.grad is not None


def test_operators_run_in_compiled_graphs() -> None:
    with torch.no_grad():
        found = twt.explain(used, torch.randn(4, 4))
    assert found[0].regions == 1
    assert found[0].converted == len(found[0].nodes)


PACKED: tw.PackedMatrix = tw.pack(np.eye(4, dtype=np.float32))
#: Calls that no operator makes.
OUTSIDE: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: tw.softmax(x, 0),
    "einsum": lambda x: tw.einsum("ij,kj->ik", x, x),
    "layer_norm": lambda x: tw.layer_norm(x, eps=1e-3),
    "out": lambda x: tw.matmul(x, x, out=torch.empty(4, 4)),
    "lse": lambda x: tw.attention(x, x, x, return_lse=True)[1],
    "packed": lambda x: tw.linear(x, PACKED),
    "array": lambda x: (
        torch.from_numpy(tw.matmul(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))) + x
    ),
    "explain": lambda x: x + len(str(tw.explain(tw.Gemm(4, 4, 4)))),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_other_calls_break_the_graph(name: str) -> None:
    function, x = OUTSIDE[name], torch.randn(4, 4)
    with torch.no_grad():
        expected = function(x) * 2
        assert torch.equal(torch.compile(lambda x: function(x) * 2, backend="eager")(x), expected)
        torch._dynamo.reset()
        with pytest.raises(torch._dynamo.exc.Unsupported, match=r"machine code of Tilewright|as skipped"):
            torch.compile(function, backend="eager", fullgraph=True)(x)


@exhaustive
def test_first_calls_under_dynamo() -> None:
    """In a process whose functions have no machine code yet, and without a warning."""
    program = (
        "import torch, tilewright as tw, tilewright.torch, warnings\n"
        "warnings.simplefilter('error', UserWarning)\n"
        "f = torch.compile(lambda x: tw.tanh(tw.linear(x, x)) + tw.softmax(x), backend='eager')\n"
        "with torch.no_grad():\n"
        "    x = torch.randn(4, 4)\n"
        "    assert torch.allclose(f(x), torch.tanh(x @ x.T) + torch.softmax(x, -1), atol=1e-5)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
