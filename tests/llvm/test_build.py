"""The IR writer: each operation, compiled and run on this host, does what its docstring says."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import draws

import tilewright as tw
from tilewright.errors import CompilationFailed
from tilewright.llvm.build import Function, Module
from tilewright.llvm.builtin import address_of
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_assembly, emit_object
from tilewright.llvm.team import BODY_ARGUMENTS, Environment, Team
from tilewright.llvm.values import (
    INT1,
    INT8,
    INT32,
    INT64,
    POINTER,
    VOID,
    Value,
    constant,
    element_type,
    int64,
    null,
    vector_of,
    vector_type,
    zero,
)
from tilewright.machine.catalog import find_machine
from tilewright.spec.dtype import F32, F64, DType

Body = Callable[[Function], None]
VECTOR = vector_type(F32, 4)


def compiled(
    body: Body, arguments: Sequence[str], kind: Any = ctypes.c_int64, imports: Mapping[str, int] | None = None
) -> Callable[..., Any]:
    """A native function of 64-bit integers (or pointers) whose body the test writes."""
    machine = tw.machine()
    module = Module("m", machine.triple, data_layout(machine))
    result = {ctypes.c_int64: INT64, ctypes.c_float: element_type(F32), ctypes.c_double: element_type(F64)}
    kinds = [(name, POINTER if name.startswith("p") else INT64) for name in arguments]
    f = module.define("f", VOID if kind is None else result[kind], kinds, exported=True)
    body(f)
    code = Linked(emit_object(str(module), "m", machine), ("f",), imports or {})
    native = [ctypes.c_void_p if name.startswith("p") else ctypes.c_int64 for name in arguments]
    function: Any = ctypes.CFUNCTYPE(kind, *native)(code.address("f"))

    function.owner = code  # the code lives as long as the function
    return cast("Callable[..., Any]", function)


def pointer(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


INTEGERS: dict[str, tuple[Callable[[Function, Value, Value], Value], Callable[[int, int], int]]] = {
    "add": (Function.add, lambda x, y: x + y),
    "sub": (Function.sub, lambda x, y: x - y),
    "mul": (Function.mul, lambda x, y: x * y),
    "minimum": (Function.minimum, min),
    "maximum": (Function.maximum, max),
    "both": (Function.and_, lambda x, y: x & y),
    "either": (Function.or_, lambda x, y: x | y),
    "opaque": (lambda f, x, y: f.freeze(f.sub(x, y)), lambda x, y: x - y),
}
PAIRS = [(0, 0), (1, 0), (7, 3), (-7, 3), (7, -3), (1, 1), (2**40, -1), (-1, -1)]


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_operations(name: str) -> None:
    emit, meaning = INTEGERS[name]
    f = compiled(lambda f: f.ret(emit(f, f.arguments["x"], f.arguments["y"])), ("x", "y"))
    assert [f(x, y) for x, y in PAIRS] == [meaning(x, y) for x, y in PAIRS]


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
@pytest.mark.parametrize("known", [-3, 0, 1, 5])
def test_folding_with_a_constant_keeps_the_value(name: str, known: int) -> None:
    emit, meaning = INTEGERS[name]
    right = compiled(lambda f: f.ret(emit(f, f.arguments["x"], int64(known))), ("x",))
    left = compiled(lambda f: f.ret(emit(f, int64(known), f.arguments["x"])), ("x",))
    for x in (-4, 0, 1, 9):
        assert (right(x), left(x)) == (meaning(x, known), meaning(known, x))


@pytest.mark.parametrize(
    ("x", "y", "up"), [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2), (2**40, 3, 366503875926)]
)
def test_division_and_shifts(x: int, y: int, up: int) -> None:
    assert compiled(lambda f: f.ret(f.ceildiv(f.arguments["x"], f.arguments["y"])), ("x", "y"))(x, y) == up
    shifted = compiled(lambda f: f.ret(f.ashr(f.shl(f.arguments["x"], int64(3)), int64(1))), ("x",))
    assert (shifted(x), shifted(-x)) == (4 * x, -4 * x)


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("<", (True, False, False)),
        ("<=", (True, True, False)),
        ("==", (False, True, False)),
        ("!=", (True, False, True)),
        (">", (False, False, True)),
        (">=", (False, True, True)),
    ],
)
def test_comparisons_and_control_flow(relation: str, expected: tuple[bool, bool, bool]) -> None:
    def selected(f: Function) -> None:
        f.ret(f.select(f.icmp(relation, f.arguments["x"], f.arguments["y"]), int64(1), int64(0)))

    def branched(f: Function) -> None:
        holds = f.icmp(relation, f.arguments["x"], f.arguments["y"])
        place = f.alloca(INT64, 1, 8)
        with f.branch(f.not_(holds)) as (then, otherwise):
            with then:
                f.store(int64(0), place, 8)
            with otherwise:
                f.store(int64(1), place, 8)
        f.ret(f.load(INT64, place, 8))

    def early(f: Function) -> None:
        with f.when(f.icmp(relation, f.arguments["x"], f.arguments["y"])):
            f.ret(int64(1))
        f.ret(int64(0))

    for body in (selected, branched, early):
        f = compiled(body, ("x", "y"))
        assert tuple(bool(f(x, 0)) for x in (-1, 0, 1)) == expected


@pytest.mark.parametrize(
    ("begin", "end", "step"), [(0, 5, 1), (0, 5, 2), (3, 3, 1), (4, 3, 1), (-4, 3, 3), (0, 1, 100)]
)
def test_loops_count_and_carry(begin: int, end: int, step: int) -> None:
    def body(f: Function) -> None:
        begin, end, step = (f.arguments[name] for name in ("begin", "end", "step"))
        with f.carried_loop(begin, end, step, [int64(0), int64(1)]) as (i, (total, twice), advance):
            advance((f.add(total, i), f.mul(twice, 2)))
        f.ret(f.add(f.mul(advance.results[0], 1000), advance.results[1]))

    visited = range(begin, end, step)
    assert compiled(body, ("begin", "end", "step"))(begin, end, step) == 1000 * sum(visited) + 2 ** len(
        visited
    )


@pytest.mark.parametrize(("begin", "end"), [(1, 100), (1, 2), (3, 3), (4, 3)])
def test_walks_take_the_steps_that_they_are_told(begin: int, end: int) -> None:
    def body(f: Function) -> None:
        place = f.alloca(INT64, 1, 8)
        f.store(int64(0), place, 8)
        with f.walk(f.arguments["begin"], f.arguments["end"]) as (at, advance):
            f.store(f.add(f.load(INT64, place, 8), at), place, 8)
            with f.branch(f.icmp("<", at, 10)) as (near, far):
                with near:
                    f.store(f.add(f.load(INT64, place, 8), 1000), place, 8)
                with far:
                    f.store(f.add(f.load(INT64, place, 8), 100000), place, 8)
            advance([f.mul(at, 2)])
        f.ret(f.load(INT64, place, 8))

    at, expected = begin, 0
    while at < end:
        expected += at + (1000 if at < 10 else 100000)
        at *= 2
    assert compiled(body, ("begin", "end"))(begin, end) == expected


def test_a_body_is_given_what_it_reads() -> None:
    """Arguments, constants, results and truths; what it does not read has no place in its environment."""

    def body(f: Function) -> None:
        g = f.arguments
        task = f.module.define("task", VOID, BODY_ARGUMENTS)
        values = {"x": g["x"], "seven": int64(7), "sum": f.add(g["x"], g["y"]), "unread": g["y"]}
        environment = Environment({**values, "more": f.icmp(">", g["x"], g["y"]), "p": g["p"]})
        inside = environment.inside(task)
        found = task.select(inside["more"], task.mul(inside["sum"], inside["seven"]), inside["x"])
        task.store(found, task.at(inside["p"], task.mul(task.arguments["task"], 8)), 8)
        task.ret()
        Team.of(f, null()).run(f, task.callee, environment.keep(f, task), int64(3))
        assert inside["seven"].known == 7
        text = "\n".join(task.lines())
        assert text.count(" load ") == 5, "with the address of the arguments"
        assert inside["unread"].text not in text
        f.ret()

    function, found = compiled(body, ("x", "y", "p"), None), np.zeros(3, np.int64)
    function(5, 3, pointer(found))
    assert found.tolist() == [56, 56, 56]
    function(3, 5, pointer(found))
    assert found.tolist() == [3, 3, 3]


def test_bodies_share_the_arguments_that_they_read() -> None:
    """Each is stored once, where the function begins, whatever path the call takes."""

    def body(f: Function) -> None:
        g, team = f.arguments, Team.of(f, null())
        for number in range(2):
            task = f.module.define(f"task_{number}", VOID, BODY_ARGUMENTS)
            environment = Environment({**g, "more": f.add(g["x"], number)})
            inside = environment.inside(task)
            place = task.at(inside["p"], 8 * number)
            task.store(task.mul(inside["x"], inside["more"]), place, 8)
            task.ret()
            with f.when(f.icmp("<", int64(number), g["count"])):
                team.run(f, task.callee, environment.keep(f, task), int64(1))
        f.ret()
        text = "\n".join(f.lines())
        assert text.count("store i64 %x") == text.count("store ptr %p") == 1
        assert text.index("store i64 %x") < text.index("br "), "where it begins"

    function, found = compiled(body, ("x", "count", "p"), None), np.zeros(2, np.int64)
    function(5, 1, pointer(found))
    assert found.tolist() == [25, 0]
    function(5, 2, pointer(found))
    assert found.tolist() == [25, 30]


@draws(25)
@given(st.floats(width=32))
def test_f32_constants_are_exact(value: float) -> None:
    f = compiled(lambda f: f.ret(constant(F32, value)), (), ctypes.c_float)
    found = struct.pack("f", f())
    assert found == struct.pack("f", value) or math.isnan(value)


@draws(25)
@given(st.floats())
def test_f64_constants_are_exact(value: float) -> None:
    f = compiled(lambda f: f.ret(constant(F64, value)), (), ctypes.c_double)
    assert struct.pack("d", f()) == struct.pack("d", value) or math.isnan(value)


def test_a_constant_that_f32_rounds() -> None:
    f = compiled(lambda f: f.ret(constant(F32, 0.1)), (), ctypes.c_float)
    assert f() == np.float32(0.1)


@pytest.mark.parametrize("fused", [True, False])
def test_multiply_add_rounds_once_or_twice(fused: bool) -> None:
    if fused and not tw.machine().isa.fused:
        pytest.skip("this host has no fused multiply-add")

    def body(f: Function) -> None:
        x = f.load(VECTOR, f.arguments["p"], 4)
        f.store(
            f.multiply_add(x, x, f.load(VECTOR, f.arguments["p_add"], 4), fused=fused), f.arguments["p"], 4
        )
        f.ret()

    x = np.full(4, 1 + 2.0**-12, np.float32)
    add = np.full(4, -1, np.float32)
    compiled(body, ("p", "p_add"), None)(pointer(x), pointer(add))
    exact = (1 + 2.0**-12) ** 2 - 1
    assert x.tolist() == [exact if fused else 2.0**-11] * 4


@pytest.mark.parametrize("count", [-3, 0, 1, 3, 4, 9, 2**31 - 1])
@pytest.mark.parametrize("offset", [0, 2])
def test_masks_touch_only_their_lanes(count: int, offset: int) -> None:
    def body(f: Function) -> None:
        mask = f.lane_mask(f.arguments["count"], offset, 4)
        f.masked_store(f.masked_load(VECTOR, f.arguments["p"], mask, 4), f.arguments["p_to"], mask, 4)
        f.ret()

    source, to = np.arange(1, 5, dtype=np.float32), np.full(4, -1, np.float32)
    compiled(body, ("p", "p_to", "count"), None)(pointer(source), pointer(to), count)
    expected = [source[lane] if offset + lane < count else -1 for lane in range(4)]
    assert to.tolist() == expected


def test_masked_out_lanes_are_zero() -> None:
    def body(f: Function) -> None:
        mask = f.lane_mask(f.arguments["count"], 0, 4)
        f.store(f.masked_load(VECTOR, f.arguments["p"], mask, 4), f.arguments["p_to"], 4)
        f.ret()

    source, to = np.arange(1, 5, dtype=np.float32), np.full(4, -1, np.float32)
    compiled(body, ("p", "p_to", "count"), None)(pointer(source), pointer(to), 3)
    assert to.tolist() == [1, 2, 3, 0]


def test_splat_shuffle_and_select() -> None:
    def body(f: Function) -> None:
        x = f.load(VECTOR, f.arguments["p"], 4)
        one = f.splat(f.load(element_type(F32), f.at(f.arguments["p"], 8), 4), 4)
        mixed = f.shuffle(x, one, (3, 0, 4, 7))
        chosen = f.select(f.not_equal(mixed, one), f.times(mixed, mixed), zero(VECTOR))
        f.store(chosen, f.arguments["p"], 4)
        f.prefetch(f.arguments["p"], write=False, locality=3)
        f.ret()

    x = np.array([1, 2, 3, 4], np.float32)
    compiled(body, ("p",), None)(pointer(x))
    assert x.tolist() == [16, 1, 0, 0]


@pytest.mark.parametrize(
    ("x", "y", "expected"), [(1.0, 1.0, 0), (1.0, 2.0, 1), (math.nan, math.nan, 1), (0.0, -0.0, 0)]
)
def test_differs_is_true_for_nan(x: float, y: float, expected: int) -> None:
    def body(f: Function) -> None:
        first, second = (f.load(element_type(F64), f.at(f.arguments["p"], 8 * i), 8) for i in range(2))
        f.ret(f.select(f.not_equal(first, second), int64(1), int64(0)))

    pair = np.array([x, y])
    assert compiled(body, ("p",))(pointer(pair)) == expected


def test_addresses_and_truncation() -> None:
    def body(f: Function) -> None:
        address = f.ptrtoint(f.at(f.arguments["p"], f.arguments["x"]))
        same = f.icmp("==", f.inttoptr(address), null())
        low = f.trunc(address, INT32)
        f.ret(f.select(f.and_(same, f.icmp("==", low, 0)), int64(-1), address))

    f = compiled(body, ("p", "x"))
    assert f(1000, 24) == 1024
    assert f(None, 0) == -1


@pytest.mark.parametrize(
    ("dtype", "text", "suffix"), [(F32, "<4 x float>", "v4f32"), (F64, "<4 x double>", "v4f64")]
)
def test_type_names(dtype: DType, text: str, suffix: str) -> None:
    kind = vector_type(dtype, 4)
    assert (kind.text, kind.suffix, kind.lanes) == (text, suffix, 4)
    assert vector_of(INT1, 8).text == "<8 x i1>"
    assert INT8.text == "i8"


def test_what_llvm_rejects_is_our_error() -> None:
    machine = tw.machine()
    text = f'target triple = "{machine.triple}"\ndefine void @f() {{ entry: ret i32 %x }}'
    for emit in (emit_object, emit_assembly):
        with pytest.raises(CompilationFailed, match="the module of broken"):
            emit(text, "broken", machine)


def test_memory_that_threads_share() -> None:
    word = np.array([5], np.int64)

    def add(f: Function) -> None:
        f.ret(f.atomic_add(f.arguments["p"], f.arguments["x"]))

    def swap(f: Function) -> None:
        f.ret(f.xchg(f.arguments["p"], f.arguments["x"]))

    def replace(f: Function) -> None:
        done = f.cmpxchg(f.arguments["p"], f.arguments["x"], f.arguments["y"])
        f.ret(f.select(done, int64(1), int64(0)))

    def copy(f: Function) -> None:
        f.store_release(f.add(f.load_acquire(INT64, f.arguments["p"]), 1), f.arguments["p"])
        f.pause()
        f.ret(f.load_acquire(INT64, f.arguments["p"]))

    assert (compiled(add, ("p", "x"))(pointer(word), -3), word[0]) == (5, 2)
    assert (compiled(swap, ("p", "x"))(pointer(word), 7), word[0]) == (2, 7)
    exchange = compiled(replace, ("p", "x", "y"))
    assert (exchange(pointer(word), 6, 9), word[0]) == (0, 7)
    assert (exchange(pointer(word), 7, 9), word[0]) == (1, 9)
    assert (compiled(copy, ("p",))(pointer(word)), word[0]) == (10, 10)


def test_additions_of_threads_do_not_get_lost() -> None:
    def add(f: Function) -> None:
        with f.loop(int64(0), f.arguments["x"], int64(1)):
            f.atomic_add(f.arguments["p"], 1)
        f.ret(f.arguments["x"])

    word, function = np.zeros(1, np.int64), compiled(add, ("p", "x"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: function(pointer(word), 100_000), range(4)))
    assert word[0] == 400_000


@pytest.mark.parametrize(("target", "word"), [("znver5", "pause"), ("neoverse-v2", "yield"), ("pwr10", None)])
def test_polling_is_announced(target: str, word: str | None) -> None:
    machine = find_machine(target)
    module = Module("m", machine.triple, data_layout(machine))
    f = module.define("f", VOID, (), exported=True)
    f.pause()
    f.ret()
    lines = emit_assembly(str(module), "m", machine).split()
    assert (word in lines) if word else not {"pause", "yield"} & set(lines)


def test_variadic_calls() -> None:
    text, form = ctypes.create_string_buffer(32), ctypes.create_string_buffer(b"%s %ld")

    def write(f: Function) -> None:
        kinds = (POINTER, INT64, POINTER)
        printf = f.module.declare("tw_snprintf", INT32, kinds, variadic=True)
        g = f.arguments
        written = f.call(printf, [g["p"], int64(32), g["pf"], g["pf"], g["x"]])
        f.ret(f.sext(written, INT64))

    imports = {"tw_snprintf": address_of(ctypes.CDLL(None).snprintf)}
    call = compiled(write, ("p", "pf", "x"), imports=imports)
    assert call(ctypes.addressof(text), ctypes.addressof(form), -7) == 9
    assert text.value == b"%s %ld -7"
