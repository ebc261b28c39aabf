target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@own_a = internal global [48 x ptr] zeroinitializer, align 16
@own_b = internal global [48 x ptr] zeroinitializer, align 16

; Function Attrs: nounwind uwtable
define void @row_pointers(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp16 = icmp slt i32 0, %m
  br i1 %cmp16, label %for.cond1.preheader.lr.ph, label %for.end24

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc22
  %i.017 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc23, %for.inc22 ]
  %cmp214 = icmp slt i32 0, %n
  br i1 %cmp214, label %for.cond5.preheader.lr.ph, label %for.inc22

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.end
  %j.015 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %inc20, %for.end ]
  %cmp611 = icmp slt i32 0, %k
  br i1 %cmp611, label %for.inc.lr.ph, label %for.end

for.inc.lr.ph:                                    ; preds = %for.cond5.preheader
  br label %for.inc

for.inc:                                          ; preds = %for.inc.lr.ph, %for.inc
  %p.013 = phi i32 [ 0, %for.inc.lr.ph ], [ %inc, %for.inc ]
  %sum.012 = phi float [ 0.000000e+00, %for.inc.lr.ph ], [ %add, %for.inc ]
  %idxprom = zext nneg i32 %i.017 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom9 = zext nneg i32 %p.013 to i64
  %arrayidx10 = getelementptr inbounds nuw float, ptr %0, i64 %idxprom9
  %1 = load float, ptr %arrayidx10, align 4
  %idxprom11 = zext nneg i32 %p.013 to i64
  %arrayidx12 = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom11
  %2 = load ptr, ptr %arrayidx12, align 8
  %idxprom13 = zext nneg i32 %j.015 to i64
  %arrayidx14 = getelementptr inbounds nuw float, ptr %2, i64 %idxprom13
  %3 = load float, ptr %arrayidx14, align 4
  %mul = fmul fast float %1, %3
  %add = fadd fast float %sum.012, %mul
  %inc = add nuw nsw i32 %p.013, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.inc, label %for.cond5.for.end_crit_edge

for.cond5.for.end_crit_edge:                      ; preds = %for.inc
  %split = phi float [ %add, %for.inc ]
  br label %for.end

for.end:                                          ; preds = %for.cond5.for.end_crit_edge, %for.cond5.preheader
  %sum.0.lcssa = phi float [ %split, %for.cond5.for.end_crit_edge ], [ 0.000000e+00, %for.cond5.preheader ]
  %idxprom15 = zext nneg i32 %i.017 to i64
  %arrayidx16 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom15
  %4 = load ptr, ptr %arrayidx16, align 8
  %idxprom17 = zext nneg i32 %j.015 to i64
  %arrayidx18 = getelementptr inbounds nuw float, ptr %4, i64 %idxprom17
  store float %sum.0.lcssa, ptr %arrayidx18, align 4
  %inc20 = add nuw nsw i32 %j.015, 1
  %cmp2 = icmp slt i32 %inc20, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc22_crit_edge

for.cond1.for.inc22_crit_edge:                    ; preds = %for.end
  br label %for.inc22

for.inc22:                                        ; preds = %for.cond1.for.inc22_crit_edge, %for.cond1.preheader
  %inc23 = add nuw nsw i32 %i.017, 1
  %cmp = icmp slt i32 %inc23, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end24_crit_edge

for.cond.for.end24_crit_edge:                     ; preds = %for.inc22
  br label %for.end24

for.end24:                                        ; preds = %for.cond.for.end24_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @into_rows(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp14 = icmp slt i32 0, %k
  br i1 %cmp14, label %for.cond1.preheader.lr.ph, label %for.end24

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc22
  %p.015 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc23, %for.inc22 ]
  %cmp212 = icmp slt i32 0, %m
  br i1 %cmp212, label %for.cond5.preheader.lr.ph, label %for.inc22

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.inc19
  %i.013 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %inc20, %for.inc19 ]
  %cmp610 = icmp slt i32 0, %n
  br i1 %cmp610, label %for.body8.lr.ph, label %for.inc19

for.body8.lr.ph:                                  ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.lr.ph, %for.body8
  %j.011 = phi i32 [ 0, %for.body8.lr.ph ], [ %inc, %for.body8 ]
  %idxprom = zext nneg i32 %i.013 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom9 = zext nneg i32 %p.015 to i64
  %arrayidx10 = getelementptr inbounds nuw i32, ptr %0, i64 %idxprom9
  %1 = load i32, ptr %arrayidx10, align 4
  %idxprom11 = zext nneg i32 %p.015 to i64
  %arrayidx12 = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom11
  %2 = load ptr, ptr %arrayidx12, align 8
  %idxprom13 = zext nneg i32 %j.011 to i64
  %arrayidx14 = getelementptr inbounds nuw i32, ptr %2, i64 %idxprom13
  %3 = load i32, ptr %arrayidx14, align 4
  %mul = mul i32 %1, %3
  %idxprom15 = zext nneg i32 %i.013 to i64
  %arrayidx16 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom15
  %4 = load ptr, ptr %arrayidx16, align 8
  %idxprom17 = zext nneg i32 %j.011 to i64
  %arrayidx18 = getelementptr inbounds nuw i32, ptr %4, i64 %idxprom17
  %5 = load i32, ptr %arrayidx18, align 4
  %add = add i32 %5, %mul
  store i32 %add, ptr %arrayidx18, align 4
  %inc = add nuw nsw i32 %j.011, 1
  %cmp6 = icmp slt i32 %inc, %n
  br i1 %cmp6, label %for.body8, label %for.cond5.for.inc19_crit_edge

for.cond5.for.inc19_crit_edge:                    ; preds = %for.body8
  br label %for.inc19

for.inc19:                                        ; preds = %for.cond5.for.inc19_crit_edge, %for.cond5.preheader
  %inc20 = add nuw nsw i32 %i.013, 1
  %cmp2 = icmp slt i32 %inc20, %m
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc22_crit_edge

for.cond1.for.inc22_crit_edge:                    ; preds = %for.inc19
  br label %for.inc22

for.inc22:                                        ; preds = %for.cond1.for.inc22_crit_edge, %for.cond1.preheader
  %inc23 = add nuw nsw i32 %p.015, 1
  %cmp = icmp slt i32 %inc23, %k
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end24_crit_edge

for.cond.for.end24_crit_edge:                     ; preds = %for.inc22
  br label %for.end24

for.end24:                                        ; preds = %for.cond.for.end24_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @transposed_rows(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp16 = icmp slt i32 0, %n
  br i1 %cmp16, label %for.cond1.preheader.lr.ph, label %for.end24

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc22
  %j.017 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc23, %for.inc22 ]
  %cmp214 = icmp slt i32 0, %m
  br i1 %cmp214, label %for.cond5.preheader.lr.ph, label %for.inc22

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.end
  %i.015 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %inc20, %for.end ]
  %cmp611 = icmp slt i32 0, %k
  br i1 %cmp611, label %for.inc.lr.ph, label %for.end

for.inc.lr.ph:                                    ; preds = %for.cond5.preheader
  br label %for.inc

