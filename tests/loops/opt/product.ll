source_filename = "product.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define dso_local void @product(i32 noundef %m, i32 noundef %n, i32 noundef %k, ptr noundef %a, ptr noundef %b, ptr noalias noundef %c) #0 !dbg !9 {
entry:
  %m.addr = alloca i32, align 4
  %n.addr = alloca i32, align 4
  %k.addr = alloca i32, align 4
  %a.addr = alloca ptr, align 8
  %b.addr = alloca ptr, align 8
  %c.addr = alloca ptr, align 8
  %i = alloca i32, align 4
  %cleanup.dest.slot = alloca i32, align 4
  %j = alloca i32, align 4
  %p = alloca i32, align 4
  store i32 %m, ptr %m.addr, align 4, !tbaa !13
  store i32 %n, ptr %n.addr, align 4, !tbaa !13
  store i32 %k, ptr %k.addr, align 4, !tbaa !13
  store ptr %a, ptr %a.addr, align 8, !tbaa !17
  store ptr %b, ptr %b.addr, align 8, !tbaa !17
  store ptr %c, ptr %c.addr, align 8, !tbaa !17
  call void @llvm.lifetime.start.p0(i64 4, ptr %i) #3, !dbg !19
  store i32 0, ptr %i, align 4, !dbg !20, !tbaa !13
  br label %for.cond, !dbg !19

for.cond:                                         ; preds = %for.inc26, %entry
  %0 = load i32, ptr %i, align 4, !dbg !21, !tbaa !13
  %1 = load i32, ptr %m.addr, align 4, !dbg !22, !tbaa !13
  %cmp = icmp slt i32 %0, %1, !dbg !23
  br i1 %cmp, label %for.body, label %for.cond.cleanup, !dbg !24

for.cond.cleanup:                                 ; preds = %for.cond
  store i32 2, ptr %cleanup.dest.slot, align 4
  call void @llvm.lifetime.end.p0(i64 4, ptr %i) #3, !dbg !24
  br label %for.end28

for.body:                                         ; preds = %for.cond
  call void @llvm.lifetime.start.p0(i64 4, ptr %j) #3, !dbg !25
  store i32 0, ptr %j, align 4, !dbg !26, !tbaa !13
  br label %for.cond1, !dbg !25

for.cond1:                                        ; preds = %for.inc23, %for.body
  %2 = load i32, ptr %j, align 4, !dbg !27, !tbaa !13
  %3 = load i32, ptr %n.addr, align 4, !dbg !28, !tbaa !13
  %cmp2 = icmp slt i32 %2, %3, !dbg !29
  br i1 %cmp2, label %for.body4, label %for.cond.cleanup3, !dbg !30

for.cond.cleanup3:                                ; preds = %for.cond1
  store i32 5, ptr %cleanup.dest.slot, align 4
  call void @llvm.lifetime.end.p0(i64 4, ptr %j) #3, !dbg !30
  br label %for.end25

for.body4:                                        ; preds = %for.cond1
  %4 = load ptr, ptr %c.addr, align 8, !dbg !31, !tbaa !17
  %5 = load i32, ptr %i, align 4, !dbg !32, !tbaa !13
  %6 = load i32, ptr %n.addr, align 4, !dbg !33, !tbaa !13
  %mul = mul nsw i32 %5, %6, !dbg !34
  %7 = load i32, ptr %j, align 4, !dbg !35, !tbaa !13
  %add = add nsw i32 %mul, %7, !dbg !36
  %idxprom = sext i32 %add to i64, !dbg !31
  %arrayidx = getelementptr inbounds float, ptr %4, i64 %idxprom, !dbg !31
  store float 0.000000e+00, ptr %arrayidx, align 4, !dbg !37, !tbaa !38
  call void @llvm.lifetime.start.p0(i64 4, ptr %p) #3, !dbg !40
  store i32 0, ptr %p, align 4, !dbg !41, !tbaa !13
  br label %for.cond5, !dbg !40

for.cond5:                                        ; preds = %for.inc, %for.body4
  %8 = load i32, ptr %p, align 4, !dbg !42, !tbaa !13
  %9 = load i32, ptr %k.addr, align 4, !dbg !43, !tbaa !13
  %cmp6 = icmp slt i32 %8, %9, !dbg !44
  br i1 %cmp6, label %for.body8, label %for.cond.cleanup7, !dbg !45

