target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define void @s_mem(ptr noundef %c, ptr noundef %a, ptr noundef %b) {
entry:
  %0 = load i32, ptr %c, align 8
  %cmp20 = icmp sgt i32 %0, 0
  br i1 %cmp20, label %for.cond1.preheader.preheader, label %for.end30

for.cond1.preheader.preheader:
  br label %for.cond1.preheader

for.cond1.preheader:
  %i.021 = phi i32 [ %inc29, %for.inc28 ], [ 0, %for.cond1.preheader.preheader ]
  %cols = getelementptr inbounds nuw i8, ptr %c, i64 4
  %1 = load i32, ptr %cols, align 4
  %cmp218 = icmp sgt i32 %1, 0
  br i1 %cmp218, label %for.cond5.preheader.preheader, label %for.inc28

for.cond5.preheader.preheader:
  br label %for.cond5.preheader

for.cond5.preheader:
  %j.019 = phi i32 [ %inc26, %for.inc25 ], [ 0, %for.cond5.preheader.preheader ]
  %cols6 = getelementptr inbounds nuw i8, ptr %a, i64 4
  %2 = load i32, ptr %cols6, align 4
  %cmp716 = icmp sgt i32 %2, 0
  br i1 %cmp716, label %for.body9.preheader, label %for.inc25

for.body9.preheader:
  br label %for.body9

for.body9:
  %k.017 = phi i32 [ %inc, %for.body9 ], [ 0, %for.body9.preheader ]
  %data = getelementptr inbounds nuw i8, ptr %a, i64 8
  %3 = load ptr, ptr %data, align 8
  %cols10 = getelementptr inbounds nuw i8, ptr %a, i64 4
  %4 = load i32, ptr %cols10, align 4
  %mul = mul nsw i32 %i.021, %4
  %add = add nsw i32 %mul, %k.017
  %idxprom = sext i32 %add to i64
  %arrayidx = getelementptr inbounds float, ptr %3, i64 %idxprom
  %5 = load float, ptr %arrayidx, align 4
  %data11 = getelementptr inbounds nuw i8, ptr %b, i64 8
  %6 = load ptr, ptr %data11, align 8
  %cols12 = getelementptr inbounds nuw i8, ptr %b, i64 4
  %7 = load i32, ptr %cols12, align 4
  %mul13 = mul nsw i32 %k.017, %7
  %add14 = add nsw i32 %mul13, %j.019
  %idxprom15 = sext i32 %add14 to i64
  %arrayidx16 = getelementptr inbounds float, ptr %6, i64 %idxprom15
  %8 = load float, ptr %arrayidx16, align 4
  %mul17 = fmul fast float %5, %8
  %data18 = getelementptr inbounds nuw i8, ptr %c, i64 8
  %9 = load ptr, ptr %data18, align 8
  %cols19 = getelementptr inbounds nuw i8, ptr %c, i64 4
  %10 = load i32, ptr %cols19, align 4
  %mul20 = mul nsw i32 %i.021, %10
  %add21 = add nsw i32 %mul20, %j.019
  %idxprom22 = sext i32 %add21 to i64
  %arrayidx23 = getelementptr inbounds float, ptr %9, i64 %idxprom22
  %11 = load float, ptr %arrayidx23, align 4
  %add24 = fadd fast float %11, %mul17
  store float %add24, ptr %arrayidx23, align 4
  %inc = add nuw nsw i32 %k.017, 1
  %12 = load i32, ptr %cols6, align 4
  %cmp7 = icmp slt i32 %inc, %12
  br i1 %cmp7, label %for.body9, label %for.inc25.loopexit

for.inc25.loopexit:
  br label %for.inc25

for.inc25:
  %inc26 = add nuw nsw i32 %j.019, 1
  %13 = load i32, ptr %cols, align 4
  %cmp2 = icmp slt i32 %inc26, %13
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc28.loopexit

for.inc28.loopexit:
  br label %for.inc28

for.inc28:
  %inc29 = add nuw nsw i32 %i.021, 1
  %14 = load i32, ptr %c, align 8
  %cmp = icmp slt i32 %inc29, %14
  br i1 %cmp, label %for.cond1.preheader, label %for.end30.loopexit

for.end30.loopexit:
  br label %for.end30

for.end30:
  ret void
}

