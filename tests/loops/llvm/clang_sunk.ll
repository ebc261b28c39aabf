target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define void @reft(i32 noundef %m, i32 noundef %n, i32 noundef %k, double noundef nofpclass(nan inf) %alpha, ptr noundef readonly captures(none) %a, i32 noundef %lda, ptr noundef readonly captures(none) %b, i32 noundef %ldb, double noundef nofpclass(nan inf) %beta, ptr noundef captures(none) %c, i32 noundef %ldc) local_unnamed_addr {
entry:
  %cmp27 = icmp sgt i32 %n, 0
  br i1 %cmp27, label %for.cond1.preheader.lr.ph, label %for.cond.cleanup

for.cond1.preheader.lr.ph:
  %cmp225 = icmp sgt i32 %m, 0
  %cmp622 = icmp sgt i32 %k, 0
  %cmp15 = fcmp fast oeq double %beta, 0.000000e+00
  %0 = sext i32 %lda to i64
  %1 = sext i32 %ldb to i64
  %2 = sext i32 %ldc to i64
  %wide.trip.count46 = zext nneg i32 %n to i64
  %wide.trip.count38 = zext nneg i32 %m to i64
  %wide.trip.count = zext nneg i32 %k to i64
  br label %for.cond1.preheader

for.cond1.preheader:
  %indvars.iv40 = phi i64 [ 0, %for.cond1.preheader.lr.ph ], [ %indvars.iv.next41, %for.cond.cleanup3 ]
  br i1 %cmp225, label %for.cond5.preheader.lr.ph, label %for.cond.cleanup3

for.cond5.preheader.lr.ph:
  %3 = mul nsw i64 %indvars.iv40, %1
  %4 = mul nsw i64 %indvars.iv40, %2
  %invariant.gep48 = getelementptr double, ptr %b, i64 %3
  %invariant.gep50 = getelementptr double, ptr %c, i64 %4
  %invariant.gep52 = getelementptr double, ptr %c, i64 %4
  br label %for.cond5.preheader

for.cond.cleanup.loopexit:
  br label %for.cond.cleanup

for.cond.cleanup:
  ret void

for.cond5.preheader:
  %indvars.iv32 = phi i64 [ 0, %for.cond5.preheader.lr.ph ], [ %indvars.iv.next33, %if.end ]
  br i1 %cmp622, label %for.body8.lr.ph, label %for.cond.cleanup7

for.body8.lr.ph:
  %5 = mul nsw i64 %indvars.iv32, %0
  %invariant.gep = getelementptr double, ptr %a, i64 %5
  br label %for.body8

for.cond.cleanup3.loopexit:
  br label %for.cond.cleanup3

for.cond.cleanup3:
  %indvars.iv.next41 = add nuw nsw i64 %indvars.iv40, 1
  %exitcond47.not = icmp eq i64 %indvars.iv.next41, %wide.trip.count46
  br i1 %exitcond47.not, label %for.cond.cleanup.loopexit, label %for.cond1.preheader

for.cond.cleanup7.loopexit:
  %add14.lcssa = phi double [ %add14, %for.body8 ]
  %6 = fmul fast double %add14.lcssa, %alpha
  br label %for.cond.cleanup7

for.cond.cleanup7:
  %t.0.lcssa = phi double [ 0.000000e+00, %for.cond5.preheader ], [ %6, %for.cond.cleanup7.loopexit ]
  br i1 %cmp15, label %if.then, label %if.else

for.body8:
  %indvars.iv = phi i64 [ 0, %for.body8.lr.ph ], [ %indvars.iv.next, %for.body8 ]
  %t.023 = phi double [ 0.000000e+00, %for.body8.lr.ph ], [ %add14, %for.body8 ]
  %gep = getelementptr double, ptr %invariant.gep, i64 %indvars.iv
  %7 = load double, ptr %gep, align 8
  %gep49 = getelementptr double, ptr %invariant.gep48, i64 %indvars.iv
  %8 = load double, ptr %gep49, align 8
  %mul13 = fmul fast double %8, %7
  %add14 = fadd fast double %mul13, %t.023
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond.cleanup7.loopexit, label %for.body8

if.then:
  %gep53 = getelementptr double, ptr %invariant.gep52, i64 %indvars.iv32
  store double %t.0.lcssa, ptr %gep53, align 8
  br label %if.end

if.else:
  %gep51 = getelementptr double, ptr %invariant.gep50, i64 %indvars.iv32
  %9 = load double, ptr %gep51, align 8
  %mul26 = fmul fast double %9, %beta
  %add27 = fadd fast double %mul26, %t.0.lcssa
  store double %add27, ptr %gep51, align 8
  br label %if.end

if.end:
  %indvars.iv.next33 = add nuw nsw i64 %indvars.iv32, 1
  %exitcond39.not = icmp eq i64 %indvars.iv.next33, %wide.trip.count38
  br i1 %exitcond39.not, label %for.cond.cleanup3.loopexit, label %for.cond5.preheader
}