for.cond.cleanup7:                                ; preds = %for.cond5
  store i32 8, ptr %cleanup.dest.slot, align 4
  call void @llvm.lifetime.end.p0(i64 4, ptr %p) #3, !dbg !45
  br label %for.end

for.body8:                                        ; preds = %for.cond5
  %10 = load ptr, ptr %a.addr, align 8, !dbg !46, !tbaa !17
  %11 = load i32, ptr %i, align 4, !dbg !47, !tbaa !13
  %12 = load i32, ptr %k.addr, align 4, !dbg !48, !tbaa !13
  %mul9 = mul nsw i32 %11, %12, !dbg !49
  %13 = load i32, ptr %p, align 4, !dbg !50, !tbaa !13
  %add10 = add nsw i32 %mul9, %13, !dbg !51
  %idxprom11 = sext i32 %add10 to i64, !dbg !46
  %arrayidx12 = getelementptr inbounds float, ptr %10, i64 %idxprom11, !dbg !46
  %14 = load float, ptr %arrayidx12, align 4, !dbg !46, !tbaa !38
  %15 = load ptr, ptr %b.addr, align 8, !dbg !52, !tbaa !17
  %16 = load i32, ptr %p, align 4, !dbg !53, !tbaa !13
  %17 = load i32, ptr %n.addr, align 4, !dbg !54, !tbaa !13
  %mul13 = mul nsw i32 %16, %17, !dbg !55
  %18 = load i32, ptr %j, align 4, !dbg !56, !tbaa !13
  %add14 = add nsw i32 %mul13, %18, !dbg !57
  %idxprom15 = sext i32 %add14 to i64, !dbg !52
  %arrayidx16 = getelementptr inbounds float, ptr %15, i64 %idxprom15, !dbg !52
  %19 = load float, ptr %arrayidx16, align 4, !dbg !52, !tbaa !38
  %mul17 = fmul fast float %14, %19, !dbg !58
  %20 = load ptr, ptr %c.addr, align 8, !dbg !59, !tbaa !17
  %21 = load i32, ptr %i, align 4, !dbg !60, !tbaa !13
  %22 = load i32, ptr %n.addr, align 4, !dbg !61, !tbaa !13
  %mul18 = mul nsw i32 %21, %22, !dbg !62
  %23 = load i32, ptr %j, align 4, !dbg !63, !tbaa !13
  %add19 = add nsw i32 %mul18, %23, !dbg !64
  %idxprom20 = sext i32 %add19 to i64, !dbg !59
  %arrayidx21 = getelementptr inbounds float, ptr %20, i64 %idxprom20, !dbg !59
  %24 = load float, ptr %arrayidx21, align 4, !dbg !65, !tbaa !38
  %add22 = fadd fast float %24, %mul17, !dbg !65
  store float %add22, ptr %arrayidx21, align 4, !dbg !65, !tbaa !38
  br label %for.inc, !dbg !59

for.inc:                                          ; preds = %for.body8
  %25 = load i32, ptr %p, align 4, !dbg !66, !tbaa !13
  %inc = add nsw i32 %25, 1, !dbg !66
  store i32 %inc, ptr %p, align 4, !dbg !66, !tbaa !13
  br label %for.cond5, !dbg !45, !llvm.loop !67

for.end:                                          ; preds = %for.cond.cleanup7
  br label %for.inc23, !dbg !70

for.inc23:                                        ; preds = %for.end
  %26 = load i32, ptr %j, align 4, !dbg !71, !tbaa !13
  %inc24 = add nsw i32 %26, 1, !dbg !71
  store i32 %inc24, ptr %j, align 4, !dbg !71, !tbaa !13
  br label %for.cond1, !dbg !30, !llvm.loop !72

for.end25:                                        ; preds = %for.cond.cleanup3
  br label %for.inc26, !dbg !70

for.inc26:                                        ; preds = %for.end25
  %27 = load i32, ptr %i, align 4, !dbg !73, !tbaa !13
  %inc27 = add nsw i32 %27, 1, !dbg !73
  store i32 %inc27, ptr %i, align 4, !dbg !73, !tbaa !13
  br label %for.cond, !dbg !24, !llvm.loop !74

for.end28:                                        ; preds = %for.cond.cleanup
  ret void, !dbg !75
}

declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #1

