"""Rows of loops: C programs as compilers compile them and by `tilewright cc`, Python loops beside Numba."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.errors import ToolMissing
from tilewright.tools.bench.operation import Array, Arrays, Call, Operation, OperationShape, Way
from tilewright.tools.bench.peers import CLANGS, first_tool

#: Options of every compiler, as programs that want speed are compiled.
FLAGS = ("-O3", "-march=native", "-ffast-math", "-fPIC", "-shared")
#: The loops by their letters, from the outside in.
_HEADS = {letter: f"for (int {letter} = 0; {letter} < n; ++{letter}) " for letter in "ijk"}
_C = """void multiply(int n, float *restrict c, const float *restrict a, const float *restrict b) {{
    {loops}c[i * n + j] += a[i * n + k] * b[k * n + j];
}}
"""


def _operands(shape: OperationShape, generator: np.random.Generator) -> Arrays:
    """A, B, and a C of zeros to which products are added."""
    n = shape["n"]
    return shape.normal(generator, n, n), shape.normal(generator, n, n), np.zeros((n, n), np.float32)


def _exact(shape: OperationShape, a: Array, b: Array, c: Array) -> Array:  # noqa: ARG001
    return np.asarray(a @ b)


def _work(shape: OperationShape) -> int:
    return 2 * shape["n"] ** 3


def _moved(shape: OperationShape) -> int:
    return 3 * shape.item_bytes * shape["n"] ** 2


def _compiled(words: tuple[str, ...], compilers: tuple[str, ...]) -> Any:
    """Loops in C, compiled by a compiler behind some words and called natively."""

    def prepare(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
        compiler = first_tool(compilers)
        if compiler is None:
            raise ToolMissing(purpose="measuring loops of C", tool=compilers[0], package=compilers[0])
        text = _C.format(loops="".join(_HEADS[letter] for letter in shape.option))
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "loops.c"), Path(folder, "loops.so")
            source.write_text(text, encoding="ascii")
            command = [*words, compiler, *FLAGS, str(source), "-o", str(library)]
            subprocess.run(command, check=True, capture_output=True)
            function = ctypes.CDLL(str(library)).multiply
        function.restype = None
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in (arrays[2], *arrays[:2])]
        size = ctypes.c_int(shape["n"])

        def run() -> Array:
            function(size, *addresses)
            return arrays[2]

        return run

    return prepare


def product(A: Array, B: Array, C: Array) -> None:
    """The triple loop."""
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def row_product(A: Array, B: Array, C: Array) -> None:
    """The order of loops that compilers vectorise best."""
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


_FUNCTIONS = {"ijk": product, "ikj": row_product}


def _called(function: Any, arrays: Arrays) -> Call:
    """Calls that add to C; one has been made, and C is zero again."""
    a, b, c = arrays
    function(a, b, c)
    c[...] = 0

    def run() -> Array:
        function(a, b, c)
        return c

    return run


def _accelerated(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
    return _called(tw.accelerate(_FUNCTIONS[shape.option]), arrays)


def _numba(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
    return _called(import_module("numba").njit(fastmath=True)(_FUNCTIONS[shape.option]), arrays)


_CC = (sys.executable, "-m", "tilewright", "cc", "--")

OPERATIONS = (
    Operation(
        "loops in C",
        "loops",
        _operands,
        _exact,
        {
            "tilewright": Way("tilewright cc -- clang -O3 -march=native -ffast-math", _compiled(_CC, CLANGS)),
            "clang": Way("clang -O3 -march=native -ffast-math", _compiled((), CLANGS)),
            "gcc": Way("gcc -O3 -march=native -ffast-math", _compiled((), ("gcc",))),
        },
        _work,
        _moved,
    ),
    Operation(
        "loops in Python",
        "loops",
        _operands,
        _exact,
        {
            "tilewright": Way("tilewright.accelerate", _accelerated),
            "numba": Way("numba.njit(fastmath=True)", _numba),
        },
        _work,
        _moved,
    ),
)
