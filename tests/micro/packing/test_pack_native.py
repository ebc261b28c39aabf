"""The pack kernel, run on every row of this host, against the interpreter's `Pack`.

What a pack may write: the micro-panels themselves. Everything around the destination must stay.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from shares import EVERY_TEST_RUNS, covering, share
from support import GUARD_PAGES, GuardedMemory, host_rows
from tiers import crossed, named

import tilewright as tw
from tilewright.ir.expressions import Constant, Name
from tilewright.ir.interpret import Interpreter
from tilewright.ir.nodes import Pack, Slice
from tilewright.llvm.build import Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID
from tilewright.machine.isa import Isa
from tilewright.macro.blocking import choose_blocking
from tilewright.micro.packing.long_words import pack_kernel
from tilewright.micro.packing.pack import Adjacent
from tilewright.spec.dtype import (
    BF16,
    C64,
    C128,
    F16,
    F32,
    F64,
    I4,
    I8,
    I16,
    I32,
    I64,
    U4,
    U8,
    DType,
    Kind,
)
from tilewright.spec.parts import Parts

Array: TypeAlias = NDArray[Any]

ARGUMENTS = ("destination", "source", "lane_stride", "depth_stride", "lanes", "depth")
GUARD = 40
SENTINEL = -77.0


class Form(NamedTuple):
    """What a pack does with its elements."""

    source: DType
    to: DType
    kr: int = 1
    unit: int = 1
    parts: Parts = Parts.WHOLE

    def node(self, lanes: int, depth: int, panel: int) -> Pack:
        """The statement of such a pack, strides by name."""
        panels = Slice("panels", Constant(0), (Constant(self.kr), Constant(self.kr * panel)), None, self.kr)
        source = Slice("source", Constant(0), (Name("lane"), Name("depth")))
        return Pack(panels, source, Constant(lanes), Constant(depth), panel, self.kr, self.unit, self.parts)

    def size(self, lanes: int, depth: int, panel: int) -> int:
        """Elements of the panels."""
        lane_spread, depth_spread = self.parts.spread
        padded = -(-depth * depth_spread // self.unit) * self.unit
        return -(-lanes * lane_spread // panel) * panel * padded


@cache
def native_pack(
    isa: Isa, form: Form, panel: int, adjacent: Adjacent = Adjacent.UNKNOWN
) -> Callable[..., None]:
    machine = tw.machine().with_isa(isa)
    module = Module("pack", machine.triple, data_layout(machine))
    kinds = [(name, POINTER if name in ARGUMENTS[:2] else INT64) for name in ARGUMENTS]
    f = module.define("pack", VOID, kinds, exported=True)
    kernel = pack_kernel(isa, form.source, form.to, panel, form.kr, form.unit, form.parts, adjacent)
    f.call(kernel.emit(module), list(f.arguments.values()))
    f.ret()
    code = Linked(emit_object(str(module), "pack", machine), ("pack",), {})
    native = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 4
    function: Any = ctypes.CFUNCTYPE(None, *native)(code.address("pack"))
    function.owner = code  # the code lives as long as the function
    return cast("Callable[..., None]", function)


def interpreted_pack(
    source: Array, origin: int, strides: tuple[int, int], node: Pack, panels: tuple[int, DType]
) -> Array:
    flat = np.ones(panels[0], panels[1].numpy)
    run = Interpreter({"panels": (flat, 0), "source": (source, origin)}, {})
    run.pack(node, {"lane": strides[0], "depth": strides[1]})
    return flat


def cases(panel: int) -> Iterator[tuple[int, int]]:
    for lanes in sorted({1, panel - 1, panel, panel + 1, 2 * panel, 2 * panel + 3} - {0}):
        for depth in (0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33):
            yield lanes, depth


#: Strides as functions of lanes and depth: every way the kernel knows, and both signs.
STRIDES: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "lanes adjacent": lambda lanes, depth: (1, lanes + 3),
    "lanes adjacent, no gap": lambda lanes, depth: (1, lanes),
    "lanes adjacent, depth backwards": lambda lanes, depth: (1, -(lanes + 1)),
    "depths adjacent": lambda lanes, depth: (depth + 5, 1),
    "depths adjacent, no gap": lambda lanes, depth: (depth, 1),
    "depths adjacent, lanes backwards": lambda lanes, depth: (-(depth + 1), 1),
    "neither": lambda lanes, depth: (2 * depth + 1, 2),
    "neither, backwards": lambda lanes, depth: (-3, -3 * (lanes + 1)),
    "both adjacent": lambda lanes, depth: (1, 1),
    "one lane repeated": lambda lanes, depth: (0, 1),
    "one depth repeated": lambda lanes, depth: (1, 0),
}


def panels_of(isa: Isa, dtype: DType) -> tuple[int, ...]:
    machine = tw.machine().with_isa(isa)
    blocking = choose_blocking(machine, machine.isa.tile(dtype))
    return tuple(sorted({1, 5, 13, blocking.mr, blocking.nr}))


@pytest.mark.parametrize(
    ("isa", "dtype", "how"), crossed(product(host_rows(), [F32, F64]), STRIDES, 2), ids=named
)
def test_native_pack_equals_the_interpreter(isa: Isa, dtype: DType, how: str) -> None:
    random = np.random.default_rng(0)
    for panel in panels_of(isa, dtype):
        form = Form(dtype, dtype)
        pack = native_pack(isa, form, panel)
        for lanes, depth in cases(panel):
            strides = STRIDES[how](lanes, depth)
            reach = ((lanes - 1) * strides[0], max(depth - 1, 0) * strides[1])
            origin = -sum(min(0, step) for step in reach)
            length = origin + sum(max(0, step) for step in reach) + 1
            source = random.standard_normal(length).astype(dtype.numpy)
            size, node = form.size(lanes, depth, panel), form.node(lanes, depth, panel)
            expected = interpreted_pack(source, origin, strides, node, (size, dtype))
            found = np.full(GUARD + size + GUARD, SENTINEL, dtype.numpy)
            start = found.ctypes.data + GUARD * dtype.size
            pack(start, source.ctypes.data + origin * dtype.size, *strides, lanes, depth)
            where = f"panel {panel}, {lanes} lanes, depth {depth}"
            np.testing.assert_array_equal(found[GUARD : GUARD + size], expected, where)
            assert (found[:GUARD] == SENTINEL).all(), f"{where}: wrote before the panels"
            assert (found[GUARD + size :] == SENTINEL).all(), f"{where}: wrote behind the panels"


#: Words of several depths, whole steps of more words, elements that are widened, parts of complex numbers.
FORMS = [
    Form(F32, F32, unit=4),
    Form(BF16, BF16, 2, 2),
    Form(BF16, BF16, 2, 8),
    Form(F16, F16, 2, 4),
    Form(F16, F32),
    Form(BF16, F32),
    Form(F32, F64),
    Form(BF16, F64),
    Form(I8, I8, 4, 4),
    Form(U8, U8, 8, 8),
    Form(I8, I8, 8, 16),
    Form(I16, I16, 2, 2),
    Form(I8, I16, 2, 2),
    Form(U8, I16, 2, 8),
    Form(I8, I32),
    Form(I32, I64),
    Form(I4, I8, 4, 4),
    Form(U4, U8, 4, 4),
    Form(U4, I16, 2, 4),
    Form(C64, F32, parts=Parts.SPLIT),
    Form(C64, F32, parts=Parts.ROTATED),
    Form(C128, F64, parts=Parts.SPLIT),
    Form(C128, F64, parts=Parts.ROTATED),
    Form(C64, F32, unit=8, parts=Parts.SPLIT),
    Form(C64, F64, parts=Parts.SPLIT),
    Form(C64, F64, parts=Parts.ROTATED),
]


def label(form: Form | int) -> str:
    """A form, or the lanes of a panel, as the identifier of a test."""
    if isinstance(form, int):
        return str(form)
    return f"{form.source}-{form.to}-{form.kr}-{form.unit}-{form.parts.value}"


def values(dtype: DType, count: int, random: np.random.Generator) -> Array:
    """Elements of every kind; the half of a byte that integers of four bits lack holds anything."""
    if dtype.kind is Kind.COMPLEX:
        return values(dtype.real, 2 * count, random).view(dtype.numpy)
    if not dtype.is_integer:
        found = random.standard_normal(count).astype(dtype.numpy)
        found[random.random(count) < 0.1] = np.inf
        found[random.random(count) < 0.1] = np.nan
        return found
    return random.integers(0, 256, count * dtype.size, np.uint8).view(dtype.numpy)


def low_halves(array: Array, dtype: DType) -> Array:
    """Integers of four bits as ml_dtypes writes them."""
    if dtype.significand != 4:
        return array
    low = array.view(np.uint8) & 15
    signed = low.astype(np.int8) - 16 * (low > 7) if dtype.kind is Kind.SIGNED else low
    return np.ascontiguousarray(signed).astype(dtype.numpy)


#: Places in memory: strides of lanes and depths in elements, given how many there are.
PLACES: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "lanes adjacent": lambda lanes, depth: (1, lanes + 3),
    "lanes adjacent, depth backwards": lambda lanes, depth: (1, -lanes),
    "depths adjacent": lambda lanes, depth: (depth + 5, 1),
    "depths adjacent, lanes backwards": lambda lanes, depth: (-max(depth, 1), 1),
    "neither": lambda lanes, depth: (2 * depth + 3, 2),
    "neither, backwards": lambda lanes, depth: (-3, -3 * (lanes + 1)),
}


@pytest.mark.skipif(not GUARD_PAGES, reason="no pages can be protected")
@pytest.mark.parametrize(
    ("isa", "form"),
    crossed(host_rows(), ([form] for form in FORMS), 2),
    ids=lambda part: label(part) if isinstance(part, Form) else part.name,
)
def test_every_form_between_guard_pages(isa: Isa, form: Form) -> None:
    """Nothing beside the source is read and nothing beside the panels is written: a guard page is there.

    Panels of whole vectors of words, and of six or of five elements: in `make test` the next form takes the
    other.
    """
    whole = max(1, isa.vector_bits // (form.to.bits * form.kr))
    spread = form.parts.spread[0]
    rest = (6 * spread, 5 * spread)
    given, found = GuardedMemory(1 << 16), GuardedMemory(1 << 16)
    for panel in (2 * whole, *share(rest, 2, FORMS.index(form))):
        each = panel // spread  # elements of the source
        steps = (1, each - 1, each, each + 1, 2 * each + 3)
        for number, (lanes, depth, how) in enumerate(product(steps, (0, 1, 3, 8, 9, 17, 35), PLACES)):
            if number % 3 == panel % 3:  # each case for some panels
                continue
            if EVERY_TEST_RUNS or (number + panel) % 4 == 0:
                check_pack(isa, form, panel, (lanes, depth, how), (given, found), number)


#: Words of 32 to 64 bytes, as the tiles of AMX take them of A, also in panels of exact sizes.
LONG_FORMS = [
    Form(U8, U8, 64, 64),
    Form(BF16, BF16, 32, 32),
    Form(I4, I8, 64, 64),
]


@pytest.mark.skipif(not GUARD_PAGES, reason="no pages can be protected")
@pytest.mark.parametrize(("form", "panel"), list(product(LONG_FORMS, (32, 21, 5))), ids=label)
def test_long_words_between_guard_pages(form: Form, panel: int) -> None:
    """Also of panels side by side, and of depths that end in, before and behind a square and a word."""
    isa = host_rows()[0]
    given, found = GuardedMemory(1 << 18), GuardedMemory(1 << 18)
    steps, depths = (panel - 1, panel, panel + 1, 4 * panel + 3), (0, 1, 16, 33, 64, 79, 130)
    for number, (lanes, depth, how) in enumerate(covering(steps, depths, PLACES)):
        check_pack(isa, form, panel, (lanes, depth, how), (given, found), number)


def check_pack(
    isa: Isa,
    form: Form,
    panel: int,
    case: tuple[int, int, str],
    memory: tuple[GuardedMemory, GuardedMemory],
    number: int,
) -> None:
    """One pack of lanes and depths at a place; its number draws the values and chooses the guard pages.

    Every other pack is one that knows which axis is adjacent.
    """
    lanes, depth, how = case
    given, found = memory
    strides = PLACES[how](lanes, depth)
    known = {strides[0]: Adjacent.LANES, strides[1]: Adjacent.DEPTHS}.get(1, Adjacent.UNKNOWN)
    pack = native_pack(isa, form, panel, known if number // 2 % 2 else Adjacent.UNKNOWN)
    block = values(form.source, lanes * depth, np.random.default_rng(number)).reshape(lanes, depth)
    plain = low_halves(block, form.source)
    size = form.size(lanes, depth, panel)
    expected = interpreted_pack(
        plain.reshape(-1), 0, (depth, 1), form.node(lanes, depth, panel), (size, form.to)
    )
    bytes_apart = (strides[0] * form.source.size, strides[1] * form.source.size)
    source = given.place(block, bytes_apart, at_end=number % 2 == 0)
    panels = found.place(np.ones(size, form.to.numpy), (form.to.size,), at_end=number % 4 < 2)
    before = found.outside(panels)
    pack(panels.ctypes.data, source.ctypes.data, *strides, lanes, depth)
    where = f"panel {panel}, {lanes} lanes, depth {depth}, {how}"
    if form.source == form.to:
        np.testing.assert_array_equal(panels.view(np.uint8), expected.view(np.uint8), where)
    else:
        np.testing.assert_array_equal(panels.astype(np.float64), expected.astype(np.float64), where)
    np.testing.assert_array_equal(found.outside(panels), before, f"{where}: wrote beside the panels")


@pytest.mark.parametrize("isa", host_rows(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_values_are_copied_bit_by_bit(isa: Isa, dtype: DType) -> None:
    """NaN payloads, signed zeros, infinities and subnormals pass through unchanged."""
    machine = tw.machine().with_isa(isa)
    panel = choose_blocking(machine, machine.isa.tile(dtype)).nr
    depth = 16
    bits = np.random.default_rng(1).integers(0, 256, panel * depth * dtype.size, np.uint8)
    source = bits.view(dtype.numpy)
    smallest = np.nextafter(np.zeros(1, dtype.numpy_name), 1)[0]
    source[:4] = (np.nan, -0.0, np.inf, smallest)
    for strides in ((1, panel), (depth, 1)):
        found = np.zeros(panel * depth, dtype.numpy)
        native_pack(isa, Form(dtype, dtype), panel)(
            found.ctypes.data, source.ctypes.data, *strides, panel, depth
        )
        shape = (depth, panel) if strides[0] == 1 else (panel, depth)
        lanes_last = source.reshape(shape) if strides[0] == 1 else source.reshape(shape).T
        expected = np.ascontiguousarray(lanes_last).view(np.uint8)
        np.testing.assert_array_equal(found.view(np.uint8), expected.reshape(-1))
