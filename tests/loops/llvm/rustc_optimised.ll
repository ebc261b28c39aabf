source_filename = "r.20c418149eb3754d-cgu.0"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@alloc_a6e8913658d98d0dbd0444b57ddfd811 = private unnamed_addr constant [27 x i8] c"chunk size must be non-zero", align 1
@alloc_30dc4dc245907de919c6976a75831857 = private unnamed_addr constant [10 x i8] c"more/r.rs\00", align 1
@alloc_4fd2e63e0aaa21afe4e1232ca46a3e89 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_30dc4dc245907de919c6976a75831857, [16 x i8] c"\09\00\00\00\00\00\00\00\04\00\00\00|\00\00\00" }>, align 8
@alloc_4c86e9f51b891532f968706678db772d = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_30dc4dc245907de919c6976a75831857, [16 x i8] c"\09\00\00\00\00\00\00\00\04\00\00\00X\00\00\00" }>, align 8
@alloc_4132d2349fdbe5c08d96b8dfb9c1a4eb = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_30dc4dc245907de919c6976a75831857, [16 x i8] c"\09\00\00\00\00\00\00\00\04\00\00\00n\00\00\00" }>, align 8
@alloc_d469c5d8cc5876a87c9933b21f269469 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_30dc4dc245907de919c6976a75831857, [16 x i8] c"\09\00\00\00\00\00\00\00\02\00\00\00^\00\00\00" }>, align 8
@alloc_003a6bf3568ea17ece0d4728b3122331 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_30dc4dc245907de919c6976a75831857, [16 x i8] c"\09\00\00\00\00\00\00\00\02\00\00\00I\00\00\00" }>, align 8
@alloc_d8355243b8cdf18a9340eb0bab5e81d1 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_30dc4dc245907de919c6976a75831857, [16 x i8] c"\09\00\00\00\00\00\00\00\02\00\00\00R\00\00\00" }>, align 8
@alloc_97ad7e60cf67e1e6b663d7f7b3ab4499 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_30dc4dc245907de919c6976a75831857, [16 x i8] c"\09\00\00\00\00\00\00\00\08\00\00\00\15\00\00\00" }>, align 8
@alloc_b8d98622a6c09fe2ab68c270882c2164 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_30dc4dc245907de919c6976a75831857, [16 x i8] c"\09\00\00\00\00\00\00\00\08\00\00\00s\00\00\00" }>, align 8

define void @arr(ptr noalias noundef readonly align 4 captures(none) dereferenceable(4096) %a, ptr noalias noundef readonly align 4 captures(none) dereferenceable(4096) %b, ptr noalias noundef align 4 captures(none) dereferenceable(4096) %c) unnamed_addr {
start:
  br label %bb7

bb1.loopexit:
  %0 = add nuw nsw i64 %iter.sroa.0.06, 1
  %exitcond8.not = icmp eq i64 %0, 32
  br i1 %exitcond8.not, label %bb8, label %bb7

bb8:
  ret void

bb7:
  %iter.sroa.0.06 = phi i64 [ 0, %start ], [ %0, %bb1.loopexit ]
  %1 = getelementptr inbounds nuw [32 x float], ptr %a, i64 %iter.sroa.0.06
  %2 = getelementptr inbounds nuw [32 x float], ptr %c, i64 %iter.sroa.0.06
  br label %bb9

bb2.loopexit:
  %3 = add nuw nsw i64 %iter1.sroa.0.05, 1
  store float %8, ptr %4, align 4
  %exitcond7.not = icmp eq i64 %3, 32
  br i1 %exitcond7.not, label %bb1.loopexit, label %bb9

bb9:
  %iter1.sroa.0.05 = phi i64 [ 0, %bb7 ], [ %3, %bb2.loopexit ]
  %invariant.gep = getelementptr inbounds nuw float, ptr %b, i64 %iter1.sroa.0.05
  %4 = getelementptr inbounds nuw float, ptr %2, i64 %iter1.sroa.0.05
  %.promoted = load float, ptr %4, align 4
  br label %bb11

bb11:
  %iter2.sroa.0.04 = phi i64 [ 0, %bb9 ], [ %6, %bb11 ]
  %5 = phi float [ %.promoted, %bb9 ], [ %8, %bb11 ]
  %6 = add nuw nsw i64 %iter2.sroa.0.04, 1
  %7 = getelementptr inbounds nuw float, ptr %1, i64 %iter2.sroa.0.04
  %_11 = load float, ptr %7, align 4
  %gep = getelementptr inbounds nuw [32 x float], ptr %invariant.gep, i64 %iter2.sroa.0.04
  %_14 = load float, ptr %gep, align 4
  %_10 = fmul float %_11, %_14
  %8 = fadd float %5, %_10
  %exitcond.not = icmp eq i64 %6, 32
  br i1 %exitcond.not, label %bb2.loopexit, label %bb11
}