for.inc:                                          ; preds = %for.inc.lr.ph, %for.inc
  %p.013 = phi i32 [ 0, %for.inc.lr.ph ], [ %inc, %for.inc ]
  %sum.012 = phi float [ 0.000000e+00, %for.inc.lr.ph ], [ %add, %for.inc ]
  %idxprom = zext nneg i32 %p.013 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom9 = zext nneg i32 %i.015 to i64
  %arrayidx10 = getelementptr inbounds nuw float, ptr %0, i64 %idxprom9
  %1 = load float, ptr %arrayidx10, align 4
  %idxprom11 = zext nneg i32 %j.017 to i64
  %arrayidx12 = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom11
  %2 = load ptr, ptr %arrayidx12, align 8
  %idxprom13 = zext nneg i32 %p.013 to i64
  %arrayidx14 = getelementptr inbounds nuw float, ptr %2, i64 %idxprom13
  %3 = load float, ptr %arrayidx14, align 4
  %mul = fmul fast float %1, %3
  %add = fadd fast float %sum.012, %mul
  %inc = add nuw nsw i32 %p.013, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.inc, label %for.cond5.for.end_crit_edge

for.cond5.for.end_crit_edge:                      ; preds = %for.inc
  %split = phi float [ %add, %for.inc ]
  br label %for.end

for.end:                                          ; preds = %for.cond5.for.end_crit_edge, %for.cond5.preheader
  %sum.0.lcssa = phi float [ %split, %for.cond5.for.end_crit_edge ], [ 0.000000e+00, %for.cond5.preheader ]
  %idxprom15 = zext nneg i32 %j.017 to i64
  %arrayidx16 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom15
  %4 = load ptr, ptr %arrayidx16, align 8
  %idxprom17 = zext nneg i32 %i.015 to i64
  %arrayidx18 = getelementptr inbounds nuw float, ptr %4, i64 %idxprom17
  store float %sum.0.lcssa, ptr %arrayidx18, align 4
  %inc20 = add nuw nsw i32 %i.015, 1
  %cmp2 = icmp slt i32 %inc20, %m
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc22_crit_edge

for.cond1.for.inc22_crit_edge:                    ; preds = %for.end
  br label %for.inc22

for.inc22:                                        ; preds = %for.cond1.for.inc22_crit_edge, %for.cond1.preheader
  %inc23 = add nuw nsw i32 %j.017, 1
  %cmp = icmp slt i32 %inc23, %n
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end24_crit_edge

for.cond.for.end24_crit_edge:                     ; preds = %for.inc22
  br label %for.end24

for.end24:                                        ; preds = %for.cond.for.end24_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @one_in_rows(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp16 = icmp slt i32 0, %m
  br i1 %cmp16, label %for.cond1.preheader.lr.ph, label %for.end24

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc22
  %i.017 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc23, %for.inc22 ]
  %cmp214 = icmp slt i32 0, %k
  br i1 %cmp214, label %for.cond5.preheader.lr.ph, label %for.inc22

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.inc19
  %p.015 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %inc20, %for.inc19 ]
  %cmp612 = icmp slt i32 0, %n
  br i1 %cmp612, label %for.body8.lr.ph, label %for.inc19

for.body8.lr.ph:                                  ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.lr.ph, %for.body8
  %j.013 = phi i32 [ 0, %for.body8.lr.ph ], [ %inc, %for.body8 ]
  %mul = mul nsw i32 %i.017, %k
  %add = add nsw i32 %mul, %p.015
  %idxprom = sext i32 %add to i64
  %arrayidx = getelementptr inbounds float, ptr %a, i64 %idxprom
  %0 = load float, ptr %arrayidx, align 4
  %idxprom9 = zext nneg i32 %p.015 to i64
  %arrayidx10 = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom9
  %1 = load ptr, ptr %arrayidx10, align 8
  %idxprom11 = zext nneg i32 %j.013 to i64
  %arrayidx12 = getelementptr inbounds nuw float, ptr %1, i64 %idxprom11
  %2 = load float, ptr %arrayidx12, align 4
  %mul13 = fmul fast float %0, %2
  %mul14 = mul nsw i32 %i.017, %n
  %add15 = add nsw i32 %mul14, %j.013
  %idxprom16 = sext i32 %add15 to i64
  %arrayidx17 = getelementptr inbounds float, ptr %c, i64 %idxprom16
  %3 = load float, ptr %arrayidx17, align 4
  %add18 = fadd fast float %3, %mul13
  store float %add18, ptr %arrayidx17, align 4
  %inc = add nuw nsw i32 %j.013, 1
  %cmp6 = icmp slt i32 %inc, %n
  br i1 %cmp6, label %for.body8, label %for.cond5.for.inc19_crit_edge

for.cond5.for.inc19_crit_edge:                    ; preds = %for.body8
  br label %for.inc19

for.inc19:                                        ; preds = %for.cond5.for.inc19_crit_edge, %for.cond5.preheader
  %inc20 = add nuw nsw i32 %p.015, 1
  %cmp2 = icmp slt i32 %inc20, %k
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc22_crit_edge

for.cond1.for.inc22_crit_edge:                    ; preds = %for.inc19
  br label %for.inc22

for.inc22:                                        ; preds = %for.cond1.for.inc22_crit_edge, %for.cond1.preheader
  %inc23 = add nuw nsw i32 %i.017, 1
  %cmp = icmp slt i32 %inc23, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end24_crit_edge

for.cond.for.end24_crit_edge:                     ; preds = %for.inc22
  br label %for.end24

for.end24:                                        ; preds = %for.cond.for.end24_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @result_in_rows(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k, float noundef nofpclass(nan inf) %alpha, float noundef nofpclass(nan inf) %beta) #0 {
entry:
  %cmp19 = icmp slt i32 0, %m
  br i1 %cmp19, label %for.cond1.preheader.lr.ph, label %for.end30

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc28
  %i.020 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc29, %for.inc28 ]
  %cmp217 = icmp slt i32 0, %n
  br i1 %cmp217, label %for.body4.lr.ph, label %for.inc28

for.body4.lr.ph:                                  ; preds = %for.cond1.preheader
  br label %for.body4

for.body4:                                        ; preds = %for.body4.lr.ph, %for.inc25
  %j.018 = phi i32 [ 0, %for.body4.lr.ph ], [ %inc26, %for.inc25 ]
  %idxprom = zext nneg i32 %i.020 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom5 = zext nneg i32 %j.018 to i64
  %arrayidx6 = getelementptr inbounds nuw float, ptr %0, i64 %idxprom5
  %1 = load float, ptr %arrayidx6, align 4
  %mul = fmul fast float %1, %beta
  store float %mul, ptr %arrayidx6, align 4
  %cmp815 = icmp slt i32 0, %k
  br i1 %cmp815, label %for.body10.lr.ph, label %for.inc25

for.body10.lr.ph:                                 ; preds = %for.body4
  br label %for.body10

for.body10:                                       ; preds = %for.body10.lr.ph, %for.body10
  %p.016 = phi i32 [ 0, %for.body10.lr.ph ], [ %inc, %for.body10 ]
  %mul11 = mul nsw i32 %i.020, %k
  %add = add nsw i32 %mul11, %p.016
  %idxprom12 = sext i32 %add to i64
  %arrayidx13 = getelementptr inbounds float, ptr %a, i64 %idxprom12
  %2 = load float, ptr %arrayidx13, align 4
  %mul14 = fmul fast float %alpha, %2
  %mul15 = mul nsw i32 %p.016, %n
  %add16 = add nsw i32 %mul15, %j.018
  %idxprom17 = sext i32 %add16 to i64
  %arrayidx18 = getelementptr inbounds float, ptr %b, i64 %idxprom17
  %3 = load float, ptr %arrayidx18, align 4
  %mul19 = fmul fast float %mul14, %3
  %idxprom20 = zext nneg i32 %i.020 to i64
  %arrayidx21 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom20
  %4 = load ptr, ptr %arrayidx21, align 8
  %idxprom22 = zext nneg i32 %j.018 to i64
  %arrayidx23 = getelementptr inbounds nuw float, ptr %4, i64 %idxprom22
  %5 = load float, ptr %arrayidx23, align 4
  %add24 = fadd fast float %5, %mul19
  store float %add24, ptr %arrayidx23, align 4
  %inc = add nuw nsw i32 %p.016, 1
  %cmp8 = icmp slt i32 %inc, %k
  br i1 %cmp8, label %for.body10, label %for.cond7.for.inc25_crit_edge

