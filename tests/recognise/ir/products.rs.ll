target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@alloc_a6e8913658d98d0dbd0444b57ddfd811 = private unnamed_addr constant [27 x i8] c"chunk size must be non-zero", align 1
@alloc_576a80294b44b16ea59fce613e0e3073 = private unnamed_addr constant [12 x i8] c"products.rs\00", align 1
@alloc_a07e408e39afffff695117cb64dcb68f = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00\81\00\00\00+\00\00\00" }>, align 8
@alloc_e95a348c72a21f82580084237c475f7a = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00\81\00\00\00A\00\00\00" }>, align 8
@alloc_c1f96abfd4a7506339a53971b7b0235f = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00\81\00\00\00\0D\00\00\00" }>, align 8
@alloc_ce7986b1262eed99bb0ab56590bb9c86 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00%\00\00\00!\00\00\00" }>, align 8
@alloc_d285808e46fd781be2c5d43d7cfc05bf = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00%\00\00\000\00\00\00" }>, align 8
@alloc_92740e3ee7e3abd8e9110b6bc26df320 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00%\00\00\00\11\00\00\00" }>, align 8
@alloc_f9b5b54903e4f0da9c99258a9beaae02 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\005\00\00\00\0D\00\00\00" }>, align 8
@alloc_8211c90ebf846d431e1a944108ac2244 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\003\00\00\00\18\00\00\00" }>, align 8
@alloc_d8d4d51fda288650fc39ae17e0fc7290 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\003\00\00\00'\00\00\00" }>, align 8
@alloc_4325a1807d1cf57932ccd0d1e9884e3d = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00u\00\00\00 \00\00\00" }>, align 8
@alloc_007530f4ccf754c6b8233c01e35bc2dd = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00u\00\00\005\00\00\00" }>, align 8
@alloc_f87068582e55813cfaaec48768877fce = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00u\00\00\00C\00\00\00" }>, align 8
@alloc_5db4a23b57aa4ded987d9e7185901bd6 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00h\00\00\00\22\00\00\00" }>, align 8
@alloc_72105abfcf47996d5aec90898af29d9e = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00h\00\00\00.\00\00\00" }>, align 8
@alloc_5b784770433cb8dd71882027d017191d = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00h\00\00\00\11\00\00\00" }>, align 8
@alloc_15ebbff925b3f6c8943e42b883084623 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00J\00\00\00\1A\00\00\00" }>, align 8
@alloc_2cdf4504ef06eeefb0c88cab4b6cca7f = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00J\00\00\004\00\00\00" }>, align 8
@alloc_1b0e611e6fd175e37fe8a95462e0e7d3 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00\9A\00\00\00 \00\00\00" }>, align 8
@alloc_d23b99d6694389978cea7ed4ee5d4587 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00\9A\00\00\00<\00\00\00" }>, align 8
@alloc_9e89757344c8fa862b8378b0471b2c64 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00\9A\00\00\00V\00\00\00" }>, align 8
@alloc_457adaa7319078ad4eacabc895700a7a = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00\8D\00\00\00 \00\00\00" }>, align 8
@alloc_637ac24056f93c1e2bb9bb1bc9e1c0b8 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00\8D\00\00\00:\00\00\00" }>, align 8
@alloc_d8b12af251e8a2940d0c462cbc96e2ec = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_576a80294b44b16ea59fce613e0e3073, [16 x i8] c"\0B\00\00\00\00\00\00\00\8D\00\00\00T\00\00\00" }>, align 8

; Function Attrs: nounwind nonlazybind uwtable
define void @bytes_into_words(ptr noundef writeonly captures(none) %c, ptr noundef readonly captures(address_is_null) %a, ptr noundef readonly captures(address_is_null) %b, i64 noundef %m, i64 noundef %0, i64 noundef %1) unnamed_addr #0 personality ptr @rust_eh_personality {
start:
  %_10 = mul i64 %0, %m
  %_12 = mul i64 %1, %m
  %_14 = mul i64 %1, %0
  %_3413.not = icmp eq i64 %m, 0
  br i1 %_3413.not, label %bb5, label %bb4.lr.ph

bb4.lr.ph:                                        ; preds = %start
  %_3811.not = icmp eq i64 %0, 0
  %_0.i.i.i11.not.i = icmp eq i64 %1, 0
  %2 = icmp ne ptr %a, null
  %3 = icmp ne ptr %b, null
  br label %bb4

bb1.loopexit.loopexit:                            ; preds = %bb3
  br label %bb1.loopexit

bb1.loopexit:                                     ; preds = %bb1.loopexit.loopexit, %bb4
  %exitcond19.not = icmp eq i64 %4, %m
  br i1 %exitcond19.not, label %bb5.loopexit, label %bb4

bb5.loopexit:                                     ; preds = %bb1.loopexit
  br label %bb5

bb5:                                              ; preds = %bb5.loopexit, %start
  ret void

bb4:                                              ; preds = %bb4.lr.ph, %bb1.loopexit
  %iter.sroa.0.014 = phi i64 [ 0, %bb4.lr.ph ], [ %4, %bb1.loopexit ]
  %4 = add nuw i64 %iter.sroa.0.014, 1
  br i1 %_3811.not, label %bb1.loopexit, label %bb6.lr.ph

bb6.lr.ph:                                        ; preds = %bb4
  %_6.i.i.i = mul i64 %iter.sroa.0.014, %1
  %_29 = mul i64 %iter.sroa.0.014, %0
  br label %bb6

bb6:                                              ; preds = %bb6.lr.ph, %bb3
  %iter3.sroa.0.012 = phi i64 [ 0, %bb6.lr.ph ], [ %5, %bb3 ]
  %5 = add nuw i64 %iter3.sroa.0.012, 1
  br i1 %_0.i.i.i11.not.i, label %bb8, label %bb3.i.preheader

bb3.i.preheader:                                  ; preds = %bb6
  br label %bb3.i

bb3.i:                                            ; preds = %bb3.i.preheader, %"_ZN4core4iter8adapters3map8map_fold28_$u7b$$u7b$closure$u7d$$u7d$17h1cbfeec1d16035ecE.exit.i"
  %accum.sroa.0.013.i = phi i32 [ %_4.0.i.i.i, %"_ZN4core4iter8adapters3map8map_fold28_$u7b$$u7b$closure$u7d$$u7d$17h1cbfeec1d16035ecE.exit.i" ], [ 0, %bb3.i.preheader ]
  %self.sroa.0.012.i = phi i64 [ %_0.i1.i.i.i, %"_ZN4core4iter8adapters3map8map_fold28_$u7b$$u7b$closure$u7d$$u7d$17h1cbfeec1d16035ecE.exit.i" ], [ 0, %bb3.i.preheader ]
  %_0.i1.i.i.i = add nuw i64 %self.sroa.0.012.i, 1
  %_5.i.i.i = add nuw i64 %self.sroa.0.012.i, %_6.i.i.i
  %_10.i.i.i = icmp ult i64 %_5.i.i.i, %_12
  br i1 %_10.i.i.i, label %bb1.i.i.i, label %panic.i.i.i

bb1.i.i.i:                                        ; preds = %bb3.i
  %_14.i.i.i = mul i64 %self.sroa.0.012.i, %0
  %_13.i.i.i = add i64 %_14.i.i.i, %iter3.sroa.0.012
  %_18.i.i.i = icmp ult i64 %_13.i.i.i, %_14
  br i1 %_18.i.i.i, label %"_ZN4core4iter8adapters3map8map_fold28_$u7b$$u7b$closure$u7d$$u7d$17h1cbfeec1d16035ecE.exit.i", label %panic1.i.i.i.invoke.loopexit

panic.i.i.i:                                      ; preds = %bb3.i
  %_6.i.i.i.lcssa = phi i64 [ %_6.i.i.i, %bb3.i ]
  %umax.i = tail call i64 @llvm.umax.i64(i64 %_12, i64 %_6.i.i.i.lcssa)
  br label %panic1.i.i.i.invoke

panic1.i.i.i.invoke.loopexit:                     ; preds = %bb1.i.i.i
  %_13.i.i.i.lcssa = phi i64 [ %_13.i.i.i, %bb1.i.i.i ]
  br label %panic1.i.i.i.invoke

