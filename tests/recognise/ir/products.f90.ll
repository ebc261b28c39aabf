target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @explicit_shapes(ptr captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2, i32 %3, i32 %4, i32 %5) local_unnamed_addr #0 {
  %7 = sext i32 %3 to i64
  %8 = tail call i64 @llvm.smax.i64(i64 %7, i64 0)
  %9 = sext i32 %5 to i64
  %10 = tail call i64 @llvm.smax.i64(i64 %9, i64 0)
  %11 = icmp sgt i32 %4, 0
  br i1 %11, label %.preheader17.lr.ph, label %._crit_edge19

.preheader17.lr.ph:                               ; preds = %6
  %12 = icmp sgt i32 %5, 0
  %13 = icmp sgt i32 %3, 0
  %narrow = add nuw i32 %4, 1
  %14 = zext i32 %narrow to i64
  br label %.preheader17

.preheader17:                                     ; preds = %._crit_edge18, %.preheader17.lr.ph
  %indvars.iv25 = phi i64 [ 1, %.preheader17.lr.ph ], [ %indvars.iv.next26, %._crit_edge18 ]
  br i1 %12, label %.preheader.lr.ph, label %._crit_edge18

.preheader.lr.ph:                                 ; preds = %.preheader17
  %15 = add nsw i64 %indvars.iv25, -1
  %16 = mul nuw nsw i64 %15, %8
  %17 = getelementptr double, ptr %0, i64 %16
  %18 = mul nuw nsw i64 %15, %10
  %19 = getelementptr double, ptr %2, i64 %18
  br label %.preheader

.preheader:                                       ; preds = %._crit_edge, %.preheader.lr.ph
  %indvars.iv21 = phi i64 [ 1, %.preheader.lr.ph ], [ %indvars.iv.next22, %._crit_edge ]
  br i1 %13, label %.lr.ph, label %._crit_edge

.lr.ph:                                           ; preds = %.preheader
  %20 = add nsw i64 %indvars.iv21, -1
  %21 = mul nuw nsw i64 %20, %8
  %22 = getelementptr double, ptr %1, i64 %21
  %23 = getelementptr double, ptr %19, i64 %20
  %24 = load double, ptr %23, align 8
  br label %25

25:                                               ; preds = %25, %.lr.ph
  %indvars.iv = phi i64 [ 1, %.lr.ph ], [ %indvars.iv.next, %25 ]
  %26 = add nsw i64 %indvars.iv, -1
  %27 = getelementptr double, ptr %17, i64 %26
  %28 = load double, ptr %27, align 8
  %29 = getelementptr double, ptr %22, i64 %26
  %30 = load double, ptr %29, align 8
  %31 = fmul fast double %24, %30
  %32 = fadd fast double %31, %28
  store double %32, ptr %27, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv, %7
  br i1 %exitcond.not, label %._crit_edge, label %25

._crit_edge:                                      ; preds = %25, %.preheader
  %indvars.iv.next22 = add nuw nsw i64 %indvars.iv21, 1
  %exitcond24.not = icmp eq i64 %indvars.iv21, %9
  br i1 %exitcond24.not, label %._crit_edge18, label %.preheader

._crit_edge18:                                    ; preds = %._crit_edge, %.preheader17
  %indvars.iv.next26 = add nuw nsw i64 %indvars.iv25, 1
  %exitcond28.not = icmp eq i64 %indvars.iv.next26, %14
  br i1 %exitcond28.not, label %._crit_edge19, label %.preheader17

._crit_edge19:                                    ; preds = %._crit_edge18, %6
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @by_reference(ptr captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2, ptr readonly captures(none) %3, ptr readonly captures(none) %4, ptr readonly captures(none) %5, ptr readonly captures(none) %6, ptr readonly captures(none) %7, ptr readonly captures(none) %8) local_unnamed_addr #0 {
  %10 = load i32, ptr %7, align 4
  %11 = tail call i32 @llvm.smax.i32(i32 %10, i32 0)
  %12 = zext nneg i32 %11 to i64
  %13 = load i32, ptr %8, align 4
  %14 = tail call i32 @llvm.smax.i32(i32 %13, i32 0)
  %15 = zext nneg i32 %14 to i64
  %16 = load i32, ptr %6, align 4
  %17 = tail call i32 @llvm.smax.i32(i32 %16, i32 0)
  %18 = zext nneg i32 %17 to i64
  %19 = load i32, ptr %3, align 4
  %20 = icmp sgt i32 %19, 0
  br i1 %20, label %.lr.ph14, label %._crit_edge15

.lr.ph14:                                         ; preds = %9
  %21 = load i32, ptr %4, align 4
  %22 = sext i32 %21 to i64
  %23 = icmp sgt i32 %21, 0
  %narrow = add nuw i32 %19, 1
  %24 = zext i32 %narrow to i64
  br label %25

25:                                               ; preds = %._crit_edge10, %.lr.ph14
  %indvars.iv21 = phi i64 [ 1, %.lr.ph14 ], [ %indvars.iv.next22, %._crit_edge10 ]
  br i1 %23, label %.lr.ph9, label %._crit_edge10

.lr.ph9:                                          ; preds = %25
  %26 = load i32, ptr %5, align 4
  %27 = sext i32 %26 to i64
  %28 = icmp sgt i32 %26, 0
  %29 = add nsw i64 %indvars.iv21, -1
  %invariant.gep11 = getelementptr float, ptr %0, i64 %29
  %invariant.gep = getelementptr float, ptr %1, i64 %29
  br label %30

