"""Operations, one folder each: all that is true of one operation only."""

from tilewright.spec.operations import OPS, PACKED_METHODS, PAGES

OPS.add("gemm", "tilewright.ops.gemm.op:GEMM")
OPS.add("packed_gemm", "tilewright.ops.linear.op:PACKED_GEMM")
OPS.add("brgemm", "tilewright.ops.batch_reduce.op:BATCH_REDUCE")
OPS.add("unary", "tilewright.ops.unary.op:UNARY")
OPS.add("packing", "tilewright.ops.packing.op:PACKING")
OPS.add("mmt4d", "tilewright.ops.mmt4d.op:MMT4D")
OPS.add("chain", "tilewright.ops.chain.op:CHAIN")
OPS.add("attention", "tilewright.ops.attention.op:ATTENTION")
OPS.add("attention_decode", "tilewright.ops.attention.op:DECODE")
OPS.add("attention_backward", "tilewright.ops.attention.op:BACKWARD")
OPS.add("rows", "tilewright.ops.rows.op:ROWS")
OPS.add("elementwise", "tilewright.ops.elementwise.op:ELEMENTWISE")
OPS.add("binary", "tilewright.ops.binary.op:BINARY")
OPS.add("rotary", "tilewright.ops.rotary.op:ROTARY")
OPS.add("embedding", "tilewright.ops.embedding.op:EMBEDDING")
OPS.add("syrk", "tilewright.ops.triangular.op:SYRK")
OPS.add("syr2k", "tilewright.ops.triangular.op:SYR2K")
OPS.add("products", "tilewright.ops.sum_of_products.op:PRODUCTS")
OPS.add("contraction", "tilewright.ops.contraction.op:CONTRACTION")
OPS.add("table_product", "tilewright.ops.contraction.tables.op:TABLE_PRODUCT")
OPS.add("trmm", "tilewright.ops.triangular.op:TRMM")

PACKED_METHODS.add("unpack", "tilewright.ops.packing.call:unpack")
PACKED_METHODS.add("matmul", "tilewright.ops.linear.call:matmul")
PACKED_METHODS.add("save", "tilewright.ops.packing.file:save")
PACKED_METHODS.add("load", "tilewright.ops.packing.file:load")

PAGES.add("kernel", "tilewright.tools.explore.page.kernels:explore_kernel")
PAGES.add("graph", "tilewright.tools.explore.page.graphs:explore_graph")