panic1.i.i.i.invoke:                              ; preds = %panic1.i.i.i.invoke.loopexit, %panic.i.i.i
  %6 = phi i64 [ %umax.i, %panic.i.i.i ], [ %_13.i.i.i.lcssa, %panic1.i.i.i.invoke.loopexit ]
  %7 = phi i64 [ %_12, %panic.i.i.i ], [ %_14, %panic1.i.i.i.invoke.loopexit ]
  %8 = phi ptr [ @alloc_a07e408e39afffff695117cb64dcb68f, %panic.i.i.i ], [ @alloc_e95a348c72a21f82580084237c475f7a, %panic1.i.i.i.invoke.loopexit ]
  invoke void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %6, i64 noundef %7, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %8) #9
          to label %panic1.i.i.i.cont unwind label %terminate

panic1.i.i.i.cont:                                ; preds = %panic1.i.i.i.invoke
  unreachable

"_ZN4core4iter8adapters3map8map_fold28_$u7b$$u7b$closure$u7d$$u7d$17h1cbfeec1d16035ecE.exit.i": ; preds = %bb1.i.i.i
  tail call void @llvm.assume(i1 %2)
  %9 = getelementptr inbounds nuw i8, ptr %a, i64 %_5.i.i.i
  %_4.i.i3.i = load i8, ptr %9, align 1, !noundef !10
  %_3.i.i.i = sext i8 %_4.i.i3.i to i32
  tail call void @llvm.assume(i1 %3)
  %10 = getelementptr inbounds nuw i8, ptr %b, i64 %_13.i.i.i
  %_12.i.i.i = load i8, ptr %10, align 1, !noundef !10
  %_11.i.i.i = sext i8 %_12.i.i.i to i32
  %_0.i.i.i = mul nsw i32 %_11.i.i.i, %_3.i.i.i
  %_4.0.i.i.i = add i32 %_0.i.i.i, %accum.sroa.0.013.i
  %exitcond.not.i = icmp eq i64 %_0.i1.i.i.i, %1
  br i1 %exitcond.not.i, label %bb8.loopexit, label %bb3.i

terminate:                                        ; preds = %panic1.i.i.i.invoke, %panic
  %11 = landingpad { ptr, i32 }
          filter [0 x ptr] zeroinitializer
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking19panic_cannot_unwind() #10
  unreachable

bb8.loopexit:                                     ; preds = %"_ZN4core4iter8adapters3map8map_fold28_$u7b$$u7b$closure$u7d$$u7d$17h1cbfeec1d16035ecE.exit.i"
  %_4.0.i.i.i.lcssa = phi i32 [ %_4.0.i.i.i, %"_ZN4core4iter8adapters3map8map_fold28_$u7b$$u7b$closure$u7d$$u7d$17h1cbfeec1d16035ecE.exit.i" ]
  br label %bb8

bb8:                                              ; preds = %bb8.loopexit, %bb6
  %accum.sroa.0.0.lcssa.i = phi i32 [ 0, %bb6 ], [ %_4.0.i.i.i.lcssa, %bb8.loopexit ]
  %_28 = add nuw i64 %iter3.sroa.0.012, %_29
  %_30 = icmp ult i64 %_28, %_10
  br i1 %_30, label %bb3, label %panic

bb3:                                              ; preds = %bb8
  %12 = getelementptr inbounds nuw i32, ptr %c, i64 %_28
  store i32 %accum.sroa.0.0.lcssa.i, ptr %12, align 4
  %exitcond.not = icmp eq i64 %5, %0
  br i1 %exitcond.not, label %bb1.loopexit.loopexit, label %bb6

panic:                                            ; preds = %bb8
  %_28.lcssa = phi i64 [ %_28, %bb8 ]
  invoke void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %_28.lcssa, i64 noundef %_10, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_c1f96abfd4a7506339a53971b7b0235f) #11
          to label %unreachable unwind label %terminate

unreachable:                                      ; preds = %panic
  unreachable
}

; Function Attrs: nounwind nonlazybind uwtable
define void @checked_slices(ptr noundef captures(none) %c, ptr noundef readonly captures(none) %a, ptr noundef readonly captures(none) %b, i64 noundef %m, i64 noundef %n, i64 noundef %k) unnamed_addr #0 personality ptr @rust_eh_personality {
start:
  %_8 = mul i64 %n, %m
  %_10 = mul i64 %k, %m
  %_12 = mul i64 %k, %n
  %_3411.not = icmp eq i64 %m, 0
  br i1 %_3411.not, label %bb8, label %bb7.lr.ph

bb7.lr.ph:                                        ; preds = %start
  %_389.not = icmp eq i64 %n, 0
  %_427.not = icmp eq i64 %k, 0
  br label %bb7

bb1.loopexit.loopexit:                            ; preds = %bb2.loopexit
  br label %bb1.loopexit

bb1.loopexit:                                     ; preds = %bb1.loopexit.loopexit, %bb7
  %exitcond21.not = icmp eq i64 %0, %m
  br i1 %exitcond21.not, label %bb8.loopexit, label %bb7

bb8.loopexit:                                     ; preds = %bb1.loopexit
  br label %bb8

bb8:                                              ; preds = %bb8.loopexit, %start
  ret void

bb7:                                              ; preds = %bb7.lr.ph, %bb1.loopexit
  %iter.sroa.0.012 = phi i64 [ 0, %bb7.lr.ph ], [ %0, %bb1.loopexit ]
  %0 = add nuw i64 %iter.sroa.0.012, 1
  br i1 %_389.not, label %bb1.loopexit, label %bb9.lr.ph

bb9.lr.ph:                                        ; preds = %bb7
  %_22 = mul i64 %iter.sroa.0.012, %k
  %_29 = mul i64 %iter.sroa.0.012, %n
  br label %bb9

bb2.loopexit.loopexit:                            ; preds = %bb6
  br label %bb2.loopexit

bb2.loopexit:                                     ; preds = %bb2.loopexit.loopexit, %bb9
  %exitcond20.not = icmp eq i64 %1, %n
  br i1 %exitcond20.not, label %bb1.loopexit.loopexit, label %bb9

bb9:                                              ; preds = %bb9.lr.ph, %bb2.loopexit
  %iter1.sroa.0.010 = phi i64 [ 0, %bb9.lr.ph ], [ %1, %bb2.loopexit ]
  %1 = add nuw i64 %iter1.sroa.0.010, 1
  br i1 %_427.not, label %bb2.loopexit, label %bb11.lr.ph

bb11.lr.ph:                                       ; preds = %bb9
  %_28 = add i64 %iter1.sroa.0.010, %_29
  %_30 = icmp uge i64 %_28, %_8
  %2 = getelementptr inbounds nuw double, ptr %c, i64 %_28
  br label %bb11

bb11:                                             ; preds = %bb11.lr.ph, %bb6
  %iter2.sroa.0.08 = phi i64 [ 0, %bb11.lr.ph ], [ %3, %bb6 ]
  %3 = add nuw i64 %iter2.sroa.0.08, 1
  %_21 = add nuw i64 %iter2.sroa.0.08, %_22
  %_23 = icmp ult i64 %_21, %_10
  br i1 %_23, label %bb4, label %panic4.invoke.loopexit

bb4:                                              ; preds = %bb11
  %_26 = mul i64 %iter2.sroa.0.08, %n
  %_25 = add i64 %_26, %iter1.sroa.0.010
  %_27 = icmp uge i64 %_25, %_12
  %brmerge = select i1 %_27, i1 true, i1 %_30
  br i1 %brmerge, label %panic4.invoke.split.loop.exit, label %bb6

terminate:                                        ; preds = %panic4.invoke
  %4 = landingpad { ptr, i32 }
          filter [0 x ptr] zeroinitializer
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking19panic_cannot_unwind() #10
  unreachable

bb6:                                              ; preds = %bb4
  %5 = getelementptr inbounds nuw double, ptr %a, i64 %_21
  %_20 = load double, ptr %5, align 8, !noundef !10
  %6 = getelementptr inbounds nuw double, ptr %b, i64 %_25
  %_24 = load double, ptr %6, align 8, !noundef !10
  %_19 = fmul double %_20, %_24
  %7 = load double, ptr %2, align 8, !noundef !10
  %8 = fadd double %7, %_19
  store double %8, ptr %2, align 8
  %exitcond.not = icmp eq i64 %3, %k
  br i1 %exitcond.not, label %bb2.loopexit.loopexit, label %bb11