30:                                               ; preds = %44, %.lr.ph9
  %indvars.iv17 = phi i64 [ 1, %.lr.ph9 ], [ %indvars.iv.next18, %44 ]
  br i1 %28, label %.lr.ph, label %44

.lr.ph:                                           ; preds = %30
  %31 = add nsw i64 %indvars.iv17, -1
  %32 = mul nuw nsw i64 %31, %18
  %gep12 = getelementptr float, ptr %invariant.gep11, i64 %32
  %33 = mul nuw nsw i64 %31, %15
  %34 = getelementptr float, ptr %2, i64 %33
  %.promoted = load float, ptr %gep12, align 4
  br label %35

35:                                               ; preds = %35, %.lr.ph
  %indvars.iv = phi i64 [ 1, %.lr.ph ], [ %indvars.iv.next, %35 ]
  %36 = phi float [ %.promoted, %.lr.ph ], [ %43, %35 ]
  %37 = add nsw i64 %indvars.iv, -1
  %38 = mul nuw nsw i64 %37, %12
  %gep = getelementptr float, ptr %invariant.gep, i64 %38
  %39 = load float, ptr %gep, align 4
  %40 = getelementptr float, ptr %34, i64 %37
  %41 = load float, ptr %40, align 4
  %42 = fmul fast float %41, %39
  %43 = fadd fast float %42, %36
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv, %27
  br i1 %exitcond.not, label %._crit_edge, label %35

._crit_edge:                                      ; preds = %35
  store float %43, ptr %gep12, align 4
  br label %44

44:                                               ; preds = %._crit_edge, %30
  %indvars.iv.next18 = add nuw nsw i64 %indvars.iv17, 1
  %exitcond20.not = icmp eq i64 %indvars.iv17, %22
  br i1 %exitcond20.not, label %._crit_edge10, label %30

._crit_edge10:                                    ; preds = %44, %25
  %indvars.iv.next22 = add nuw nsw i64 %indvars.iv21, 1
  %exitcond24.not = icmp eq i64 %indvars.iv.next22, %24
  br i1 %exitcond24.not, label %._crit_edge15, label %25

._crit_edge15:                                    ; preds = %._crit_edge10, %9
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @reference_dgemm(ptr captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2, i32 %3, i32 %4, i32 %5, i32 %6, i32 %7, i32 %8, double %9, double %10) local_unnamed_addr #0 {
  %12 = tail call i32 @llvm.smax.i32(i32 %7, i32 0)
  %13 = zext nneg i32 %12 to i64
  %14 = tail call i32 @llvm.smax.i32(i32 %8, i32 0)
  %15 = zext nneg i32 %14 to i64
  %16 = tail call i32 @llvm.smax.i32(i32 %6, i32 0)
  %17 = zext nneg i32 %16 to i64
  %invariant.gep29 = getelementptr i8, ptr %0, i64 -8
  %18 = icmp sgt i32 %4, 0
  br i1 %18, label %.lr.ph32, label %._crit_edge33

.lr.ph32:                                         ; preds = %11
  %19 = sext i32 %3 to i64
  %20 = icmp sgt i32 %3, 0
  %21 = sext i32 %5 to i64
  %22 = icmp sgt i32 %5, 0
  %narrow = add nuw i32 %4, 1
  %23 = zext i32 %narrow to i64
  br label %24

24:                                               ; preds = %._crit_edge28, %.lr.ph32
  %indvars.iv43 = phi i64 [ 1, %.lr.ph32 ], [ %indvars.iv.next44, %._crit_edge28 ]
  br i1 %20, label %.lr.ph, label %._crit_edge

.lr.ph:                                           ; preds = %24
  %25 = add nsw i64 %indvars.iv43, -1
  %26 = mul nuw nsw i64 %25, %17
  %gep30 = getelementptr double, ptr %invariant.gep29, i64 %26
  br label %27

27:                                               ; preds = %27, %.lr.ph
  %indvars.iv = phi i64 [ 1, %.lr.ph ], [ %indvars.iv.next, %27 ]
  %gep = getelementptr double, ptr %gep30, i64 %indvars.iv
  %28 = load double, ptr %gep, align 8
  %29 = fmul fast double %28, %10
  store double %29, ptr %gep, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv, %19
  br i1 %exitcond.not, label %._crit_edge, label %27

._crit_edge:                                      ; preds = %27, %24
  br i1 %22, label %.lr.ph27, label %._crit_edge28

.lr.ph27:                                         ; preds = %._crit_edge
  %30 = add nsw i64 %indvars.iv43, -1
  %31 = mul nuw nsw i64 %30, %15
  %32 = getelementptr double, ptr %2, i64 %31
  %33 = mul nuw nsw i64 %30, %17
  %34 = getelementptr double, ptr %0, i64 %33
  br label %35

35:                                               ; preds = %._crit_edge25, %.lr.ph27
  %indvars.iv39 = phi i64 [ 1, %.lr.ph27 ], [ %indvars.iv.next40, %._crit_edge25 ]
  %36 = add nsw i64 %indvars.iv39, -1
  %37 = getelementptr double, ptr %32, i64 %36
  %38 = load double, ptr %37, align 8
  %39 = fmul fast double %38, %9
  br i1 %20, label %.lr.ph24, label %._crit_edge25

