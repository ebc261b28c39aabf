"""Kernels of attention's gradients on this host, and as other rows compute them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from backward_calls import Case, Drawn, draw, errors_of
from tiers import crossed, exhaustive

import tilewright as tw
from tilewright.compiler.kernel import Kernel

#: Errors of f32 sums; of weights, gradients and results of 8 bits.
TOLERANCE = {"f32": 2e-6, "bf16": 0.01}

CASES = {
    "one": Case(),
    "full": Case(batch=2, heads=3, kv_heads=3, queries=100, keys=300, head_dim=64, value_dim=48),
    "grouped": Case(batch=2, heads=6, kv_heads=2, queries=90, keys=70, head_dim=33, value_dim=65),
    "causal": Case(heads=2, kv_heads=2, queries=300, keys=330, range=(-1000, 31)),
    "causal from the first key": Case(heads=2, queries=300, keys=200, range=(-1000, 1)),
    "window": Case(heads=2, kv_heads=2, queries=700, keys=600, head_dim=32, value_dim=32, range=(-150, 20)),
    "unseen rows": Case(queries=300, keys=200, range=(-1000, -99)),
    "truths": Case(heads=2, queries=100, keys=150, mask="u8", softcap=2.0, slopes=True),
    "numbers": Case(heads=2, queries=100, keys=150, mask="f32", range=(-1000, 51)),
    "large heads": Case(queries=40, keys=50, head_dim=256, value_dim=300),
}
each_dtype = pytest.mark.parametrize("dtype", ["f32", "bf16"])


def run(case: Case, target: str | None = None) -> Drawn:
    drawn = draw(case)
    kernel: Any = tw.compile(case.problem, target)
    drawn.call.run(kernel)
    return drawn


@pytest.mark.parametrize(("dtype", "name"), crossed(["f32", "bf16"], CASES, 2))
def test_gradients(name: str, dtype: str) -> None:
    assert max(errors_of(run(replace(CASES[name], dtype=dtype)))) < TOLERANCE[dtype]


#: Rows that have units for bfloat16, and those of f32 that are not this host's.
OTHER_ROWS = {
    *product(["neoverse-v2", "neoverse-v1", "pwr10", "sapphirerapids", "apple-m4"], ["bf16"]),
    *product(["haswell", "neoverse-v2", "pwr10", "apple-m4"], ["f32"]),
}


@pytest.mark.parametrize(
    ("target", "dtype"),
    [
        pytest.param(*case, marks=() if case in OTHER_ROWS else exhaustive)
        for case in product(
            ["haswell", "neoverse-v2", "neoverse-v1", "pwr10", "sapphirerapids", "apple-m4"], ["f32", "bf16"]
        )
    ],
)
def test_gradients_of_other_rows(target: str, dtype: str) -> None:
    case = Case(heads=2, queries=50, keys=170, head_dim=24, value_dim=40, dtype=dtype, range=(-1000, 60))
    assert max(errors_of(run(case, f"emulate:{target}"))) < TOLERANCE[dtype]


@pytest.fixture
def threads() -> object:
    before = tw.get_num_threads()
    yield
    tw.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@each_dtype
@pytest.mark.parametrize("heads", [1, 3])
def test_no_bit_depends_on_the_threads(dtype: str, heads: int) -> None:
    """One head alone and three among five threads are cut into blocks, three alone are whole tasks."""
    case = Case(heads=heads, kv_heads=heads, queries=600, keys=700, dtype=dtype, range=(-400, 120))
    kernel, found = Kernel.compiled(case.problem), []
    for number in (1, 2, 5):
        tw.set_num_threads(number)
        call = draw(case).call
        call.run(kernel)
        found.append([getattr(call, name).tobytes() for name in ("dq", "dk", "dv")])
    assert found[0] == found[1] == found[2]


@each_dtype
@pytest.mark.parametrize("nothing", [np.nan, np.inf])
@pytest.mark.parametrize("case", [CASES["causal"], CASES["truths"]], ids=["range", "mask"])
def test_what_nobody_sees_may_be_nan(case: Case, nothing: float, dtype: str) -> None:
    """Of a mask one query and one key are hidden."""
    case = replace(case, dtype=dtype, softcap=0.0)
    if case.range is not None:
        case = replace(case, range=(-1000, 1))
    drawn = draw(case) if case.range is not None else draw(case, hidden_key=7)
    hidden = slice(case.queries, None) if case.range is not None else slice(7, 8)
    drawn.call.k[:, :, hidden], drawn.call.v[:, :, hidden] = nothing, nothing
    if case.mask:
        drawn.call.q[:, :, 0] = nothing
    drawn.call.run(Kernel.compiled(case.problem))
    assert all((array[:, :, hidden] == 0).all() for array in (drawn.call.dk, drawn.call.dv))
    assert max(errors_of(drawn)) < TOLERANCE[dtype]


def test_nan_that_is_seen_shows() -> None:
    case = Case(queries=70, keys=300, range=(-1000, 201))
    for name, shown in (("q", "dk"), ("k", "dq"), ("v", "dq"), ("dout", "dv")):
        drawn = draw(case)
        getattr(drawn.call, name)[0, 0, 10, 3] = np.nan
        drawn.call.run(Kernel.compiled(case.problem))
        found = np.isnan(getattr(drawn.call, shown)[0, 0])
        assert found[:201].any()


def test_sequences_of_several_lengths() -> None:
    """Rows behind the last of a sequence are neither read nor written."""
    case = Case(batch=3, heads=2, queries=70, keys=90, range=(-1000, 1000))
    drawn, kernel = draw(case), Kernel.compiled(case.problem)
    lengths = np.array([[70, 90], [0, 5], [33, 0]])
    drawn.call.items[:, 8:10] = lengths
    for number, (queries, keys) in enumerate(lengths):
        for name in ("q", "out", "dout"):
            getattr(drawn.call, name)[number, :, queries:] = np.nan
        drawn.call.k[number, :, keys:], drawn.call.v[number, :, keys:] = np.nan, np.nan
        drawn.call.lse[number, :, queries:] = np.nan
    drawn.call.run(kernel)
    assert max(errors_of(drawn_item(drawn, 0))) < TOLERANCE["f32"]
    for array, axis in ((drawn.call.dq, 0), (drawn.call.dk, 1), (drawn.call.dv, 1)):
        for number in (1, 2):
            length = lengths[number, axis]
            assert (array[number, :, :length] == 0).all()
            assert np.isnan(array[number, :, length:]).all()


def drawn_item(drawn: Drawn, number: int) -> Drawn:
    """The gradients of one sequence of a batch."""
    part = slice(number, number + 1)
    names = ("dq", "dk", "dv")
    call = drawn.call._replace(**{name: getattr(drawn.call, name)[part] for name in names})
    return Drawn(
        call, drawn.expected._replace(**{name: getattr(drawn.expected, name)[part] for name in names})
    )


def test_explain_names_the_blocks() -> None:
    found = str(tw.explain(tw.AttentionBackward(64), "znver5"))
    assert "blocks of 72 queries and 256 keys, register tiles of 12x32" in found


def test_a_header_names_every_argument() -> None:
    kernel = tw.compile(tw.AttentionBackward(64, bounded=True, mask="u8", slopes=True))
    for name in (
        "const float *q",
        "const float *lse",
        "float *dq",
        "float *delta",
        "int64_t dout_row",
        "float scale",
    ):
        assert f" {name}," in f" {kernel.header}", name
    (line,) = (line for line in kernel.header.splitlines() if "*dout," in line)
    assert "columns adjacent" in line
