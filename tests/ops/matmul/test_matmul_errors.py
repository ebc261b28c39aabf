"""Promise 9: bad input gets a class of errors.py, with its values in the message, before out changes."""

from __future__ import annotations

import inspect
import mmap
import pickle
import string
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from shares import looped
from support import Array, filled, run_python

import tilewright as tw
from tilewright import errors
from tilewright.compiler import scratch
from tilewright.errors import (
    BatchMismatch,
    CompilationFailed,
    InvalidChoice,
    InvalidOperand,
    InvalidScalar,
    InvalidThreads,
    MissingOut,
    OutDtype,
    OutNotArray,
    OutReadOnly,
    OutShape,
    ScalarOperand,
    ScratchAllocation,
    ShapeMismatch,
    SizeOverflow,
    StepDtype,
    StepShape,
    TilewrightError,
    UnsafeCast,
    UnsupportedArgument,
    UnsupportedDtype,
)
from tilewright.llvm.target import parse
from tilewright.ops.gemm import kernel as gemm
from tilewright.spec.dtype import F32
from tilewright.threads.scratch import ScratchPool

A, B = filled((2, 3), seed=1), filled((3, 4), seed=2)
BYTES = A.astype("i1"), B.astype("i1")
OUT = (2, 4)
UNSIGNED, LONG = np.zeros(OUT, "u4"), np.zeros(OUT, "i8")


def zeros(*shape: int, dtype: str = "f4") -> Array:
    return np.zeros(shape, dtype)


