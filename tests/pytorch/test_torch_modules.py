"""`tilewright.torch.optimize` and `restore`: results, weights that change, state, copies."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from typing import Any

import pytest
from tiers import exhaustive

torch = pytest.importorskip("torch")
nn = torch.nn

import tilewright.torch as twt  # noqa: E402
from tilewright.errors import InvalidChoice, InvalidOperand  # noqa: E402
from tilewright.torch.packed import Packed  # noqa: E402

#: Precisions, and the largest error that they may have.
PRECISIONS = {"f32": 1e-5, "bf16": 0.02, "i8-weights": 0.05, "i4-weights": 0.5, "i8-dynamic": 0.05}


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


@pytest.fixture
def packings(monkeypatch: pytest.MonkeyPatch) -> list[Packed]:
    """Weights, each as often as it is packed."""
    found: list[Packed] = []
    begin = Packed.__init__

    def watched(self: Packed, make: Any) -> None:
        def count(array: Any) -> Any:
            found.append(self)
            return make(array)

        begin(self, count)

    monkeypatch.setattr(Packed, "__init__", watched)
    return found


def network(width: int = 64) -> Any:
    return nn.Sequential(
        nn.Linear(width, 96), nn.GELU(), nn.LayerNorm(96), nn.Linear(96, width), nn.RMSNorm(width)
    )


def error(a: Any, b: Any) -> float:
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    return float((a - b).abs().max())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_results(precision: str) -> None:
    model, x = network(), torch.randn(5, 64)
    expected = model(x)
    assert twt.optimize(model, precision) is model
    assert type(model[0]).__name__ == "PackedLinear"
    found = error(model(x), expected)
    assert found < PRECISIONS[precision]
    assert precision == "f32" or found > 1e-6


def test_restore() -> None:
    model, x = network(), torch.randn(5, 64)
    before, expected = [dict(one.__dict__) for one in model.modules()], model(x)
    classes = [*map(type, model.modules())]
    twt.optimize(model)
    model(x)
    assert twt.restore(model) is model
    assert [*map(type, model.modules())] == classes
    assert [one.__dict__.keys() for one in model.modules()] == [one.keys() for one in before]
    assert torch.equal(model(x), expected)


def test_state_is_whole(packings: list[Packed]) -> None:
    model, other, x = network(), network(), torch.randn(5, 64)
    keys = list(model.state_dict())
    twt.optimize(model)
    model(x)
    assert list(model.state_dict()) == keys
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    assert len(packings) == 2
    model.load_state_dict(other.state_dict())
    assert error(model(x), other(x)) < 1e-5
    assert len(packings) == 4
    model(x)
    assert len(packings) == 4
    file.seek(0)
    model.load_state_dict(torch.load(file))
    assert len(packings) == 4
    other.load_state_dict(model.state_dict())
    assert error(model(x), other(x)) < 1e-5
    assert len(packings) == 6


def test_copies() -> None:
    model, x = twt.optimize(network()), torch.randn(5, 64)
    expected = model(x)
    assert torch.equal(copy.deepcopy(model)(x), expected)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x), expected)


def test_gradients_are_those_of_pytorch() -> None:
    model, x = network(), torch.randn(5, 64)
    with torch.enable_grad():
        expected = torch.autograd.grad(model(x).sum(), [*model.parameters()])
        twt.optimize(model)
        found = torch.autograd.grad(model(x).sum(), [*model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_weights_of_other_types() -> None:
    model, x = network().double(), torch.randn(5, 64).double()
    expected = model(x)
    assert error(twt.optimize(model, "i8-weights")(x), expected) < 1e-12
    model.bfloat16()
    assert error(model(x.bfloat16()), expected.bfloat16()) < 0.1


def test_weights_of_inference_mode() -> None:
    with torch.inference_mode():
        model, x = network(), torch.randn(5, 64)
        expected = model(x)
        twt.optimize(model)
        assert error(model(x), expected) < 1e-5
        model[0].weight.mul_(2)
        assert error(model(x), twt.restore(model)(x)) < 1e-5


def attention_cases() -> dict[str, dict[str, Any]]:
    hidden = torch.zeros(2, 7, dtype=torch.bool)
    hidden[1, 5:] = True
    after = torch.ones(7, 7, dtype=torch.bool).triu(1)
    added = torch.zeros(7, 7).masked_fill(after, -torch.inf)
    return {
        "plain": {},
        "padding": {"key_padding_mask": hidden},
        "scores": {"attn_mask": after},
        "both": {"key_padding_mask": hidden, "attn_mask": after},
        "added": {"attn_mask": added},
        "heads": {"attn_mask": torch.randn(8, 7, 7)},
    }


@pytest.mark.parametrize("batch_first", [True, pytest.param(False, marks=exhaustive)])
@pytest.mark.parametrize("name", attention_cases())
def test_attention(name: str, *, batch_first: bool) -> None:
    options = {"need_weights": False, **attention_cases()[name]}
    module = nn.MultiheadAttention(64, 4, batch_first=batch_first).eval()
    nn.init.normal_(module.in_proj_bias)
    x = torch.randn(2, 7, 64) if batch_first else torch.randn(7, 2, 64)
    other = torch.randn_like(x)
    expected = [module(x, x, x, **options)[0], module(x, other, other, **options)[0]]
    twt.optimize(module)
    assert error(module(x, x, x, **options)[0], expected[0]) < 1e-5
    assert error(module(x, other, other, **options)[0], expected[1]) < 1e-5


def test_projections_are_packed_once(packings: list[Packed]) -> None:
    module, x, y = nn.MultiheadAttention(64, 4).eval(), torch.randn(7, 2, 64), torch.randn(5, 2, 64)
    twt.optimize(module)
    for _ in range(2):
        module(x, x, x, need_weights=False)
        module(x, y, y, need_weights=False)
        assert len(packings) == 5  # Q, K and V together and each, and the output


def test_weights_of_attention_are_pytorchs() -> None:
    module, x = nn.MultiheadAttention(64, 4).eval(), torch.randn(7, 2, 64)
    expected = module(x, x, x)
    for a, b in zip(twt.optimize(module)(x, x, x), expected, strict=True):
        assert error(a, b) < 1e-5


@pytest.mark.parametrize("norm_first", [True, False])
def test_encoders(*, norm_first: bool) -> None:
    """Their fused path in PyTorch would read the weights of the layers."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, activation="gelu", norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2).eval()
    x, hidden = torch.randn(2, 7, 64), attention_cases()["padding"]["key_padding_mask"]
    expected = model(x), model(x, src_key_padding_mask=hidden)
    twt.optimize(model)
    assert error(model(x), expected[0]) < 1e-5
    assert error(model(x, src_key_padding_mask=hidden)[~hidden], expected[1][~hidden]) < 1e-5
    twt.restore(model)
    assert model.use_nested_tensor == nn.TransformerEncoder(layer, 2).use_nested_tensor
    assert error(model(x), expected[0]) < 1e-6


@pytest.mark.parametrize("precision", ["f32", "i8-weights"])
def test_under_dynamo(precision: str) -> None:
    model, x = network(), torch.randn(5, 64)
    twt.optimize(model, precision)
    expected = model(x)
    assert error(torch.compile(model, backend="tilewright")(x), expected) < 1e-5


def test_classes_of_programs_stay() -> None:
    class Doubled(nn.Linear):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return super().forward(x) * 2

    model = nn.Sequential(Doubled(4, 4))
    twt.optimize(model)
    assert type(model[0]) is Doubled


def test_wrong_arguments() -> None:
    with pytest.raises(InvalidChoice, match="i2"):
        twt.optimize(network(), "i2")
    for function in (twt.optimize, twt.restore):
        with pytest.raises(InvalidOperand, match=r"torch\.nn\.Module"):
            function([network()])