panic4.invoke.split.loop.exit:                    ; preds = %bb4
  %_28.lcssa43 = phi i64 [ %_28, %bb4 ]
  %_25.lcssa = phi i64 [ %_25, %bb4 ]
  %_27.lcssa = phi i1 [ %_27, %bb4 ]
  %_25.mux.le = select i1 %_27.lcssa, i64 %_25.lcssa, i64 %_28.lcssa43
  %_12.mux.le = select i1 %_27.lcssa, i64 %_12, i64 %_8
  %alloc_d285808e46fd781be2c5d43d7cfc05bf.mux.le = select i1 %_27.lcssa, ptr @alloc_d285808e46fd781be2c5d43d7cfc05bf, ptr @alloc_92740e3ee7e3abd8e9110b6bc26df320
  br label %panic4.invoke

panic4.invoke.loopexit:                           ; preds = %bb11
  %_21.lcssa = phi i64 [ %_21, %bb11 ]
  br label %panic4.invoke

panic4.invoke:                                    ; preds = %panic4.invoke.loopexit, %panic4.invoke.split.loop.exit
  %9 = phi i64 [ %_25.mux.le, %panic4.invoke.split.loop.exit ], [ %_21.lcssa, %panic4.invoke.loopexit ]
  %10 = phi i64 [ %_12.mux.le, %panic4.invoke.split.loop.exit ], [ %_10, %panic4.invoke.loopexit ]
  %11 = phi ptr [ %alloc_d285808e46fd781be2c5d43d7cfc05bf.mux.le, %panic4.invoke.split.loop.exit ], [ @alloc_ce7986b1262eed99bb0ab56590bb9c86, %panic4.invoke.loopexit ]
  invoke void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %9, i64 noundef %10, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %11) #11
          to label %panic4.cont unwind label %terminate

panic4.cont:                                      ; preds = %panic4.invoke
  unreachable
}

; Function Attrs: nounwind nonlazybind uwtable
define void @checked_sums(ptr noundef writeonly captures(none) %c, ptr noundef readonly captures(none) %a, ptr noundef readonly captures(none) %b, i64 noundef %m, i64 noundef %n, i64 noundef %k) unnamed_addr #0 personality ptr @rust_eh_personality {
start:
  %_8 = mul i64 %n, %m
  %_10 = mul i64 %k, %m
  %_12 = mul i64 %k, %n
  %_3513.not = icmp eq i64 %m, 0
  br i1 %_3513.not, label %bb8, label %bb7.lr.ph

bb7.lr.ph:                                        ; preds = %start
  %_3911.not = icmp eq i64 %n, 0
  %_438.not = icmp eq i64 %k, 0
  br label %bb7

bb1.loopexit.loopexit:                            ; preds = %bb6
  br label %bb1.loopexit

bb1.loopexit:                                     ; preds = %bb1.loopexit.loopexit, %bb7
  %indvars.iv.next = add i64 %indvars.iv, %k
  %exitcond20.not = icmp eq i64 %0, %m
  br i1 %exitcond20.not, label %bb8.loopexit, label %bb7

bb8.loopexit:                                     ; preds = %bb1.loopexit
  br label %bb8

bb8:                                              ; preds = %bb8.loopexit, %start
  ret void

bb7:                                              ; preds = %bb7.lr.ph, %bb1.loopexit
  %indvars.iv = phi i64 [ 0, %bb7.lr.ph ], [ %indvars.iv.next, %bb1.loopexit ]
  %iter.sroa.0.014 = phi i64 [ 0, %bb7.lr.ph ], [ %0, %bb1.loopexit ]
  %0 = add nuw i64 %iter.sroa.0.014, 1
  br i1 %_3911.not, label %bb1.loopexit, label %bb9.lr.ph

bb9.lr.ph:                                        ; preds = %bb7
  %_23 = mul i64 %iter.sroa.0.014, %k
  %_30 = mul i64 %iter.sroa.0.014, %n
  br label %bb9

bb9:                                              ; preds = %bb9.lr.ph, %bb6
  %iter1.sroa.0.012 = phi i64 [ 0, %bb9.lr.ph ], [ %1, %bb6 ]
  %1 = add nuw i64 %iter1.sroa.0.012, 1
  br i1 %_438.not, label %bb12, label %bb11.preheader

bb11.preheader:                                   ; preds = %bb9
  br label %bb11

bb12.loopexit:                                    ; preds = %bb5
  %.lcssa = phi float [ %7, %bb5 ]
  br label %bb12

bb12:                                             ; preds = %bb12.loopexit, %bb9
  %sum.sroa.0.0.lcssa = phi float [ 0.000000e+00, %bb9 ], [ %.lcssa, %bb12.loopexit ]
  %_29 = add nuw i64 %iter1.sroa.0.012, %_30
  %_31 = icmp ult i64 %_29, %_8
  br i1 %_31, label %bb6, label %panic4.invoke.loopexit46

bb11:                                             ; preds = %bb11.preheader, %bb5
  %iter2.sroa.0.010 = phi i64 [ %2, %bb5 ], [ 0, %bb11.preheader ]
  %sum.sroa.0.09 = phi float [ %7, %bb5 ], [ 0.000000e+00, %bb11.preheader ]
  %2 = add nuw i64 %iter2.sroa.0.010, 1
  %_22 = add nuw i64 %iter2.sroa.0.010, %_23
  %_24 = icmp ult i64 %_22, %_10
  br i1 %_24, label %bb4, label %panic3

bb6:                                              ; preds = %bb12
  %3 = getelementptr inbounds nuw float, ptr %c, i64 %_29
  store float %sum.sroa.0.0.lcssa, ptr %3, align 4
  %exitcond19.not = icmp eq i64 %1, %n
  br i1 %exitcond19.not, label %bb1.loopexit.loopexit, label %bb9

terminate:                                        ; preds = %panic4.invoke
  %4 = landingpad { ptr, i32 }
          filter [0 x ptr] zeroinitializer
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking19panic_cannot_unwind() #10
  unreachable

bb4:                                              ; preds = %bb11
  %_27 = mul i64 %iter2.sroa.0.010, %n
  %_26 = add i64 %_27, %iter1.sroa.0.012
  %_28 = icmp ult i64 %_26, %_12
  br i1 %_28, label %bb5, label %panic4.invoke.loopexit

panic3:                                           ; preds = %bb11
  %indvars.iv.lcssa = phi i64 [ %indvars.iv, %bb11 ]
  %umax.le = tail call i64 @llvm.umax.i64(i64 %indvars.iv.lcssa, i64 %_10)
  br label %panic4.invoke

bb5:                                              ; preds = %bb4
  %5 = getelementptr inbounds nuw float, ptr %a, i64 %_22
  %_21 = load float, ptr %5, align 4, !noundef !10
  %6 = getelementptr inbounds nuw float, ptr %b, i64 %_26
  %_25 = load float, ptr %6, align 4, !noundef !10
  %_20 = fmul float %_21, %_25
  %7 = fadd float %sum.sroa.0.09, %_20
  %exitcond.not = icmp eq i64 %2, %k
  br i1 %exitcond.not, label %bb12.loopexit, label %bb11

panic4.invoke.loopexit:                           ; preds = %bb4
  %_26.lcssa = phi i64 [ %_26, %bb4 ]
  br label %panic4.invoke

panic4.invoke.loopexit46:                         ; preds = %bb12
  %_29.lcssa = phi i64 [ %_29, %bb12 ]
  br label %panic4.invoke

panic4.invoke:                                    ; preds = %panic4.invoke.loopexit46, %panic4.invoke.loopexit, %panic3
  %8 = phi i64 [ %_26.lcssa, %panic4.invoke.loopexit ], [ %umax.le, %panic3 ], [ %_29.lcssa, %panic4.invoke.loopexit46 ]
  %9 = phi i64 [ %_12, %panic4.invoke.loopexit ], [ %_10, %panic3 ], [ %_8, %panic4.invoke.loopexit46 ]
  %10 = phi ptr [ @alloc_d8d4d51fda288650fc39ae17e0fc7290, %panic4.invoke.loopexit ], [ @alloc_8211c90ebf846d431e1a944108ac2244, %panic3 ], [ @alloc_f9b5b54903e4f0da9c99258a9beaae02, %panic4.invoke.loopexit46 ]
  invoke void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %8, i64 noundef %9, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %10) #11
          to label %panic4.cont unwind label %terminate

panic4.cont:                                      ; preds = %panic4.invoke
  unreachable
}