define dso_local void @steps(i32 noundef %n, ptr noundef %a, ptr noundef %b, ptr noalias noundef %c) #0 !dbg !76 {
entry:
  %n.addr = alloca i32, align 4
  %a.addr = alloca ptr, align 8
  %b.addr = alloca ptr, align 8
  %c.addr = alloca ptr, align 8
  %t = alloca i32, align 4
  %cleanup.dest.slot = alloca i32, align 4
  %i = alloca i32, align 4
  %p = alloca i32, align 4
  %j = alloca i32, align 4
  store i32 %n, ptr %n.addr, align 4, !tbaa !13
  store ptr %a, ptr %a.addr, align 8, !tbaa !17
  store ptr %b, ptr %b.addr, align 8, !tbaa !17
  store ptr %c, ptr %c.addr, align 8, !tbaa !17
  call void @llvm.lifetime.start.p0(i64 4, ptr %t) #3, !dbg !77
  store i32 0, ptr %t, align 4, !dbg !78, !tbaa !13
  br label %for.cond, !dbg !77

for.cond:                                         ; preds = %for.inc29, %entry
  %0 = load i32, ptr %t, align 4, !dbg !79, !tbaa !13
  %1 = load i32, ptr %n.addr, align 4, !dbg !80, !tbaa !13
  %cmp = icmp slt i32 %0, %1, !dbg !81
  br i1 %cmp, label %for.body, label %for.cond.cleanup, !dbg !82

for.cond.cleanup:                                 ; preds = %for.cond
  store i32 2, ptr %cleanup.dest.slot, align 4
  call void @llvm.lifetime.end.p0(i64 4, ptr %t) #3, !dbg !82
  br label %for.end31

for.body:                                         ; preds = %for.cond
  %2 = load i32, ptr %t, align 4, !dbg !83, !tbaa !13
  %call = call i32 @calls(i32 noundef %2), !dbg !84
  call void @llvm.lifetime.start.p0(i64 4, ptr %i) #3, !dbg !85
  store i32 0, ptr %i, align 4, !dbg !86, !tbaa !13
  br label %for.cond1, !dbg !85

for.cond1:                                        ; preds = %for.inc26, %for.body
  %3 = load i32, ptr %i, align 4, !dbg !87, !tbaa !13
  %4 = load i32, ptr %n.addr, align 4, !dbg !88, !tbaa !13
  %cmp2 = icmp slt i32 %3, %4, !dbg !89
  br i1 %cmp2, label %for.body4, label %for.cond.cleanup3, !dbg !90

for.cond.cleanup3:                                ; preds = %for.cond1
  store i32 5, ptr %cleanup.dest.slot, align 4
  call void @llvm.lifetime.end.p0(i64 4, ptr %i) #3, !dbg !90
  br label %for.end28

for.body4:                                        ; preds = %for.cond1
  call void @llvm.lifetime.start.p0(i64 4, ptr %p) #3, !dbg !91
  store i32 0, ptr %p, align 4, !dbg !92, !tbaa !13
  br label %for.cond5, !dbg !91

for.cond5:                                        ; preds = %for.inc23, %for.body4
  %5 = load i32, ptr %p, align 4, !dbg !93, !tbaa !13
  %6 = load i32, ptr %n.addr, align 4, !dbg !94, !tbaa !13
  %cmp6 = icmp slt i32 %5, %6, !dbg !95
  br i1 %cmp6, label %for.body8, label %for.cond.cleanup7, !dbg !96

for.cond.cleanup7:                                ; preds = %for.cond5
  store i32 8, ptr %cleanup.dest.slot, align 4
  call void @llvm.lifetime.end.p0(i64 4, ptr %p) #3, !dbg !96
  br label %for.end25

for.body8:                                        ; preds = %for.cond5
  call void @llvm.lifetime.start.p0(i64 4, ptr %j) #3, !dbg !97
  store i32 0, ptr %j, align 4, !dbg !98, !tbaa !13
  br label %for.cond9, !dbg !97

for.cond9:                                        ; preds = %for.inc, %for.body8
  %7 = load i32, ptr %j, align 4, !dbg !99, !tbaa !13
  %8 = load i32, ptr %n.addr, align 4, !dbg !100, !tbaa !13
  %cmp10 = icmp slt i32 %7, %8, !dbg !101
  br i1 %cmp10, label %for.body12, label %for.cond.cleanup11, !dbg !102

for.cond.cleanup11:                               ; preds = %for.cond9
  store i32 11, ptr %cleanup.dest.slot, align 4
  call void @llvm.lifetime.end.p0(i64 4, ptr %j) #3, !dbg !102
  br label %for.end

for.body12:                                       ; preds = %for.cond9
  %9 = load ptr, ptr %a.addr, align 8, !dbg !103, !tbaa !17
  %10 = load i32, ptr %i, align 4, !dbg !104, !tbaa !13
  %11 = load i32, ptr %n.addr, align 4, !dbg !105, !tbaa !13
  %mul = mul nsw i32 %10, %11, !dbg !106
  %12 = load i32, ptr %p, align 4, !dbg !107, !tbaa !13
  %add = add nsw i32 %mul, %12, !dbg !108
  %idxprom = sext i32 %add to i64, !dbg !103
  %arrayidx = getelementptr inbounds float, ptr %9, i64 %idxprom, !dbg !103
  %13 = load float, ptr %arrayidx, align 4, !dbg !103, !tbaa !38
  %14 = load ptr, ptr %b.addr, align 8, !dbg !109, !tbaa !17
  %15 = load i32, ptr %p, align 4, !dbg !110, !tbaa !13
  %16 = load i32, ptr %n.addr, align 4, !dbg !111, !tbaa !13
  %mul13 = mul nsw i32 %15, %16, !dbg !112
  %17 = load i32, ptr %j, align 4, !dbg !113, !tbaa !13
  %add14 = add nsw i32 %mul13, %17, !dbg !114
  %idxprom15 = sext i32 %add14 to i64, !dbg !109
  %arrayidx16 = getelementptr inbounds float, ptr %14, i64 %idxprom15, !dbg !109
  %18 = load float, ptr %arrayidx16, align 4, !dbg !109, !tbaa !38
  %mul17 = fmul fast float %13, %18, !dbg !115
  %19 = load ptr, ptr %c.addr, align 8, !dbg !116, !tbaa !17
  %20 = load i32, ptr %i, align 4, !dbg !117, !tbaa !13
  %21 = load i32, ptr %n.addr, align 4, !dbg !118, !tbaa !13
  %mul18 = mul nsw i32 %20, %21, !dbg !119
  %22 = load i32, ptr %j, align 4, !dbg !120, !tbaa !13
  %add19 = add nsw i32 %mul18, %22, !dbg !121
  %idxprom20 = sext i32 %add19 to i64, !dbg !116
  %arrayidx21 = getelementptr inbounds float, ptr %19, i64 %idxprom20, !dbg !116
  %23 = load float, ptr %arrayidx21, align 4, !dbg !122, !tbaa !38
  %add22 = fadd fast float %23, %mul17, !dbg !122
  store float %add22, ptr %arrayidx21, align 4, !dbg !122, !tbaa !38
  br label %for.inc, !dbg !116

for.inc:                                          ; preds = %for.body12
  %24 = load i32, ptr %j, align 4, !dbg !123, !tbaa !13
  %inc = add nsw i32 %24, 1, !dbg !123
  store i32 %inc, ptr %j, align 4, !dbg !123, !tbaa !13
  br label %for.cond9, !dbg !102, !llvm.loop !124

for.end:                                          ; preds = %for.cond.cleanup11
  br label %for.inc23, !dbg !125

for.inc23:                                        ; preds = %for.end
  %25 = load i32, ptr %p, align 4, !dbg !126, !tbaa !13
  %inc24 = add nsw i32 %25, 1, !dbg !126
  store i32 %inc24, ptr %p, align 4, !dbg !126, !tbaa !13
  br label %for.cond5, !dbg !96, !llvm.loop !127

for.end25:                                        ; preds = %for.cond.cleanup7
  br label %for.inc26, !dbg !125

for.inc26:                                        ; preds = %for.end25
  %26 = load i32, ptr %i, align 4, !dbg !128, !tbaa !13
  %inc27 = add nsw i32 %26, 1, !dbg !128
  store i32 %inc27, ptr %i, align 4, !dbg !128, !tbaa !13
  br label %for.cond1, !dbg !90, !llvm.loop !129

for.end28:                                        ; preds = %for.cond.cleanup3
  br label %for.inc29, !dbg !130

for.inc29:                                        ; preds = %for.end28
  %27 = load i32, ptr %t, align 4, !dbg !131, !tbaa !13
  %inc30 = add nsw i32 %27, 1, !dbg !131
  store i32 %inc30, ptr %t, align 4, !dbg !131, !tbaa !13
  br label %for.cond, !dbg !82, !llvm.loop !132

for.end31:                                        ; preds = %for.cond.cleanup
  ret void, !dbg !133
}

declare !dbg !134 i32 @calls(i32 noundef) #2

define dso_local void @turn(i32 noundef %n, ptr noundef %a, ptr noalias noundef %c) #0 !dbg !135 {
entry:
  %n.addr = alloca i32, align 4
  %a.addr = alloca ptr, align 8
  %c.addr = alloca ptr, align 8
  %i = alloca i32, align 4
  %cleanup.dest.slot = alloca i32, align 4
  %j = alloca i32, align 4
  store i32 %n, ptr %n.addr, align 4, !tbaa !13
  store ptr %a, ptr %a.addr, align 8, !tbaa !17
  store ptr %c, ptr %c.addr, align 8, !tbaa !17
  call void @llvm.lifetime.start.p0(i64 4, ptr %i) #3, !dbg !136
  store i32 0, ptr %i, align 4, !dbg !137, !tbaa !13
  br label %for.cond, !dbg !136

for.cond:                                         ; preds = %for.inc10, %entry
  %0 = load i32, ptr %i, align 4, !dbg !138, !tbaa !13
  %1 = load i32, ptr %n.addr, align 4, !dbg !139, !tbaa !13
  %cmp = icmp slt i32 %0, %1, !dbg !140
  br i1 %cmp, label %for.body, label %for.cond.cleanup, !dbg !141

for.cond.cleanup:                                 ; preds = %for.cond
  store i32 2, ptr %cleanup.dest.slot, align 4
  call void @llvm.lifetime.end.p0(i64 4, ptr %i) #3, !dbg !141
  br label %for.end12

for.body:                                         ; preds = %for.cond
  call void @llvm.lifetime.start.p0(i64 4, ptr %j) #3, !dbg !142
  store i32 0, ptr %j, align 4, !dbg !143, !tbaa !13
  br label %for.cond1, !dbg !142

for.cond1:                                        ; preds = %for.inc, %for.body
  %2 = load i32, ptr %j, align 4, !dbg !144, !tbaa !13
  %3 = load i32, ptr %n.addr, align 4, !dbg !145, !tbaa !13
  %cmp2 = icmp slt i32 %2, %3, !dbg !146
  br i1 %cmp2, label %for.body4, label %for.cond.cleanup3, !dbg !147

for.cond.cleanup3:                                ; preds = %for.cond1
  store i32 5, ptr %cleanup.dest.slot, align 4
  call void @llvm.lifetime.end.p0(i64 4, ptr %j) #3, !dbg !147
  br label %for.end

for.body4:                                        ; preds = %for.cond1
  %4 = load ptr, ptr %a.addr, align 8, !dbg !148, !tbaa !17
  %5 = load i32, ptr %i, align 4, !dbg !149, !tbaa !13
  %6 = load i32, ptr %n.addr, align 4, !dbg !150, !tbaa !13
  %mul = mul nsw i32 %5, %6, !dbg !151
  %7 = load i32, ptr %j, align 4, !dbg !152, !tbaa !13
  %add = add nsw i32 %mul, %7, !dbg !153
  %idxprom = sext i32 %add to i64, !dbg !148
  %arrayidx = getelementptr inbounds float, ptr %4, i64 %idxprom, !dbg !148
  %8 = load float, ptr %arrayidx, align 4, !dbg !148, !tbaa !38
  %mul5 = fmul fast float 2.000000e+00, %8, !dbg !154
  %9 = load ptr, ptr %c.addr, align 8, !dbg !155, !tbaa !17
  %10 = load i32, ptr %j, align 4, !dbg !156, !tbaa !13
  %11 = load i32, ptr %n.addr, align 4, !dbg !157, !tbaa !13
  %mul6 = mul nsw i32 %10, %11, !dbg !158
  %12 = load i32, ptr %i, align 4, !dbg !159, !tbaa !13
  %add7 = add nsw i32 %mul6, %12, !dbg !160
  %idxprom8 = sext i32 %add7 to i64, !dbg !155
  %arrayidx9 = getelementptr inbounds float, ptr %9, i64 %idxprom8, !dbg !155
  store float %mul5, ptr %arrayidx9, align 4, !dbg !161, !tbaa !38
  br label %for.inc, !dbg !155

for.inc:                                          ; preds = %for.body4
  %13 = load i32, ptr %j, align 4, !dbg !162, !tbaa !13
  %inc = add nsw i32 %13, 1, !dbg !162
  store i32 %inc, ptr %j, align 4, !dbg !162, !tbaa !13
  br label %for.cond1, !dbg !147, !llvm.loop !163

for.end:                                          ; preds = %for.cond.cleanup3
  br label %for.inc10, !dbg !164

for.inc10:                                        ; preds = %for.end
  %14 = load i32, ptr %i, align 4, !dbg !165, !tbaa !13
  %inc11 = add nsw i32 %14, 1, !dbg !165
  store i32 %inc11, ptr %i, align 4, !dbg !165, !tbaa !13
  br label %for.cond, !dbg !141, !llvm.loop !166

for.end12:                                        ; preds = %for.cond.cleanup
  ret void, !dbg !167
}

attributes #0 = { nounwind uwtable "approx-func-fp-math"="true" "min-legal-vector-width"="0" "no-infs-fp-math"="true" "no-nans-fp-math"="true" "no-signed-zeros-fp-math"="true" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="x86-64-v3" "target-features"="+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+x87,+xsave" "unsafe-fp-math"="true" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { "approx-func-fp-math"="true" "no-infs-fp-math"="true" "no-nans-fp-math"="true" "no-signed-zeros-fp-math"="true" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="x86-64-v3" "target-features"="+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+x87,+xsave" "unsafe-fp-math"="true" }
attributes #3 = { nounwind }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3, !4, !5, !6, !7}

!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, producer: "clang 19", isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly, splitDebugInlining: false, nameTableKind: None)
!1 = !DIFile(filename: "product.c", directory: "/", checksumkind: CSK_MD5, checksum: "ccdcd26d88b1165a9987ad5862689661")
!2 = !{i32 7, !"Dwarf Version", i32 5}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !{i32 1, !"wchar_size", i32 4}
!5 = !{i32 8, !"PIC Level", i32 2}
!6 = !{i32 7, !"PIE Level", i32 2}
!7 = !{i32 7, !"uwtable", i32 2}
!8 = !{!"Debian clang version 19.1.7 (3~deb12u1)"}
!9 = distinct !DISubprogram(name: "product", scope: !10, file: !10, line: 1, type: !11, scopeLine: 1, flags: DIFlagPrototyped | DIFlagAllCallsDescribed, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!10 = !DIFile(filename: "product.c", directory: "/", checksumkind: CSK_MD5, checksum: "ccdcd26d88b1165a9987ad5862689661")
!11 = !DISubroutineType(types: !12)
!12 = !{}
!13 = !{!14, !14, i64 0}
!14 = !{!"int", !15, i64 0}
!15 = !{!"omnipotent char", !16, i64 0}
!16 = !{!"Simple C/C++ TBAA"}
!17 = !{!18, !18, i64 0}
!18 = !{!"any pointer", !15, i64 0}
!19 = !DILocation(line: 2, column: 8, scope: !9)
!20 = !DILocation(line: 2, column: 12, scope: !9)
!21 = !DILocation(line: 2, column: 19, scope: !9)
!22 = !DILocation(line: 2, column: 23, scope: !9)
!23 = !DILocation(line: 2, column: 21, scope: !9)
!24 = !DILocation(line: 2, column: 3, scope: !9)
!25 = !DILocation(line: 3, column: 10, scope: !9)
!26 = !DILocation(line: 3, column: 14, scope: !9)
!27 = !DILocation(line: 3, column: 21, scope: !9)
!28 = !DILocation(line: 3, column: 25, scope: !9)
!29 = !DILocation(line: 3, column: 23, scope: !9)
!30 = !DILocation(line: 3, column: 5, scope: !9)
!31 = !DILocation(line: 4, column: 7, scope: !9)
!32 = !DILocation(line: 4, column: 9, scope: !9)
!33 = !DILocation(line: 4, column: 13, scope: !9)
!34 = !DILocation(line: 4, column: 11, scope: !9)
!35 = !DILocation(line: 4, column: 17, scope: !9)
!36 = !DILocation(line: 4, column: 15, scope: !9)
!37 = !DILocation(line: 4, column: 20, scope: !9)
!38 = !{!39, !39, i64 0}
!39 = !{!"float", !15, i64 0}
!40 = !DILocation(line: 5, column: 12, scope: !9)
!41 = !DILocation(line: 5, column: 16, scope: !9)
!42 = !DILocation(line: 5, column: 23, scope: !9)
!43 = !DILocation(line: 5, column: 27, scope: !9)
!44 = !DILocation(line: 5, column: 25, scope: !9)
!45 = !DILocation(line: 5, column: 7, scope: !9)
!46 = !DILocation(line: 6, column: 25, scope: !9)
!47 = !DILocation(line: 6, column: 27, scope: !9)
!48 = !DILocation(line: 6, column: 31, scope: !9)
!49 = !DILocation(line: 6, column: 29, scope: !9)
!50 = !DILocation(line: 6, column: 35, scope: !9)
!51 = !DILocation(line: 6, column: 33, scope: !9)
!52 = !DILocation(line: 6, column: 40, scope: !9)
!53 = !DILocation(line: 6, column: 42, scope: !9)
!54 = !DILocation(line: 6, column: 46, scope: !9)
!55 = !DILocation(line: 6, column: 44, scope: !9)
!56 = !DILocation(line: 6, column: 50, scope: !9)
!57 = !DILocation(line: 6, column: 48, scope: !9)
!58 = !DILocation(line: 6, column: 38, scope: !9)
!59 = !DILocation(line: 6, column: 9, scope: !9)
!60 = !DILocation(line: 6, column: 11, scope: !9)
!61 = !DILocation(line: 6, column: 15, scope: !9)
!62 = !DILocation(line: 6, column: 13, scope: !9)
!63 = !DILocation(line: 6, column: 19, scope: !9)
!64 = !DILocation(line: 6, column: 17, scope: !9)
!65 = !DILocation(line: 6, column: 22, scope: !9)
!66 = !DILocation(line: 5, column: 31, scope: !9)
!67 = distinct !{!67, !45, !68, !69}
!68 = !DILocation(line: 6, column: 51, scope: !9)
!69 = !{!"llvm.loop.mustprogress"}
!70 = !DILocation(line: 7, column: 5, scope: !9)
!71 = !DILocation(line: 3, column: 29, scope: !9)
!72 = distinct !{!72, !30, !70, !69}
!73 = !DILocation(line: 2, column: 27, scope: !9)
!74 = distinct !{!74, !24, !70, !69}
!75 = !DILocation(line: 8, column: 1, scope: !9)
!76 = distinct !DISubprogram(name: "steps", scope: !10, file: !10, line: 12, type: !11, scopeLine: 12, flags: DIFlagPrototyped | DIFlagAllCallsDescribed, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!77 = !DILocation(line: 13, column: 8, scope: !76)
!78 = !DILocation(line: 13, column: 12, scope: !76)
!79 = !DILocation(line: 13, column: 19, scope: !76)
!80 = !DILocation(line: 13, column: 23, scope: !76)
!81 = !DILocation(line: 13, column: 21, scope: !76)
!82 = !DILocation(line: 13, column: 3, scope: !76)
!83 = !DILocation(line: 14, column: 11, scope: !76)
!84 = !DILocation(line: 14, column: 5, scope: !76)
!85 = !DILocation(line: 15, column: 10, scope: !76)
!86 = !DILocation(line: 15, column: 14, scope: !76)
!87 = !DILocation(line: 15, column: 21, scope: !76)
!88 = !DILocation(line: 15, column: 25, scope: !76)
!89 = !DILocation(line: 15, column: 23, scope: !76)
!90 = !DILocation(line: 15, column: 5, scope: !76)
!91 = !DILocation(line: 16, column: 12, scope: !76)
!92 = !DILocation(line: 16, column: 16, scope: !76)
!93 = !DILocation(line: 16, column: 23, scope: !76)
!94 = !DILocation(line: 16, column: 27, scope: !76)
!95 = !DILocation(line: 16, column: 25, scope: !76)
!96 = !DILocation(line: 16, column: 7, scope: !76)
!97 = !DILocation(line: 17, column: 14, scope: !76)
!98 = !DILocation(line: 17, column: 18, scope: !76)
!99 = !DILocation(line: 17, column: 25, scope: !76)
!100 = !DILocation(line: 17, column: 29, scope: !76)
!101 = !DILocation(line: 17, column: 27, scope: !76)
!102 = !DILocation(line: 17, column: 9, scope: !76)
!103 = !DILocation(line: 18, column: 27, scope: !76)
!104 = !DILocation(line: 18, column: 29, scope: !76)
!105 = !DILocation(line: 18, column: 33, scope: !76)
!106 = !DILocation(line: 18, column: 31, scope: !76)
!107 = !DILocation(line: 18, column: 37, scope: !76)
!108 = !DILocation(line: 18, column: 35, scope: !76)
!109 = !DILocation(line: 18, column: 42, scope: !76)
!110 = !DILocation(line: 18, column: 44, scope: !76)
!111 = !DILocation(line: 18, column: 48, scope: !76)
!112 = !DILocation(line: 18, column: 46, scope: !76)
!113 = !DILocation(line: 18, column: 52, scope: !76)
!114 = !DILocation(line: 18, column: 50, scope: !76)
!115 = !DILocation(line: 18, column: 40, scope: !76)
!116 = !DILocation(line: 18, column: 11, scope: !76)
!117 = !DILocation(line: 18, column: 13, scope: !76)
!118 = !DILocation(line: 18, column: 17, scope: !76)
!119 = !DILocation(line: 18, column: 15, scope: !76)
!120 = !DILocation(line: 18, column: 21, scope: !76)
!121 = !DILocation(line: 18, column: 19, scope: !76)
!122 = !DILocation(line: 18, column: 24, scope: !76)
!123 = !DILocation(line: 17, column: 33, scope: !76)
!124 = distinct !{!124, !102, !125, !69}
!125 = !DILocation(line: 18, column: 53, scope: !76)
!126 = !DILocation(line: 16, column: 31, scope: !76)
!127 = distinct !{!127, !96, !125, !69}
!128 = !DILocation(line: 15, column: 29, scope: !76)
!129 = distinct !{!129, !90, !125, !69}
!130 = !DILocation(line: 19, column: 3, scope: !76)
!131 = !DILocation(line: 13, column: 27, scope: !76)
!132 = distinct !{!132, !82, !130, !69}
!133 = !DILocation(line: 20, column: 1, scope: !76)
!134 = !DISubprogram(name: "calls", scope: !10, file: !10, line: 10, type: !11, flags: DIFlagPrototyped, spFlags: DISPFlagOptimized)
!135 = distinct !DISubprogram(name: "turn", scope: !10, file: !10, line: 22, type: !11, scopeLine: 22, flags: DIFlagPrototyped | DIFlagAllCallsDescribed, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!136 = !DILocation(line: 23, column: 8, scope: !135)
!137 = !DILocation(line: 23, column: 12, scope: !135)
!138 = !DILocation(line: 23, column: 19, scope: !135)
!139 = !DILocation(line: 23, column: 23, scope: !135)
!140 = !DILocation(line: 23, column: 21, scope: !135)
!141 = !DILocation(line: 23, column: 3, scope: !135)
!142 = !DILocation(line: 24, column: 10, scope: !135)
!143 = !DILocation(line: 24, column: 14, scope: !135)
!144 = !DILocation(line: 24, column: 21, scope: !135)
!145 = !DILocation(line: 24, column: 25, scope: !135)
!146 = !DILocation(line: 24, column: 23, scope: !135)
!147 = !DILocation(line: 24, column: 5, scope: !135)
!148 = !DILocation(line: 25, column: 26, scope: !135)
!149 = !DILocation(line: 25, column: 28, scope: !135)
!150 = !DILocation(line: 25, column: 32, scope: !135)
!151 = !DILocation(line: 25, column: 30, scope: !135)
!152 = !DILocation(line: 25, column: 36, scope: !135)
!153 = !DILocation(line: 25, column: 34, scope: !135)
!154 = !DILocation(line: 25, column: 24, scope: !135)
!155 = !DILocation(line: 25, column: 7, scope: !135)
!156 = !DILocation(line: 25, column: 9, scope: !135)
!157 = !DILocation(line: 25, column: 13, scope: !135)
!158 = !DILocation(line: 25, column: 11, scope: !135)
!159 = !DILocation(line: 25, column: 17, scope: !135)
!160 = !DILocation(line: 25, column: 15, scope: !135)
!161 = !DILocation(line: 25, column: 20, scope: !135)
!162 = !DILocation(line: 24, column: 29, scope: !135)
!163 = distinct !{!163, !147, !164, !69}
!164 = !DILocation(line: 25, column: 37, scope: !135)
!165 = !DILocation(line: 23, column: 27, scope: !135)
!166 = distinct !{!166, !141, !164, !69}
!167 = !DILocation(line: 26, column: 1, scope: !135)