define void @dowhile(i32 noundef %n, ptr noundef %a, ptr noundef %b, ptr noundef %c) {
entry:
  br label %do.body

do.body:
  %i.0 = phi i32 [ 0, %entry ], [ %inc17, %do.cond18 ]
  br label %do.body1

do.body1:
  %j.0 = phi i32 [ 0, %do.body ], [ %inc13, %do.cond14 ]
  br label %do.body2

do.body2:
  %k.0 = phi i32 [ 0, %do.body1 ], [ %inc, %do.body2 ]
  %mul = mul nsw i32 %i.0, %n
  %add = add nsw i32 %mul, %k.0
  %idxprom = sext i32 %add to i64
  %arrayidx = getelementptr inbounds double, ptr %a, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %mul3 = mul nsw i32 %k.0, %n
  %add4 = add nsw i32 %mul3, %j.0
  %idxprom5 = sext i32 %add4 to i64
  %arrayidx6 = getelementptr inbounds double, ptr %b, i64 %idxprom5
  %1 = load double, ptr %arrayidx6, align 8
  %mul7 = fmul fast double %0, %1
  %mul8 = mul nsw i32 %i.0, %n
  %add9 = add nsw i32 %mul8, %j.0
  %idxprom10 = sext i32 %add9 to i64
  %arrayidx11 = getelementptr inbounds double, ptr %c, i64 %idxprom10
  %2 = load double, ptr %arrayidx11, align 8
  %add12 = fadd fast double %2, %mul7
  store double %add12, ptr %arrayidx11, align 8
  %inc = add nuw nsw i32 %k.0, 1
  %cmp = icmp slt i32 %inc, %n
  br i1 %cmp, label %do.body2, label %do.cond14

do.cond14:
  %inc13 = add nuw nsw i32 %j.0, 1
  %cmp15 = icmp slt i32 %inc13, %n
  br i1 %cmp15, label %do.body1, label %do.cond18

do.cond18:
  %inc17 = add nuw nsw i32 %i.0, 1
  %cmp19 = icmp slt i32 %inc17, %n
  br i1 %cmp19, label %do.body, label %do.end20

do.end20:
  ret void
}

define void @shorts(i16 noundef signext %n, ptr noundef %a, ptr noundef %b, ptr noundef %c) {
entry:
  %cmp21 = icmp sgt i16 %n, 0
  br i1 %cmp21, label %for.cond3.preheader.preheader, label %for.end41

for.cond3.preheader.preheader:
  br label %for.cond3.preheader

for.cond3.preheader:
  %i.022 = phi i16 [ %inc40, %for.inc39 ], [ 0, %for.cond3.preheader.preheader ]
  br label %for.cond10.preheader

for.cond10.preheader:
  %j.020 = phi i16 [ %inc37, %for.inc36 ], [ 0, %for.cond3.preheader ]
  br label %for.body16

for.body16:
  %k.018 = phi i16 [ %inc, %for.body16 ], [ 0, %for.cond10.preheader ]
  %conv17 = sext i16 %i.022 to i64
  %conv18 = zext nneg i16 %n to i64
  %mul = mul nsw i64 %conv17, %conv18
  %conv19 = sext i16 %k.018 to i64
  %add = add nsw i64 %mul, %conv19
  %sext = shl i64 %add, 32
  %0 = ashr exact i64 %sext, 29
  %arrayidx = getelementptr inbounds i8, ptr %a, i64 %0
  %1 = load double, ptr %arrayidx, align 8
  %conv20 = sext i16 %k.018 to i64
  %conv21 = zext nneg i16 %n to i64
  %mul22 = mul nsw i64 %conv20, %conv21
  %conv23 = sext i16 %j.020 to i64
  %add24 = add nsw i64 %mul22, %conv23
  %sext15 = shl i64 %add24, 32
  %2 = ashr exact i64 %sext15, 29
  %arrayidx26 = getelementptr inbounds i8, ptr %b, i64 %2
  %3 = load double, ptr %arrayidx26, align 8
  %mul27 = fmul fast double %1, %3
  %conv28 = sext i16 %i.022 to i64
  %conv29 = zext nneg i16 %n to i64
  %mul30 = mul nsw i64 %conv28, %conv29
  %conv31 = sext i16 %j.020 to i64
  %add32 = add nsw i64 %mul30, %conv31
  %sext16 = shl i64 %add32, 32
  %4 = ashr exact i64 %sext16, 29
  %arrayidx34 = getelementptr inbounds i8, ptr %c, i64 %4
  %5 = load double, ptr %arrayidx34, align 8
  %add35 = fadd fast double %5, %mul27
  store double %add35, ptr %arrayidx34, align 8
  %inc = add i16 %k.018, 1
  %cmp13 = icmp slt i16 %inc, %n
  br i1 %cmp13, label %for.body16, label %for.inc36

for.inc36:
  %inc37 = add i16 %j.020, 1
  %cmp6 = icmp slt i16 %inc37, %n
  br i1 %cmp6, label %for.cond10.preheader, label %for.inc39

for.inc39:
  %inc40 = add i16 %i.022, 1
  %cmp = icmp slt i16 %inc40, %n
  br i1 %cmp, label %for.cond3.preheader, label %for.end41.loopexit

for.end41.loopexit:
  br label %for.end41

for.end41:
  ret void
}

