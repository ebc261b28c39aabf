"""Build a kernel library: every kernel compiled for every target, and the resolver that selects a variant."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.aot.resolver import Choice, Dispatched, argument_types, resolver_ir
from tilewright.aot.spec_file import LibraryKernel, Spec
from tilewright.aot.variants import Variants, order_targets
from tilewright.compiler.c_header import Parameter, parameters
from tilewright.compiler.interface import SCRATCH_ALIGNMENT
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.lowering.interface import has_tasks, scratch_layout
from tilewright.compiler.operation import Compilation
from tilewright.compiler.pipeline import STAGES
from tilewright.errors import VariantsDiffer
from tilewright.llvm.target import emit_object
from tilewright.llvm.values import Type
from tilewright.machine.machine import Machine
from tilewright.records import dataclass


@dataclass(frozen=True)
class ExportedFunction:
    """One exported function.

    Attributes
    ----------
    entry : its name and problem.
    kernels : its variants, best first.
    arguments : LLVM types of its arguments.
    """

    entry: LibraryKernel
    kernels: tuple[Kernel, ...]
    arguments: tuple[Type, ...]

    @property
    def name(self) -> str:
        """Its symbol."""
        return self.entry.name

    @property
    def scratch_bytes(self) -> int:
        """Scratch bytes that suffice for every variant, a multiple of the alignment for aligned_alloc."""
        most = max(kernel.scratch_bytes for kernel in self.kernels)
        return -(-most // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT

    @property
    def thread_bytes(self) -> int:
        """Scratch bytes sufficient for each thread of a team except the first."""
        return max(scratch_layout(kernel.nest).thread_bytes for kernel in self.kernels)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of every variant."""
        found = parameters(self.kernels[0].compilation)
        if self.scratch_bytes:
            enough = f"{self.entry.scratch_macro} or more, on a multiple of TILEWRIGHT_SCRATCH_ALIGNMENT"
            if has_tasks(self.kernels[0].nest):
                enough += f"; {self.entry.scratch_macro}_PER_THREAD more for each thread of a team but one"
            found = tuple(one._replace(meaning=enough) if one.name == "scratch" else one for one in found)
        return found


@dataclass(frozen=True)
class KernelLibrary:
    """A library before it is written.

    Attributes
    ----------
    name : the prefix of its files and of `<name>_variant`.
    variants : its targets, best first.
    functions : what it exports.
    resolver : the object file of the resolver.
    """

    name: str
    variants: Variants
    functions: tuple[ExportedFunction, ...]
    resolver: bytes

    @property
    def exports(self) -> tuple[str, ...]:
        """Symbols that the resolver defines."""
        return (f"{self.name}_variant", *(function.name for function in self.functions))


def build_library(spec: Spec, machines: Sequence[Machine]) -> KernelLibrary:
    r"""Compile every kernel for every machine.

    Raises
    ------
    InvalidTargetList, MixedTargets, NoResolver, UntestableFeature, TargetNeverChosen : as `order_targets`.
    UnsupportedDtype, NoRegisterTile : one of the machines has no instructions for a kernel.
    VariantsDiffer : a kernel takes other arguments on one machine than on another, such as scratch.

    Examples
    --------
    >>> from tilewright.aot.spec_file import parse_spec
    >>> from tilewright.machine.catalog import find_machine
    >>> spec = parse_spec('[[kernel]]\nproblem = "unary"\nop = "relu"\nname = "relu"')
    >>> built = build_library(spec, [find_machine("x86-64-v2"), find_machine("x86-64-v3")])
    >>> [kernel.symbol for kernel in built.functions[0].kernels]
    ['relu__x86_64_v3', 'relu__x86_64_v2']
    """
    variants = order_targets(machines)
    functions = tuple(_function(entry, variants) for entry in spec.entries)
    choices = [Choice(variant.target, variant.conditions) for variant in variants.ordered]
    dispatched = [
        Dispatched(function.name, function.arguments, tuple(kernel.symbol for kernel in function.kernels))
        for function in functions
    ]
    baseline = variants.baseline
    text = resolver_ir(spec.library, baseline, choices, dispatched)
    resolver = emit_object(text, f"{spec.library}_resolver", baseline)
    return KernelLibrary(spec.library, variants, functions, resolver)


def _function(entry: LibraryKernel, variants: Variants) -> ExportedFunction:
    """One kernel for every target; all of them take the same arguments.

    Raises
    ------
    VariantsDiffer
    """
    states = []
    for variant in variants.ordered:
        state = Compilation(entry.problem, variant.machine, f"{entry.name}__{variant.identifier}")
        for stage in STAGES:
            state = state.with_field(stage.name, stage.run(state))
        states.append(state)
    types = [argument_types(state.llvm, state.name) for state in states]
    for variant, own in zip(variants.ordered, types, strict=True):
        if own != types[0]:
            lists = [", ".join(kind.text for kind in one) for one in (types[0], own)]
            best = variants.ordered[0].target
            raise VariantsDiffer(
                name=entry.name, target=best, first=lists[0], other=variant.target, second=lists[1]
            )
    return ExportedFunction(entry, tuple(map(Kernel, states)), types[0])
