"""docs/reference/attention.md: its examples run, and the errors it names exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import errors

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "reference" / "attention.md").read_text(
    encoding="utf-8"
)


def test_its_examples_run() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(block, names)
    for name in ("out", "window", "masked", "biased", "packed", "paged", "dq", "dk", "dv"):
        assert np.isfinite(names[name]).all(), name
    whole = names["tw"].attention(*(names[x] for x in "qkv"))
    np.testing.assert_allclose(names["state"].out, whole, rtol=2e-6, atol=2e-6)
    assert not names["half"][:, :, 50:].any()
    np.testing.assert_allclose(
        names["packed"][:, :30], names["tw"].attention(*(names[x][:, :, :30] for x in "qkv"), causal=True)[0],
        rtol=2e-6, atol=2e-6,
    )  # fmt: skip


def test_the_errors_it_names_exist() -> None:
    table = PAGE[PAGE.index("## Errors") : PAGE.index("## How it is measured")]
    named = set(re.findall(r"`([A-Z]\w+)`", table))
    assert len(named) >= 15
    for name in named - {"ValueError", "TypeError", "IndexError"}:
        assert issubclass(getattr(errors, name), errors.TilewrightError)