define void @row_memset(i32 noundef %m, i32 noundef %n, i32 noundef %k, ptr noundef %a, ptr noundef %b, ptr noundef %c) {
entry:
  %cmp21 = icmp sgt i32 %m, 0
  br i1 %cmp21, label %for.body.preheader, label %for.end28

for.body.preheader:
  br label %for.body

for.body:
  %i.022 = phi i32 [ %inc27, %for.inc26 ], [ 0, %for.body.preheader ]
  %mul = mul nsw i32 %i.022, %n
  %idx.ext = sext i32 %mul to i64
  %add.ptr = getelementptr inbounds float, ptr %c, i64 %idx.ext
  %conv = sext i32 %n to i64
  %mul1 = shl nsw i64 %conv, 2
  call void @llvm.memset.p0.i64(ptr align 4 %add.ptr, i8 0, i64 %mul1, i1 false)
  %cmp319 = icmp sgt i32 %k, 0
  br i1 %cmp319, label %for.cond7.preheader.preheader, label %for.inc26

for.cond7.preheader.preheader:
  br label %for.cond7.preheader

for.cond7.preheader:
  %p.020 = phi i32 [ %inc24, %for.inc23 ], [ 0, %for.cond7.preheader.preheader ]
  %cmp817 = icmp sgt i32 %n, 0
  br i1 %cmp817, label %for.body11.preheader, label %for.inc23

for.body11.preheader:
  br label %for.body11

for.body11:
  %j.018 = phi i32 [ %inc, %for.body11 ], [ 0, %for.body11.preheader ]
  %mul12 = mul nuw nsw i32 %i.022, %k
  %add = add nuw nsw i32 %mul12, %p.020
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul13 = mul nuw nsw i32 %p.020, %n
  %add14 = add nuw nsw i32 %mul13, %j.018
  %idxprom15 = zext nneg i32 %add14 to i64
  %arrayidx16 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom15
  %1 = load float, ptr %arrayidx16, align 4
  %mul17 = fmul fast float %0, %1
  %mul18 = mul nuw nsw i32 %i.022, %n
  %add19 = add nuw nsw i32 %mul18, %j.018
  %idxprom20 = zext nneg i32 %add19 to i64
  %arrayidx21 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom20
  %2 = load float, ptr %arrayidx21, align 4
  %add22 = fadd fast float %2, %mul17
  store float %add22, ptr %arrayidx21, align 4
  %inc = add nuw nsw i32 %j.018, 1
  %cmp8 = icmp slt i32 %inc, %n
  br i1 %cmp8, label %for.body11, label %for.inc23.loopexit

for.inc23.loopexit:
  br label %for.inc23

for.inc23:
  %inc24 = add nuw nsw i32 %p.020, 1
  %cmp3 = icmp slt i32 %inc24, %k
  br i1 %cmp3, label %for.cond7.preheader, label %for.inc26.loopexit

for.inc26.loopexit:
  br label %for.inc26

for.inc26:
  %inc27 = add nuw nsw i32 %i.022, 1
  %cmp = icmp slt i32 %inc27, %m
  br i1 %cmp, label %for.body, label %for.end28.loopexit

for.end28.loopexit:
  br label %for.end28

for.end28:
  ret void
}

define void @walk(i32 noundef %n, ptr noundef %a, ptr noundef %b, ptr noundef %c) {
entry:
  %cmp24 = icmp sgt i32 %n, 0
  br i1 %cmp24, label %for.cond1.preheader.preheader, label %for.end19

for.cond1.preheader.preheader:
  br label %for.cond1.preheader

for.cond1.preheader:
  %i.027 = phi i32 [ %inc16, %for.inc15 ], [ 0, %for.cond1.preheader.preheader ]
  %c.addr.026 = phi ptr [ %incdec.ptr13.lcssa, %for.inc15 ], [ %c, %for.cond1.preheader.preheader ]
  %a.addr.025 = phi ptr [ %add.ptr18, %for.inc15 ], [ %a, %for.cond1.preheader.preheader ]
  br label %for.cond5.preheader

for.cond5.preheader:
  %j.022 = phi i32 [ %inc11, %for.end ], [ 0, %for.cond1.preheader ]
  %bb.021 = phi ptr [ %incdec.ptr12, %for.end ], [ %b, %for.cond1.preheader ]
  %c.addr.120 = phi ptr [ %incdec.ptr13, %for.end ], [ %c.addr.026, %for.cond1.preheader ]
  br label %for.inc

for.inc:
  %k.018 = phi i32 [ %inc, %for.inc ], [ 0, %for.cond5.preheader ]
  %s.017 = phi float [ %add, %for.inc ], [ 0.000000e+00, %for.cond5.preheader ]
  %q.016 = phi ptr [ %add.ptr, %for.inc ], [ %bb.021, %for.cond5.preheader ]
  %p.015 = phi ptr [ %incdec.ptr, %for.inc ], [ %a.addr.025, %for.cond5.preheader ]
  %0 = load float, ptr %p.015, align 4
  %1 = load float, ptr %q.016, align 4
  %mul = fmul fast float %0, %1
  %add = fadd fast float %s.017, %mul
  %inc = add nuw nsw i32 %k.018, 1
  %incdec.ptr = getelementptr inbounds nuw i8, ptr %p.015, i64 4
  %idx.ext = zext nneg i32 %n to i64
  %add.ptr = getelementptr inbounds nuw float, ptr %q.016, i64 %idx.ext
  %cmp6 = icmp slt i32 %inc, %n
  br i1 %cmp6, label %for.inc, label %for.end

for.end:
  %add.lcssa = phi float [ %add, %for.inc ]
  %2 = load float, ptr %c.addr.120, align 4
  %add9 = fadd fast float %2, %add.lcssa
  store float %add9, ptr %c.addr.120, align 4
  %inc11 = add nuw nsw i32 %j.022, 1
  %incdec.ptr12 = getelementptr inbounds nuw i8, ptr %bb.021, i64 4
  %incdec.ptr13 = getelementptr inbounds nuw i8, ptr %c.addr.120, i64 4
  %cmp2 = icmp slt i32 %inc11, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc15

for.inc15:
  %incdec.ptr13.lcssa = phi ptr [ %incdec.ptr13, %for.end ]
  %inc16 = add nuw nsw i32 %i.027, 1
  %idx.ext17 = zext nneg i32 %n to i64
  %add.ptr18 = getelementptr inbounds nuw float, ptr %a.addr.025, i64 %idx.ext17
  %cmp = icmp slt i32 %inc16, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.end19.loopexit

for.end19.loopexit:
  br label %for.end19

for.end19:
  ret void
}

