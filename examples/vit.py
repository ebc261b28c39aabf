"""A vision transformer through `torch.compile(model, backend="tilewright")`, beside PyTorch's eager mode.

    python examples/vit.py --width 384 --layers 12

The model is that of Dosovitskiy et al. (ViT, ICLR 2021) with random weights, written with PyTorch's modules;
the default sizes are those of ViT-S/16 cut to four layers. It needs `pip install tilewright[torch]`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import tilewright as tw
import tilewright.torch as twt

IMAGE, PATCH, CLASSES = 224, 16, 1000


class VisionTransformer(nn.Module):  # type: ignore[misc]
    """Patches of an image, a class token, a pre-norm encoder, and a linear classifier."""

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, PATCH, PATCH)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (IMAGE // PATCH) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.classifier = nn.Linear(width, CLASSES)

    def forward(self, images: Any) -> Any:
        """Logits of the classes."""
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.first.expand(len(tokens), -1, -1), tokens], 1) + self.positions
        return self.classifier(self.encoder(tokens)[:, 0])


def milliseconds(model: Callable[[Any], Any], images: Any, repeat: int) -> float:
    """The median time of a call."""
    times = []
    for _ in range(repeat + 2):
        started = time.perf_counter()
        model(images)
        times.append(time.perf_counter() - started)
    return statistics.median(times[2:]) * 1000


def main() -> None:
    """Compile, compare, time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--precision", default="f32", help="of weights: f32, bf16, i8-weights, ...")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(tw.get_num_threads())
    model = VisionTransformer(options.width, options.layers, options.heads).eval()
    images = torch.randn(options.batch, 3, IMAGE, IMAGE)
    chosen = {"precision": options.precision}
    with torch.inference_mode():
        print(twt.explain(model, images, options=chosen))
        compiled = torch.compile(model, backend="tilewright", options=chosen)
        expected = model(images)
        error = float((compiled(images) - expected).abs().max() / expected.abs().max())
        print(f"largest difference from eager mode: {error:.1e} of the largest logit")
        eager_ms = milliseconds(model, images, options.repeat)
        compiled_ms = milliseconds(compiled, images, options.repeat)
    print(f"eager {eager_ms:.1f} ms, compiled {compiled_ms:.1f} ms: ratio {eager_ms / compiled_ms:.2f}")


if __name__ == "__main__":
    main()