for.cond7.for.inc25_crit_edge:                    ; preds = %for.body10
  br label %for.inc25

for.inc25:                                        ; preds = %for.cond7.for.inc25_crit_edge, %for.body4
  %inc26 = add nuw nsw i32 %j.018, 1
  %cmp2 = icmp slt i32 %inc26, %n
  br i1 %cmp2, label %for.body4, label %for.cond1.for.inc28_crit_edge

for.cond1.for.inc28_crit_edge:                    ; preds = %for.inc25
  br label %for.inc28

for.inc28:                                        ; preds = %for.cond1.for.inc28_crit_edge, %for.cond1.preheader
  %inc29 = add nuw nsw i32 %i.020, 1
  %cmp = icmp slt i32 %inc29, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end30_crit_edge

for.cond.for.end30_crit_edge:                     ; preds = %for.inc28
  br label %for.end30

for.end30:                                        ; preds = %for.cond.for.end30_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @rows_by_vector(ptr noundef %y, ptr noundef %a, ptr noundef %x, i32 noundef %m, i32 noundef %k) #0 {
entry:
  %cmp11 = icmp slt i32 0, %m
  br i1 %cmp11, label %for.cond1.preheader.lr.ph, label %for.end13

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.end
  %i.012 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc12, %for.end ]
  %cmp28 = icmp slt i32 0, %k
  br i1 %cmp28, label %for.inc.lr.ph, label %for.end

for.inc.lr.ph:                                    ; preds = %for.cond1.preheader
  br label %for.inc

for.inc:                                          ; preds = %for.inc.lr.ph, %for.inc
  %p.010 = phi i32 [ 0, %for.inc.lr.ph ], [ %inc, %for.inc ]
  %sum.09 = phi float [ 0.000000e+00, %for.inc.lr.ph ], [ %add, %for.inc ]
  %idxprom = zext nneg i32 %i.012 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom5 = zext nneg i32 %p.010 to i64
  %arrayidx6 = getelementptr inbounds nuw float, ptr %0, i64 %idxprom5
  %1 = load float, ptr %arrayidx6, align 4
  %idxprom7 = zext nneg i32 %p.010 to i64
  %arrayidx8 = getelementptr inbounds nuw float, ptr %x, i64 %idxprom7
  %2 = load float, ptr %arrayidx8, align 4
  %mul = fmul fast float %1, %2
  %add = fadd fast float %sum.09, %mul
  %inc = add nuw nsw i32 %p.010, 1
  %cmp2 = icmp slt i32 %inc, %k
  br i1 %cmp2, label %for.inc, label %for.cond1.for.end_crit_edge

for.cond1.for.end_crit_edge:                      ; preds = %for.inc
  %split = phi float [ %add, %for.inc ]
  br label %for.end

for.end:                                          ; preds = %for.cond1.for.end_crit_edge, %for.cond1.preheader
  %sum.0.lcssa = phi float [ %split, %for.cond1.for.end_crit_edge ], [ 0.000000e+00, %for.cond1.preheader ]
  %idxprom9 = zext nneg i32 %i.012 to i64
  %arrayidx10 = getelementptr inbounds nuw float, ptr %y, i64 %idxprom9
  store float %sum.0.lcssa, ptr %arrayidx10, align 4
  %inc12 = add nuw nsw i32 %i.012, 1
  %cmp = icmp slt i32 %inc12, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end13_crit_edge

for.cond.for.end13_crit_edge:                     ; preds = %for.end
  br label %for.end13

for.end13:                                        ; preds = %for.cond.for.end13_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @rows_of_both(ptr noundef %c, ptr noundef %a, i32 noundef %m, i32 noundef %n) #0 {
entry:
  %cmp17 = icmp slt i32 0, %m
  br i1 %cmp17, label %for.cond1.preheader.lr.ph, label %for.end24

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc22
  %i.018 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc23, %for.inc22 ]
  %cmp215 = icmp slt i32 0, %n
  br i1 %cmp215, label %for.cond5.preheader.lr.ph, label %for.inc22

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.inc19
  %j.016 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %inc20, %for.inc19 ]
  %cmp613 = icmp slt i32 0, %m
  br i1 %cmp613, label %for.body8.lr.ph, label %for.inc19

for.body8.lr.ph:                                  ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.lr.ph, %for.body8
  %p.014 = phi i32 [ 0, %for.body8.lr.ph ], [ %inc, %for.body8 ]
  %idxprom = zext nneg i32 %p.014 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom9 = zext nneg i32 %j.016 to i64
  %arrayidx10 = getelementptr inbounds nuw i32, ptr %0, i64 %idxprom9
  %1 = load i32, ptr %arrayidx10, align 4
  %idxprom11 = zext nneg i32 %p.014 to i64
  %arrayidx12 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom11
  %2 = load ptr, ptr %arrayidx12, align 8
  %rem = srem i32 %i.018, %n
  %idxprom13 = zext nneg i32 %rem to i64
  %arrayidx14 = getelementptr inbounds nuw i32, ptr %2, i64 %idxprom13
  %3 = load i32, ptr %arrayidx14, align 4
  %mul = mul i32 %1, %3
  %idxprom15 = zext nneg i32 %i.018 to i64
  %arrayidx16 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom15
  %4 = load ptr, ptr %arrayidx16, align 8
  %idxprom17 = zext nneg i32 %j.016 to i64
  %arrayidx18 = getelementptr inbounds nuw i32, ptr %4, i64 %idxprom17
  %5 = load i32, ptr %arrayidx18, align 4
  %add = add i32 %5, %mul
  store i32 %add, ptr %arrayidx18, align 4
  %inc = add nuw nsw i32 %p.014, 1
  %cmp6 = icmp slt i32 %inc, %m
  br i1 %cmp6, label %for.body8, label %for.cond5.for.inc19_crit_edge

for.cond5.for.inc19_crit_edge:                    ; preds = %for.body8
  br label %for.inc19

for.inc19:                                        ; preds = %for.cond5.for.inc19_crit_edge, %for.cond5.preheader
  %inc20 = add nuw nsw i32 %j.016, 1
  %cmp2 = icmp slt i32 %inc20, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc22_crit_edge

for.cond1.for.inc22_crit_edge:                    ; preds = %for.inc19
  br label %for.inc22

for.inc22:                                        ; preds = %for.cond1.for.inc22_crit_edge, %for.cond1.preheader
  %inc23 = add nuw nsw i32 %i.018, 1
  %cmp = icmp slt i32 %inc23, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end24_crit_edge

for.cond.for.end24_crit_edge:                     ; preds = %for.inc22
  br label %for.end24

for.end24:                                        ; preds = %for.cond.for.end24_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @rows_of_sums(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp15 = icmp slt i32 0, %m
  br i1 %cmp15, label %for.cond1.preheader.lr.ph, label %for.end25

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc23
  %i.016 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc24, %for.inc23 ]
  %cmp213 = icmp slt i32 0, %n
  br i1 %cmp213, label %for.cond5.preheader.lr.ph, label %for.inc23

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.inc20
  %j.014 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %inc21, %for.inc20 ]
  %cmp611 = icmp slt i32 0, %k
  br i1 %cmp611, label %for.body8.lr.ph, label %for.inc20