define void @i32s(i64 noundef %n, ptr noalias noundef nonnull readonly align 4 captures(none) %a.0, i64 noundef range(i64 0, 2305843009213693952) %a.1, ptr noalias noundef nonnull readonly align 4 captures(none) %b.0, i64 noundef range(i64 0, 2305843009213693952) %b.1, ptr noalias noundef nonnull align 4 captures(none) %c.0, i64 noundef range(i64 0, 2305843009213693952) %c.1) unnamed_addr {
start:
  %_2811.not = icmp eq i64 %n, 0
  br i1 %_2811.not, label %bb8, label %bb7

bb1.loopexit:
  %indvars.iv.next = add i64 %indvars.iv, %n
  %exitcond18.not = icmp eq i64 %0, %n
  br i1 %exitcond18.not, label %bb8, label %bb7

bb8:
  ret void

bb7:
  %indvars.iv = phi i64 [ %indvars.iv.next, %bb1.loopexit ], [ 0, %start ]
  %iter.sroa.0.012 = phi i64 [ %0, %bb1.loopexit ], [ 0, %start ]
  %0 = add nuw i64 %iter.sroa.0.012, 1
  %_16 = mul i64 %iter.sroa.0.012, %n
  br label %bb9

bb9:
  %iter1.sroa.0.010 = phi i64 [ 0, %bb7 ], [ %1, %bb6 ]
  %1 = add nuw nsw i64 %iter1.sroa.0.010, 1
  br label %bb11

bb12:
  %_24 = add nuw nsw i64 %iter1.sroa.0.010, %_16
  %_27 = icmp ult i64 %_24, %c.1
  br i1 %_27, label %bb6, label %panic

bb11:
  %iter2.sroa.0.09 = phi i64 [ 0, %bb9 ], [ %2, %bb5 ]
  %s.sroa.0.08 = phi i32 [ 0, %bb9 ], [ %8, %bb5 ]
  %2 = add nuw nsw i64 %iter2.sroa.0.09, 1
  %_15 = add nuw nsw i64 %iter2.sroa.0.09, %_16
  %_18 = icmp ult i64 %_15, %a.1
  br i1 %_18, label %bb4, label %panic3

bb6:
  %3 = getelementptr inbounds nuw i32, ptr %c.0, i64 %_24
  %4 = load i32, ptr %3, align 4
  %5 = add i32 %4, %8
  store i32 %5, ptr %3, align 4
  %exitcond17.not = icmp eq i64 %1, %n
  br i1 %exitcond17.not, label %bb1.loopexit, label %bb9

panic:
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %_24, i64 noundef %c.1, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_4fd2e63e0aaa21afe4e1232ca46a3e89)
  unreachable

bb4:
  %_21 = mul i64 %iter2.sroa.0.09, %n
  %_20 = add i64 %_21, %iter1.sroa.0.010
  %_23 = icmp ult i64 %_20, %b.1
  br i1 %_23, label %bb5, label %panic4

panic3:
  %umax = tail call i64 @llvm.umax.i64(i64 %a.1, i64 %indvars.iv)
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %umax, i64 noundef %a.1, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_4c86e9f51b891532f968706678db772d)
  unreachable

bb5:
  %6 = getelementptr inbounds nuw i32, ptr %a.0, i64 %_15
  %_14 = load i32, ptr %6, align 4
  %7 = getelementptr inbounds nuw i32, ptr %b.0, i64 %_20
  %_19 = load i32, ptr %7, align 4
  %_13 = mul i32 %_19, %_14
  %8 = add i32 %_13, %s.sroa.0.08
  %exitcond.not = icmp eq i64 %2, %n
  br i1 %exitcond.not, label %bb12, label %bb11

