"""Builds the library: kernels and operations of every type for every target, and what they share."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.aot.archive import Member
from tilewright.aot.blas.core import CoreCode, operation_name, operations_of
from tilewright.aot.blas.entries import RoutineEntries, symbols
from tilewright.aot.blas.low_precision import (
    BYTES_OPERATION,
    BytesCode,
    bytes_problem,
    bytes_symbols,
    emit_bytes_entries,
)
from tilewright.aot.blas.product import KernelUse
from tilewright.aot.blas.runtime import RuntimeCode
from tilewright.aot.blas.types import PREFIX, TYPES, BlasType
from tilewright.aot.resolver import Choice, Dispatched, argument_types, resolver_ir
from tilewright.aot.variants import Variant, Variants, order_targets
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.lowering.interface import scratch_layout
from tilewright.compiler.operation import Compilation, Problem
from tilewright.compiler.pipeline import STAGES
from tilewright.llvm.build import Module
from tilewright.llvm.target import emit_object, emit_optimised
from tilewright.llvm.values import POINTER
from tilewright.machine.machine import Machine
from tilewright.ops.gemm.problem import Gemm
from tilewright.records import dataclass
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
    return Gemm(dtype=kind.factor, out_dtype=kind.dtype, a=Layout.STRIDED, b=Layout.STRIDED, c=Layout.STRIDED)


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
    scratch, thread = (
        max(getattr(one, f"{part}_bytes") for one in targets) for part in ("scratch", "thread")
    )
    entries = RoutineEntries(baseline)
    emit_bytes_entries(entries)
    exported = (*symbols(), *bytes_symbols())
    members = [
        _compiled(str(entries.module), f"{PREFIX}_entries", baseline, exported),
        _compiled(
            str(RuntimeCode(baseline, scratch, thread).module), f"{PREFIX}_runtime", baseline, _RUNTIME
        ),
        _resolver(variants),
    ]
    for target in targets:
        members += target.members
    return BlasLibrary(variants, tuple(members), (*exported, *OWN_SYMBOLS))


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
    names = [operation_name(operation, kind) for kind in TYPES.values() for operation in operations_of(kind)]
    names.append(BYTES_OPERATION)
    dispatched = [
        Dispatched(name, (POINTER,), tuple(f"{name}{_suffix(variant)}" for variant in variants.ordered))
        for name in names
    ]
    text = resolver_ir(PREFIX, variants.baseline, choices, dispatched)
    return _compiled(text, f"{PREFIX}_resolver", variants.baseline, (*names, OWN_SYMBOLS[0]))


def _suffix(variant: Variant) -> str:
    return f"__{variant.identifier}"


def _target(variant: Variant) -> _Target:
    suffix, layouts = _suffix(variant), []
    members: list[Member] = []
    for kind in TYPES.values():
        kernel = compiled_kernel(
            product_problem(kind), variant.machine, f"{PREFIX}_product_{kind.name}{suffix}"
        )
        core = CoreCode(kind, variant.machine, suffix, _use(kernel))
        names = tuple(f"{operation_name(one, kind)}{suffix}" for one in operations_of(kind))
        members += _pair(kernel, core.module, variant.machine, f"{PREFIX}_{kind.name}{suffix}", names)
        layouts.append(scratch_layout(kernel.nest))
    kernel = compiled_kernel(bytes_problem(), variant.machine, f"{PREFIX}_product_bytes{suffix}")
    code = BytesCode(variant.machine, suffix, _use(kernel))
    members += _pair(
        kernel, code.module, variant.machine, f"{PREFIX}_bytes{suffix}", (f"{BYTES_OPERATION}{suffix}",)
    )
    layouts.append(scratch_layout(kernel.nest))
    scratch, thread = max(one.bytes for one in layouts), max(one.thread_bytes for one in layouts)
    return _Target(tuple(members), scratch, thread)


def _use(kernel: Kernel) -> KernelUse:
    return KernelUse(kernel.symbol, argument_types(kernel.compilation.llvm, kernel.symbol))


def _pair(
    kernel: Kernel, module: Module, machine: Machine, title: str, names: tuple[str, ...]
) -> tuple[Member, Member]:
    """The objects of a kernel and of the operations around it."""
    code = emit_optimised(str(module), title, machine)
    symbol = kernel.symbol
    return Member(f"{symbol}.o", kernel.object_code, (symbol,)), Member(f"{title}.o", code, names)


def compiled_kernel(problem: Problem, machine: Machine, name: str) -> Kernel:
    """A kernel under a name of the library."""
    state = Compilation(problem, machine, name)
    for stage in STAGES:
        state = state.with_field(stage.name, stage.run(state))
    return Kernel(state)