.lr.ph24:                                         ; preds = %35
  %40 = mul nuw nsw i64 %36, %13
  %41 = getelementptr double, ptr %1, i64 %40
  br label %42

42:                                               ; preds = %42, %.lr.ph24
  %indvars.iv35 = phi i64 [ 1, %.lr.ph24 ], [ %indvars.iv.next36, %42 ]
  %43 = add nsw i64 %indvars.iv35, -1
  %44 = getelementptr double, ptr %34, i64 %43
  %45 = load double, ptr %44, align 8
  %46 = getelementptr double, ptr %41, i64 %43
  %47 = load double, ptr %46, align 8
  %48 = fmul fast double %39, %47
  %49 = fadd fast double %48, %45
  store double %49, ptr %44, align 8
  %indvars.iv.next36 = add nuw nsw i64 %indvars.iv35, 1
  %exitcond38.not = icmp eq i64 %indvars.iv35, %19
  br i1 %exitcond38.not, label %._crit_edge25, label %42

._crit_edge25:                                    ; preds = %42, %35
  %indvars.iv.next40 = add nuw nsw i64 %indvars.iv39, 1
  %exitcond42.not = icmp eq i64 %indvars.iv39, %21
  br i1 %exitcond42.not, label %._crit_edge28, label %35

._crit_edge28:                                    ; preds = %._crit_edge25, %._crit_edge
  %indvars.iv.next44 = add nuw nsw i64 %indvars.iv43, 1
  %exitcond46.not = icmp eq i64 %indvars.iv.next44, %23
  br i1 %exitcond46.not, label %._crit_edge33, label %24

._crit_edge33:                                    ; preds = %._crit_edge28, %11
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @dot_products(ptr writeonly captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2, i32 %3, i32 %4, i32 %5) local_unnamed_addr #0 {
  %7 = sext i32 %5 to i64
  %8 = tail call i64 @llvm.smax.i64(i64 %7, i64 0)
  %9 = sext i32 %3 to i64
  %10 = tail call i64 @llvm.smax.i64(i64 %9, i64 0)
  %invariant.gep26 = getelementptr i8, ptr %0, i64 -8
  %11 = icmp sgt i32 %3, 0
  br i1 %11, label %.preheader21.lr.ph, label %._crit_edge27

.preheader21.lr.ph:                               ; preds = %6
  %12 = sext i32 %4 to i64
  %13 = icmp sgt i32 %4, 0
  %14 = icmp sgt i32 %5, 0
  br label %.preheader21

.preheader21:                                     ; preds = %._crit_edge23, %.preheader21.lr.ph
  %indvars.iv33 = phi i64 [ 1, %.preheader21.lr.ph ], [ %indvars.iv.next34, %._crit_edge23 ]
  br i1 %13, label %.preheader.lr.ph, label %._crit_edge23

.preheader.lr.ph:                                 ; preds = %.preheader21
  %15 = add nsw i64 %indvars.iv33, -1
  %16 = mul nuw nsw i64 %15, %8
  %17 = getelementptr double, ptr %1, i64 %16
  %gep = getelementptr double, ptr %invariant.gep26, i64 %indvars.iv33
  br label %.preheader

.preheader:                                       ; preds = %._crit_edge, %.preheader.lr.ph
  %indvars.iv29 = phi i64 [ 1, %.preheader.lr.ph ], [ %indvars.iv.next30, %._crit_edge ]
  %18 = add nsw i64 %indvars.iv29, -1
  br i1 %14, label %.lr.ph, label %._crit_edge

.lr.ph:                                           ; preds = %.preheader
  %19 = mul nuw nsw i64 %18, %8
  %20 = getelementptr double, ptr %2, i64 %19
  br label %21

21:                                               ; preds = %21, %.lr.ph
  %indvars.iv = phi i64 [ 1, %.lr.ph ], [ %indvars.iv.next, %21 ]
  %.022 = phi double [ 0.000000e+00, %.lr.ph ], [ %28, %21 ]
  %22 = add nsw i64 %indvars.iv, -1
  %23 = getelementptr double, ptr %17, i64 %22
  %24 = load double, ptr %23, align 8
  %25 = getelementptr double, ptr %20, i64 %22
  %26 = load double, ptr %25, align 8
  %27 = fmul fast double %26, %24
  %28 = fadd fast double %27, %.022
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv, %7
  br i1 %exitcond.not, label %._crit_edge, label %21

._crit_edge:                                      ; preds = %21, %.preheader
  %.0.lcssa = phi double [ 0.000000e+00, %.preheader ], [ %28, %21 ]
  %29 = mul nuw nsw i64 %18, %10
  %gep25 = getelementptr double, ptr %gep, i64 %29
  store double %.0.lcssa, ptr %gep25, align 8
  %indvars.iv.next30 = add nuw nsw i64 %indvars.iv29, 1
  %exitcond32.not = icmp eq i64 %indvars.iv29, %12
  br i1 %exitcond32.not, label %._crit_edge23, label %.preheader

._crit_edge23:                                    ; preds = %._crit_edge, %.preheader21
  %indvars.iv.next34 = add nuw nsw i64 %indvars.iv33, 1
  %exitcond36.not = icmp eq i64 %indvars.iv33, %9
  br i1 %exitcond36.not, label %._crit_edge27, label %.preheader21

