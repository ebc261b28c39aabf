"""Rows of kernels with hardcoded sizes, in a compiled loop, beside LIBXSMM's."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tilewright.calls.batch import fixed_batch_function
from tilewright.calls.compile import compile_problem
from tilewright.errors import ToolMissing
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.tools.bench.operation import Array, Arrays, Call, Operation, OperationShape, Way
from tilewright.tools.bench.peers import C_COMPILERS, first_tool
from tilewright.tools.explore.kernels import operands

#: Calls in one run of the compiled loop: the call from Python does not count.
CALLS = 1000

_HARNESS = """#include <libxsmm.h>
void *kernel_of(int m, int n, int k) {
    const float one = 1;
    libxsmm_init();
    return (void *)libxsmm_smmdispatch(m, n, k, 0, 0, 0, &one, &one, 0, 0);
}
void run(void *kernel, long calls, const float *a, const float *b, float *c) {
    for (long i = 0; i < calls; ++i) ((libxsmm_smmfunction)kernel)(a, b, c);
}
"""


def _problem(shape: OperationShape) -> BatchReduceGemm:
    return BatchReduceGemm(shape["m"], shape["n"], shape["k"], 1)


def _operands(shape: OperationShape, generator: np.random.Generator) -> Arrays:
    """Column-major matrices: a (k, m) and b (n, k) in row-major words, and a c (n, m) of zeros."""
    a, b, c = operands(_problem(shape), generator)
    c[...] = 0
    return a[0], b[0], c


def _exact(shape: OperationShape, a: Array, b: Array, c: Array) -> Array:  # noqa: ARG001
    return np.asarray(CALLS * (b @ a))


def _work(shape: OperationShape) -> int:
    return 2 * CALLS * shape["m"] * shape["n"] * shape["k"]


def _tilewright(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
    kernel, loop = compile_problem(_problem(shape)), fixed_batch_function()
    a, b, c = (array.ctypes.data for array in arrays)
    strides = (shape["m"], shape["k"], shape["m"], 0, 0)

    def run() -> Array:
        loop(kernel.address, CALLS, 0, 0, 0, a, b, c, *strides, None)
        return arrays[2]

    return run


def _libxsmm(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
    compiler = first_tool(C_COMPILERS)
    if compiler is None:
        raise ToolMissing(purpose="measuring LIBXSMM", tool=C_COMPILERS[0], package="gcc")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "harness.c"), Path(folder, "harness.so")
        source.write_text(_HARNESS, encoding="ascii")
        libraries = ("-lxsmm", "-lxsmmnoblas")
        command = [compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library), *libraries]
        subprocess.run(command, check=True, capture_output=True)
        harness = ctypes.CDLL(str(library))
    harness.kernel_of.restype = ctypes.c_void_p
    kernel = ctypes.c_void_p(harness.kernel_of(*(ctypes.c_int(shape[name]) for name in "mnk")))
    if kernel.value is None:
        raise ToolMissing(
            purpose="a kernel of these sizes", tool="LIBXSMM for this CPU", package="libxsmm-dev"
        )
    addresses = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    calls = ctypes.c_long(CALLS)

    def run() -> Array:
        harness.run(kernel, calls, *addresses)
        return arrays[2]

    return run


OPERATIONS = (
    Operation(
        "kernel",
        "kernels of fixed sizes",
        _operands,
        _exact,
        {
            "tilewright": Way("tilewright.compile(BatchReduceGemm), compiled loop", _tilewright),
            "libxsmm": Way("libxsmm_smmdispatch, compiled loop", _libxsmm),
        },
        _work,
        lambda shape: 0,  # noqa: ARG005  (operands stay in L1)
        tolerance=1e-3,
    ),
)
