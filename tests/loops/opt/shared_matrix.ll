define dso_local void @atax(i64 noundef %0, i64 noundef %1, ptr noundef %2, ptr noundef %3, ptr noundef %4, ptr noundef %5) {
  br label %7

7:
  %.027 = phi i64 [ 0, %6 ], [ %40, %39 ]
  %8 = icmp slt i64 %.027, %0
  br i1 %8, label %9, label %41

9:
  %10 = getelementptr inbounds i32, ptr %4, i64 %.027
  store i32 0, ptr %10, align 4
  br label %11

11:
  %.026 = phi i64 [ 0, %9 ], [ %24, %13 ]
  %12 = icmp slt i64 %.026, %1
  br i1 %12, label %13, label %25

13:
  %14 = mul nsw i64 %.027, %1
  %15 = getelementptr i32, ptr %2, i64 %14
  %16 = getelementptr i32, ptr %15, i64 %.026
  %17 = load i32, ptr %16, align 4
  %18 = getelementptr inbounds i32, ptr %3, i64 %.026
  %19 = load i32, ptr %18, align 4
  %20 = mul nsw i32 %17, %19
  %21 = getelementptr inbounds i32, ptr %4, i64 %.027
  %22 = load i32, ptr %21, align 4
  %23 = add nsw i32 %22, %20
  store i32 %23, ptr %21, align 4
  %24 = add nuw nsw i64 %.026, 1
  br label %11

25:
  %.0 = phi i64 [ %38, %27 ], [ 0, %11 ]
  %26 = icmp slt i64 %.0, %1
  br i1 %26, label %27, label %39

27:
  %28 = mul nsw i64 %.027, %1
  %29 = getelementptr i32, ptr %2, i64 %28
  %30 = getelementptr i32, ptr %29, i64 %.0
  %31 = load i32, ptr %30, align 4
  %32 = getelementptr inbounds i32, ptr %4, i64 %.027
  %33 = load i32, ptr %32, align 4
  %34 = mul nsw i32 %31, %33
  %35 = getelementptr inbounds i32, ptr %5, i64 %.0
  %36 = load i32, ptr %35, align 4
  %37 = add nsw i32 %36, %34
  store i32 %37, ptr %35, align 4
  %38 = add nuw nsw i64 %.0, 1
  br label %25

39:
  %40 = add nuw nsw i64 %.027, 1
  br label %7

41:
  ret void
}



define dso_local void @bicg(i64 noundef %0, i64 noundef %1, ptr noundef %2, ptr noundef %3, ptr noundef %4, ptr noundef %5, ptr noundef %6) {
  br label %8

8:
  %.021 = phi i64 [ 0, %7 ], [ %35, %34 ]
  %9 = icmp slt i64 %.021, %0
  br i1 %9, label %10, label %36

10:
  %.0 = phi i64 [ %33, %12 ], [ 0, %8 ]
  %11 = icmp slt i64 %.0, %1
  br i1 %11, label %12, label %34

12:
  %13 = getelementptr inbounds double, ptr %5, i64 %.021
  %14 = load double, ptr %13, align 8
  %15 = mul nsw i64 %.021, %1
  %16 = getelementptr double, ptr %2, i64 %15
  %17 = getelementptr double, ptr %16, i64 %.0
  %18 = load double, ptr %17, align 8
  %19 = fmul fast double %14, %18
  %20 = getelementptr inbounds double, ptr %6, i64 %.0
  %21 = load double, ptr %20, align 8
  %22 = fadd fast double %21, %19
  store double %22, ptr %20, align 8
  %23 = mul nsw i64 %.021, %1
  %24 = getelementptr double, ptr %2, i64 %23
  %25 = getelementptr double, ptr %24, i64 %.0
  %26 = load double, ptr %25, align 8
  %27 = getelementptr inbounds double, ptr %3, i64 %.0
  %28 = load double, ptr %27, align 8
  %29 = fmul fast double %26, %28
  %30 = getelementptr inbounds double, ptr %4, i64 %.021
  %31 = load double, ptr %30, align 8
  %32 = fadd fast double %31, %29
  store double %32, ptr %30, align 8
  %33 = add nuw nsw i64 %.0, 1
  br label %10

34:
  %35 = add nuw nsw i64 %.021, 1
  br label %8

36:
  ret void
}

