"""Targets by triple and CPU: how they are spelled, the row and the caches they get, kernels for them."""

from __future__ import annotations

import re

import pytest

import tilewright as tw
from tilewright.compiler.target import resolve_target
from tilewright.errors import InvalidTarget, TilewrightError, UnknownCpu, UnknownFeature, UnknownTriple
from tilewright.machine.custom import TargetName
from tilewright.machine.machine import runs_on


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("aarch64-linux-gnu:neoverse-n2:+sve", ("aarch64-linux-gnu", "neoverse-n2", "+sve")),
        ("x86_64-linux-gnu:znver5", ("x86_64-linux-gnu", "znver5", "")),
        ("x86_64-linux-gnu:znver5:", ("x86_64-linux-gnu", "znver5", "")),
        (" a:b : +c,,-d.e ,", ("a", "b", "+c,-d.e")),
    ],
)
def test_spelling(text: str, parts: tuple[str, str, str]) -> None:
    name = TargetName.parse(text)
    assert (name.triple, name.cpu, name.features) == parts


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a:b:c:d", "4 parts"),
        ("a", "1 parts"),
        (":b", "'' is not the name of a triple"),
        ("a:", "'' is not the name of a CPU"),
        ("a:b c", "'b c' is not the name of a CPU"),
        ("a:b:avx2", "'avx2' is not a feature with a sign"),
        ("a:b:+", "'+' is not a feature"),
    ],
)
def test_wrong_spelling(text: str, reason: str) -> None:
    with pytest.raises(InvalidTarget, match=re.escape(reason)):
        TargetName.parse(text)


@pytest.mark.parametrize(
    ("target", "isa", "l2_kib", "line"),
    [
        ("aarch64-linux-gnu:neoverse-n2:+sve", "neon", 512, 64),
        ("x86_64-linux-gnu:znver5", "avx512", 256, 64),
        ("x86_64-linux-gnu:znver5:-avx512f", "avx2", 256, 64),
        ("x86_64-linux-gnu:penryn", "generic128", 256, 64),
        ("x86_64-linux-gnu:penryn:+avx2,+f16c,+fma", "avx2", 256, 64),
        ("s390x-linux-gnu:z15", "generic128", 256, 64),
    ],
)
def test_the_best_row_that_the_cpu_has(target: str, isa: str, l2_kib: int, line: int) -> None:
    machine = resolve_target(target)
    assert (machine.name, machine.isa.name) == (target, isa)
    assert (machine.l2.size, machine.l1.line) == (l2_kib * 1024, line)
    assert machine.cores == 1


def test_a_kernel_for_another_cpu() -> None:
    kernel = tw.compile(tw.Gemm(dtype="f64"), target="aarch64-linux-gnu:neoverse-n2:+sve")
    assert kernel.name.endswith("_neon")
    assert "fmla" in kernel.assembly
    assert kernel.object_code[18:20] == b"\xb7\x00"  # EM_AARCH64
    with pytest.raises(tw.TilewrightError, match="cannot run on this CPU"):
        assert kernel.address


def test_the_host_spelled_out_runs_and_others_do_not() -> None:
    host = tw.machine()
    spelled = f"{host.triple}:{host.cpu}:{host.features}"  # a virtual machine may hide what the CPU has
    assert runs_on(resolve_target(spelled), host)
    lacking = [entry[1:] for entry in host.features.split(",") if entry.startswith("-")]
    more = next(name for name in lacking if name not in host.isa.features)
    assert not runs_on(resolve_target(f"{spelled},+{more}"), host)


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("abacus-linux:x", UnknownTriple),
        ("x86_64-linux-gnu:zenver5", UnknownCpu),
        ("x86_64-linux-gnu:znver5:+avx1024", UnknownFeature),
        ("x86_64-linux-gnu:i386", InvalidTarget),
        ("x86_64:", InvalidTarget),
    ],
)
def test_what_cannot_be_compiled_for(target: str, error: type[TilewrightError]) -> None:
    with pytest.raises(error):
        tw.compile(tw.Gemm(), target=target)
