"""Modules of LLVM IR with and without products: what is written, what is said, and how failures end."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from tilewright.errors import (
    InvalidChoice,
    NotAModule,
    OptimiserFailed,
    TargetNotOfModule,
    ThreadsNotOnTarget,
)
from tilewright.llvm.backends import initialize
from tilewright.llvm.canonical import optimise_beside, optimise_module
from tilewright.llvm.generation import generation
from tilewright.llvm.jit import Linked
from tilewright.llvm.matrix import PREFIX
from tilewright.loops.llvm.module import read_module
from tilewright.loops.opt import child, work
from tilewright.loops.opt.machines import machine_of
from tilewright.loops.opt.optimise import optimise
from tilewright.loops.opt.records import Optimised, OutputFormat, ProductOptions
from tilewright.loops.opt.work import Work, optimise_here
from tilewright.loops.splice.threads import ThreadSource
from tilewright.machine.catalog import find_machine
from tilewright.machine.host import host_machine

PRODUCT = (Path(__file__).parent / "product.ll").read_text()
#: The flags with which clang says that sums may change their order.
FAST = "reassoc nnan ninf nsz arcp contract afn"


@cache
def optimised(
    source: str | bytes = PRODUCT, form: OutputFormat = OutputFormat.LL, options: ProductOptions | None = None
) -> Optimised:
    """What the child process does, in this one."""
    given = source.encode() if isinstance(source, str) else source
    return optimise_here(Work(given, "a.ll", form, options or ProductOptions()))


HOST = ProductOptions(target=host_machine())


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[threading.Thread]]:
    """Modules of any length are optimised while they are searched; the threads that do it."""
    started: list[threading.Thread] = []

    def noted(module: Any, target: Any) -> threading.Thread:
        started.append(optimise_beside(module, target))
        return started[-1]

    monkeypatch.setattr(work, "AHEAD_BYTES", 0)
    monkeypatch.setattr(work, "optimise_beside", noted)
    monkeypatch.setattr(generation, "most", 2)
    yield started
    for thread in started:
        thread.join()


#: A module whose one loop is no product, and which -O3 changes.
SUM = """
define float @sum(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %s = phi float [0.0, %entry], [%more, %loop]
  %place = getelementptr inbounds float, ptr %x, i64 %i
  %value = load float, ptr %place
  %more = fadd fast float %s, %value
  %next = add nuw nsw i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %end
end:
  ret float %more
}
"""


@pytest.mark.parametrize("form", OutputFormat, ids=lambda form: form.value)
def test_a_module_without_products_is_optimised_while_it_is_searched(
    ahead: list[threading.Thread], form: OutputFormat
) -> None:
    request = Work(SUM.encode(), "a.ll", form, HOST)
    found = optimise_here(request)
    assert len(ahead) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "AHEAD_BYTES", 1 << 30)
        other = optimise_here(request)
    assert len(ahead) == 1
    if form is OutputFormat.BITCODE:  # it numbers what LLVM's context knows from modules before, too
        assert str(llvm.parse_bitcode(found.content)) == str(llvm.parse_bitcode(other.content))
    else:
        assert found == other
    assert form is not OutputFormat.LL or "<" in found.text, "vectors"


def test_where_there_is_a_product_that_was_in_vain(ahead: list[threading.Thread]) -> None:
    found = optimise_here(Work(PRODUCT.encode(), "a.ll", OutputFormat.LL, HOST))
    assert len(ahead) == 1
    assert found.remarks == optimised().remarks
    assert found.text == optimised(options=HOST).text


@pytest.mark.parametrize(
    ("source", "dump", "threads"),
    [
        (SUM, True, 2),
        (SUM, False, 1),
        (f"{SUM}declare <4 x float> {PREFIX}transpose.v4f32(<4 x float>, i32 immarg, i32 immarg)", False, 2),
    ],
    ids=["dump", "one core", "matrices"],
)
def test_what_is_not_optimised_while_it_is_searched(
    ahead: list[threading.Thread], monkeypatch: pytest.MonkeyPatch, source: str, dump: bool, threads: int
) -> None:
    monkeypatch.setattr(generation, "most", threads)
    optimise_here(Work(source.encode(), "a.ll", OutputFormat.LL, HOST, dump))
    assert not ahead


@pytest.mark.parametrize("forks", [False, True])
def test_a_process_may_end_before_its_thread(forks: bool) -> None:
    """A product among many functions: the answer is there long before all of them are optimised twice."""
    bulk = "".join(SUM.replace("@sum", f"@sum{number}") for number in range(300))
    found = optimise(PRODUCT + bulk, options=HOST, forks=forks)
    assert [remark.replaced for remark in found.remarks[:4]] == [True, False, True, False]
    assert found.text.count("define float @sum") == 300


def test_a_line_for_each_nest() -> None:
    lines = [str(remark) for remark in optimised().remarks]
    assert [line.split(",")[0] for line in lines] == [
        "replaced product:2: c[m",
        "refused steps:13",
        "replaced steps:15: c[m",
        "refused turn:23",
    ]
    assert lines[0] == "replaced product:2: c[m,n] = a[m,k]*b[k,n], m=m, n=n, k=k, f32"
    assert "calls calls" in lines[1]
    assert lines[3].endswith("since it does not multiply two elements")


def product(code: Linked, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_int] * 3, *[ctypes.c_void_p] * 3)(code.address("product"))
    function(*c.shape, a.shape[1], a.ctypes.data, b.ctypes.data, c.ctypes.data)


@pytest.mark.parametrize("sizes", [(3, 4, 5), (64, 70, 66), (0, 4, 4), (4, 4, 0), (200, 300, 257)])
def test_the_code_multiplies(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-8, 8, shape).astype("f4") for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, "f4")
    imports = {
        name: ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0 for name in C_NAMES
    }
    imports["calls"] = ctypes.cast(CALLS, ctypes.c_void_p).value or 0
    product(Linked(optimised(form=OutputFormat.OBJECT, options=HOST).content, ("product",), imports), a, b, c)
    np.testing.assert_array_equal(c, a @ b)


#: What the module asks of a C library.
C_NAMES = ("malloc", "free", "memset", "memcpy")
CALLS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda number: number)


def test_forms() -> None:
    text = optimised().text
    assert "define internal void @tilewright_0_" in text
    bitcode = optimised(form=OutputFormat.BITCODE).content
    assert bitcode.startswith(b"BC\xc0\xde")
    assert "tilewright_0_" in str(llvm.parse_bitcode(bitcode))
    assert "product:" in optimised(form=OutputFormat.ASSEMBLY).text


def test_bitcode_is_read() -> None:
    initialize()
    source = llvm.parse_assembly(PRODUCT).as_bitcode()
    assert optimised(source).replaced == 2


def test_without_permission_sums_of_floats_keep_their_order() -> None:
    strict = PRODUCT.replace("fadd fast", "fadd").replace("fmul fast", "fmul")
    assert optimised(strict).replaced == 0
    assert optimised(strict, options=ProductOptions(assume_reassociation=True)).replaced == 2


def test_a_module_without_products_is_what_llvm_makes_of_it() -> None:
    initialize()
    text = str(llvm.parse_assembly(PRODUCT))
    module = read_module(text)
    for name in ("product", "steps"):
        text = text.replace("\n".join(module.functions[name].lines), "")
    found = optimised(text)
    alone = llvm.parse_assembly(text)
    optimise_module(alone, llvm.Target.from_triple(alone.triple).create_target_machine(opt=3))
    assert found.text == str(alone)
    assert not found.replaced


def test_functions_say_what_they_are_compiled_for() -> None:
    assert "vfmadd" in optimised(form=OutputFormat.ASSEMBLY).text  # x86-64-v3, in their attributes
    other = ProductOptions(target=find_machine("x86-64-v4"))
    assert "zmm" not in optimised(form=OutputFormat.ASSEMBLY).text
    assert "zmm" in optimised(form=OutputFormat.ASSEMBLY, options=other).text


@pytest.mark.parametrize(
    ("triple", "cpu", "features", "isa"),
    [
        ("x86_64-pc-linux-gnu", "x86-64", "+cmov,+fxsr,+sse2", "generic128"),
        ("x86_64-pc-linux-gnu", "znver5", "+avx512f,+avx512vl,+a-feature-of-tomorrow", "avx512"),
        ("powerpc64le-unknown-linux-gnu", "pwr10", "+mma", "vsx"),
        ("aarch64-linux-gnu", "", "", "neon"),
        ("riscv64-linux-gnu", "generic-rv64", "+m,+d", "generic128"),
    ],
)
def test_machines(triple: str, cpu: str, features: str, isa: str) -> None:
    assert machine_of(triple, cpu, features, ProductOptions()).isa.name == isa


def test_what_calls_kernels_is_compiled_as_its_caller_is() -> None:
    """Else one of both might have registers for floats in which the other one does not look."""
    spliced = dict(
        optimise_here(Work(PRODUCT.encode(), "a.ll", OutputFormat.LL, ProductOptions(), dump=True)).dumps
    )["spliced"]
    module = read_module(spliced)
    asked = [module.functions[name] for name in ("product", "tilewright_0_product_0")]
    for attribute in ("target-cpu", "target-features"):
        caller, called = (module.attribute(function, attribute) for function in asked)
        assert caller == called != ""


@pytest.mark.parametrize("name", ["sapphirerapids", "graniterapids"])
def test_tiles_that_programs_have_to_ask_for_are_left_out(name: str) -> None:
    asked = machine_of("x86_64-linux-gnu", name, "", ProductOptions())
    given = machine_of("x86_64-linux-gnu", "x86-64", "", ProductOptions(target=find_machine(name)))
    for machine in (asked, given):
        assert machine.isa.name == "avx512"
        assert not [tile for tile in machine.isa.tiles if tile.instruction.startswith("td")]


def test_caches_of_a_cpu_are_those_of_the_catalogue_or_of_the_caller() -> None:
    power = machine_of("powerpc64le-linux-gnu", "pwr10", "", ProductOptions())
    assert power.l2 == find_machine("pwr10").l2
    given = machine_of("powerpc64le-linux-gnu", "pwr10", "", ProductOptions(l2_bytes=2**18, l3_bytes=2**22))
    assert given.l3 is not None
    assert (given.l2.size, given.l3.size) == (2**18, 2**22)


@pytest.mark.parametrize("word", ["noinline optnone", "sanitize_address", "sanitize_thread", "strictfp"])
def test_functions_that_stay_as_they_are(word: str) -> None:
    marked = PRODUCT.replace("{ nounwind uwtable ", f"{{ nounwind {word} uwtable ")
    assert marked != PRODUCT
    found = optimised(marked)
    assert found.replaced == 0
    assert str(found.remarks[0]).startswith("refused product:2, since it is in a function that is ")


def test_kernels_of_functions_that_go_are_not_kept() -> None:
    gone = PRODUCT.replace("define dso_local void @steps(", "define available_externally void @steps(")
    gone = gone.replace("define dso_local void @product(", "define internal void @product(")
    found = optimised(gone)
    assert found.replaced == 2
    assert "tilewright" not in found.text


def test_loops_that_a_compiler_has_vectorised_before() -> None:
    initialize()
    module = llvm.parse_assembly(PRODUCT)
    optimise_module(module, llvm.Target.from_triple(module.triple).create_target_machine(opt=3))
    lines = [str(remark) for remark in optimised(str(module)).remarks]
    assert any("unrolled or vectorised it before" in line for line in lines)


def test_addresses_of_32_bits() -> None:
    small = re.sub(r'target datalayout = ".*"', "", PRODUCT).replace("x86_64-pc", "i686-pc")
    small = small.replace('"target-cpu"="x86-64-v3"', "").replace('"target-features"=', '"no"=')
    (line, *_) = [str(remark) for remark in optimised(small).remarks]
    assert line == "refused product:2, since it has pointers of other than 64 bits"


def test_chains_of_values_that_are_too_long() -> None:
    links = "".join(f"  %x{number + 1} = udiv i32 %x{number}, %n\n" for number in range(3000))
    start = "define dso_local void @product("
    head, function = PRODUCT.split(start)
    function = function.replace("entry:\n", f"entry:\n  %x0 = add i32 %m, %n\n{links}", 1)
    function = function.replace("store i32 %k, ptr", "store i32 %x3000, ptr", 1)
    lines = [str(remark) for remark in optimised(head + start + function).remarks]
    assert lines[0] == "refused product:2, since it computes with integers that depend on too many others"
    assert lines[-1].startswith("refused turn")


# Failures


def test_a_target_of_another_architecture() -> None:
    with pytest.raises(TargetNotOfModule, match=r"neoverse-v2 is aarch64, a\.ll is for x86_64"):
        optimised(options=ProductOptions(target=find_machine("neoverse-v2")))


def test_threads_on_a_target_without_them() -> None:
    """Systems other than Linux, and architectures that libraries are not made for."""
    options = ProductOptions(threads=ThreadSource.OWN)
    for triple in ("x86_64-apple-macosx", "x86_64-pc-windows-msvc"):
        text = re.sub('(?<=target triple = ").*(?=")', triple, PRODUCT)
        with pytest.raises(ThreadsNotOnTarget, match=f"threads=own does not work for {triple}"):
            optimised(text, options=options)


def test_text_that_is_no_module() -> None:
    with pytest.raises(NotAModule, match=r"a\.ll is not a module that LLVM \d+ reads: line 2: "):
        optimised("define void @f() {\n  no\n}")


def test_code_that_breaks_the_rules() -> None:
    with pytest.raises(NotAModule, match="does not dominate"):
        optimised("define i32 @f() {\n  %y = add i32 %x, 1\n  %x = add i32 1, 1\n  ret i32 %y\n}")


def test_bytes_that_are_neither() -> None:
    with pytest.raises(NotAModule):
        optimised(b"\xff\xfe\x00")
    with pytest.raises(NotAModule):
        optimised(b"BC\xc0\xde and no more")


def test_errors_come_back_from_the_child() -> None:
    with pytest.raises(NotAModule, match="line 1"):
        optimise("nonsense", name="b.ll")


def test_an_abort_of_llvm_is_an_error() -> None:
    foreign = (
        'target triple = "x86_64-linux-gnu"\n'
        "declare i32 @llvm.aarch64.crc32b(i32, i32)\n"
        "define i32 @f(i32 %x) {\n"
        "  %y = call i32 @llvm.aarch64.crc32b(i32 %x, i32 %x)\n"
        "  ret i32 %y\n}"
    )
    with pytest.raises(OptimiserFailed, match="Cannot select"):
        optimise(foreign, ".o")


def test_a_fork_answers_as_a_new_process() -> None:
    for source in (PRODUCT, "nonsense"):
        answers: list[object] = []
        for forks in (False, True):
            try:
                answers.append(optimise(source, ".ll", HOST, forks=forks).remarks)
            except NotAModule as error:
                answers.append(str(error))
        assert answers[0] == answers[1]


@pytest.mark.skipif(sys.platform != "linux", reason="forks are for Linux")
def test_a_fork_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(child, "answer_to", lambda _: os.abort())
    with pytest.raises(OptimiserFailed, match="signal 6"):
        optimise("", forks=True)
    monkeypatch.setattr(child, "answer_to", lambda _: 1 // 0)
    with pytest.raises(OptimiserFailed, match="ZeroDivisionError"):
        optimise("", forks=True)


def test_no_fork_beside_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    monkeypatch.setattr(child, "_fork", lambda _: pytest.fail("it forked"))
    assert optimise("define void @f() {\n  ret void\n}", forks=True).remarks == ()


def test_an_unknown_form() -> None:
    with pytest.raises(InvalidChoice, match=r"\.ll, \.bc, \.o, \.s"):
        optimise("", ".exe")


def test_the_child_replaces() -> None:
    done = optimise(PRODUCT, ".o", HOST)
    assert done.replaced == 2
    assert done.content[:4] == b"\x7fELF"


TIMES = """define internal float @times(float %x, float %y) {
  %z = fmul fast float %x, %y
  ret float %z
}

"""


def test_calls_that_hide_a_product_are_inlined() -> None:
    called = re.sub(
        r"fmul fast float (%[\w.]+), (%[\w.]+)", r"call fast float @times(float \1, float \2)", PRODUCT
    )
    assert called.count("@times") == 2
    found = optimised(called.replace("define", TIMES + "define", 1))
    assert str(found.remarks[0]).startswith("replaced product:2: c[m,n] = a[m,k]*b[k,n]")
    assert found.replaced == 2


def test_assembly_of_this_host_in_a_module() -> None:
    text = PRODUCT + '\ndefine void @stops() {\n  call void asm sideeffect "nop", ""()\n  ret void\n}\n'
    host = re.sub(r'target triple = ".*"', f'target triple = "{llvm.get_default_triple()}"', text)
    assert optimise(host, ".o", HOST).replaced == 2
