source_filename = "a.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@C = dso_local local_unnamed_addr global [64 x [64 x double]] zeroinitializer, align 16
@A = dso_local local_unnamed_addr global [64 x [64 x double]] zeroinitializer, align 16
@B = dso_local local_unnamed_addr global [64 x [64 x double]] zeroinitializer, align 16

define dso_local void @gemm_ijk(i32 noundef %0, ptr noundef readonly captures(none) %1, ptr noundef readonly captures(none) %2, ptr noundef writeonly captures(none) %3) local_unnamed_addr {
  %5 = icmp sgt i32 %0, 0
  br i1 %5, label %.preheader26.lr.ph, label %._crit_edge32

.preheader26.lr.ph:
  %6 = zext nneg i32 %0 to i64
  br label %.preheader.lr.ph

.preheader.lr.ph:
  %indvars.iv39 = phi i64 [ 0, %.preheader26.lr.ph ], [ %indvars.iv.next40, %._crit_edge30 ]
  %7 = mul nuw nsw i64 %indvars.iv39, %6
  %invariant.gep = getelementptr inbounds nuw float, ptr %1, i64 %7
  %invariant.gep47 = getelementptr inbounds nuw float, ptr %3, i64 %7
  br label %.preheader

._crit_edge32:
  ret void

.preheader:
  %indvars.iv34 = phi i64 [ 0, %.preheader.lr.ph ], [ %indvars.iv.next35, %._crit_edge ]
  %invariant.gep45 = getelementptr inbounds nuw float, ptr %2, i64 %indvars.iv34
  br label %8

._crit_edge30:
  %indvars.iv.next40 = add nuw nsw i64 %indvars.iv39, 1
  %exitcond43.not = icmp eq i64 %indvars.iv.next40, %6
  br i1 %exitcond43.not, label %._crit_edge32, label %.preheader.lr.ph

._crit_edge:
  %gep48 = getelementptr inbounds nuw float, ptr %invariant.gep47, i64 %indvars.iv34
  store float %13, ptr %gep48, align 4
  %indvars.iv.next35 = add nuw nsw i64 %indvars.iv34, 1
  %exitcond38.not = icmp eq i64 %indvars.iv.next35, %6
  br i1 %exitcond38.not, label %._crit_edge30, label %.preheader

8:
  %indvars.iv = phi i64 [ 0, %.preheader ], [ %indvars.iv.next, %8 ]
  %.02227 = phi float [ 0.000000e+00, %.preheader ], [ %13, %8 ]
  %gep = getelementptr inbounds nuw float, ptr %invariant.gep, i64 %indvars.iv
  %9 = load float, ptr %gep, align 4
  %10 = mul nuw nsw i64 %indvars.iv, %6
  %gep46 = getelementptr inbounds nuw float, ptr %invariant.gep45, i64 %10
  %11 = load float, ptr %gep46, align 4
  %12 = fmul fast float %11, %9
  %13 = fadd fast float %12, %.02227
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %6
  br i1 %exitcond.not, label %._crit_edge, label %8
}

