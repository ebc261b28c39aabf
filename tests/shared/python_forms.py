"""Nests of Python in all forms that `tilewright.accelerate` reads, for changes at random."""

from __future__ import annotations

from pathlib import Path

from nest_layouts import Row

_TEXT = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
#: The nests, beside those that are written with loops over ranges and elements alone.
PYTHON_FORMS = [Row("", "", text) for text in _TEXT.strip().split("\n\n")]
