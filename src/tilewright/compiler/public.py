"""`tilewright.compile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from tilewright.compiler.target import compile_problem

if TYPE_CHECKING:
    from tilewright.compiler.kernel import Kernel
    from tilewright.machine.isa import Lowering
    from tilewright.machine.machine import Machine
    from tilewright.ops.attention.backward_kernel import AttentionBackwardKernel
    from tilewright.ops.attention.backward_problem import AttentionBackward
    from tilewright.ops.attention.kernel import AttentionKernel
    from tilewright.ops.attention.problem import Attention
    from tilewright.ops.batch_reduce.kernel import BatchReduceKernel
    from tilewright.ops.batch_reduce.problem import BatchReduceGemm
    from tilewright.ops.chain.call import LinearChainKernel
    from tilewright.ops.chain.problem import LinearChain
    from tilewright.ops.contraction.kernel import ContractionKernel
    from tilewright.ops.contraction.problem import Contraction
    from tilewright.ops.elementwise.problem import Elementwise
    from tilewright.ops.gemm.kernel import GemmKernel
    from tilewright.ops.gemm.problem import Gemm
    from tilewright.ops.mmt4d.call import Mmt4dKernel
    from tilewright.ops.mmt4d.problem import Mmt4d
    from tilewright.ops.packing.call import PackingKernel
    from tilewright.ops.packing.problem import Packing
    from tilewright.ops.rows.kernel import RowKernel
    from tilewright.ops.rows.problem import RowFunction
    from tilewright.ops.scattered.kernel import ScatteredKernel
    from tilewright.ops.scattered.problem import ScatteredGemm
    from tilewright.ops.sum_of_products.kernel import ProductsKernel
    from tilewright.ops.sum_of_products.problem import SumOfProducts
    from tilewright.ops.triangular.syr2k_call import SymmetricKernel
    from tilewright.ops.triangular.syr2k_problem import Syrk
    from tilewright.ops.triangular.trmm_call import TrmmKernel
    from tilewright.ops.triangular.trmm_problem import Trmm
    from tilewright.ops.unary.kernel import UnaryKernel
    from tilewright.ops.unary.problem import Unary


@overload
def compile(
    problem: Gemm, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> GemmKernel: ...


@overload
def compile(
    problem: BatchReduceGemm, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> BatchReduceKernel: ...


@overload
def compile(
    problem: Unary, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> UnaryKernel: ...


@overload
def compile(
    problem: Packing, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> PackingKernel: ...


@overload
def compile(
    problem: Mmt4d, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> Mmt4dKernel: ...


@overload
def compile(
    problem: LinearChain, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> LinearChainKernel: ...


@overload
def compile(
    problem: ScatteredGemm, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> ScatteredKernel: ...


@overload
def compile(
    problem: Attention, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> AttentionKernel: ...


@overload
def compile(
    problem: AttentionBackward, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> AttentionBackwardKernel: ...


@overload
def compile(
    problem: RowFunction | Elementwise,
    target: str | Machine | None = None,
    *,
    lowering: Lowering | str = ...,
) -> RowKernel: ...


@overload
def compile(
    problem: Syrk, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> SymmetricKernel: ...


@overload
def compile(
    problem: SumOfProducts, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> ProductsKernel: ...


@overload
def compile(
    problem: Contraction, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> ContractionKernel: ...


@overload
def compile(
    problem: Trmm, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> TrmmKernel: ...


def compile(
    problem: Gemm
    | BatchReduceGemm
    | Unary
    | Packing
    | Mmt4d
    | LinearChain
    | Attention
    | AttentionBackward
    | ScatteredGemm
    | RowFunction
    | Elementwise
    | Syrk
    | SumOfProducts
    | Contraction
    | Trmm,
    target: str | Machine | None = None,
    *,
    lowering: Lowering | str = "target",
) -> Kernel:
    """Compiles a problem for this host or another machine.

    Parameters
    ----------
    problem : what to compute. A `Contraction` whose dimensions are all sequential gets a `schedule` first.
    target : None or "host" for this host, a name of `targets()`, "triple:cpu" or "triple:cpu:+features"
        in LLVM's names (such as "aarch64-linux-gnu:neoverse-n2:+sve"), or a `Machine`.
    lowering : who writes the tile products: "target", this package by the target's multiply instructions,
        or "generic", LLVM from its intrinsic `llvm.matrix.multiply` (Kuzma et al. 2023, §3.2).

    Raises
    ------
    NotAProblem, InvalidChoice, UnknownTarget, InvalidTarget, UnknownTriple, UnknownCpu, UnknownFeature,
    UnsupportedDtype, CompilationFailed

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.compile(tw.Gemm(m=8, n=8, k=8)).flops
    1024
    """
    return compile_problem(problem, target, lowering)
