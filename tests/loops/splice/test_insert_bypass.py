"""Blocks put ahead of nests, in functions as LLVM prints them."""

from __future__ import annotations

from tilewright.loops.llvm.symbols import NestLocation
from tilewright.loops.splice.text import ExitPhi, insert_bypass, phis

CODE = ("%done = call i1 @product()", "br i1 %done, label %out, label %loop")


def spliced(text: str, place: NestLocation, leaving: dict[str, str] | None = None) -> str:
    return "\n".join(insert_bypass(text.splitlines(), place, "new", CODE, leaving or {}))


def test_new_block_stands_between_preheader_and_loop() -> None:
    before = """define void @f() {
entry:
  br label %loop, !dbg !4

loop:                                             ; preds = %loop, %entry
  %i = phi i64 [ 0, %entry ], [ %next, %loop ], !dbg !5
  %x = phi [2 x i8] [ zeroinitializer, %entry ], [ %x, %loop ]
  %next = add i64 %i, 1
  br i1 %c, label %loop, label %out

out:                                              ; preds = %loop
  %end = phi i64 [ %next, %loop ], !dbg !6
  ret void
}"""
    after = """define void @f() {
entry:
  br label %new, !dbg !4

new:
  %done = call i1 @product()
  br i1 %done, label %out, label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i64 [ 0, %new ], [ %next, %loop ], !dbg !5
  %x = phi [2 x i8] [ zeroinitializer, %new ], [ %x, %loop ]
  %next = add i64 %i, 1
  br i1 %c, label %loop, label %out

out:                                              ; preds = %loop
  %end = phi i64 [ %next, %loop ], [ %last, %new ], !dbg !6
  ret void
}"""
    assert spliced(before, NestLocation("f", "entry", "loop", "out"), {"%end": "%last"}) == after


def test_names_that_others_begin_with_stay() -> None:
    """Of numbered blocks, and of an entry that only branches know the number of."""
    before = """define void @f(i32 %0) {
  switch i32 %0, label %21 [
    i32 7, label %2
    i32 8, label %2x
  ]

2:                                                ; preds = %2, %1
  %3 = phi i32 [ 0, %1 ], [ 1, %2 ], [ 2, %12 ]
  br i1 true, label %2, label %21

"2 x":
  br label %21

21:                                               ; preds = %2, %1
  ret void
}"""
    lines = spliced(before, NestLocation("f", "1", "2", "21")).splitlines()
    assert lines[1:4] == ["  switch i32 %0, label %21 [", "    i32 7, label %new", "    i32 8, label %2x"]
    assert "  %3 = phi i32 [ 0, %new ], [ 1, %2 ], [ 2, %12 ]" in lines
    assert "  br i1 true, label %2, label %21" in lines


def test_phis_of_a_block() -> None:
    lines = ["a:", "  %x = phi <4 x float> [ %y, %b ]", '  %"z z" = phi ptr [ null, %b ]', "c:", "  ret void"]
    assert phis(lines, "a") == (ExitPhi("%x", "<4 x float>"), ExitPhi('%"z z"', "ptr"))
    assert phis(lines, "c") == ()
