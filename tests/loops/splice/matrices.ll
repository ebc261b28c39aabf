; clang -O2 -ffast-math -fenable-matrix: c += a * b of float m4x4, and of 8x3 and 3x5; 32x32 doubles with a stride
define void @square(ptr %a, ptr %b, ptr %c) {
entry:
  %x = load <16 x float>, ptr %a, align 4
  %y = load <16 x float>, ptr %b, align 4
  %z = call fast <16 x float> @llvm.matrix.multiply.v16f32.v16f32.v16f32(<16 x float> %x, <16 x float> %y, i32 4, i32 4, i32 4)
  %old = load <16 x float>, ptr %c, align 4
  %new = fadd fast <16 x float> %z, %old
  store <16 x float> %new, ptr %c, align 4
  ret void
}

define void @wide(ptr %a, ptr %b, ptr %c) {
  %1 = load <24 x i32>, ptr %a, align 4
  %2 = load <15 x i32>, ptr %b, align 4
  %3 = tail call <40 x i32> @llvm.matrix.multiply.v40i32.v24i32.v15i32(<24 x i32> %1, <15 x i32> %2, i32 8, i32 3, i32 5)
  store <40 x i32> %3, ptr %c, align 4
  ret void
}

define void @large(ptr %a, ptr %b, ptr %c, i64 %ld) {
  %x = call <1024 x double> @llvm.matrix.column.major.load.v1024f64.i64(ptr align 8 %a, i64 %ld, i1 false, i32 32, i32 32)
  %y = call <1024 x double> @llvm.matrix.column.major.load.v1024f64.i64(ptr align 8 %b, i64 %ld, i1 false, i32 32, i32 32)
  %z = call contract <1024 x double> @llvm.matrix.multiply.v1024f64.v1024f64.v1024f64(<1024 x double> %x, <1024 x double> %y, i32 32, i32 32, i32 32)
  call void @llvm.matrix.column.major.store.v1024f64.i64(<1024 x double> %z, ptr align 8 %c, i64 %ld, i1 false, i32 32, i32 32)
  ret void
}

define void @strict(ptr %a, ptr %b, ptr %c) {
  %x = load <16 x float>, ptr %a, align 4
  %y = load <16 x float>, ptr %b, align 4
  %z = call <16 x float> @llvm.matrix.multiply.v16f32.v16f32.v16f32(<16 x float> %x, <16 x float> %y, i32 4, i32 4, i32 4)
  store <16 x float> %z, ptr %c, align 4
  ret void
}

declare <16 x float> @llvm.matrix.multiply.v16f32.v16f32.v16f32(<16 x float>, <16 x float>, i32 immarg, i32 immarg, i32 immarg)
declare <40 x i32> @llvm.matrix.multiply.v40i32.v24i32.v15i32(<24 x i32>, <15 x i32>, i32 immarg, i32 immarg, i32 immarg)
declare <1024 x double> @llvm.matrix.multiply.v1024f64.v1024f64.v1024f64(<1024 x double>, <1024 x double>, i32 immarg, i32 immarg, i32 immarg)
declare <1024 x double> @llvm.matrix.column.major.load.v1024f64.i64(ptr, i64, i1 immarg, i32 immarg, i32 immarg)
declare void @llvm.matrix.column.major.store.v1024f64.i64(<1024 x double>, ptr, i64, i1 immarg, i32 immarg, i32 immarg)