define dso_local void @gemm_mem(i32 noundef %0, i32 noundef %1, i32 noundef %2, i32 noundef %3, i32 noundef %4, i32 noundef %5, ptr noundef readonly captures(none) %6, ptr noundef readonly captures(none) %7, ptr noundef captures(none) %8) local_unnamed_addr {
  %10 = icmp sgt i32 %0, 0
  br i1 %10, label %.preheader22.lr.ph, label %._crit_edge27

.preheader22.lr.ph:
  %11 = icmp sgt i32 %2, 0
  %12 = icmp sgt i32 %1, 0
  %13 = sext i32 %4 to i64
  %14 = sext i32 %3 to i64
  %15 = sext i32 %5 to i64
  %wide.trip.count37 = zext nneg i32 %0 to i64
  %wide.trip.count32 = zext nneg i32 %2 to i64
  %wide.trip.count = zext nneg i32 %1 to i64
  br label %.preheader22

.preheader22:
  %indvars.iv34 = phi i64 [ 0, %.preheader22.lr.ph ], [ %indvars.iv.next35, %._crit_edge25 ]
  br i1 %11, label %.preheader.lr.ph, label %._crit_edge25

.preheader.lr.ph:
  %16 = mul nsw i64 %indvars.iv34, %14
  %17 = mul nsw i64 %indvars.iv34, %15
  %invariant.gep43 = getelementptr float, ptr %6, i64 %16
  %invariant.gep41 = getelementptr float, ptr %8, i64 %17
  br label %.preheader

._crit_edge27:
  ret void

.preheader:
  %indvars.iv29 = phi i64 [ 0, %.preheader.lr.ph ], [ %indvars.iv.next30, %._crit_edge ]
  br i1 %12, label %.lr.ph, label %._crit_edge

.lr.ph:
  %gep44 = getelementptr float, ptr %invariant.gep43, i64 %indvars.iv29
  %18 = mul nsw i64 %indvars.iv29, %13
  %invariant.gep = getelementptr float, ptr %7, i64 %18
  br label %19

._crit_edge25:
  %indvars.iv.next35 = add nuw nsw i64 %indvars.iv34, 1
  %exitcond38.not = icmp eq i64 %indvars.iv.next35, %wide.trip.count37
  br i1 %exitcond38.not, label %._crit_edge27, label %.preheader22

._crit_edge:
  %indvars.iv.next30 = add nuw nsw i64 %indvars.iv29, 1
  %exitcond33.not = icmp eq i64 %indvars.iv.next30, %wide.trip.count32
  br i1 %exitcond33.not, label %._crit_edge25, label %.preheader

19:
  %indvars.iv = phi i64 [ 0, %.lr.ph ], [ %indvars.iv.next, %19 ]
  %20 = load float, ptr %gep44, align 4
  %gep = getelementptr float, ptr %invariant.gep, i64 %indvars.iv
  %21 = load float, ptr %gep, align 4
  %22 = fmul fast float %21, %20
  %gep42 = getelementptr float, ptr %invariant.gep41, i64 %indvars.iv
  %23 = load float, ptr %gep42, align 4
  %24 = fadd fast float %23, %22
  store float %24, ptr %gep42, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %._crit_edge, label %19
}

define dso_local void @gemm_2d(i32 noundef %0, ptr noundef readonly captures(none) %1, ptr noundef readonly captures(none) %2, ptr noundef writeonly captures(none) %3) local_unnamed_addr {
  %5 = zext i32 %0 to i64
  %6 = icmp sgt i32 %0, 0
  br i1 %6, label %.lr.ph31, label %._crit_edge34

.lr.ph31:
  %indvars.iv41 = phi i64 [ %indvars.iv.next42, %._crit_edge32 ], [ 0, %4 ]
  %7 = mul nuw nsw i64 %indvars.iv41, %5
  %8 = getelementptr inbounds nuw float, ptr %3, i64 %7
  %9 = getelementptr inbounds nuw float, ptr %1, i64 %7
  br label %.lr.ph

._crit_edge34:
  ret void

._crit_edge32:
  %indvars.iv.next42 = add nuw nsw i64 %indvars.iv41, 1
  %exitcond45.not = icmp eq i64 %indvars.iv.next42, %5
  br i1 %exitcond45.not, label %._crit_edge34, label %.lr.ph31

.lr.ph:
  %indvars.iv36 = phi i64 [ 0, %.lr.ph31 ], [ %indvars.iv.next37, %._crit_edge ]
  %10 = getelementptr inbounds nuw float, ptr %8, i64 %indvars.iv36
  store float 0.000000e+00, ptr %10, align 4
  %invariant.gep = getelementptr inbounds nuw float, ptr %2, i64 %indvars.iv36
  br label %11

._crit_edge:
  %indvars.iv.next37 = add nuw nsw i64 %indvars.iv36, 1
  %exitcond40.not = icmp eq i64 %indvars.iv.next37, %5
  br i1 %exitcond40.not, label %._crit_edge32, label %.lr.ph

11:
  %indvars.iv = phi i64 [ 0, %.lr.ph ], [ %indvars.iv.next, %11 ]
  %12 = phi float [ 0.000000e+00, %.lr.ph ], [ %18, %11 ]
  %13 = getelementptr inbounds nuw float, ptr %9, i64 %indvars.iv
  %14 = load float, ptr %13, align 4
  %15 = mul nuw nsw i64 %indvars.iv, %5
  %gep = getelementptr inbounds nuw float, ptr %invariant.gep, i64 %15
  %16 = load float, ptr %gep, align 4
  %17 = fmul fast float %16, %14
  %18 = fadd fast float %12, %17
  store float %18, ptr %10, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %5
  br i1 %exitcond.not, label %._crit_edge, label %11
}

