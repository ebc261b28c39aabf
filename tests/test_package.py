"""What the package shows of itself: `dir`, completion, short representations."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import tilewright as tw


def test_dir_is_the_public_names() -> None:
    shown = {name for name in dir(tw) if not name.startswith("__")}
    assert shown == set(tw.__all__)
    assert {"__all__", "__doc__", "__name__", "__version__"} <= set(dir(tw))


def test_dir_has_what_is_loaded_late() -> None:
    question = (
        "import tilewright as tw, sys; "
        "assert 'PackedMatrix' not in vars(tw); "
        "print(sorted({'Kernel', 'PackedMatrix', 'QuantizedRows'} - set(dir(tw))))"
    )
    done = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", tw.__all__)
def test_every_public_name_exists(name: str) -> None:
    value = getattr(tw, name)
    assert not isinstance(value, ModuleType) or name == "errors"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Pakced'"):
        tw.Pakced  # noqa: B018


def test_the_machine_is_short() -> None:
    assert len(repr(tw.machine())) < 120
    assert tw.machine().isa.name in repr(tw.machine())


def texts(name: str) -> Iterator[str]:
    """What `help` shows of a public name: its own text and those of its members."""
    value = getattr(tw, name)
    yield inspect.getdoc(value) or ""
    if inspect.isclass(value):
        yield from (inspect.getdoc(member) or "" for _, member in inspect.getmembers(value))


@pytest.mark.parametrize("name", tw.__all__)
def test_help_cites_what_a_reader_can_find(name: str) -> None:
    for text in texts(name):
        assert not re.search(r"\bseeds? 0|the seed's|source document", text)


def test_explain_cites_what_a_reader_can_find() -> None:
    a, b = np.ones((1000, 300)), np.ones((300, 2000))
    assert "seed 0" not in str(tw.explain(tw.matmul, a, b))
