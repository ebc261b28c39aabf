"""Products that are found in stored LLVM IR of clang, flang and rustc."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from recognise.calls import calls
from recognise.findings import found_in, reasons
from recognise.stored import FOLDER, STORED
from tilewright.llvm.backends import initialize
from tilewright.llvm.canonical import shape_loops
from tilewright.loops.opt.records import ProductOptions
from tilewright.loops.opt.rewrite import replace_products

#: Calls that are not inlined hide what these do; programs are compiled with them inlined.
HIDDEN = {"forms.c": {"through_function"}}


@pytest.mark.parametrize("source", STORED)
def test_products_in_stored_ir(source: str) -> None:
    initialize()
    module = llvm.parse_assembly((FOLDER / f"{source}.ll").read_text(encoding="utf-8"))
    shape_loops(module, llvm.Target.from_triple(module.triple).create_target_machine())
    remarks = replace_products(
        str(module), ProductOptions(assume_reassociation=source.endswith(".rs"))
    ).remarks
    wrong = [
        f"{call.function}: found {found_in(remarks, call.function) or reasons(remarks, call.function)!r}"
        for call in calls(source)
        if call.verdict != "any" and found_in(remarks, call.function) != call.found
    ]
    assert [line for line in wrong if line.split(":")[0] not in HIDDEN.get(source, ())] == []


def test_stored_ir_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300 << 10