define dso_local void @gemm_glob(double noundef nofpclass(nan inf) %0, double noundef nofpclass(nan inf) %1) local_unnamed_addr {
  br label %.preheader

.preheader:
  %indvars.iv25 = phi i64 [ 0, %2 ], [ %indvars.iv.next26, %6 ]
  %3 = getelementptr inbounds nuw [64 x double], ptr @C, i64 %indvars.iv25
  %4 = getelementptr inbounds nuw [64 x double], ptr @A, i64 %indvars.iv25
  br label %7

5:
  ret void

6:
  %indvars.iv.next26 = add nuw nsw i64 %indvars.iv25, 1
  %exitcond28.not = icmp eq i64 %indvars.iv.next26, 64
  br i1 %exitcond28.not, label %5, label %.preheader

7:
  %indvars.iv21 = phi i64 [ 0, %.preheader ], [ %indvars.iv.next22, %11 ]
  %8 = getelementptr inbounds nuw double, ptr %3, i64 %indvars.iv21
  %9 = load double, ptr %8, align 8
  %10 = fmul fast double %9, %1
  %invariant.gep = getelementptr inbounds nuw double, ptr @B, i64 %indvars.iv21
  br label %12

11:
  store double %19, ptr %8, align 8
  %indvars.iv.next22 = add nuw nsw i64 %indvars.iv21, 1
  %exitcond24.not = icmp eq i64 %indvars.iv.next22, 64
  br i1 %exitcond24.not, label %6, label %7

12:
  %indvars.iv = phi i64 [ 0, %7 ], [ %indvars.iv.next, %12 ]
  %13 = phi double [ %10, %7 ], [ %19, %12 ]
  %14 = getelementptr inbounds nuw double, ptr %4, i64 %indvars.iv
  %15 = load double, ptr %14, align 8
  %16 = fmul fast double %15, %0
  %gep = getelementptr inbounds nuw [64 x double], ptr %invariant.gep, i64 %indvars.iv
  %17 = load double, ptr %gep, align 8
  %18 = fmul fast double %16, %17
  %19 = fadd fast double %13, %18
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, 64
  br i1 %exitcond.not, label %11, label %12
}

define dso_local void @gemm_u(i32 noundef %0, ptr noundef readonly captures(none) %1, ptr noundef readonly captures(none) %2, ptr noundef captures(none) %3) local_unnamed_addr {
  %.not = icmp eq i32 %0, 0
  br i1 %.not, label %._crit_edge, label %.preheader23.preheader

.preheader23.preheader:
  %wide.trip.count31 = zext i32 %0 to i64
  br label %.preheader23

.preheader23:
  %.02126 = phi i32 [ %11, %10 ], [ 0, %.preheader23.preheader ]
  %5 = mul i32 %.02126, %0
  br label %.preheader

._crit_edge:
  ret void

.preheader:
  %indvars.iv28 = phi i64 [ 0, %.preheader23 ], [ %indvars.iv.next29, %12 ]
  %6 = trunc nuw i64 %indvars.iv28 to i32
  %7 = add i32 %5, %6
  %8 = zext i32 %7 to i64
  %9 = getelementptr inbounds nuw float, ptr %3, i64 %8
  %.promoted = load float, ptr %9, align 4
  br label %13

10:
  %11 = add nuw i32 %.02126, 1
  %exitcond33.not = icmp eq i32 %11, %0
  br i1 %exitcond33.not, label %._crit_edge, label %.preheader23

12:
  %indvars.iv.next29 = add nuw nsw i64 %indvars.iv28, 1
  %exitcond32.not = icmp eq i64 %indvars.iv.next29, %wide.trip.count31
  br i1 %exitcond32.not, label %10, label %.preheader

13:
  %indvars.iv = phi i64 [ 0, %.preheader ], [ %indvars.iv.next, %13 ]
  %14 = phi float [ %.promoted, %.preheader ], [ %26, %13 ]
  %15 = trunc nuw i64 %indvars.iv to i32
  %16 = add i32 %5, %15
  %17 = zext i32 %16 to i64
  %18 = getelementptr inbounds nuw float, ptr %1, i64 %17
  %19 = load float, ptr %18, align 4
  %20 = mul i32 %0, %15
  %21 = add i32 %20, %6
  %22 = zext i32 %21 to i64
  %23 = getelementptr inbounds nuw float, ptr %2, i64 %22
  %24 = load float, ptr %23, align 4
  %25 = fmul fast float %24, %19
  %26 = fadd fast float %14, %25
  store float %26, ptr %9, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count31
  br i1 %exitcond.not, label %12, label %13
}

