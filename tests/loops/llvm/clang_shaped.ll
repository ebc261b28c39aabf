source_filename = "a.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@C = dso_local global [64 x [64 x double]] zeroinitializer, align 16
@A = dso_local global [64 x [64 x double]] zeroinitializer, align 16
@B = dso_local global [64 x [64 x double]] zeroinitializer, align 16

define dso_local void @gemm_ijk(i32 noundef %0, ptr noundef %1, ptr noundef %2, ptr noundef %3) {
  %5 = icmp sgt i32 %0, 0
  br i1 %5, label %.preheader25, label %._crit_edge31

.preheader25:
  %.02430 = phi i32 [ %27, %._crit_edge29 ], [ 0, %4 ]
  br label %.preheader

.preheader:
  %.02328 = phi i32 [ 0, %.preheader25 ], [ %25, %._crit_edge ]
  br label %6

6:
  %.027 = phi i32 [ 0, %.preheader ], [ %19, %6 ]
  %.02226 = phi float [ 0.000000e+00, %.preheader ], [ %18, %6 ]
  %7 = mul nuw nsw i32 %.02430, %0
  %8 = add nuw nsw i32 %7, %.027
  %9 = zext nneg i32 %8 to i64
  %10 = getelementptr inbounds nuw float, ptr %1, i64 %9
  %11 = load float, ptr %10, align 4
  %12 = mul nuw nsw i32 %.027, %0
  %13 = add nuw nsw i32 %12, %.02328
  %14 = zext nneg i32 %13 to i64
  %15 = getelementptr inbounds nuw float, ptr %2, i64 %14
  %16 = load float, ptr %15, align 4
  %17 = fmul fast float %11, %16
  %18 = fadd fast float %.02226, %17
  %19 = add nuw nsw i32 %.027, 1
  %20 = icmp slt i32 %19, %0
  br i1 %20, label %6, label %._crit_edge

._crit_edge:
  %21 = mul nuw nsw i32 %.02430, %0
  %22 = add nuw nsw i32 %21, %.02328
  %23 = zext nneg i32 %22 to i64
  %24 = getelementptr inbounds nuw float, ptr %3, i64 %23
  store float %18, ptr %24, align 4
  %25 = add nuw nsw i32 %.02328, 1
  %26 = icmp slt i32 %25, %0
  br i1 %26, label %.preheader, label %._crit_edge29

._crit_edge29:
  %27 = add nuw nsw i32 %.02430, 1
  %28 = icmp slt i32 %27, %0
  br i1 %28, label %.preheader25, label %._crit_edge31

._crit_edge31:
  ret void
}

define dso_local void @gemm_mem(i32 noundef %0, i32 noundef %1, i32 noundef %2, i32 noundef %3, i32 noundef %4, i32 noundef %5, ptr noundef %6, ptr noundef %7, ptr noundef %8) {
  %10 = icmp sgt i32 %0, 0
  br i1 %10, label %.preheader22, label %._crit_edge27

.preheader22:
  %.02126 = phi i32 [ %34, %._crit_edge25 ], [ 0, %9 ]
  %11 = icmp sgt i32 %2, 0
  br i1 %11, label %.preheader, label %._crit_edge25

.preheader:
  %.02024 = phi i32 [ %32, %._crit_edge ], [ 0, %.preheader22 ]
  %12 = icmp sgt i32 %1, 0
  br i1 %12, label %.lr.ph, label %._crit_edge

.lr.ph:
  %.023 = phi i32 [ %30, %.lr.ph ], [ 0, %.preheader ]
  %13 = mul nsw i32 %.02126, %3
  %14 = add nsw i32 %13, %.02024
  %15 = sext i32 %14 to i64
  %16 = getelementptr inbounds float, ptr %6, i64 %15
  %17 = load float, ptr %16, align 4
  %18 = mul nsw i32 %.02024, %4
  %19 = add nsw i32 %18, %.023
  %20 = sext i32 %19 to i64
  %21 = getelementptr inbounds float, ptr %7, i64 %20
  %22 = load float, ptr %21, align 4
  %23 = fmul fast float %17, %22
  %24 = mul nsw i32 %.02126, %5
  %25 = add nsw i32 %24, %.023
  %26 = sext i32 %25 to i64
  %27 = getelementptr inbounds float, ptr %8, i64 %26
  %28 = load float, ptr %27, align 4
  %29 = fadd fast float %28, %23
  store float %29, ptr %27, align 4
  %30 = add nuw nsw i32 %.023, 1
  %31 = icmp slt i32 %30, %1
  br i1 %31, label %.lr.ph, label %._crit_edge

._crit_edge:
  %32 = add nuw nsw i32 %.02024, 1
  %33 = icmp slt i32 %32, %2
  br i1 %33, label %.preheader, label %._crit_edge25

._crit_edge25:
  %34 = add nuw nsw i32 %.02126, 1
  %35 = icmp slt i32 %34, %0
  br i1 %35, label %.preheader22, label %._crit_edge27

._crit_edge27:
  ret void
}

