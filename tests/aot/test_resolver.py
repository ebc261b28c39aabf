"""The resolver's machine code: its bytes are what an assembler makes of the words beside them."""

from __future__ import annotations

import inspect
import re

import llvmlite.binding as llvm
import pytest

from tilewright.aot import resolver
from tilewright.aot.resolver import Choice, Dispatched, argument_types, resolver_ir
from tilewright.aot.variants import order_targets
from tilewright.llvm.backends import initialize
from tilewright.llvm.target import emit_object, parse
from tilewright.llvm.values import INT64, POINTER, Type
from tilewright.machine.catalog import find_machine
from tilewright.machine.host import host_machine

BYTES = {"_CPUID": resolver._CPUID, "_XGETBV": resolver._XGETBV}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_are_the_words_beside_them(name: str) -> None:
    """Each line's comment is assembled by LLVM, which has an assembler for its own host only."""
    if host_machine().arch != "x86_64":
        pytest.skip("LLVM has no assembler for x86 here")
    source = inspect.getsource(resolver)
    lines = re.findall(
        r'^    "([0-9a-f]+)"  # (.+)$', source[source.index(f"\n{name} = ") :].split("\n)")[0], re.MULTILINE
    )
    assert b"".join(bytes.fromhex(code) for code, _ in lines) == BYTES[name]
    initialize()
    llvm.initialize_native_asmparser()
    words = "; ".join(text for _, text in lines)
    module = (
        f'define void @f() naked {{ call void asm sideeffect inteldialect "{words}", ""()\nunreachable }}'
    )
    machine = host_machine()
    made = emit_object(f'target triple = "{machine.triple}"\n{module}', "f", machine)
    assert BYTES[name] in made


TARGETS = (("haswell", "sapphirerapids"), ("neoverse-n1", "neoverse-v2"), ("pwr9", "pwr10"))


def text_of(targets: tuple[str, ...]) -> str:
    variants = order_targets([find_machine(target) for target in targets])
    choices = [Choice(variant.target, variant.conditions) for variant in variants.ordered]
    arguments = (POINTER, INT64, Type("float", "f32"))
    function = Dispatched("multiply", arguments, tuple(f"multiply__{choice.target}" for choice in choices))
    return resolver_ir("lib", variants.baseline, choices, [function])


@pytest.mark.parametrize("targets", TARGETS, ids=lambda targets: targets[0])
def test_llvm_takes_it(targets: tuple[str, ...]) -> None:
    text = text_of(targets)
    module = parse(text, "lib")
    exported = [function.name for function in module.functions if str(function.linkage) == "Linkage.external"]
    assert "lib.choose" not in exported
    assert "@lib_variant = weak alias ptr (), ptr @exported.lib_variant" in text
    assert "@multiply = weak alias void (ptr, i64, float), ptr @exported.multiply" in text
    assert "asm" not in text
    assert emit_object(text, "lib", find_machine(targets[0])).startswith(b"\x7fELF")


def test_only_what_is_needed_is_read() -> None:
    assert "@syscall" in text_of(TARGETS[0])
    assert "@xgetbv" in text_of(("haswell",))
    assert "@syscall" not in text_of(("haswell",))
    assert "@xgetbv" not in text_of(("x86-64-v2",))
    assert "getauxval" not in text_of(TARGETS[0])
    assert "cpuid" not in text_of(TARGETS[1])


def test_the_best_target_is_tried_first() -> None:
    """The last `select` wins: its condition is that of the best target, and it chooses number 0."""
    chosen = re.findall(r"select i1 .*, i64 (\d+), i64 ", text_of(("x86-64-v2", "x86-64-v3", "x86-64-v4")))
    assert chosen == ["2", "1", "0"]


def test_tiles_are_asked_of_the_system() -> None:
    assert "@syscall(i64 158, i64 4131, i64 18)" in text_of(("sapphirerapids", "x86-64-v2"))


def test_other_architectures_read_the_auxiliary_vector() -> None:
    for targets in TARGETS[1:]:
        assert "@getauxval(i64 16)" in text_of(targets)


def test_argument_types() -> None:
    text = "define void @f(ptr noalias %a, i64 %n, double %x) { ret void }"
    assert [kind.text for kind in argument_types(text, "f")] == ["ptr", "i64", "double"]