define dso_local void @gemm_blk(i32 noundef %0, ptr noundef readonly captures(none) %1, ptr noundef readonly captures(none) %2, ptr noundef captures(none) %3) local_unnamed_addr {
  %5 = icmp sgt i32 %0, 0
  br i1 %5, label %.preheader50.lr.ph, label %._crit_edge61

.preheader50.lr.ph:
  %6 = zext nneg i32 %0 to i64
  br label %.preheader49.lr.ph

.preheader49.lr.ph:
  %indvars.iv70 = phi i64 [ 0, %.preheader50.lr.ph ], [ %indvars.iv.next71, %._crit_edge59 ]
  %indvars79 = trunc i64 %indvars.iv70 to i32
  %7 = add nuw nsw i32 %indvars79, 32
  %8 = tail call i32 @llvm.smin.i32(i32 %7, i32 %0)
  %9 = sext i32 %8 to i64
  br label %.preheader49

._crit_edge61:
  ret void

.preheader49:
  %indvars.iv65 = phi i64 [ 0, %.preheader49.lr.ph ], [ %indvars.iv.next66, %._crit_edge57 ]
  %indvars77 = trunc i64 %indvars.iv65 to i32
  %10 = add nuw nsw i32 %indvars77, 32
  %11 = tail call i32 @llvm.smin.i32(i32 %10, i32 %0)
  %12 = sext i32 %11 to i64
  br label %.preheader47.lr.ph

._crit_edge59:
  %indvars.iv.next71 = add nuw nsw i64 %indvars.iv70, 32
  %indvars78 = trunc i64 %indvars.iv.next71 to i32
  %13 = icmp sgt i32 %0, %indvars78
  br i1 %13, label %.preheader49.lr.ph, label %._crit_edge61

.preheader47.lr.ph:
  %indvars.iv = phi i64 [ 0, %.preheader49 ], [ %indvars.iv.next, %._crit_edge55 ]
  %indvars75 = trunc i64 %indvars.iv to i32
  %14 = add nuw nsw i32 %indvars75, 32
  %15 = tail call i32 @llvm.smin.i32(i32 %14, i32 %0)
  %16 = sext i32 %15 to i64
  br label %.preheader.lr.ph

._crit_edge57:
  %indvars.iv.next66 = add nuw nsw i64 %indvars.iv65, 32
  %indvars76 = trunc i64 %indvars.iv.next66 to i32
  %17 = icmp sgt i32 %0, %indvars76
  br i1 %17, label %.preheader49, label %._crit_edge59

.preheader.lr.ph:
  %indvars.iv72 = phi i64 [ %indvars.iv70, %.preheader47.lr.ph ], [ %indvars.iv.next73, %._crit_edge53 ]
  %18 = mul nuw nsw i64 %indvars.iv72, %6
  %invariant.gep82 = getelementptr inbounds nuw float, ptr %3, i64 %18
  %invariant.gep = getelementptr inbounds nuw float, ptr %1, i64 %18
  br label %.lr.ph

._crit_edge55:
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 32
  %indvars = trunc i64 %indvars.iv.next to i32
  %19 = icmp sgt i32 %0, %indvars
  br i1 %19, label %.preheader47.lr.ph, label %._crit_edge57

.lr.ph:
  %indvars.iv67 = phi i64 [ %indvars.iv65, %.preheader.lr.ph ], [ %indvars.iv.next68, %._crit_edge ]
  %gep83 = getelementptr inbounds nuw float, ptr %invariant.gep82, i64 %indvars.iv67
  %.promoted = load float, ptr %gep83, align 4
  %invariant.gep80 = getelementptr inbounds nuw float, ptr %2, i64 %indvars.iv67
  br label %22

._crit_edge53:
  %indvars.iv.next73 = add nuw nsw i64 %indvars.iv72, 1
  %20 = icmp slt i64 %indvars.iv.next73, %9
  br i1 %20, label %.preheader.lr.ph, label %._crit_edge55

._crit_edge:
  %indvars.iv.next68 = add nuw nsw i64 %indvars.iv67, 1
  %21 = icmp slt i64 %indvars.iv.next68, %12
  br i1 %21, label %.lr.ph, label %._crit_edge53

22:
  %indvars.iv62 = phi i64 [ %indvars.iv, %.lr.ph ], [ %indvars.iv.next63, %22 ]
  %23 = phi float [ %.promoted, %.lr.ph ], [ %28, %22 ]
  %gep = getelementptr inbounds nuw float, ptr %invariant.gep, i64 %indvars.iv62
  %24 = load float, ptr %gep, align 4
  %25 = mul nuw nsw i64 %indvars.iv62, %6
  %gep81 = getelementptr inbounds nuw float, ptr %invariant.gep80, i64 %25
  %26 = load float, ptr %gep81, align 4
  %27 = fmul fast float %26, %24
  %28 = fadd fast float %23, %27
  store float %28, ptr %gep83, align 4
  %indvars.iv.next63 = add nuw nsw i64 %indvars.iv62, 1
  %29 = icmp slt i64 %indvars.iv.next63, %16
  br i1 %29, label %22, label %._crit_edge
}