._crit_edge27:                                    ; preds = %._crit_edge23, %6
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @steps_of_two(ptr captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2, i32 %3, i32 %4, i32 %5) local_unnamed_addr #0 {
  %7 = sext i32 %3 to i64
  %8 = tail call i64 @llvm.smax.i64(i64 %7, i64 0)
  %9 = tail call i32 @llvm.smax.i32(i32 %5, i32 0)
  %10 = zext nneg i32 %9 to i64
  %11 = icmp sgt i32 %5, 0
  br i1 %11, label %.lr.ph21, label %._crit_edge22

.lr.ph21:                                         ; preds = %6
  %.lhs.trunc.neg = add nuw i32 %5, 1
  %12 = lshr i32 %.lhs.trunc.neg, 1
  %.sext = zext nneg i32 %12 to i64
  %13 = sext i32 %4 to i64
  %14 = add nsw i64 %13, 1
  %15 = sdiv i64 %14, 3
  %16 = icmp sgt i32 %4, 1
  %17 = add nsw i64 %7, 1
  %18 = sdiv i64 %17, 2
  %19 = icmp sgt i32 %3, 0
  br label %20

20:                                               ; preds = %._crit_edge19, %.lr.ph21
  %21 = phi i64 [ %.sext, %.lr.ph21 ], [ %54, %._crit_edge19 ]
  %22 = phi i32 [ %5, %.lr.ph21 ], [ %53, %._crit_edge19 ]
  br i1 %16, label %.lr.ph18, label %._crit_edge19

.lr.ph18:                                         ; preds = %20
  %23 = sext i32 %22 to i64
  %24 = add nsw i64 %23, -1
  %25 = mul nsw i64 %24, %8
  %26 = getelementptr i32, ptr %1, i64 %25
  %invariant.gep = getelementptr i32, ptr %2, i64 %24
  br label %27

27:                                               ; preds = %._crit_edge, %.lr.ph18
  %28 = phi i64 [ %15, %.lr.ph18 ], [ %51, %._crit_edge ]
  %29 = phi i32 [ 2, %.lr.ph18 ], [ %50, %._crit_edge ]
  br i1 %19, label %.lr.ph, label %._crit_edge

.lr.ph:                                           ; preds = %27
  %30 = sext i32 %29 to i64
  %31 = add nsw i64 %30, -1
  %32 = mul nsw i64 %31, %8
  %33 = getelementptr i32, ptr %0, i64 %32
  %34 = mul nsw i64 %31, %10
  %gep = getelementptr i32, ptr %invariant.gep, i64 %34
  %35 = load i32, ptr %gep, align 4
  br label %36

36:                                               ; preds = %36, %.lr.ph
  %37 = phi i64 [ %18, %.lr.ph ], [ %48, %36 ]
  %38 = phi i32 [ 1, %.lr.ph ], [ %47, %36 ]
  %39 = sext i32 %38 to i64
  %40 = add nsw i64 %39, -1
  %41 = getelementptr i32, ptr %33, i64 %40
  %42 = load i32, ptr %41, align 4
  %43 = getelementptr i32, ptr %26, i64 %40
  %44 = load i32, ptr %43, align 4
  %45 = mul i32 %35, %44
  %46 = add i32 %45, %42
  store i32 %46, ptr %41, align 4
  %47 = add nuw i32 %38, 2
  %48 = add nsw i64 %37, -1
  %49 = icmp sgt i64 %37, 1
  br i1 %49, label %36, label %._crit_edge

._crit_edge:                                      ; preds = %36, %27
  %50 = add i32 %29, 3
  %51 = add nsw i64 %28, -1
  %52 = icmp sgt i64 %28, 1
  br i1 %52, label %27, label %._crit_edge19

._crit_edge19:                                    ; preds = %._crit_edge, %20
  %53 = add i32 %22, -2
  %54 = add nsw i64 %21, -1
  %55 = icmp sgt i64 %21, 1
  br i1 %55, label %20, label %._crit_edge22

._crit_edge22:                                    ; preds = %._crit_edge19, %6
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @static_shapes(ptr captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2) local_unnamed_addr #0 {
  br label %.preheader10

.preheader10:                                     ; preds = %18, %3
  %indvars.iv16 = phi i64 [ 1, %3 ], [ %indvars.iv.next17, %18 ]
  %4 = add nsw i64 %indvars.iv16, -1
  %.idx = mul nuw nsw i64 %4, 160
  %5 = getelementptr i8, ptr %0, i64 %.idx
  %.idx9 = mul nuw nsw i64 %4, 200
  %6 = getelementptr i8, ptr %2, i64 %.idx9
  br label %.preheader

.preheader:                                       ; preds = %17, %.preheader10
  %indvars.iv12 = phi i64 [ 1, %.preheader10 ], [ %indvars.iv.next13, %17 ]
  %7 = add nsw i64 %indvars.iv12, -1
  %8 = getelementptr float, ptr %5, i64 %7
  %invariant.gep = getelementptr float, ptr %1, i64 %7
  %.promoted = load float, ptr %8, align 4
  br label %9

