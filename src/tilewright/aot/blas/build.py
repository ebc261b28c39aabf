"""Builds the library: the kernels and operations of every type for every target, and what is common to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.aot.archive import Member
from tilewright.aot.blas.core import OPERATIONS, CoreCode, KernelUse, operation_name
from tilewright.aot.blas.entries import EntryCode, symbols
from tilewright.aot.blas.runtime import RuntimeCode
from tilewright.aot.blas.types import PREFIX, TYPES, BlasType
from tilewright.aot.resolver import Choice, Dispatched, argument_types, resolver_ir
from tilewright.aot.variants import Variant, Variants, order_targets
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.lowering.interface import scratch_layout
from tilewright.compiler.operation import Compilation, Problem
from tilewright.compiler.pipeline import STAGES
from tilewright.llvm.target import emit_object, emit_optimised
from tilewright.llvm.values import POINTER
from tilewright.machine.machine import Machine
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.problem import Layout

#: The library's own functions: the variant that was chosen, and the number of threads.
OWN_SYMBOLS = (f"{PREFIX}_variant", f"{PREFIX}_set_num_threads", f"{PREFIX}_get_num_threads")


@dataclass(frozen=True)
class BlasLibrary:
    """The library before it is written.

    Attributes
    ----------
    variants : its targets, best first.
    members : its object files.
    exports : the symbols that programs may use.
    """

    variants: Variants
    members: tuple[Member, ...]
    exports: tuple[str, ...]


def product_problem(kind: BlasType) -> Gemm:
    """The product of a type: any sizes, any strides."""
    return Gemm(dtype=kind.dtype, a=Layout.STRIDED, b=Layout.STRIDED, c=Layout.STRIDED)


@dataclass(frozen=True)
class _Target:
    """What is compiled for one target."""

    members: tuple[Member, ...]
    scratch_bytes: int
    thread_bytes: int


def build_blas(machines: Sequence[Machine]) -> BlasLibrary:
    """Compile everything for every machine.

    Raises
    ------
    InvalidTargetList, MixedTargets, NoResolver, UntestableFeature, TargetNeverChosen : as `order_targets`.
    """
    variants = order_targets(machines)
    targets = [_target(variant) for variant in variants.ordered]
    baseline = variants.baseline
    scratch, thread = (max(getattr(one, f"{part}_bytes") for one in targets) for part in ("scratch", "thread"))
    members = [
        _compiled(str(EntryCode(baseline).module), f"{PREFIX}_entries", baseline, tuple(symbols())),
        _compiled(
            str(RuntimeCode(baseline, scratch, thread).module), f"{PREFIX}_runtime", baseline, _RUNTIME
        ),
        _resolver(variants),
    ]
    for target in targets:
        members += target.members
    return BlasLibrary(variants, tuple(members), (*symbols(), *OWN_SYMBOLS))


#: What the run-time part defines for the others.
_RUNTIME = (
    *(f"{PREFIX}_{name}" for name in ("allocate", "scratch_take", "scratch_give", "team_open", "team_close")),
    *OWN_SYMBOLS[1:],
)


def _compiled(text: str, name: str, machine: Machine, defined: tuple[str, ...]) -> Member:
    return Member(f"{name}.o", emit_object(text, name, machine), defined)


def _resolver(variants: Variants) -> Member:
    """The functions that lead from each operation to its variant."""
    choices = [Choice(variant.target, variant.conditions) for variant in variants.ordered]
    names = [operation_name(operation, kind) for kind in TYPES.values() for operation in OPERATIONS]
    dispatched = [
        Dispatched(name, (POINTER,), tuple(f"{name}{_suffix(variant)}" for variant in variants.ordered))
        for name in names
    ]
    text = resolver_ir(PREFIX, variants.baseline, choices, dispatched)
    return _compiled(text, f"{PREFIX}_resolver", variants.baseline, (*names, OWN_SYMBOLS[0]))


def _suffix(variant: Variant) -> str:
    return f"__{variant.identifier}"


def _target(variant: Variant) -> _Target:
    members, layouts = [], []
    for kind in TYPES.values():
        name = f"{PREFIX}_product_{kind.dtype.name}{_suffix(variant)}"
        kernel = compiled_kernel(product_problem(kind), variant.machine, name)
        use = KernelUse(name, argument_types(kernel.compilation.llvm, name))
        core = CoreCode(kind, variant.machine, _suffix(variant), use)
        title = f"{PREFIX}_{kind.dtype.name}{_suffix(variant)}"
        exported = tuple(f"{operation_name(one, kind)}{_suffix(variant)}" for one in OPERATIONS)
        code = emit_optimised(str(core.module), title, variant.machine)
        members += [Member(f"{name}.o", kernel.object_code, (name,)), Member(f"{title}.o", code, exported)]
        layouts.append(scratch_layout(kernel.nest))
    return _Target(
        tuple(members),
        max(layout.bytes for layout in layouts),
        max(layout.thread_bytes for layout in layouts),
    )


def compiled_kernel(problem: Problem, machine: Machine, name: str) -> Kernel:
    """A kernel under a name of the library."""
    state = Compilation(problem, machine, name)
    for stage in STAGES:
        state = state.with_field(stage.name, stage.run(state))
    return Kernel(state)
