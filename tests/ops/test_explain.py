"""`explain`: the strategy of every kind of shape, and what really happens around the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Array, unaligned

import tilewright as tw
from tilewright.errors import NotAProblem, NotExplained, ShapeMismatch
from tilewright.machine.host import host_machine
from tilewright.macro.blocking import machine_tile
from tilewright.macro.cost import panels_stay
from tilewright.ops.matmul.explain import explain_matmul
from tilewright.spec import dtype as types

F32 = np.float32


def ones(*shape: int, dtype: Any = F32) -> Array:
    return np.ones(shape, dtype)


ONCE = "packing: panels of A are packed once"
COPIED = "tiling: A in place, B copied"


def copied() -> bool:
    """Whether this host copies a B whose lanes are not adjacent one panel after the other."""
    machine = host_machine()
    one = machine.isa.tile(types.F32)
    tile = machine_tile(machine, one)
    return not panels_stay(machine, one, tile.mr, tile.nr)


STRATEGIES = {
    "dot products": (ones(64, 64), ones(64, 1)),
    "few rows": (ones(1, 64), ones(70, 64).T),
    "streaming": (ones(1, 64), ones(64, 70)),
    "tiling: A and B in place": (ones(300, 200), ones(200, 100)),
    COPIED: (ones(30, 40), ones(300, 40).T),
    "packing: five loops around packed panels of B": (ones(3000, 2000), ones(2000, 2000)),
    "packing: five loops around packed panels of A and B": (ones(700, 4096).T, ones(700, 200)),
    ONCE: (ones(700, 4096).T, ones(700, 500)),
    "nothing to do: a size is 0": (ones(0, 4), ones(4, 5)),
    "nothing to do: the batch is empty": (ones(0, 3, 4), ones(0, 4, 5)),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies(strategy: str) -> None:
    if strategy == COPIED and not copied():
        pytest.skip("strips are faster where panels stay in L2")
    if strategy == ONCE and copied():
        pytest.skip("panels do not stay in L2")
    found = tw.explain(tw.matmul, *STRATEGIES[strategy])
    assert found.strategy.startswith(strategy)
    assert found.kernel.startswith("gemm_f32_mxnxk_sss_auto_")
    assert str(found).splitlines()[0].startswith("matmul (")


def test_decisions_name_the_values() -> None:
    found = tw.explain(tw.matmul, ones(300, 200), ones(200, 100))
    assert any(text.startswith("yes") and "m = 300" in text for text in found.decisions)
    assert any(text.startswith("no ") and "n = 100" in text for text in found.decisions)


def test_nothing_is_computed() -> None:
    out = np.full((3, 5), 7, F32)
    tw.explain(tw.matmul, ones(3, 4), ones(4, 5), out)
    tw.explain(tw.matmul, ones(3, 4), ones(4, 5), out=out, beta=2.0)
    assert (out == 7).all()


def test_threads_are_named() -> None:
    before = tw.get_num_threads()
    try:
        tw.set_num_threads(3)
        large, small = (tw.explain(tw.matmul, ones(n, 100), ones(100, 200)).notes for n in (300, 30))
        assert any(note.startswith("3 threads") for note in large)
        assert any(note.startswith("one thread: no more than") for note in small)
        assert "one thread" in tw.explain(tw.matmul, ones(300, 100), ones(100, 200), threads=1).notes
        packed = tw.explain(tw.matmul, ones(300, 100), tw.pack(ones(100, 200)), threads=2).notes
        assert any(note.startswith("2 threads") for note in packed)
    finally:
        tw.set_num_threads(before)


def test_copies_are_named() -> None:
    c = ones(4, 4)
    assert "a is copied: int32 to float64" in str(
        tw.explain(tw.matmul, ones(2, 3, dtype=np.int32), ones(3, 2))
    )
    assert "misaligned" in str(tw.explain(tw.matmul, unaligned(c), c))
    assert "copied into out" in str(tw.explain(tw.matmul, c, c, out=c))
    assert "transposed product" in str(tw.explain(tw.matmul, ones(3, 4), ones(4, 5), out=ones(5, 3).T))


CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "plain": ((ones(3, 4), ones(4, 5)), {}),
    "out": ((ones(3, 4), ones(4, 5)), {"out": ones(3, 5)}),
    "positional out": ((ones(3, 4), ones(4, 5), ones(3, 5)), {}),
    "f64": ((ones(3, 4, dtype=np.float64), ones(4, 5, dtype=np.float64)), {}),
    "batch": ((ones(7, 3, 4), ones(7, 4, 5)), {}),
    "long batch of small": ((ones(500, 3, 4), ones(500, 4, 5)), {}),
    "long batch of large": ((ones(500, 3, 64), ones(500, 64, 5)), {}),
    "broadcast": ((ones(7, 3, 4), ones(1, 4, 5)), {}),
    "shared b": ((ones(7, 3, 4), ones(4, 5)), {}),
    "list": (([[1.0, 2.0]], ones(2, 5)), {}),
    "integers": ((ones(3, 4, dtype=np.int64), ones(4, 5)), {}),
    "vector": ((ones(4), ones(4, 5)), {}),
    "vectors": ((ones(4), ones(4)), {}),
    "vectors into out": ((ones(4), ones(4)), {"out": np.zeros((), F32)}),
    "vector out": ((ones(4), ones(4, 5)), {"out": ones(5)}),
    "column": ((ones(3, 4), ones(4)), {}),
    "batch times a vector": ((ones(7, 3, 4), ones(4)), {"out": ones(7, 3)}),
    "vector times a batch": ((ones(4), ones(7, 4, 5)), {}),
    "empty batch": ((ones(0, 3, 4), ones(4, 5)), {}),
    "no rows": ((ones(0, 4), ones(4, 5)), {}),
    "no depth": ((ones(7, 3, 0), ones(0, 5)), {}),
    "four axes": ((ones(2, 2, 3, 4), ones(2, 2, 4, 5)), {}),
    "alpha": ((ones(3, 4), ones(4, 5)), {"alpha": 2.0}),
    "misaligned": ((unaligned(ones(3, 4)), ones(4, 5)), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_entry_is_the_one_that_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, options = CALLS[name]
    for dtype in (np.float32, np.float64):  # both kernels connected, their loops over batches compiled
        tw.matmul(ones(2, 2, 2, dtype=dtype), ones(2, 2, 2, dtype=dtype))
    seen: list[str] = []
    from tilewright.ops.gemm import call as arrays

    original = arrays.matmul

    def through_python(*args: Any, **kwargs: Any) -> Any:
        seen.append("python")
        return original(*args, **kwargs)

    monkeypatch.setattr(arrays, "matmul", through_python)
    found = tw.explain(tw.matmul, *arguments, **options)
    tw.matmul(*arguments, **options)
    named = [note for note in found.notes if note.startswith(("native entry", "through Python"))]
    assert len(named) == 1
    assert named[0].startswith("through Python" if seen else "native entry"), named


def test_the_log_names_copies(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="tilewright"):
        tw.matmul(ones(2, 3, dtype=np.int32), ones(3, 2))
    assert "a is copied: int32 to float64" in caplog.text


def test_problems() -> None:
    assert tw.explain(tw.Gemm(100, 100, 100), "neoverse-v2").strategy == "tiling: A and B in place"
    assert tw.explain(tw.Gemm(100, 1, 100)).strategy.startswith("dot products")
    assert "decided by the sizes of each call" in tw.explain(tw.Gemm()).strategy
    assert "operands in place" in tw.explain(tw.BatchReduceGemm(16, 6, 64, 2)).strategy
    assert "small panel" in tw.explain(tw.BatchReduceGemm(16, 6, 64, 2, a="row")).strategy
    assert tw.explain(tw.Unary("relu", 16, 16, b="row")).strategy == "blocks transposed in registers"
    assert tw.explain(tw.Unary("relu", 16, 16)).strategy.startswith("element by element")
    assert "12,288 flops" in str(tw.explain(tw.BatchReduceGemm(16, 6, 64)))


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (tw.linear, {}),
        (tw.transpose, {}),
        (tw.vecdot, {}),
        (tw.rms_norm, {"return_stats": True}),
        (tw.matmul, {"order": "C"}),
    ],
)
def test_other_calls_say_which_path_they_take(function: Any, options: dict[str, Any]) -> None:
    x = ones(3, 3)
    operands = (x,) if function in (tw.transpose, tw.rms_norm) else (x, x)
    found = str(tw.explain(function, *operands, **options))
    assert "native entry" in found or "through Python" in found


def test_errors_are_those_of_the_call() -> None:
    with pytest.raises(ShapeMismatch):
        tw.explain(tw.matmul, ones(2, 3), ones(2, 3))
    for subject in (np.matmul, 3, "matmul", None):
        with pytest.raises(NotExplained):
            tw.explain(subject)
    assert tw.matmul.__name__ == explain_matmul.__name__.removeprefix("explain_")


@pytest.mark.parametrize("problem", ["gemm", None, tw.Gemm, np.float32])
def test_what_is_no_problem_is_not_compiled(problem: Any) -> None:
    with pytest.raises(NotAProblem, match=r"Gemm, BatchReduceGemm, Unary"):
        tw.compile(problem)


@pytest.mark.parametrize(
    ("rows", "strategy"),
    # Between, it depends on the machine's registers how many rows are few.
    [(1, "few rows: panels"), (2, "few rows: panels"), (33, "packing: five loops, panels")],
)
def test_products_with_weights_name_their_way(rows: int, strategy: str) -> None:
    packed = tw.quantize_weights(np.ones((300, 400)), bits=4, group=32)
    found = tw.explain(tw.matmul, np.ones((rows, 300), np.float32), packed, activation="relu")
    assert found.strategy.startswith(strategy)
    assert "i4g32" in found.kernel
    assert "fused into the store of C: relu" in found.notes
    assert "as i4g32" in found.subject


def test_products_with_packed_matrices_name_their_way() -> None:
    packed = tw.pack(np.ones((300, 400), np.float32))
    few = tw.explain(tw.matmul, np.ones((2, 300), np.float32), packed)
    many = tw.explain(tw.matmul, np.ones((400, 300), np.float32), packed)
    assert few.strategy.startswith("few rows")
    assert not many.strategy.startswith("few rows")
    turned = tw.explain(
        tw.matmul, tw.pack(np.ones((30, 40), np.float32), role="a"), np.ones((40, 9), np.float32)
    )
    assert "role a" in turned.subject