define void @itself(ptr noundef %t, ptr noundef readonly %a, i32 noundef %n) local_unnamed_addr {
entry:
  %cmp25 = icmp sgt i32 %n, 0
  br i1 %cmp25, label %for.cond1.preheader.lr.ph, label %for.cond.cleanup

for.cond1.preheader.lr.ph:
  %wide.trip.count33 = zext nneg i32 %n to i64
  %wide.trip.count = zext nneg i32 %n to i64
  br label %for.cond1.preheader

for.cond1.preheader:
  %indvars.iv29 = phi i64 [ 0, %for.cond1.preheader.lr.ph ], [ %indvars.iv.next30, %for.cond.cleanup3 ]
  %arrayidx9 = getelementptr inbounds i32, ptr %t, i64 %indvars.iv29
  %arrayidx9.promoted = load i32, ptr %arrayidx9, align 4
  %arrayidx.idx = mul i64 %indvars.iv29, 280
  %invariant.gep = getelementptr i8, ptr %a, i64 %arrayidx.idx
  br label %for.body4

for.cond.cleanup:
  ret void

for.cond.cleanup3:
  %indvars.iv.next30 = add nuw nsw i64 %indvars.iv29, 1
  %exitcond34.not = icmp eq i64 %indvars.iv.next30, %wide.trip.count33
  br i1 %exitcond34.not, label %for.cond.cleanup, label %for.cond1.preheader

for.body4:
  %indvars.iv = phi i64 [ 0, %for.cond1.preheader ], [ %indvars.iv.next, %for.body4 ]
  %add1024 = phi i32 [ %arrayidx9.promoted, %for.cond1.preheader ], [ %add10, %for.body4 ]
  %gep = getelementptr i32, ptr %invariant.gep, i64 %indvars.iv
  %0 = load i32, ptr %gep, align 4
  %arrayidx6 = getelementptr inbounds i32, ptr %t, i64 %indvars.iv
  %1 = load i32, ptr %arrayidx6, align 4
  %mul7 = mul nsw i32 %1, %0
  %add10 = add nsw i32 %add1024, %mul7
  store i32 %add10, ptr %arrayidx9, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond.cleanup3, label %for.body4
}

define void @twice(ptr noundef %t, ptr noundef writeonly %u, i32 noundef %n) local_unnamed_addr {
entry:
  %cmp25 = icmp sgt i32 %n, 0
  br i1 %cmp25, label %for.cond1.preheader.lr.ph, label %for.cond.cleanup

for.cond1.preheader.lr.ph:
  %wide.trip.count31 = zext nneg i32 %n to i64
  %wide.trip.count = zext nneg i32 %n to i64
  br label %for.cond1.preheader

for.cond1.preheader:
  %indvars.iv28 = phi i64 [ 0, %for.cond1.preheader.lr.ph ], [ %indvars.iv.next29, %for.cond.cleanup3 ]
  %arrayidx = getelementptr inbounds i32, ptr %t, i64 %indvars.iv28
  br label %for.body4

for.cond.cleanup:
  ret void

for.cond.cleanup3:
  %indvars.iv.next29 = add nuw nsw i64 %indvars.iv28, 1
  %exitcond32.not = icmp eq i64 %indvars.iv.next29, %wide.trip.count31
  br i1 %exitcond32.not, label %for.cond.cleanup, label %for.cond1.preheader

for.body4:
  %indvars.iv = phi i64 [ 0, %for.cond1.preheader ], [ %indvars.iv.next, %for.body4 ]
  store i32 0, ptr %arrayidx, align 4
  %arrayidx6 = getelementptr inbounds i32, ptr %t, i64 %indvars.iv
  %0 = load i32, ptr %arrayidx6, align 4
  %arrayidx8 = getelementptr inbounds i32, ptr %u, i64 %indvars.iv
  store i32 %0, ptr %arrayidx8, align 4
  store i32 1, ptr %arrayidx, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond.cleanup3, label %for.body4
}