define dso_local void @gemm_i8(i64 noundef %0, ptr noundef readonly captures(none) %1, ptr noundef readonly captures(none) %2, ptr noundef captures(none) %3) local_unnamed_addr {
  %5 = icmp sgt i64 %0, 0
  br i1 %5, label %.preheader.lr.ph, label %._crit_edge32

.preheader.lr.ph:
  %.02131 = phi i64 [ %8, %._crit_edge28 ], [ 0, %4 ]
  %6 = mul nuw nsw i64 %.02131, %0
  %7 = getelementptr i8, ptr %1, i64 %6
  %invariant.gep29 = getelementptr i32, ptr %3, i64 %6
  br label %.preheader

._crit_edge32:
  ret void

.preheader:
  %.02027 = phi i64 [ 0, %.preheader.lr.ph ], [ %9, %._crit_edge ]
  %invariant.gep = getelementptr i8, ptr %2, i64 %.02027
  %gep30 = getelementptr i32, ptr %invariant.gep29, i64 %.02027
  %gep25.promoted = load i32, ptr %gep30, align 4
  br label %10

._crit_edge28:
  %8 = add nuw nsw i64 %.02131, 1
  %exitcond34.not = icmp eq i64 %8, %0
  br i1 %exitcond34.not, label %._crit_edge32, label %.preheader.lr.ph

._crit_edge:
  %9 = add nuw nsw i64 %.02027, 1
  %exitcond33.not = icmp eq i64 %9, %0
  br i1 %exitcond33.not, label %._crit_edge28, label %.preheader

10:
  %11 = phi i32 [ %gep25.promoted, %.preheader ], [ %19, %10 ]
  %.026 = phi i64 [ 0, %.preheader ], [ %20, %10 ]
  %12 = getelementptr i8, ptr %7, i64 %.026
  %13 = load i8, ptr %12, align 1
  %14 = sext i8 %13 to i32
  %15 = mul nuw nsw i64 %.026, %0
  %gep = getelementptr i8, ptr %invariant.gep, i64 %15
  %16 = load i8, ptr %gep, align 1
  %17 = sext i8 %16 to i32
  %18 = mul nsw i32 %17, %14
  %19 = add nsw i32 %18, %11
  store i32 %19, ptr %gep30, align 4
  %20 = add nuw nsw i64 %.026, 1
  %exitcond.not = icmp eq i64 %20, %0
  br i1 %exitcond.not, label %._crit_edge, label %10
}