for.body8.lr.ph:                                  ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.lr.ph, %for.body8
  %p.012 = phi i32 [ 0, %for.body8.lr.ph ], [ %inc, %for.body8 ]
  %add = add nuw nsw i32 %i.016, %p.012
  %idxprom = zext nneg i32 %add to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom9 = zext nneg i32 %p.012 to i64
  %arrayidx10 = getelementptr inbounds nuw float, ptr %0, i64 %idxprom9
  %1 = load float, ptr %arrayidx10, align 4
  %idxprom11 = zext nneg i32 %p.012 to i64
  %arrayidx12 = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom11
  %2 = load ptr, ptr %arrayidx12, align 8
  %idxprom13 = zext nneg i32 %j.014 to i64
  %arrayidx14 = getelementptr inbounds nuw float, ptr %2, i64 %idxprom13
  %3 = load float, ptr %arrayidx14, align 4
  %mul = fmul fast float %1, %3
  %idxprom15 = zext nneg i32 %i.016 to i64
  %arrayidx16 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom15
  %4 = load ptr, ptr %arrayidx16, align 8
  %idxprom17 = zext nneg i32 %j.014 to i64
  %arrayidx18 = getelementptr inbounds nuw float, ptr %4, i64 %idxprom17
  %5 = load float, ptr %arrayidx18, align 4
  %add19 = fadd fast float %5, %mul
  store float %add19, ptr %arrayidx18, align 4
  %inc = add nuw nsw i32 %p.012, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.cond5.for.inc20_crit_edge

for.cond5.for.inc20_crit_edge:                    ; preds = %for.body8
  br label %for.inc20

for.inc20:                                        ; preds = %for.cond5.for.inc20_crit_edge, %for.cond5.preheader
  %inc21 = add nuw nsw i32 %j.014, 1
  %cmp2 = icmp slt i32 %inc21, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc23_crit_edge

for.cond1.for.inc23_crit_edge:                    ; preds = %for.inc20
  br label %for.inc23

for.inc23:                                        ; preds = %for.cond1.for.inc23_crit_edge, %for.cond1.preheader
  %inc24 = add nuw nsw i32 %i.016, 1
  %cmp = icmp slt i32 %inc24, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end25_crit_edge

for.cond.for.end25_crit_edge:                     ; preds = %for.inc23
  br label %for.end25

for.end25:                                        ; preds = %for.cond.for.end25_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @some_rows(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp17 = icmp slt i32 0, %m
  br i1 %cmp17, label %for.cond1.preheader.lr.ph, label %for.end29

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc27
  %i.018 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc28, %for.inc27 ]
  %cmp215 = icmp slt i32 0, %n
  br i1 %cmp215, label %for.cond5.preheader.lr.ph, label %for.inc27

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.inc24
  %j.016 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %inc25, %for.inc24 ]
  %cmp613 = icmp slt i32 0, %k
  br i1 %cmp613, label %for.body8.lr.ph, label %for.inc24

for.body8.lr.ph:                                  ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.lr.ph, %for.inc
  %p.014 = phi i32 [ 0, %for.body8.lr.ph ], [ %inc, %for.inc ]
  %idxprom = zext nneg i32 %p.014 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom9 = zext nneg i32 %j.016 to i64
  %arrayidx10 = getelementptr inbounds nuw float, ptr %0, i64 %idxprom9
  %1 = load float, ptr %arrayidx10, align 4
  %cmp11 = fcmp fast une float %1, 0.000000e+00
  br i1 %cmp11, label %if.then, label %for.inc

if.then:                                          ; preds = %for.body8
  %idxprom12 = zext nneg i32 %i.018 to i64
  %arrayidx13 = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom12
  %2 = load ptr, ptr %arrayidx13, align 8
  %idxprom14 = zext nneg i32 %p.014 to i64
  %arrayidx15 = getelementptr inbounds nuw float, ptr %2, i64 %idxprom14
  %3 = load float, ptr %arrayidx15, align 4
  %idxprom16 = zext nneg i32 %p.014 to i64
  %arrayidx17 = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom16
  %4 = load ptr, ptr %arrayidx17, align 8
  %idxprom18 = zext nneg i32 %j.016 to i64
  %arrayidx19 = getelementptr inbounds nuw float, ptr %4, i64 %idxprom18
  %5 = load float, ptr %arrayidx19, align 4
  %mul = fmul fast float %3, %5
  %idxprom20 = zext nneg i32 %i.018 to i64
  %arrayidx21 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom20
  %6 = load ptr, ptr %arrayidx21, align 8
  %idxprom22 = zext nneg i32 %j.016 to i64
  %arrayidx23 = getelementptr inbounds nuw float, ptr %6, i64 %idxprom22
  %7 = load float, ptr %arrayidx23, align 4
  %add = fadd fast float %7, %mul
  store float %add, ptr %arrayidx23, align 4
  br label %for.inc

for.inc:                                          ; preds = %for.body8, %if.then
  %inc = add nuw nsw i32 %p.014, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.cond5.for.inc24_crit_edge

for.cond5.for.inc24_crit_edge:                    ; preds = %for.inc
  br label %for.inc24

for.inc24:                                        ; preds = %for.cond5.for.inc24_crit_edge, %for.cond5.preheader
  %inc25 = add nuw nsw i32 %j.016, 1
  %cmp2 = icmp slt i32 %inc25, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc27_crit_edge

for.cond1.for.inc27_crit_edge:                    ; preds = %for.inc24
  br label %for.inc27

for.inc27:                                        ; preds = %for.cond1.for.inc27_crit_edge, %for.cond1.preheader
  %inc28 = add nuw nsw i32 %i.018, 1
  %cmp = icmp slt i32 %inc28, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end29_crit_edge

for.cond.for.end29_crit_edge:                     ; preds = %for.inc27
  br label %for.end29

