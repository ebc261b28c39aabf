"""Rules of features: what LLVM takes along with a feature, and what calls need."""

from __future__ import annotations

import numpy as np
import pytest
from shares import share
from support import run_python

import tilewright as tw
from tilewright.errors import FeatureNeeded, InvalidSetting, InvalidTarget, UnknownCpu, UnknownFeature
from tilewright.llvm.subtarget import cpu_features, known_features
from tilewright.machine.arch import ARCHS, find_arch, triple_arch
from tilewright.machine.custom import TargetName
from tilewright.machine.feature_rules import expanded
from tilewright.machine.host import detect_host
from tilewright.machine.machine import Machine, enabled_features
from tilewright.settings import Settings

#: A CPU of each architecture that has all features of the table, with what it takes to have them.
CPUS = {
    "x86_64": ("x86_64-linux-gnu", "diamondrapids", ""),
    "aarch64": ("aarch64-linux-gnu", "neoverse-v3", "+sme2,+sme-f64f64,+fp16fml"),
    "powerpc64le": ("powerpc64le-linux-gnu", "pwr10", ""),
    "riscv64": ("riscv64-linux-gnu", "sifive-p670", "+v"),
}


@pytest.mark.parametrize("arch", [arch.name for arch in ARCHS if arch.built_on])
def test_the_table_says_what_llvm_does(arch: str) -> None:
    """Of each feature that others are built on; in `make test` of every fourth one: each asks a child."""
    triple, cpu, more = CPUS[arch]
    names = tuple(sorted(find_arch(arch).built_on))
    everything = cpu_features(triple, cpu, more, names)
    assert everything == set(names)
    needed = {entry[1:] for entry in find_arch(arch).calling}
    bases = {base for found in find_arch(arch).built_on.values() for base in found}
    for feature in share(sorted(bases - needed), 4):
        try:
            left = cpu_features(triple, cpu, ",".join(filter(None, (more, f"-{feature}"))), names)
        except InvalidTarget:  # LLVM's own rules of RISC-V's names
            assert arch == "riscv64"
            continue
        lost = {entry[1:] for entry in expanded(arch, [f"-{feature}"])}
        assert everything - left == lost & everything, feature


@pytest.mark.parametrize("arch", [arch.name for arch in ARCHS if arch.built_on])
def test_names_that_llvm_knows(arch: str) -> None:
    triple, _, _ = CPUS[arch]
    known = known_features(triple) | {"64bit-support", "fpu"}
    assert {entry[1:] for entry in find_arch(arch).calling} <= known
    assert {
        *find_arch(arch).built_on,
        *(base for found in find_arch(arch).built_on.values() for base in found),
    } <= known


@pytest.mark.parametrize(
    "text",
    [
        "x86_64-linux-gnu:haswell:-sse2",
        "x86_64-linux-gnu:znver4:+avx2,-64bit",
        "x86_64-linux-gnu:znver4:+soft-float",
        "arm64-apple-macosx:apple-m1:-neon",
        "aarch64-linux-gnu:neoverse-v1:-fp-armv8",
        "powerpc64le-linux-gnu:pwr10:-hard-float",
        "riscv64-linux-gnu:sifive-p670:-d",
        "riscv64-linux-gnu:sifive-p670:-f",
        "s390x-linux-gnu:z15:+soft-float",
        "loongarch64-linux-gnu:la664:-d",
    ],
)
def test_what_calls_need_stays(text: str) -> None:
    with pytest.raises(FeatureNeeded, match="the calling convention of"):
        TargetName.parse(text)
    with pytest.raises(FeatureNeeded):
        tw.compile(tw.Gemm(), target=text)


def test_records_are_checked_too() -> None:
    machine = TargetName.parse("x86_64-linux-gnu:haswell").machine(frozenset({"avx2", "fma", "f16c", "avx"}))
    with pytest.raises(FeatureNeeded, match="-sse2"):
        Machine(**{**machine.__dict__, "features": "+avx2,-sse2"})


@pytest.mark.skipif(triple_arch(tw.machine().triple) != "x86_64", reason="features of x86-64")
@pytest.mark.parametrize("feature", ["sse3", "sse4.1", "avx", "avx2", "avx512f"])
def test_what_is_built_on_a_feature_goes_with_it(feature: str) -> None:
    facts = detect_host(Settings(features=f"-{feature}"))
    lost = {entry[1:] for entry in expanded("x86_64", [f"-{feature}"])}
    assert not lost & enabled_features(facts.features.value)
    assert not lost & set(facts.isa.value.features)


@pytest.mark.skipif(triple_arch(tw.machine().triple) != "x86_64", reason="features of x86-64")
def test_a_host_without_a_feature_multiplies() -> None:
    code = """
import os
os.environ |= {"TILEWRIGHT_FEATURES": "-sse4.1", "TILEWRIGHT_CACHE": "0"}
import numpy as np, tilewright as tw
assert tw.machine().isa.name == "generic128"
assert (tw.matmul(np.ones((9, 20), np.float32), np.ones((20, 33), np.float32)) == 20).all()
"""
    run_python("-c", code)


def test_what_is_named_is_asked_about_before_llvm_compiles() -> None:
    problem = tw.Gemm(m=3, n=3, k=3)
    with pytest.raises(UnknownCpu, match="nonsense"):
        tw.compile(problem, target=tw.machine(cpu="nonsense"))
    with pytest.raises(UnknownFeature, match="nonsense"):
        tw.compile(problem, target=tw.machine(features="-nonsense"))
    for text in ("avx2", "-", "-a b", "+\u00e9", "++avx"):
        with pytest.raises(InvalidSetting, match="features"):
            tw.machine(features=text)
    host = tw.machine(cpu=tw.machine().cpu)
    assert host.named
    kernel = tw.compile(tw.Gemm(m=3, n=3, k=3), target=host)
    ones = np.ones((3, 3), np.float32)
    assert np.array_equal(kernel(ones, ones, ones.copy()), 3 * ones)
