"""Copies of a loop that gather and scatter elements, and changes that make them something else."""

from __future__ import annotations

import pytest

from tilewright.loops.llvm.loops import nests
from tilewright.loops.llvm.module import read_module
from tilewright.loops.nests.nest import MatrixProduct, Refusal
from tilewright.loops.nests.recognise import recognise

#: y += A*x with A by columns: its elements are gathered, in two vectors of 4.
GATHERS = """
define void @f(ptr noalias %y, ptr %a, ptr %x, i64 %m, i32 %k) {
entry:
  %n = zext i32 %k to i64
  %short = icmp ult i32 %k, 8
  %most = and i64 %n, 4294967288
  %done = icmp eq i64 %most, %n
  %one.m = insertelement <4 x i64> poison, i64 %m, i64 0
  %all.m = shufflevector <4 x i64> %one.m, <4 x i64> poison, <4 x i32> zeroinitializer
  %some = icmp sgt i32 %k, 0
  br i1 %some, label %rows, label %exit

rows:
  %i = phi i64 [ 0, %entry ], [ %i.next, %behind ]
  %column = getelementptr inbounds float, ptr %a, i64 %i
  %place = getelementptr inbounds float, ptr %y, i64 %i
  %before = load float, ptr %place, align 4
  br i1 %short, label %rest, label %wide

wide:
  %zeros = insertelement <4 x float> zeroinitializer, float %before, i64 0
  br label %body

body:
  %p = phi i64 [ 0, %wide ], [ %p.next, %body ]
  %places = phi <4 x i64> [ <i64 1, i64 2, i64 3, i64 4>, %wide ], [ %places.next, %body ]
  %sums = phi <4 x float> [ %zeros, %wide ], [ %sums.next, %body ]
  %more.sums = phi <4 x float> [ zeroinitializer, %wide ], [ %more.next, %body ]
  %now = add nsw <4 x i64> %places, splat (i64 -1)
  %then = add <4 x i64> %places, splat (i64 3)
  %far = mul nuw nsw <4 x i64> %now, %all.m
  %farther = mul nuw nsw <4 x i64> %then, %all.m
  %ap = getelementptr float, ptr %column, <4 x i64> %far
  %ap2 = getelementptr float, ptr %column, <4 x i64> %farther
  %av = GATHER(<4 x ptr> align 4 %ap, <4 x i1> splat (i1 true), <4 x float> poison)
  %av2 = GATHER(<4 x ptr> align 4 %ap2, <4 x i1> <i1 true, i1 true, i1 true, i1 true>, <4 x float> poison)
  %q = extractelement <4 x i64> %now, i64 0
  %xp = getelementptr inbounds float, ptr %x, i64 %q
  %xv = load <4 x float>, ptr %xp, align 4
  %xp2 = getelementptr i8, ptr %xp, i64 16
  %xv2 = load <4 x float>, ptr %xp2, align 4
  %products = fmul fast <4 x float> %xv, %av
  %products2 = fmul fast <4 x float> %xv2, %av2
  %sums.next = fadd fast <4 x float> %sums, %products
  %more.next = fadd fast <4 x float> %more.sums, %products2
  %p.next = add nuw i64 %p, 8
  %places.next = add <4 x i64> %places, splat (i64 8)
  %end = icmp eq i64 %p.next, %most
  br i1 %end, label %middle, label %body

middle:
  %both = fadd fast <4 x float> %sums.next, %more.next
  %sum = call fast float @llvm.vector.reduce.fadd.v4f32(float 0.000000e+00, <4 x float> %both)
  br i1 %done, label %behind, label %rest

rest:
  %r.start = phi i64 [ 0, %rows ], [ %most, %middle ]
  %s.start = phi float [ %before, %rows ], [ %sum, %middle ]
  br label %scalar

scalar:
  %r = phi i64 [ %r.start, %rest ], [ %r.next, %scalar ]
  %s = phi float [ %s.start, %rest ], [ %s.next, %scalar ]
  %step = mul i64 %r, %m
  %aq = getelementptr inbounds float, ptr %column, i64 %step
  %as = load float, ptr %aq, align 4
  %xq = getelementptr inbounds float, ptr %x, i64 %r
  %xs = load float, ptr %xq, align 4
  %product = fmul fast float %as, %xs
  %s.next = fadd fast float %s, %product
  %r.next = add nuw nsw i64 %r, 1
  %last = icmp eq i64 %r.next, %n
  br i1 %last, label %behind, label %scalar

behind:
  %total = phi float [ %sum, %middle ], [ %s.next, %scalar ]
  store float %total, ptr %place, align 4
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %m
  br i1 %more, label %rows, label %exit

exit:
  ret void
}

declare float @llvm.vector.reduce.fadd.v4f32(float, <4 x float>)
declare <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr>, <4 x i1>, <4 x float>)
"""

