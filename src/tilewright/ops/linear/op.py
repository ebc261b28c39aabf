"""Products with packed operands declared: GEMM with kernels that take `PackedMatrix`."""

from dataclasses import replace

from tilewright.ops.gemm.op import GEMM
from tilewright.ops.linear.call import PackedGemmKernel
from tilewright.ops.linear.quantized import WeightKernel

PACKED_GEMM = replace(GEMM, kernel=PackedGemmKernel)
WEIGHT_GEMM = replace(GEMM, kernel=WeightKernel)
