"""`show_config`: what a bug report needs, without what a person would not publish."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tilewright as tw
from tilewright.configuration import PACKAGES, library_versions, without_home
from tilewright.tools.cli import app


def test_it_has_what_a_bug_report_needs() -> None:
    found = tw.show_config()
    assert {"python", "system", "tilewright", "llvmlite", "numpy", "llvm", "numpy blas"} <= set(
        found.versions
    )
    assert found.versions["numpy"] == np.__version__
    assert {"cpu", "row", "core", "caches", "cores", "threads", "tuned"} <= set(found.machine)
    assert tw.machine().isa.name in found.machine["row"]
    assert set(found.state) == {"repeated calls", "NumPy's products", "thread pool", "object cache"}
    assert all(
        isinstance(text, str) and "\n" not in text
        for part in asdict(found).values()
        for text in part.values()
    )


def test_it_fits_a_screen_and_prints_itself() -> None:
    text = str(tw.show_config())
    assert repr(tw.show_config()).splitlines()[0] == "[versions]"
    assert len(text.splitlines()) <= 50
    assert [line for line in text.splitlines() if line.startswith("[")] == [
        *("[versions]", "[machine]", "[settings]", "[state]")
    ]


def test_settings_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_L2_BYTES", "1M")
    monkeypatch.setenv("TILEWRIGHT_SPIN_US", "20")
    found = tw.show_config()
    assert found.settings["TILEWRIGHT_L2_BYTES"] == str(1 << 20)
    assert found.settings["TILEWRIGHT_SPIN_US"] == "20.0"
    assert "TILEWRIGHT_L1_BYTES" not in found.settings
    assert "l2 size" in found.machine["changed by settings"]
    assert "1024 KiB" in found.machine["caches"]


def test_the_home_directory_is_not_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "objects"))
    found = tw.show_config()
    assert found.state["object cache"] == "~/objects: 0 objects, 0 bytes"
    assert found.settings["TILEWRIGHT_CACHE_DIR"] == "~/objects"
    assert str(tmp_path) not in str(found)
    assert without_home(Path("/elsewhere/objects")) == str(Path("/elsewhere/objects"))


def test_the_cache_may_be_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    assert tw.show_config().state["object cache"] == "off"


def test_it_knows_of_an_installation() -> None:
    with tw.installed():
        assert "tilewright.install" in tw.show_config().state["NumPy's products"]
    assert tw.show_config().state["NumPy's products"] == "NumPy's own"


def test_packages_that_are_missing_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.configuration.PACKAGES", (*PACKAGES, "no-such-package-of-anyone"))
    assert "no-such-package-of-anyone" not in library_versions()


def test_notebooks_show_a_table() -> None:
    text = tw.show_config()._repr_html_()
    assert text.count("<table") == 4
    assert "<script" not in text


def test_the_command_line_prints_it() -> None:
    result = CliRunner().invoke(app, ["info", "--config"], catch_exceptions=False)
    assert result.stdout.startswith("[versions]\n")
    found = json.loads(CliRunner().invoke(app, ["info", "--config", "--json"], catch_exceptions=False).stdout)
    assert list(found) == ["versions", "machine", "settings", "state"]


def test_it_compiles_nothing() -> None:
    question = (
        "import sys, tilewright as tw; tw.show_config(); "
        "sys.exit('tilewright.compiler.pipeline' in sys.modules or 'torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", question], check=True)