#: y += A*x with the loop over y inside, whose elements are 3 apart: they are gathered and scattered.
SCATTERS = """
define void @f(ptr noalias %y, ptr %a, ptr %x, i64 %m, i64 %k) {
entry:
  %short = icmp ult i64 %m, 4
  %most = and i64 %m, 9223372036854775804
  %done = icmp eq i64 %most, %m
  %some = icmp sgt i64 %m, 0
  br i1 %some, label %columns, label %exit

columns:
  %p = phi i64 [ 0, %entry ], [ %p.next, %behind ]
  %xp = getelementptr inbounds float, ptr %x, i64 %p
  %xs = load float, ptr %xp, align 4
  %start = mul nsw i64 %p, %m
  %column = getelementptr inbounds float, ptr %a, i64 %start
  br i1 %short, label %rest, label %wide

wide:
  %one.x = insertelement <4 x float> poison, float %xs, i64 0
  %all.x = shufflevector <4 x float> %one.x, <4 x float> poison, <4 x i32> zeroinitializer
  br label %body

body:
  %i = phi i64 [ 0, %wide ], [ %i.next, %body ]
  %places = phi <4 x i64> [ <i64 0, i64 1, i64 2, i64 3>, %wide ], [ %places.next, %body ]
  %ap = getelementptr inbounds float, ptr %column, i64 %i
  %av = load <4 x float>, ptr %ap, align 4
  %products = fmul fast <4 x float> %av, %all.x
  %yp = getelementptr inbounds [3 x float], ptr %y, <4 x i64> %places, i64 0
  %yv = GATHER(<4 x ptr> align 4 %yp, <4 x i1> splat (i1 true), <4 x float> poison)
  %sums = fadd fast <4 x float> %yv, %products
  SCATTER(<4 x float> %sums, <4 x ptr> align 4 %yp, <4 x i1> splat (i1 true))
  %i.next = add nuw i64 %i, 4
  %places.next = add nuw nsw <4 x i64> %places, splat (i64 4)
  %end = icmp eq i64 %i.next, %most
  br i1 %end, label %middle, label %body

middle:
  br i1 %done, label %behind, label %rest

rest:
  %r.start = phi i64 [ 0, %columns ], [ %most, %middle ]
  br label %scalar

scalar:
  %r = phi i64 [ %r.start, %rest ], [ %r.next, %scalar ]
  %aq = getelementptr inbounds float, ptr %column, i64 %r
  %as = load float, ptr %aq, align 4
  %product = fmul fast float %as, %xs
  %yq = getelementptr inbounds [3 x float], ptr %y, i64 %r, i64 0
  %ys = load float, ptr %yq, align 4
  %s = fadd fast float %ys, %product
  store float %s, ptr %yq, align 4
  %r.next = add nuw nsw i64 %r, 1
  %last = icmp eq i64 %r.next, %m
  br i1 %last, label %behind, label %scalar

behind:
  %p.next = add nuw nsw i64 %p, 1
  %more = icmp slt i64 %p.next, %k
  br i1 %more, label %columns, label %exit

exit:
  ret void
}

declare <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr>, <4 x i1>, <4 x float>)
declare void @llvm.masked.scatter.v4f32.v4p0(<4 x float>, <4 x ptr>, <4 x i1>)
"""

#: The short names above.
NAMES = {
    "GATHER(": "call <4 x float> @llvm.masked.gather.v4f32.v4p0(",
    "SCATTER(": "call void @llvm.masked.scatter.v4f32.v4p0(",
}

#: A mask that is not constant, as in loops without a scalar rest.
_TAIL = "%tail = icmp ult <4 x i64> %places, splat (i64 100)\n  "