define dso_local void @gemm_2d(i32 noundef %0, ptr noundef %1, ptr noundef %2, ptr noundef %3) {
  %5 = zext i32 %0 to i64
  %6 = zext i32 %0 to i64
  %7 = zext i32 %0 to i64
  %8 = icmp sgt i32 %0, 0
  br i1 %8, label %.preheader, label %._crit_edge33

.preheader:
  %.02732 = phi i32 [ %39, %._crit_edge31 ], [ 0, %4 ]
  br label %.lr.ph

.lr.ph:
  %.02629 = phi i32 [ 0, %.preheader ], [ %37, %._crit_edge ]
  %9 = zext nneg i32 %.02732 to i64
  %10 = mul nuw nsw i64 %9, %7
  %11 = getelementptr inbounds nuw float, ptr %3, i64 %10
  %12 = zext nneg i32 %.02629 to i64
  %13 = getelementptr inbounds nuw float, ptr %11, i64 %12
  store float 0.000000e+00, ptr %13, align 4
  br label %14

14:
  %.028 = phi i32 [ 0, %.lr.ph ], [ %35, %14 ]
  %15 = zext nneg i32 %.02732 to i64
  %16 = mul nuw nsw i64 %15, %5
  %17 = getelementptr inbounds nuw float, ptr %1, i64 %16
  %18 = zext nneg i32 %.028 to i64
  %19 = getelementptr inbounds nuw float, ptr %17, i64 %18
  %20 = load float, ptr %19, align 4
  %21 = zext nneg i32 %.028 to i64
  %22 = mul nuw nsw i64 %21, %6
  %23 = getelementptr inbounds nuw float, ptr %2, i64 %22
  %24 = zext nneg i32 %.02629 to i64
  %25 = getelementptr inbounds nuw float, ptr %23, i64 %24
  %26 = load float, ptr %25, align 4
  %27 = fmul fast float %20, %26
  %28 = zext nneg i32 %.02732 to i64
  %29 = mul nuw nsw i64 %28, %7
  %30 = getelementptr inbounds nuw float, ptr %3, i64 %29
  %31 = zext nneg i32 %.02629 to i64
  %32 = getelementptr inbounds nuw float, ptr %30, i64 %31
  %33 = load float, ptr %32, align 4
  %34 = fadd fast float %33, %27
  store float %34, ptr %32, align 4
  %35 = add nuw nsw i32 %.028, 1
  %36 = icmp slt i32 %35, %0
  br i1 %36, label %14, label %._crit_edge

._crit_edge:
  %37 = add nuw nsw i32 %.02629, 1
  %38 = icmp slt i32 %37, %0
  br i1 %38, label %.lr.ph, label %._crit_edge31

._crit_edge31:
  %39 = add nuw nsw i32 %.02732, 1
  %40 = icmp slt i32 %39, %0
  br i1 %40, label %.preheader, label %._crit_edge33

._crit_edge33:
  ret void
}

