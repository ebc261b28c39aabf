"""LLVM's matrix products by tiles of the target, and what is left to LLVM's own pass."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.llvm.jit import Linked
from tilewright.llvm.matrix import MULTIPLY
from tilewright.loops.opt.records import OutputFormat, ProductOptions
from tilewright.loops.opt.rewrite import replace_products
from tilewright.loops.opt.work import Work, optimise_here
from tilewright.machine.catalog import find_machine
from tilewright.machine.host import host_machine

SOURCE = (Path(__file__).parent / "matrices.ll").read_text()
NAMES = ("square", "wide", "large", "strict")


@cache
def linked() -> Linked:
    done = optimise_here(
        Work(SOURCE.encode(), "m.ll", OutputFormat.OBJECT, ProductOptions(target=host_machine()))
    )
    libc = ctypes.CDLL(None)
    names = ("memset", "memcpy")
    imports = {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0 for name in names}
    return Linked(done.content, NAMES, imports)


def call(name: str, *arguments: NDArray[Any] | int) -> None:
    given = [one if isinstance(one, int) else one.ctypes.data for one in arguments]
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(given))(linked().address(name))(*given)


def integers(shape: tuple[int, ...], kind: str, seed: int) -> NDArray[Any]:
    return np.asfortranarray(np.random.default_rng(seed).integers(-5, 6, shape).astype(kind))


def test_matrices_of_clang_are_multiplied() -> None:
    a, b, c = (integers((4, 4), "f4", seed) for seed in range(3))
    expected = c + a @ b
    call("square", a, b, c)
    np.testing.assert_array_equal(c, expected)


def test_oblong_matrices_of_integers_wrap_around() -> None:
    a, b = integers((8, 3), "i4", 1) * 2**30, integers((3, 5), "i4", 2) + 2**29
    c = np.zeros((8, 5), "i4", order="F")
    call("wide", a, b, c)
    np.testing.assert_array_equal(c, (a.astype(object) @ b.astype(object)).astype(np.int64).astype("i4"))


def test_matrices_that_fill_registers_many_times() -> None:
    a, b, c = (integers((40, 32), "f8", seed) for seed in range(3))
    expected = c.copy()
    expected[:32] = a[:32] @ b[:32]
    call("large", a, b, c, 40)
    np.testing.assert_array_equal(c, expected)


def test_products_that_round_each_step_are_left_to_llvm() -> None:
    found = replace_products(SOURCE, ProductOptions(target=host_machine()))
    assert found.module is not None
    left = [function.name for function in found.module.functions if MULTIPLY in str(function)]
    assert "strict" in left
    assert not {"square", "wide", "large"} & set(left)
    a, b, c = (integers((4, 4), "f4", seed) for seed in range(3))
    call("strict", a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize(("target", "instruction"), [("pwr10", "xvf32ger"), ("neoverse-n1", "fmla")])
def test_target_instructions(target: str, instruction: str) -> None:
    machine = find_machine(target)
    square = re.sub(r"^define [^@]*@(?!square\b)\w+\(.*?^}\n", "", SOURCE, flags=re.MULTILINE | re.DOTALL)
    source = f'target triple = "{machine.triple}"\n{square}'.encode()
    done = optimise_here(Work(source, "m.ll", OutputFormat.ASSEMBLY, ProductOptions(target=machine)))
    assert instruction in done.text.partition("square:")[2]
