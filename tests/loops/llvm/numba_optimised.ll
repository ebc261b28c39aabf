target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define noundef i32 @mm_acc(ptr noalias writeonly captures(none) %retptr, ptr noalias readnone captures(none) %excinfo, ptr readnone captures(none) %arg.a.0, ptr readnone captures(none) %arg.a.1, i64 %arg.a.2, i64 %arg.a.3, ptr readonly captures(none) %arg.a.4, i64 %arg.a.5.0, i64 %arg.a.5.1, i64 %arg.a.6.0, i64 %arg.a.6.1, ptr readnone captures(none) %arg.b.0, ptr readnone captures(none) %arg.b.1, i64 %arg.b.2, i64 %arg.b.3, ptr readonly captures(none) %arg.b.4, i64 %arg.b.5.0, i64 %arg.b.5.1, i64 %arg.b.6.0, i64 %arg.b.6.1, ptr readnone captures(none) %arg.c.0, ptr readnone captures(none) %arg.c.1, i64 %arg.c.2, i64 %arg.c.3, ptr writeonly captures(none) %arg.c.4, i64 %arg.c.5.0, i64 %arg.c.5.1, i64 %arg.c.6.0, i64 %arg.c.6.1, i64 %arg.n) local_unnamed_addr {
B0.endif:
  %.105 = icmp sgt i64 %arg.n, 0
  br i1 %.105, label %B36.endif.us.us.preheader, label %B178

B36.endif.us.us.preheader:
  br label %B36.endif.us.us

B36.endif.us.us:
  %.155238248.us.us = phi i64 [ %.162.us.us, %B68.B34.loopexit_crit_edge.split.us.us.us ], [ 0, %B36.endif.us.us.preheader ]
  %.479.us.us = mul i64 %.155238248.us.us, %arg.a.5.1
  %0 = getelementptr double, ptr %arg.a.4, i64 %.479.us.us
  %.603.us.us = mul i64 %.155238248.us.us, %arg.c.5.1
  %1 = getelementptr double, ptr %arg.c.4, i64 %.603.us.us
  br label %B70.endif.us.us.us

B70.endif.us.us.us:
  %.276222228.us.us.us = phi i64 [ 0, %B36.endif.us.us ], [ %.283.us.us.us, %B106.B160_crit_edge.us.us.us ]
  %invariant.gep.us.us.us = getelementptr double, ptr %arg.b.4, i64 %.276222228.us.us.us
  br label %B108.us.us.us

B108.us.us.us:
  %s.2.2216.us.us.us = phi double [ 0.000000e+00, %B70.endif.us.us.us ], [ %.544.us.us.us, %B108.us.us.us ]
  %.400212214.us.us.us = phi i64 [ 0, %B70.endif.us.us.us ], [ %.407.us.us.us, %B108.us.us.us ]
  %.407.us.us.us = add nuw nsw i64 %.400212214.us.us.us, 1
  %2 = getelementptr double, ptr %0, i64 %.400212214.us.us.us
  %.484.us.us.us = load double, ptr %2, align 8
  %.534.us.us.us = mul i64 %.400212214.us.us.us, %arg.b.5.1
  %gep220.us.us.us = getelementptr double, ptr %invariant.gep.us.us.us, i64 %.534.us.us.us
  %.539.us.us.us = load double, ptr %gep220.us.us.us, align 8
  %.542.us.us.us = fmul fast double %.539.us.us.us, %.484.us.us.us
  %.544.us.us.us = fadd fast double %.542.us.us.us, %s.2.2216.us.us.us
  %exitcond.not = icmp eq i64 %.407.us.us.us, %arg.n
  br i1 %exitcond.not, label %B106.B160_crit_edge.us.us.us, label %B108.us.us.us

B106.B160_crit_edge.us.us.us:
  %.544.us.us.us.lcssa = phi double [ %.544.us.us.us, %B108.us.us.us ]
  %.283.us.us.us = add nuw nsw i64 %.276222228.us.us.us, 1
  %3 = getelementptr double, ptr %1, i64 %.276222228.us.us.us
  store double %.544.us.us.us.lcssa, ptr %3, align 8
  %exitcond282.not = icmp eq i64 %.283.us.us.us, %arg.n
  br i1 %exitcond282.not, label %B68.B34.loopexit_crit_edge.split.us.us.us, label %B70.endif.us.us.us

B68.B34.loopexit_crit_edge.split.us.us.us:
  %.162.us.us = add nuw nsw i64 %.155238248.us.us, 1
  %exitcond283.not = icmp eq i64 %arg.n, %.162.us.us
  br i1 %exitcond283.not, label %B178.loopexit, label %B36.endif.us.us

B178.loopexit:
  br label %B178

B178:
  store ptr null, ptr %retptr, align 8
  ret i32 0
}