define dso_local void @columns(i64 noundef %0, i64 noundef %1, ptr noundef %2, ptr noundef %3, ptr noundef %4, ptr noundef %5) {
  br label %7

7:
  %.027 = phi i64 [ 0, %6 ], [ %40, %39 ]
  %8 = icmp slt i64 %.027, %0
  br i1 %8, label %9, label %41

9:
  %10 = getelementptr inbounds i32, ptr %4, i64 %.027
  store i32 0, ptr %10, align 4
  br label %11

11:
  %.026 = phi i64 [ 0, %9 ], [ %24, %13 ]
  %12 = icmp slt i64 %.026, %1
  br i1 %12, label %13, label %25

13:
  %14 = mul nsw i64 %.026, %0
  %15 = getelementptr i32, ptr %2, i64 %14
  %16 = getelementptr i32, ptr %15, i64 %.027
  %17 = load i32, ptr %16, align 4
  %18 = getelementptr inbounds i32, ptr %3, i64 %.026
  %19 = load i32, ptr %18, align 4
  %20 = mul nsw i32 %17, %19
  %21 = getelementptr inbounds i32, ptr %4, i64 %.027
  %22 = load i32, ptr %21, align 4
  %23 = add nsw i32 %22, %20
  store i32 %23, ptr %21, align 4
  %24 = add nuw nsw i64 %.026, 1
  br label %11

25:
  %.0 = phi i64 [ %38, %27 ], [ 0, %11 ]
  %26 = icmp slt i64 %.0, %1
  br i1 %26, label %27, label %39

27:
  %28 = mul nsw i64 %.0, %0
  %29 = getelementptr i32, ptr %2, i64 %28
  %30 = getelementptr i32, ptr %29, i64 %.027
  %31 = load i32, ptr %30, align 4
  %32 = getelementptr inbounds i32, ptr %4, i64 %.027
  %33 = load i32, ptr %32, align 4
  %34 = mul nsw i32 %31, %33
  %35 = getelementptr inbounds i32, ptr %5, i64 %.0
  %36 = load i32, ptr %35, align 4
  %37 = add nsw i32 %36, %34
  store i32 %37, ptr %35, align 4
  %38 = add nuw nsw i64 %.0, 1
  br label %25

39:
  %40 = add nuw nsw i64 %.027, 1
  br label %7

41:
  ret void
}

define dso_local void @others(i64 noundef %0, i64 noundef %1, ptr noundef %2, ptr noundef %3, ptr noundef %4, ptr noundef %5, ptr noundef %6) {
  br label %8

8:
  %.027 = phi i64 [ 0, %7 ], [ %41, %40 ]
  %9 = icmp slt i64 %.027, %0
  br i1 %9, label %10, label %42

10:
  %11 = getelementptr inbounds i32, ptr %5, i64 %.027
  store i32 0, ptr %11, align 4
  br label %12

12:
  %.026 = phi i64 [ 0, %10 ], [ %25, %14 ]
  %13 = icmp slt i64 %.026, %1
  br i1 %13, label %14, label %26

14:
  %15 = mul nsw i64 %.027, %1
  %16 = getelementptr i32, ptr %2, i64 %15
  %17 = getelementptr i32, ptr %16, i64 %.026
  %18 = load i32, ptr %17, align 4
  %19 = getelementptr inbounds i32, ptr %4, i64 %.026
  %20 = load i32, ptr %19, align 4
  %21 = mul nsw i32 %18, %20
  %22 = getelementptr inbounds i32, ptr %5, i64 %.027
  %23 = load i32, ptr %22, align 4
  %24 = add nsw i32 %23, %21
  store i32 %24, ptr %22, align 4
  %25 = add nuw nsw i64 %.026, 1
  br label %12

26:
  %.0 = phi i64 [ %39, %28 ], [ 0, %12 ]
  %27 = icmp slt i64 %.0, %1
  br i1 %27, label %28, label %40

28:
  %29 = mul nsw i64 %.027, %1
  %30 = getelementptr i32, ptr %3, i64 %29
  %31 = getelementptr i32, ptr %30, i64 %.0
  %32 = load i32, ptr %31, align 4
  %33 = getelementptr inbounds i32, ptr %5, i64 %.027
  %34 = load i32, ptr %33, align 4
  %35 = mul nsw i32 %32, %34
  %36 = getelementptr inbounds i32, ptr %6, i64 %.0
  %37 = load i32, ptr %36, align 4
  %38 = add nsw i32 %37, %35
  store i32 %38, ptr %36, align 4
  %39 = add nuw nsw i64 %.0, 1
  br label %26

40:
  %41 = add nuw nsw i64 %.027, 1
  br label %8

42:
  ret void
}