panic4:
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %_20, i64 noundef %b.1, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_4132d2349fdbe5c08d96b8dfb9c1a4eb)
  unreachable
}

define void @idx(i64 noundef %n, ptr noalias noundef nonnull readonly align 8 captures(none) %a.0, i64 noundef range(i64 0, 1152921504606846976) %a.1, ptr noalias noundef nonnull readonly align 8 captures(none) %b.0, i64 noundef range(i64 0, 1152921504606846976) %b.1, ptr noalias noundef nonnull writeonly align 8 captures(none) %c.0, i64 noundef range(i64 0, 1152921504606846976) %c.1) unnamed_addr {
start:
  %_2711.not = icmp eq i64 %n, 0
  br i1 %_2711.not, label %bb8, label %bb7

bb1.loopexit:
  %indvars.iv.next = add i64 %indvars.iv, %n
  %exitcond18.not = icmp eq i64 %0, %n
  br i1 %exitcond18.not, label %bb8, label %bb7

bb8:
  ret void

bb7:
  %indvars.iv = phi i64 [ %indvars.iv.next, %bb1.loopexit ], [ 0, %start ]
  %iter.sroa.0.012 = phi i64 [ %0, %bb1.loopexit ], [ 0, %start ]
  %0 = add nuw i64 %iter.sroa.0.012, 1
  %_15 = mul i64 %iter.sroa.0.012, %n
  br label %bb9

bb9:
  %iter1.sroa.0.010 = phi i64 [ 0, %bb7 ], [ %1, %bb6 ]
  %1 = add nuw nsw i64 %iter1.sroa.0.010, 1
  br label %bb11

bb12:
  %_23 = add nuw nsw i64 %iter1.sroa.0.010, %_15
  %_26 = icmp ult i64 %_23, %c.1
  br i1 %_26, label %bb6, label %panic

bb11:
  %iter2.sroa.0.09 = phi i64 [ 0, %bb9 ], [ %2, %bb5 ]
  %s.sroa.0.08 = phi double [ 0.000000e+00, %bb9 ], [ %6, %bb5 ]
  %2 = add nuw nsw i64 %iter2.sroa.0.09, 1
  %_14 = add nuw nsw i64 %iter2.sroa.0.09, %_15
  %_17 = icmp ult i64 %_14, %a.1
  br i1 %_17, label %bb4, label %panic3

bb6:
  %3 = getelementptr inbounds nuw double, ptr %c.0, i64 %_23
  store double %6, ptr %3, align 8
  %exitcond17.not = icmp eq i64 %1, %n
  br i1 %exitcond17.not, label %bb1.loopexit, label %bb9

panic:
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %_23, i64 noundef %c.1, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_d469c5d8cc5876a87c9933b21f269469)
  unreachable

bb4:
  %_20 = mul i64 %iter2.sroa.0.09, %n
  %_19 = add i64 %_20, %iter1.sroa.0.010
  %_22 = icmp ult i64 %_19, %b.1
  br i1 %_22, label %bb5, label %panic4

panic3:
  %umax = tail call i64 @llvm.umax.i64(i64 %a.1, i64 %indvars.iv)
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %umax, i64 noundef %a.1, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_003a6bf3568ea17ece0d4728b3122331)
  unreachable

bb5:
  %4 = getelementptr inbounds nuw double, ptr %a.0, i64 %_14
  %_13 = load double, ptr %4, align 8
  %5 = getelementptr inbounds nuw double, ptr %b.0, i64 %_19
  %_18 = load double, ptr %5, align 8
  %_12 = fmul double %_13, %_18
  %6 = fadd double %s.sroa.0.08, %_12
  %exitcond.not = icmp eq i64 %2, %n
  br i1 %exitcond.not, label %bb12, label %bb11

panic4:
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %_19, i64 noundef %b.1, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_d8355243b8cdf18a9340eb0bab5e81d1)
  unreachable
}