define void @end_ptr(ptr noundef %a, ptr noundef %b, ptr noundef %c, i32 noundef %n) {
entry:
  %mul = mul nsw i32 %n, %n
  %idx.ext = zext nneg i32 %mul to i64
  %add.ptr.idx = shl nuw nsw i64 %idx.ext, 2
  %add.ptr = getelementptr inbounds nuw i8, ptr %c, i64 %add.ptr.idx
  %cmp25.not = icmp eq i32 %n, 0
  br i1 %cmp25.not, label %while.end, label %for.cond.preheader.preheader

for.cond.preheader.preheader:
  br label %for.cond.preheader

for.cond.preheader:
  %ar.027 = phi ptr [ %add.ptr18, %for.end16 ], [ %a, %for.cond.preheader.preheader ]
  %c.addr.026 = phi ptr [ %c.addr.1.lcssa, %for.end16 ], [ %c, %for.cond.preheader.preheader ]
  %idx.ext1 = sext i32 %n to i64
  %add.ptr2.idx = shl nsw i64 %idx.ext1, 2
  %add.ptr2 = getelementptr inbounds i8, ptr %b, i64 %add.ptr2.idx
  %cmp321 = icmp sgt i32 %n, 0
  br i1 %cmp321, label %for.cond4.preheader.preheader, label %for.end16

for.cond4.preheader.preheader:
  br label %for.cond4.preheader

for.cond4.preheader:
  %bc.023 = phi ptr [ %incdec.ptr15, %for.end ], [ %b, %for.cond4.preheader.preheader ]
  %c.addr.122 = phi ptr [ %incdec.ptr13, %for.end ], [ %c.addr.026, %for.cond4.preheader.preheader ]
  %idx.ext5 = zext nneg i32 %n to i64
  %add.ptr6.idx = shl nuw nsw i64 %idx.ext5, 2
  %add.ptr6 = getelementptr inbounds nuw i8, ptr %ar.027, i64 %add.ptr6.idx
  br label %for.inc

for.inc:
  %ap.020 = phi ptr [ %incdec.ptr, %for.inc ], [ %ar.027, %for.cond4.preheader ]
  %bp.019 = phi ptr [ %add.ptr12, %for.inc ], [ %bc.023, %for.cond4.preheader ]
  %s.018 = phi float [ %add, %for.inc ], [ 0.000000e+00, %for.cond4.preheader ]
  %idx.ext11 = zext nneg i32 %n to i64
  %add.ptr12 = getelementptr inbounds nuw float, ptr %bp.019, i64 %idx.ext11
  %0 = load float, ptr %ap.020, align 4
  %1 = load float, ptr %bp.019, align 4
  %mul10 = fmul fast float %0, %1
  %add = fadd fast float %s.018, %mul10
  %incdec.ptr = getelementptr inbounds nuw i8, ptr %ap.020, i64 4
  %cmp7.not = icmp eq ptr %incdec.ptr, %add.ptr6
  br i1 %cmp7.not, label %for.end, label %for.inc

for.end:
  %add.lcssa = phi float [ %add, %for.inc ]
  store float %add.lcssa, ptr %c.addr.122, align 4
  %incdec.ptr13 = getelementptr inbounds nuw i8, ptr %c.addr.122, i64 4
  %incdec.ptr15 = getelementptr inbounds nuw i8, ptr %bc.023, i64 4
  %cmp3 = icmp ult ptr %incdec.ptr15, %add.ptr2
  br i1 %cmp3, label %for.cond4.preheader, label %for.end16.loopexit

for.end16.loopexit:
  %incdec.ptr13.lcssa = phi ptr [ %incdec.ptr13, %for.end ]
  br label %for.end16

for.end16:
  %c.addr.1.lcssa = phi ptr [ %c.addr.026, %for.cond.preheader ], [ %incdec.ptr13.lcssa, %for.end16.loopexit ]
  %idx.ext17 = sext i32 %n to i64
  %add.ptr18 = getelementptr inbounds float, ptr %ar.027, i64 %idx.ext17
  %cmp = icmp ult ptr %c.addr.1.lcssa, %add.ptr
  br i1 %cmp, label %for.cond.preheader, label %while.end.loopexit

while.end.loopexit:
  br label %while.end

while.end:
  ret void
}

