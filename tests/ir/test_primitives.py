"""The table of primitives: each has a word and an emission of its own, and the emission exists."""

from __future__ import annotations

from tilewright.ir.nodes import Primitive
from tilewright.ir.primitives.registry import PRIMITIVES
from tilewright.micro.emission import emitter


def test_every_primitive_has_code_of_its_own() -> None:
    found = {word: emitter(kind.emission) for word, kind in PRIMITIVES.items()}
    assert len(set(found.values())) == len(PRIMITIVES), found


def test_every_primitive_has_a_word_and_a_meaning_of_its_own() -> None:
    assert all("word" in vars(kind) and "emission" in vars(kind) for kind in PRIMITIVES.values())
    assert all(kind.run is not Primitive.run for kind in PRIMITIVES.values())