for.end29:                                        ; preds = %for.cond.for.end29_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @named_rows(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp20 = icmp slt i32 0, %m
  br i1 %cmp20, label %for.body.lr.ph, label %for.end34

for.body.lr.ph:                                   ; preds = %entry
  br label %for.body

for.body:                                         ; preds = %for.body.lr.ph, %for.inc32
  %i.021 = phi i32 [ 0, %for.body.lr.ph ], [ %inc33, %for.inc32 ]
  %idxprom = zext nneg i32 %i.021 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom1 = zext nneg i32 %i.021 to i64
  %arrayidx2 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom1
  %1 = load ptr, ptr %arrayidx2, align 8
  %cmp414 = icmp slt i32 0, %n
  br i1 %cmp414, label %for.body6.lr.ph, label %for.cond9.preheader

for.body6.lr.ph:                                  ; preds = %for.body
  br label %for.body6

for.cond3.for.cond9.preheader_crit_edge:          ; preds = %for.body6
  br label %for.cond9.preheader

for.cond9.preheader:                              ; preds = %for.cond3.for.cond9.preheader_crit_edge, %for.body
  %cmp1018 = icmp slt i32 0, %k
  br i1 %cmp1018, label %for.body12.lr.ph, label %for.inc32

for.body12.lr.ph:                                 ; preds = %for.cond9.preheader
  br label %for.body12

for.body6:                                        ; preds = %for.body6.lr.ph, %for.body6
  %j.015 = phi i32 [ 0, %for.body6.lr.ph ], [ %inc, %for.body6 ]
  %idxprom7 = zext nneg i32 %j.015 to i64
  %arrayidx8 = getelementptr inbounds nuw double, ptr %1, i64 %idxprom7
  store double 0.000000e+00, ptr %arrayidx8, align 8
  %inc = add nuw nsw i32 %j.015, 1
  %cmp4 = icmp slt i32 %inc, %n
  br i1 %cmp4, label %for.body6, label %for.cond3.for.cond9.preheader_crit_edge

for.body12:                                       ; preds = %for.body12.lr.ph, %for.inc29
  %p.019 = phi i32 [ 0, %for.body12.lr.ph ], [ %inc30, %for.inc29 ]
  %idxprom13 = zext nneg i32 %p.019 to i64
  %arrayidx14 = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom13
  %2 = load ptr, ptr %arrayidx14, align 8
  %cmp1716 = icmp slt i32 0, %n
  br i1 %cmp1716, label %for.body19.lr.ph, label %for.inc29

for.body19.lr.ph:                                 ; preds = %for.body12
  br label %for.body19

for.body19:                                       ; preds = %for.body19.lr.ph, %for.body19
  %j15.017 = phi i32 [ 0, %for.body19.lr.ph ], [ %inc27, %for.body19 ]
  %idxprom20 = zext nneg i32 %p.019 to i64
  %arrayidx21 = getelementptr inbounds nuw double, ptr %0, i64 %idxprom20
  %3 = load double, ptr %arrayidx21, align 8
  %idxprom22 = zext nneg i32 %j15.017 to i64
  %arrayidx23 = getelementptr inbounds nuw double, ptr %2, i64 %idxprom22
  %4 = load double, ptr %arrayidx23, align 8
  %mul = fmul fast double %3, %4
  %idxprom24 = zext nneg i32 %j15.017 to i64
  %arrayidx25 = getelementptr inbounds nuw double, ptr %1, i64 %idxprom24
  %5 = load double, ptr %arrayidx25, align 8
  %add = fadd fast double %5, %mul
  store double %add, ptr %arrayidx25, align 8
  %inc27 = add nuw nsw i32 %j15.017, 1
  %cmp17 = icmp slt i32 %inc27, %n
  br i1 %cmp17, label %for.body19, label %for.cond16.for.inc29_crit_edge

for.cond16.for.inc29_crit_edge:                   ; preds = %for.body19
  br label %for.inc29

for.inc29:                                        ; preds = %for.cond16.for.inc29_crit_edge, %for.body12
  %inc30 = add nuw nsw i32 %p.019, 1
  %cmp10 = icmp slt i32 %inc30, %k
  br i1 %cmp10, label %for.body12, label %for.cond9.for.inc32_crit_edge

for.cond9.for.inc32_crit_edge:                    ; preds = %for.inc29
  br label %for.inc32

for.inc32:                                        ; preds = %for.cond9.for.inc32_crit_edge, %for.cond9.preheader
  %inc33 = add nuw nsw i32 %i.021, 1
  %cmp = icmp slt i32 %inc33, %m
  br i1 %cmp, label %for.body, label %for.cond.for.end34_crit_edge

for.cond.for.end34_crit_edge:                     ; preds = %for.inc32
  br label %for.end34

for.end34:                                        ; preds = %for.cond.for.end34_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @rows_of_integers(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp16 = icmp slt i32 0, %m
  br i1 %cmp16, label %for.cond1.preheader.lr.ph, label %for.end25

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc23
  %i.017 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc24, %for.inc23 ]
  %cmp214 = icmp slt i32 0, %n
  br i1 %cmp214, label %for.cond5.preheader.lr.ph, label %for.inc23

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.end
  %j.015 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %inc21, %for.end ]
  %cmp611 = icmp slt i32 0, %k
  br i1 %cmp611, label %for.inc.lr.ph, label %for.end

for.inc.lr.ph:                                    ; preds = %for.cond5.preheader
  br label %for.inc

for.inc:                                          ; preds = %for.inc.lr.ph, %for.inc
  %p.013 = phi i32 [ 0, %for.inc.lr.ph ], [ %inc, %for.inc ]
  %sum.012 = phi i32 [ 0, %for.inc.lr.ph ], [ %add, %for.inc ]
  %idxprom = zext nneg i32 %i.017 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom9 = zext nneg i32 %p.013 to i64
  %arrayidx10 = getelementptr inbounds nuw i8, ptr %0, i64 %idxprom9
  %1 = load i8, ptr %arrayidx10, align 1
  %conv = sext i8 %1 to i32
  %idxprom11 = zext nneg i32 %p.013 to i64
  %arrayidx12 = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom11
  %2 = load ptr, ptr %arrayidx12, align 8
  %idxprom13 = zext nneg i32 %j.015 to i64
  %arrayidx14 = getelementptr inbounds nuw i8, ptr %2, i64 %idxprom13
  %3 = load i8, ptr %arrayidx14, align 1
  %conv15 = sext i8 %3 to i32
  %mul = mul nsw i32 %conv, %conv15
  %add = add nsw i32 %sum.012, %mul
  %inc = add nuw nsw i32 %p.013, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.inc, label %for.cond5.for.end_crit_edge

for.cond5.for.end_crit_edge:                      ; preds = %for.inc
  %split = phi i32 [ %add, %for.inc ]
  br label %for.end

for.end:                                          ; preds = %for.cond5.for.end_crit_edge, %for.cond5.preheader
  %sum.0.lcssa = phi i32 [ %split, %for.cond5.for.end_crit_edge ], [ 0, %for.cond5.preheader ]
  %idxprom16 = zext nneg i32 %i.017 to i64
  %arrayidx17 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom16
  %4 = load ptr, ptr %arrayidx17, align 8
  %idxprom18 = zext nneg i32 %j.015 to i64
  %arrayidx19 = getelementptr inbounds nuw i32, ptr %4, i64 %idxprom18
  store i32 %sum.0.lcssa, ptr %arrayidx19, align 4
  %inc21 = add nuw nsw i32 %j.015, 1
  %cmp2 = icmp slt i32 %inc21, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc23_crit_edge

for.cond1.for.inc23_crit_edge:                    ; preds = %for.end
  br label %for.inc23

for.inc23:                                        ; preds = %for.cond1.for.inc23_crit_edge, %for.cond1.preheader
  %inc24 = add nuw nsw i32 %i.017, 1
  %cmp = icmp slt i32 %inc24, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end25_crit_edge

for.cond.for.end25_crit_edge:                     ; preds = %for.inc23
  br label %for.end25

for.end25:                                        ; preds = %for.cond.for.end25_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @parts_of_rows(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp14 = icmp slt i32 0, %m
  br i1 %cmp14, label %for.cond1.preheader.lr.ph, label %for.end28

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc26
  %i.015 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc27, %for.inc26 ]
  %cmp212 = icmp slt i32 0, %n
  br i1 %cmp212, label %for.cond5.preheader.lr.ph, label %for.inc26

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.inc23
  %j.013 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %inc24, %for.inc23 ]
  %cmp610 = icmp slt i32 0, %k
  br i1 %cmp610, label %for.body8.lr.ph, label %for.inc23