define void @block_if(i32 noundef %n, ptr noundef %a, ptr noundef %b, ptr noundef %c) {
entry:
  %cmp32 = icmp sgt i32 %n, 0
  br i1 %cmp32, label %for.cond1.preheader.preheader, label %for.end37

for.cond1.preheader.preheader:
  br label %for.cond1.preheader

for.cond1.preheader:
  %kk.033 = phi i32 [ %add36, %for.inc35 ], [ 0, %for.cond1.preheader.preheader ]
  br label %for.cond5.preheader

for.cond5.preheader:
  %i.031 = phi i32 [ %inc33, %for.inc32 ], [ 0, %for.cond1.preheader ]
  br label %for.body8

for.body8:
  %j.029 = phi i32 [ %inc30, %for.end ], [ 0, %for.cond5.preheader ]
  %mul = mul nuw nsw i32 %i.031, %n
  %add = add nuw nsw i32 %mul, %j.029
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %c, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %add10 = add nuw nsw i32 %kk.033, 64
  %cmp1225 = icmp slt i32 %kk.033, %n
  br i1 %cmp1225, label %for.inc.preheader, label %for.end

for.inc.preheader:
  br label %for.inc

for.inc:
  %k.027 = phi i32 [ %inc, %for.inc ], [ %kk.033, %for.inc.preheader ]
  %s.026 = phi float [ %add24, %for.inc ], [ %0, %for.inc.preheader ]
  %mul15 = mul nuw nsw i32 %i.031, %n
  %add16 = add nuw nsw i32 %mul15, %k.027
  %idxprom17 = zext nneg i32 %add16 to i64
  %arrayidx18 = getelementptr inbounds nuw float, ptr %a, i64 %idxprom17
  %1 = load float, ptr %arrayidx18, align 4
  %mul19 = mul nuw nsw i32 %k.027, %n
  %add20 = add nuw nsw i32 %mul19, %j.029
  %idxprom21 = zext nneg i32 %add20 to i64
  %arrayidx22 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom21
  %2 = load float, ptr %arrayidx22, align 4
  %mul23 = fmul fast float %1, %2
  %add24 = fadd fast float %s.026, %mul23
  %inc = add nuw nsw i32 %k.027, 1
  %cmp11 = icmp samesign ult i32 %inc, %add10
  %cmp12 = icmp slt i32 %inc, %n
  %spec.select = and i1 %cmp11, %cmp12
  br i1 %spec.select, label %for.inc, label %for.end.loopexit

for.end.loopexit:
  %add24.lcssa = phi float [ %add24, %for.inc ]
  br label %for.end

for.end:
  %s.0.lcssa = phi float [ %0, %for.body8 ], [ %add24.lcssa, %for.end.loopexit ]
  %mul25 = mul nuw nsw i32 %i.031, %n
  %add26 = add nuw nsw i32 %mul25, %j.029
  %idxprom27 = zext nneg i32 %add26 to i64
  %arrayidx28 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom27
  store float %s.0.lcssa, ptr %arrayidx28, align 4
  %inc30 = add nuw nsw i32 %j.029, 1
  %cmp6 = icmp slt i32 %inc30, %n
  br i1 %cmp6, label %for.body8, label %for.inc32

for.inc32:
  %inc33 = add nuw nsw i32 %i.031, 1
  %cmp2 = icmp slt i32 %inc33, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc35

for.inc35:
  %add36 = add nuw nsw i32 %kk.033, 64
  %cmp = icmp slt i32 %add36, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.end37.loopexit

for.end37.loopexit:
  br label %for.end37

for.end37:
  ret void
}

define void @u8i8(i32 noundef %n, ptr noundef %a, ptr noundef %b, ptr noundef %c) {
entry:
  %cmp19 = icmp sgt i32 %n, 0
  br i1 %cmp19, label %for.cond1.preheader.preheader, label %for.end25

for.cond1.preheader.preheader:
  br label %for.cond1.preheader

for.cond1.preheader:
  %i.020 = phi i32 [ %inc24, %for.inc23 ], [ 0, %for.cond1.preheader.preheader ]
  br label %for.cond5.preheader

for.cond5.preheader:
  %j.018 = phi i32 [ %inc21, %for.inc20 ], [ 0, %for.cond1.preheader ]
  br label %for.body8

for.body8:
  %k.016 = phi i32 [ %inc, %for.body8 ], [ 0, %for.cond5.preheader ]
  %mul = mul nuw nsw i32 %i.020, %n
  %add = add nuw nsw i32 %mul, %k.016
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw i8, ptr %a, i64 %idxprom
  %0 = load i8, ptr %arrayidx, align 1
  %conv = zext i8 %0 to i32
  %mul9 = mul nuw nsw i32 %k.016, %n
  %add10 = add nuw nsw i32 %mul9, %j.018
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw i8, ptr %b, i64 %idxprom11
  %1 = load i8, ptr %arrayidx12, align 1
  %conv13 = sext i8 %1 to i32
  %mul14 = mul nsw i32 %conv, %conv13
  %mul15 = mul nuw nsw i32 %i.020, %n
  %add16 = add nuw nsw i32 %mul15, %j.018
  %idxprom17 = zext nneg i32 %add16 to i64
  %arrayidx18 = getelementptr inbounds nuw i32, ptr %c, i64 %idxprom17
  %2 = load i32, ptr %arrayidx18, align 4
  %add19 = add nsw i32 %2, %mul14
  store i32 %add19, ptr %arrayidx18, align 4
  %inc = add nuw nsw i32 %k.016, 1
  %cmp6 = icmp slt i32 %inc, %n
  br i1 %cmp6, label %for.body8, label %for.inc20

for.inc20:
  %inc21 = add nuw nsw i32 %j.018, 1
  %cmp2 = icmp slt i32 %inc21, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc23

for.inc23:
  %inc24 = add nuw nsw i32 %i.020, 1
  %cmp = icmp slt i32 %inc24, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.end25.loopexit

for.end25.loopexit:
  br label %for.end25

for.end25:
  ret void
}