9:                                                ; preds = %9, %.preheader
  %indvars.iv = phi i64 [ 1, %.preheader ], [ %indvars.iv.next, %9 ]
  %10 = phi float [ %.promoted, %.preheader ], [ %16, %9 ]
  %11 = add nsw i64 %indvars.iv, -1
  %.idx8 = mul nuw nsw i64 %11, 160
  %gep = getelementptr i8, ptr %invariant.gep, i64 %.idx8
  %12 = load float, ptr %gep, align 4
  %13 = getelementptr float, ptr %6, i64 %11
  %14 = load float, ptr %13, align 4
  %15 = fmul fast float %14, %12
  %16 = fadd fast float %15, %10
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, 51
  br i1 %exitcond.not, label %17, label %9

17:                                               ; preds = %9
  store float %16, ptr %8, align 4
  %indvars.iv.next13 = add nuw nsw i64 %indvars.iv12, 1
  %exitcond15.not = icmp eq i64 %indvars.iv.next13, 41
  br i1 %exitcond15.not, label %18, label %.preheader

18:                                               ; preds = %17
  %indvars.iv.next17 = add nuw nsw i64 %indvars.iv16, 1
  %exitcond19.not = icmp eq i64 %indvars.iv.next17, 31
  br i1 %exitcond19.not, label %19, label %.preheader10

19:                                               ; preds = %18
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @assumed(ptr captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2, i32 %3, i32 %4, i32 %5) local_unnamed_addr #0 {
  %7 = tail call i32 @llvm.smax.i32(i32 %3, i32 0)
  %8 = zext nneg i32 %7 to i64
  %9 = tail call i32 @llvm.smax.i32(i32 %5, i32 0)
  %10 = zext nneg i32 %9 to i64
  %11 = shl nuw nsw i64 %8, 3
  %12 = tail call i32 @llvm.smax.i32(i32 %4, i32 0)
  %13 = zext nneg i32 %12 to i64
  %14 = shl nuw nsw i64 %10, 3
  %.not = icmp slt i32 %4, 1
  br i1 %.not, label %_QMproductsPmultiply.exit, label %.lr.ph36.i

.lr.ph36.i:                                       ; preds = %6
  %.not81 = icmp slt i32 %5, 1
  %.not82 = icmp slt i32 %3, 1
  br label %15

15:                                               ; preds = %._crit_edge34.i, %.lr.ph36.i
  %indvars.iv43.i = phi i64 [ 1, %.lr.ph36.i ], [ %indvars.iv.next44.i, %._crit_edge34.i ]
  br i1 %.not81, label %._crit_edge34.i, label %.lr.ph33.i

.lr.ph33.i:                                       ; preds = %15
  %16 = add nsw i64 %indvars.iv43.i, -1
  %17 = mul nsw i64 %16, %11
  %18 = getelementptr i8, ptr %0, i64 %17
  %19 = mul nsw i64 %14, %16
  %20 = getelementptr i8, ptr %2, i64 %19
  br label %21

21:                                               ; preds = %._crit_edge.i, %.lr.ph33.i
  %indvars.iv39.i = phi i64 [ 1, %.lr.ph33.i ], [ %indvars.iv.next40.i, %._crit_edge.i ]
  br i1 %.not82, label %._crit_edge.i, label %.lr.ph.i

.lr.ph.i:                                         ; preds = %21
  %22 = add nsw i64 %indvars.iv39.i, -1
  %23 = mul nsw i64 %22, %11
  %24 = getelementptr i8, ptr %1, i64 %23
  %25 = shl nsw i64 %22, 3
  %26 = getelementptr i8, ptr %20, i64 %25
  %27 = load double, ptr %26, align 8
  br label %28

28:                                               ; preds = %28, %.lr.ph.i
  %indvars.iv.i = phi i64 [ 1, %.lr.ph.i ], [ %indvars.iv.next.i, %28 ]
  %29 = shl i64 %indvars.iv.i, 3
  %30 = add nsw i64 %29, -8
  %31 = getelementptr i8, ptr %18, i64 %30
  %32 = load double, ptr %31, align 8
  %33 = getelementptr i8, ptr %24, i64 %30
  %34 = load double, ptr %33, align 8
  %35 = fmul fast double %34, %27
  %36 = fadd fast double %35, %32
  store double %36, ptr %31, align 8
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %exitcond.not.i = icmp eq i64 %indvars.iv.i, %8
  br i1 %exitcond.not.i, label %._crit_edge.i, label %28

._crit_edge.i:                                    ; preds = %28, %21
  %indvars.iv.next40.i = add nuw nsw i64 %indvars.iv39.i, 1
  %exitcond42.not.i = icmp eq i64 %indvars.iv39.i, %10
  br i1 %exitcond42.not.i, label %._crit_edge34.i, label %21

._crit_edge34.i:                                  ; preds = %._crit_edge.i, %15
  %indvars.iv.next44.i = add nuw nsw i64 %indvars.iv43.i, 1
  %exitcond46.not.i = icmp eq i64 %indvars.iv43.i, %13
  br i1 %exitcond46.not.i, label %_QMproductsPmultiply.exit, label %15

_QMproductsPmultiply.exit:                        ; preds = %._crit_edge34.i, %6
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define void @_QMproductsPmultiply(ptr readonly captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2) local_unnamed_addr #1 {
  %4 = getelementptr i8, ptr %1, i64 40
  %5 = getelementptr i8, ptr %1, i64 64
  %6 = getelementptr i8, ptr %0, i64 40
  %7 = getelementptr i8, ptr %0, i64 56
  %8 = load i64, ptr %7, align 8
  %9 = getelementptr i8, ptr %0, i64 64
  %sext = shl i64 %8, 32
  %10 = ashr exact i64 %sext, 32
  %11 = icmp sgt i64 %10, 0
  br i1 %11, label %.lr.ph36, label %._crit_edge37