define dso_local void @gemm_glob(double noundef nofpclass(nan inf) %0, double noundef nofpclass(nan inf) %1) {
  br label %.preheader

.preheader:
  %.01619 = phi i32 [ 0, %2 ], [ %35, %34 ]
  br label %3

3:
  %.01518 = phi i32 [ 0, %.preheader ], [ %32, %31 ]
  %4 = zext nneg i32 %.01619 to i64
  %5 = getelementptr inbounds nuw [64 x double], ptr @C, i64 %4
  %6 = zext nneg i32 %.01518 to i64
  %7 = getelementptr inbounds nuw double, ptr %5, i64 %6
  %8 = load double, ptr %7, align 8
  %9 = fmul fast double %8, %1
  store double %9, ptr %7, align 8
  br label %10

10:
  %.017 = phi i32 [ 0, %3 ], [ %29, %10 ]
  %11 = zext nneg i32 %.01619 to i64
  %12 = getelementptr inbounds nuw [64 x double], ptr @A, i64 %11
  %13 = zext nneg i32 %.017 to i64
  %14 = getelementptr inbounds nuw double, ptr %12, i64 %13
  %15 = load double, ptr %14, align 8
  %16 = fmul fast double %0, %15
  %17 = zext nneg i32 %.017 to i64
  %18 = getelementptr inbounds nuw [64 x double], ptr @B, i64 %17
  %19 = zext nneg i32 %.01518 to i64
  %20 = getelementptr inbounds nuw double, ptr %18, i64 %19
  %21 = load double, ptr %20, align 8
  %22 = fmul fast double %16, %21
  %23 = zext nneg i32 %.01619 to i64
  %24 = getelementptr inbounds nuw [64 x double], ptr @C, i64 %23
  %25 = zext nneg i32 %.01518 to i64
  %26 = getelementptr inbounds nuw double, ptr %24, i64 %25
  %27 = load double, ptr %26, align 8
  %28 = fadd fast double %27, %22
  store double %28, ptr %26, align 8
  %29 = add nuw nsw i32 %.017, 1
  %30 = icmp samesign ult i32 %.017, 63
  br i1 %30, label %10, label %31

31:
  %32 = add nuw nsw i32 %.01518, 1
  %33 = icmp samesign ult i32 %.01518, 63
  br i1 %33, label %3, label %34

34:
  %35 = add nuw nsw i32 %.01619, 1
  %36 = icmp samesign ult i32 %.01619, 63
  br i1 %36, label %.preheader, label %37

37:
  ret void
}

define dso_local void @gemm_u(i32 noundef %0, ptr noundef %1, ptr noundef %2, ptr noundef %3) {
  %.not = icmp eq i32 %0, 0
  br i1 %.not, label %._crit_edge, label %.preheader22

.preheader22:
  %.02125 = phi i32 [ %29, %28 ], [ 0, %4 ]
  br label %.preheader

.preheader:
  %.02024 = phi i32 [ 0, %.preheader22 ], [ %26, %25 ]
  br label %5

5:
  %.023 = phi i32 [ 0, %.preheader ], [ %23, %5 ]
  %6 = mul i32 %.02125, %0
  %7 = add i32 %6, %.023
  %8 = zext i32 %7 to i64
  %9 = getelementptr inbounds nuw float, ptr %1, i64 %8
  %10 = load float, ptr %9, align 4
  %11 = mul i32 %.023, %0
  %12 = add i32 %11, %.02024
  %13 = zext i32 %12 to i64
  %14 = getelementptr inbounds nuw float, ptr %2, i64 %13
  %15 = load float, ptr %14, align 4
  %16 = fmul fast float %10, %15
  %17 = mul i32 %.02125, %0
  %18 = add i32 %17, %.02024
  %19 = zext i32 %18 to i64
  %20 = getelementptr inbounds nuw float, ptr %3, i64 %19
  %21 = load float, ptr %20, align 4
  %22 = fadd fast float %21, %16
  store float %22, ptr %20, align 4
  %23 = add i32 %.023, 1
  %24 = icmp ult i32 %23, %0
  br i1 %24, label %5, label %25

25:
  %26 = add i32 %.02024, 1
  %27 = icmp ult i32 %26, %0
  br i1 %27, label %.preheader, label %28

28:
  %29 = add i32 %.02125, 1
  %30 = icmp ult i32 %29, %0
  br i1 %30, label %.preheader22, label %._crit_edge

._crit_edge:
  ret void
}

