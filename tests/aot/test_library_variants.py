"""Targets of a library: their order, what each needs, and what no library can have."""

from __future__ import annotations

from itertools import permutations

import pytest

from tilewright.aot.variants import order_targets, split_targets
from tilewright.compiler.target import resolve_target
from tilewright.errors import (
    InvalidTargetList,
    MixedTargets,
    NoResolver,
    TargetNeverChosen,
    UntestableFeature,
)
from tilewright.machine.catalog import find_machine


def ordered(*targets: str) -> list[str]:
    return [variant.target for variant in order_targets([resolve_target(name) for name in targets]).ordered]


@pytest.mark.parametrize(
    "best_first",
    [
        ("x86-64-v4", "x86-64-v3", "x86-64-v2"),
        ("sapphirerapids", "znver4", "haswell"),
        ("neoverse-v2", "neoverse-v1", "neoverse-n1"),
        ("pwr10", "pwr9"),
    ],
)
def test_best_first_whatever_the_order(best_first: tuple[str, ...]) -> None:
    for names in permutations(best_first):
        assert ordered(*names) == list(best_first)


def test_what_the_cpu_implies_is_asked_for() -> None:
    """LLVM may use everything that the CPU it compiles for has, though the record names less."""
    (znver4,) = order_targets([find_machine("znver4")]).ordered
    assert "avx512vbmi2" not in znver4.machine.features
    assert "avx512vbmi2" in {row.feature for row in znver4.features}


def test_a_cpu_of_the_baseline_fits_always() -> None:
    (plain,) = order_targets([resolve_target("x86_64-linux-gnu:x86-64")]).ordered
    assert plain.conditions == ()
    assert plain.identifier == "x86_64_linux_gnu_x86_64"


def test_the_resolver_is_for_every_cpu() -> None:
    baseline = order_targets([find_machine("sapphirerapids")]).baseline
    assert (baseline.cpu, baseline.isa.name) == ("x86-64", "generic128")
    assert "+" not in baseline.features


def test_split() -> None:
    assert split_targets("a, b") == ("a", "b")
    assert split_targets("t-linux:c:+x,-y, z") == ("t-linux:c:+x,-y", "z")
    for text in ("", "a,,b", "a,"):
        with pytest.raises(InvalidTargetList, match="one of the names is empty"):
            split_targets(text)


@pytest.mark.parametrize(
    ("targets", "error", "message"),
    [
        ((), InvalidTargetList, "a library needs one"),
        (("haswell", "haswell"), InvalidTargetList, "haswell and haswell have the same name in C"),
        (("haswell", "neoverse-n1"), MixedTargets, "aarch64 and x86_64"),
        (("x86-64-v3", "haswell"), TargetNeverChosen, "haswell would never be selected.* x86-64-v3"),
        (("haswell", "rva23"), MixedTargets, "riscv64 and x86_64"),
        (("rva23",), NoResolver, "riscv64"),
        (("apple-m4",), NoResolver, "Linux"),
        (("x86_64-linux-gnu:diamondrapids",), UntestableFeature, "avx10.2"),
    ],
)
def test_refused(targets: tuple[str, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ordered(*targets)
