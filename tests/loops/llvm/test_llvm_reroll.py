"""Copies of a loop that are one loop, and those that are not: each change makes them something else."""

from __future__ import annotations

import pytest

from tilewright.loops.llvm.loops import nests
from tilewright.loops.llvm.module import read_module
from tilewright.loops.nests.nest import MatrixProduct, Refusal
from tilewright.loops.nests.recognise import recognise

#: y += A*x: in vectors of 4, with a loop for the rest.
VECTORS = """
define void @f(ptr noalias %y, ptr %a, ptr %x, i64 %m, i32 %k) {
entry:
  %n = zext i32 %k to i64
  %short = icmp ult i32 %k, 4
  %most = and i64 %n, 4294967292
  %done = icmp eq i64 %most, %n
  %some = icmp sgt i32 %k, 0
  br i1 %some, label %rows, label %exit

rows:
  %i = phi i64 [ 0, %entry ], [ %i.next, %behind ]
  %start = mul nsw i64 %i, %n
  %row = getelementptr inbounds float, ptr %a, i64 %start
  %place = getelementptr inbounds float, ptr %y, i64 %i
  %before = load float, ptr %place, align 4
  br i1 %short, label %rest, label %wide

wide:
  %zeros = insertelement <4 x float> zeroinitializer, float %before, i64 0
  br label %body

body:
  %p = phi i64 [ 0, %wide ], [ %p.next, %body ]
  %sums = phi <4 x float> [ %zeros, %wide ], [ %sums.next, %body ]
  %ap = getelementptr inbounds float, ptr %row, i64 %p
  %av = load <4 x float>, ptr %ap, align 4
  %xp = getelementptr inbounds float, ptr %x, i64 %p
  %xv = load <4 x float>, ptr %xp, align 4
  %products = fmul fast <4 x float> %xv, %av
  %sums.next = fadd fast <4 x float> %sums, %products
  %p.next = add nuw i64 %p, 4
  %end = icmp eq i64 %p.next, %most
  br i1 %end, label %middle, label %body

middle:
  %sum = call fast float @llvm.vector.reduce.fadd.v4f32(float 0.000000e+00, <4 x float> %sums.next)
  br i1 %done, label %behind, label %rest

rest:
  %q.start = phi i64 [ 0, %rows ], [ %most, %middle ]
  %s.start = phi float [ %before, %rows ], [ %sum, %middle ]
  br label %scalar

scalar:
  %q = phi i64 [ %q.start, %rest ], [ %q.next, %scalar ]
  %s = phi float [ %s.start, %rest ], [ %s.next, %scalar ]
  %aq = getelementptr inbounds float, ptr %row, i64 %q
  %as = load float, ptr %aq, align 4
  %xq = getelementptr inbounds float, ptr %x, i64 %q
  %xs = load float, ptr %xq, align 4
  %product = fmul fast float %as, %xs
  %s.next = fadd fast float %s, %product
  %q.next = add nuw nsw i64 %q, 1
  %last = icmp eq i64 %q.next, %n
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
"""

#: The same in two copies, with a third one for the rest.
UNROLLED = """
define void @f(ptr noalias %y, ptr %a, ptr %x, i64 %m, i32 %k) {
entry:
  %n = zext i32 %k to i64
  %one = icmp eq i32 %k, 1
  %most = and i64 %n, 4294967294
  %odd = and i64 %n, 1
  %even = icmp eq i64 %odd, 0
  %some = icmp sgt i32 %k, 0
  br i1 %some, label %rows, label %exit

rows:
  %i = phi i64 [ 0, %entry ], [ %i.next, %behind ]
  %start = mul nsw i64 %i, %n
  %row = getelementptr inbounds float, ptr %a, i64 %start
  %place = getelementptr inbounds float, ptr %y, i64 %i
  %before = load float, ptr %place, align 4
  br i1 %one, label %middle, label %body

body:
  %p = phi i64 [ 0, %rows ], [ %p.next, %body ]
  %turn = phi i64 [ 0, %rows ], [ %turn.next, %body ]
  %s0 = phi float [ %before, %rows ], [ %s2, %body ]
  %a0 = getelementptr inbounds float, ptr %row, i64 %p
  %av0 = load float, ptr %a0, align 4
  %x0 = getelementptr inbounds float, ptr %x, i64 %p
  %xv0 = load float, ptr %x0, align 4
  %t0 = fmul fast float %xv0, %av0
  %s1 = fadd fast float %s0, %t0
  %p1 = or disjoint i64 %p, 1
  %a1 = getelementptr inbounds float, ptr %row, i64 %p1
  %av1 = load float, ptr %a1, align 4
  %x1 = getelementptr inbounds float, ptr %x, i64 %p1
  %xv1 = load float, ptr %x1, align 4
  %t1 = fmul fast float %xv1, %av1
  %s2 = fadd fast float %s1, %t1
  %p.next = add nuw i64 %p, 2
  %turn.next = add i64 %turn, 2
  %end = icmp eq i64 %turn.next, %most
  br i1 %end, label %middle, label %body

middle:
  %q = phi i64 [ 0, %rows ], [ %p.next, %body ]
  %s = phi float [ %before, %rows ], [ %s2, %body ]
  %none = phi float [ poison, %rows ], [ %s2, %body ]
  br i1 %even, label %behind, label %rest

rest:
  %a2 = getelementptr inbounds float, ptr %row, i64 %q
  %av2 = load float, ptr %a2, align 4
  %x2 = getelementptr inbounds float, ptr %x, i64 %q
  %xv2 = load float, ptr %x2, align 4
  %t2 = fmul fast float %xv2, %av2
  %s3 = fadd fast float %s, %t2
  br label %behind

behind:
  %total = phi float [ %none, %middle ], [ %s3, %rest ]
  store float %total, ptr %place, align 4
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %m
  br i1 %more, label %rows, label %exit

exit:
  ret void
}
"""