@dataclass
class Bad:
    """A call that is refused: its arguments, the classes it raises, words of the message."""

    arguments: tuple[Any, ...]
    kind: type[TilewrightError]
    builtin: type[Exception]
    words: tuple[str, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


BAD = [
    Bad((A, A), ShapeMismatch, ValueError, ("(2, 3)", "has 3 elements", "of b 2")),
    Bad((A, zeros(4)), ShapeMismatch, ValueError, ("(2, 3)", "(4,)", "has 3 elements", "of b 4")),
    Bad((zeros(4), B), ShapeMismatch, ValueError, ("(4,)", "(3, 4)")),
    Bad((zeros(5, 2, 3), zeros(5, 4, 4)), ShapeMismatch, ValueError, ("(5, 2, 3)", "(5, 4, 4)")),
    Bad((zeros(5, 2, 3), zeros(6, 3, 4)), BatchMismatch, ValueError, ("(5,)", "(6,)")),
    Bad((zeros(2, 5, 2, 3), zeros(3, 5, 3, 4)), BatchMismatch, ValueError, ("(2, 5)", "(3, 5)")),
    Bad((1.0, B), ScalarOperand, ValueError, ("operand a", "0 dimensions", "numpy.multiply")),
    Bad((A, np.float32(1)), ScalarOperand, ValueError, ("operand b",)),
    Bad((A, B, zeros(2, 5)), OutShape, ValueError, ("(2, 5)", "(2, 4)")),
    Bad((A, B, zeros(2, 2, 1)), OutShape, ValueError, ("(2, 2, 1)", "(2, 4)")),
    Bad((A, B, zeros(8)), OutShape, ValueError, ("(8,)", "(2, 4)")),
    Bad((zeros(5, 2, 3), zeros(3), zeros(4, 2)), OutShape, ValueError, ("(4, 2)", "(5, 2)")),
    Bad((A, B, zeros(*OUT, dtype="i4")), OutDtype, TypeError, ("int32", "float32", "same_kind")),
    Bad((A, B, zeros(*OUT, dtype="?")), OutDtype, TypeError, ("bool", "float32")),
    Bad((A + 0j, B, zeros(*OUT)), OutDtype, TypeError, ("complex64", "float32", "same_kind")),
    Bad((A, B), MissingOut, ValueError, ("beta is 0.5", "out="), {"beta": 0.5}),
    Bad((A, B), MissingOut, ValueError, ("beta is nan",), {"beta": float("nan")}),
    Bad((A + 0j, B), UnsafeCast, TypeError, ("operand a", "complex64", "float32"), {"dtype": "f4"}),
    Bad((A, B + 0j), UnsafeCast, TypeError, ("operand b", "complex64", "float64"), {"dtype": float}),
    Bad((A.astype("i8"), B), InvalidScalar, TypeError, ("alpha", "2j"), {"alpha": 2j}),
    Bad((A.astype("i8"), B.astype("i8"), LONG), InvalidScalar, TypeError, ("alpha", "0.5"), {"alpha": 0.5}),
    Bad((A.astype(object), B), UnsupportedDtype, TypeError, ("object",)),
    Bad((A.astype("g"), B), UnsupportedDtype, TypeError, (str(np.dtype("g")),)),
    Bad((A, B), UnsafeCast, TypeError, ("int32",), {"dtype": "i4"}),
    Bad((A, B), UnsupportedDtype, TypeError, ("nonsense",), {"dtype": "nonsense"}),
    Bad((np.array([["a"]]), [[1.0]]), UnsupportedDtype, TypeError, ("<U",)),
    Bad((A.astype("M8[s]"), B), UnsupportedDtype, TypeError, ("datetime64[s]", "float32")),
    Bad((zeros(2, 3, dtype="f4,f4"), B), UnsupportedDtype, TypeError, ("f0", "float32")),
    Bad((zeros(2**40, 0), zeros(0, 2**40)), SizeOverflow, OverflowError, (str(2**80), str(2**59 - 1))),
    Bad((A, B), StepShape, ValueError, ("bias", "(5,)", "(4,)"), {"bias": zeros(5)}),
    Bad((A, B), StepShape, ValueError, ("bias", "(5, 1)", "(2, 1)"), {"bias": zeros(5, 1)}),
    Bad((A, B), StepShape, ValueError, ("bias", "(2, 4)"), {"bias": zeros(2, 4)}),
    Bad((A, B), UnsafeCast, TypeError, ("operand bias", "complex64"), {"bias": zeros(4, dtype="c8")}),
    Bad((A, B), InvalidOperand, ValueError, ("bias is invalid",), {"bias": [[1.0, 2.0], [3.0]]}),
    Bad((A, B), InvalidChoice, ValueError, ("activation", "'elu'", "gelu_tanh"), {"activation": "elu"}),
    Bad((*BYTES, zeros(*OUT, dtype="i1")), StepDtype, TypeError, ("gelu", "i32"), {"activation": "gelu"}),
    Bad((A.astype("u4"), B.astype("u4"), UNSIGNED), StepDtype, TypeError, ("tanh",), {"activation": "tanh"}),
    Bad((A + 0j, B, zeros(*OUT, dtype="c8")), StepDtype, TypeError, ("relu", "c64"), {"activation": "relu"}),
    Bad((A + 0j, B), UnsupportedArgument, NotImplementedError, ("bias",), {"bias": zeros(4), "alpha": 1j}),
    Bad((A, B), InvalidThreads, ValueError, ("threads", "is 0"), {"threads": 0}),
    Bad((A, B), InvalidThreads, ValueError, ("threads", "is 1.0"), {"threads": 1.0}),
    Bad((A, B), InvalidThreads, ValueError, ("threads", "is True"), {"threads": True}),
    # What is no array at all, and scalars that are no numbers.
    Bad(([[1.0, 2.0], [3.0]], [1.0, 2.0]), InvalidOperand, ValueError, ("a is invalid", "inhomogeneous")),
    Bad((A, B), InvalidScalar, TypeError, ("alpha", "2j"), {"alpha": 2j}),
    Bad((A, B), InvalidScalar, TypeError, ("alpha", "two"), {"alpha": "two"}),
    Bad((A, B), InvalidScalar, TypeError, ("alpha", "2"), {"alpha": "2"}),
    Bad((A, B), InvalidScalar, TypeError, ("alpha", "None"), {"alpha": None}),
    Bad((A, B, zeros(*OUT)), InvalidScalar, TypeError, ("beta", "2j"), {"beta": 2j}),
    Bad((A, B, zeros(*OUT)), InvalidScalar, TypeError, ("beta",), {"beta": np.ones(3)}),
]


@contextmanager
def refused(bad: Bad) -> Iterator[None]:
    with pytest.raises(bad.kind) as caught:
        yield
    assert isinstance(caught.value, TilewrightError)
    assert isinstance(caught.value, bad.builtin)
    for word in bad.words:
        assert word in str(caught.value)


@looped("bad", BAD)
def test_refusals(bad: Bad) -> None:
    """With the out of the call, or with one of the right shape full of a pattern."""
    arguments, keywords = bad.arguments, bad.keywords
    with refused(bad):
        tw.matmul(*arguments, **keywords)
    if bad.kind is MissingOut:
        return
    out = arguments[2] if len(arguments) > 2 else np.zeros(OUT, np.float32)
    out.view(np.uint8)[...] = 0xA5
    with refused(bad):
        tw.matmul(arguments[0], arguments[1], out, **keywords)
    assert (out.view(np.uint8) == 0xA5).all()


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
def test_read_only_out(dtype: str) -> None:
    out = np.full(OUT, 7, dtype)
    out.flags.writeable = False
    for beta in (0.0, 1.0):
        with pytest.raises(OutReadOnly, match=r"out\.copy\(\)") as caught:
            tw.matmul(A, B, out=out, beta=beta)
        assert isinstance(caught.value, ValueError)
    assert (out == 7).all()


@pytest.mark.parametrize("out", [[[0.0] * 4] * 2, "text", 3, {"out": 1}])
def test_out_that_is_no_array(out: Any) -> None:
    with pytest.raises(OutNotArray, match=type(out).__name__) as caught:
        tw.matmul(A, B, out=out)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        ((), {}),
        ((A,), {}),
        ((A, B, None, None), {}),
        ((A, B, None), {"out": None}),
        ((A, B), {"nonsense": 1}),
        ((A,), {"b": B}),
    ],
)
def test_wrong_calls(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        tw.matmul(*arguments, **keywords)


# --- memory ---------------------------------------------------------------------------------------


def no_memory(*arguments: Any, **keywords: Any) -> None:
    raise OSError(12, "Cannot allocate memory")


@pytest.fixture
def empty_pool(monkeypatch: pytest.MonkeyPatch) -> ScratchPool:
    """A pool without blocks in the place of the process's."""
    tw.matmul(A, B)  # the native entry is made with the process's own pool, which it keeps reading
    pool = ScratchPool(scratch.scratch_pool().size)
    for module in (scratch, gemm):
        monkeypatch.setattr(module, "scratch_pool", lambda: pool)
    monkeypatch.setitem(gemm.matmul_kernel(F32).__dict__, "pool", pool)
    return pool


@pytest.mark.usefixtures("empty_pool")
def test_no_memory_for_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    out = np.full(OUT, 7, np.float32)
    with monkeypatch.context() as patch:
        patch.setattr(mmap, "mmap", no_memory)
        with pytest.raises(ScratchAllocation, match="Cannot allocate memory") as caught:
            tw.matmul(A, B, out=out, alpha=2)
        assert isinstance(caught.value, MemoryError)
        assert str(caught.value.size) in str(caught.value)
        with pytest.raises(ScratchAllocation):
            tw.compile(tw.Gemm())(A, B, out)
        assert (out == 7).all()
    assert np.array_equal(tw.matmul(A, B, out=out, alpha=2), 2 * (A @ B))


def test_no_memory_for_the_native_entry(empty_pool: ScratchPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product is done; that no second block could be mapped for later calls is no error of this one."""
    with empty_pool.block():
        pass
    monkeypatch.setattr(mmap, "mmap", no_memory)
    out = np.full(OUT, 7, np.float32)
    try:
        tw.matmul(A, B, out=out, alpha=2)
    except ScratchAllocation:
        assert (out == 7).all()
    else:
        assert np.array_equal(out, 2 * (A @ B))


# --- compilation ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "this is no LLVM IR",
        "define i32 @f() { ret i64 0 }",
        "define void @f() {\nentry:\n  br label %other\nother:\n  %x = add i32 %x, 1\n  ret void\n}",
    ],
)
def test_llvm_rejects_a_module(text: str) -> None:
    with pytest.raises(CompilationFailed, match="module of some_kernel: ") as caught:
        parse(text, "some_kernel")
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.kernel == "some_kernel"


@pytest.mark.parametrize("dtype", ["u16", "f128x", "nonsense", np.uint16, np.dtype("O")])
def test_problems_of_other_dtypes(dtype: Any) -> None:
    with pytest.raises(UnsupportedDtype, match="supported: "):
        tw.Gemm(dtype=dtype)


# --- the exceptions and the function as objects ---------------------------------------------------


def error_classes() -> list[type[TilewrightError]]:
    return [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, TilewrightError) and kind is not TilewrightError
    ]


@looped("kind", error_classes())
def test_errors_pickle(kind: type[TilewrightError]) -> None:
    names = [name for _, name, _, _ in string.Formatter().parse(kind.message) if name]
    fields = {name: f"<{name}>" for name in names}
    error = kind(**fields)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.fields == fields
    for name in names:
        assert fields[name] in str(error)
        assert getattr(again, name) == fields[name]
    with pytest.raises(AttributeError):
        _ = again.no_such_field


def test_raised_errors_pickle() -> None:
    with pytest.raises(OutDtype) as caught:
        tw.matmul(A, B, out=zeros(*OUT, dtype="i4"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.found == np.dtype("i4")


def test_matmul_pickles() -> None:
    assert pickle.loads(pickle.dumps(tw.matmul)) is tw.matmul


def test_matmul_explains_itself() -> None:
    signature = inspect.signature(tw.matmul)
    assert list(signature.parameters) == [
        "a",
        "b",
        "out",
        "dtype",
        "alpha",
        "beta",
        "bias",
        "activation",
        "sums",
        "threads",
        "axes",
        "casting",
        "order",
        "subok",
    ]
    assert signature.parameters["a"].kind is inspect.Parameter.POSITIONAL_ONLY
    assert signature.parameters["out"].default is None
    assert signature.parameters["alpha"].kind is inspect.Parameter.KEYWORD_ONLY
    assert (signature.parameters["alpha"].default, signature.parameters["beta"].default) == (1, 0)
    assert tw.matmul.__name__ == "matmul"
    assert tw.matmul.__module__ == "tilewright"
    documentation = tw.matmul.__doc__ or ""
    assert documentation.startswith("alpha * a @ b + beta * out")
    raised = {kind.__name__ for kind in (bad.kind for bad in BAD)} - {"TilewrightError"}
    assert all(name in documentation for name in raised)
    assert inspect.isbuiltin(tw.matmul)


MANY = 2**33


def test_long_batches_of_products_without_elements() -> None:
    shapes = [
        ((MANY, 0, 3), (MANY, 3, 0)),
        ((MANY, 3, 0), (MANY, 0, 0)),
        ((2, MANY, 0, 3), (2, MANY, 3, 0)),
    ]
    # In a process of its own: machine code that walks along a batch answers to nothing.
    code = f"""
import numpy as np, tilewright as tw
for dtype in ("f4", "c8"):
    b = np.ones((3, 5), dtype)
    for right in (b, tw.pack(b)):
        assert tw.matmul(np.empty(({MANY}, 0, 3), dtype), right).shape == ({MANY}, 0, 5)
    for left, right in {shapes}:
        assert tw.matmul(np.empty(left, dtype), np.empty(right, dtype), alpha=2).size == 0
"""
    run_python("-c", code)