for.body8.lr.ph:                                  ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.lr.ph, %for.body8
  %p.011 = phi i32 [ 0, %for.body8.lr.ph ], [ %inc, %for.body8 ]
  %0 = zext nneg i32 %i.015 to i64
  %1 = getelementptr inbounds nuw ptr, ptr %a, i64 %0
  %arrayidx = getelementptr inbounds nuw i8, ptr %1, i64 24
  %2 = load ptr, ptr %arrayidx, align 8
  %idxprom9 = zext nneg i32 %p.011 to i64
  %arrayidx10 = getelementptr inbounds nuw float, ptr %2, i64 %idxprom9
  %3 = load float, ptr %arrayidx10, align 4
  %mul = shl nuw nsw i32 %p.011, 1
  %4 = zext nneg i32 %mul to i64
  %5 = getelementptr inbounds nuw ptr, ptr %b, i64 %4
  %arrayidx13 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %6 = load ptr, ptr %arrayidx13, align 8
  %idxprom14 = zext nneg i32 %j.013 to i64
  %arrayidx15 = getelementptr inbounds nuw float, ptr %6, i64 %idxprom14
  %7 = load float, ptr %arrayidx15, align 4
  %mul16 = fmul fast float %3, %7
  %8 = zext nneg i32 %i.015 to i64
  %9 = getelementptr inbounds nuw ptr, ptr %c, i64 %8
  %arrayidx19 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %10 = load ptr, ptr %arrayidx19, align 8
  %11 = zext nneg i32 %j.013 to i64
  %12 = getelementptr inbounds nuw float, ptr %10, i64 %11
  %arrayidx22 = getelementptr inbounds nuw i8, ptr %12, i64 8
  %13 = load float, ptr %arrayidx22, align 4
  %sub = fsub fast float %13, %mul16
  store float %sub, ptr %arrayidx22, align 4
  %inc = add nuw nsw i32 %p.011, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.cond5.for.inc23_crit_edge

for.cond5.for.inc23_crit_edge:                    ; preds = %for.body8
  br label %for.inc23

for.inc23:                                        ; preds = %for.cond5.for.inc23_crit_edge, %for.cond5.preheader
  %inc24 = add nuw nsw i32 %j.013, 1
  %cmp2 = icmp slt i32 %inc24, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc26_crit_edge

for.cond1.for.inc26_crit_edge:                    ; preds = %for.inc23
  br label %for.inc26

for.inc26:                                        ; preds = %for.cond1.for.inc26_crit_edge, %for.cond1.preheader
  %inc27 = add nuw nsw i32 %i.015, 1
  %cmp = icmp slt i32 %inc27, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end28_crit_edge

for.cond.for.end28_crit_edge:                     ; preds = %for.inc26
  br label %for.end28

for.end28:                                        ; preds = %for.cond.for.end28_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @blocks_of_rows(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp30 = icmp slt i32 0, %m
  br i1 %cmp30, label %for.cond1.preheader.lr.ph, label %for.end48

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc46
  %io.031 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %add47, %for.inc46 ]
  %cmp228 = icmp slt i32 0, %k
  br i1 %cmp228, label %for.cond5.preheader.lr.ph, label %for.inc46

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.inc43
  %po.029 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %add44, %for.inc43 ]
  %add = add nuw nsw i32 %io.031, 8
  %cmp6 = icmp slt i32 %add, %m
  %add7 = add nuw nsw i32 %io.031, 8
  %cond = select i1 %cmp6, i32 %add7, i32 %m
  %cmp826 = icmp slt i32 %io.031, %cond
  br i1 %cmp826, label %for.cond11.preheader.lr.ph, label %for.inc43

for.cond11.preheader.lr.ph:                       ; preds = %for.cond5.preheader
  br label %for.cond11.preheader

for.cond11.preheader:                             ; preds = %for.cond11.preheader.lr.ph, %for.inc40
  %i.027 = phi i32 [ %io.031, %for.cond11.preheader.lr.ph ], [ %inc41, %for.inc40 ]
  %add12 = add nuw nsw i32 %po.029, 16
  %cmp13 = icmp slt i32 %add12, %k
  %add15 = add nuw nsw i32 %po.029, 16
  %cond18 = select i1 %cmp13, i32 %add15, i32 %k
  %cmp1924 = icmp slt i32 %po.029, %cond18
  br i1 %cmp1924, label %for.cond22.preheader.lr.ph, label %for.inc40

for.cond22.preheader.lr.ph:                       ; preds = %for.cond11.preheader
  br label %for.cond22.preheader

for.cond22.preheader:                             ; preds = %for.cond22.preheader.lr.ph, %for.inc37
  %p.025 = phi i32 [ %po.029, %for.cond22.preheader.lr.ph ], [ %inc38, %for.inc37 ]
  %cmp2322 = icmp slt i32 0, %n
  br i1 %cmp2322, label %for.body25.lr.ph, label %for.inc37

for.body25.lr.ph:                                 ; preds = %for.cond22.preheader
  br label %for.body25

for.body25:                                       ; preds = %for.body25.lr.ph, %for.body25
  %j.023 = phi i32 [ 0, %for.body25.lr.ph ], [ %inc, %for.body25 ]
  %idxprom = zext nneg i32 %i.027 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom26 = zext nneg i32 %p.025 to i64
  %arrayidx27 = getelementptr inbounds nuw float, ptr %0, i64 %idxprom26
  %1 = load float, ptr %arrayidx27, align 4
  %idxprom28 = zext nneg i32 %p.025 to i64
  %arrayidx29 = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom28
  %2 = load ptr, ptr %arrayidx29, align 8
  %idxprom30 = zext nneg i32 %j.023 to i64
  %arrayidx31 = getelementptr inbounds nuw float, ptr %2, i64 %idxprom30
  %3 = load float, ptr %arrayidx31, align 4
  %mul = fmul fast float %1, %3
  %idxprom32 = zext nneg i32 %i.027 to i64
  %arrayidx33 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom32
  %4 = load ptr, ptr %arrayidx33, align 8
  %idxprom34 = zext nneg i32 %j.023 to i64
  %arrayidx35 = getelementptr inbounds nuw float, ptr %4, i64 %idxprom34
  %5 = load float, ptr %arrayidx35, align 4
  %add36 = fadd fast float %5, %mul
  store float %add36, ptr %arrayidx35, align 4
  %inc = add nuw nsw i32 %j.023, 1
  %cmp23 = icmp slt i32 %inc, %n
  br i1 %cmp23, label %for.body25, label %for.cond22.for.inc37_crit_edge

for.cond22.for.inc37_crit_edge:                   ; preds = %for.body25
  br label %for.inc37

for.inc37:                                        ; preds = %for.cond22.for.inc37_crit_edge, %for.cond22.preheader
  %inc38 = add nuw nsw i32 %p.025, 1
  %cmp19 = icmp slt i32 %inc38, %cond18
  br i1 %cmp19, label %for.cond22.preheader, label %for.cond11.for.inc40_crit_edge

for.cond11.for.inc40_crit_edge:                   ; preds = %for.inc37
  br label %for.inc40

for.inc40:                                        ; preds = %for.cond11.for.inc40_crit_edge, %for.cond11.preheader
  %inc41 = add nuw nsw i32 %i.027, 1
  %cmp8 = icmp slt i32 %inc41, %cond
  br i1 %cmp8, label %for.cond11.preheader, label %for.cond5.for.inc43_crit_edge

for.cond5.for.inc43_crit_edge:                    ; preds = %for.inc40
  br label %for.inc43

for.inc43:                                        ; preds = %for.cond5.for.inc43_crit_edge, %for.cond5.preheader
  %add44 = add nuw nsw i32 %po.029, 16
  %cmp2 = icmp slt i32 %add44, %k
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc46_crit_edge

for.cond1.for.inc46_crit_edge:                    ; preds = %for.inc43
  br label %for.inc46

for.inc46:                                        ; preds = %for.cond1.for.inc46_crit_edge, %for.cond1.preheader
  %add47 = add nuw nsw i32 %io.031, 8
  %cmp = icmp slt i32 %add47, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end48_crit_edge

for.cond.for.end48_crit_edge:                     ; preds = %for.inc46
  br label %for.end48