define void @iters(i64 noundef %n, ptr noalias noundef nonnull readonly align 4 captures(address) %a.0, i64 noundef range(i64 0, 2305843009213693952) %a.1, ptr noalias noundef nonnull readonly align 4 captures(none) %b.0, i64 noundef range(i64 0, 2305843009213693952) %b.1, ptr noalias noundef nonnull align 4 captures(none) %c.0, i64 noundef range(i64 0, 2305843009213693952) %c.1) unnamed_addr personality ptr @rust_eh_personality {
start:
  %0 = icmp eq i64 %n, 0
  br i1 %0, label %bb2.i, label %_ZN4core4iter6traits8iterator8Iterator3zip17hcc40c447f2ae654dE.exit

bb2.i:
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt(ptr noundef nonnull @alloc_a6e8913658d98d0dbd0444b57ddfd811, ptr noundef nonnull inttoptr (i64 55 to ptr), ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_97ad7e60cf67e1e6b663d7f7b3ab4499)
  unreachable

_ZN4core4iter6traits8iterator8Iterator3zip17hcc40c447f2ae654dE.exit:
  %n.i.i.i.i = udiv i64 %a.1, %n
  %n.i.i2.i.i = udiv i64 %c.1, %n
  %_0.sroa.0.0.i.i.i = tail call noundef i64 @llvm.umin.i64(i64 %n.i.i2.i.i, i64 %n.i.i.i.i)
  %_2.i34.not = icmp eq i64 %_0.sroa.0.0.i.i.i, 0
  br i1 %_2.i34.not, label %bb7, label %bb6.preheader

bb6.preheader:
  %_39.idx = shl nuw nsw i64 %n, 2
  br label %"_ZN110_$LT$core..iter..adapters..enumerate..Enumerate$LT$I$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$4next17h4ea152e54d9cb855E.exit.preheader"

bb4.loopexit:
  %_2.i = icmp samesign ult i64 %1, %_0.sroa.0.0.i.i.i
  br i1 %_2.i, label %"_ZN110_$LT$core..iter..adapters..enumerate..Enumerate$LT$I$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$4next17h4ea152e54d9cb855E.exit.preheader", label %bb7

"_ZN110_$LT$core..iter..adapters..enumerate..Enumerate$LT$I$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$4next17h4ea152e54d9cb855E.exit.preheader":
  %iter.sroa.16.035 = phi i64 [ %1, %bb4.loopexit ], [ 0, %bb6.preheader ]
  %1 = add nuw nsw i64 %iter.sroa.16.035, 1
  %start1.i.i = mul i64 %iter.sroa.16.035, %n
  %data.i.i8 = getelementptr inbounds nuw i32, ptr %a.0, i64 %start1.i.i
  %data.i4.i = getelementptr inbounds nuw i32, ptr %c.0, i64 %start1.i.i
  %_39 = getelementptr inbounds nuw i8, ptr %data.i.i8, i64 %_39.idx
  br label %"_ZN110_$LT$core..iter..adapters..enumerate..Enumerate$LT$I$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$4next17h4ea152e54d9cb855E.exit"

bb7:
  ret void

bb8.loopexit:
  %_6.i.i = icmp eq ptr %_16.i.i, %_39
  br i1 %_6.i.i, label %bb4.loopexit, label %"_ZN110_$LT$core..iter..adapters..enumerate..Enumerate$LT$I$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$4next17h4ea152e54d9cb855E.exit"

"_ZN110_$LT$core..iter..adapters..enumerate..Enumerate$LT$I$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$4next17h4ea152e54d9cb855E.exit":
  %iter1.sroa.7.033 = phi i64 [ %_9.0.i, %bb8.loopexit ], [ 0, %"_ZN110_$LT$core..iter..adapters..enumerate..Enumerate$LT$I$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$4next17h4ea152e54d9cb855E.exit.preheader" ]
  %iter1.sroa.0.032 = phi ptr [ %_16.i.i, %bb8.loopexit ], [ %data.i.i8, %"_ZN110_$LT$core..iter..adapters..enumerate..Enumerate$LT$I$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$4next17h4ea152e54d9cb855E.exit.preheader" ]
  %_16.i.i = getelementptr inbounds nuw i8, ptr %iter1.sroa.0.032, i64 4
  %_9.0.i = add nuw nsw i64 %iter1.sroa.7.033, 1
  %_22 = mul i64 %iter1.sroa.7.033, %n
  %_23 = mul i64 %_9.0.i, %n
  %_50 = icmp ult i64 %_23, %_22
  %_44.not = icmp ugt i64 %_23, %b.1
  %or.cond = or i1 %_50, %_44.not
  br i1 %or.cond, label %bb19, label %bb17

bb17:
  %_53 = getelementptr inbounds nuw i32, ptr %b.0, i64 %_22
  %_70 = load i32, ptr %iter1.sroa.0.032, align 4
  br label %bb14

bb19:
  tail call void @_RNvNtNtCsgEmfK2I1SDS_4core5slice5index16slice_index_fail(i64 noundef %_22, i64 noundef %_23, i64 noundef %b.1, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_b8d98622a6c09fe2ab68c270882c2164)
  unreachable

bb14:
  %iter2.sroa.8.030 = phi i64 [ 0, %bb17 ], [ %2, %bb14 ]
  %2 = add nuw i64 %iter2.sroa.8.030, 1
  %_3.i.i = getelementptr inbounds nuw i32, ptr %_53, i64 %iter2.sroa.8.030
  %_3.i2.i = getelementptr inbounds nuw i32, ptr %data.i4.i, i64 %iter2.sroa.8.030
  %_71 = load i32, ptr %_3.i.i, align 4
  %_72.0 = mul i32 %_71, %_70
  %3 = load i32, ptr %_3.i2.i, align 4
  %4 = add i32 %3, %_72.0
  store i32 %4, ptr %_3.i2.i, align 4
  %exitcond.not = icmp eq i64 %2, %n
  br i1 %exitcond.not, label %bb8.loopexit, label %bb14
}