#: Changes after which copies are not one loop any more, or no product.
CHANGES = {
    VECTORS: [
        ("i64 %n, 4294967292", "i64 %n, 4294967288"),
        ("ult i32 %k, 4", "ult i32 %k, 3"),
        ("add nuw i64 %p, 4", "add nuw i64 %p, 8"),
        ("add nuw i64 %p, 4", "add nuw i64 %p, 2"),
        ("[ 0, %rows ], [ %most, %middle ]", "[ 0, %rows ], [ 0, %middle ]"),
        ("[ 0, %rows ], [ %most, %middle ]", "[ 1, %rows ], [ %most, %middle ]"),
        ("[ %before, %rows ], [ %sum, %middle ]", "[ %before, %rows ], [ %before, %middle ]"),
        ("[ %before, %rows ], [ %sum, %middle ]", "[ 0.0, %rows ], [ %sum, %middle ]"),
        ("float %before, i64 0", "float 1.0, i64 0"),
        ("zeroinitializer, float %before", "splat (float 1.0), float %before"),
        ("%sums, %products", "%products, %products"),
        ("fadd fast <4 x float> %sums", "fadd <4 x float> %sums"),
        ("fadd fast <4 x float> %sums", "fsub fast <4 x float> %sums"),
        ("call fast float", "call float"),
        ("(float 0.000000e+00, <4", "(float 1.0, <4"),
        ("float, ptr %x, i64 %p\n", "float, ptr %a, i64 %p\n"),
        ("float, ptr %x, i64 %q\n", "double, ptr %x, i64 %q\n"),
        ("float, ptr %row, i64 %q\n", "float, ptr %a, i64 %q\n"),
        ("fmul fast float %as, %xs", "fmul fast float %as, %as"),
        ("%q.next, %n", "%q.next, %most"),
        ("br i1 %done, label %behind, label %rest", "br i1 %done, label %rest, label %behind"),
        ("[ %sum, %middle ], [ %s.next", "[ %before, %middle ], [ %s.next"),
        ("store float %total, ptr %place", "store volatile float %total, ptr %place"),
        ("load <4 x float>, ptr %ap", "load volatile <4 x float>, ptr %ap"),
        ("%products = fmul", "store <4 x float> %av, ptr %xp\n  %products = fmul"),
        (
            "%products = fmul fast <4 x float> %xv, %av",
            (
                "%w = shufflevector <4 x float> %xv, <4 x float> %xv, <4 x i32> "
                "<i32 1, i32 0, i32 3, i32 2>\n"
                "  %products = fmul fast <4 x float> %w, %av"
            ),
        ),
    ],
    UNROLLED: [
        ("i64 %n, 4294967294", "i64 %n, 4294967292"),
        ("and i64 %n, 1", "and i64 %n, 3"),
        ("eq i64 %odd, 0", "ne i64 %odd, 0"),
        ("eq i32 %k, 1", "ult i32 %k, 1"),
        ("or disjoint i64 %p, 1", "add i64 %p, 2"),
        ("add nuw i64 %p, 2", "add nuw i64 %p, 1"),
        ("add i64 %turn, 2", "add i64 %turn, 1"),
        ("phi i64 [ 0, %rows ], [ %p.next, %body ]\n  %s =", "phi i64 [ 0, %rows ], [ %p, %body ]\n  %s ="),
        ("%none = phi float [ poison, %rows ], [ %s2", "%none = phi float [ poison, %rows ], [ %s1"),
        ("float %s1, %t1", "float %s0, %t1"),
        ("fadd fast float %s1, %t1", "fadd float %s1, %t1"),
        ("float %s, %t2", "float %before, %t2"),
        ("fadd fast float %s, %t2", "fsub fast float %s, %t2"),
        ("ptr %row, i64 %p1", "ptr %row, i64 %p"),
        ("ptr %x, i64 %q", "ptr %x, i64 %i"),
    ],
}


def product_of(text: str) -> MatrixProduct | Refusal:
    """The product of the only nest of a module, with the copies of its loops read as one."""
    module = read_module(text)
    (root,) = nests(module.functions["f"], module)
    found = root.read(rerolls=True)
    return found if isinstance(found, Refusal) else recognise(found.nest)


@pytest.mark.parametrize("text", CHANGES, ids=["vectors", "unrolled"])
def test_copies_are_one_loop(text: str) -> None:
    module = read_module(text)
    (root,) = nests(module.functions["f"], module)
    assert isinstance(root.read(), Refusal)
    found = product_of(text)
    assert isinstance(found, MatrixProduct)
    shown = [(one.role.name, str(one.extent), str(one.a), str(one.b)) for one in found.dimensions]
    assert shown == [("M", "%m:i64", "4*%k:i32", "0"), ("K", "%k:i32", "4", "4")]


@pytest.mark.parametrize(
    ("text", "old", "new"), [(text, *pair) for text, pairs in CHANGES.items() for pair in pairs]
)
def test_other_copies_are_not(text: str, old: str, new: str) -> None:
    assert text.count(old) == 1
    assert isinstance(product_of(text.replace(old, new)), Refusal)
