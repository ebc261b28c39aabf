"""Products with packed operands declared: GEMM with kernels that take `PackedMatrix`."""

from dataclasses import replace

from tilewright.ops.gemm.op import GEMM
from tilewright.ops.linear.kernel import PackedGemmKernel

PACKED_GEMM = replace(GEMM, kernel=PackedGemmKernel)