; Function Attrs: nounwind nonlazybind uwtable
define void @fused_sums(ptr noundef captures(none) %c, ptr noundef readonly captures(none) %a, ptr noundef readonly captures(none) %b, i64 noundef %m, i64 noundef %n, i64 noundef %k) unnamed_addr #0 personality ptr @rust_eh_personality {
start:
  %_8 = mul i64 %n, %m
  %_10 = mul i64 %k, %m
  %_12 = mul i64 %k, %n
  %_3511.not = icmp eq i64 %m, 0
  br i1 %_3511.not, label %bb8, label %bb7.lr.ph

bb7.lr.ph:                                        ; preds = %start
  %_399.not = icmp eq i64 %k, 0
  %_437.not = icmp eq i64 %n, 0
  br label %bb7

bb1.loopexit.loopexit:                            ; preds = %bb2.loopexit
  br label %bb1.loopexit

bb1.loopexit:                                     ; preds = %bb1.loopexit.loopexit, %bb7
  %exitcond19.not = icmp eq i64 %0, %m
  br i1 %exitcond19.not, label %bb8.loopexit, label %bb7

bb8.loopexit:                                     ; preds = %bb1.loopexit
  br label %bb8

bb8:                                              ; preds = %bb8.loopexit, %start
  ret void

bb7:                                              ; preds = %bb7.lr.ph, %bb1.loopexit
  %iter.sroa.0.012 = phi i64 [ 0, %bb7.lr.ph ], [ %0, %bb1.loopexit ]
  %0 = add nuw i64 %iter.sroa.0.012, 1
  br i1 %_399.not, label %bb1.loopexit, label %bb9.lr.ph

bb9.lr.ph:                                        ; preds = %bb7
  %_22 = mul i64 %iter.sroa.0.012, %k
  %_30 = mul i64 %iter.sroa.0.012, %n
  br label %bb9

bb2.loopexit.loopexit:                            ; preds = %bb6
  br label %bb2.loopexit

bb2.loopexit:                                     ; preds = %bb2.loopexit.loopexit, %bb9
  %exitcond18.not = icmp eq i64 %1, %k
  br i1 %exitcond18.not, label %bb1.loopexit.loopexit, label %bb9

bb9:                                              ; preds = %bb9.lr.ph, %bb2.loopexit
  %iter1.sroa.0.010 = phi i64 [ 0, %bb9.lr.ph ], [ %1, %bb2.loopexit ]
  %1 = add nuw i64 %iter1.sroa.0.010, 1
  br i1 %_437.not, label %bb2.loopexit, label %bb11.lr.ph

bb11.lr.ph:                                       ; preds = %bb9
  %_21 = add i64 %iter1.sroa.0.010, %_22
  %_23 = icmp ult i64 %_21, %_10
  %2 = getelementptr inbounds nuw double, ptr %a, i64 %_21
  %_26 = mul i64 %iter1.sroa.0.010, %n
  br i1 %_23, label %bb11.preheader, label %panic4.invoke.loopexit38

bb11.preheader:                                   ; preds = %bb11.lr.ph
  br label %bb11

bb11:                                             ; preds = %bb11.preheader, %bb6
  %iter2.sroa.0.08 = phi i64 [ %3, %bb6 ], [ 0, %bb11.preheader ]
  %3 = add nuw i64 %iter2.sroa.0.08, 1
  %_20 = load double, ptr %2, align 8, !noundef !10
  %_25 = add nuw i64 %iter2.sroa.0.08, %_26
  %_27 = icmp ult i64 %_25, %_12
  br i1 %_27, label %bb5, label %panic4.invoke.loopexit

terminate:                                        ; preds = %panic4.invoke
  %4 = landingpad { ptr, i32 }
          filter [0 x ptr] zeroinitializer
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking19panic_cannot_unwind() #10
  unreachable

bb5:                                              ; preds = %bb11
  %_29 = add nuw i64 %iter2.sroa.0.08, %_30
  %_31 = icmp ult i64 %_29, %_8
  br i1 %_31, label %bb6, label %panic4.invoke.loopexit

bb6:                                              ; preds = %bb5
  %5 = getelementptr inbounds nuw double, ptr %b, i64 %_25
  %_24 = load double, ptr %5, align 8, !noundef !10
  %6 = getelementptr inbounds nuw double, ptr %c, i64 %_29
  %_28 = load double, ptr %6, align 8, !noundef !10
  %7 = tail call double @llvm.fma.f64(double %_20, double %_24, double %_28)
  store double %7, ptr %6, align 8
  %exitcond.not = icmp eq i64 %3, %n
  br i1 %exitcond.not, label %bb2.loopexit.loopexit, label %bb11

panic4.invoke.loopexit:                           ; preds = %bb11, %bb5
  %.ph = phi i64 [ %_29, %bb5 ], [ %_25, %bb11 ]
  %.ph36 = phi i64 [ %_8, %bb5 ], [ %_12, %bb11 ]
  %.ph37 = phi ptr [ @alloc_f87068582e55813cfaaec48768877fce, %bb5 ], [ @alloc_007530f4ccf754c6b8233c01e35bc2dd, %bb11 ]
  br label %panic4.invoke

panic4.invoke.loopexit38:                         ; preds = %bb11.lr.ph
  %_21.lcssa = phi i64 [ %_21, %bb11.lr.ph ]
  br label %panic4.invoke

panic4.invoke:                                    ; preds = %panic4.invoke.loopexit38, %panic4.invoke.loopexit
  %8 = phi i64 [ %.ph, %panic4.invoke.loopexit ], [ %_21.lcssa, %panic4.invoke.loopexit38 ]
  %9 = phi i64 [ %.ph36, %panic4.invoke.loopexit ], [ %_10, %panic4.invoke.loopexit38 ]
  %10 = phi ptr [ %.ph37, %panic4.invoke.loopexit ], [ @alloc_4325a1807d1cf57932ccd0d1e9884e3d, %panic4.invoke.loopexit38 ]
  invoke void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %8, i64 noundef %9, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %10) #11
          to label %panic4.cont unwind label %terminate

panic4.cont:                                      ; preds = %panic4.invoke
  unreachable
}

; Function Attrs: nounwind nonlazybind uwtable
define void @indexed_matrices(ptr noundef captures(none) %c, ptr noundef readonly captures(none) %a, ptr noundef readonly captures(none) %b, i64 noundef %m, i64 noundef %n, i64 noundef %k) unnamed_addr #0 personality ptr @rust_eh_personality {
start:
  %_7 = mul i64 %n, %m
  %_9 = mul i64 %k, %m
  %_11 = mul i64 %k, %n
  %_2911.not = icmp eq i64 %m, 0
  br i1 %_2911.not, label %bb6, label %bb5.lr.ph

bb5.lr.ph:                                        ; preds = %start
  %_339.not = icmp eq i64 %n, 0
  %_377.not = icmp eq i64 %k, 0
  br label %bb5

bb1.loopexit.loopexit:                            ; preds = %bb2.loopexit
  br label %bb1.loopexit

bb1.loopexit:                                     ; preds = %bb1.loopexit.loopexit, %bb5
  %exitcond21.not = icmp eq i64 %0, %m
  br i1 %exitcond21.not, label %bb6.loopexit, label %bb5

bb6.loopexit:                                     ; preds = %bb1.loopexit
  br label %bb6

bb6:                                              ; preds = %bb6.loopexit, %start
  ret void

bb5:                                              ; preds = %bb5.lr.ph, %bb1.loopexit
  %iter.sroa.0.012 = phi i64 [ 0, %bb5.lr.ph ], [ %0, %bb1.loopexit ]
  %0 = add nuw i64 %iter.sroa.0.012, 1
  br i1 %_339.not, label %bb1.loopexit, label %bb7.lr.ph

bb7.lr.ph:                                        ; preds = %bb5
  %_42 = mul i64 %iter.sroa.0.012, %k
  %_24 = mul i64 %iter.sroa.0.012, %n
  br label %bb7

bb2.loopexit.loopexit:                            ; preds = %bb4
  br label %bb2.loopexit

bb2.loopexit:                                     ; preds = %bb2.loopexit.loopexit, %bb7
  %exitcond20.not = icmp eq i64 %1, %n
  br i1 %exitcond20.not, label %bb1.loopexit.loopexit, label %bb7

