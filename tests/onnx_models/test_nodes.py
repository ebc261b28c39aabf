"""The node tests of the ONNX library, each from its first call to one of machine code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("onnx", "1.23")  # earlier versions expect other results of a few cases
pytest.importorskip("onnx.backend.test")

from node_cases import FAILING, NodeCase, array_of, compare, node_cases
from shares import EVERY_TEST_RUNS, cover, share
from support import graphs_by_python

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.onnx.operators.table import OPERATORS
from tilewright.onnx.source import FIRST_OPSET, LAST_OPSET

#: Calls of each case in `make test-all`: the second one and the third repeat a recording.
CALLS = 3


PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "onnx.md"


def test_the_page_lists_every_operator() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## Operators")[2].partition("**Python in")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    known = [f"{domain}:{name}" if domain else name for domain, name in OPERATORS]
    assert sorted(listed) == sorted(known)
    assert f"Operator sets {FIRST_OPSET} to {LAST_OPSET} of ONNX" in PAGE.read_text(encoding="utf-8")


def chosen(cases: list[NodeCase]) -> list[NodeCase]:
    """All cases in `make test-all`; else one in twelve, and as many more as have each operator once."""
    if EVERY_TEST_RUNS:
        return cases
    plain = [one for one in cases if not one.expanded]
    known = {number: one.operators for number, one in enumerate(plain) if one.name not in FAILING}
    return [plain[number] for number in sorted({*cover(known), *share(range(len(plain)), 12)})]


def run(case: NodeCase, calls: int) -> None:
    prepared = tw.onnx.prepare(case.model)
    for inputs, expected in case.data_sets:
        first = None
        for _ in range(calls):
            found = prepared.run([array_of(one).copy() for one in inputs])
            compare(found, expected, case)
            first = first or found
            assert [one.tobytes() for one in found] == [one.tobytes() for one in first]


def test_nodes() -> None:
    """At least 95 % of all cases of supported operators pass, and those that fail are known."""
    every = list(node_cases())
    cases, before = chosen(every), graphs_by_python()
    faults = {}
    for case in cases:
        try:
            run(case, CALLS if EVERY_TEST_RUNS else 2)
        except Exception as error:  # collected, so that one run shows all of them
            faults[case.name] = f"{type(error).__name__}: {error}"
    passed = f"{len(cases) - len(faults)} of {len(cases)} node tests (of {len(every)}) pass"
    print(f"{passed}; not: {', '.join(sorted(faults))}")  # noqa: T201 - `pytest -s` shows it
    new = [f"{name}: {text[:300]}" for name, text in faults.items() if name not in FAILING]
    assert not new, "\n".join(new)
    assert set(faults) == set(FAILING) & {case.name for case in cases}  # none that is said to fail passes
    assert len(FAILING) <= 0.05 * len(every)
    if native_entry_possible():  # no case is one that Python makes at every call
        assert graphs_by_python() == before