define void @refc(i32 noundef %m, i32 noundef %n, i32 noundef %k, double noundef nofpclass(nan inf) %alpha, ptr noundef %a, i32 noundef %lda, ptr noundef %b, i32 noundef %ldb, double noundef nofpclass(nan inf) %beta, ptr noundef %c, i32 noundef %ldc) {
entry:
  %cmp34 = icmp sgt i32 %n, 0
  br i1 %cmp34, label %for.body.preheader, label %for.end54

for.body.preheader:
  br label %for.body

for.body:
  %j.035 = phi i32 [ %inc53, %for.inc52 ], [ 0, %for.body.preheader ]
  %cmp1 = fcmp fast oeq double %beta, 0.000000e+00
  br i1 %cmp1, label %for.cond2.preheader, label %if.else

for.cond2.preheader:
  %cmp327 = icmp sgt i32 %m, 0
  br i1 %cmp327, label %for.body5.preheader, label %if.end21

for.body5.preheader:
  br label %for.body5

for.body5:
  %i.028 = phi i32 [ %inc, %for.body5 ], [ 0, %for.body5.preheader ]
  %mul = mul nsw i32 %j.035, %ldc
  %add = add nsw i32 %i.028, %mul
  %idxprom = sext i32 %add to i64
  %arrayidx = getelementptr inbounds double, ptr %c, i64 %idxprom
  store double 0.000000e+00, ptr %arrayidx, align 8
  %inc = add nuw nsw i32 %i.028, 1
  %cmp3 = icmp slt i32 %inc, %m
  br i1 %cmp3, label %for.body5, label %if.end21.loopexit

if.else:
  %cmp6 = fcmp fast une double %beta, 1.000000e+00
  %cmp1025 = icmp sgt i32 %m, 0
  %or.cond = and i1 %cmp6, %cmp1025
  br i1 %or.cond, label %for.body12.preheader, label %if.end21

for.body12.preheader:
  br label %for.body12

for.body12:
  %i8.026 = phi i32 [ %inc19, %for.body12 ], [ 0, %for.body12.preheader ]
  %mul13 = mul nsw i32 %j.035, %ldc
  %add14 = add nsw i32 %i8.026, %mul13
  %idxprom15 = sext i32 %add14 to i64
  %arrayidx16 = getelementptr inbounds double, ptr %c, i64 %idxprom15
  %0 = load double, ptr %arrayidx16, align 8
  %mul17 = fmul fast double %0, %beta
  store double %mul17, ptr %arrayidx16, align 8
  %inc19 = add nuw nsw i32 %i8.026, 1
  %cmp10 = icmp slt i32 %inc19, %m
  br i1 %cmp10, label %for.body12, label %if.end21.loopexit37

if.end21.loopexit:
  br label %if.end21

if.end21.loopexit37:
  br label %if.end21

if.end21:
  %cmp2331 = icmp sgt i32 %k, 0
  br i1 %cmp2331, label %for.body25.preheader, label %for.inc52

for.body25.preheader:
  br label %for.body25

for.body25:
  %l.032 = phi i32 [ %inc50, %for.inc49 ], [ 0, %for.body25.preheader ]
  %mul26 = mul nsw i32 %j.035, %ldb
  %add27 = add nsw i32 %l.032, %mul26
  %idxprom28 = sext i32 %add27 to i64
  %arrayidx29 = getelementptr inbounds double, ptr %b, i64 %idxprom28
  %1 = load double, ptr %arrayidx29, align 8
  %mul30 = fmul fast double %alpha, %1
  %cmp3329 = icmp sgt i32 %m, 0
  br i1 %cmp3329, label %for.body35.preheader, label %for.inc49

for.body35.preheader:
  br label %for.body35

for.body35:
  %i31.030 = phi i32 [ %inc47, %for.body35 ], [ 0, %for.body35.preheader ]
  %mul36 = mul nsw i32 %l.032, %lda
  %add37 = add nsw i32 %i31.030, %mul36
  %idxprom38 = sext i32 %add37 to i64
  %arrayidx39 = getelementptr inbounds double, ptr %a, i64 %idxprom38
  %2 = load double, ptr %arrayidx39, align 8
  %mul40 = fmul fast double %mul30, %2
  %mul41 = mul nsw i32 %j.035, %ldc
  %add42 = add nsw i32 %i31.030, %mul41
  %idxprom43 = sext i32 %add42 to i64
  %arrayidx44 = getelementptr inbounds double, ptr %c, i64 %idxprom43
  %3 = load double, ptr %arrayidx44, align 8
  %add45 = fadd fast double %3, %mul40
  store double %add45, ptr %arrayidx44, align 8
  %inc47 = add nuw nsw i32 %i31.030, 1
  %cmp33 = icmp slt i32 %inc47, %m
  br i1 %cmp33, label %for.body35, label %for.inc49.loopexit

for.inc49.loopexit:
  br label %for.inc49

for.inc49:
  %inc50 = add nuw nsw i32 %l.032, 1
  %cmp23 = icmp slt i32 %inc50, %k
  br i1 %cmp23, label %for.body25, label %for.inc52.loopexit

for.inc52.loopexit:
  br label %for.inc52

for.inc52:
  %inc53 = add nuw nsw i32 %j.035, 1
  %cmp = icmp slt i32 %inc53, %n
  br i1 %cmp, label %for.body, label %for.end54.loopexit

for.end54.loopexit:
  br label %for.end54

for.end54:
  ret void
}