for.end48:                                        ; preds = %for.cond.for.end48_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @arrays_of_pointers(ptr noundef %c, ptr noundef %a, ptr noundef %b, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp22 = icmp slt i32 0, %m
  br i1 %cmp22, label %for.body.lr.ph, label %for.cond1.preheader

for.body.lr.ph:                                   ; preds = %entry
  br label %for.body

for.cond.for.cond1.preheader_crit_edge:           ; preds = %for.body
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond.for.cond1.preheader_crit_edge, %entry
  %cmp224 = icmp slt i32 0, %k
  br i1 %cmp224, label %for.body4.lr.ph, label %for.cond14.preheader

for.body4.lr.ph:                                  ; preds = %for.cond1.preheader
  br label %for.body4

for.body:                                         ; preds = %for.body.lr.ph, %for.body
  %i.023 = phi i32 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %mul = mul nsw i32 %i.023, %k
  %idx.ext = sext i32 %mul to i64
  %add.ptr = getelementptr inbounds float, ptr %a, i64 %idx.ext
  %idxprom = zext nneg i32 %i.023 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr @own_a, i64 %idxprom
  store ptr %add.ptr, ptr %arrayidx, align 8
  %inc = add nuw nsw i32 %i.023, 1
  %cmp = icmp slt i32 %inc, %m
  br i1 %cmp, label %for.body, label %for.cond.for.cond1.preheader_crit_edge

for.cond1.for.cond14.preheader_crit_edge:         ; preds = %for.body4
  br label %for.cond14.preheader

for.cond14.preheader:                             ; preds = %for.cond1.for.cond14.preheader_crit_edge, %for.cond1.preheader
  %cmp1531 = icmp slt i32 0, %m
  br i1 %cmp1531, label %for.cond18.preheader.lr.ph, label %for.end48

for.cond18.preheader.lr.ph:                       ; preds = %for.cond14.preheader
  br label %for.cond18.preheader

for.body4:                                        ; preds = %for.body4.lr.ph, %for.body4
  %p.025 = phi i32 [ 0, %for.body4.lr.ph ], [ %inc11, %for.body4 ]
  %mul5 = mul nsw i32 %p.025, %n
  %idx.ext6 = sext i32 %mul5 to i64
  %add.ptr7 = getelementptr inbounds float, ptr %b, i64 %idx.ext6
  %idxprom8 = zext nneg i32 %p.025 to i64
  %arrayidx9 = getelementptr inbounds nuw ptr, ptr @own_b, i64 %idxprom8
  store ptr %add.ptr7, ptr %arrayidx9, align 8
  %inc11 = add nuw nsw i32 %p.025, 1
  %cmp2 = icmp slt i32 %inc11, %k
  br i1 %cmp2, label %for.body4, label %for.cond1.for.cond14.preheader_crit_edge

for.cond18.preheader:                             ; preds = %for.cond18.preheader.lr.ph, %for.inc46
  %i13.032 = phi i32 [ 0, %for.cond18.preheader.lr.ph ], [ %inc47, %for.inc46 ]
  %cmp1929 = icmp slt i32 0, %n
  br i1 %cmp1929, label %for.cond23.preheader.lr.ph, label %for.inc46

for.cond23.preheader.lr.ph:                       ; preds = %for.cond18.preheader
  br label %for.cond23.preheader

for.cond23.preheader:                             ; preds = %for.cond23.preheader.lr.ph, %for.end38
  %j.030 = phi i32 [ 0, %for.cond23.preheader.lr.ph ], [ %inc44, %for.end38 ]
  %cmp2426 = icmp slt i32 0, %k
  br i1 %cmp2426, label %for.inc36.lr.ph, label %for.end38

for.inc36.lr.ph:                                  ; preds = %for.cond23.preheader
  br label %for.inc36

for.inc36:                                        ; preds = %for.inc36.lr.ph, %for.inc36
  %p22.028 = phi i32 [ 0, %for.inc36.lr.ph ], [ %inc37, %for.inc36 ]
  %sum.027 = phi float [ 0.000000e+00, %for.inc36.lr.ph ], [ %add, %for.inc36 ]
  %idxprom27 = zext nneg i32 %i13.032 to i64
  %arrayidx28 = getelementptr inbounds nuw ptr, ptr @own_a, i64 %idxprom27
  %0 = load ptr, ptr %arrayidx28, align 8
  %idxprom29 = zext nneg i32 %p22.028 to i64
  %arrayidx30 = getelementptr inbounds nuw float, ptr %0, i64 %idxprom29
  %1 = load float, ptr %arrayidx30, align 4
  %idxprom31 = zext nneg i32 %p22.028 to i64
  %arrayidx32 = getelementptr inbounds nuw ptr, ptr @own_b, i64 %idxprom31
  %2 = load ptr, ptr %arrayidx32, align 8
  %idxprom33 = zext nneg i32 %j.030 to i64
  %arrayidx34 = getelementptr inbounds nuw float, ptr %2, i64 %idxprom33
  %3 = load float, ptr %arrayidx34, align 4
  %mul35 = fmul fast float %1, %3
  %add = fadd fast float %sum.027, %mul35
  %inc37 = add nuw nsw i32 %p22.028, 1
  %cmp24 = icmp slt i32 %inc37, %k
  br i1 %cmp24, label %for.inc36, label %for.cond23.for.end38_crit_edge

for.cond23.for.end38_crit_edge:                   ; preds = %for.inc36
  %split = phi float [ %add, %for.inc36 ]
  br label %for.end38

for.end38:                                        ; preds = %for.cond23.for.end38_crit_edge, %for.cond23.preheader
  %sum.0.lcssa = phi float [ %split, %for.cond23.for.end38_crit_edge ], [ 0.000000e+00, %for.cond23.preheader ]
  %mul39 = mul nsw i32 %i13.032, %n
  %add40 = add nsw i32 %mul39, %j.030
  %idxprom41 = sext i32 %add40 to i64
  %arrayidx42 = getelementptr inbounds float, ptr %c, i64 %idxprom41
  store float %sum.0.lcssa, ptr %arrayidx42, align 4
  %inc44 = add nuw nsw i32 %j.030, 1
  %cmp19 = icmp slt i32 %inc44, %n
  br i1 %cmp19, label %for.cond23.preheader, label %for.cond18.for.inc46_crit_edge

for.cond18.for.inc46_crit_edge:                   ; preds = %for.end38
  br label %for.inc46

for.inc46:                                        ; preds = %for.cond18.for.inc46_crit_edge, %for.cond18.preheader
  %inc47 = add nuw nsw i32 %i13.032, 1
  %cmp15 = icmp slt i32 %inc47, %m
  br i1 %cmp15, label %for.cond18.preheader, label %for.cond14.for.end48_crit_edge

for.cond14.for.end48_crit_edge:                   ; preds = %for.inc46
  br label %for.end48

for.end48:                                        ; preds = %for.cond14.for.end48_crit_edge, %for.cond14.preheader
  ret void
}

; Function Attrs: nounwind uwtable
define void @lengths_of_rows(ptr noundef %c, ptr noundef %a, ptr noundef %b, ptr noundef %x, i32 noundef %m, i32 noundef %n, i32 noundef %k) #0 {
entry:
  %cmp15 = icmp slt i32 0, %m
  br i1 %cmp15, label %for.cond1.preheader.lr.ph, label %for.end26

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc24
  %i.016 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc25, %for.inc24 ]
  %cmp213 = icmp slt i32 0, %n
  br i1 %cmp213, label %for.cond5.preheader.lr.ph, label %for.inc24