.lr.ph36:                                         ; preds = %3
  %12 = getelementptr i8, ptr %0, i64 32
  %13 = load i64, ptr %12, align 8
  %14 = getelementptr i8, ptr %1, i64 56
  %15 = load i64, ptr %14, align 8
  %sext30 = shl i64 %15, 32
  %16 = ashr exact i64 %sext30, 32
  %17 = icmp sgt i64 %16, 0
  %sext31 = shl i64 %13, 32
  %18 = ashr exact i64 %sext31, 32
  %19 = icmp sgt i64 %18, 0
  %20 = getelementptr i8, ptr %2, i64 40
  %21 = getelementptr i8, ptr %2, i64 64
  br label %22

22:                                               ; preds = %._crit_edge34, %.lr.ph36
  %indvars.iv43 = phi i64 [ 1, %.lr.ph36 ], [ %indvars.iv.next44, %._crit_edge34 ]
  br i1 %17, label %.lr.ph33, label %._crit_edge34

.lr.ph33:                                         ; preds = %22
  %23 = add nsw i64 %indvars.iv43, -1
  br label %24

24:                                               ; preds = %._crit_edge, %.lr.ph33
  %indvars.iv39 = phi i64 [ 1, %.lr.ph33 ], [ %indvars.iv.next40, %._crit_edge ]
  br i1 %19, label %.lr.ph, label %._crit_edge

.lr.ph:                                           ; preds = %24
  %25 = load i64, ptr %6, align 8
  %26 = load i64, ptr %9, align 8
  %27 = mul nsw i64 %26, %23
  %28 = load ptr, ptr %0, align 8
  %29 = getelementptr i8, ptr %28, i64 %27
  %30 = load i64, ptr %4, align 8
  %31 = add nsw i64 %indvars.iv39, -1
  %32 = load i64, ptr %5, align 8
  %33 = mul nsw i64 %32, %31
  %34 = load ptr, ptr %1, align 8
  %35 = getelementptr i8, ptr %34, i64 %33
  %36 = load i64, ptr %20, align 8
  %37 = mul nsw i64 %36, %31
  %38 = load i64, ptr %21, align 8
  %39 = mul nsw i64 %38, %23
  %40 = load ptr, ptr %2, align 8
  %41 = getelementptr i8, ptr %40, i64 %39
  %42 = getelementptr i8, ptr %41, i64 %37
  %43 = load double, ptr %42, align 8
  br label %44

44:                                               ; preds = %44, %.lr.ph
  %indvars.iv = phi i64 [ 1, %.lr.ph ], [ %indvars.iv.next, %44 ]
  %45 = add nsw i64 %indvars.iv, -1
  %46 = mul nsw i64 %25, %45
  %47 = getelementptr i8, ptr %29, i64 %46
  %48 = load double, ptr %47, align 8
  %49 = mul nsw i64 %30, %45
  %50 = getelementptr i8, ptr %35, i64 %49
  %51 = load double, ptr %50, align 8
  %52 = fmul fast double %43, %51
  %53 = fadd fast double %52, %48
  store double %53, ptr %47, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv, %18
  br i1 %exitcond.not, label %._crit_edge, label %44

._crit_edge:                                      ; preds = %44, %24
  %indvars.iv.next40 = add nuw nsw i64 %indvars.iv39, 1
  %exitcond42.not = icmp eq i64 %indvars.iv39, %16
  br i1 %exitcond42.not, label %._crit_edge34, label %24

._crit_edge34:                                    ; preds = %._crit_edge, %22
  %indvars.iv.next44 = add nuw nsw i64 %indvars.iv43, 1
  %exitcond46.not = icmp eq i64 %indvars.iv43, %10
  br i1 %exitcond46.not, label %._crit_edge37, label %22

._crit_edge37:                                    ; preds = %._crit_edge34, %3
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @symmetric_update(ptr captures(none) %0, ptr readonly captures(none) %1, i32 %2, i32 %3) local_unnamed_addr #0 {
  %5 = sext i32 %2 to i64
  %6 = tail call i64 @llvm.smax.i64(i64 %5, i64 0)
  %7 = icmp sgt i32 %2, 0
  br i1 %7, label %.preheader.lr.ph, label %._crit_edge17

.preheader.lr.ph:                                 ; preds = %4
  %8 = sext i32 %3 to i64
  %9 = icmp sgt i32 %3, 0
  %10 = add nuw nsw i64 %5, 1
  br label %.preheader

.preheader:                                       ; preds = %._crit_edge16, %.preheader.lr.ph
  %indvars.iv19 = phi i64 [ 1, %.preheader.lr.ph ], [ %indvars.iv.next20, %._crit_edge16 ]
  br i1 %9, label %.lr.ph15, label %._crit_edge16

.lr.ph15:                                         ; preds = %.preheader
  %11 = sub nsw i64 %10, %indvars.iv19
  %12 = add nsw i64 %indvars.iv19, -1
  %13 = mul nuw nsw i64 %12, %6
  %14 = getelementptr double, ptr %0, i64 %13
  %15 = trunc nuw nsw i64 %indvars.iv19 to i32
  br label %.lr.ph

