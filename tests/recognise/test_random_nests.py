"""Loop nests drawn at random compute the same when those that are products are replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from shares import EVERY_TEST_RUNS

from recognise.fuzz import SmallSteps, wrong
from recognise.toolchains import CLANG


@pytest.mark.skipif(CLANG.program is None, reason="clang is not installed")
def test_random_nests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nests = 24 if EVERY_TEST_RUNS else 8
    found, became = wrong(1, nests, tmp_path)
    assert found == []
    assert sum(count for what, count in became.items() if "->" in what) >= nests // 2


@pytest.mark.skipif(CLANG.program is None, reason="clang is not installed")
def test_random_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nests = 40 if EVERY_TEST_RUNS else 8
    found, _ = wrong(4, nests, tmp_path, weights=(0, 0, 0, 0, 0, 1), units=SmallSteps())
    assert found == []
