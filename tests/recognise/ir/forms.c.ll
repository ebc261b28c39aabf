target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; Function Attrs: nounwind uwtable
define void @into_scalar(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp19 = icmp sgt i32 %m, 0
  br i1 %cmp19, label %for.cond1.preheader.preheader, label %for.end25

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc23
  %i.020 = phi i32 [ %inc24, %for.inc23 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp217 = icmp sgt i32 %n, 0
  br i1 %cmp217, label %for.cond5.preheader.preheader, label %for.inc23

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.end
  %j.018 = phi i32 [ %inc21, %for.end ], [ 0, %for.cond5.preheader.preheader ]
  %cmp614 = icmp sgt i32 %k, 0
  br i1 %cmp614, label %for.inc.preheader, label %for.end

for.inc.preheader:                                ; preds = %for.cond5.preheader
  br label %for.inc

for.inc:                                          ; preds = %for.inc.preheader, %for.inc
  %p.016 = phi i32 [ %inc, %for.inc ], [ 0, %for.inc.preheader ]
  %sum.015 = phi float [ %add14, %for.inc ], [ 0.000000e+00, %for.inc.preheader ]
  %mul = mul nuw nsw i32 %i.020, %k
  %add = add nuw nsw i32 %mul, %p.016
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul9 = mul nuw nsw i32 %p.016, %n
  %add10 = add nuw nsw i32 %mul9, %j.018
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom11
  %1 = load float, ptr %arrayidx12, align 4
  %mul13 = fmul fast float %0, %1
  %add14 = fadd fast float %sum.015, %mul13
  %inc = add nuw nsw i32 %p.016, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.inc, label %for.end.loopexit

for.end.loopexit:                                 ; preds = %for.inc
  %add14.lcssa = phi float [ %add14, %for.inc ]
  br label %for.end

for.end:                                          ; preds = %for.end.loopexit, %for.cond5.preheader
  %sum.0.lcssa = phi float [ 0.000000e+00, %for.cond5.preheader ], [ %add14.lcssa, %for.end.loopexit ]
  %mul15 = mul nuw nsw i32 %i.020, %n
  %add16 = add nuw nsw i32 %mul15, %j.018
  %idxprom17 = zext nneg i32 %add16 to i64
  %arrayidx18 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom17
  %2 = load float, ptr %arrayidx18, align 4
  %add19 = fadd fast float %2, %sum.0.lcssa
  store float %add19, ptr %arrayidx18, align 4
  %inc21 = add nuw nsw i32 %j.018, 1
  %cmp2 = icmp slt i32 %inc21, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc23.loopexit

for.inc23.loopexit:                               ; preds = %for.end
  br label %for.inc23

for.inc23:                                        ; preds = %for.inc23.loopexit, %for.cond1.preheader
  %inc24 = add nuw nsw i32 %i.020, 1
  %cmp = icmp slt i32 %inc24, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end25.loopexit

for.end25.loopexit:                               ; preds = %for.inc23
  br label %for.end25

for.end25:                                        ; preds = %for.end25.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @from_element(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp23 = icmp sgt i32 %m, 0
  br i1 %cmp23, label %for.cond1.preheader.preheader, label %for.end28

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc26
  %i.024 = phi i32 [ %inc27, %for.inc26 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp221 = icmp sgt i32 %n, 0
  br i1 %cmp221, label %for.body4.preheader, label %for.inc26

for.body4.preheader:                              ; preds = %for.cond1.preheader
  br label %for.body4

for.body4:                                        ; preds = %for.body4.preheader, %for.end
  %j.022 = phi i32 [ %inc24, %for.end ], [ 0, %for.body4.preheader ]
  %mul = mul nuw nsw i32 %i.024, %n
  %add = add nuw nsw i32 %mul, %j.022
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %c, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %cmp618 = icmp sgt i32 %k, 0
  br i1 %cmp618, label %for.inc.preheader, label %for.end

for.inc.preheader:                                ; preds = %for.body4
  br label %for.inc

for.inc:                                          ; preds = %for.inc.preheader, %for.inc
  %p.020 = phi i32 [ %inc, %for.inc ], [ 0, %for.inc.preheader ]
  %sum.019 = phi float [ %add18, %for.inc ], [ %0, %for.inc.preheader ]
  %mul9 = mul nuw nsw i32 %i.024, %k
  %add10 = add nuw nsw i32 %mul9, %p.020
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw float, ptr %a, i64 %idxprom11
  %1 = load float, ptr %arrayidx12, align 4
  %mul13 = mul nuw nsw i32 %p.020, %n
  %add14 = add nuw nsw i32 %mul13, %j.022
  %idxprom15 = zext nneg i32 %add14 to i64
  %arrayidx16 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom15
  %2 = load float, ptr %arrayidx16, align 4
  %mul17 = fmul fast float %1, %2
  %add18 = fadd fast float %sum.019, %mul17
  %inc = add nuw nsw i32 %p.020, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.inc, label %for.end.loopexit

for.end.loopexit:                                 ; preds = %for.inc
  %add18.lcssa = phi float [ %add18, %for.inc ]
  br label %for.end

for.end:                                          ; preds = %for.end.loopexit, %for.body4
  %sum.0.lcssa = phi float [ %0, %for.body4 ], [ %add18.lcssa, %for.end.loopexit ]
  %mul19 = mul nuw nsw i32 %i.024, %n
  %add20 = add nuw nsw i32 %mul19, %j.022
  %idxprom21 = zext nneg i32 %add20 to i64
  %arrayidx22 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom21
  store float %sum.0.lcssa, ptr %arrayidx22, align 4
  %inc24 = add nuw nsw i32 %j.022, 1
  %cmp2 = icmp slt i32 %inc24, %n
  br i1 %cmp2, label %for.body4, label %for.inc26.loopexit

for.inc26.loopexit:                               ; preds = %for.end
  br label %for.inc26

for.inc26:                                        ; preds = %for.inc26.loopexit, %for.cond1.preheader
  %inc27 = add nuw nsw i32 %i.024, 1
  %cmp = icmp slt i32 %inc27, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end28.loopexit

for.end28.loopexit:                               ; preds = %for.inc26
  br label %for.end28

for.end28:                                        ; preds = %for.end28.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @zero_first(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp21 = icmp sgt i32 %m, 0
  br i1 %cmp21, label %for.cond1.preheader.preheader, label %for.end28

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc26
  %i.022 = phi i32 [ %inc27, %for.inc26 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp219 = icmp sgt i32 %n, 0
  br i1 %cmp219, label %for.body4.preheader, label %for.inc26

for.body4.preheader:                              ; preds = %for.cond1.preheader
  br label %for.body4

for.body4:                                        ; preds = %for.body4.preheader, %for.inc23
  %j.020 = phi i32 [ %inc24, %for.inc23 ], [ 0, %for.body4.preheader ]
  %mul = mul nuw nsw i32 %i.022, %n
  %add = add nuw nsw i32 %mul, %j.020
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %c, i64 %idxprom
  store float 0.000000e+00, ptr %arrayidx, align 4
  %cmp617 = icmp sgt i32 %k, 0
  br i1 %cmp617, label %for.body8.preheader, label %for.inc23

for.body8.preheader:                              ; preds = %for.body4
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %p.018 = phi i32 [ %inc, %for.body8 ], [ 0, %for.body8.preheader ]
  %mul9 = mul nuw nsw i32 %i.022, %k
  %add10 = add nuw nsw i32 %mul9, %p.018
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw float, ptr %a, i64 %idxprom11
  %0 = load float, ptr %arrayidx12, align 4
  %mul13 = mul nuw nsw i32 %p.018, %n
  %add14 = add nuw nsw i32 %mul13, %j.020
  %idxprom15 = zext nneg i32 %add14 to i64
  %arrayidx16 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom15
  %1 = load float, ptr %arrayidx16, align 4
  %mul17 = fmul fast float %0, %1
  %mul18 = mul nuw nsw i32 %i.022, %n
  %add19 = add nuw nsw i32 %mul18, %j.020
  %idxprom20 = zext nneg i32 %add19 to i64
  %arrayidx21 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom20
  %2 = load float, ptr %arrayidx21, align 4
  %add22 = fadd fast float %2, %mul17
  store float %add22, ptr %arrayidx21, align 4
  %inc = add nuw nsw i32 %p.018, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.inc23.loopexit

for.inc23.loopexit:                               ; preds = %for.body8
  br label %for.inc23

for.inc23:                                        ; preds = %for.inc23.loopexit, %for.body4
  %inc24 = add nuw nsw i32 %j.020, 1
  %cmp2 = icmp slt i32 %inc24, %n
  br i1 %cmp2, label %for.body4, label %for.inc26.loopexit

for.inc26.loopexit:                               ; preds = %for.inc23
  br label %for.inc26

for.inc26:                                        ; preds = %for.inc26.loopexit, %for.cond1.preheader
  %inc27 = add nuw nsw i32 %i.022, 1
  %cmp = icmp slt i32 %inc27, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end28.loopexit

for.end28.loopexit:                               ; preds = %for.inc26
  br label %for.end28

for.end28:                                        ; preds = %for.end28.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @zero_rows_first(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp25 = icmp sgt i32 %m, 0
  br i1 %cmp25, label %for.cond1.preheader.preheader, label %for.end36

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc34
  %i.026 = phi i32 [ %inc35, %for.inc34 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp219 = icmp sgt i32 %n, 0
  br i1 %cmp219, label %for.body4.preheader, label %for.cond5.preheader

for.body4.preheader:                              ; preds = %for.cond1.preheader
  br label %for.body4

for.cond5.preheader.loopexit:                     ; preds = %for.body4
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.loopexit, %for.cond1.preheader
  %cmp623 = icmp sgt i32 %k, 0
  br i1 %cmp623, label %for.cond10.preheader.preheader, label %for.inc34

for.cond10.preheader.preheader:                   ; preds = %for.cond5.preheader
  br label %for.cond10.preheader

for.body4:                                        ; preds = %for.body4.preheader, %for.body4
  %j.020 = phi i32 [ %inc, %for.body4 ], [ 0, %for.body4.preheader ]
  %mul = mul nuw nsw i32 %i.026, %n
  %add = add nuw nsw i32 %mul, %j.020
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %c, i64 %idxprom
  store float 0.000000e+00, ptr %arrayidx, align 4
  %inc = add nuw nsw i32 %j.020, 1
  %cmp2 = icmp slt i32 %inc, %n
  br i1 %cmp2, label %for.body4, label %for.cond5.preheader.loopexit

for.cond10.preheader:                             ; preds = %for.cond10.preheader.preheader, %for.inc31
  %p.024 = phi i32 [ %inc32, %for.inc31 ], [ 0, %for.cond10.preheader.preheader ]
  %cmp1121 = icmp sgt i32 %n, 0
  br i1 %cmp1121, label %for.body13.preheader, label %for.inc31

for.body13.preheader:                             ; preds = %for.cond10.preheader
  br label %for.body13

for.body13:                                       ; preds = %for.body13.preheader, %for.body13
  %j9.022 = phi i32 [ %inc29, %for.body13 ], [ 0, %for.body13.preheader ]
  %mul14 = mul nuw nsw i32 %i.026, %k
  %add15 = add nuw nsw i32 %mul14, %p.024
  %idxprom16 = zext nneg i32 %add15 to i64
  %arrayidx17 = getelementptr inbounds nuw float, ptr %a, i64 %idxprom16
  %0 = load float, ptr %arrayidx17, align 4
  %mul18 = mul nuw nsw i32 %p.024, %n
  %add19 = add nuw nsw i32 %mul18, %j9.022
  %idxprom20 = zext nneg i32 %add19 to i64
  %arrayidx21 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom20
  %1 = load float, ptr %arrayidx21, align 4
  %mul22 = fmul fast float %0, %1
  %mul23 = mul nuw nsw i32 %i.026, %n
  %add24 = add nuw nsw i32 %mul23, %j9.022
  %idxprom25 = zext nneg i32 %add24 to i64
  %arrayidx26 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom25
  %2 = load float, ptr %arrayidx26, align 4
  %add27 = fadd fast float %2, %mul22
  store float %add27, ptr %arrayidx26, align 4
  %inc29 = add nuw nsw i32 %j9.022, 1
  %cmp11 = icmp slt i32 %inc29, %n
  br i1 %cmp11, label %for.body13, label %for.inc31.loopexit

for.inc31.loopexit:                               ; preds = %for.body13
  br label %for.inc31

for.inc31:                                        ; preds = %for.inc31.loopexit, %for.cond10.preheader
  %inc32 = add nuw nsw i32 %p.024, 1
  %cmp6 = icmp slt i32 %inc32, %k
  br i1 %cmp6, label %for.cond10.preheader, label %for.inc34.loopexit

for.inc34.loopexit:                               ; preds = %for.inc31
  br label %for.inc34

for.inc34:                                        ; preds = %for.inc34.loopexit, %for.cond5.preheader
  %inc35 = add nuw nsw i32 %i.026, 1
  %cmp = icmp slt i32 %inc35, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end36.loopexit

for.end36.loopexit:                               ; preds = %for.inc34
  br label %for.end36

for.end36:                                        ; preds = %for.end36.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @memset_rows_first(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp21 = icmp sgt i32 %m, 0
  br i1 %cmp21, label %for.body.preheader, label %for.end28

for.body.preheader:                               ; preds = %entry
  br label %for.body

for.body:                                         ; preds = %for.body.preheader, %for.inc26
  %i.022 = phi i32 [ %inc27, %for.inc26 ], [ 0, %for.body.preheader ]
  %mul = mul nsw i32 %i.022, %n
  %idx.ext = sext i32 %mul to i64
  %add.ptr = getelementptr inbounds float, ptr %c, i64 %idx.ext
  %conv = sext i32 %n to i64
  %mul1 = shl nsw i64 %conv, 2
  call void @llvm.memset.p0.i64(ptr align 4 %add.ptr, i8 0, i64 %mul1, i1 false)
  %cmp319 = icmp sgt i32 %k, 0
  br i1 %cmp319, label %for.cond7.preheader.preheader, label %for.inc26

for.cond7.preheader.preheader:                    ; preds = %for.body
  br label %for.cond7.preheader

for.cond7.preheader:                              ; preds = %for.cond7.preheader.preheader, %for.inc23
  %p.020 = phi i32 [ %inc24, %for.inc23 ], [ 0, %for.cond7.preheader.preheader ]
  %cmp817 = icmp sgt i32 %n, 0
  br i1 %cmp817, label %for.body11.preheader, label %for.inc23

for.body11.preheader:                             ; preds = %for.cond7.preheader
  br label %for.body11

for.body11:                                       ; preds = %for.body11.preheader, %for.body11
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

for.inc23.loopexit:                               ; preds = %for.body11
  br label %for.inc23

for.inc23:                                        ; preds = %for.inc23.loopexit, %for.cond7.preheader
  %inc24 = add nuw nsw i32 %p.020, 1
  %cmp3 = icmp slt i32 %inc24, %k
  br i1 %cmp3, label %for.cond7.preheader, label %for.inc26.loopexit

for.inc26.loopexit:                               ; preds = %for.inc23
  br label %for.inc26

for.inc26:                                        ; preds = %for.inc26.loopexit, %for.body
  %inc27 = add nuw nsw i32 %i.022, 1
  %cmp = icmp slt i32 %inc27, %m
  br i1 %cmp, label %for.body, label %for.end28.loopexit

for.end28.loopexit:                               ; preds = %for.inc26
  br label %for.end28

for.end28:                                        ; preds = %for.end28.loopexit, %entry
  ret void
}

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: write)
declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) #1

; Function Attrs: nounwind uwtable
define void @zero_before(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp23 = icmp sgt i32 %m, 0
  br i1 %cmp23, label %for.cond1.preheader.preheader, label %for.cond9.preheader

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc5
  %i.024 = phi i32 [ %inc6, %for.inc5 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp221 = icmp sgt i32 %n, 0
  br i1 %cmp221, label %for.body4.preheader, label %for.inc5

for.body4.preheader:                              ; preds = %for.cond1.preheader
  br label %for.body4

for.cond9.preheader.loopexit:                     ; preds = %for.inc5
  br label %for.cond9.preheader

for.cond9.preheader:                              ; preds = %for.cond9.preheader.loopexit, %entry
  %cmp1029 = icmp sgt i32 %n, 0
  br i1 %cmp1029, label %for.cond13.preheader.preheader, label %for.end44

for.cond13.preheader.preheader:                   ; preds = %for.cond9.preheader
  br label %for.cond13.preheader

for.body4:                                        ; preds = %for.body4.preheader, %for.body4
  %j.022 = phi i32 [ %inc, %for.body4 ], [ 0, %for.body4.preheader ]
  %mul = mul nuw nsw i32 %i.024, %n
  %add = add nuw nsw i32 %mul, %j.022
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %c, i64 %idxprom
  store float 0.000000e+00, ptr %arrayidx, align 4
  %inc = add nuw nsw i32 %j.022, 1
  %cmp2 = icmp slt i32 %inc, %n
  br i1 %cmp2, label %for.body4, label %for.inc5.loopexit

for.inc5.loopexit:                                ; preds = %for.body4
  br label %for.inc5

for.inc5:                                         ; preds = %for.inc5.loopexit, %for.cond1.preheader
  %inc6 = add nuw nsw i32 %i.024, 1
  %cmp = icmp slt i32 %inc6, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond9.preheader.loopexit

for.cond13.preheader:                             ; preds = %for.cond13.preheader.preheader, %for.inc42
  %j8.030 = phi i32 [ %inc43, %for.inc42 ], [ 0, %for.cond13.preheader.preheader ]
  %cmp1427 = icmp sgt i32 %k, 0
  br i1 %cmp1427, label %for.cond18.preheader.preheader, label %for.inc42

for.cond18.preheader.preheader:                   ; preds = %for.cond13.preheader
  br label %for.cond18.preheader

for.cond18.preheader:                             ; preds = %for.cond18.preheader.preheader, %for.inc39
  %p.028 = phi i32 [ %inc40, %for.inc39 ], [ 0, %for.cond18.preheader.preheader ]
  %cmp1925 = icmp sgt i32 %m, 0
  br i1 %cmp1925, label %for.body21.preheader, label %for.inc39

for.body21.preheader:                             ; preds = %for.cond18.preheader
  br label %for.body21

for.body21:                                       ; preds = %for.body21.preheader, %for.body21
  %i17.026 = phi i32 [ %inc37, %for.body21 ], [ 0, %for.body21.preheader ]
  %mul22 = mul nuw nsw i32 %i17.026, %k
  %add23 = add nuw nsw i32 %mul22, %p.028
  %idxprom24 = zext nneg i32 %add23 to i64
  %arrayidx25 = getelementptr inbounds nuw float, ptr %a, i64 %idxprom24
  %0 = load float, ptr %arrayidx25, align 4
  %mul26 = mul nuw nsw i32 %p.028, %n
  %add27 = add nuw nsw i32 %mul26, %j8.030
  %idxprom28 = zext nneg i32 %add27 to i64
  %arrayidx29 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom28
  %1 = load float, ptr %arrayidx29, align 4
  %mul30 = fmul fast float %0, %1
  %mul31 = mul nuw nsw i32 %i17.026, %n
  %add32 = add nuw nsw i32 %mul31, %j8.030
  %idxprom33 = zext nneg i32 %add32 to i64
  %arrayidx34 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom33
  %2 = load float, ptr %arrayidx34, align 4
  %add35 = fadd fast float %2, %mul30
  store float %add35, ptr %arrayidx34, align 4
  %inc37 = add nuw nsw i32 %i17.026, 1
  %cmp19 = icmp slt i32 %inc37, %m
  br i1 %cmp19, label %for.body21, label %for.inc39.loopexit

for.inc39.loopexit:                               ; preds = %for.body21
  br label %for.inc39

for.inc39:                                        ; preds = %for.inc39.loopexit, %for.cond18.preheader
  %inc40 = add nuw nsw i32 %p.028, 1
  %cmp14 = icmp slt i32 %inc40, %k
  br i1 %cmp14, label %for.cond18.preheader, label %for.inc42.loopexit

for.inc42.loopexit:                               ; preds = %for.inc39
  br label %for.inc42

for.inc42:                                        ; preds = %for.inc42.loopexit, %for.cond13.preheader
  %inc43 = add nuw nsw i32 %j8.030, 1
  %cmp10 = icmp slt i32 %inc43, %n
  br i1 %cmp10, label %for.cond13.preheader, label %for.end44.loopexit

for.end44.loopexit:                               ; preds = %for.inc42
  br label %for.end44

for.end44:                                        ; preds = %for.end44.loopexit, %for.cond9.preheader
  ret void
}

; Function Attrs: nounwind uwtable
define void @subtracted(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp17 = icmp sgt i32 %m, 0
  br i1 %cmp17, label %for.cond1.preheader.preheader, label %for.end23

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc21
  %i.018 = phi i32 [ %inc22, %for.inc21 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp215 = icmp sgt i32 %k, 0
  br i1 %cmp215, label %for.cond5.preheader.preheader, label %for.inc21

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc18
  %p.016 = phi i32 [ %inc19, %for.inc18 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp613 = icmp sgt i32 %n, 0
  br i1 %cmp613, label %for.body8.preheader, label %for.inc18

for.body8.preheader:                              ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %j.014 = phi i32 [ %inc, %for.body8 ], [ 0, %for.body8.preheader ]
  %mul = mul nuw nsw i32 %i.018, %k
  %add = add nuw nsw i32 %mul, %p.016
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul9 = mul nuw nsw i32 %p.016, %n
  %add10 = add nuw nsw i32 %mul9, %j.014
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom11
  %1 = load float, ptr %arrayidx12, align 4
  %mul13 = fmul fast float %0, %1
  %mul14 = mul nuw nsw i32 %i.018, %n
  %add15 = add nuw nsw i32 %mul14, %j.014
  %idxprom16 = zext nneg i32 %add15 to i64
  %arrayidx17 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom16
  %2 = load float, ptr %arrayidx17, align 4
  %sub = fsub fast float %2, %mul13
  store float %sub, ptr %arrayidx17, align 4
  %inc = add nuw nsw i32 %j.014, 1
  %cmp6 = icmp slt i32 %inc, %n
  br i1 %cmp6, label %for.body8, label %for.inc18.loopexit

for.inc18.loopexit:                               ; preds = %for.body8
  br label %for.inc18

for.inc18:                                        ; preds = %for.inc18.loopexit, %for.cond5.preheader
  %inc19 = add nuw nsw i32 %p.016, 1
  %cmp2 = icmp slt i32 %inc19, %k
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc21.loopexit

for.inc21.loopexit:                               ; preds = %for.inc18
  br label %for.inc21

for.inc21:                                        ; preds = %for.inc21.loopexit, %for.cond1.preheader
  %inc22 = add nuw nsw i32 %i.018, 1
  %cmp = icmp slt i32 %inc22, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end23.loopexit

for.end23.loopexit:                               ; preds = %for.inc21
  br label %for.end23

for.end23:                                        ; preds = %for.end23.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @commuted(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp21 = icmp sgt i32 %m, 0
  br i1 %cmp21, label %for.cond1.preheader.preheader, label %for.end28

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc26
  %i.022 = phi i32 [ %inc27, %for.inc26 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp219 = icmp sgt i32 %n, 0
  br i1 %cmp219, label %for.cond5.preheader.preheader, label %for.inc26

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc23
  %j.020 = phi i32 [ %inc24, %for.inc23 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp617 = icmp sgt i32 %k, 0
  br i1 %cmp617, label %for.body8.preheader, label %for.inc23

for.body8.preheader:                              ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %p.018 = phi i32 [ %inc, %for.body8 ], [ 0, %for.body8.preheader ]
  %mul = mul nuw nsw i32 %p.018, %n
  %add = add nuw nsw i32 %mul, %j.020
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw double, ptr %b, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %mul9 = mul nuw nsw i32 %i.022, %k
  %add10 = add nuw nsw i32 %mul9, %p.018
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw double, ptr %a, i64 %idxprom11
  %1 = load double, ptr %arrayidx12, align 8
  %mul13 = fmul fast double %0, %1
  %mul14 = mul nuw nsw i32 %i.022, %n
  %add15 = add nuw nsw i32 %mul14, %j.020
  %idxprom16 = zext nneg i32 %add15 to i64
  %arrayidx17 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom16
  %2 = load double, ptr %arrayidx17, align 8
  %add18 = fadd fast double %mul13, %2
  %mul19 = mul nuw nsw i32 %i.022, %n
  %add20 = add nuw nsw i32 %mul19, %j.020
  %idxprom21 = zext nneg i32 %add20 to i64
  %arrayidx22 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom21
  store double %add18, ptr %arrayidx22, align 8
  %inc = add nuw nsw i32 %p.018, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.inc23.loopexit

for.inc23.loopexit:                               ; preds = %for.body8
  br label %for.inc23

for.inc23:                                        ; preds = %for.inc23.loopexit, %for.cond5.preheader
  %inc24 = add nuw nsw i32 %j.020, 1
  %cmp2 = icmp slt i32 %inc24, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc26.loopexit

for.inc26.loopexit:                               ; preds = %for.inc23
  br label %for.inc26

for.inc26:                                        ; preds = %for.inc26.loopexit, %for.cond1.preheader
  %inc27 = add nuw nsw i32 %i.022, 1
  %cmp = icmp slt i32 %inc27, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end28.loopexit

for.end28.loopexit:                               ; preds = %for.inc26
  br label %for.end28

for.end28:                                        ; preds = %for.end28.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @fused(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp21 = icmp sgt i32 %m, 0
  br i1 %cmp21, label %for.cond1.preheader.preheader, label %for.end26

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc24
  %i.022 = phi i32 [ %inc25, %for.inc24 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp219 = icmp sgt i32 %n, 0
  br i1 %cmp219, label %for.cond5.preheader.preheader, label %for.inc24

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc21
  %j.020 = phi i32 [ %inc22, %for.inc21 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp617 = icmp sgt i32 %k, 0
  br i1 %cmp617, label %for.body8.preheader, label %for.inc21

for.body8.preheader:                              ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %p.018 = phi i32 [ %inc, %for.body8 ], [ 0, %for.body8.preheader ]
  %mul = mul nuw nsw i32 %i.022, %k
  %add = add nuw nsw i32 %mul, %p.018
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw double, ptr %a, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %mul9 = mul nuw nsw i32 %p.018, %n
  %add10 = add nuw nsw i32 %mul9, %j.020
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw double, ptr %b, i64 %idxprom11
  %1 = load double, ptr %arrayidx12, align 8
  %mul13 = mul nuw nsw i32 %i.022, %n
  %add14 = add nuw nsw i32 %mul13, %j.020
  %idxprom15 = zext nneg i32 %add14 to i64
  %arrayidx16 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom15
  %2 = load double, ptr %arrayidx16, align 8
  %3 = call fast double @llvm.fma.f64(double %0, double %1, double %2)
  %mul17 = mul nuw nsw i32 %i.022, %n
  %add18 = add nuw nsw i32 %mul17, %j.020
  %idxprom19 = zext nneg i32 %add18 to i64
  %arrayidx20 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom19
  store double %3, ptr %arrayidx20, align 8
  %inc = add nuw nsw i32 %p.018, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.inc21.loopexit

for.inc21.loopexit:                               ; preds = %for.body8
  br label %for.inc21

for.inc21:                                        ; preds = %for.inc21.loopexit, %for.cond5.preheader
  %inc22 = add nuw nsw i32 %j.020, 1
  %cmp2 = icmp slt i32 %inc22, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc24.loopexit

for.inc24.loopexit:                               ; preds = %for.inc21
  br label %for.inc24

for.inc24:                                        ; preds = %for.inc24.loopexit, %for.cond1.preheader
  %inc25 = add nuw nsw i32 %i.022, 1
  %cmp = icmp slt i32 %inc25, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end26.loopexit

for.end26.loopexit:                               ; preds = %for.inc24
  br label %for.end26

for.end26:                                        ; preds = %for.end26.loopexit, %entry
  ret void
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.fma.f64(double, double, double) #2

; Function Attrs: nounwind uwtable
define void @alpha_of_a(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k, float noundef nofpclass(nan inf) %alpha) #0 {
entry:
  %cmp17 = icmp sgt i32 %m, 0
  br i1 %cmp17, label %for.cond1.preheader.preheader, label %for.end25

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc23
  %i.018 = phi i32 [ %inc24, %for.inc23 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp215 = icmp sgt i32 %k, 0
  br i1 %cmp215, label %for.body4.preheader, label %for.inc23

for.body4.preheader:                              ; preds = %for.cond1.preheader
  br label %for.body4

for.body4:                                        ; preds = %for.body4.preheader, %for.inc20
  %p.016 = phi i32 [ %inc21, %for.inc20 ], [ 0, %for.body4.preheader ]
  %mul = mul nuw nsw i32 %i.018, %k
  %add = add nuw nsw i32 %mul, %p.016
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul5 = fmul fast float %alpha, %0
  %cmp713 = icmp sgt i32 %n, 0
  br i1 %cmp713, label %for.body9.preheader, label %for.inc20

for.body9.preheader:                              ; preds = %for.body4
  br label %for.body9

for.body9:                                        ; preds = %for.body9.preheader, %for.body9
  %j.014 = phi i32 [ %inc, %for.body9 ], [ 0, %for.body9.preheader ]
  %mul10 = mul nuw nsw i32 %p.016, %n
  %add11 = add nuw nsw i32 %mul10, %j.014
  %idxprom12 = zext nneg i32 %add11 to i64
  %arrayidx13 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom12
  %1 = load float, ptr %arrayidx13, align 4
  %mul14 = fmul fast float %mul5, %1
  %mul15 = mul nuw nsw i32 %i.018, %n
  %add16 = add nuw nsw i32 %mul15, %j.014
  %idxprom17 = zext nneg i32 %add16 to i64
  %arrayidx18 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom17
  %2 = load float, ptr %arrayidx18, align 4
  %add19 = fadd fast float %2, %mul14
  store float %add19, ptr %arrayidx18, align 4
  %inc = add nuw nsw i32 %j.014, 1
  %cmp7 = icmp slt i32 %inc, %n
  br i1 %cmp7, label %for.body9, label %for.inc20.loopexit

for.inc20.loopexit:                               ; preds = %for.body9
  br label %for.inc20

for.inc20:                                        ; preds = %for.inc20.loopexit, %for.body4
  %inc21 = add nuw nsw i32 %p.016, 1
  %cmp2 = icmp slt i32 %inc21, %k
  br i1 %cmp2, label %for.body4, label %for.inc23.loopexit

for.inc23.loopexit:                               ; preds = %for.inc20
  br label %for.inc23

for.inc23:                                        ; preds = %for.inc23.loopexit, %for.cond1.preheader
  %inc24 = add nuw nsw i32 %i.018, 1
  %cmp = icmp slt i32 %inc24, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end25.loopexit

for.end25.loopexit:                               ; preds = %for.inc23
  br label %for.end25

for.end25:                                        ; preds = %for.end25.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @alpha_inside(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k, double noundef nofpclass(nan inf) %alpha) #0 {
entry:
  %cmp17 = icmp sgt i32 %m, 0
  br i1 %cmp17, label %for.cond1.preheader.preheader, label %for.end25

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc23
  %i.018 = phi i32 [ %inc24, %for.inc23 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp215 = icmp sgt i32 %n, 0
  br i1 %cmp215, label %for.cond5.preheader.preheader, label %for.inc23

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc20
  %j.016 = phi i32 [ %inc21, %for.inc20 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp613 = icmp sgt i32 %k, 0
  br i1 %cmp613, label %for.body8.preheader, label %for.inc20

for.body8.preheader:                              ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %p.014 = phi i32 [ %inc, %for.body8 ], [ 0, %for.body8.preheader ]
  %mul = mul nuw nsw i32 %i.018, %k
  %add = add nuw nsw i32 %mul, %p.014
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw double, ptr %a, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %mul9 = fmul fast double %alpha, %0
  %mul10 = mul nuw nsw i32 %p.014, %n
  %add11 = add nuw nsw i32 %mul10, %j.016
  %idxprom12 = zext nneg i32 %add11 to i64
  %arrayidx13 = getelementptr inbounds nuw double, ptr %b, i64 %idxprom12
  %1 = load double, ptr %arrayidx13, align 8
  %mul14 = fmul fast double %mul9, %1
  %mul15 = mul nuw nsw i32 %i.018, %n
  %add16 = add nuw nsw i32 %mul15, %j.016
  %idxprom17 = zext nneg i32 %add16 to i64
  %arrayidx18 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom17
  %2 = load double, ptr %arrayidx18, align 8
  %add19 = fadd fast double %2, %mul14
  store double %add19, ptr %arrayidx18, align 8
  %inc = add nuw nsw i32 %p.014, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.inc20.loopexit

for.inc20.loopexit:                               ; preds = %for.body8
  br label %for.inc20

for.inc20:                                        ; preds = %for.inc20.loopexit, %for.cond5.preheader
  %inc21 = add nuw nsw i32 %j.016, 1
  %cmp2 = icmp slt i32 %inc21, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc23.loopexit

for.inc23.loopexit:                               ; preds = %for.inc20
  br label %for.inc23

for.inc23:                                        ; preds = %for.inc23.loopexit, %for.cond1.preheader
  %inc24 = add nuw nsw i32 %i.018, 1
  %cmp = icmp slt i32 %inc24, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end25.loopexit

for.end25.loopexit:                               ; preds = %for.inc23
  br label %for.end25

for.end25:                                        ; preds = %for.end25.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @alpha_beta(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k, float noundef nofpclass(nan inf) %alpha, float noundef nofpclass(nan inf) %beta) #0 {
entry:
  %cmp23 = icmp sgt i32 %m, 0
  br i1 %cmp23, label %for.cond1.preheader.preheader, label %for.end31

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc29
  %i.024 = phi i32 [ %inc30, %for.inc29 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp221 = icmp sgt i32 %n, 0
  br i1 %cmp221, label %for.cond5.preheader.preheader, label %for.inc29

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.end
  %j.022 = phi i32 [ %inc27, %for.end ], [ 0, %for.cond5.preheader.preheader ]
  %cmp618 = icmp sgt i32 %k, 0
  br i1 %cmp618, label %for.inc.preheader, label %for.end

for.inc.preheader:                                ; preds = %for.cond5.preheader
  br label %for.inc

for.inc:                                          ; preds = %for.inc.preheader, %for.inc
  %p.020 = phi i32 [ %inc, %for.inc ], [ 0, %for.inc.preheader ]
  %sum.019 = phi float [ %add14, %for.inc ], [ 0.000000e+00, %for.inc.preheader ]
  %mul = mul nuw nsw i32 %i.024, %k
  %add = add nuw nsw i32 %mul, %p.020
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul9 = mul nuw nsw i32 %p.020, %n
  %add10 = add nuw nsw i32 %mul9, %j.022
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom11
  %1 = load float, ptr %arrayidx12, align 4
  %mul13 = fmul fast float %0, %1
  %add14 = fadd fast float %sum.019, %mul13
  %inc = add nuw nsw i32 %p.020, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.inc, label %for.end.loopexit

for.end.loopexit:                                 ; preds = %for.inc
  %add14.lcssa = phi float [ %add14, %for.inc ]
  br label %for.end

for.end:                                          ; preds = %for.end.loopexit, %for.cond5.preheader
  %sum.0.lcssa = phi float [ 0.000000e+00, %for.cond5.preheader ], [ %add14.lcssa, %for.end.loopexit ]
  %mul15 = fmul fast float %alpha, %sum.0.lcssa
  %mul16 = mul nuw nsw i32 %i.024, %n
  %add17 = add nuw nsw i32 %mul16, %j.022
  %idxprom18 = zext nneg i32 %add17 to i64
  %arrayidx19 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom18
  %2 = load float, ptr %arrayidx19, align 4
  %mul20 = fmul fast float %beta, %2
  %add21 = fadd fast float %mul15, %mul20
  %mul22 = mul nuw nsw i32 %i.024, %n
  %add23 = add nuw nsw i32 %mul22, %j.022
  %idxprom24 = zext nneg i32 %add23 to i64
  %arrayidx25 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom24
  store float %add21, ptr %arrayidx25, align 4
  %inc27 = add nuw nsw i32 %j.022, 1
  %cmp2 = icmp slt i32 %inc27, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc29.loopexit

for.inc29.loopexit:                               ; preds = %for.end
  br label %for.inc29

for.inc29:                                        ; preds = %for.inc29.loopexit, %for.cond1.preheader
  %inc30 = add nuw nsw i32 %i.024, 1
  %cmp = icmp slt i32 %inc30, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end31.loopexit

for.end31.loopexit:                               ; preds = %for.inc29
  br label %for.end31

for.end31:                                        ; preds = %for.end31.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @beta_first(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k, double noundef nofpclass(nan inf) %alpha, double noundef nofpclass(nan inf) %beta) #0 {
entry:
  %cmp21 = icmp sgt i32 %m, 0
  br i1 %cmp21, label %for.cond1.preheader.preheader, label %for.end30

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc28
  %i.022 = phi i32 [ %inc29, %for.inc28 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp219 = icmp sgt i32 %n, 0
  br i1 %cmp219, label %for.body4.preheader, label %for.inc28

for.body4.preheader:                              ; preds = %for.cond1.preheader
  br label %for.body4

for.body4:                                        ; preds = %for.body4.preheader, %for.inc25
  %j.020 = phi i32 [ %inc26, %for.inc25 ], [ 0, %for.body4.preheader ]
  %mul = mul nuw nsw i32 %i.022, %n
  %add = add nuw nsw i32 %mul, %j.020
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw double, ptr %c, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %mul5 = fmul fast double %0, %beta
  store double %mul5, ptr %arrayidx, align 8
  %cmp717 = icmp sgt i32 %k, 0
  br i1 %cmp717, label %for.body9.preheader, label %for.inc25

for.body9.preheader:                              ; preds = %for.body4
  br label %for.body9

for.body9:                                        ; preds = %for.body9.preheader, %for.body9
  %p.018 = phi i32 [ %inc, %for.body9 ], [ 0, %for.body9.preheader ]
  %mul10 = mul nuw nsw i32 %i.022, %k
  %add11 = add nuw nsw i32 %mul10, %p.018
  %idxprom12 = zext nneg i32 %add11 to i64
  %arrayidx13 = getelementptr inbounds nuw double, ptr %a, i64 %idxprom12
  %1 = load double, ptr %arrayidx13, align 8
  %mul14 = fmul fast double %alpha, %1
  %mul15 = mul nuw nsw i32 %p.018, %n
  %add16 = add nuw nsw i32 %mul15, %j.020
  %idxprom17 = zext nneg i32 %add16 to i64
  %arrayidx18 = getelementptr inbounds nuw double, ptr %b, i64 %idxprom17
  %2 = load double, ptr %arrayidx18, align 8
  %mul19 = fmul fast double %mul14, %2
  %mul20 = mul nuw nsw i32 %i.022, %n
  %add21 = add nuw nsw i32 %mul20, %j.020
  %idxprom22 = zext nneg i32 %add21 to i64
  %arrayidx23 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom22
  %3 = load double, ptr %arrayidx23, align 8
  %add24 = fadd fast double %3, %mul19
  store double %add24, ptr %arrayidx23, align 8
  %inc = add nuw nsw i32 %p.018, 1
  %cmp7 = icmp slt i32 %inc, %k
  br i1 %cmp7, label %for.body9, label %for.inc25.loopexit

for.inc25.loopexit:                               ; preds = %for.body9
  br label %for.inc25

for.inc25:                                        ; preds = %for.inc25.loopexit, %for.body4
  %inc26 = add nuw nsw i32 %j.020, 1
  %cmp2 = icmp slt i32 %inc26, %n
  br i1 %cmp2, label %for.body4, label %for.inc28.loopexit

for.inc28.loopexit:                               ; preds = %for.inc25
  br label %for.inc28

for.inc28:                                        ; preds = %for.inc28.loopexit, %for.cond1.preheader
  %inc29 = add nuw nsw i32 %i.022, 1
  %cmp = icmp slt i32 %inc29, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end30.loopexit

for.end30.loopexit:                               ; preds = %for.inc28
  br label %for.end30

for.end30:                                        ; preds = %for.end30.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @polybench_gemm(i32 noundef %m, i32 noundef %n, i32 noundef %k, double noundef nofpclass(nan inf) %alpha, double noundef nofpclass(nan inf) %beta, ptr noundef %c, ptr noundef %a, ptr noundef %b) #0 {
entry:
  %0 = zext i32 %n to i64
  %1 = zext i32 %k to i64
  %2 = zext i32 %n to i64
  %cmp27 = icmp sgt i32 %m, 0
  br i1 %cmp27, label %for.cond1.preheader.preheader, label %for.end38

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc36
  %i.028 = phi i32 [ %inc37, %for.inc36 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp221 = icmp sgt i32 %n, 0
  br i1 %cmp221, label %for.body4.preheader, label %for.cond7.preheader

for.body4.preheader:                              ; preds = %for.cond1.preheader
  br label %for.body4

for.cond7.preheader.loopexit:                     ; preds = %for.body4
  br label %for.cond7.preheader

for.cond7.preheader:                              ; preds = %for.cond7.preheader.loopexit, %for.cond1.preheader
  %cmp825 = icmp sgt i32 %k, 0
  br i1 %cmp825, label %for.cond12.preheader.preheader, label %for.inc36

for.cond12.preheader.preheader:                   ; preds = %for.cond7.preheader
  br label %for.cond12.preheader

for.body4:                                        ; preds = %for.body4.preheader, %for.body4
  %j.022 = phi i32 [ %inc, %for.body4 ], [ 0, %for.body4.preheader ]
  %idxprom = zext nneg i32 %i.028 to i64
  %3 = mul nuw nsw i64 %idxprom, %0
  %arrayidx = getelementptr inbounds nuw double, ptr %c, i64 %3
  %idxprom5 = zext nneg i32 %j.022 to i64
  %arrayidx6 = getelementptr inbounds nuw double, ptr %arrayidx, i64 %idxprom5
  %4 = load double, ptr %arrayidx6, align 8
  %mul = fmul fast double %4, %beta
  store double %mul, ptr %arrayidx6, align 8
  %inc = add nuw nsw i32 %j.022, 1
  %cmp2 = icmp slt i32 %inc, %n
  br i1 %cmp2, label %for.body4, label %for.cond7.preheader.loopexit

for.cond12.preheader:                             ; preds = %for.cond12.preheader.preheader, %for.inc33
  %p.026 = phi i32 [ %inc34, %for.inc33 ], [ 0, %for.cond12.preheader.preheader ]
  %cmp1323 = icmp sgt i32 %n, 0
  br i1 %cmp1323, label %for.body15.preheader, label %for.inc33

for.body15.preheader:                             ; preds = %for.cond12.preheader
  br label %for.body15

for.body15:                                       ; preds = %for.body15.preheader, %for.body15
  %j11.024 = phi i32 [ %inc31, %for.body15 ], [ 0, %for.body15.preheader ]
  %idxprom16 = zext nneg i32 %i.028 to i64
  %5 = mul nuw nsw i64 %idxprom16, %1
  %arrayidx17 = getelementptr inbounds nuw double, ptr %a, i64 %5
  %idxprom18 = zext nneg i32 %p.026 to i64
  %arrayidx19 = getelementptr inbounds nuw double, ptr %arrayidx17, i64 %idxprom18
  %6 = load double, ptr %arrayidx19, align 8
  %mul20 = fmul fast double %alpha, %6
  %idxprom21 = zext nneg i32 %p.026 to i64
  %7 = mul nuw nsw i64 %idxprom21, %2
  %arrayidx22 = getelementptr inbounds nuw double, ptr %b, i64 %7
  %idxprom23 = zext nneg i32 %j11.024 to i64
  %arrayidx24 = getelementptr inbounds nuw double, ptr %arrayidx22, i64 %idxprom23
  %8 = load double, ptr %arrayidx24, align 8
  %mul25 = fmul fast double %mul20, %8
  %idxprom26 = zext nneg i32 %i.028 to i64
  %9 = mul nuw nsw i64 %idxprom26, %0
  %arrayidx27 = getelementptr inbounds nuw double, ptr %c, i64 %9
  %idxprom28 = zext nneg i32 %j11.024 to i64
  %arrayidx29 = getelementptr inbounds nuw double, ptr %arrayidx27, i64 %idxprom28
  %10 = load double, ptr %arrayidx29, align 8
  %add = fadd fast double %10, %mul25
  store double %add, ptr %arrayidx29, align 8
  %inc31 = add nuw nsw i32 %j11.024, 1
  %cmp13 = icmp slt i32 %inc31, %n
  br i1 %cmp13, label %for.body15, label %for.inc33.loopexit

for.inc33.loopexit:                               ; preds = %for.body15
  br label %for.inc33

for.inc33:                                        ; preds = %for.inc33.loopexit, %for.cond12.preheader
  %inc34 = add nuw nsw i32 %p.026, 1
  %cmp8 = icmp slt i32 %inc34, %k
  br i1 %cmp8, label %for.cond12.preheader, label %for.inc36.loopexit

for.inc36.loopexit:                               ; preds = %for.inc33
  br label %for.inc36

for.inc36:                                        ; preds = %for.inc36.loopexit, %for.cond7.preheader
  %inc37 = add nuw nsw i32 %i.028, 1
  %cmp = icmp slt i32 %inc37, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end38.loopexit

for.end38.loopexit:                               ; preds = %for.inc36
  br label %for.end38

for.end38:                                        ; preds = %for.end38.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @out_of_place(ptr noundef %d, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  br label %do.body

do.body:                                          ; preds = %do.cond, %entry
  %i.0 = phi i32 [ 0, %entry ], [ %inc18, %do.cond ]
  %cmp16 = icmp sgt i32 %n, 0
  br i1 %cmp16, label %for.cond1.preheader.preheader, label %do.cond

for.cond1.preheader.preheader:                    ; preds = %do.body
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.end
  %j.017 = phi i32 [ %inc16, %for.end ], [ 0, %for.cond1.preheader.preheader ]
  %cmp213 = icmp sgt i32 %k, 0
  br i1 %cmp213, label %for.inc.preheader, label %for.end

for.inc.preheader:                                ; preds = %for.cond1.preheader
  br label %for.inc

for.inc:                                          ; preds = %for.inc.preheader, %for.inc
  %p.015 = phi i32 [ %inc, %for.inc ], [ 0, %for.inc.preheader ]
  %sum.014 = phi float [ %add10, %for.inc ], [ 0.000000e+00, %for.inc.preheader ]
  %mul = mul nuw nsw i32 %i.0, %k
  %add = add nuw nsw i32 %mul, %p.015
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul5 = mul nuw nsw i32 %p.015, %n
  %add6 = add nuw nsw i32 %mul5, %j.017
  %idxprom7 = zext nneg i32 %add6 to i64
  %arrayidx8 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom7
  %1 = load float, ptr %arrayidx8, align 4
  %mul9 = fmul fast float %0, %1
  %add10 = fadd fast float %sum.014, %mul9
  %inc = add nuw nsw i32 %p.015, 1
  %cmp2 = icmp slt i32 %inc, %k
  br i1 %cmp2, label %for.inc, label %for.end.loopexit

for.end.loopexit:                                 ; preds = %for.inc
  %add10.lcssa = phi float [ %add10, %for.inc ]
  br label %for.end

for.end:                                          ; preds = %for.end.loopexit, %for.cond1.preheader
  %sum.0.lcssa = phi float [ 0.000000e+00, %for.cond1.preheader ], [ %add10.lcssa, %for.end.loopexit ]
  %mul11 = mul nuw nsw i32 %i.0, %n
  %add12 = add nuw nsw i32 %mul11, %j.017
  %idxprom13 = zext nneg i32 %add12 to i64
  %arrayidx14 = getelementptr inbounds nuw float, ptr %d, i64 %idxprom13
  store float %sum.0.lcssa, ptr %arrayidx14, align 4
  %inc16 = add nuw nsw i32 %j.017, 1
  %cmp = icmp slt i32 %inc16, %n
  br i1 %cmp, label %for.cond1.preheader, label %do.cond.loopexit

do.cond.loopexit:                                 ; preds = %for.end
  br label %do.cond

do.cond:                                          ; preds = %do.cond.loopexit, %do.body
  %inc18 = add nuw nsw i32 %i.0, 1
  %cmp19 = icmp slt i32 %inc18, %m
  br i1 %cmp19, label %do.body, label %do.end

do.end:                                           ; preds = %do.cond
  ret void
}

; Function Attrs: nounwind uwtable
define void @syrk_lower(ptr noundef %c, ptr noundef %a, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp18 = icmp sgt i32 %n, 0
  br i1 %cmp18, label %for.cond1.preheader.preheader, label %for.end24

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc22
  %i.019 = phi i32 [ %inc23, %for.inc22 ], [ 0, %for.cond1.preheader.preheader ]
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond1.preheader, %for.inc19
  %j.017 = phi i32 [ 0, %for.cond1.preheader ], [ %inc20, %for.inc19 ]
  %cmp615 = icmp sgt i32 %k, 0
  br i1 %cmp615, label %for.body8.preheader, label %for.inc19

for.body8.preheader:                              ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %p.016 = phi i32 [ %inc, %for.body8 ], [ 0, %for.body8.preheader ]
  %mul = mul nuw nsw i32 %i.019, %k
  %add = add nuw nsw i32 %mul, %p.016
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw double, ptr %a, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %mul9 = mul nuw nsw i32 %j.017, %k
  %add10 = add nuw nsw i32 %mul9, %p.016
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw double, ptr %a, i64 %idxprom11
  %1 = load double, ptr %arrayidx12, align 8
  %mul13 = fmul fast double %0, %1
  %mul14 = mul nuw nsw i32 %i.019, %n
  %add15 = add nuw nsw i32 %mul14, %j.017
  %idxprom16 = zext nneg i32 %add15 to i64
  %arrayidx17 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom16
  %2 = load double, ptr %arrayidx17, align 8
  %add18 = fadd fast double %2, %mul13
  store double %add18, ptr %arrayidx17, align 8
  %inc = add nuw nsw i32 %p.016, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.inc19.loopexit

for.inc19.loopexit:                               ; preds = %for.body8
  br label %for.inc19

for.inc19:                                        ; preds = %for.inc19.loopexit, %for.cond5.preheader
  %inc20 = add nuw nsw i32 %j.017, 1
  %cmp2.not.not = icmp samesign ult i32 %j.017, %i.019
  br i1 %cmp2.not.not, label %for.cond5.preheader, label %for.inc22

for.inc22:                                        ; preds = %for.inc19
  %inc23 = add nuw nsw i32 %i.019, 1
  %cmp = icmp slt i32 %inc23, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.end24.loopexit

for.end24.loopexit:                               ; preds = %for.inc22
  br label %for.end24

for.end24:                                        ; preds = %for.end24.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @syrk_upper(ptr noundef %c, ptr noundef %a, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp20 = icmp sgt i32 %n, 0
  br i1 %cmp20, label %for.cond1.preheader.preheader, label %for.end24

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc22
  %i.021 = phi i32 [ %inc23, %for.inc22 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp218 = icmp sgt i32 %k, 0
  br i1 %cmp218, label %for.cond5.preheader.preheader, label %for.inc22

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc19
  %p.019 = phi i32 [ %inc20, %for.inc19 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp616 = icmp slt i32 %i.021, %n
  br i1 %cmp616, label %for.body8.preheader, label %for.inc19

for.body8.preheader:                              ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %j.017 = phi i32 [ %inc, %for.body8 ], [ %i.021, %for.body8.preheader ]
  %mul = mul nuw nsw i32 %i.021, %k
  %add = add nuw nsw i32 %mul, %p.019
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw double, ptr %a, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %mul9 = mul nuw nsw i32 %j.017, %k
  %add10 = add nuw nsw i32 %mul9, %p.019
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw double, ptr %a, i64 %idxprom11
  %1 = load double, ptr %arrayidx12, align 8
  %mul13 = fmul fast double %0, %1
  %mul14 = mul nuw nsw i32 %i.021, %n
  %add15 = add nuw nsw i32 %mul14, %j.017
  %idxprom16 = zext nneg i32 %add15 to i64
  %arrayidx17 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom16
  %2 = load double, ptr %arrayidx17, align 8
  %add18 = fadd fast double %2, %mul13
  store double %add18, ptr %arrayidx17, align 8
  %inc = add nuw nsw i32 %j.017, 1
  %cmp6 = icmp slt i32 %inc, %n
  br i1 %cmp6, label %for.body8, label %for.inc19.loopexit

for.inc19.loopexit:                               ; preds = %for.body8
  br label %for.inc19

for.inc19:                                        ; preds = %for.inc19.loopexit, %for.cond5.preheader
  %inc20 = add nuw nsw i32 %p.019, 1
  %cmp2 = icmp slt i32 %inc20, %k
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc22.loopexit

for.inc22.loopexit:                               ; preds = %for.inc19
  br label %for.inc22

for.inc22:                                        ; preds = %for.inc22.loopexit, %for.cond1.preheader
  %inc23 = add nuw nsw i32 %i.021, 1
  %cmp = icmp slt i32 %inc23, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.end24.loopexit

for.end24.loopexit:                               ; preds = %for.inc22
  br label %for.end24

for.end24:                                        ; preds = %for.end24.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @polybench_syrk(i32 noundef %n, i32 noundef %k, double noundef nofpclass(nan inf) %alpha, double noundef nofpclass(nan inf) %beta, ptr noundef %c, ptr noundef %a) #0 {
entry:
  %0 = zext i32 %n to i64
  %1 = zext i32 %k to i64
  %cmp25 = icmp sgt i32 %n, 0
  br i1 %cmp25, label %for.cond1.preheader.preheader, label %for.end38

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc36
  %i.026 = phi i32 [ %inc37, %for.inc36 ], [ 0, %for.cond1.preheader.preheader ]
  br label %for.body4

for.cond7.preheader:                              ; preds = %for.body4
  %cmp823 = icmp sgt i32 %k, 0
  br i1 %cmp823, label %for.cond12.preheader.preheader, label %for.inc36

for.cond12.preheader.preheader:                   ; preds = %for.cond7.preheader
  br label %for.cond12.preheader

for.body4:                                        ; preds = %for.cond1.preheader, %for.body4
  %j.021 = phi i32 [ 0, %for.cond1.preheader ], [ %inc, %for.body4 ]
  %idxprom = zext nneg i32 %i.026 to i64
  %2 = mul nuw nsw i64 %idxprom, %0
  %arrayidx = getelementptr inbounds nuw double, ptr %c, i64 %2
  %idxprom5 = zext nneg i32 %j.021 to i64
  %arrayidx6 = getelementptr inbounds nuw double, ptr %arrayidx, i64 %idxprom5
  %3 = load double, ptr %arrayidx6, align 8
  %mul = fmul fast double %3, %beta
  store double %mul, ptr %arrayidx6, align 8
  %inc = add nuw nsw i32 %j.021, 1
  %cmp2.not.not = icmp samesign ult i32 %j.021, %i.026
  br i1 %cmp2.not.not, label %for.body4, label %for.cond7.preheader

for.cond12.preheader:                             ; preds = %for.cond12.preheader.preheader, %for.inc33
  %p.024 = phi i32 [ %inc34, %for.inc33 ], [ 0, %for.cond12.preheader.preheader ]
  br label %for.body15

for.body15:                                       ; preds = %for.cond12.preheader, %for.body15
  %j11.022 = phi i32 [ 0, %for.cond12.preheader ], [ %inc31, %for.body15 ]
  %idxprom16 = zext nneg i32 %i.026 to i64
  %4 = mul nuw nsw i64 %idxprom16, %1
  %arrayidx17 = getelementptr inbounds nuw double, ptr %a, i64 %4
  %idxprom18 = zext nneg i32 %p.024 to i64
  %arrayidx19 = getelementptr inbounds nuw double, ptr %arrayidx17, i64 %idxprom18
  %5 = load double, ptr %arrayidx19, align 8
  %mul20 = fmul fast double %alpha, %5
  %idxprom21 = zext nneg i32 %j11.022 to i64
  %6 = mul nuw nsw i64 %idxprom21, %1
  %arrayidx22 = getelementptr inbounds nuw double, ptr %a, i64 %6
  %idxprom23 = zext nneg i32 %p.024 to i64
  %arrayidx24 = getelementptr inbounds nuw double, ptr %arrayidx22, i64 %idxprom23
  %7 = load double, ptr %arrayidx24, align 8
  %mul25 = fmul fast double %mul20, %7
  %idxprom26 = zext nneg i32 %i.026 to i64
  %8 = mul nuw nsw i64 %idxprom26, %0
  %arrayidx27 = getelementptr inbounds nuw double, ptr %c, i64 %8
  %idxprom28 = zext nneg i32 %j11.022 to i64
  %arrayidx29 = getelementptr inbounds nuw double, ptr %arrayidx27, i64 %idxprom28
  %9 = load double, ptr %arrayidx29, align 8
  %add = fadd fast double %9, %mul25
  store double %add, ptr %arrayidx29, align 8
  %inc31 = add nuw nsw i32 %j11.022, 1
  %cmp13.not.not = icmp samesign ult i32 %j11.022, %i.026
  br i1 %cmp13.not.not, label %for.body15, label %for.inc33

for.inc33:                                        ; preds = %for.body15
  %inc34 = add nuw nsw i32 %p.024, 1
  %cmp8 = icmp slt i32 %inc34, %k
  br i1 %cmp8, label %for.cond12.preheader, label %for.inc36.loopexit

for.inc36.loopexit:                               ; preds = %for.inc33
  br label %for.inc36

for.inc36:                                        ; preds = %for.inc36.loopexit, %for.cond7.preheader
  %inc37 = add nuw nsw i32 %i.026, 1
  %cmp = icmp slt i32 %inc37, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.end38.loopexit

for.end38.loopexit:                               ; preds = %for.inc36
  br label %for.end38

for.end38:                                        ; preds = %for.end38.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @syr2k_lower(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp25 = icmp sgt i32 %n, 0
  br i1 %cmp25, label %for.cond1.preheader.preheader, label %for.end34

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc32
  %i.026 = phi i32 [ %inc33, %for.inc32 ], [ 0, %for.cond1.preheader.preheader ]
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond1.preheader, %for.inc29
  %j.024 = phi i32 [ 0, %for.cond1.preheader ], [ %inc30, %for.inc29 ]
  %cmp622 = icmp sgt i32 %k, 0
  br i1 %cmp622, label %for.body8.preheader, label %for.inc29

for.body8.preheader:                              ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %p.023 = phi i32 [ %inc, %for.body8 ], [ 0, %for.body8.preheader ]
  %mul = mul nuw nsw i32 %i.026, %k
  %add = add nuw nsw i32 %mul, %p.023
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw double, ptr %a, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %mul9 = mul nuw nsw i32 %j.024, %k
  %add10 = add nuw nsw i32 %mul9, %p.023
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw double, ptr %b, i64 %idxprom11
  %1 = load double, ptr %arrayidx12, align 8
  %mul13 = fmul fast double %0, %1
  %mul14 = mul nuw nsw i32 %i.026, %k
  %add15 = add nuw nsw i32 %mul14, %p.023
  %idxprom16 = zext nneg i32 %add15 to i64
  %arrayidx17 = getelementptr inbounds nuw double, ptr %b, i64 %idxprom16
  %2 = load double, ptr %arrayidx17, align 8
  %mul18 = mul nuw nsw i32 %j.024, %k
  %add19 = add nuw nsw i32 %mul18, %p.023
  %idxprom20 = zext nneg i32 %add19 to i64
  %arrayidx21 = getelementptr inbounds nuw double, ptr %a, i64 %idxprom20
  %3 = load double, ptr %arrayidx21, align 8
  %mul22 = fmul fast double %2, %3
  %add23 = fadd fast double %mul13, %mul22
  %mul24 = mul nuw nsw i32 %i.026, %n
  %add25 = add nuw nsw i32 %mul24, %j.024
  %idxprom26 = zext nneg i32 %add25 to i64
  %arrayidx27 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom26
  %4 = load double, ptr %arrayidx27, align 8
  %add28 = fadd fast double %4, %add23
  store double %add28, ptr %arrayidx27, align 8
  %inc = add nuw nsw i32 %p.023, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.inc29.loopexit

for.inc29.loopexit:                               ; preds = %for.body8
  br label %for.inc29

for.inc29:                                        ; preds = %for.inc29.loopexit, %for.cond5.preheader
  %inc30 = add nuw nsw i32 %j.024, 1
  %cmp2.not.not = icmp samesign ult i32 %j.024, %i.026
  br i1 %cmp2.not.not, label %for.cond5.preheader, label %for.inc32

for.inc32:                                        ; preds = %for.inc29
  %inc33 = add nuw nsw i32 %i.026, 1
  %cmp = icmp slt i32 %inc33, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.end34.loopexit

for.end34.loopexit:                               ; preds = %for.inc32
  br label %for.end34

for.end34:                                        ; preds = %for.end34.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @syr2k_upper_twice(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp30 = icmp sgt i32 %n, 0
  br i1 %cmp30, label %for.cond1.preheader.preheader, label %for.end38

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc36
  %i.031 = phi i32 [ %inc37, %for.inc36 ], [ 0, %for.cond1.preheader.preheader ]
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond1.preheader, %for.inc33
  %j.029 = phi i32 [ %i.031, %for.cond1.preheader ], [ %inc34, %for.inc33 ]
  %cmp627 = icmp sgt i32 %k, 0
  br i1 %cmp627, label %for.body8.preheader, label %for.inc33

for.body8.preheader:                              ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %p.028 = phi i32 [ %inc, %for.body8 ], [ 0, %for.body8.preheader ]
  %mul = mul nuw nsw i32 %i.031, %k
  %add = add nuw nsw i32 %mul, %p.028
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw double, ptr %a, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %mul9 = mul nuw nsw i32 %j.029, %k
  %add10 = add nuw nsw i32 %mul9, %p.028
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw double, ptr %b, i64 %idxprom11
  %1 = load double, ptr %arrayidx12, align 8
  %mul13 = fmul fast double %0, %1
  %mul14 = mul nuw nsw i32 %i.031, %n
  %add15 = add nuw nsw i32 %mul14, %j.029
  %idxprom16 = zext nneg i32 %add15 to i64
  %arrayidx17 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom16
  %2 = load double, ptr %arrayidx17, align 8
  %add18 = fadd fast double %2, %mul13
  store double %add18, ptr %arrayidx17, align 8
  %mul19 = mul nuw nsw i32 %i.031, %k
  %add20 = add nuw nsw i32 %mul19, %p.028
  %idxprom21 = zext nneg i32 %add20 to i64
  %arrayidx22 = getelementptr inbounds nuw double, ptr %b, i64 %idxprom21
  %3 = load double, ptr %arrayidx22, align 8
  %mul23 = mul nuw nsw i32 %j.029, %k
  %add24 = add nuw nsw i32 %mul23, %p.028
  %idxprom25 = zext nneg i32 %add24 to i64
  %arrayidx26 = getelementptr inbounds nuw double, ptr %a, i64 %idxprom25
  %4 = load double, ptr %arrayidx26, align 8
  %mul27 = fmul fast double %3, %4
  %mul28 = mul nuw nsw i32 %i.031, %n
  %add29 = add nuw nsw i32 %mul28, %j.029
  %idxprom30 = zext nneg i32 %add29 to i64
  %arrayidx31 = getelementptr inbounds nuw double, ptr %c, i64 %idxprom30
  %5 = load double, ptr %arrayidx31, align 8
  %add32 = fadd fast double %5, %mul27
  store double %add32, ptr %arrayidx31, align 8
  %inc = add nuw nsw i32 %p.028, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.inc33.loopexit

for.inc33.loopexit:                               ; preds = %for.body8
  br label %for.inc33

for.inc33:                                        ; preds = %for.inc33.loopexit, %for.cond5.preheader
  %inc34 = add nuw nsw i32 %j.029, 1
  %cmp2 = icmp slt i32 %inc34, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc36

for.inc36:                                        ; preds = %for.inc33
  %inc37 = add nuw nsw i32 %i.031, 1
  %cmp = icmp slt i32 %inc37, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.end38.loopexit

for.end38.loopexit:                               ; preds = %for.inc36
  br label %for.end38

for.end38:                                        ; preds = %for.end38.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @polybench_syr2k(i32 noundef %n, i32 noundef %k, double noundef nofpclass(nan inf) %alpha, double noundef nofpclass(nan inf) %beta, ptr noundef %c, ptr noundef %a, ptr noundef %b) #0 {
entry:
  %0 = zext i32 %n to i64
  %1 = zext i32 %k to i64
  %2 = zext i32 %k to i64
  %cmp33 = icmp sgt i32 %n, 0
  br i1 %cmp33, label %for.cond1.preheader.preheader, label %for.end49

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc47
  %i.034 = phi i32 [ %inc48, %for.inc47 ], [ 0, %for.cond1.preheader.preheader ]
  br label %for.body4

for.cond7.preheader:                              ; preds = %for.body4
  %cmp831 = icmp sgt i32 %k, 0
  br i1 %cmp831, label %for.cond12.preheader.preheader, label %for.inc47

for.cond12.preheader.preheader:                   ; preds = %for.cond7.preheader
  br label %for.cond12.preheader

for.body4:                                        ; preds = %for.cond1.preheader, %for.body4
  %j.029 = phi i32 [ 0, %for.cond1.preheader ], [ %inc, %for.body4 ]
  %idxprom = zext nneg i32 %i.034 to i64
  %3 = mul nuw nsw i64 %idxprom, %0
  %arrayidx = getelementptr inbounds nuw double, ptr %c, i64 %3
  %idxprom5 = zext nneg i32 %j.029 to i64
  %arrayidx6 = getelementptr inbounds nuw double, ptr %arrayidx, i64 %idxprom5
  %4 = load double, ptr %arrayidx6, align 8
  %mul = fmul fast double %4, %beta
  store double %mul, ptr %arrayidx6, align 8
  %inc = add nuw nsw i32 %j.029, 1
  %cmp2.not.not = icmp samesign ult i32 %j.029, %i.034
  br i1 %cmp2.not.not, label %for.body4, label %for.cond7.preheader

for.cond12.preheader:                             ; preds = %for.cond12.preheader.preheader, %for.inc44
  %p.032 = phi i32 [ %inc45, %for.inc44 ], [ 0, %for.cond12.preheader.preheader ]
  br label %for.body15

for.body15:                                       ; preds = %for.cond12.preheader, %for.body15
  %j11.030 = phi i32 [ 0, %for.cond12.preheader ], [ %inc42, %for.body15 ]
  %idxprom16 = zext nneg i32 %j11.030 to i64
  %5 = mul nuw nsw i64 %idxprom16, %1
  %arrayidx17 = getelementptr inbounds nuw double, ptr %a, i64 %5
  %idxprom18 = zext nneg i32 %p.032 to i64
  %arrayidx19 = getelementptr inbounds nuw double, ptr %arrayidx17, i64 %idxprom18
  %6 = load double, ptr %arrayidx19, align 8
  %mul20 = fmul fast double %6, %alpha
  %idxprom21 = zext nneg i32 %i.034 to i64
  %7 = mul nuw nsw i64 %idxprom21, %2
  %arrayidx22 = getelementptr inbounds nuw double, ptr %b, i64 %7
  %idxprom23 = zext nneg i32 %p.032 to i64
  %arrayidx24 = getelementptr inbounds nuw double, ptr %arrayidx22, i64 %idxprom23
  %8 = load double, ptr %arrayidx24, align 8
  %mul25 = fmul fast double %mul20, %8
  %idxprom26 = zext nneg i32 %j11.030 to i64
  %9 = mul nuw nsw i64 %idxprom26, %2
  %arrayidx27 = getelementptr inbounds nuw double, ptr %b, i64 %9
  %idxprom28 = zext nneg i32 %p.032 to i64
  %arrayidx29 = getelementptr inbounds nuw double, ptr %arrayidx27, i64 %idxprom28
  %10 = load double, ptr %arrayidx29, align 8
  %mul30 = fmul fast double %10, %alpha
  %idxprom31 = zext nneg i32 %i.034 to i64
  %11 = mul nuw nsw i64 %idxprom31, %1
  %arrayidx32 = getelementptr inbounds nuw double, ptr %a, i64 %11
  %idxprom33 = zext nneg i32 %p.032 to i64
  %arrayidx34 = getelementptr inbounds nuw double, ptr %arrayidx32, i64 %idxprom33
  %12 = load double, ptr %arrayidx34, align 8
  %mul35 = fmul fast double %mul30, %12
  %add = fadd fast double %mul25, %mul35
  %idxprom36 = zext nneg i32 %i.034 to i64
  %13 = mul nuw nsw i64 %idxprom36, %0
  %arrayidx37 = getelementptr inbounds nuw double, ptr %c, i64 %13
  %idxprom38 = zext nneg i32 %j11.030 to i64
  %arrayidx39 = getelementptr inbounds nuw double, ptr %arrayidx37, i64 %idxprom38
  %14 = load double, ptr %arrayidx39, align 8
  %add40 = fadd fast double %14, %add
  store double %add40, ptr %arrayidx39, align 8
  %inc42 = add nuw nsw i32 %j11.030, 1
  %cmp13.not.not = icmp samesign ult i32 %j11.030, %i.034
  br i1 %cmp13.not.not, label %for.body15, label %for.inc44

for.inc44:                                        ; preds = %for.body15
  %inc45 = add nuw nsw i32 %p.032, 1
  %cmp8 = icmp slt i32 %inc45, %k
  br i1 %cmp8, label %for.cond12.preheader, label %for.inc47.loopexit

for.inc47.loopexit:                               ; preds = %for.inc44
  br label %for.inc47

for.inc47:                                        ; preds = %for.inc47.loopexit, %for.cond7.preheader
  %inc48 = add nuw nsw i32 %i.034, 1
  %cmp = icmp slt i32 %inc48, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.end49.loopexit

for.end49.loopexit:                               ; preds = %for.inc47
  br label %for.end49

for.end49:                                        ; preds = %for.end49.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @matrix_vector(ptr noundef %y, ptr noundef %a, ptr noundef %x, i32 noundef %m, i32 noundef %k) #0 {
entry:
  %cmp10 = icmp sgt i32 %m, 0
  br i1 %cmp10, label %for.cond1.preheader.preheader, label %for.end13

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc11
  %i.011 = phi i32 [ %inc12, %for.inc11 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp28 = icmp sgt i32 %k, 0
  br i1 %cmp28, label %for.body4.preheader, label %for.inc11

for.body4.preheader:                              ; preds = %for.cond1.preheader
  br label %for.body4

for.body4:                                        ; preds = %for.body4.preheader, %for.body4
  %p.09 = phi i32 [ %inc, %for.body4 ], [ 0, %for.body4.preheader ]
  %mul = mul nuw nsw i32 %i.011, %k
  %add = add nuw nsw i32 %mul, %p.09
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %idxprom5 = zext nneg i32 %p.09 to i64
  %arrayidx6 = getelementptr inbounds nuw float, ptr %x, i64 %idxprom5
  %1 = load float, ptr %arrayidx6, align 4
  %mul7 = fmul fast float %0, %1
  %idxprom8 = zext nneg i32 %i.011 to i64
  %arrayidx9 = getelementptr inbounds nuw float, ptr %y, i64 %idxprom8
  %2 = load float, ptr %arrayidx9, align 4
  %add10 = fadd fast float %2, %mul7
  store float %add10, ptr %arrayidx9, align 4
  %inc = add nuw nsw i32 %p.09, 1
  %cmp2 = icmp slt i32 %inc, %k
  br i1 %cmp2, label %for.body4, label %for.inc11.loopexit

for.inc11.loopexit:                               ; preds = %for.body4
  br label %for.inc11

for.inc11:                                        ; preds = %for.inc11.loopexit, %for.cond1.preheader
  %inc12 = add nuw nsw i32 %i.011, 1
  %cmp = icmp slt i32 %inc12, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end13.loopexit

for.end13.loopexit:                               ; preds = %for.inc11
  br label %for.end13

for.end13:                                        ; preds = %for.end13.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @transposed_matrix_vector(ptr noundef %y, ptr noundef %a, ptr noundef %x, i32 noundef %m, i32 noundef %k) #0 {
entry:
  %cmp10 = icmp sgt i32 %k, 0
  br i1 %cmp10, label %for.cond1.preheader.preheader, label %for.end13

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc11
  %p.011 = phi i32 [ %inc12, %for.inc11 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp28 = icmp sgt i32 %m, 0
  br i1 %cmp28, label %for.body4.preheader, label %for.inc11

for.body4.preheader:                              ; preds = %for.cond1.preheader
  br label %for.body4

for.body4:                                        ; preds = %for.body4.preheader, %for.body4
  %i.09 = phi i32 [ %inc, %for.body4 ], [ 0, %for.body4.preheader ]
  %mul = mul nuw nsw i32 %p.011, %m
  %add = add nuw nsw i32 %mul, %i.09
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %idxprom5 = zext nneg i32 %p.011 to i64
  %arrayidx6 = getelementptr inbounds nuw float, ptr %x, i64 %idxprom5
  %1 = load float, ptr %arrayidx6, align 4
  %mul7 = fmul fast float %0, %1
  %idxprom8 = zext nneg i32 %i.09 to i64
  %arrayidx9 = getelementptr inbounds nuw float, ptr %y, i64 %idxprom8
  %2 = load float, ptr %arrayidx9, align 4
  %add10 = fadd fast float %2, %mul7
  store float %add10, ptr %arrayidx9, align 4
  %inc = add nuw nsw i32 %i.09, 1
  %cmp2 = icmp slt i32 %inc, %m
  br i1 %cmp2, label %for.body4, label %for.inc11.loopexit

for.inc11.loopexit:                               ; preds = %for.body4
  br label %for.inc11

for.inc11:                                        ; preds = %for.inc11.loopexit, %for.cond1.preheader
  %inc12 = add nuw nsw i32 %p.011, 1
  %cmp = icmp slt i32 %inc12, %k
  br i1 %cmp, label %for.cond1.preheader, label %for.end13.loopexit

for.end13.loopexit:                               ; preds = %for.inc11
  br label %for.end13

for.end13:                                        ; preds = %for.end13.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @matrix_vector_set(ptr noundef %y, ptr noundef %a, ptr noundef %x, i32 noundef %m, i32 noundef %k) #0 {
entry:
  %cmp12 = icmp sgt i32 %m, 0
  br i1 %cmp12, label %for.cond1.preheader.preheader, label %for.end13

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.end
  %i.013 = phi i32 [ %inc12, %for.end ], [ 0, %for.cond1.preheader.preheader ]
  %cmp29 = icmp sgt i32 %k, 0
  br i1 %cmp29, label %for.inc.preheader, label %for.end

for.inc.preheader:                                ; preds = %for.cond1.preheader
  br label %for.inc

for.inc:                                          ; preds = %for.inc.preheader, %for.inc
  %p.011 = phi i32 [ %inc, %for.inc ], [ 0, %for.inc.preheader ]
  %sum.010 = phi double [ %add8, %for.inc ], [ 0.000000e+00, %for.inc.preheader ]
  %mul = mul nuw nsw i32 %i.013, %k
  %add = add nuw nsw i32 %mul, %p.011
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw double, ptr %a, i64 %idxprom
  %0 = load double, ptr %arrayidx, align 8
  %idxprom5 = zext nneg i32 %p.011 to i64
  %arrayidx6 = getelementptr inbounds nuw double, ptr %x, i64 %idxprom5
  %1 = load double, ptr %arrayidx6, align 8
  %mul7 = fmul fast double %0, %1
  %add8 = fadd fast double %sum.010, %mul7
  %inc = add nuw nsw i32 %p.011, 1
  %cmp2 = icmp slt i32 %inc, %k
  br i1 %cmp2, label %for.inc, label %for.end.loopexit

for.end.loopexit:                                 ; preds = %for.inc
  %add8.lcssa = phi double [ %add8, %for.inc ]
  br label %for.end

for.end:                                          ; preds = %for.end.loopexit, %for.cond1.preheader
  %sum.0.lcssa = phi double [ 0.000000e+00, %for.cond1.preheader ], [ %add8.lcssa, %for.end.loopexit ]
  %idxprom9 = zext nneg i32 %i.013 to i64
  %arrayidx10 = getelementptr inbounds nuw double, ptr %y, i64 %idxprom9
  store double %sum.0.lcssa, ptr %arrayidx10, align 8
  %inc12 = add nuw nsw i32 %i.013, 1
  %cmp = icmp slt i32 %inc12, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end13.loopexit

for.end13.loopexit:                               ; preds = %for.end
  br label %for.end13

for.end13:                                        ; preds = %for.end13.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @batched(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %entry, %for.inc35
  %o.026 = phi i32 [ 0, %entry ], [ %inc36, %for.inc35 ]
  %cmp224 = icmp sgt i32 %m, 0
  br i1 %cmp224, label %for.cond5.preheader.preheader, label %for.inc35

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc32
  %i.025 = phi i32 [ %inc33, %for.inc32 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp622 = icmp sgt i32 %n, 0
  br i1 %cmp622, label %for.cond9.preheader.preheader, label %for.inc32

for.cond9.preheader.preheader:                    ; preds = %for.cond5.preheader
  br label %for.cond9.preheader

for.cond9.preheader:                              ; preds = %for.cond9.preheader.preheader, %for.inc29
  %j.023 = phi i32 [ %inc30, %for.inc29 ], [ 0, %for.cond9.preheader.preheader ]
  %cmp1020 = icmp sgt i32 %k, 0
  br i1 %cmp1020, label %for.body12.preheader, label %for.inc29

for.body12.preheader:                             ; preds = %for.cond9.preheader
  br label %for.body12

for.body12:                                       ; preds = %for.body12.preheader, %for.body12
  %p.021 = phi i32 [ %inc, %for.body12 ], [ 0, %for.body12.preheader ]
  %mul = mul nuw nsw i32 %o.026, %m
  %add = add nuw nsw i32 %mul, %i.025
  %mul13 = mul nuw nsw i32 %add, %k
  %add14 = add nuw nsw i32 %mul13, %p.021
  %idxprom = zext nneg i32 %add14 to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul15 = mul nuw nsw i32 %o.026, %k
  %add16 = add nuw nsw i32 %mul15, %p.021
  %mul17 = mul nuw nsw i32 %add16, %n
  %add18 = add nuw nsw i32 %mul17, %j.023
  %idxprom19 = zext nneg i32 %add18 to i64
  %arrayidx20 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom19
  %1 = load float, ptr %arrayidx20, align 4
  %mul21 = fmul fast float %0, %1
  %mul22 = mul nuw nsw i32 %o.026, %m
  %add23 = add nuw nsw i32 %mul22, %i.025
  %mul24 = mul nuw nsw i32 %add23, %n
  %add25 = add nuw nsw i32 %mul24, %j.023
  %idxprom26 = zext nneg i32 %add25 to i64
  %arrayidx27 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom26
  %2 = load float, ptr %arrayidx27, align 4
  %add28 = fadd fast float %2, %mul21
  store float %add28, ptr %arrayidx27, align 4
  %inc = add nuw nsw i32 %p.021, 1
  %cmp10 = icmp slt i32 %inc, %k
  br i1 %cmp10, label %for.body12, label %for.inc29.loopexit

for.inc29.loopexit:                               ; preds = %for.body12
  br label %for.inc29

for.inc29:                                        ; preds = %for.inc29.loopexit, %for.cond9.preheader
  %inc30 = add nuw nsw i32 %j.023, 1
  %cmp6 = icmp slt i32 %inc30, %n
  br i1 %cmp6, label %for.cond9.preheader, label %for.inc32.loopexit

for.inc32.loopexit:                               ; preds = %for.inc29
  br label %for.inc32

for.inc32:                                        ; preds = %for.inc32.loopexit, %for.cond5.preheader
  %inc33 = add nuw nsw i32 %i.025, 1
  %cmp2 = icmp slt i32 %inc33, %m
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc35.loopexit

for.inc35.loopexit:                               ; preds = %for.inc32
  br label %for.inc35

for.inc35:                                        ; preds = %for.inc35.loopexit, %for.cond1.preheader
  %inc36 = add nuw nsw i32 %o.026, 1
  %cmp = icmp samesign ult i32 %o.026, 3
  br i1 %cmp, label %for.cond1.preheader, label %for.end37

for.end37:                                        ; preds = %for.inc35
  ret void
}

; Function Attrs: nounwind uwtable
define void @two_of_k(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp22 = icmp sgt i32 %m, 0
  br i1 %cmp22, label %for.cond1.preheader.preheader, label %for.end35

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc33
  %i.023 = phi i32 [ %inc34, %for.inc33 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp220 = icmp sgt i32 %n, 0
  br i1 %cmp220, label %for.cond5.preheader.preheader, label %for.inc33

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc30
  %j.021 = phi i32 [ %inc31, %for.inc30 ], [ 0, %for.cond5.preheader.preheader ]
  br label %for.cond9.preheader

for.cond9.preheader:                              ; preds = %for.cond5.preheader, %for.inc27
  %q.019 = phi i32 [ 0, %for.cond5.preheader ], [ %inc28, %for.inc27 ]
  %cmp1017 = icmp sgt i32 %k, 0
  br i1 %cmp1017, label %for.body12.preheader, label %for.inc27

for.body12.preheader:                             ; preds = %for.cond9.preheader
  br label %for.body12

for.body12:                                       ; preds = %for.body12.preheader, %for.body12
  %p.018 = phi i32 [ %inc, %for.body12 ], [ 0, %for.body12.preheader ]
  %mul = mul nuw nsw i32 %i.023, 6
  %add = add nuw nsw i32 %mul, %q.019
  %mul13 = mul nuw nsw i32 %add, %k
  %add14 = add nuw nsw i32 %mul13, %p.018
  %idxprom = zext nneg i32 %add14 to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul15 = mul nuw nsw i32 %q.019, %k
  %add16 = add nuw nsw i32 %mul15, %p.018
  %mul17 = mul nuw nsw i32 %add16, %n
  %add18 = add nuw nsw i32 %mul17, %j.021
  %idxprom19 = zext nneg i32 %add18 to i64
  %arrayidx20 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom19
  %1 = load float, ptr %arrayidx20, align 4
  %mul21 = fmul fast float %0, %1
  %mul22 = mul nuw nsw i32 %i.023, %n
  %add23 = add nuw nsw i32 %mul22, %j.021
  %idxprom24 = zext nneg i32 %add23 to i64
  %arrayidx25 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom24
  %2 = load float, ptr %arrayidx25, align 4
  %add26 = fadd fast float %2, %mul21
  store float %add26, ptr %arrayidx25, align 4
  %inc = add nuw nsw i32 %p.018, 1
  %cmp10 = icmp slt i32 %inc, %k
  br i1 %cmp10, label %for.body12, label %for.inc27.loopexit

for.inc27.loopexit:                               ; preds = %for.body12
  br label %for.inc27

for.inc27:                                        ; preds = %for.inc27.loopexit, %for.cond9.preheader
  %inc28 = add nuw nsw i32 %q.019, 1
  %cmp6 = icmp samesign ult i32 %q.019, 5
  br i1 %cmp6, label %for.cond9.preheader, label %for.inc30

for.inc30:                                        ; preds = %for.inc27
  %inc31 = add nuw nsw i32 %j.021, 1
  %cmp2 = icmp slt i32 %inc31, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc33.loopexit

for.inc33.loopexit:                               ; preds = %for.inc30
  br label %for.inc33

for.inc33:                                        ; preds = %for.inc33.loopexit, %for.cond1.preheader
  %inc34 = add nuw nsw i32 %i.023, 1
  %cmp = icmp slt i32 %inc34, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end35.loopexit

for.end35.loopexit:                               ; preds = %for.inc33
  br label %for.end35

for.end35:                                        ; preds = %for.end35.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @two_constant_depths(ptr noundef %c, ptr noundef %a, ptr noundef %b) #0 {
entry:
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %entry, %for.inc33
  %i.019 = phi i32 [ 0, %entry ], [ %inc34, %for.inc33 ]
  %mul26 = mul nuw nsw i32 %i.019, 33
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond1.preheader, %for.end25
  %j.018 = phi i32 [ 0, %for.cond1.preheader ], [ %inc31, %for.end25 ]
  br label %for.cond9.preheader

for.cond9.preheader:                              ; preds = %for.cond5.preheader, %for.inc23
  %q.017 = phi i32 [ 0, %for.cond5.preheader ], [ %inc24, %for.inc23 ]
  %sum.016 = phi float [ 0.000000e+00, %for.cond5.preheader ], [ %add22.lcssa, %for.inc23 ]
  br label %for.inc

for.inc:                                          ; preds = %for.cond9.preheader, %for.inc
  %p.015 = phi i32 [ 0, %for.cond9.preheader ], [ %inc, %for.inc ]
  %sum.114 = phi float [ %sum.016, %for.cond9.preheader ], [ %add22, %for.inc ]
  %mul = mul nuw nsw i32 %p.015, 5
  %add = add nuw nsw i32 %mul, %q.017
  %mul13 = mul nuw nsw i32 %add, 48
  %add14 = add nuw nsw i32 %mul13, %i.019
  %idxprom = zext nneg i32 %add14 to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul15 = mul nuw nsw i32 %q.017, 7
  %add16 = add nuw nsw i32 %mul15, %p.015
  %mul17 = mul nuw nsw i32 %add16, 33
  %add18 = add nuw nsw i32 %mul17, %j.018
  %idxprom19 = zext nneg i32 %add18 to i64
  %arrayidx20 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom19
  %1 = load float, ptr %arrayidx20, align 4
  %mul21 = fmul fast float %0, %1
  %add22 = fadd fast float %sum.114, %mul21
  %inc = add nuw nsw i32 %p.015, 1
  %cmp10 = icmp samesign ult i32 %p.015, 6
  br i1 %cmp10, label %for.inc, label %for.inc23

for.inc23:                                        ; preds = %for.inc
  %add22.lcssa = phi float [ %add22, %for.inc ]
  %inc24 = add nuw nsw i32 %q.017, 1
  %cmp6 = icmp samesign ult i32 %q.017, 4
  br i1 %cmp6, label %for.cond9.preheader, label %for.end25

for.end25:                                        ; preds = %for.inc23
  %add22.lcssa.lcssa = phi float [ %add22.lcssa, %for.inc23 ]
  %add27 = add nuw nsw i32 %mul26, %j.018
  %idxprom28 = zext nneg i32 %add27 to i64
  %arrayidx29 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom28
  store float %add22.lcssa.lcssa, ptr %arrayidx29, align 4
  %inc31 = add nuw nsw i32 %j.018, 1
  %cmp2 = icmp samesign ult i32 %j.018, 32
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc33

for.inc33:                                        ; preds = %for.end25
  %inc34 = add nuw nsw i32 %i.019, 1
  %cmp = icmp samesign ult i32 %i.019, 47
  br i1 %cmp, label %for.cond1.preheader, label %for.end35

for.end35:                                        ; preds = %for.inc33
  ret void
}

; Function Attrs: nounwind uwtable
define void @one_constant_depth(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %k) #0 {
entry:
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %entry, %for.inc33
  %i.018 = phi i32 [ 0, %entry ], [ %inc34, %for.inc33 ]
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond1.preheader, %for.inc30
  %j.017 = phi i32 [ 0, %for.cond1.preheader ], [ %inc31, %for.inc30 ]
  %cmp615 = icmp sgt i32 %k, 0
  br i1 %cmp615, label %for.cond9.preheader.preheader, label %for.inc30

for.cond9.preheader.preheader:                    ; preds = %for.cond5.preheader
  br label %for.cond9.preheader

for.cond9.preheader:                              ; preds = %for.cond9.preheader.preheader, %for.inc27
  %q.016 = phi i32 [ %inc28, %for.inc27 ], [ 0, %for.cond9.preheader.preheader ]
  br label %for.body12

for.body12:                                       ; preds = %for.cond9.preheader, %for.body12
  %p.014 = phi i32 [ 0, %for.cond9.preheader ], [ %inc, %for.body12 ]
  %mul = mul nuw nsw i32 %p.014, %k
  %add = add nuw nsw i32 %mul, %q.016
  %mul13 = mul nuw nsw i32 %add, 48
  %add14 = add nuw nsw i32 %mul13, %i.018
  %idxprom = zext nneg i32 %add14 to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul15 = mul nuw nsw i32 %q.016, 5
  %add16 = add nuw nsw i32 %mul15, %p.014
  %mul17 = mul nuw nsw i32 %add16, 33
  %add18 = add nuw nsw i32 %mul17, %j.017
  %idxprom19 = zext nneg i32 %add18 to i64
  %arrayidx20 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom19
  %1 = load float, ptr %arrayidx20, align 4
  %mul21 = fmul fast float %0, %1
  %mul22 = mul nuw nsw i32 %i.018, 33
  %add23 = add nuw nsw i32 %mul22, %j.017
  %idxprom24 = zext nneg i32 %add23 to i64
  %arrayidx25 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom24
  %2 = load float, ptr %arrayidx25, align 4
  %add26 = fadd fast float %2, %mul21
  store float %add26, ptr %arrayidx25, align 4
  %inc = add nuw nsw i32 %p.014, 1
  %cmp10 = icmp samesign ult i32 %p.014, 4
  br i1 %cmp10, label %for.body12, label %for.inc27

for.inc27:                                        ; preds = %for.body12
  %inc28 = add nuw nsw i32 %q.016, 1
  %cmp6 = icmp slt i32 %inc28, %k
  br i1 %cmp6, label %for.cond9.preheader, label %for.inc30.loopexit

for.inc30.loopexit:                               ; preds = %for.inc27
  br label %for.inc30

for.inc30:                                        ; preds = %for.inc30.loopexit, %for.cond5.preheader
  %inc31 = add nuw nsw i32 %j.017, 1
  %cmp2 = icmp samesign ult i32 %j.017, 32
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc33

for.inc33:                                        ; preds = %for.inc30
  %inc34 = add nuw nsw i32 %i.018, 1
  %cmp = icmp samesign ult i32 %i.018, 47
  br i1 %cmp, label %for.cond1.preheader, label %for.end35

for.end35:                                        ; preds = %for.inc33
  ret void
}

; Function Attrs: nounwind uwtable
define void @repeated(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %entry, %for.inc29
  %step.020 = phi i32 [ 0, %entry ], [ %inc30, %for.inc29 ]
  %cmp218 = icmp sgt i32 %m, 0
  br i1 %cmp218, label %for.cond5.preheader.preheader, label %for.inc29

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc26
  %i.019 = phi i32 [ %inc27, %for.inc26 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp616 = icmp sgt i32 %n, 0
  br i1 %cmp616, label %for.cond9.preheader.preheader, label %for.inc26

for.cond9.preheader.preheader:                    ; preds = %for.cond5.preheader
  br label %for.cond9.preheader

for.cond9.preheader:                              ; preds = %for.cond9.preheader.preheader, %for.inc23
  %j.017 = phi i32 [ %inc24, %for.inc23 ], [ 0, %for.cond9.preheader.preheader ]
  %cmp1014 = icmp sgt i32 %k, 0
  br i1 %cmp1014, label %for.body12.preheader, label %for.inc23

for.body12.preheader:                             ; preds = %for.cond9.preheader
  br label %for.body12

for.body12:                                       ; preds = %for.body12.preheader, %for.body12
  %p.015 = phi i32 [ %inc, %for.body12 ], [ 0, %for.body12.preheader ]
  %mul = mul nuw nsw i32 %i.019, %k
  %add = add nuw nsw i32 %mul, %p.015
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul13 = mul nuw nsw i32 %p.015, %n
  %add14 = add nuw nsw i32 %mul13, %j.017
  %idxprom15 = zext nneg i32 %add14 to i64
  %arrayidx16 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom15
  %1 = load float, ptr %arrayidx16, align 4
  %mul17 = fmul fast float %0, %1
  %mul18 = mul nuw nsw i32 %i.019, %n
  %add19 = add nuw nsw i32 %mul18, %j.017
  %idxprom20 = zext nneg i32 %add19 to i64
  %arrayidx21 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom20
  %2 = load float, ptr %arrayidx21, align 4
  %add22 = fadd fast float %2, %mul17
  store float %add22, ptr %arrayidx21, align 4
  %inc = add nuw nsw i32 %p.015, 1
  %cmp10 = icmp slt i32 %inc, %k
  br i1 %cmp10, label %for.body12, label %for.inc23.loopexit

for.inc23.loopexit:                               ; preds = %for.body12
  br label %for.inc23

for.inc23:                                        ; preds = %for.inc23.loopexit, %for.cond9.preheader
  %inc24 = add nuw nsw i32 %j.017, 1
  %cmp6 = icmp slt i32 %inc24, %n
  br i1 %cmp6, label %for.cond9.preheader, label %for.inc26.loopexit

for.inc26.loopexit:                               ; preds = %for.inc23
  br label %for.inc26

for.inc26:                                        ; preds = %for.inc26.loopexit, %for.cond5.preheader
  %inc27 = add nuw nsw i32 %i.019, 1
  %cmp2 = icmp slt i32 %inc27, %m
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc29.loopexit

for.inc29.loopexit:                               ; preds = %for.inc26
  br label %for.inc29

for.inc29:                                        ; preds = %for.inc29.loopexit, %for.cond1.preheader
  %inc30 = add nuw nsw i32 %step.020, 1
  %cmp = icmp samesign ult i32 %step.020, 2
  br i1 %cmp, label %for.cond1.preheader, label %for.end31

for.end31:                                        ; preds = %for.inc29
  ret void
}

; Function Attrs: nounwind uwtable
define void @chained(ptr noundef %d, ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp34 = icmp sgt i32 %m, 0
  br i1 %cmp34, label %for.cond1.preheader.preheader, label %for.cond26.preheader

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc22
  %i.035 = phi i32 [ %inc23, %for.inc22 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp232 = icmp sgt i32 %n, 0
  br i1 %cmp232, label %for.cond5.preheader.preheader, label %for.inc22

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond26.preheader.loopexit:                    ; preds = %for.inc22
  br label %for.cond26.preheader

for.cond26.preheader:                             ; preds = %for.cond26.preheader.loopexit, %entry
  %cmp2740 = icmp sgt i32 %m, 0
  br i1 %cmp2740, label %for.cond31.preheader.preheader, label %for.end62

for.cond31.preheader.preheader:                   ; preds = %for.cond26.preheader
  br label %for.cond31.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc19
  %j.033 = phi i32 [ %inc20, %for.inc19 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp630 = icmp sgt i32 %k, 0
  br i1 %cmp630, label %for.body8.preheader, label %for.inc19

for.body8.preheader:                              ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %p.031 = phi i32 [ %inc, %for.body8 ], [ 0, %for.body8.preheader ]
  %mul = mul nuw nsw i32 %i.035, %k
  %add = add nuw nsw i32 %mul, %p.031
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul9 = mul nuw nsw i32 %p.031, %n
  %add10 = add nuw nsw i32 %mul9, %j.033
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom11
  %1 = load float, ptr %arrayidx12, align 4
  %mul13 = fmul fast float %0, %1
  %mul14 = mul nuw nsw i32 %i.035, %n
  %add15 = add nuw nsw i32 %mul14, %j.033
  %idxprom16 = zext nneg i32 %add15 to i64
  %arrayidx17 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom16
  %2 = load float, ptr %arrayidx17, align 4
  %add18 = fadd fast float %2, %mul13
  store float %add18, ptr %arrayidx17, align 4
  %inc = add nuw nsw i32 %p.031, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.inc19.loopexit

for.inc19.loopexit:                               ; preds = %for.body8
  br label %for.inc19

for.inc19:                                        ; preds = %for.inc19.loopexit, %for.cond5.preheader
  %inc20 = add nuw nsw i32 %j.033, 1
  %cmp2 = icmp slt i32 %inc20, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc22.loopexit

for.inc22.loopexit:                               ; preds = %for.inc19
  br label %for.inc22

for.inc22:                                        ; preds = %for.inc22.loopexit, %for.cond1.preheader
  %inc23 = add nuw nsw i32 %i.035, 1
  %cmp = icmp slt i32 %inc23, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond26.preheader.loopexit

for.cond31.preheader:                             ; preds = %for.cond31.preheader.preheader, %for.inc60
  %i25.041 = phi i32 [ %inc61, %for.inc60 ], [ 0, %for.cond31.preheader.preheader ]
  br label %for.cond36.preheader

for.cond36.preheader:                             ; preds = %for.cond31.preheader, %for.inc57
  %j30.039 = phi i32 [ %inc58, %for.inc57 ], [ 0, %for.cond31.preheader ]
  %cmp3736 = icmp sgt i32 %n, 0
  br i1 %cmp3736, label %for.body39.preheader, label %for.inc57

for.body39.preheader:                             ; preds = %for.cond36.preheader
  br label %for.body39

for.body39:                                       ; preds = %for.body39.preheader, %for.body39
  %p35.037 = phi i32 [ %inc55, %for.body39 ], [ 0, %for.body39.preheader ]
  %mul40 = mul nuw nsw i32 %i25.041, %n
  %add41 = add nuw nsw i32 %mul40, %p35.037
  %idxprom42 = zext nneg i32 %add41 to i64
  %arrayidx43 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom42
  %3 = load float, ptr %arrayidx43, align 4
  %mul44 = mul nuw nsw i32 %j30.039, %n
  %add45 = add nuw nsw i32 %mul44, %p35.037
  %idxprom46 = zext nneg i32 %add45 to i64
  %arrayidx47 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom46
  %4 = load float, ptr %arrayidx47, align 4
  %mul48 = fmul fast float %3, %4
  %mul49 = mul nuw nsw i32 %i25.041, %m
  %add50 = add nuw nsw i32 %mul49, %j30.039
  %idxprom51 = zext nneg i32 %add50 to i64
  %arrayidx52 = getelementptr inbounds nuw float, ptr %d, i64 %idxprom51
  %5 = load float, ptr %arrayidx52, align 4
  %add53 = fadd fast float %5, %mul48
  store float %add53, ptr %arrayidx52, align 4
  %inc55 = add nuw nsw i32 %p35.037, 1
  %cmp37 = icmp slt i32 %inc55, %n
  br i1 %cmp37, label %for.body39, label %for.inc57.loopexit

for.inc57.loopexit:                               ; preds = %for.body39
  br label %for.inc57

for.inc57:                                        ; preds = %for.inc57.loopexit, %for.cond36.preheader
  %inc58 = add nuw nsw i32 %j30.039, 1
  %cmp32 = icmp slt i32 %inc58, %m
  br i1 %cmp32, label %for.cond36.preheader, label %for.inc60

for.inc60:                                        ; preds = %for.inc57
  %inc61 = add nuw nsw i32 %i25.041, 1
  %cmp27 = icmp slt i32 %inc61, %m
  br i1 %cmp27, label %for.cond31.preheader, label %for.end62.loopexit

for.end62.loopexit:                               ; preds = %for.inc60
  br label %for.end62

for.end62:                                        ; preds = %for.end62.loopexit, %for.cond26.preheader
  ret void
}

; Function Attrs: nounwind uwtable
define void @same_operand(ptr noundef %c, ptr noundef %a, i32 noundef %m) #0 {
entry:
  %cmp20 = icmp sgt i32 %m, 0
  br i1 %cmp20, label %for.cond1.preheader.preheader, label %for.end24

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc22
  %i.021 = phi i32 [ %inc23, %for.inc22 ], [ 0, %for.cond1.preheader.preheader ]
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond1.preheader, %for.inc19
  %j.019 = phi i32 [ %inc20, %for.inc19 ], [ 0, %for.cond1.preheader ]
  br label %for.body8

for.body8:                                        ; preds = %for.cond5.preheader, %for.body8
  %p.017 = phi i32 [ %inc, %for.body8 ], [ 0, %for.cond5.preheader ]
  %mul = mul nuw nsw i32 %i.021, %m
  %add = add nuw nsw i32 %mul, %p.017
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul9 = mul nuw nsw i32 %p.017, %m
  %add10 = add nuw nsw i32 %mul9, %j.019
  %idxprom11 = zext nneg i32 %add10 to i64
  %arrayidx12 = getelementptr inbounds nuw float, ptr %a, i64 %idxprom11
  %1 = load float, ptr %arrayidx12, align 4
  %mul13 = fmul fast float %0, %1
  %mul14 = mul nuw nsw i32 %i.021, %m
  %add15 = add nuw nsw i32 %mul14, %j.019
  %idxprom16 = zext nneg i32 %add15 to i64
  %arrayidx17 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom16
  %2 = load float, ptr %arrayidx17, align 4
  %add18 = fadd fast float %2, %mul13
  store float %add18, ptr %arrayidx17, align 4
  %inc = add nuw nsw i32 %p.017, 1
  %cmp6 = icmp slt i32 %inc, %m
  br i1 %cmp6, label %for.body8, label %for.inc19

for.inc19:                                        ; preds = %for.body8
  %inc20 = add nuw nsw i32 %j.019, 1
  %cmp2 = icmp slt i32 %inc20, %m
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc22

for.inc22:                                        ; preds = %for.inc19
  %inc23 = add nuw nsw i32 %i.021, 1
  %cmp = icmp slt i32 %inc23, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end24.loopexit

for.end24.loopexit:                               ; preds = %for.inc22
  br label %for.end24

for.end24:                                        ; preds = %for.end24.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @early_return(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp = icmp slt i32 %m, 1
  %cmp1 = icmp slt i32 %n, 1
  %or.cond = or i1 %cmp, %cmp1
  %cmp3 = icmp slt i32 %k, 1
  %or.cond16 = or i1 %or.cond, %cmp3
  br i1 %or.cond16, label %for.end28, label %for.cond5.preheader.preheader

for.cond5.preheader.preheader:                    ; preds = %entry
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc26
  %i.021 = phi i32 [ %inc27, %for.inc26 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp619 = icmp sgt i32 %n, 0
  br i1 %cmp619, label %for.cond9.preheader.preheader, label %for.inc26

for.cond9.preheader.preheader:                    ; preds = %for.cond5.preheader
  br label %for.cond9.preheader

for.cond9.preheader:                              ; preds = %for.cond9.preheader.preheader, %for.inc23
  %j.020 = phi i32 [ %inc24, %for.inc23 ], [ 0, %for.cond9.preheader.preheader ]
  %cmp1017 = icmp sgt i32 %k, 0
  br i1 %cmp1017, label %for.body12.preheader, label %for.inc23

for.body12.preheader:                             ; preds = %for.cond9.preheader
  br label %for.body12

for.body12:                                       ; preds = %for.body12.preheader, %for.body12
  %p.018 = phi i32 [ %inc, %for.body12 ], [ 0, %for.body12.preheader ]
  %mul = mul nuw nsw i32 %i.021, %k
  %add = add nuw nsw i32 %mul, %p.018
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %mul13 = mul nuw nsw i32 %p.018, %n
  %add14 = add nuw nsw i32 %mul13, %j.020
  %idxprom15 = zext nneg i32 %add14 to i64
  %arrayidx16 = getelementptr inbounds nuw float, ptr %b, i64 %idxprom15
  %1 = load float, ptr %arrayidx16, align 4
  %mul17 = fmul fast float %0, %1
  %mul18 = mul nuw nsw i32 %i.021, %n
  %add19 = add nuw nsw i32 %mul18, %j.020
  %idxprom20 = zext nneg i32 %add19 to i64
  %arrayidx21 = getelementptr inbounds nuw float, ptr %c, i64 %idxprom20
  %2 = load float, ptr %arrayidx21, align 4
  %add22 = fadd fast float %2, %mul17
  store float %add22, ptr %arrayidx21, align 4
  %inc = add nuw nsw i32 %p.018, 1
  %cmp10 = icmp slt i32 %inc, %k
  br i1 %cmp10, label %for.body12, label %for.inc23.loopexit

for.inc23.loopexit:                               ; preds = %for.body12
  br label %for.inc23

for.inc23:                                        ; preds = %for.inc23.loopexit, %for.cond9.preheader
  %inc24 = add nuw nsw i32 %j.020, 1
  %cmp6 = icmp slt i32 %inc24, %n
  br i1 %cmp6, label %for.cond9.preheader, label %for.inc26.loopexit

for.inc26.loopexit:                               ; preds = %for.inc23
  br label %for.inc26

for.inc26:                                        ; preds = %for.inc26.loopexit, %for.cond5.preheader
  %inc27 = add nuw nsw i32 %i.021, 1
  %cmp4 = icmp slt i32 %inc27, %m
  br i1 %cmp4, label %for.cond5.preheader, label %for.end28.loopexit

for.end28.loopexit:                               ; preds = %for.inc26
  br label %for.end28

for.end28:                                        ; preds = %for.end28.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @through_function(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp17 = icmp sgt i32 %m, 0
  br i1 %cmp17, label %for.cond1.preheader.preheader, label %for.end16

for.cond1.preheader.preheader:                    ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.preheader, %for.inc14
  %i.018 = phi i32 [ %inc15, %for.inc14 ], [ 0, %for.cond1.preheader.preheader ]
  %cmp215 = icmp sgt i32 %n, 0
  br i1 %cmp215, label %for.cond5.preheader.preheader, label %for.inc14

for.cond5.preheader.preheader:                    ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.preheader, %for.inc11
  %j.016 = phi i32 [ %inc12, %for.inc11 ], [ 0, %for.cond5.preheader.preheader ]
  %cmp613 = icmp sgt i32 %k, 0
  br i1 %cmp613, label %for.body8.preheader, label %for.inc11

for.body8.preheader:                              ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.preheader, %for.body8
  %p.014 = phi i32 [ %inc, %for.body8 ], [ 0, %for.body8.preheader ]
  %call = call ptr @element(ptr noundef %a, i32 noundef %i.018, i32 noundef %p.014, i32 noundef %k)
  %0 = load float, ptr %call, align 4
  %call9 = call ptr @element(ptr noundef %b, i32 noundef %p.014, i32 noundef %j.016, i32 noundef %n)
  %1 = load float, ptr %call9, align 4
  %mul = fmul fast float %0, %1
  %call10 = call ptr @element(ptr noundef %c, i32 noundef %i.018, i32 noundef %j.016, i32 noundef %n)
  %2 = load float, ptr %call10, align 4
  %add = fadd fast float %2, %mul
  store float %add, ptr %call10, align 4
  %inc = add nuw nsw i32 %p.014, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.inc11.loopexit

for.inc11.loopexit:                               ; preds = %for.body8
  br label %for.inc11

for.inc11:                                        ; preds = %for.inc11.loopexit, %for.cond5.preheader
  %inc12 = add nuw nsw i32 %j.016, 1
  %cmp2 = icmp slt i32 %inc12, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.inc14.loopexit

for.inc14.loopexit:                               ; preds = %for.inc11
  br label %for.inc14

for.inc14:                                        ; preds = %for.inc14.loopexit, %for.cond1.preheader
  %inc15 = add nuw nsw i32 %i.018, 1
  %cmp = icmp slt i32 %inc15, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.end16.loopexit

for.end16.loopexit:                               ; preds = %for.inc14
  br label %for.end16

for.end16:                                        ; preds = %for.end16.loopexit, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define internal ptr @element(ptr noundef %matrix, i32 noundef %row, i32 noundef %column, i32 noundef %columns) #0 {
entry:
  %mul = mul nsw i32 %row, %columns
  %add = add nsw i32 %mul, %column
  %idxprom = sext i32 %add to i64
  %arrayidx = getelementptr inbounds float, ptr %matrix, i64 %idxprom
  ret ptr %arrayidx
}

declare void @llvm.lifetime.start.i64(i64)

declare void @llvm.lifetime.end.i64(i64)

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #3

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #3

attributes #0 = { nounwind uwtable "approx-func-fp-math"="true" "min-legal-vector-width"="0" "no-infs-fp-math"="true" "no-nans-fp-math"="true" "no-signed-zeros-fp-math"="true" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="x86-64" "target-features"="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+x87" "tune-cpu"="generic" "unsafe-fp-math"="true" }
attributes #1 = { nocallback nofree nounwind willreturn memory(argmem: write) }
attributes #2 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #3 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }


