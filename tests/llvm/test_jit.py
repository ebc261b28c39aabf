"""Linking objects: code runs, is freed with its owner, and names of other objects do not matter."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, int64

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self")


def constant_object(value: int) -> bytes:
    """An object that exports `answer`, which returns a value."""
    machine = tw.machine()
    module = Module("answer", machine.triple, data_layout(machine))
    module.define("answer", INT64, [], exported=True).ret(int64(value))
    return emit_object(str(module), "answer", machine)


def answer(code: Linked) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("answer"))())


def mapped(address: int) -> str:
    """The line of /proc/self/maps that holds an address, or nothing."""
    for line in Path("/proc/self/maps").read_text(encoding="ascii").splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= address < last:
            return line
    return ""


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def test_linked_code_runs() -> None:
    assert answer(Linked(constant_object(42), ("answer",), {})) == 42


def test_equal_symbols_of_two_objects_coexist() -> None:
    codes = [Linked(constant_object(value), ("answer",), {}) for value in range(3)]
    assert [answer(code) for code in codes] == [0, 1, 2]
    assert len({code.address("answer") for code in codes}) == 3
    del codes[1]
    gc.collect()
    assert [answer(code) for code in codes] == [0, 2]


def test_one_object_can_be_linked_twice() -> None:
    data = constant_object(7)
    first, second = (Linked(data, ("answer",), {}) for _ in range(2))
    assert first.address("answer") != second.address("answer")
    assert answer(first) == answer(second) == 7


def test_an_import_is_the_address_given() -> None:
    machine = tw.machine()
    module = Module("caller", machine.triple, data_layout(machine))
    f = module.define("answer", INT64, [], exported=True)
    imported = module.external("elsewhere")
    f.ret(f.call(Callee(INT64, imported.text), []))
    data = emit_object(str(module), "caller", machine)

    elsewhere = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: 1234)
    address = ctypes.cast(elsewhere, ctypes.c_void_p).value
    assert address is not None
    assert answer(Linked(data, ("answer",), {"elsewhere": address})) == 1234


def test_a_missing_import_is_refused_when_linking() -> None:
    machine = tw.machine()
    module = Module("caller", machine.triple, data_layout(machine))
    f = module.define("answer", INT64, [], exported=True)
    f.ret(f.call(Callee(INT64, module.external("tilewright_nowhere").text), []))
    data = emit_object(str(module), "caller", machine)
    with pytest.raises(RuntimeError, match="answer"):
        Linked(data, ("answer",), {})


def test_the_tracker_goes_with_its_owner() -> None:
    code = Linked(constant_object(1), ("answer",), {})
    tracker = weakref.ref(code._tracker)
    assert tracker() is not None
    del code
    gc.collect()
    assert tracker() is None


@linux_only
def test_the_code_goes_with_its_owner() -> None:
    code = Linked(constant_object(1), ("answer",), {})
    address = code.address("answer")
    assert " r-xp " in mapped(address), "code is executable and not writable"
    del code
    gc.collect()
    assert "x" not in (mapped(address).split() or ["", ""])[1]


@linux_only
def test_200_cycles_of_compiling_linking_and_freeing_stay_small() -> None:
    def cycle(value: int) -> None:
        assert answer(Linked(constant_object(value), ("answer",), {})) == value

    for value in range(20):  # LLVM's own tables and the allocator's arenas
        cycle(value)
    gc.collect()
    before = resident_bytes()
    for value in range(200):
        cycle(value)
    gc.collect()
    assert resident_bytes() - before < 4 << 20


def test_pointers_pass_through() -> None:
    machine = tw.machine()
    module = Module("first", machine.triple, data_layout(machine))
    f = module.define("answer", INT64, [("p", POINTER)], exported=True)
    f.ret(f.load(INT64, f.at(f.arguments["p"], 8), 8))
    code = Linked(emit_object(str(module), "first", machine), ("answer",), {})
    array = (ctypes.c_int64 * 2)(5, 6)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(code.address("answer"))(array) == 6


FAR_APART = """
import mmap
import tilewright as tw
from tilewright.llvm.jit import Linked
kernel = tw.compile(tw.Gemm(a="row", b="row", c="row"))
code, symbol = kernel.object_code, (kernel.symbol,)
held = []
for _ in range(100):
    held.append((mmap.mmap(-1, 256 << 20), Linked(code, symbol, {})))
print(len({linked.address(symbol[0]) for _, linked in held}))
"""


def test_objects_are_linked_beside_large_reservations() -> None:
    """Sections of one object stay together wherever there is room: 25 GiB between the first and the last."""
    command = [sys.executable, "-c", FAR_APART]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, "100"), done.stderr