bb7:                                              ; preds = %bb7.lr.ph, %bb2.loopexit
  %iter1.sroa.0.010 = phi i64 [ 0, %bb7.lr.ph ], [ %1, %bb2.loopexit ]
  %1 = add nuw i64 %iter1.sroa.0.010, 1
  br i1 %_377.not, label %bb2.loopexit, label %bb9.lr.ph

bb9.lr.ph:                                        ; preds = %bb7
  %_23 = add i64 %iter1.sroa.0.010, %_24
  %_25 = icmp uge i64 %_23, %_7
  %2 = getelementptr inbounds nuw double, ptr %c, i64 %_23
  br label %bb9

bb9:                                              ; preds = %bb9.lr.ph, %bb4
  %iter2.sroa.0.08 = phi i64 [ 0, %bb9.lr.ph ], [ %3, %bb4 ]
  %3 = add nuw i64 %iter2.sroa.0.08, 1
  %_41 = add nuw i64 %iter2.sroa.0.08, %_42
  %_43 = icmp ult i64 %_41, %_9
  br i1 %_43, label %bb11, label %panic4.invoke.loopexit

bb11:                                             ; preds = %bb9
  %_45 = mul i64 %iter2.sroa.0.08, %n
  %_44 = add i64 %_45, %iter1.sroa.0.010
  %_46 = icmp uge i64 %_44, %_11
  %brmerge = select i1 %_46, i1 true, i1 %_25
  br i1 %brmerge, label %panic4.invoke.split.loop.exit, label %bb4

terminate:                                        ; preds = %panic4.invoke
  %4 = landingpad { ptr, i32 }
          filter [0 x ptr] zeroinitializer
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking19panic_cannot_unwind() #10
  unreachable

bb4:                                              ; preds = %bb11
  %_20 = getelementptr inbounds nuw double, ptr %a, i64 %_41
  %_19 = load double, ptr %_20, align 8, !noundef !10
  %_22 = getelementptr inbounds nuw double, ptr %b, i64 %_44
  %_21 = load double, ptr %_22, align 8, !noundef !10
  %_18 = fmul double %_19, %_21
  %5 = load double, ptr %2, align 8, !noundef !10
  %6 = fadd double %5, %_18
  store double %6, ptr %2, align 8
  %exitcond.not = icmp eq i64 %3, %k
  br i1 %exitcond.not, label %bb2.loopexit.loopexit, label %bb9

panic4.invoke.split.loop.exit:                    ; preds = %bb11
  %_23.lcssa43 = phi i64 [ %_23, %bb11 ]
  %_44.lcssa = phi i64 [ %_44, %bb11 ]
  %_46.lcssa = phi i1 [ %_46, %bb11 ]
  %_44.mux.le = select i1 %_46.lcssa, i64 %_44.lcssa, i64 %_23.lcssa43
  %_11.mux.le = select i1 %_46.lcssa, i64 %_11, i64 %_7
  %alloc_72105abfcf47996d5aec90898af29d9e.mux.le = select i1 %_46.lcssa, ptr @alloc_72105abfcf47996d5aec90898af29d9e, ptr @alloc_5b784770433cb8dd71882027d017191d
  br label %panic4.invoke

panic4.invoke.loopexit:                           ; preds = %bb9
  %_41.lcssa = phi i64 [ %_41, %bb9 ]
  br label %panic4.invoke

panic4.invoke:                                    ; preds = %panic4.invoke.loopexit, %panic4.invoke.split.loop.exit
  %7 = phi i64 [ %_44.mux.le, %panic4.invoke.split.loop.exit ], [ %_41.lcssa, %panic4.invoke.loopexit ]
  %8 = phi i64 [ %_11.mux.le, %panic4.invoke.split.loop.exit ], [ %_9, %panic4.invoke.loopexit ]
  %9 = phi ptr [ %alloc_72105abfcf47996d5aec90898af29d9e.mux.le, %panic4.invoke.split.loop.exit ], [ @alloc_5db4a23b57aa4ded987d9e7185901bd6, %panic4.invoke.loopexit ]
  invoke void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %7, i64 noundef %8, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %9) #11
          to label %panic4.cont unwind label %terminate

panic4.cont:                                      ; preds = %panic4.invoke
  unreachable
}

; Function Attrs: nounwind nonlazybind uwtable
define void @iterators(ptr noundef captures(address_is_null) %c, ptr noundef readonly captures(address_is_null) %a, ptr noundef readonly captures(address_is_null) %b, i64 noundef %m, i64 noundef %n, i64 noundef %k) unnamed_addr #0 personality ptr @rust_eh_personality {
start:
  %_12 = mul i64 %k, %n
  %0 = icmp eq i64 %n, 0
  br i1 %0, label %bb2.i6.invoke, label %bb1, !prof !11

terminate:                                        ; preds = %bb2.i6.invoke
  %1 = landingpad { ptr, i32 }
          filter [0 x ptr] zeroinitializer
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking19panic_cannot_unwind() #10
  unreachable

bb1:                                              ; preds = %start
  %2 = icmp eq i64 %k, 0
  br i1 %2, label %bb2.i6.invoke, label %bb3, !prof !11

bb2.i6.invoke:                                    ; preds = %start, %bb1
  %3 = phi ptr [ @alloc_2cdf4504ef06eeefb0c88cab4b6cca7f, %bb1 ], [ @alloc_15ebbff925b3f6c8943e42b883084623, %start ]
  invoke void @_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt(ptr noundef nonnull @alloc_a6e8913658d98d0dbd0444b57ddfd811, ptr noundef nonnull inttoptr (i64 55 to ptr), ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %3) #9
          to label %bb2.i6.cont unwind label %terminate

bb2.i6.cont:                                      ; preds = %bb2.i6.invoke
  unreachable

bb3:                                              ; preds = %bb1
  %_10 = mul i64 %k, %m
  %_8 = mul i64 %n, %m
  %n.i.i.i.i = udiv i64 %_8, %n
  %n.i.i2.i.i = udiv i64 %_10, %k
  %_0.sroa.0.0.i.i.i = tail call noundef i64 @llvm.umin.i64(i64 %n.i.i2.i.i, i64 %n.i.i.i.i)
  %_2.i68.not = icmp eq i64 %_0.sroa.0.0.i.i.i, 0
  br i1 %_2.i68.not, label %bb7, label %bb17.lr.ph

bb17.lr.ph:                                       ; preds = %bb3
  %.not = icmp eq ptr %c, null
  %4 = icmp ne ptr %a, null
  %5 = icmp ne ptr %b, null
  br i1 %.not, label %bb7, label %bb17.lr.ph.split

bb17.lr.ph.split:                                 ; preds = %bb17.lr.ph
  tail call void @llvm.assume(i1 %4)
  %n.i.i.i.i22 = udiv i64 %_12, %n
  %_0.sroa.0.0.i.i.i23 = tail call noundef i64 @llvm.umin.i64(i64 %n.i.i.i.i22, i64 %k)
  %_2.i3066.not = icmp ugt i64 %n, %_12
  br label %bb17

bb4.loopexit.loopexit:                            ; preds = %bb10.loopexit
  br label %bb4.loopexit

bb4.loopexit:                                     ; preds = %bb4.loopexit.loopexit, %bb17
  %_2.i = icmp ult i64 %6, %_0.sroa.0.0.i.i.i
  br i1 %_2.i, label %bb17, label %bb7.loopexit

bb17:                                             ; preds = %bb17.lr.ph.split, %bb4.loopexit
  %iter.sroa.16.069 = phi i64 [ 0, %bb17.lr.ph.split ], [ %6, %bb4.loopexit ]
  %6 = add nuw i64 %iter.sroa.16.069, 1
  %start1.i.i = mul i64 %iter.sroa.16.069, %n
  %data.i.i10 = getelementptr inbounds nuw float, ptr %c, i64 %start1.i.i
  %start1.i2.i = mul i64 %iter.sroa.16.069, %k
  %data.i4.i = getelementptr inbounds nuw float, ptr %a, i64 %start1.i2.i
  br i1 %_2.i3066.not, label %bb4.loopexit, label %bb18.lr.ph

bb7.loopexit:                                     ; preds = %bb4.loopexit
  br label %bb7

bb7:                                              ; preds = %bb7.loopexit, %bb17.lr.ph, %bb3
  ret void

bb18.lr.ph:                                       ; preds = %bb17
  tail call void @llvm.assume(i1 %5)
  br label %bb18

