"""What is worth a closer look: loops that may multiply elements, calls that may hide it."""

from __future__ import annotations

import pytest

from tilewright.loops.llvm.control_flow import Flow
from tilewright.loops.llvm.inlining import Calls
from tilewright.loops.llvm.module import ParsedModule, read_module
from tilewright.loops.llvm.prefilter import multiplies_elements


def loop_of(*lines: str) -> ParsedModule:
    """A function with one loop, in which some instructions are."""
    body = "\n".join(f"  {line}" for line in lines)
    return read_module(f"""
declare float @elsewhere(i32)

define float @inside(float %x, float %y) {{
  %z = fmul float %x, %y
  ret float %z
}}

define i32 @counts(i32 %x, i32 %y) {{
  %z = add i32 %x, %y
  ret i32 %z
}}

define void @f(ptr %a, float %alpha, i32 %n, i1 %c) {{
entry:
  %before = load float, ptr %a
  br label %outer

outer:
  %i = phi i32 [ 0, %entry ], [ %next, %behind ]
  br label %loop

loop:
  %carried = phi float [ %before, %outer ], [ %alpha, %loop ]
  %x = load float, ptr %a
  %k = load i16, ptr %a
{body}
  br i1 %c, label %loop, label %behind

behind:
  %next = add i32 %i, 1
  br i1 %c, label %outer, label %exit

exit:
  ret void
}}
""")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["%y = fmul float %x, %x"], True),
        (["%y = fmul fast float %x, %before"], True),
        (["%y = fmul float %x, %carried"], True),
        (["%y = fmul float %x, %alpha"], False),
        (["%y = fmul float %x, 2.0"], False),
        (["%y = fadd float %x, %x"], False),
        (["%d = fpext float %x to double",
          "%y = call double @llvm.fma.f64(double %d, double %d, double 0.0)"], True),
        (["%y = fmul float %x, %alpha",
          "%z = call float @llvm.fmuladd.f32(float %y, float %x, float %x)"], True),
        (["%e = call float @elsewhere(i32 0)", "%y = fmul float %e, %x"], True),
        (["%y = mul i32 %i, %n"], False),
        (["%w = sext i16 %k to i32", "%y = mul nsw i32 %w, %w"], True),
        (["%w = sext i16 %k to i32", "%y = mul nsw i32 %w, %i"], False),
        (["%b = zext i16 %k to i32", "%s = shl i32 %b, 16", "%y = bitcast i32 %s to float",
          "%z = fmul float %y, %y"], True),
    ],
)  # fmt: skip
def test_multiplies_elements(lines: list[str], expected: bool) -> None:
    function = loop_of(*lines).functions["f"]
    (loop,) = Flow(function).loops
    assert multiplies_elements(function, loop.blocks) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%y = call float @inside(float %x, float %x)", True),
        ("%y = tail call fast noundef float @inside(float %x, float %x)", True),
        ("%y = call float @elsewhere(i32 %n)", False),
        ("%y = call i32 @counts(i32 %n, i32 %n)", False),
        ("%y = fmul float %x, %x", False),
    ],
)
def test_calls_hide_products(line: str, expected: bool) -> None:
    assert Calls(loop_of(line)).hide_products == expected


def test_a_single_loop_hides_no_product() -> None:
    text = "\n".join(loop_of("%y = call float @inside(float %x, float %x)").lines)
    single = text.replace("  br i1 %c, label %outer, label %exit", "  br label %exit")
    assert not Calls(read_module(single)).hide_products
    loops = single.replace(
        "  %z = fmul float %x, %y",
        """  br label %again

again:
  %z = fmul float %x, %y
  br i1 true, label %again, label %back

back:""",
    )
    assert Calls(read_module(loops)).hide_products


def test_functions_that_call_themselves() -> None:
    text = "\n".join(loop_of("%y = call float @inside(float %x, float %x)").lines)
    again = text.replace("  %z = fmul", "  %w = call float @inside(float %x, float %y)\n  %z = fmul")
    assert Calls(read_module(again)).hide_products
