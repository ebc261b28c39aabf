"""Remarks in the formats of others: compilers' diagnostics, LLVM's optimisation records, SARIF."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

#: The pass that options such as -Rpass=REGEX name.
PASS = "tilewright"
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "replaced": "a loop nest was replaced by a product of matrices",
    "refused": "a loop nest was not replaced",
}


class Place(Protocol):
    """A source location: tilewright.loops.nests.nest.Where."""

    @property
    def function(self) -> str:
        """The function's name."""

    @property
    def line(self) -> int | None:
        """The line, from 1."""

    @property
    def column(self) -> int | None:
        """The column, from 1."""

    @property
    def file(self) -> str:
        """The path, or ""."""


class RemarkOfNest(Protocol):
    """The outcome for a loop nest: tilewright.loops.opt.records.Remark."""

    @property
    def where(self) -> Place:
        """Location of the nest."""

    @property
    def replaced(self) -> bool:
        """Whether a product replaces it."""

    @property
    def text(self) -> str:
        """The product, or the reason."""


def lines(remarks: Sequence[RemarkOfNest]) -> str:
    """A line for each nest."""
    return "".join(f"{remark}\n" for remark in remarks)


def diagnostics(remarks: Sequence[RemarkOfNest], *, passed: bool, missed: bool) -> str:
    """Remarks as clang prints those of its passes for -Rpass=tilewright and -Rpass-missed=tilewright."""
    shown = []
    for remark in remarks:
        if not (passed if remark.replaced else missed):
            continue
        where = remark.where
        place = ":".join(
            str(part) for part in (where.file or where.function, where.line, where.column) if part
        )
        option = "-Rpass" if remark.replaced else "-Rpass-missed"
        shown.append(f"{place}: remark: {_sentence(remark)} [{option}={PASS}]\n")
    return "".join(shown)


def optimisation_record(remarks: Sequence[RemarkOfNest]) -> str:
    """Remarks as YAML of LLVM's optimisation records, which opt-viewer and llvm-opt-report read."""
    return "".join(map(_record, remarks))


def _record(remark: RemarkOfNest) -> str:
    where = remark.where
    kind, name = ("Passed", "Replaced") if remark.replaced else ("Missed", "NotReplaced")
    located = ""
    if where.line:
        column = where.column or 0
        located = (
            f"DebugLoc:        {{ File: {_quoted(where.file)}, Line: {where.line}, Column: {column} }}\n"
        )
    return (
        f"--- !{kind}\nPass:            {PASS}\nName:            {name}\n{located}"
        f"Function:        {_quoted(where.function)}\n"
        f"Args:\n  - String:          {_quoted(_sentence(remark))}\n...\n"
    )


def sarif(remarks: Sequence[RemarkOfNest]) -> str:
    """Remarks as SARIF 2.1.0, which editors and code hosts show beside the source."""
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    driver = {"name": PASS, "informationUri": "https://pypi.org/project/tilewright/", "rules": rules}
    run = {"tool": {"driver": driver}, "results": list(map(_result, remarks))}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(remark: RemarkOfNest) -> dict[str, Any]:
    where = remark.where
    location: dict[str, Any] = {"logicalLocations": [{"name": where.function, "kind": "function"}]}
    if where.file:
        physical: dict[str, Any] = {"artifactLocation": {"uri": where.file.replace("\\", "/")}}
        if where.line:
            physical["region"] = {"startLine": where.line}
            if where.column:
                physical["region"]["startColumn"] = where.column
        location["physicalLocation"] = physical
    return {
        "ruleId": "replaced" if remark.replaced else "refused",
        "level": "note",
        "message": {"text": _sentence(remark)},
        "locations": [location],
    }


def _sentence(remark: RemarkOfNest) -> str:
    if remark.replaced:
        return f"loop nest replaced: {remark.text}"
    return f"loop nest not replaced, since it {remark.text}"


def _quoted(text: str) -> str:
    """A string of YAML in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def formatted(remarks: Sequence[RemarkOfNest], suffix: str) -> str:
    """Remarks in the format of a file's suffix: .yaml and .yml, .sarif, or lines of text."""
    formats = {".yaml": optimisation_record, ".yml": optimisation_record, ".sarif": sarif}
    return formats.get(suffix, lines)(remarks)
