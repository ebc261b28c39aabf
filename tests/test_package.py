"""What the package shows of itself: `dir`, completion, short representations."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

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