define void @raw(i64 noundef %n, ptr noundef readonly captures(none) %a, ptr noundef readonly captures(none) %b, ptr noundef captures(none) %c) unnamed_addr {
start:
  %_226.not = icmp eq i64 %n, 0
  br i1 %_226.not, label %bb5, label %bb4

bb1.loopexit:
  %0 = add nuw i64 %iter.sroa.0.07, 1
  %exitcond9.not = icmp eq i64 %0, %n
  br i1 %exitcond9.not, label %bb5, label %bb4

bb5:
  ret void

bb4:
  %iter.sroa.0.07 = phi i64 [ %0, %bb1.loopexit ], [ 0, %start ]
  %_15 = mul i64 %iter.sroa.0.07, %n
  %1 = getelementptr i32, ptr %a, i64 %_15
  %2 = getelementptr i32, ptr %c, i64 %_15
  br label %bb6

bb2.loopexit:
  %3 = add nuw i64 %iter1.sroa.0.05, 1
  %exitcond8.not = icmp eq i64 %3, %n
  br i1 %exitcond8.not, label %bb1.loopexit, label %bb6

bb6:
  %iter1.sroa.0.05 = phi i64 [ 0, %bb4 ], [ %3, %bb2.loopexit ]
  %invariant.gep = getelementptr i32, ptr %b, i64 %iter1.sroa.0.05
  %_20 = getelementptr i32, ptr %2, i64 %iter1.sroa.0.05
  %_20.promoted = load i32, ptr %_20, align 4
  br label %bb8

bb8:
  %iter2.sroa.0.04 = phi i64 [ 0, %bb6 ], [ %5, %bb8 ]
  %4 = phi i32 [ %_20.promoted, %bb6 ], [ %6, %bb8 ]
  %5 = add nuw i64 %iter2.sroa.0.04, 1
  %_13 = getelementptr i32, ptr %1, i64 %iter2.sroa.0.04
  %_12 = load i32, ptr %_13, align 4
  %_19 = mul i64 %iter2.sroa.0.04, %n
  %gep = getelementptr i32, ptr %invariant.gep, i64 %_19
  %_16 = load i32, ptr %gep, align 4
  %_11 = mul i32 %_16, %_12
  %6 = add i32 %4, %_11
  store i32 %6, ptr %_20, align 4
  %exitcond.not = icmp eq i64 %5, %n
  br i1 %exitcond.not, label %bb2.loopexit, label %bb8
}

declare noundef range(i32 0, 10) i32 @rust_eh_personality(i32 noundef, i32 noundef, i64 noundef, ptr noundef, ptr noundef) unnamed_addr

declare void @_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt(ptr noundef nonnull, ptr noundef nonnull, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr

declare void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef, i64 noundef, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr

declare void @_RNvNtNtCsgEmfK2I1SDS_4core5slice5index16slice_index_fail(i64 noundef, i64 noundef, i64 noundef, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr

declare i64 @llvm.umax.i64(i64, i64)

declare i64 @llvm.umin.i64(i64, i64)