define dso_local void @gemm_blk(i32 noundef %0, ptr noundef %1, ptr noundef %2, ptr noundef %3) {
  %5 = icmp sgt i32 %0, 0
  br i1 %5, label %.preheader49, label %._crit_edge60

.preheader49:
  %.04559 = phi i32 [ %48, %._crit_edge58 ], [ 0, %4 ]
  br label %.preheader48

.preheader48:
  %.04457 = phi i32 [ 0, %.preheader49 ], [ %46, %._crit_edge56 ]
  br label %.preheader47

.preheader47:
  %.04355 = phi i32 [ 0, %.preheader48 ], [ %44, %._crit_edge54 ]
  %6 = add nuw nsw i32 %.04559, 32
  %7 = icmp slt i32 %6, %0
  %8 = add nuw nsw i32 %.04559, 32
  %9 = select i1 %7, i32 %8, i32 %0
  %10 = icmp slt i32 %.04559, %9
  br i1 %10, label %.preheader46, label %._crit_edge54

.preheader46:
  %.04253 = phi i32 [ %42, %._crit_edge52 ], [ %.04559, %.preheader47 ]
  %11 = add nuw nsw i32 %.04457, 32
  %12 = icmp slt i32 %11, %0
  %13 = add nuw nsw i32 %.04457, 32
  %14 = select i1 %12, i32 %13, i32 %0
  %15 = icmp slt i32 %.04457, %14
  br i1 %15, label %.preheader, label %._crit_edge52

.preheader:
  %.04151 = phi i32 [ %40, %._crit_edge ], [ %.04457, %.preheader46 ]
  %16 = add nuw nsw i32 %.04355, 32
  %17 = icmp slt i32 %16, %0
  %18 = add nuw nsw i32 %.04355, 32
  %19 = select i1 %17, i32 %18, i32 %0
  %20 = icmp slt i32 %.04355, %19
  br i1 %20, label %.lr.ph, label %._crit_edge

.lr.ph:
  %.050 = phi i32 [ %38, %.lr.ph ], [ %.04355, %.preheader ]
  %21 = mul nuw nsw i32 %.04253, %0
  %22 = add nuw nsw i32 %21, %.050
  %23 = zext nneg i32 %22 to i64
  %24 = getelementptr inbounds nuw float, ptr %1, i64 %23
  %25 = load float, ptr %24, align 4
  %26 = mul nuw nsw i32 %.050, %0
  %27 = add nuw nsw i32 %26, %.04151
  %28 = zext nneg i32 %27 to i64
  %29 = getelementptr inbounds nuw float, ptr %2, i64 %28
  %30 = load float, ptr %29, align 4
  %31 = fmul fast float %25, %30
  %32 = mul nuw nsw i32 %.04253, %0
  %33 = add nuw nsw i32 %32, %.04151
  %34 = zext nneg i32 %33 to i64
  %35 = getelementptr inbounds nuw float, ptr %3, i64 %34
  %36 = load float, ptr %35, align 4
  %37 = fadd fast float %36, %31
  store float %37, ptr %35, align 4
  %38 = add nuw nsw i32 %.050, 1
  %39 = icmp slt i32 %38, %19
  br i1 %39, label %.lr.ph, label %._crit_edge

._crit_edge:
  %40 = add nuw nsw i32 %.04151, 1
  %41 = icmp slt i32 %40, %14
  br i1 %41, label %.preheader, label %._crit_edge52

._crit_edge52:
  %42 = add nuw nsw i32 %.04253, 1
  %43 = icmp slt i32 %42, %9
  br i1 %43, label %.preheader46, label %._crit_edge54

._crit_edge54:
  %44 = add nuw nsw i32 %.04355, 32
  %45 = icmp slt i32 %44, %0
  br i1 %45, label %.preheader47, label %._crit_edge56

._crit_edge56:
  %46 = add nuw nsw i32 %.04457, 32
  %47 = icmp slt i32 %46, %0
  br i1 %47, label %.preheader48, label %._crit_edge58

._crit_edge58:
  %48 = add nuw nsw i32 %.04559, 32
  %49 = icmp slt i32 %48, %0
  br i1 %49, label %.preheader49, label %._crit_edge60

._crit_edge60:
  ret void
}