.lr.ph:                                           ; preds = %._crit_edge, %.lr.ph15
  %indvars.iv = phi i64 [ 1, %.lr.ph15 ], [ %indvars.iv.next, %._crit_edge ]
  %16 = add nsw i64 %indvars.iv, -1
  %17 = mul nuw nsw i64 %16, %6
  %18 = getelementptr double, ptr %1, i64 %17
  %19 = getelementptr double, ptr %18, i64 %12
  %20 = load double, ptr %19, align 8
  br label %21

21:                                               ; preds = %21, %.lr.ph
  %22 = phi i64 [ %11, %.lr.ph ], [ %33, %21 ]
  %23 = phi i32 [ %15, %.lr.ph ], [ %32, %21 ]
  %24 = sext i32 %23 to i64
  %25 = add nsw i64 %24, -1
  %26 = getelementptr double, ptr %14, i64 %25
  %27 = load double, ptr %26, align 8
  %28 = getelementptr double, ptr %18, i64 %25
  %29 = load double, ptr %28, align 8
  %30 = fmul fast double %20, %29
  %31 = fadd fast double %30, %27
  store double %31, ptr %26, align 8
  %32 = add nuw i32 %23, 1
  %33 = add nsw i64 %22, -1
  %34 = icmp sgt i64 %22, 1
  br i1 %34, label %21, label %._crit_edge

._crit_edge:                                      ; preds = %21
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv, %8
  br i1 %exitcond.not, label %._crit_edge16, label %.lr.ph

._crit_edge16:                                    ; preds = %._crit_edge, %.preheader
  %indvars.iv.next20 = add nuw nsw i64 %indvars.iv19, 1
  %exitcond22.not = icmp eq i64 %indvars.iv19, %5
  br i1 %exitcond22.not, label %._crit_edge17, label %.preheader

._crit_edge17:                                    ; preds = %._crit_edge16, %4
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @matrix_times_vector(ptr captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2, i32 %3, i32 %4) local_unnamed_addr #0 {
  %6 = sext i32 %3 to i64
  %7 = tail call i64 @llvm.smax.i64(i64 %6, i64 0)
  %8 = icmp sgt i32 %4, 0
  br i1 %8, label %.preheader.lr.ph, label %._crit_edge11

.preheader.lr.ph:                                 ; preds = %5
  %9 = icmp sgt i32 %3, 0
  %narrow = add nuw i32 %4, 1
  %10 = zext i32 %narrow to i64
  br label %.preheader

.preheader:                                       ; preds = %._crit_edge, %.preheader.lr.ph
  %indvars.iv13 = phi i64 [ 1, %.preheader.lr.ph ], [ %indvars.iv.next14, %._crit_edge ]
  br i1 %9, label %.lr.ph, label %._crit_edge

.lr.ph:                                           ; preds = %.preheader
  %11 = add nsw i64 %indvars.iv13, -1
  %12 = mul nuw nsw i64 %11, %7
  %13 = getelementptr double, ptr %1, i64 %12
  %14 = getelementptr double, ptr %2, i64 %11
  %15 = load double, ptr %14, align 8
  br label %16

16:                                               ; preds = %16, %.lr.ph
  %indvars.iv = phi i64 [ 1, %.lr.ph ], [ %indvars.iv.next, %16 ]
  %17 = add nsw i64 %indvars.iv, -1
  %18 = getelementptr double, ptr %0, i64 %17
  %19 = load double, ptr %18, align 8
  %20 = getelementptr double, ptr %13, i64 %17
  %21 = load double, ptr %20, align 8
  %22 = fmul fast double %15, %21
  %23 = fadd fast double %22, %19
  store double %23, ptr %18, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv, %6
  br i1 %exitcond.not, label %._crit_edge, label %16

._crit_edge:                                      ; preds = %16, %.preheader
  %indvars.iv.next14 = add nuw nsw i64 %indvars.iv13, 1
  %exitcond16.not = icmp eq i64 %indvars.iv.next14, %10
  br i1 %exitcond16.not, label %._crit_edge11, label %.preheader

._crit_edge11:                                    ; preds = %._crit_edge, %5
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @left_early(ptr captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2, i32 %3) local_unnamed_addr #0 {
  %5 = tail call i32 @llvm.smax.i32(i32 %3, i32 0)
  %6 = zext nneg i32 %5 to i64
  %7 = icmp sgt i32 %3, 0
  br i1 %7, label %.preheader26.lr.ph, label %._crit_edge35

.preheader26.lr.ph:                               ; preds = %4
  %8 = add nuw i32 %3, 1
  %wide.trip.count41 = zext i32 %8 to i64
  br label %.preheader.lr.ph

.preheader.lr.ph:                                 ; preds = %._crit_edge32, %.preheader26.lr.ph
  %indvars.iv38 = phi i64 [ 1, %.preheader26.lr.ph ], [ %indvars.iv.next39, %._crit_edge32 ]
  %9 = add nsw i64 %indvars.iv38, -1
  %10 = mul nuw nsw i64 %9, %6
  %11 = getelementptr i32, ptr %0, i64 %10
  %12 = getelementptr i32, ptr %2, i64 %10
  br label %.preheader