define void @reft(i32 noundef %m, i32 noundef %n, i32 noundef %k, double noundef nofpclass(nan inf) %alpha, ptr noundef %a, i32 noundef %lda, ptr noundef %b, i32 noundef %ldb, double noundef nofpclass(nan inf) %beta, ptr noundef %c, i32 noundef %ldc) {
entry:
  %cmp27 = icmp sgt i32 %n, 0
  br i1 %cmp27, label %for.cond1.preheader.preheader, label %for.end37

for.cond1.preheader.preheader:
  br label %for.cond1.preheader

for.cond1.preheader:
  %j.028 = phi i32 [ %inc36, %for.inc35 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp225 = icmp sgt i32 %m, 0
  br i1 %cmp225, label %for.cond5.preheader.preheader, label %for.inc35

for.cond5.preheader.preheader:
  br label %for.cond5.preheader

for.cond5.preheader:
  %i.026 = phi i32 [ %inc33, %for.inc32 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp622 = icmp sgt i32 %k, 0
  br i1 %cmp622, label %for.inc.preheader, label %for.end

for.inc.preheader:
  br label %for.inc

for.inc:
  %l.024 = phi i32 [ %inc, %for.inc ], [ 0, %for.inc.preheader ]
  %t.023 = phi double [ %add14, %for.inc ], [ 0.000000e+00, %for.inc.preheader ]
  %mul = mul nsw i32 %i.026, %lda
  %add = add nsw i32 %l.024, %mul
  %idxprom = sext i32 %add to i64
  %arrayidx = getelementptr inbounds double, ptr %a, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %mul9 = mul nsw i32 %j.028, %ldb
  %add10 = add nsw i32 %l.024, %mul9
  %idxprom11 = sext i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds double, ptr %b, i64 %idxprom11
  %1 = load double, ptr %arrayidx12, align 8
  %mul13 = fmul fast double %0, %1
  %add14 = fadd fast double %t.023, %mul13
  %inc = add nuw nsw i32 %l.024, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.inc, label %for.end.loopexit

for.end.loopexit:
  %add14.lcssa = phi double [ %add14, %for.inc ]
  br label %for.end

for.end:
  %t.0.lcssa = phi double [ 0.000000e+00, %for.cond5.preheader ], [ %add14.lcssa, %for.end.loopexit ]
  %cmp15 = fcmp fast oeq double %beta, 0.000000e+00
  br i1 %cmp15, label %if.then, label %if.else

if.then:
  %mul16 = fmul fast double %alpha, %t.0.lcssa
  %mul17 = mul nsw i32 %j.028, %ldc
  %add18 = add nsw i32 %i.026, %mul17
  %idxprom19 = sext i32 %add18 to i64
  %arrayidx20 = getelementptr inbounds double, ptr %c, i64 %idxprom19
  store double %mul16, ptr %arrayidx20, align 8
  br label %for.inc32

if.else:
  %mul21 = fmul fast double %alpha, %t.0.lcssa
  %mul22 = mul nsw i32 %j.028, %ldc
  %add23 = add nsw i32 %i.026, %mul22
  %idxprom24 = sext i32 %add23 to i64
  %arrayidx25 = getelementptr inbounds double, ptr %c, i64 %idxprom24
  %2 = load double, ptr %arrayidx25, align 8
  %mul26 = fmul fast double %beta, %2
  %add27 = fadd fast double %mul21, %mul26
  %mul28 = mul nsw i32 %j.028, %ldc
  %add29 = add nsw i32 %i.026, %mul28
  %idxprom30 = sext i32 %add29 to i64
  %arrayidx31 = getelementptr inbounds double, ptr %c, i64 %idxprom30
  store double %add27, ptr %arrayidx31, align 8
  br label %for.inc32

for.inc32:
  %inc33 = add nuw nsw i32 %i.026, 1
  %cmp2 = icmp slt i32 %inc33, %m
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc35.loopexit

for.inc35.loopexit:
  br label %for.inc35

for.inc35:
  %inc36 = add nuw nsw i32 %j.028, 1
  %cmp = icmp slt i32 %inc36, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.end37.loopexit

for.end37.loopexit:
  br label %for.end37

for.end37:
  ret void
}

define void @wrongc(i32 noundef %m, i32 noundef %n, i32 noundef %k, double noundef nofpclass(nan inf) %alpha, ptr noundef %a, i32 noundef %lda, ptr noundef %b, i32 noundef %ldb, double noundef nofpclass(nan inf) %beta, ptr noundef %c, i32 noundef %ldc) {
entry:
  %cmp34 = icmp sgt i32 %n, 0
  br i1 %cmp34, label %for.body.preheader, label %for.end54

for.body.preheader:
  br label %for.body

for.body:
  %j.035 = phi i32 [ %inc53, %for.inc52 ], [ 0, %for.body.preheader ]
  %cmp1 = fcmp fast oeq double %beta, 0.000000e+00
  br i1 %cmp1, label %for.cond2.preheader, label %if.else

for.cond2.preheader:
  %cmp327 = icmp sgt i32 %m, 0
  br i1 %cmp327, label %for.body5.preheader, label %if.end21

for.body5.preheader:
  br label %for.body5

for.body5:
  %i.028 = phi i32 [ %inc, %for.body5 ], [ 0, %for.body5.preheader ]
  %mul = mul nsw i32 %j.035, %ldc
  %add = add nsw i32 %i.028, %mul
  %idxprom = sext i32 %add to i64
  %arrayidx = getelementptr inbounds double, ptr %c, i64 %idxprom
  store double 1.000000e+00, ptr %arrayidx, align 8
  %inc = add nuw nsw i32 %i.028, 1
  %cmp3 = icmp slt i32 %inc, %m
  br i1 %cmp3, label %for.body5, label %if.end21.loopexit

if.else:
  %cmp6 = fcmp fast une double %beta, 1.000000e+00
  %cmp1025 = icmp sgt i32 %m, 0
  %or.cond = and i1 %cmp6, %cmp1025
  br i1 %or.cond, label %for.body12.preheader, label %if.end21

for.body12.preheader:
  br label %for.body12

for.body12:
  %i8.026 = phi i32 [ %inc19, %for.body12 ], [ 0, %for.body12.preheader ]
  %mul13 = mul nsw i32 %j.035, %ldc
  %add14 = add nsw i32 %i8.026, %mul13
  %idxprom15 = sext i32 %add14 to i64
  %arrayidx16 = getelementptr inbounds double, ptr %c, i64 %idxprom15
  %0 = load double, ptr %arrayidx16, align 8
  %mul17 = fmul fast double %0, %beta
  store double %mul17, ptr %arrayidx16, align 8
  %inc19 = add nuw nsw i32 %i8.026, 1
  %cmp10 = icmp slt i32 %inc19, %m
  br i1 %cmp10, label %for.body12, label %if.end21.loopexit37

if.end21.loopexit:
  br label %if.end21

if.end21.loopexit37:
  br label %if.end21

if.end21:
  %cmp2331 = icmp sgt i32 %k, 0
  br i1 %cmp2331, label %for.body25.preheader, label %for.inc52

for.body25.preheader:
  br label %for.body25

for.body25:
  %l.032 = phi i32 [ %inc50, %for.inc49 ], [ 0, %for.body25.preheader ]
  %mul26 = mul nsw i32 %j.035, %ldb
  %add27 = add nsw i32 %l.032, %mul26
  %idxprom28 = sext i32 %add27 to i64
  %arrayidx29 = getelementptr inbounds double, ptr %b, i64 %idxprom28
  %1 = load double, ptr %arrayidx29, align 8
  %mul30 = fmul fast double %alpha, %1
  %cmp3329 = icmp sgt i32 %m, 0
  br i1 %cmp3329, label %for.body35.preheader, label %for.inc49

for.body35.preheader:
  br label %for.body35

for.body35:
  %i31.030 = phi i32 [ %inc47, %for.body35 ], [ 0, %for.body35.preheader ]
  %mul36 = mul nsw i32 %l.032, %lda
  %add37 = add nsw i32 %i31.030, %mul36
  %idxprom38 = sext i32 %add37 to i64
  %arrayidx39 = getelementptr inbounds double, ptr %a, i64 %idxprom38
  %2 = load double, ptr %arrayidx39, align 8
  %mul40 = fmul fast double %mul30, %2
  %mul41 = mul nsw i32 %j.035, %ldc
  %add42 = add nsw i32 %i31.030, %mul41
  %idxprom43 = sext i32 %add42 to i64
  %arrayidx44 = getelementptr inbounds double, ptr %c, i64 %idxprom43
  %3 = load double, ptr %arrayidx44, align 8
  %add45 = fadd fast double %3, %mul40
  store double %add45, ptr %arrayidx44, align 8
  %inc47 = add nuw nsw i32 %i31.030, 1
  %cmp33 = icmp slt i32 %inc47, %m
  br i1 %cmp33, label %for.body35, label %for.inc49.loopexit

for.inc49.loopexit:
  br label %for.inc49

for.inc49:
  %inc50 = add nuw nsw i32 %l.032, 1
  %cmp23 = icmp slt i32 %inc50, %k
  br i1 %cmp23, label %for.body25, label %for.inc52.loopexit

for.inc52.loopexit:
  br label %for.inc52

for.inc52:
  %inc53 = add nuw nsw i32 %j.035, 1
  %cmp = icmp slt i32 %inc53, %n
  br i1 %cmp, label %for.body, label %for.end54.loopexit

for.end54.loopexit:
  br label %for.end54

for.end54:
  ret void
}

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg)
