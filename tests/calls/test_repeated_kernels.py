"""Repeated calls of kernels and compiled contractions, and with packed operands."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Array

import tilewright as tw
from tilewright.calls.call_key import serial_readable
from tilewright.calls.fastcall import native_entry_possible
from tilewright.calls.recording import Recording, repeatable
from tilewright.calls.repeated import repeated, replay
from tilewright.recorder import Numbered

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(19)


def values(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


# --- objects with a number --------------------------------------------------------------------------


NUMBERED: dict[str, Callable[[], Any]] = {
    "kernel": lambda: tw.compile(tw.Gemm(dtype="f32")),
    "unary": lambda: tw.compile(tw.Unary("exp")),
    "packed": lambda: tw.pack(values(5, 6)),
    "quantised": lambda: tw.quantize_weights(values(64, 16), bits=8),
    "einsum": lambda: tw.compile_einsum("ij,jk->ik", (2, 3), (3, 4)),
}


def serial(value: Any) -> int:
    return int(value._serial)


@pytest.mark.parametrize("name", NUMBERED)
def test_each_object_has_a_number_where_machine_code_reads_it(name: str) -> None:
    value = NUMBERED[name]()
    assert serial_readable(value)
    copies = [value, pickle.loads(pickle.dumps(value)), copy.deepcopy(value)]
    assert len({serial(one) for one in copies}) == 3
    assert all(serial_readable(one) for one in copies)


@pytest.mark.parametrize("name", ["packed", "quantised"])
def test_memory_of_a_packed_matrix_is_known_and_not_kept(name: str) -> None:
    weight: Any = NUMBERED[name]()
    memory = list(weight.memory())
    assert sum(size for _, size in memory) == weight.nbytes
    recording = Recording((weight,))
    for address, size in memory:
        assert recording._found(address + size - 1) == (0, address + size - 1)
    shared = Recording((weight.data4d, [weight]))
    assert shared.reason


def test_recipes_tell_numbered_arguments_apart_and_keep_none() -> None:
    class Thing(Numbered):
        pass

    made: list[int] = []

    @repeated
    def nothing(thing: Thing, x: Array) -> Array:
        made.append(serial(thing))
        repeatable()
        return x

    x, first, second = values(3), Thing(), Thing()
    for _ in range(3):
        assert nothing(first, x) is x
        assert nothing(second, x) is x
    assert made == [serial(first), serial(second)]
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
    assert len(replay().table) > 0
    hollow = object.__new__(Thing)  # without a number
    with pytest.raises(AttributeError):
        nothing(hollow, x)