define dso_local void @gemm_ptr(i32 noundef %0, ptr noundef readonly captures(none) %1, ptr noundef readonly captures(none) %2, ptr noundef writeonly captures(none) %3) local_unnamed_addr {
  %5 = icmp sgt i32 %0, 0
  br i1 %5, label %.preheader.lr.ph, label %._crit_edge38

.preheader.lr.ph:
  %6 = zext nneg i32 %0 to i64
  br label %.lr.ph33

.lr.ph33:
  %indvars.iv42 = phi i64 [ 0, %.preheader.lr.ph ], [ %indvars.iv.next43, %._crit_edge34 ]
  %.02536 = phi ptr [ %3, %.preheader.lr.ph ], [ %10, %._crit_edge34 ]
  %7 = mul nuw nsw i64 %indvars.iv42, %6
  %8 = getelementptr inbounds nuw float, ptr %1, i64 %7
  br label %.lr.ph

._crit_edge38:
  ret void

._crit_edge34:
  %indvars.iv.next43 = add nuw nsw i64 %indvars.iv42, 1
  %exitcond46.not = icmp eq i64 %indvars.iv.next43, %6
  br i1 %exitcond46.not, label %._crit_edge38, label %.lr.ph33

.lr.ph:
  %indvars.iv = phi i64 [ 0, %.lr.ph33 ], [ %indvars.iv.next, %._crit_edge ]
  %.131 = phi ptr [ %.02536, %.lr.ph33 ], [ %10, %._crit_edge ]
  %9 = getelementptr inbounds nuw float, ptr %2, i64 %indvars.iv
  br label %11

._crit_edge:
  %10 = getelementptr inbounds nuw i8, ptr %.131, i64 4
  store float %16, ptr %.131, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond41.not = icmp eq i64 %indvars.iv.next, %6
  br i1 %exitcond41.not, label %._crit_edge34, label %.lr.ph

11:
  %.030 = phi i32 [ 0, %.lr.ph ], [ %18, %11 ]
  %.02029 = phi float [ 0.000000e+00, %.lr.ph ], [ %16, %11 ]
  %.02128 = phi ptr [ %9, %.lr.ph ], [ %17, %11 ]
  %.02227 = phi ptr [ %8, %.lr.ph ], [ %12, %11 ]
  %12 = getelementptr inbounds nuw i8, ptr %.02227, i64 4
  %13 = load float, ptr %.02227, align 4
  %14 = load float, ptr %.02128, align 4
  %15 = fmul fast float %14, %13
  %16 = fadd fast float %15, %.02029
  %17 = getelementptr inbounds nuw float, ptr %.02128, i64 %6
  %18 = add nuw nsw i32 %.030, 1
  %exitcond.not = icmp eq i32 %18, %0
  br i1 %exitcond.not, label %._crit_edge, label %11
}

define dso_local void @syrk(i32 noundef %0, i32 noundef %1, ptr noundef readonly captures(none) %2, ptr noundef captures(none) %3, double noundef nofpclass(nan inf) %4) local_unnamed_addr {
  %6 = icmp sgt i32 %0, 0
  br i1 %6, label %.preheader25.lr.ph, label %._crit_edge29

.preheader25.lr.ph:
  %7 = icmp sgt i32 %1, 0
  %8 = zext i32 %1 to i64
  %9 = zext nneg i32 %0 to i64
  br label %.preheader25

.preheader25:
  %indvars.iv40 = phi i64 [ 0, %.preheader25.lr.ph ], [ %indvars.iv.next41, %15 ]
  %indvars.iv38 = phi i64 [ 1, %.preheader25.lr.ph ], [ %indvars.iv.next39, %15 ]
  %10 = mul nuw nsw i64 %indvars.iv40, %9
  %11 = trunc i64 %indvars.iv40 to i32
  %12 = mul i32 %1, %11
  %13 = zext i32 %12 to i64
  %invariant.gep49 = getelementptr inbounds nuw double, ptr %3, i64 %10
  %invariant.gep = getelementptr inbounds nuw double, ptr %2, i64 %13
  br label %.preheader

._crit_edge29:
  ret void

.preheader:
  %indvars.iv31 = phi i64 [ 0, %.preheader25 ], [ %indvars.iv.next32, %._crit_edge ]
  br i1 %7, label %.lr.ph, label %._crit_edge

.lr.ph:
  %14 = mul nuw nsw i64 %indvars.iv31, %8
  %gep50 = getelementptr inbounds nuw double, ptr %invariant.gep49, i64 %indvars.iv31
  %.promoted = load double, ptr %gep50, align 8
  %invariant.gep47 = getelementptr inbounds nuw double, ptr %2, i64 %14
  br label %16

15:
  %indvars.iv.next41 = add nuw nsw i64 %indvars.iv40, 1
  %indvars.iv.next39 = add nuw nsw i64 %indvars.iv38, 1
  %exitcond46.not = icmp eq i64 %indvars.iv.next41, %9
  br i1 %exitcond46.not, label %._crit_edge29, label %.preheader25

._crit_edge:
  %indvars.iv.next32 = add nuw nsw i64 %indvars.iv31, 1
  %exitcond37.not = icmp eq i64 %indvars.iv.next32, %indvars.iv38
  br i1 %exitcond37.not, label %15, label %.preheader

16:
  %indvars.iv = phi i64 [ 0, %.lr.ph ], [ %indvars.iv.next, %16 ]
  %17 = phi double [ %.promoted, %.lr.ph ], [ %22, %16 ]
  %gep = getelementptr inbounds nuw double, ptr %invariant.gep, i64 %indvars.iv
  %18 = load double, ptr %gep, align 8
  %19 = fmul fast double %18, %4
  %gep48 = getelementptr inbounds nuw double, ptr %invariant.gep47, i64 %indvars.iv
  %20 = load double, ptr %gep48, align 8
  %21 = fmul fast double %19, %20
  %22 = fadd fast double %17, %21
  store double %22, ptr %gep50, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %8
  br i1 %exitcond.not, label %._crit_edge, label %16
}

