"""Models of `transformers` with random weights: compiled, and with attention by its registry."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tiers import exhaustive

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tilewright.torch as twt  # noqa: E402
import tilewright.torch.transformers as tilewright_transformers  # noqa: E402
from tilewright.errors import AttentionWithout  # noqa: E402

#: Sizes that most configurations name so.
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 50,
    "max_position_embeddings": 32,
}


def tokens(batch: int = 2, length: int = 10) -> Any:
    return torch.randint(0, 50, (batch, length))


def bert() -> tuple[Any, dict[str, Any]]:
    seen = torch.tensor([[1] * 10, [1] * 7 + [0] * 3])
    model = transformers.BertModel(transformers.BertConfig(**SMALL))
    return model, {"input_ids": tokens(), "attention_mask": seen}


def gpt2() -> tuple[Any, dict[str, Any]]:
    config = transformers.GPT2Config(
        n_embd=32, n_layer=1, n_head=4, vocab_size=50, n_positions=32, bos_token_id=1, eos_token_id=2
    )
    return transformers.GPT2LMHeadModel(config), {"input_ids": tokens(), "use_cache": False}


def llama() -> tuple[Any, dict[str, Any]]:
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, num_key_value_heads=2))
    return model, {"input_ids": tokens(), "use_cache": False}


def t5() -> tuple[Any, dict[str, Any]]:
    config = transformers.T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4, vocab_size=50)
    inputs = {"input_ids": tokens(), "decoder_input_ids": tokens(length=6), "use_cache": False}
    return transformers.T5ForConditionalGeneration(config), inputs


def vit() -> tuple[Any, dict[str, Any]]:
    sizes = {
        name: size for name, size in SMALL.items() if name not in ("vocab_size", "max_position_embeddings")
    }
    model = transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=16, patch_size=8))
    return model, {"pixel_values": torch.randn(2, 3, 16, 16)}


def whisper() -> tuple[Any, dict[str, Any]]:
    config = transformers.WhisperConfig(
        d_model=32,
        encoder_layers=1,
        encoder_attention_heads=4,
        encoder_ffn_dim=64,
        num_mel_bins=8,
        max_source_positions=20,
    )
    model = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    return model, {"input_features": torch.randn(2, 8, 40)}


MODELS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "bert": bert,
    "gpt2": gpt2,
    "llama": llama,
    "t5": t5,
    "vit": vit,
    "whisper": whisper,
}
#: What of a model stays with PyTorch.
LEFT = {
    "bert": {
        "aten.gather.default",
        "aten.index.Tensor",
        "aten._to_copy.default",
        "aten.expand.default",
        "aten.slice.Tensor",
    },
    "whisper": {"aten.convolution.default", "aten.gelu.default"},
}


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def close(found: Any, expected: Any) -> bool:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    return bool(torch.allclose(found, expected, rtol=1e-4, atol=1e-5))


@pytest.mark.parametrize(
    "name",
    ["bert", "vit", *(pytest.param(name, marks=exhaustive) for name in ("gpt2", "llama", "t5", "whisper"))],
)
def test_compiled(name: str) -> None:
    model, inputs = MODELS[name]()
    model.eval()
    expected = model(**inputs)[0]
    found = twt.explain(model, **inputs)
    assert len(found) == 1
    assert found[0].regions == 1
    left = {one.operation for one in found[0].nodes if one.region is None}
    assert left <= LEFT.get(name, set())
    run = torch.compile(model, backend="tilewright")
    for _ in range(2):
        assert close(run(**inputs)[0], expected)


@exhaustive
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_compiled_for_any_size(name: str) -> None:
    model, inputs = MODELS[name]()
    model.eval()
    inputs.pop("attention_mask", None)
    run = torch.compile(model, backend="tilewright", dynamic=True)
    run(**inputs)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for batch, length in ((3, 7), (2, 20), (4, 11)):
            inputs["input_ids"] = tokens(batch, length)
            assert close(run(**inputs)[0], model(**inputs)[0])


@pytest.mark.parametrize(
    "name",
    ["bert", "llama", "t5", *(pytest.param(name, marks=exhaustive) for name in ("gpt2", "vit", "whisper"))],
)
def test_attention_implementation(name: str) -> None:
    model, inputs = MODELS[name]()
    model.eval()
    model.set_attn_implementation("eager")
    expected = model(**inputs)[0]
    model.set_attn_implementation("tilewright")
    assert close(model(**inputs)[0], expected)


def test_generation_with_softcap_and_windows() -> None:
    config = transformers.Gemma2Config(**SMALL, num_key_value_heads=2, head_dim=8, sliding_window=4)
    model = transformers.Gemma2ForCausalLM(config).eval()
    prompt, found = tokens(1, 6), []
    for implementation in ("eager", "tilewright"):
        model.set_attn_implementation(implementation)
        found.append(model.generate(prompt, max_new_tokens=6, do_sample=False))
    assert torch.equal(*found)


def test_gradients_with_the_attention_implementation() -> None:
    model, inputs = llama()
    found = []
    with torch.enable_grad():
        for implementation in ("eager", "tilewright"):
            model.set_attn_implementation(implementation)
            found.append(torch.autograd.grad(model(**inputs)[0].square().sum(), [*model.parameters()]))
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b, rtol=1e-3, atol=1e-5)


def test_what_the_attention_implementation_lacks() -> None:
    x = torch.randn(1, 2, 3, 4)
    forward = tilewright_transformers.attention_forward
    for what, options in (
        ("sinks", {"s_aux": torch.zeros(2)}),
        ("softcap", {"dropout": 0.1, "softcap": 2.0}),
    ):
        with pytest.raises(AttentionWithout, match=what):
            forward(torch.nn.Identity(), x, x, x, None, **options)
    found, _ = forward(torch.nn.Identity(), x, x, x, None, dropout=1.0)
    assert torch.equal(found, torch.zeros_like(found))


# --- PyTorch's own function by its registry -------------------------------------------------------


def test_scaled_dot_product_attention() -> None:
    flash = pytest.importorskip("torch.nn.attention")
    if "tilewright" not in getattr(flash, "list_flash_attention_impls", list)():
        pytest.skip("this PyTorch has no registry of flash attention")
    operands = [torch.randn(2, 6, 4, 8).transpose(1, 2).requires_grad_() for _ in range(3)]
    hidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
    added = torch.zeros(6, 6).masked_fill(hidden, -math.inf)

    def run() -> list[Any]:
        found = []
        with torch.enable_grad():
            for options in (
                {},
                {"is_causal": True},
                {"attn_mask": added},
                {"attn_mask": ~hidden, "scale": 0.2},
            ):
                one = torch.nn.functional.scaled_dot_product_attention(*operands, **options)
                found += [one, *torch.autograd.grad(one.square().sum(), operands)]
        return found

    expected = run()
    flash.activate_flash_attention_impl("tilewright")
    try:
        found = run()
    finally:
        flash.restore_flash_attention_impl()
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    assert found[0].stride() == expected[0].stride()
    assert not all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(run(), expected, strict=True))
