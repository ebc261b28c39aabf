target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define void @_QMmmPassumed(ptr readonly captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2) local_unnamed_addr {
  %4 = getelementptr i8, ptr %0, i64 40
  %5 = getelementptr i8, ptr %0, i64 64
  %6 = getelementptr i8, ptr %2, i64 40
  %7 = getelementptr i8, ptr %2, i64 56
  %8 = load i64, ptr %7, align 8
  %9 = getelementptr i8, ptr %2, i64 64
  %sext = shl i64 %8, 32
  %10 = ashr exact i64 %sext, 32
  %11 = icmp sgt i64 %10, 0
  br i1 %11, label %.lr.ph36, label %._crit_edge37

.lr.ph36:
  %12 = getelementptr i8, ptr %2, i64 32
  %13 = load i64, ptr %12, align 8
  %14 = getelementptr i8, ptr %0, i64 56
  %15 = load i64, ptr %14, align 8
  %sext30 = shl i64 %15, 32
  %16 = ashr exact i64 %sext30, 32
  %17 = icmp sgt i64 %16, 0
  %sext31 = shl i64 %13, 32
  %18 = ashr exact i64 %sext31, 32
  %19 = icmp sgt i64 %18, 0
  %20 = getelementptr i8, ptr %1, i64 40
  %21 = getelementptr i8, ptr %1, i64 64
  br label %22

22:
  %indvars.iv43 = phi i64 [ 1, %.lr.ph36 ], [ %indvars.iv.next44, %._crit_edge34 ]
  br i1 %17, label %.lr.ph33, label %._crit_edge34

.lr.ph33:
  %23 = add nsw i64 %indvars.iv43, -1
  br label %24

24:
  %indvars.iv39 = phi i64 [ 1, %.lr.ph33 ], [ %indvars.iv.next40, %._crit_edge ]
  br i1 %19, label %.lr.ph, label %._crit_edge

.lr.ph:
  %25 = load i64, ptr %6, align 8
  %26 = load i64, ptr %9, align 8
  %27 = mul nsw i64 %26, %23
  %28 = load ptr, ptr %2, align 8
  %29 = getelementptr i8, ptr %28, i64 %27
  %30 = load i64, ptr %4, align 8
  %31 = add nsw i64 %indvars.iv39, -1
  %32 = load i64, ptr %5, align 8
  %33 = mul nsw i64 %32, %31
  %34 = load ptr, ptr %0, align 8
  %35 = getelementptr i8, ptr %34, i64 %33
  %36 = load i64, ptr %20, align 8
  %37 = mul nsw i64 %36, %31
  %38 = load i64, ptr %21, align 8
  %39 = mul nsw i64 %38, %23
  %40 = load ptr, ptr %1, align 8
  %41 = getelementptr i8, ptr %40, i64 %39
  %42 = getelementptr i8, ptr %41, i64 %37
  %43 = load float, ptr %42, align 4
  br label %44

44:
  %indvars.iv = phi i64 [ 1, %.lr.ph ], [ %indvars.iv.next, %44 ]
  %45 = add nsw i64 %indvars.iv, -1
  %46 = mul nsw i64 %45, %25
  %47 = getelementptr i8, ptr %29, i64 %46
  %48 = load float, ptr %47, align 4
  %49 = mul nsw i64 %45, %30
  %50 = getelementptr i8, ptr %35, i64 %49
  %51 = load float, ptr %50, align 4
  %52 = fmul fast float %51, %43
  %53 = fadd fast float %52, %48
  store float %53, ptr %47, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv, %18
  br i1 %exitcond.not, label %._crit_edge.loopexit, label %44

._crit_edge.loopexit:
  br label %._crit_edge

._crit_edge:
  %indvars.iv.next40 = add nuw nsw i64 %indvars.iv39, 1
  %exitcond42.not = icmp eq i64 %indvars.iv39, %16
  br i1 %exitcond42.not, label %._crit_edge34.loopexit, label %24

._crit_edge34.loopexit:
  br label %._crit_edge34

._crit_edge34:
  %indvars.iv.next44 = add nuw nsw i64 %indvars.iv43, 1
  %exitcond46.not = icmp eq i64 %indvars.iv43, %10
  br i1 %exitcond46.not, label %._crit_edge37.loopexit, label %22

._crit_edge37.loopexit:
  br label %._crit_edge37

._crit_edge37:
  ret void
}