define dso_local void @gemm_i8(i64 noundef %0, ptr noundef %1, ptr noundef %2, ptr noundef %3) {
  %5 = icmp sgt i64 %0, 0
  br i1 %5, label %.preheader22, label %._crit_edge27

.preheader22:
  %.02126 = phi i64 [ %27, %._crit_edge25 ], [ 0, %4 ]
  br label %.preheader

.preheader:
  %.02024 = phi i64 [ 0, %.preheader22 ], [ %25, %._crit_edge ]
  br label %6

6:
  %.023 = phi i64 [ 0, %.preheader ], [ %23, %6 ]
  %7 = mul nuw nsw i64 %.02126, %0
  %8 = getelementptr i8, ptr %1, i64 %7
  %9 = getelementptr i8, ptr %8, i64 %.023
  %10 = load i8, ptr %9, align 1
  %11 = sext i8 %10 to i32
  %12 = mul nuw nsw i64 %.023, %0
  %13 = getelementptr i8, ptr %2, i64 %12
  %14 = getelementptr i8, ptr %13, i64 %.02024
  %15 = load i8, ptr %14, align 1
  %16 = sext i8 %15 to i32
  %17 = mul nsw i32 %11, %16
  %18 = mul nuw nsw i64 %.02126, %0
  %19 = getelementptr i32, ptr %3, i64 %18
  %20 = getelementptr i32, ptr %19, i64 %.02024
  %21 = load i32, ptr %20, align 4
  %22 = add nsw i32 %21, %17
  store i32 %22, ptr %20, align 4
  %23 = add nuw nsw i64 %.023, 1
  %24 = icmp slt i64 %23, %0
  br i1 %24, label %6, label %._crit_edge

._crit_edge:
  %25 = add nuw nsw i64 %.02024, 1
  %26 = icmp slt i64 %25, %0
  br i1 %26, label %.preheader, label %._crit_edge25

._crit_edge25:
  %27 = add nuw nsw i64 %.02126, 1
  %28 = icmp slt i64 %27, %0
  br i1 %28, label %.preheader22, label %._crit_edge27

._crit_edge27:
  ret void
}

define dso_local void @gemm_ptr(i32 noundef %0, ptr noundef %1, ptr noundef %2, ptr noundef %3) {
  %5 = icmp sgt i32 %0, 0
  br i1 %5, label %.preheader, label %._crit_edge37

.preheader:
  %.02436 = phi i32 [ %24, %._crit_edge33 ], [ 0, %4 ]
  %.02535 = phi ptr [ %21, %._crit_edge33 ], [ %3, %4 ]
  br label %.lr.ph

.lr.ph:
  %.02331 = phi i32 [ 0, %.preheader ], [ %22, %._crit_edge ]
  %.130 = phi ptr [ %.02535, %.preheader ], [ %21, %._crit_edge ]
  %6 = zext nneg i32 %.02331 to i64
  %7 = getelementptr inbounds nuw float, ptr %2, i64 %6
  %8 = mul nuw nsw i32 %.02436, %0
  %9 = zext nneg i32 %8 to i64
  %10 = getelementptr inbounds nuw float, ptr %1, i64 %9
  br label %11

11:
  %.029 = phi i32 [ 0, %.lr.ph ], [ %19, %11 ]
  %.02028 = phi float [ 0.000000e+00, %.lr.ph ], [ %17, %11 ]
  %.02127 = phi ptr [ %7, %.lr.ph ], [ %13, %11 ]
  %.02226 = phi ptr [ %10, %.lr.ph ], [ %18, %11 ]
  %12 = zext nneg i32 %0 to i64
  %13 = getelementptr inbounds nuw float, ptr %.02127, i64 %12
  %14 = load float, ptr %.02226, align 4
  %15 = load float, ptr %.02127, align 4
  %16 = fmul fast float %14, %15
  %17 = fadd fast float %.02028, %16
  %18 = getelementptr inbounds nuw i8, ptr %.02226, i64 4
  %19 = add nuw nsw i32 %.029, 1
  %20 = icmp slt i32 %19, %0
  br i1 %20, label %11, label %._crit_edge

._crit_edge:
  store float %17, ptr %.130, align 4
  %21 = getelementptr inbounds nuw i8, ptr %.130, i64 4
  %22 = add nuw nsw i32 %.02331, 1
  %23 = icmp slt i32 %22, %0
  br i1 %23, label %.lr.ph, label %._crit_edge33

._crit_edge33:
  %24 = add nuw nsw i32 %.02436, 1
  %25 = icmp slt i32 %24, %0
  br i1 %25, label %.preheader, label %._crit_edge37

._crit_edge37:
  ret void
}

