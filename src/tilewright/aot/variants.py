"""Targets of a library: required CPU features, and order of preference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tilewright.errors import InvalidTargetList, MixedTargets, TargetNeverChosen, shown
from tilewright.llvm.subtarget import cpu_features
from tilewright.machine.feature_bits import (
    Condition,
    Detection,
    FeatureBit,
    conditions_of,
    detection_of,
    required_features,
)
from tilewright.machine.isa_rows import GENERIC128, ISAS, usable_isas
from tilewright.machine.machine import Machine, enabled_features
from tilewright.records import dataclass


@dataclass(frozen=True)
class Variant:
    """One target of a library.

    Attributes
    ----------
    machine : the machine its kernels are compiled for.
    features : CPU features that they require, as rows of the architecture's table.
    """

    machine: Machine
    features: tuple[FeatureBit, ...]

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.machine.name

    @property
    def identifier(self) -> str:
        """The name in C: what is not a letter or a digit is an underscore.

        >>> from tilewright.machine.catalog import find_machine
        >>> Variant(find_machine("x86-64-v3"), ()).identifier
        'x86_64_v3'
        """
        return re.sub(r"[^A-Za-z0-9]+", "_", self.target).strip("_")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions on the CPU that the resolver checks."""
        return conditions_of(self.features)


@dataclass(frozen=True)
class Variants:
    """The targets of a library, best first, and the feature detection of their architecture."""

    detection: Detection
    ordered: tuple[Variant, ...]

    @property
    def baseline(self) -> Machine:
        """Target of the resolver itself: the baseline of the architecture."""
        machine = self.ordered[0].machine
        return replace(
            machine, name=self.detection.arch, isa=GENERIC128, cpu=self.detection.baseline, features=""
        )


def split_targets(text: str) -> tuple[str, ...]:
    """The names in a comma list; what begins with a sign is a feature of the target in front of it.

    Raises
    ------
    InvalidTargetList : an empty name.

    Examples
    --------
    >>> split_targets("x86-64-v3,x86_64-linux-gnu:znver4:+avx512fp16,-gfni,haswell")
    ('x86-64-v3', 'x86_64-linux-gnu:znver4:+avx512fp16,-gfni', 'haswell')
    """
    names: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if names and part.startswith(("+", "-")):
            names[-1] += f",{part}"
        else:
            names.append(part)
    if not all(names):
        raise InvalidTargetList(found=shown(text), reason="one of the names is empty")
    return tuple(names)


def order_targets(machines: Sequence[Machine]) -> Variants:
    """The variants of machines, best first: by their row of instructions, then by the features they use.

    Raises
    ------
    NoResolver, UntestableFeature : as `required_features`.
    InvalidTargetList : no machine, or two with one name.
    MixedTargets : machines of different architectures.
    TargetNeverChosen : a machine whose needs include those of one that is better.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> found = order_targets([find_machine(f"x86-64-v{level}") for level in (2, 4, 3)])
    >>> [variant.target for variant in found.ordered]
    ['x86-64-v4', 'x86-64-v3', 'x86-64-v2']
    """
    if not machines:
        raise InvalidTargetList(found="none", reason="a library needs one")
    targets = ", ".join(machine.name for machine in machines)
    archs = {machine.arch for machine in machines}
    if len(archs) > 1:
        raise MixedTargets(targets=targets, found=" and ".join(sorted(archs)))
    variants = [_variant(machine) for machine in machines]
    named: dict[str, str] = {}
    for variant in variants:
        if variant.identifier in named:
            reason = f"{named[variant.identifier]} and {variant.target} have the same name in C"
            raise InvalidTargetList(found=targets, reason=reason)
        named[variant.identifier] = variant.target
    detection = detection_of(machines[0])
    ordered = sorted(variants, key=lambda variant: _worth(variant, detection), reverse=True)
    for number, variant in enumerate(ordered):
        for better in ordered[:number]:
            if _implies(variant.conditions, better.conditions):
                raise TargetNeverChosen(target=variant.target, other=better.target)
    return Variants(detection, tuple(ordered))


def _variant(machine: Machine) -> Variant:
    """A machine with all features that LLVM may use on its CPU, including those its record does not name.

    No feature bit gives the length of scalable and streaming vectors, so a library's kernels use neither.
    """
    detection = detection_of(machine)
    rows = usable_isas(machine.arch, enabled_features(machine.features))
    fixed = next(isa for isa in (machine.isa, *rows) if not isa.scalable)
    machine = replace(machine, isa=fixed, streaming_bits=0)
    has = cpu_features(machine.triple, machine.cpu, machine.features, detection.questions)
    return Variant(machine, required_features(machine, has))


def _worth(variant: Variant, detection: Detection) -> tuple[int, list[int]]:
    """Sort key: a variant that requires a superset of another's features comes first."""
    places = [detection.rows.index(row) for row in variant.features]
    names = [isa.name for isa in ISAS]
    return -names.index(variant.machine.isa.name), sorted(places, reverse=True)


def _implies(all_of: Sequence[Condition], these: Sequence[Condition]) -> bool:
    """Whether a CPU that meets some conditions also meets others."""
    given = {condition.word: condition.mask for condition in all_of}
    return all(condition.holds(given.get(condition.word, 0)) for condition in these)