#: Changes after which copies are not one loop any more, or no product.
CHANGES = {
    GATHERS: [
        # Lanes are left out.
        ("%ap, <4 x i1> splat (i1 true)", "%ap, <4 x i1> zeroinitializer"),
        ("<i1 true, i1 true, i1 true, i1 true>", "<i1 true, i1 true, i1 true, i1 false>"),
        ("<i1 true, i1 true, i1 true, i1 true>", "<i1 true, i1 true, i1 true, i1 poison>"),
        (
            "%av = GATHER(<4 x ptr> align 4 %ap, <4 x i1> splat (i1 true)",
            _TAIL + "%av = GATHER(<4 x ptr> align 4 %ap, <4 x i1> %tail",
        ),
        # Subscripts are others.
        ("<i64 1, i64 2, i64 3, i64 4>", "<i64 1, i64 2, i64 3, i64 5>"),
        ("<i64 1, i64 2, i64 3, i64 4>", "<i64 2, i64 1, i64 3, i64 4>"),
        ("<i64 1, i64 2, i64 3, i64 4>", "splat (i64 1)"),
        ("<i64 1, i64 2, i64 3, i64 4>", "<i64 0, i64 1, i64 2, i64 3>"),
        ("<i64 1, i64 2, i64 3, i64 4>", "<i64 poison, i64 2, i64 3, i64 4>"),
        ("%places, splat (i64 8)", "%places, splat (i64 4)"),
        ("%places, splat (i64 8)", "%places, <i64 8, i64 8, i64 8, i64 9>"),
        ("%places, splat (i64 8)", "%then, splat (i64 8)"),
        ("%places, splat (i64 3)", "%places, splat (i64 4)"),
        ("%places, splat (i64 3)", "%places, <i64 3, i64 3, i64 2, i64 3>"),
        ("%now, %all.m", "%then, %all.m"),
        ("%now, %all.m", "%now, splat (i64 7)"),
        (
            "i64> %one.m, <4 x i64> poison, <4 x i32> zeroinitializer",
            "i64> %one.m, <4 x i64> poison, <4 x i32> <i32 0, i32 0, i32 0, i32 1>",
        ),
        ("<4 x i64> %now, i64 0", "<4 x i64> %now, i64 1"),
        ("<4 x i64> %now, i64 0", "<4 x i64> %now, i64 %p"),
        # They are not affine.
        ("%now, %all.m", "%now, %now"),
        ("%far = mul nuw nsw", "%far = and"),
        (
            "%far = mul nuw nsw <4 x i64> %now, %all.m",
            "%far = load <4 x i64>, ptr %a",
        ),
        (
            "%ap = getelementptr float, ptr %column, <4 x i64> %far",
            (
                "%few = trunc <4 x i64> %far to <4 x i8>\n"
                "  %ap = getelementptr float, ptr %column, <4 x i8> %few"
            ),
        ),
        # They are used behind their loop.
        (
            "%both = fadd fast <4 x float> %sums.next, %more.next",
            (
                "%both = fadd fast <4 x float> %sums.next, %more.next\n"
                "  %back = extractelement <4 x i64> %places.next, i64 0\n"
                "  %xb = getelementptr float, ptr %x, i64 %back"
            ),
        ),
        # Elements are others, or of other memory.
        ("%ap = getelementptr float, ptr %column", "%ap = getelementptr float, ptr %x"),
        ("%ap = getelementptr float, ptr %column", "%ap = getelementptr double, ptr %column"),
        ("ptr %column, <4 x i64> %farther", "ptr %column, <4 x i64> %far"),
        ("%column = getelementptr inbounds float, ptr %a", "%column = getelementptr inbounds float, ptr %y"),
    ],
    SCATTERS: [
        (
            "%sums, <4 x ptr> align 4 %yp, <4 x i1> splat (i1 true)",
            "%sums, <4 x ptr> align 4 %yp, <4 x i1> <i1 true, i1 true, i1 false, i1 true>",
        ),
        ("(<4 x float> %sums, <4 x ptr> align 4 %yp", "(<4 x float> %products, <4 x ptr> align 4 %yp"),
        (
            "SCATTER(<4 x float> %sums, <4 x ptr> align 4 %yp, <4 x i1> splat (i1 true))",
            _TAIL + "SCATTER(<4 x float> %sums, <4 x ptr> align 4 %yp, <4 x i1> %tail)",
        ),
        ("<i64 0, i64 1, i64 2, i64 3>", "<i64 0, i64 1, i64 3, i64 2>"),
        ("<i64 0, i64 1, i64 2, i64 3>", "<i64 0, i64 1, i64 2, i64 2>"),
        ("%places, splat (i64 4)", "%places, splat (i64 3)"),
        ("[3 x float], ptr %y, <4 x i64>", "[2 x float], ptr %y, <4 x i64>"),
        ("<4 x i64> %places, i64 0", "<4 x i64> %places, i64 1"),
        ("ptr %y, <4 x i64>", "ptr %a, <4 x i64>"),
    ],
}


def product_of(text: str) -> MatrixProduct | Refusal:
    """The product of the only nest of a module, with the copies of its loops read as one."""
    for short, name in NAMES.items():
        text = text.replace(short, name)
    module = read_module(text)
    (root,) = nests(module.functions["f"], module)
    found = root.read(rerolls=True)
    return found if isinstance(found, Refusal) else recognise(found.nest)


@pytest.mark.parametrize(
    ("text", "k"), [(GATHERS, "%k:i32"), (SCATTERS, "%k:i64")], ids=["gathers", "scatters"]
)
def test_gathers_are_strided_loads(text: str, k: str) -> None:
    found = product_of(text)
    assert isinstance(found, MatrixProduct)
    shown = {(one.role.name, str(one.extent), str(one.a), str(one.b)) for one in found.dimensions}
    assert shown == {("M", "%m:i64", "4", "0"), ("K", k, "4*%m:i64", "4")}


@pytest.mark.parametrize(
    ("text", "old", "new"), [(text, *pair) for text, pairs in CHANGES.items() for pair in pairs]
)
def test_other_gathers_are_not(text: str, old: str, new: str) -> None:
    assert text.count(old) == 1
    assert isinstance(product_of(text.replace(old, new)), Refusal)