for.cond5.preheader.lr.ph:                        ; preds = %for.cond1.preheader
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond5.preheader.lr.ph, %for.inc21
  %j.014 = phi i32 [ 0, %for.cond5.preheader.lr.ph ], [ %inc22, %for.inc21 ]
  %idxprom = zext nneg i32 %i.016 to i64
  %arrayidx = getelementptr inbounds nuw i32, ptr %x, i64 %idxprom
  %0 = load i32, ptr %arrayidx, align 4
  %cmp611 = icmp slt i32 0, %0
  br i1 %cmp611, label %for.body8.lr.ph, label %for.inc21

for.body8.lr.ph:                                  ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.lr.ph, %for.body8
  %p.012 = phi i32 [ 0, %for.body8.lr.ph ], [ %inc, %for.body8 ]
  %idxprom9 = zext nneg i32 %i.016 to i64
  %arrayidx10 = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom9
  %1 = load ptr, ptr %arrayidx10, align 8
  %idxprom11 = zext nneg i32 %p.012 to i64
  %arrayidx12 = getelementptr inbounds nuw float, ptr %1, i64 %idxprom11
  %2 = load float, ptr %arrayidx12, align 4
  %idxprom13 = zext nneg i32 %p.012 to i64
  %arrayidx14 = getelementptr inbounds nuw ptr, ptr %b, i64 %idxprom13
  %3 = load ptr, ptr %arrayidx14, align 8
  %idxprom15 = zext nneg i32 %j.014 to i64
  %arrayidx16 = getelementptr inbounds nuw float, ptr %3, i64 %idxprom15
  %4 = load float, ptr %arrayidx16, align 4
  %mul = fmul fast float %2, %4
  %idxprom17 = zext nneg i32 %i.016 to i64
  %arrayidx18 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom17
  %5 = load ptr, ptr %arrayidx18, align 8
  %idxprom19 = zext nneg i32 %j.014 to i64
  %arrayidx20 = getelementptr inbounds nuw float, ptr %5, i64 %idxprom19
  %6 = load float, ptr %arrayidx20, align 4
  %add = fadd fast float %6, %mul
  store float %add, ptr %arrayidx20, align 4
  %inc = add nuw nsw i32 %p.012, 1
  %7 = load i32, ptr %arrayidx, align 4
  %cmp6 = icmp slt i32 %inc, %7
  br i1 %cmp6, label %for.body8, label %for.cond5.for.inc21_crit_edge

for.cond5.for.inc21_crit_edge:                    ; preds = %for.body8
  br label %for.inc21

for.inc21:                                        ; preds = %for.cond5.for.inc21_crit_edge, %for.cond5.preheader
  %inc22 = add nuw nsw i32 %j.014, 1
  %cmp2 = icmp slt i32 %inc22, %n
  br i1 %cmp2, label %for.cond5.preheader, label %for.cond1.for.inc24_crit_edge

for.cond1.for.inc24_crit_edge:                    ; preds = %for.inc21
  br label %for.inc24

for.inc24:                                        ; preds = %for.cond1.for.inc24_crit_edge, %for.cond1.preheader
  %inc25 = add nuw nsw i32 %i.016, 1
  %cmp = icmp slt i32 %inc25, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end26_crit_edge

for.cond.for.end26_crit_edge:                     ; preds = %for.inc24
  br label %for.end26

for.end26:                                        ; preds = %for.cond.for.end26_crit_edge, %entry
  ret void
}

; Function Attrs: nounwind uwtable
define void @triangle_of_rows(ptr noundef %c, ptr noundef %a, i32 noundef %m, i32 noundef %k) #0 {
entry:
  %cmp15 = icmp slt i32 0, %m
  br i1 %cmp15, label %for.cond1.preheader.lr.ph, label %for.end24

for.cond1.preheader.lr.ph:                        ; preds = %entry
  br label %for.cond1.preheader

for.cond1.preheader:                              ; preds = %for.cond1.preheader.lr.ph, %for.inc22
  %i.016 = phi i32 [ 0, %for.cond1.preheader.lr.ph ], [ %inc23, %for.inc22 ]
  br label %for.cond5.preheader

for.cond5.preheader:                              ; preds = %for.cond1.preheader, %for.inc19
  %j.014 = phi i32 [ 0, %for.cond1.preheader ], [ %inc20, %for.inc19 ]
  %cmp612 = icmp slt i32 0, %k
  br i1 %cmp612, label %for.body8.lr.ph, label %for.inc19

for.body8.lr.ph:                                  ; preds = %for.cond5.preheader
  br label %for.body8

for.body8:                                        ; preds = %for.body8.lr.ph, %for.body8
  %p.013 = phi i32 [ 0, %for.body8.lr.ph ], [ %inc, %for.body8 ]
  %idxprom = zext nneg i32 %i.016 to i64
  %arrayidx = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  %idxprom9 = zext nneg i32 %p.013 to i64
  %arrayidx10 = getelementptr inbounds nuw float, ptr %0, i64 %idxprom9
  %1 = load float, ptr %arrayidx10, align 4
  %idxprom11 = zext nneg i32 %j.014 to i64
  %arrayidx12 = getelementptr inbounds nuw ptr, ptr %a, i64 %idxprom11
  %2 = load ptr, ptr %arrayidx12, align 8
  %idxprom13 = zext nneg i32 %p.013 to i64
  %arrayidx14 = getelementptr inbounds nuw float, ptr %2, i64 %idxprom13
  %3 = load float, ptr %arrayidx14, align 4
  %mul = fmul fast float %1, %3
  %idxprom15 = zext nneg i32 %i.016 to i64
  %arrayidx16 = getelementptr inbounds nuw ptr, ptr %c, i64 %idxprom15
  %4 = load ptr, ptr %arrayidx16, align 8
  %idxprom17 = zext nneg i32 %j.014 to i64
  %arrayidx18 = getelementptr inbounds nuw float, ptr %4, i64 %idxprom17
  %5 = load float, ptr %arrayidx18, align 4
  %add = fadd fast float %5, %mul
  store float %add, ptr %arrayidx18, align 4
  %inc = add nuw nsw i32 %p.013, 1
  %cmp6 = icmp slt i32 %inc, %k
  br i1 %cmp6, label %for.body8, label %for.cond5.for.inc19_crit_edge

for.cond5.for.inc19_crit_edge:                    ; preds = %for.body8
  br label %for.inc19

for.inc19:                                        ; preds = %for.cond5.for.inc19_crit_edge, %for.cond5.preheader
  %inc20 = add nuw nsw i32 %j.014, 1
  %cmp2.not = icmp samesign ugt i32 %inc20, %i.016
  br i1 %cmp2.not, label %for.inc22, label %for.cond5.preheader

for.inc22:                                        ; preds = %for.inc19
  %inc23 = add nuw nsw i32 %i.016, 1
  %cmp = icmp slt i32 %inc23, %m
  br i1 %cmp, label %for.cond1.preheader, label %for.cond.for.end24_crit_edge

for.cond.for.end24_crit_edge:                     ; preds = %for.inc22
  br label %for.end24

for.end24:                                        ; preds = %for.cond.for.end24_crit_edge, %entry
  ret void
}

declare void @llvm.lifetime.start.i64(i64)

declare void @llvm.lifetime.end.i64(i64)

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

attributes #0 = { nounwind uwtable "approx-func-fp-math"="true" "min-legal-vector-width"="0" "no-infs-fp-math"="true" "no-nans-fp-math"="true" "no-signed-zeros-fp-math"="true" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="x86-64" "target-features"="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+x87" "tune-cpu"="generic" "unsafe-fp-math"="true" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }


