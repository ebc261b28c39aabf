"""`install`, `uninstall` and `installed`: what is put where, and that all of it goes again."""

from __future__ import annotations

import copy
import ctypes
import os
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from installed_loops import taken, taking_everything
from support import run_python

import tilewright as tw
from tilewright.errors import InstallRefused
from tilewright.installation import state as states
from tilewright.installation.rows import LETTERS, PRODUCTS
from tilewright.installation.state import state
from tilewright.installation.ufuncs import replace_loop

UFUNCS = [(number, getattr(np, one.name)) for number, one in enumerate(PRODUCTS) if hasattr(np, one.name)]
NUMPY: Any = np
NAMES = ("dot", "inner", "tensordot", "kron", "einsum")


def loops_of_numpy() -> dict[tuple[str, str], int]:
    """The address of every loop: the null pointer is put in its place for a moment, with the GIL held."""
    found = {}
    for _, ufunc in UFUNCS:
        for letter in LETTERS:
            before = replace_loop(ufunc, letter, 1)
            replace_loop(ufunc, letter, before)
            found[ufunc.__name__, letter] = before
    return found


def names_of_numpy() -> list[Any]:
    """Every name that is replaced, in every module of NumPy."""
    named = sorted(sys.modules.items())
    modules = [one for name, one in named if name.split(".")[0] == "numpy" and one is not None]
    return [vars(module).get(name) for module in modules for name in NAMES]


def test_everything_is_restored() -> None:
    tw.uninstall()
    loops, names = loops_of_numpy(), names_of_numpy()
    objects = [np.matmul, np.dot, np.einsum, np.dtype("f"), np.dtype("F")]
    with tw.installed():  # the first one makes what stays
        pass
    counts = [sys.getrefcount(one) for one in objects]
    for _ in range(5):
        tw.install()
        tw.install()
        assert all(
            now != before for now, before in zip(loops_of_numpy().values(), loops.values(), strict=True)
        )
        assert np.dot is not names[0]
        tw.uninstall()
        assert loops_of_numpy() == loops
        assert all(now is before for now, before in zip(names_of_numpy(), names, strict=True))
    tw.uninstall()
    assert loops_of_numpy() == loops
    assert [sys.getrefcount(one) for one in objects] == counts


def test_contexts_nest_with_each_other_and_with_install() -> None:
    tw.uninstall()
    before = loops_of_numpy()

    def replaced() -> bool:
        return loops_of_numpy() != before

    with tw.installed():
        with tw.installed():
            assert replaced()
        assert replaced()
        tw.uninstall()  # of nothing that was installed
        assert replaced()
        tw.install()
    assert replaced()
    tw.uninstall()
    assert not replaced()
    with pytest.raises(ZeroDivisionError), tw.installed():
        1 / 0  # noqa: B018
    assert not replaced()


def test_threads_install_and_multiply_at_once() -> None:
    a = np.random.default_rng(0).standard_normal((90, 90)).astype(np.float32)
    whole = np.arange(400).reshape(20, 20)
    expected, integers = a.astype(float) @ a.astype(float), whole @ whole
    before = loops_of_numpy()
    stop = threading.Event()

    def multiply() -> int:
        count = 0
        while not stop.is_set() or count < 20:
            np.testing.assert_allclose(a @ a, expected, rtol=1e-3, atol=1e-3)
            np.testing.assert_array_equal(np.dot(whole, whole), integers)
            count += 1
        return count

    def install() -> None:
        for _ in range(40):
            with tw.installed():
                a @ a

    with ThreadPoolExecutor(5) as pool:
        products = [pool.submit(multiply) for _ in range(3)]
        for one in [pool.submit(install) for _ in range(2)]:
            one.result()
        stop.set()
        assert all(one.result() for one in products)
    assert loops_of_numpy() == before


LOOP: Any = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 4)


def test_loops_of_others_above_ours_stay() -> None:
    """They call ours, which then call NumPy's; later they put ours back, which must not call themselves."""
    tw.uninstall()
    matmul, a = np.matmul, np.ones((90, 90), np.float32)
    calls = []
    tw.install()
    former = replace_loop(matmul, "f", 1)
    replace_loop(matmul, "f", former)

    def other(*arguments: int) -> None:
        calls.append(1)
        LOOP(former)(*arguments)

    above = LOOP(other)
    replace_loop(matmul, "f", ctypes.cast(above, ctypes.c_void_p).value or 0)
    tw.uninstall()
    counts = taken(state().loops, "f")
    np.testing.assert_array_equal(a @ a, 90)
    assert calls == [1]
    assert taken(state().loops, "f") == counts
    with tw.installed():  # ours are below
        np.testing.assert_array_equal(a @ a, 90)
        assert taken(state().loops, "f") == counts + 1
        np.testing.assert_array_equal(a[:1, :1] @ a[:1, :1], 1)
    assert len(calls) == 3
    replace_loop(matmul, "f", former)
    np.testing.assert_array_equal(a @ a, 90)
    with tw.installed():
        np.testing.assert_array_equal(a @ a, 90)
        np.testing.assert_array_equal(a[:1, :1] @ a[:1, :1], 1)  # passed on
        loops: Any = state().loops
        original = loops.table.rows[LETTERS.index("f")].old[0]
    replace_loop(matmul, "f", original)
    np.testing.assert_array_equal(a @ a, 90)


def test_subinterpreters_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tw.uninstall()
    monkeypatch.setattr(states, "_in_subinterpreter", lambda: True)
    with pytest.raises(InstallRefused, match="main interpreter"):
        tw.install()
    with pytest.raises(InstallRefused), tw.installed():
        pass
    monkeypatch.undo()
    monkeypatch.setattr(states, "layout_known", lambda: False)
    with pytest.raises(InstallRefused, match="layout"):
        tw.install()
    assert not state().active


def test_the_main_interpreter_is_none() -> None:
    assert not states._in_subinterpreter()


def test_names_are_those_of_numpy_to_everybody() -> None:
    former = {name: getattr(np, name) for name in NAMES}
    table = {former["dot"]: 1}
    with tw.installed():
        for name in NAMES:
            ours = getattr(np, name)
            assert ours is not former[name]
            assert ours == former[name]
            assert former[name] == ours
            assert (ours.__name__, ours.__doc__, ours.__module__) == (name, former[name].__doc__, "numpy")
            assert pickle.loads(pickle.dumps(ours)) is ours
            assert copy.deepcopy(ours) is ours
            assert repr(ours) == repr(former[name])
        assert table[np.dot] == 1
        table = {np.einsum: 2}
    assert table[np.einsum] == 2


class Duck:
    """An array of another library, which has functions of its own by NumPy's."""

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Any:
        return HANDLED[function]


HANDLED: dict[Any, str] = {}


def test_tables_of_other_libraries_find_their_functions() -> None:
    with tw.installed():
        HANDLED[np.dot] = "registered while installed"
        assert NUMPY.dot(Duck(), np.ones(3)) == "registered while installed"
    assert NUMPY.dot(Duck(), np.ones(3)) == "registered while installed"


FORK = """
import os, sys
import numpy as np, tilewright as tw
tw.set_num_threads(2)
tw.install()
a = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
right = a @ a
child = os.fork()
whole = (a * 2).astype(int)
good = np.array_equal(a @ a, right) and (whole @ whole).shape == a.shape
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert good
else:
    os._exit(0 if good else 1)
"""

AT_EXIT = """
import atexit, threading, time
import numpy as np
a = np.ones((200, 200), np.float32)
atexit.register(lambda: print("before", (a @ a)[0, 0]))
import tilewright as tw
tw.install()
atexit.register(lambda: print("after", (a @ a)[0, 0]))
def forever():
    while True:
        a @ a
        a.astype(int) @ a.astype(int)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
"""

SIGNAL = """
import signal
import numpy as np
import tilewright as tw
from tilewright.installation.state import state
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits that it is ignored
tw.install()
supplier = state().loops.supplier
connect = supplier.connect
def interrupted(row, letter):
    signal.raise_signal(signal.SIGINT)
    connect(row, letter)
supplier.connect = interrupted
a = np.ones((64, 64), np.int16)
try:
    c = a @ a
    for _ in range(1000):
        pass
except KeyboardInterrupt:
    print("interrupted")
supplier.connect = connect
assert ((a @ a) == 64).all()
def failing(row, letter):
    raise RuntimeError("no compiler today")
supplier.connect = failing
a = np.ones((64, 64), np.int8)
assert ((a @ a) == 64).all() and ((a @ a) == 64).all()
supplier.connect = connect
assert ((a @ a) == 64).all()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_a_child_of_a_fork_multiplies() -> None:
    run_python("-c", FORK)


def test_products_while_the_interpreter_ends() -> None:
    text = run_python("-c", AT_EXIT)
    assert text.split() == ["after", "200.0", "before", "200.0"]


def test_handlers_that_raise_are_heard_and_failures_leave_products_to_numpy() -> None:
    assert run_python("-c", SIGNAL) == "interrupted\n"


def test_threads_are_those_that_were_asked_for() -> None:
    before = tw.get_num_threads()
    a = np.random.default_rng(0).standard_normal((400, 400)).astype(np.float32)
    try:
        with taking_everything():
            results = []
            for threads in (1, 2):
                tw.set_num_threads(threads)
                results.append(a @ a)
    finally:
        tw.set_num_threads(before)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], tw.matmul(a, a))
