"""What the package shows of itself: `dir`, completion, short representations."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from shares import looped

import tilewright as tw


def test_dir_is_the_public_names() -> None:
    shown = {name for name in dir(tw) if not name.startswith("__")}
    assert shown == {*tw.__all__, *tw._PACKAGES}
    assert {"__all__", "__doc__", "__name__", "__version__"} <= set(dir(tw))


def test_dir_has_what_is_loaded_late() -> None:
    question = (
        "import tilewright as tw, sys; "
        "assert 'PackedMatrix' not in vars(tw); "
        "print(sorted({'Kernel', 'PackedMatrix', 'QuantizedRows'} - set(dir(tw))))"
    )
    done = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_type_checkers_see_the_table_of_names() -> None:
    """Every public name has a row that says which module defines it, and an import for type checkers."""
    tree = ast.parse(Path(tw.__file__).read_text(encoding="utf-8"))
    (shown,) = [
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for node in shown.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    packages = {name for name, module in seen.items() if module == "tilewright"}
    assert packages == set(tw._PACKAGES)
    seen = {name: module for name, module in seen.items() if name not in packages}
    assert seen == tw._HOMES
    assert sorted([*seen, "errors", "TilewrightError"]) == tw.__all__


@pytest.mark.parametrize(
    "imports",
    ["import tilewright.machine.host", "import tilewright.machine", "from tilewright.machine import catalog"],
)
def test_machine_is_the_function_whatever_is_imported(imports: str) -> None:
    question = f"import tilewright\n{imports}\nassert tilewright.machine().name == 'host'"
    for first in ("", f"{imports}\n"):
        subprocess.run([sys.executable, "-c", first + question], check=True)


def test_star_imports_bind_every_public_name() -> None:
    question = "from tilewright import *; import tilewright; print(set(tilewright.__all__) - set(globals()))"
    done = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_importing_the_package_loads_no_compiler() -> None:
    question = (
        "import sys, tilewright; "
        "sys.exit(any(name.startswith(('tilewright.compiler', 'tilewright.micro')) for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", question], check=True)


@looped("name", tw.__all__)
def test_every_public_name_exists(name: str) -> None:
    value = getattr(tw, name)
    assert not isinstance(value, ModuleType) or name == "errors"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Pakced'"):
        tw.Pakced  # type: ignore[attr-defined]  # noqa: B018


def test_the_machine_is_short() -> None:
    assert len(repr(tw.machine())) < 120
    assert tw.machine().isa.name in repr(tw.machine())


def texts(name: str) -> Iterator[str]:
    """What `help` shows of a public name: its own text and those of its members."""
    value = getattr(tw, name)
    yield inspect.getdoc(value) or ""
    if inspect.isclass(value):
        yield from (inspect.getdoc(member) or "" for _, member in inspect.getmembers(value))


@looped("name", tw.__all__)
def test_help_cites_what_a_reader_can_find(name: str) -> None:
    for text in texts(name):
        assert not re.search(r"\bseeds? 0|the seed's|source document", text)


def test_explain_cites_what_a_reader_can_find() -> None:
    a, b = np.ones((1000, 300)), np.ones((300, 2000))
    assert "seed 0" not in str(tw.explain(tw.matmul, a, b))