define dso_local void @rev(i32 noundef %0, ptr noundef readonly captures(none) %1, ptr noundef readonly captures(none) %2, ptr noundef captures(none) %3) local_unnamed_addr {
  %5 = icmp sgt i32 %0, 0
  br i1 %5, label %.preheader21.lr.ph, label %._crit_edge26

.preheader21.lr.ph:
  %6 = add nsw i32 %0, -1
  %7 = zext nneg i32 %0 to i64
  %8 = zext nneg i32 %6 to i64
  br label %.preheader.lr.ph

.preheader.lr.ph:
  %indvars.iv31.in = phi i64 [ %7, %.preheader21.lr.ph ], [ %indvars.iv31, %._crit_edge24 ]
  %indvars.iv31 = add nsw i64 %indvars.iv31.in, -1
  %9 = mul nsw i64 %indvars.iv31, %7
  %invariant.gep36 = getelementptr float, ptr %3, i64 %9
  %invariant.gep = getelementptr float, ptr %1, i64 %9
  br label %.lr.ph

._crit_edge26:
  ret void

.lr.ph:
  %indvars.iv28 = phi i64 [ %8, %.preheader.lr.ph ], [ %indvars.iv.next29, %._crit_edge ]
  %gep37 = getelementptr float, ptr %invariant.gep36, i64 %indvars.iv28
  %.promoted = load float, ptr %gep37, align 4
  %invariant.gep34 = getelementptr float, ptr %2, i64 %indvars.iv28
  br label %12

._crit_edge24:
  %10 = icmp sgt i64 %indvars.iv31.in, 1
  br i1 %10, label %.preheader.lr.ph, label %._crit_edge26

._crit_edge:
  %indvars.iv.next29 = add nsw i64 %indvars.iv28, -2
  %11 = icmp sgt i64 %indvars.iv28, 1
  br i1 %11, label %.lr.ph, label %._crit_edge24

12:
  %indvars.iv = phi i64 [ %7, %.lr.ph ], [ %indvars.iv.next, %12 ]
  %13 = phi float [ %.promoted, %.lr.ph ], [ %18, %12 ]
  %indvars.iv.next = add nsw i64 %indvars.iv, -1
  %gep = getelementptr float, ptr %invariant.gep, i64 %indvars.iv.next
  %14 = load float, ptr %gep, align 4
  %15 = mul nsw i64 %indvars.iv.next, %7
  %gep35 = getelementptr float, ptr %invariant.gep34, i64 %15
  %16 = load float, ptr %gep35, align 4
  %17 = fmul fast float %16, %14
  %18 = fadd fast float %13, %17
  store float %18, ptr %gep37, align 4
  %19 = icmp sgt i64 %indvars.iv, 1
  br i1 %19, label %12, label %._crit_edge
}

declare i32 @llvm.smin.i32(i32, i32)