define dso_local void @syrk(i32 noundef %0, i32 noundef %1, ptr noundef %2, ptr noundef %3, double noundef nofpclass(nan inf) %4) {
  %6 = icmp sgt i32 %0, 0
  br i1 %6, label %.preheader23, label %._crit_edge27

.preheader23:
  %.02226 = phi i32 [ %30, %29 ], [ 0, %5 ]
  br label %.preheader

.preheader:
  %.02125 = phi i32 [ 0, %.preheader23 ], [ %28, %._crit_edge ]
  %7 = icmp sgt i32 %1, 0
  br i1 %7, label %.lr.ph, label %._crit_edge

.lr.ph:
  %.024 = phi i32 [ %26, %.lr.ph ], [ 0, %.preheader ]
  %8 = mul nuw nsw i32 %.02226, %1
  %9 = add nuw nsw i32 %8, %.024
  %10 = zext nneg i32 %9 to i64
  %11 = getelementptr inbounds nuw double, ptr %2, i64 %10
  %12 = load double, ptr %11, align 8
  %13 = fmul fast double %4, %12
  %14 = mul nuw nsw i32 %.02125, %1
  %15 = add nuw nsw i32 %14, %.024
  %16 = zext nneg i32 %15 to i64
  %17 = getelementptr inbounds nuw double, ptr %2, i64 %16
  %18 = load double, ptr %17, align 8
  %19 = fmul fast double %13, %18
  %20 = mul nuw nsw i32 %.02226, %0
  %21 = add nuw nsw i32 %20, %.02125
  %22 = zext nneg i32 %21 to i64
  %23 = getelementptr inbounds nuw double, ptr %3, i64 %22
  %24 = load double, ptr %23, align 8
  %25 = fadd fast double %24, %19
  store double %25, ptr %23, align 8
  %26 = add nuw nsw i32 %.024, 1
  %27 = icmp slt i32 %26, %1
  br i1 %27, label %.lr.ph, label %._crit_edge

._crit_edge:
  %28 = add nuw nsw i32 %.02125, 1
  %.not.not = icmp samesign ult i32 %.02125, %.02226
  br i1 %.not.not, label %.preheader, label %29

29:
  %30 = add nuw nsw i32 %.02226, 1
  %31 = icmp slt i32 %30, %0
  br i1 %31, label %.preheader23, label %._crit_edge27

._crit_edge27:
  ret void
}

define dso_local void @rev(i32 noundef %0, ptr noundef %1, ptr noundef %2, ptr noundef %3) {
  %5 = icmp sgt i32 %0, 0
  br i1 %5, label %.lr.ph26, label %._crit_edge27

.loopexit:
  %6 = icmp sgt i32 %.02024.in, 1
  br i1 %6, label %.lr.ph26, label %._crit_edge27

.lr.ph26:
  %.02024.in = phi i32 [ %.02024, %.loopexit ], [ %0, %4 ]
  %.02024 = add nsw i32 %.02024.in, -1
  %7 = add nsw i32 %0, -1
  br label %.preheader

.preheader:
  %.01922 = phi i32 [ %7, %.lr.ph26 ], [ %28, %._crit_edge ]
  br label %8

8:
  %.021 = phi i32 [ %0, %.preheader ], [ %9, %8 ]
  %9 = add nsw i32 %.021, -1
  %10 = mul nsw i32 %.02024, %0
  %11 = add nsw i32 %10, %9
  %12 = sext i32 %11 to i64
  %13 = getelementptr inbounds float, ptr %1, i64 %12
  %14 = load float, ptr %13, align 4
  %15 = mul nsw i32 %9, %0
  %16 = add nsw i32 %15, %.01922
  %17 = sext i32 %16 to i64
  %18 = getelementptr inbounds float, ptr %2, i64 %17
  %19 = load float, ptr %18, align 4
  %20 = fmul fast float %14, %19
  %21 = mul nsw i32 %.02024, %0
  %22 = add nsw i32 %21, %.01922
  %23 = sext i32 %22 to i64
  %24 = getelementptr inbounds float, ptr %3, i64 %23
  %25 = load float, ptr %24, align 4
  %26 = fadd fast float %25, %20
  store float %26, ptr %24, align 4
  %27 = icmp sgt i32 %.021, 1
  br i1 %27, label %8, label %._crit_edge

._crit_edge:
  %28 = add nsw i32 %.01922, -2
  %29 = icmp sgt i32 %.01922, 1
  br i1 %29, label %.preheader, label %.loopexit

._crit_edge27:
  ret void
}

declare void @llvm.lifetime.start.i64(i64)

declare void @llvm.lifetime.start.p0(ptr captures(none))

declare void @llvm.lifetime.end.i64(i64)

declare void @llvm.lifetime.end.p0(ptr captures(none))