bb10.loopexit:                                    ; preds = %bb15
  %7 = add nuw i64 %iter1.sroa.12.067, 1
  %_2.i30 = icmp ult i64 %7, %_0.sroa.0.0.i.i.i23
  br i1 %_2.i30, label %bb18, label %bb4.loopexit.loopexit

bb18:                                             ; preds = %bb18.lr.ph, %bb10.loopexit
  %iter1.sroa.12.067 = phi i64 [ 0, %bb18.lr.ph ], [ %7, %bb10.loopexit ]
  %start1.i.i35 = mul i64 %iter1.sroa.12.067, %n
  %data.i.i37 = getelementptr inbounds nuw float, ptr %b, i64 %start1.i.i35
  %_3.i.i = getelementptr inbounds nuw float, ptr %data.i4.i, i64 %iter1.sroa.12.067
  %factor = load float, ptr %_3.i.i, align 4, !noundef !10
  br label %bb15

bb15:                                             ; preds = %bb18, %bb15
  %iter2.sroa.8.065 = phi i64 [ 0, %bb18 ], [ %8, %bb15 ]
  %_3.i.i46 = getelementptr inbounds nuw float, ptr %data.i.i10, i64 %iter2.sroa.8.065
  %_3.i2.i = getelementptr inbounds nuw float, ptr %data.i.i37, i64 %iter2.sroa.8.065
  %8 = add nuw i64 %iter2.sroa.8.065, 1
  %value = load float, ptr %_3.i2.i, align 4, !noundef !10
  %_39 = fmul float %factor, %value
  %9 = load float, ptr %_3.i.i46, align 4, !noundef !10
  %10 = fadd float %9, %_39
  store float %10, ptr %_3.i.i46, align 4
  %exitcond.not = icmp eq i64 %8, %n
  br i1 %exitcond.not, label %bb10.loopexit, label %bb15
}

; Function Attrs: nofree norecurse nosync nounwind nonlazybind memory(argmem: readwrite) uwtable
define void @raw_pointers(ptr noundef captures(none) %c, ptr noundef readonly captures(none) %a, ptr noundef readonly captures(none) %b, i64 noundef %m, i64 noundef %n, i64 noundef %k) unnamed_addr #1 {
start:
  %_2713.not = icmp eq i64 %m, 0
  br i1 %_2713.not, label %bb5, label %bb4.lr.ph

bb4.lr.ph:                                        ; preds = %start
  %_319.not = icmp eq i64 %n, 0
  %_356.not = icmp eq i64 %k, 0
  br label %bb4

bb1.loopexit.loopexit:                            ; preds = %bb2.loopexit
  br label %bb1.loopexit

bb1.loopexit:                                     ; preds = %bb1.loopexit.loopexit, %bb4
  %exitcond16.not = icmp eq i64 %0, %m
  br i1 %exitcond16.not, label %bb5.loopexit, label %bb4

bb5.loopexit:                                     ; preds = %bb1.loopexit
  br label %bb5

bb5:                                              ; preds = %bb5.loopexit, %start
  ret void

bb4:                                              ; preds = %bb4.lr.ph, %bb1.loopexit
  %iter.sroa.0.014 = phi i64 [ 0, %bb4.lr.ph ], [ %0, %bb1.loopexit ]
  %0 = add nuw i64 %iter.sroa.0.014, 1
  br i1 %_319.not, label %bb1.loopexit, label %bb6.lr.ph

bb6.lr.ph:                                        ; preds = %bb4
  %_17 = mul i64 %iter.sroa.0.014, %n
  %invariant.gep11 = getelementptr i32, ptr %c, i64 %_17
  %_22 = mul i64 %iter.sroa.0.014, %k
  %1 = getelementptr i32, ptr %a, i64 %_22
  br label %bb6

bb2.loopexit.loopexit:                            ; preds = %bb8
  br label %bb2.loopexit

bb2.loopexit:                                     ; preds = %bb2.loopexit.loopexit, %bb6
  %exitcond15.not = icmp eq i64 %2, %n
  br i1 %exitcond15.not, label %bb1.loopexit.loopexit, label %bb6

bb6:                                              ; preds = %bb6.lr.ph, %bb2.loopexit
  %iter1.sroa.0.010 = phi i64 [ 0, %bb6.lr.ph ], [ %2, %bb2.loopexit ]
  %2 = add nuw i64 %iter1.sroa.0.010, 1
  %invariant.gep4 = getelementptr i32, ptr %b, i64 %iter1.sroa.0.010
  br i1 %_356.not, label %bb2.loopexit, label %bb8.lr.ph

bb8.lr.ph:                                        ; preds = %bb6
  %gep12 = getelementptr i32, ptr %invariant.gep11, i64 %iter1.sroa.0.010
  %gep.promoted = load i32, ptr %gep12, align 4
  br label %bb8

bb8:                                              ; preds = %bb8.lr.ph, %bb8
  %_138 = phi i32 [ %gep.promoted, %bb8.lr.ph ], [ %_13, %bb8 ]
  %iter2.sroa.0.07 = phi i64 [ 0, %bb8.lr.ph ], [ %3, %bb8 ]
  %3 = add nuw i64 %iter2.sroa.0.07, 1
  %_20 = getelementptr i32, ptr %1, i64 %iter2.sroa.0.07
  %_19 = load i32, ptr %_20, align 4, !noundef !10
  %_26 = mul i64 %iter2.sroa.0.07, %n
  %gep5 = getelementptr i32, ptr %invariant.gep4, i64 %_26
  %_23 = load i32, ptr %gep5, align 4, !noundef !10
  %_18 = mul i32 %_23, %_19
  %_13 = add i32 %_18, %_138
  store i32 %_13, ptr %gep12, align 4
  %exitcond.not = icmp eq i64 %3, %k
  br i1 %exitcond.not, label %bb2.loopexit.loopexit, label %bb8
}

; Function Attrs: nounwind nonlazybind uwtable
define void @saturating(ptr noundef captures(none) %c, ptr noundef readonly captures(none) %a, ptr noundef readonly captures(none) %b, i64 noundef %n) unnamed_addr #0 personality ptr @rust_eh_personality {
start:
  %_6 = mul i64 %n, %n
  %_319.not = icmp eq i64 %n, 0
  br i1 %_319.not, label %bb8, label %bb7.preheader

bb7.preheader:                                    ; preds = %start
  br label %bb7

bb1.loopexit:                                     ; preds = %bb2.loopexit
  %exitcond18.not = icmp eq i64 %0, %n
  br i1 %exitcond18.not, label %bb8.loopexit, label %bb7

bb8.loopexit:                                     ; preds = %bb1.loopexit
  br label %bb8

bb8:                                              ; preds = %bb8.loopexit, %start
  ret void

bb7:                                              ; preds = %bb7.preheader, %bb1.loopexit
  %iter.sroa.0.010 = phi i64 [ %0, %bb1.loopexit ], [ 0, %bb7.preheader ]
  %0 = add nuw i64 %iter.sroa.0.010, 1
  %_18 = mul i64 %iter.sroa.0.010, %n
  br label %bb9

bb2.loopexit:                                     ; preds = %bb6
  %exitcond17.not = icmp eq i64 %1, %n
  br i1 %exitcond17.not, label %bb1.loopexit, label %bb9

bb9:                                              ; preds = %bb7, %bb2.loopexit
  %iter1.sroa.0.08 = phi i64 [ 0, %bb7 ], [ %1, %bb2.loopexit ]
  %1 = add nuw i64 %iter1.sroa.0.08, 1
  %_17 = add nuw i64 %iter1.sroa.0.08, %_18
  %_19 = icmp ult i64 %_17, %_6
  %2 = getelementptr inbounds nuw i32, ptr %c, i64 %_17
  br i1 %_19, label %bb9.split, label %panic4.invoke.loopexit38

bb9.split:                                        ; preds = %bb9
  %.promoted = load i32, ptr %2, align 4
  br label %bb11

bb11:                                             ; preds = %bb9.split, %bb6
  %3 = phi i32 [ %.promoted, %bb9.split ], [ %8, %bb6 ]
  %iter2.sroa.0.07 = phi i64 [ 0, %bb9.split ], [ %4, %bb6 ]
  %4 = add nuw i64 %iter2.sroa.0.07, 1
  %_22 = add nuw i64 %iter2.sroa.0.07, %_18
  %_23 = icmp ult i64 %_22, %_6
  br i1 %_23, label %bb5, label %panic4.invoke.loopexit

