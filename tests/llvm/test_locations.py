"""Lines of assembly and the lines of LLVM IR that they were made of."""

from __future__ import annotations

import pytest
from tiers import exhaustive

import tilewright as tw
from tilewright.llvm.locations import instructions, locate, with_locations

KERNEL = tw.BatchReduceGemm(7, 5, 9, 2)
TARGETS = ["znver4", "neoverse-v2", "pwr10", "apple-m1", pytest.param("rva23", marks=exhaustive)]


@pytest.mark.parametrize("target", TARGETS)
def test_locations_change_no_instruction_and_point_at_instructions(target: str) -> None:
    kernel = tw.compile(KERNEL, target)
    located = locate(kernel.llvm_ir, kernel.name, kernel.machine)
    assert instructions("\n".join(located.lines)) == instructions(kernel.assembly)
    module = kernel.llvm_ir.splitlines()
    origins = {origin for origin in located.origins if origin}
    texts = [module[origin - 1] for origin in origins]
    assert all(text and not text.startswith(("target", ";", "declare", "}")) for text in texts)
    assert not [text for text in texts if text.endswith(":")]
    found = [line for line, origin in zip(located.lines, located.origins, strict=True) if origin]
    assert len(found) > 0.7 * sum(line.startswith("\t") and "\t." not in line for line in located.lines)


def test_a_multiply_add_comes_from_a_multiply_add() -> None:
    kernel = tw.compile(KERNEL, "znver4")
    located = locate(kernel.llvm_ir, kernel.name, kernel.machine)
    module = kernel.llvm_ir.splitlines()
    pairs = zip(located.lines, located.origins, strict=True)
    fused = [module[origin - 1] for line, origin in pairs if "vfmadd" in line]
    assert fused
    assert all("llvm.fma" in text for text in fused)


def test_every_instruction_has_its_own_line_as_location() -> None:
    module = "define void @f(i64 %n) nounwind {\nentry:\n%.1 = add i64 %n, 1\nret void\n}\n"
    lines = with_locations(module).splitlines()
    assert lines[0].endswith("!dbg !1048577 {")
    assert lines[2].endswith(", !dbg !1048579")
    found = next(line for line in lines if line.startswith("!1048579 ="))
    assert found.startswith("!1048579 = !DILocation(line: 3")
    assert lines[1] == "entry:"
