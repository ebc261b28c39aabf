"""Problem and target in, kernel out: which class of kernel a problem gets, which machine a target is."""

from __future__ import annotations

from typing import overload

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.pipeline import Problem
from tilewright.errors import NotAProblem, shown
from tilewright.machine.host import host_machine
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
from tilewright.ops.linear.call import PackedGemmKernel
from tilewright.ops.linear.quantized import WeightKernel
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
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.ops.triangular.trmm_call import TrmmKernel
from tilewright.ops.triangular.trmm_problem import Trmm
from tilewright.ops.unary.kernel import UnaryKernel
from tilewright.ops.unary.problem import Unary
from tilewright.preparing import importing
from tilewright.spec.arguments import check_text, parse_choice

_KINDS: dict[type[Problem], type[Kernel]] = {
    Gemm: GemmKernel,
    BatchReduceGemm: BatchReduceKernel,
    Unary: UnaryKernel,
    Packing: PackingKernel,
    Mmt4d: Mmt4dKernel,
    LinearChain: LinearChainKernel,
    Attention: AttentionKernel,
    ScatteredGemm: ScatteredKernel,
    AttentionBackward: AttentionBackwardKernel,
    RowFunction: RowKernel,
    Elementwise: RowKernel,
    Syrk: SymmetricKernel,
    Syr2k: SymmetricKernel,
    SumOfProducts: ProductsKernel,
    Contraction: ContractionKernel,
    Trmm: TrmmKernel,
}


#: Before the name of a target: its kernels, on this host (`micro.emulate`).
_EMULATE = "emulate:"


def resolve_target(target: str | Machine | None) -> Machine:
    """The machine of a target: None or "host", a catalogue name, "triple:cpu:+features", or a record.

    Raises
    ------
    UnknownTarget : a name that no row has; the message lists the names, most similar first.
    InvalidTarget, UnknownTriple, UnknownCpu, UnknownFeature : a triple, CPU or feature that LLVM does
        not know or cannot compile for.
    """
    if isinstance(target, Machine):
        return target
    name = "host" if target is None else check_text(target, "target")
    if name == "host":
        return host_machine()
    if name.startswith(_EMULATE):
        return resolve_target(name.removeprefix(_EMULATE)).emulated_on(host_machine())
    if ":" in name:
        return _custom_machine(name)
    with importing:
        from tilewright.machine.catalog import find_machine  # the table is only for cross-compilation

    return find_machine(name)


def _custom_machine(target: str) -> Machine:
    """The machine of "triple:cpu:+features"; what the CPU has is LLVM's knowledge."""
    with importing:
        from tilewright.llvm.subtarget import cpu_features
        from tilewright.machine.custom import TargetName

    name, host = TargetName.parse(target), host_machine()
    questions = set(name.questions)
    if name.arch == host.arch:  # whether the kernel runs here depends on every feature it may use
        questions |= {entry[1:] for entry in host.features.split(",") if entry}
    return name.machine(cpu_features(name.triple, name.cpu, name.features, tuple(sorted(questions))))


@overload
def compile_problem(
    problem: Gemm, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> GemmKernel: ...


@overload
def compile_problem(
    problem: BatchReduceGemm, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> BatchReduceKernel: ...


@overload
def compile_problem(
    problem: Unary, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> UnaryKernel: ...


@overload
def compile_problem(
    problem: Packing, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> PackingKernel: ...


@overload
def compile_problem(
    problem: Mmt4d, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> Mmt4dKernel: ...


@overload
def compile_problem(
    problem: LinearChain, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> LinearChainKernel: ...


@overload
def compile_problem(
    problem: ScatteredGemm, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> ScatteredKernel: ...


@overload
def compile_problem(
    problem: Attention, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> AttentionKernel: ...


@overload
def compile_problem(
    problem: AttentionBackward, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> AttentionBackwardKernel: ...


@overload
def compile_problem(
    problem: RowFunction | Elementwise, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> RowKernel: ...


@overload
def compile_problem(
    problem: Syrk, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> SymmetricKernel: ...


@overload
def compile_problem(
    problem: SumOfProducts, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> ProductsKernel: ...


@overload
def compile_problem(
    problem: Contraction, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> ContractionKernel: ...


@overload
def compile_problem(
    problem: Trmm, target: str | Machine | None = None, lowering: Lowering | str = ...
) -> TrmmKernel: ...


def compile_problem(
    problem: Problem, target: str | Machine | None = None, lowering: Lowering | str = Lowering.TARGET
) -> Kernel:
    """What `tilewright.compile` does, which documents it."""
    kind = _KINDS.get(type(problem))
    if kind is None:
        raise NotAProblem(known=", ".join(known.__name__ for known in _KINDS), found=shown(problem))
    if isinstance(problem, Gemm) and problem.packed:
        kind = PackedGemmKernel if problem.weights is None else WeightKernel
    machine = resolve_target(target).with_lowering(parse_choice(Lowering, lowering, "lowering"))
    if isinstance(problem, Contraction) and not problem.is_scheduled:
        with importing:
            from tilewright.ops.contraction.schedule.passes import schedule  # others pay nothing for it

        problem = schedule(problem, machine)
    return kind.compiled(problem, machine)