define void @_QMmmPlda(ptr readonly captures(none) %0, ptr readonly captures(none) %1, ptr readonly captures(none) %2, ptr readonly captures(none) %3, ptr readonly captures(none) %4, ptr readonly captures(none) %5, ptr readonly captures(none) %6, ptr readonly captures(none) %7, ptr readonly captures(none) %8, ptr captures(none) %9, ptr readonly captures(none) %10) local_unnamed_addr {
  %12 = load i32, ptr %5, align 4
  %13 = tail call i32 @llvm.smax.i32(i32 %12, i32 0)
  %14 = zext nneg i32 %13 to i64
  %15 = load i32, ptr %7, align 4
  %16 = tail call i32 @llvm.smax.i32(i32 %15, i32 0)
  %17 = zext nneg i32 %16 to i64
  %18 = load i32, ptr %10, align 4
  %19 = tail call i32 @llvm.smax.i32(i32 %18, i32 0)
  %20 = zext nneg i32 %19 to i64
  %21 = load i32, ptr %1, align 4
  %invariant.gep27 = getelementptr i8, ptr %9, i64 -8
  %22 = icmp sgt i32 %21, 0
  br i1 %22, label %.lr.ph31, label %._crit_edge32

.lr.ph31:
  %23 = zext nneg i32 %21 to i64
  %24 = load double, ptr %8, align 8
  %25 = fcmp fast oeq double %24, 0.000000e+00
  %26 = fcmp fast une double %24, 1.000000e+00
  %27 = load i32, ptr %2, align 4
  %28 = sext i32 %27 to i64
  %29 = icmp sgt i32 %27, 0
  %30 = shl nuw nsw i64 %20, 3
  br label %31

31:
  %indvars.iv46 = phi i64 [ 1, %.lr.ph31 ], [ %indvars.iv.next47, %._crit_edge26 ]
  %indvar = phi i64 [ 0, %.lr.ph31 ], [ %indvar.next, %._crit_edge26 ]
  %32 = mul i64 %30, %indvar
  %scevgep = getelementptr i8, ptr %9, i64 %32
  br i1 %25, label %33, label %38

33:
  %34 = load i32, ptr %0, align 4
  %35 = icmp sgt i32 %34, 0
  br i1 %35, label %.lr.ph20, label %.loopexit

.lr.ph20:
  %36 = zext nneg i32 %34 to i64
  %37 = shl nuw nsw i64 %36, 3
  tail call void @llvm.memset.p0.i64(ptr align 8 %scevgep, i8 0, i64 %37, i1 false)
  br label %.loopexit

38:
  br i1 %26, label %39, label %.loopexit

39:
  %40 = load i32, ptr %0, align 4
  %41 = icmp sgt i32 %40, 0
  br i1 %41, label %.lr.ph, label %.loopexit

.lr.ph:
  %42 = add nsw i64 %indvars.iv46, -1
  %43 = mul nuw nsw i64 %42, %20
  %gep28 = getelementptr double, ptr %invariant.gep27, i64 %43
  %narrow = add nuw i32 %40, 1
  %44 = zext i32 %narrow to i64
  br label %45

45:
  %indvars.iv = phi i64 [ 1, %.lr.ph ], [ %indvars.iv.next, %45 ]
  %gep = getelementptr double, ptr %gep28, i64 %indvars.iv
  %46 = load double, ptr %gep, align 8
  %47 = fmul fast double %46, %24
  store double %47, ptr %gep, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %44
  br i1 %exitcond.not, label %.loopexit.loopexit, label %45

.loopexit.loopexit:
  br label %.loopexit

.loopexit:
  br i1 %29, label %.lr.ph25, label %._crit_edge26

.lr.ph25:
  %48 = load double, ptr %3, align 8
  %49 = add nsw i64 %indvars.iv46, -1
  %50 = mul nuw nsw i64 %49, %17
  %51 = getelementptr double, ptr %6, i64 %50
  %52 = load i32, ptr %0, align 4
  %53 = sext i32 %52 to i64
  %54 = icmp sgt i32 %52, 0
  %55 = mul nuw nsw i64 %49, %20
  %56 = getelementptr double, ptr %9, i64 %55
  br label %57

57:
  %indvars.iv42 = phi i64 [ 1, %.lr.ph25 ], [ %indvars.iv.next43, %._crit_edge ]
  %58 = add nsw i64 %indvars.iv42, -1
  %59 = getelementptr double, ptr %51, i64 %58
  %60 = load double, ptr %59, align 8
  %61 = fmul fast double %60, %48
  br i1 %54, label %.lr.ph23, label %._crit_edge

.lr.ph23:
  %62 = mul nuw nsw i64 %58, %14
  %63 = getelementptr double, ptr %4, i64 %62
  br label %64

64:
  %indvars.iv38 = phi i64 [ 1, %.lr.ph23 ], [ %indvars.iv.next39, %64 ]
  %65 = add nsw i64 %indvars.iv38, -1
  %66 = getelementptr double, ptr %56, i64 %65
  %67 = load double, ptr %66, align 8
  %68 = getelementptr double, ptr %63, i64 %65
  %69 = load double, ptr %68, align 8
  %70 = fmul fast double %61, %69
  %71 = fadd fast double %70, %67
  store double %71, ptr %66, align 8
  %indvars.iv.next39 = add nuw nsw i64 %indvars.iv38, 1
  %exitcond41.not = icmp eq i64 %indvars.iv38, %53
  br i1 %exitcond41.not, label %._crit_edge.loopexit, label %64

._crit_edge.loopexit:
  br label %._crit_edge

._crit_edge:
  %indvars.iv.next43 = add nuw nsw i64 %indvars.iv42, 1
  %exitcond45.not = icmp eq i64 %indvars.iv42, %28
  br i1 %exitcond45.not, label %._crit_edge26.loopexit, label %57

._crit_edge26.loopexit:
  br label %._crit_edge26

._crit_edge26:
  %indvars.iv.next47 = add nuw nsw i64 %indvars.iv46, 1
  %indvar.next = add nuw nsw i64 %indvar, 1
  %exitcond49.not = icmp eq i64 %indvar.next, %23
  br i1 %exitcond49.not, label %._crit_edge32.loopexit, label %31

._crit_edge32.loopexit:
  br label %._crit_edge32

._crit_edge32:
  ret void
}

declare i32 @llvm.smax.i32(i32, i32)
declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg)
