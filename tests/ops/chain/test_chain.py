"""Chains of linear layers: the bits of one layer after the other, and every refusal."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from foreign_tiles import foreign_packed
from support import GUARD_PAGES, Array, GuardedMemory
from tiers import crossed

import tilewright as tw
from tilewright import errors
from tilewright.compiler.pipeline import run_stages
from tilewright.spec.dtype import DTYPES
from tilewright.typing import ActivationName

CHAINS: tuple[tuple[tuple[int, ...], tuple[str | None, ...]], ...] = (
    ((40, 70, 50), ("relu", None)),
    ((64, 128, 64), ("gelu", None)),
    ((1300, 96, 1100, 33), ("relu", "silu", None)),
    ((5, 3), ("tanh",)),
    ((7, 2, 9), (None, "sigmoid")),
)


class Case:
    """Operands of a chain."""

    def __init__(self, sizes: tuple[int, ...], dtype: str, m: int) -> None:
        random, kind = np.random.default_rng(m), DTYPES[dtype].numpy
        acc = np.float64 if dtype == "f64" else np.float32
        self.x: Array = random.standard_normal((m, sizes[0])).astype(kind)
        self.weights: list[Array] = [
            (random.standard_normal(shape) / 8).astype(kind) for shape in pairwise(sizes)
        ]
        self.biases: list[Array] = [random.standard_normal(n).astype(acc) for n in sizes[1:]]
        self.packed = [tw.pack(weight) for weight in self.weights]

    def layer_by_layer(self, activations: tuple[ActivationName | None, ...], *, bias: bool = True) -> Array:
        value = self.x
        for weight, vector, name in zip(self.weights, self.biases, activations, strict=True):
            value = tw.matmul(value, weight, bias=vector if bias else None, activation=name)
        return value


@pytest.mark.parametrize(
    ("chain", "dtype"), crossed([[chain] for chain in CHAINS], ["f32", "f64", "bf16", "f16"], 4), ids=str
)
def test_a_chain_has_the_bits_of_its_layers(dtype: str, chain: tuple[tuple[int, ...], Any]) -> None:
    sizes, activations = chain
    kernel = tw.compile(tw.LinearChain(sizes, activations, dtype))
    for m in (1, 7, 12, 13, 300):
        case = Case(sizes, dtype, m)
        expected = case.layer_by_layer(activations)
        assert kernel(case.x, case.packed, case.biases).tobytes() == expected.tobytes()
    assert kernel(case.x[:0], case.packed, case.biases).shape == (0, sizes[-1])


def test_without_bias_and_with_rows_apart() -> None:
    case = Case((40, 70, 50), "f32", 30)
    kernel = tw.compile(tw.LinearChain((40, 70, 50), ("relu", None), bias=False))
    wide, out = np.full((30, 64), np.nan, np.float32), np.full((30, 60), 9, np.float32)
    wide[:, :40] = case.x
    assert kernel(wide[:, :40], case.packed, out=out[:, :50]) is not None
    expected = case.layer_by_layer(("relu", None), bias=False)
    assert out[:, :50].tobytes() == expected.tobytes()
    assert (out[:, 50:] == 9).all()
    again = pickle.loads(pickle.dumps(kernel))
    assert again(case.x, case.packed).tobytes() == expected.tobytes()


@pytest.mark.skipif(not GUARD_PAGES, reason="needs pages that can be made inaccessible")
@pytest.mark.parametrize("at_end", [False, True])
def test_nothing_outside_of_the_operands_is_touched(*, at_end: bool) -> None:
    kernel = tw.compile(tw.LinearChain((40, 70, 50), ("relu", None)))
    for m in (1, 11, 12, 25):
        case = Case((40, 70, 50), "f32", m)
        expected = case.layer_by_layer(("relu", None))
        places = []
        for shape in ((m, 40), (m, 50), (1, 70), (1, 50)):
            memory = GuardedMemory(int(np.prod(shape)) * 4)
            content = np.full(shape, np.nan, np.float32)
            places.append((memory, memory.place(content, (4 * shape[1], 4), at_end=at_end)))
        (_, x), (memory, y), (_, first), (_, second) = places
        x[...], first[0], second[0] = case.x, case.biases[0], case.biases[1]
        before = memory.outside(y)
        kernel(x, case.packed, [first, second], y)
        assert y.tobytes() == expected.tobytes()
        assert np.array_equal(memory.outside(y), before)


@pytest.mark.parametrize("target", ["emulate:pwr10", "emulate:neoverse-v2"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_other_machines_emulated(target: str, dtype: str) -> None:
    case = Case((40, 70, 50), dtype, 20)
    kernel = tw.compile(tw.LinearChain((40, 70, 50), ("relu", None), dtype), target)
    packed = [tw.pack(weight, target=target) for weight in case.weights]
    found = kernel(case.x, packed, case.biases).astype(np.float64)
    exact = kernel.problem.reference(case.x, case.weights, case.biases)
    tolerance = {"f32": 1e-4, "bf16": 0.1}[dtype]
    np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)


def test_the_rewrites_are_stages() -> None:
    state = run_stages(tw.LinearChain((40, 96, 50), ("relu", None)), tw.machine(), until="fuse_consumer")
    sizes = []
    for name in ("nest", "fuse_unpack", "fuse_pack", "fuse_consumer"):
        program = getattr(state, name)
        sizes.append(sum(buffer.size for buffer in program.scratch))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)


# --- what is refused ----------------------------------------------------------------------------------


def test_problems_that_are_none() -> None:
    for sizes in ((5,), (5, 0), (5, 2.5), (5, 1 << 30)):
        with pytest.raises(errors.InvalidSize):
            tw.LinearChain(sizes)
    with pytest.raises(errors.InvalidSize, match="activations"):
        tw.LinearChain((5, 6), ("relu", "relu"))
    with pytest.raises(errors.InvalidChoice):
        tw.LinearChain((5, 6), ("swish",))
    with pytest.raises(errors.UnsupportedDtype, match="chain"):
        tw.LinearChain((5, 6), dtype="i8")


def test_operands_that_do_not_fit_are_refused() -> None:
    case = Case((40, 70, 50), "f32", 20)
    kernel = tw.compile(tw.LinearChain((40, 70, 50), ("relu", None)))
    out = np.full((20, 50), 7, np.float32)
    x, packed, biases = case.x, case.packed, case.biases
    frozen = out.copy()
    frozen.flags.writeable = False
    foreign = foreign_packed(case.weights[1])
    refused: tuple[tuple[type[Exception], tuple[Any, ...]], ...] = (
        (errors.ChainOperands, (x, packed[:1], biases, out)),
        (errors.ChainOperands, (x, packed, biases[:1], out)),
        (errors.OperandMismatch, (x[:, 1:], packed, biases, out)),
        (errors.OperandMismatch, (x.astype(np.float64), packed, biases, out)),
        (errors.OperandMismatch, (x, packed[::-1], biases, out)),
        (errors.OperandMismatch, (x, case.weights, biases, out)),
        (errors.OperandMismatch, (x, packed, biases[::-1], out)),
        (errors.OperandMismatch, (x, packed, biases, out[:, 1:])),
        (errors.OperandMismatch, (x, packed, biases, out[1:])),
        (errors.OperandMismatch, (x, packed, biases, frozen)),
        (errors.OperandMismatch, (x, [packed[0], tw.pack(case.weights[1].T.copy(), role="a")], biases, out)),
        (errors.OperandMismatch, (x, [packed[0], tw.pack(case.weights[1].astype("f8"))], biases, out)),
        (errors.ForeignPacked, (x, [packed[0], foreign], biases, out)),
    )
    for kind, arguments in refused:
        with pytest.raises(kind):
            kernel(*arguments)
    assert (out == 7).all()
    square = tw.compile(tw.LinearChain((50, 50), bias=False))
    with pytest.raises(errors.OperandMismatch, match="memory"):
        square(out, [tw.pack(np.ones((50, 50), np.float32))], (), out)
    other = tw.compile(tw.LinearChain((40, 50), bias=False), "pwr10")
    with pytest.raises(errors.ForeignKernel):
        other(x, [foreign_weight()])


def foreign_weight() -> tw.PackedMatrix:
    """A weight in the tiles of a POWER10."""
    return tw.pack(np.ones((40, 50), np.float32), target="emulate:pwr10")


def test_kernels_show_themselves() -> None:
    kernel = tw.compile(tw.LinearChain((40, 70, 50), ("relu", None)))
    assert kernel.name.startswith("chain_f32_40x70x50_bias_with_relu_then_none")
    for words in ("const float *weight2", "const float *bias1", "struct tw_team *team", "float *y"):
        assert words in kernel.header
    assert kernel.problem.flops_a_row == 2 * (40 * 70 + 70 * 50)