terminate:                                        ; preds = %panic4.invoke
  %5 = landingpad { ptr, i32 }
          filter [0 x ptr] zeroinitializer
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking19panic_cannot_unwind() #10
  unreachable

bb5:                                              ; preds = %bb11
  %_26 = mul i64 %iter2.sroa.0.07, %n
  %_25 = add i64 %_26, %iter1.sroa.0.08
  %_27 = icmp ult i64 %_25, %_6
  br i1 %_27, label %bb6, label %panic4.invoke.loopexit

bb6:                                              ; preds = %bb5
  %6 = getelementptr inbounds nuw i32, ptr %a, i64 %_22
  %_21 = load i32, ptr %6, align 4, !noundef !10
  %7 = getelementptr inbounds nuw i32, ptr %b, i64 %_25
  %_24 = load i32, ptr %7, align 4, !noundef !10
  %_20 = mul i32 %_24, %_21
  %8 = tail call i32 @llvm.sadd.sat.i32(i32 %3, i32 %_20)
  store i32 %8, ptr %2, align 4
  %exitcond.not = icmp eq i64 %4, %n
  br i1 %exitcond.not, label %bb2.loopexit, label %bb11

panic4.invoke.loopexit:                           ; preds = %bb11, %bb5
  %.ph = phi i64 [ %_25, %bb5 ], [ %_22, %bb11 ]
  %.ph37 = phi ptr [ @alloc_9e89757344c8fa862b8378b0471b2c64, %bb5 ], [ @alloc_d23b99d6694389978cea7ed4ee5d4587, %bb11 ]
  br label %panic4.invoke

panic4.invoke.loopexit38:                         ; preds = %bb9
  %_17.lcssa = phi i64 [ %_17, %bb9 ]
  br label %panic4.invoke

panic4.invoke:                                    ; preds = %panic4.invoke.loopexit38, %panic4.invoke.loopexit
  %9 = phi i64 [ %.ph, %panic4.invoke.loopexit ], [ %_17.lcssa, %panic4.invoke.loopexit38 ]
  %10 = phi ptr [ %.ph37, %panic4.invoke.loopexit ], [ @alloc_1b0e611e6fd175e37fe8a95462e0e7d3, %panic4.invoke.loopexit38 ]
  invoke void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %9, i64 noundef %_6, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %10) #11
          to label %panic4.cont unwind label %terminate

panic4.cont:                                      ; preds = %panic4.invoke
  unreachable
}

; Function Attrs: nounwind nonlazybind uwtable
define void @skips_zeros(ptr noundef captures(none) %c, ptr noundef readonly captures(none) %a, ptr noundef readonly captures(none) %b, i64 noundef %n) unnamed_addr #0 personality ptr @rust_eh_personality {
start:
  %_6 = mul i64 %n, %n
  %_3412.not = icmp eq i64 %n, 0
  br i1 %_3412.not, label %bb9, label %bb8.preheader

bb8.preheader:                                    ; preds = %start
  br label %bb8

bb1.loopexit:                                     ; preds = %bb3.loopexit
  %exitcond19.not = icmp eq i64 %0, %n
  br i1 %exitcond19.not, label %bb9.loopexit, label %bb8

bb9.loopexit:                                     ; preds = %bb1.loopexit
  br label %bb9

bb9:                                              ; preds = %bb9.loopexit, %start
  ret void

bb8:                                              ; preds = %bb8.preheader, %bb1.loopexit
  %iter1.sroa.0.013 = phi i64 [ %0, %bb1.loopexit ], [ 0, %bb8.preheader ]
  %0 = add nuw i64 %iter1.sroa.0.013, 1
  %_21 = mul i64 %iter1.sroa.0.013, %n
  br label %bb10

bb3.loopexit:                                     ; preds = %bb1.i.backedge
  %exitcond.not = icmp eq i64 %1, %n
  br i1 %exitcond.not, label %bb1.loopexit, label %bb10

bb10:                                             ; preds = %bb8, %bb3.loopexit
  %iter2.sroa.0.011 = phi i64 [ 0, %bb8 ], [ %1, %bb3.loopexit ]
  %1 = add nuw i64 %iter2.sroa.0.011, 1
  %_20 = add i64 %iter2.sroa.0.011, %_21
  %_22 = icmp ult i64 %_20, %_6
  %2 = getelementptr inbounds nuw i32, ptr %c, i64 %_20
  br label %bb3.i

bb3.i:                                            ; preds = %bb10, %bb1.i.backedge
  %_0.i1.i.i5.i27 = phi i64 [ 0, %bb10 ], [ %_0.i1.i.i.i, %bb1.i.backedge ]
  %_0.i1.i.i.i = add nuw i64 %_0.i1.i.i5.i27, 1
  %_3.i.i.i3.i = urem i64 %_0.i1.i.i5.i27, 3
  %_0.i.i.not.i.not.i = icmp eq i64 %_3.i.i.i3.i, 0
  br i1 %_0.i.i.not.i.not.i, label %bb1.i.backedge, label %bb13

bb1.i.backedge:                                   ; preds = %bb3.i, %bb7
  %_0.i.i.i.i = icmp ult i64 %_0.i1.i.i.i, %n
  br i1 %_0.i.i.i.i, label %bb3.i, label %bb3.loopexit

terminate:                                        ; preds = %panic4.invoke
  %3 = landingpad { ptr, i32 }
          filter [0 x ptr] zeroinitializer
  tail call void @_RNvNtCsgEmfK2I1SDS_4core9panicking19panic_cannot_unwind() #10
  unreachable

bb13:                                             ; preds = %bb3.i
  br i1 %_22, label %bb5, label %panic4.invoke

bb5:                                              ; preds = %bb13
  %_19 = load i32, ptr %2, align 4, !noundef !10
  %_25 = add i64 %_0.i1.i.i5.i27, %_21
  %_26 = icmp ult i64 %_25, %_6
  br i1 %_26, label %bb6, label %panic4.invoke

bb6:                                              ; preds = %bb5
  %_29 = mul i64 %_0.i1.i.i5.i27, %n
  %_28 = add i64 %_29, %iter2.sroa.0.011
  %_30 = icmp ult i64 %_28, %_6
  br i1 %_30, label %bb7, label %panic4.invoke

bb7:                                              ; preds = %bb6
  %4 = getelementptr inbounds nuw i32, ptr %a, i64 %_25
  %_24 = load i32, ptr %4, align 4, !noundef !10
  %5 = getelementptr inbounds nuw i32, ptr %b, i64 %_28
  %_27 = load i32, ptr %5, align 4, !noundef !10
  %_23 = mul i32 %_27, %_24
  %_18 = add i32 %_23, %_19
  store i32 %_18, ptr %2, align 4
  br label %bb1.i.backedge

panic4.invoke:                                    ; preds = %bb6, %bb5, %bb13
  %6 = phi i64 [ %_25, %bb5 ], [ %_20, %bb13 ], [ %_28, %bb6 ]
  %7 = phi ptr [ @alloc_637ac24056f93c1e2bb9bb1bc9e1c0b8, %bb5 ], [ @alloc_457adaa7319078ad4eacabc895700a7a, %bb13 ], [ @alloc_d8b12af251e8a2940d0c462cbc96e2ec, %bb6 ]
  invoke void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef %6, i64 noundef %_6, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %7) #11
          to label %panic4.cont unwind label %terminate

panic4.cont:                                      ; preds = %panic4.invoke
  unreachable
}

; Function Attrs: nofree norecurse nosync nounwind nonlazybind memory(argmem: readwrite) uwtable
define void @static_arrays(ptr noalias noundef align 4 captures(none) dereferenceable(6144) %c, ptr noalias noundef readonly align 4 captures(none) dereferenceable(5120) %a, ptr noalias noundef readonly align 4 captures(none) dereferenceable(7680) %b) unnamed_addr #1 personality ptr @rust_eh_personality {
start:
  br label %bb7

bb1.loopexit:                                     ; preds = %bb2.loopexit
  %0 = add nuw nsw i64 %iter.sroa.0.06, 1
  %exitcond8.not = icmp eq i64 %0, 32
  br i1 %exitcond8.not, label %bb8, label %bb7

bb8:                                              ; preds = %bb1.loopexit
  ret void