.preheader:                                       ; preds = %._crit_edge, %.preheader.lr.ph
  %indvars.iv = phi i64 [ 1, %.preheader.lr.ph ], [ %indvars.iv.next, %._crit_edge ]
  %13 = add nsw i64 %indvars.iv, -1
  %invariant.gep = getelementptr i32, ptr %1, i64 %13
  %14 = getelementptr i32, ptr %11, i64 %13
  br label %15

15:                                               ; preds = %21, %.preheader
  %.02227 = phi i32 [ 1, %.preheader ], [ %27, %21 ]
  %16 = sext i32 %.02227 to i64
  %17 = add nsw i64 %16, -1
  %18 = mul nsw i64 %17, %6
  %gep = getelementptr i32, ptr %invariant.gep, i64 %18
  %19 = load i32, ptr %gep, align 4
  %20 = icmp eq i32 %19, 1000
  br i1 %20, label %._crit_edge, label %21

21:                                               ; preds = %15
  %22 = load i32, ptr %14, align 4
  %23 = getelementptr i32, ptr %12, i64 %17
  %24 = load i32, ptr %23, align 4
  %25 = mul i32 %24, %19
  %26 = add i32 %25, %22
  store i32 %26, ptr %14, align 4
  %27 = add nuw i32 %.02227, 1
  %exitcond.not = icmp eq i32 %.02227, %3
  br i1 %exitcond.not, label %._crit_edge, label %15

._crit_edge:                                      ; preds = %21, %15
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond37.not = icmp eq i64 %indvars.iv.next, %wide.trip.count41
  br i1 %exitcond37.not, label %._crit_edge32, label %.preheader

._crit_edge32:                                    ; preds = %._crit_edge
  %indvars.iv.next39 = add nuw nsw i64 %indvars.iv38, 1
  %exitcond42.not = icmp eq i64 %indvars.iv.next39, %wide.trip.count41
  br i1 %exitcond42.not, label %._crit_edge35, label %.preheader.lr.ph

._crit_edge35:                                    ; preds = %._crit_edge32, %4
  ret void
}

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @conditional(ptr captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2, i32 %3) local_unnamed_addr #0 {
  %5 = sext i32 %3 to i64
  %6 = tail call i64 @llvm.smax.i64(i64 %5, i64 0)
  %7 = icmp sgt i32 %3, 0
  br i1 %7, label %.lr.ph17, label %._crit_edge18

.lr.ph17:                                         ; preds = %._crit_edge, %4
  %indvars.iv24 = phi i64 [ %indvars.iv.next25, %._crit_edge ], [ 1, %4 ]
  %8 = add nsw i64 %indvars.iv24, -1
  %9 = mul nuw nsw i64 %8, %6
  %10 = getelementptr i32, ptr %2, i64 %9
  %11 = getelementptr i32, ptr %0, i64 %9
  br label %12

12:                                               ; preds = %.loopexit, %.lr.ph17
  %indvars.iv20 = phi i64 [ 1, %.lr.ph17 ], [ %indvars.iv.next21, %.loopexit ]
  %13 = add nsw i64 %indvars.iv20, -1
  %14 = getelementptr i32, ptr %10, i64 %13
  %15 = load i32, ptr %14, align 4
  %.not = icmp eq i32 %15, 0
  br i1 %.not, label %.loopexit, label %.lr.ph

.lr.ph:                                           ; preds = %12
  %16 = mul nuw nsw i64 %13, %6
  %17 = getelementptr i32, ptr %1, i64 %16
  br label %18

18:                                               ; preds = %18, %.lr.ph
  %indvars.iv = phi i64 [ 1, %.lr.ph ], [ %indvars.iv.next, %18 ]
  %19 = add nsw i64 %indvars.iv, -1
  %20 = getelementptr i32, ptr %11, i64 %19
  %21 = load i32, ptr %20, align 4
  %22 = getelementptr i32, ptr %17, i64 %19
  %23 = load i32, ptr %22, align 4
  %24 = mul i32 %23, %15
  %25 = add i32 %24, %21
  store i32 %25, ptr %20, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv, %5
  br i1 %exitcond.not, label %.loopexit, label %18

.loopexit:                                        ; preds = %18, %12
  %indvars.iv.next21 = add nuw nsw i64 %indvars.iv20, 1
  %exitcond23.not = icmp eq i64 %indvars.iv20, %5
  br i1 %exitcond23.not, label %._crit_edge, label %12

._crit_edge:                                      ; preds = %.loopexit
  %indvars.iv.next25 = add nuw nsw i64 %indvars.iv24, 1
  %exitcond27.not = icmp eq i64 %indvars.iv24, %5
  br i1 %exitcond27.not, label %._crit_edge18, label %.lr.ph17

._crit_edge18:                                    ; preds = %._crit_edge, %4
  ret void
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smax.i64(i64, i64) #2

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smax.i32(i32, i32) #2

attributes #0 = { nofree norecurse nosync nounwind memory(argmem: readwrite) "approx-func-fp-math"="true" "no-infs-fp-math"="true" "no-nans-fp-math"="true" "no-signed-zeros-fp-math"="true" "target-cpu"="x86-64" "unsafe-fp-math"="true" }
attributes #1 = { nofree norecurse nosync nounwind memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none) "approx-func-fp-math"="true" "no-infs-fp-math"="true" "no-nans-fp-math"="true" "no-signed-zeros-fp-math"="true" "target-cpu"="x86-64" "unsafe-fp-math"="true" }
attributes #2 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }


