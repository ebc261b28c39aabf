target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

%struct.S = type { i32, [10 x double] }
%"a type" = type opaque

@matrix = global [8 x [8 x float]] zeroinitializer, align 16
@table = private unnamed_addr constant [3 x i8] c"a\22\00"
@elsewhere = external thread_local(initialexec) global ptr
@other = alias float, ptr @matrix

declare i32 @printf(ptr, ...)
declare void @may_throw(ptr)
declare i32 @personality(...)
declare float @llvm.fma.f32(float, float, float)
declare { i32, i1 } @llvm.sadd.with.overflow.i32(i32, i32)

define i64 @arithmetic(i32 %a, i64 noundef range(i64 0, 9) %b, float nofpclass(nan inf) %x, <4 x float> %v) {
entry:
  %add = add nuw nsw i32 %a, 1
  %sub = sub i32 0, %add
  %mul = mul nsw i32 %sub, %a
  %shl = shl nuw i32 %mul, 2
  %div = sdiv exact i32 %shl, 4
  %or = or disjoint i32 %div, 4
  %not = xor i32 %or, -1
  %long = sext i32 %not to i64
  %short = trunc nuw nsw i64 %long to i32
  %wide = zext nneg i32 %short to i64
  %f = fmul reassoc contract float %x, 2.000000e+00
  %g = fneg fast float %f
  %h = call fast float @llvm.fma.f32(float %f, float %g, float 1.000000e+00)
  %d = fpext float %h to double
  %e = fcmp nnan olt double %d, 0x3FB999999999999A
  %c = icmp samesign ult i64 %wide, %b
  %m = select i1 %c, i1 %e, i1 false
  %i = fptosi float %h to i64
  %j = uitofp nneg i64 %i to float
  %w = insertelement <4 x float> %v, float %j, i64 2
  %s = shufflevector <4 x float> %w, <4 x float> %v, <4 x i32> <i32 0, i32 5, i32 2, i32 poison>
  %y = extractelement <4 x float> %s, i64 0
  %z = fcmp ult <4 x float> %s, splat (float 1.000000e+00)
  %o = call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %a, i32 %short)
  %q = extractvalue { i32, i1 } %o, 0
  %r = insertvalue { i32, i1 } %o, i1 %m, 1
  %t = freeze i64 %i
  %u = ptrtoint ptr @matrix to i64
  %k = bitcast float %y to i32
  ret i64 %u
}

define void @memory(ptr noalias nonnull align 16 dereferenceable(64) captures(none) %p, ptr byval(%struct.S) align 8 %s, i64 %n) #0 {
entry:
  %a = alloca [8 x float], align 16
  %b = alloca i32, i64 %n, align 4
  %c = getelementptr inbounds nuw %struct.S, ptr %s, i64 %n, i32 1, i64 3
  %d = getelementptr [8 x float], ptr %a, i64 0, i64 %n
  %e = load float, ptr %d, align 4
  %f = load volatile double, ptr %c, align 8
  %g = load atomic i32, ptr %b syncscope("singlethread") acquire, align 4
  store float %e, ptr getelementptr inbounds nuw (i8, ptr @matrix, i64 8), align 4
  store <2 x i8> <i8 1, i8 2>, ptr %p, align 2
  store atomic volatile i32 %g, ptr %b seq_cst, align 4
  store [2 x { i32, ptr }] [{ i32, ptr } { i32 1, ptr null }, { i32, ptr } zeroinitializer], ptr %p, align 8
  %h = atomicrmw volatile add ptr %b, i32 1 seq_cst, align 4
  %i = cmpxchg ptr %b, i32 1, i32 2 seq_cst monotonic, align 4
  fence seq_cst
  %j = va_arg ptr %p, i32
  %k = call i32 (ptr, ...) @printf(ptr noundef nonnull dereferenceable(1) @table, i32 %j, double %f) #1
  call void asm sideeffect "call f(%x)", "~{memory}"()
  %l = addrspacecast ptr %p to ptr addrspace(3)
  %m = load i8, ptr addrspace(3) %l, align 1
  ret void
}

define internal fastcc i32 @"a function"(ptr %f, i32 %x) personality ptr @personality {
  %1 = call fastcc noundef i32 %f(ptr @may_throw, i32 %x) [ "deopt"(i32 1, i32 2) ]
  invoke void @may_throw(ptr %f)
          to label %fine unwind label %"not fine"

fine:                                             ; preds = %0
  switch i32 %1, label %2 [
    i32 1, label %3
    i32 -2, label %"not so"
  ]

2:                                                ; preds = %fine
  ret i32 %1

3:                                                ; preds = %fine
  br label %"not so"

"not so":                                         ; preds = %3, %fine
  %4 = phi i32 [ 0, %3 ], [ %1, %fine ]
  %5 = musttail call fastcc i32 @"a function"(ptr %f, i32 %4)
  ret i32 %5

"not fine":                                       ; preds = %0
  %6 = landingpad { ptr, i32 }
          cleanup
          catch ptr null
  resume { ptr, i32 } %6
}

define float @unnamed(ptr %0, i32 %1) !dbg !4 {
  br label %3, !dbg !7

3:                                                ; preds = %3, %2
  %.sum = phi fast float [ 0.000000e+00, %2 ], [ %.next, %3 ]
    #dbg_value(float %.sum, !10, !DIExpression(), !7)
  %.next = fadd fast float %.sum, 1.000000e+00
  %.done = fcmp fast ogt float %.next, 9.000000e+00
  br i1 %.done, label %4, label %3, !dbg !7, !llvm.loop !11

4:                                                ; preds = %3
  %5 = fadd float %.next, 1.000000e+00, !dbg !8
  ret float %5
}

attributes #0 = { nounwind "target-cpu"="x86-64" "target-features"="+sse,+sse2" }
attributes #1 = { nounwind }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}

!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, producer: "none", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)
!1 = !DIFile(filename: "a.c", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !DISubroutineType(types: !5)
!4 = distinct !DISubprogram(name: "in_source", linkageName: "unnamed", scope: !1, file: !1, line: 6, type: !3, scopeLine: 6, spFlags: DISPFlagDefinition, unit: !0)
!5 = !{null}
!6 = distinct !DISubprogram(name: "inner", scope: !1, file: !1, line: 2, type: !3, scopeLine: 2, spFlags: DISPFlagDefinition, unit: !0)
!7 = !DILocation(line: 7, column: 3, scope: !4)
!8 = !DILocation(line: 3, column: 3, scope: !6, inlinedAt: !9)
!9 = distinct !DILocation(line: 9, column: 3, scope: !4)
!10 = !DILocalVariable(name: "s", scope: !4, file: !1, line: 6)
!11 = distinct !{!11, !12}
!12 = !{!"llvm.loop.mustprogress"}