bb7:                                              ; preds = %start, %bb1.loopexit
  %iter.sroa.0.06 = phi i64 [ 0, %start ], [ %0, %bb1.loopexit ]
  %1 = getelementptr inbounds nuw [40 x float], ptr %a, i64 %iter.sroa.0.06
  %2 = getelementptr inbounds nuw [48 x float], ptr %c, i64 %iter.sroa.0.06
  br label %bb9

bb2.loopexit:                                     ; preds = %bb11
  %.lcssa = phi float [ %8, %bb11 ]
  %3 = add nuw nsw i64 %iter1.sroa.0.05, 1
  store float %.lcssa, ptr %4, align 4
  %exitcond7.not = icmp eq i64 %3, 48
  br i1 %exitcond7.not, label %bb1.loopexit, label %bb9

bb9:                                              ; preds = %bb7, %bb2.loopexit
  %iter1.sroa.0.05 = phi i64 [ 0, %bb7 ], [ %3, %bb2.loopexit ]
  %invariant.gep = getelementptr inbounds nuw float, ptr %b, i64 %iter1.sroa.0.05
  %4 = getelementptr inbounds nuw float, ptr %2, i64 %iter1.sroa.0.05
  %.promoted = load float, ptr %4, align 4
  br label %bb11

bb11:                                             ; preds = %bb9, %bb11
  %iter2.sroa.0.04 = phi i64 [ 0, %bb9 ], [ %6, %bb11 ]
  %5 = phi float [ %.promoted, %bb9 ], [ %8, %bb11 ]
  %6 = add nuw nsw i64 %iter2.sroa.0.04, 1
  %7 = getelementptr inbounds nuw float, ptr %1, i64 %iter2.sroa.0.04
  %_11 = load float, ptr %7, align 4, !noundef !10
  %gep = getelementptr inbounds nuw [48 x float], ptr %invariant.gep, i64 %iter2.sroa.0.04
  %_14 = load float, ptr %gep, align 4, !noundef !10
  %_10 = fmul float %_11, %_14
  %8 = fadd float %5, %_10
  %exitcond.not = icmp eq i64 %6, 40
  br i1 %exitcond.not, label %bb2.loopexit, label %bb11
}

; Function Attrs: nofree norecurse nosync nounwind nonlazybind memory(argmem: readwrite, inaccessiblemem: write) uwtable
define void @unchecked_slices(ptr noundef captures(none) %c, ptr noundef readonly captures(none) %a, ptr noundef readonly captures(none) %b, i64 noundef %m, i64 noundef %n, i64 noundef %k) unnamed_addr #2 personality ptr @rust_eh_personality {
start:
  %_10 = mul i64 %k, %m
  %_12 = mul i64 %k, %n
  %_298.not = icmp eq i64 %m, 0
  br i1 %_298.not, label %bb5, label %bb4.lr.ph

bb4.lr.ph:                                        ; preds = %start
  %_336.not = icmp eq i64 %k, 0
  %_374.not = icmp eq i64 %n, 0
  br label %bb4

bb1.loopexit.loopexit:                            ; preds = %bb2.loopexit
  br label %bb1.loopexit

bb1.loopexit:                                     ; preds = %bb1.loopexit.loopexit, %bb4
  %exitcond11.not = icmp eq i64 %0, %m
  br i1 %exitcond11.not, label %bb5.loopexit, label %bb4

bb5.loopexit:                                     ; preds = %bb1.loopexit
  br label %bb5

bb5:                                              ; preds = %bb5.loopexit, %start
  ret void

bb4:                                              ; preds = %bb4.lr.ph, %bb1.loopexit
  %iter.sroa.0.09 = phi i64 [ 0, %bb4.lr.ph ], [ %0, %bb1.loopexit ]
  %0 = add nuw i64 %iter.sroa.0.09, 1
  br i1 %_336.not, label %bb1.loopexit, label %bb6.lr.ph

bb6.lr.ph:                                        ; preds = %bb4
  %_21 = mul i64 %iter.sroa.0.09, %k
  %_25 = mul i64 %iter.sroa.0.09, %n
  %1 = getelementptr i64, ptr %c, i64 %_25
  br label %bb6

bb2.loopexit.loopexit:                            ; preds = %bb8
  br label %bb2.loopexit

bb2.loopexit:                                     ; preds = %bb2.loopexit.loopexit, %bb6
  %exitcond10.not = icmp eq i64 %2, %k
  br i1 %exitcond10.not, label %bb1.loopexit.loopexit, label %bb6

bb6:                                              ; preds = %bb6.lr.ph, %bb2.loopexit
  %iter1.sroa.0.07 = phi i64 [ 0, %bb6.lr.ph ], [ %2, %bb2.loopexit ]
  %2 = add nuw i64 %iter1.sroa.0.07, 1
  br i1 %_374.not, label %bb2.loopexit, label %bb8.lr.ph

bb8.lr.ph:                                        ; preds = %bb6
  %_20 = add i64 %iter1.sroa.0.07, %_21
  %_42 = icmp ult i64 %_20, %_10
  tail call void @llvm.assume(i1 %_42)
  %_41 = getelementptr inbounds nuw i64, ptr %a, i64 %_20
  %_23 = mul i64 %iter1.sroa.0.07, %n
  br label %bb8

bb8:                                              ; preds = %bb8.lr.ph, %bb8
  %iter2.sroa.0.05 = phi i64 [ 0, %bb8.lr.ph ], [ %3, %bb8 ]
  %3 = add nuw i64 %iter2.sroa.0.05, 1
  %_22 = add nuw i64 %iter2.sroa.0.05, %_23
  %_44 = icmp ult i64 %_22, %_12
  tail call void @llvm.assume(i1 %_44)
  %_43 = getelementptr inbounds nuw i64, ptr %b, i64 %_22
  %_45 = load i64, ptr %_41, align 8, !noundef !10
  %_46 = load i64, ptr %_43, align 8, !noundef !10
  %_47.0 = mul i64 %_46, %_45
  %_48 = getelementptr i64, ptr %1, i64 %iter2.sroa.0.05
  %4 = load i64, ptr %_48, align 8, !noundef !10
  %5 = add i64 %4, %_47.0
  store i64 %5, ptr %_48, align 8
  %exitcond.not = icmp eq i64 %3, %n
  br i1 %exitcond.not, label %bb2.loopexit.loopexit, label %bb8
}

; Function Attrs: nounwind nonlazybind uwtable
declare noundef range(i32 0, 10) i32 @rust_eh_personality(i32 noundef, i32 noundef, i64 noundef, ptr noundef, ptr noundef) unnamed_addr #0

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write)
declare void @llvm.assume(i1 noundef) #3

; Function Attrs: cold noinline noreturn nonlazybind uwtable
declare void @_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt(ptr noundef nonnull, ptr noundef nonnull, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr #4

; Function Attrs: cold minsize noinline noreturn nonlazybind optsize uwtable
declare void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 noundef, i64 noundef, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr #5

; Function Attrs: cold minsize noinline noreturn nounwind nonlazybind optsize uwtable
declare void @_RNvNtCsgEmfK2I1SDS_4core9panicking19panic_cannot_unwind() unnamed_addr #6

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.fma.f64(double, double, double) #7

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.sadd.sat.i32(i32, i32) #7

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umax.i64(i64, i64) #8

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umin.i64(i64, i64) #8

attributes #0 = { nounwind nonlazybind uwtable "probe-stack"="inline-asm" "target-cpu"="x86-64" }
attributes #1 = { nofree norecurse nosync nounwind nonlazybind memory(argmem: readwrite) uwtable "probe-stack"="inline-asm" "target-cpu"="x86-64" }
attributes #2 = { nofree norecurse nosync nounwind nonlazybind memory(argmem: readwrite, inaccessiblemem: write) uwtable "probe-stack"="inline-asm" "target-cpu"="x86-64" }
attributes #3 = { mustprogress nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write) }
attributes #4 = { cold noinline noreturn nonlazybind uwtable "probe-stack"="inline-asm" "target-cpu"="x86-64" }
attributes #5 = { cold minsize noinline noreturn nonlazybind optsize uwtable "probe-stack"="inline-asm" "target-cpu"="x86-64" }
attributes #6 = { cold minsize noinline noreturn nounwind nonlazybind optsize uwtable "probe-stack"="inline-asm" "target-cpu"="x86-64" }
attributes #7 = { mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #8 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #9 = { noinline noreturn }
attributes #10 = { cold noreturn nounwind }
attributes #11 = { noreturn }


!10 = !{}
!11 = !{!"branch_weights", !"expected", i32 1, i32 2000}
