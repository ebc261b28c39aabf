"""Operands of other libraries: taken without copying, with results of the same library."""

from __future__ import annotations

import array
import ctypes
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from repeated_calls import python_lines
from support import Array, run_python

import tilewright
from tilewright.calls.dlpack import _Versioned
from tilewright.calls.repeated import replay
from tilewright.calls.torch_functions import TorchTypes
from tilewright.errors import (
    CacheReadOnly,
    OperandMismatch,
    OutReadOnly,
    RequiresGrad,
    TensorNotReadable,
)
from tilewright.spec.dtype import BF16

tw: Any = tilewright  # whose types name NumPy's arrays

A = np.arange(16, dtype=np.float32).reshape(4, 4) - 5


class Interface:
    """An object that exports the array interface."""

    def __init__(self, owner: Array) -> None:
        self.owner = owner
        self.__array_interface__ = owner.__array_interface__


class Exported:
    """An object that exports DLPack, of one of the types that NumPy does not import too."""

    freed = 0
    alive: ClassVar[list[Any]] = []  # what capsules point to

    def __init__(self, owner: Array, code: int | None = None, device: int = 1) -> None:
        self.owner, self.code, self.device = owner, code, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        if self.code is None:
            return self.owner.__dlpack__(**options)
        owner, axes = self.owner, self.owner.ndim
        sizes = (ctypes.c_int64 * (2 * axes))(
            *owner.shape, *(step // owner.itemsize for step in owner.strides)
        )

        def count(_: Any) -> None:
            type(self).freed += 1

        free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(count)
        managed = _Versioned(major=1, minor=0, deleter=ctypes.cast(free, ctypes.c_void_p).value)
        tensor = managed.tensor
        tensor.data, tensor.device, tensor.axes = owner.ctypes.data, 1, axes
        tensor.code, tensor.bits, tensor.lanes = self.code, 8 * owner.itemsize, 1
        tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
        tensor.strides = ctypes.cast(ctypes.byref(sizes, 8 * axes), ctypes.POINTER(ctypes.c_int64))
        self.alive.append((managed, sizes, free))
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(managed), b"dltensor_versioned", None)


EXPORTERS: list[Any] = [Interface, Exported, memoryview]


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_exported_operands_give_the_bits_of_arrays(exporter: Callable[[Array], Any]) -> None:
    one = exporter(A.copy())
    for _ in range(3):
        assert np.array_equal(tw.matmul(one, A), tw.matmul(A, A))
        assert np.array_equal(tw.linear(A, one, bias=exporter(A[0].copy())), tw.linear(A, A, bias=A[0]))
        assert np.array_equal(tw.einsum("ij,jk->k", one, one), tw.einsum("ij,jk->k", A, A))
        assert type(tw.softmax(one)) is np.ndarray


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_results_are_written_into_the_memory_of_an_exporter(exporter: Callable[[Array], Any]) -> None:
    memory = np.zeros((4, 4), np.float32)
    out = exporter(memory)
    for number in range(1, 4):
        memory[...] = 0
        assert tw.matmul(A, A * number, out=out) is out
        assert np.array_equal(memory, tw.matmul(A, A * number))


def test_what_exports_a_buffer_of_numbers() -> None:
    values = array.array("d", [1.0, 2.0, 3.0])
    assert tw.inner(values, values) == 14
    assert tw.exp(values, out=values) is values
    assert values.tolist() == np.exp([1.0, 2.0, 3.0]).tolist()
    assert tw.sum((ctypes.c_double * 3)(1, 2, 4)) == 7


def test_read_only_operands_are_read_and_not_written() -> None:
    fixed = memoryview(A.tobytes()).cast("f", (4, 4))
    assert np.array_equal(tw.matmul(fixed, fixed), tw.matmul(A, A))
    with pytest.raises(OutReadOnly):
        tw.matmul(A, A, out=fixed)
    with pytest.raises(OutReadOnly):
        tw.softmax(A, out=fixed)
    with pytest.raises(OperandMismatch, match="writeable"):
        tw.compile(tw.Gemm(dtype="f32"))(A, A, fixed)
    cache = memoryview(np.zeros((2, 4), np.float32).tobytes()).cast("f", (2, 4))
    with pytest.raises(CacheReadOnly):
        tw.append_kv(cache, cache, A[:1], A[:1], 0)


def test_bfloat16_of_dlpack_is_read_and_given_back() -> None:
    half = A.astype(BF16.numpy)
    exported, freed = len(Exported.alive), Exported.freed
    found = tw.matmul(Exported(half.view(np.uint16).T, 4), half)
    assert np.array_equal(found, tw.matmul(half.T, half))
    # NumPy asks first, and leaves its capsule unused.
    assert len(Exported.alive) - exported == 2 * (Exported.freed - freed) > 0


def test_operands_elsewhere_are_refused_by_class() -> None:
    with pytest.raises(TensorNotReadable, match=r"weight is of type .*Exported.* device \(2, 0\)"):
        tw.linear(A, Exported(A, device=2))
    with pytest.raises(TensorNotReadable, match="type 99"):
        tw.linear(A, Exported(A, code=99))


def test_repeated_calls_with_exporters() -> None:
    """Machine code repeats them and gives back what it has taken."""
    owner = A.copy()
    one = Interface(owner)
    for _ in range(3):
        tw.matmul(one, one, alpha=2.0)
    count = sys.getrefcount(owner)
    expected = tw.matmul(A, A, alpha=2.0)
    results = []
    for number in range(3):
        owner[...] = A * number
        results.append(tw.matmul(one, one, alpha=2.0))
    assert all(np.array_equal(found, expected * n**2) for n, found in enumerate(results))
    assert sys.getrefcount(owner) == count
    other = Interface(A.astype(np.float64))  # of the same class
    assert tw.matmul(other, other, alpha=2.0).dtype == np.float64
    assert np.array_equal(tw.matmul(Interface(A.T), one, alpha=2.0), tw.matmul(A.T, owner, alpha=2.0))


def test_explained_calls_take_exporters() -> None:
    one = Interface(A.copy())
    assert tw.explain(tw.matmul, one, one, alpha=3.0).strategy == tw.explain(tw.matmul, A, A).strategy
    for _ in range(2):
        tw.matmul(one, one, alpha=3.0)
    assert any(
        note.startswith("native entry: repeats") for note in tw.explain(tw.matmul, one, one, alpha=3.0).notes
    )


# --- PyTorch ------------------------------------------------------------------------------------


def torch_pair(torch: Any, dtype: Any = None) -> tuple[Any, Any]:
    """A tensor, and NumPy's view of it."""
    tensor = torch.from_numpy(A.copy())
    return (tensor, tensor.numpy()) if dtype is None else (tensor.to(dtype), tensor.numpy())


def test_tensors_in_tensors_out() -> None:
    torch = pytest.importorskip("torch")
    tensor, view = torch_pair(torch)
    four, same = tensor[None, None], view[None, None]
    calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
        (tw.matmul, (tensor, tensor), {}),
        (tw.matmul, (tensor, tensor), {"alpha": 2.0, "bias": tensor[0]}),
        (tw.matmul, (tensor, tensor[0]), {}),
        (tw.matmul, (tensor[0], tensor[0]), {}),
        (tw.matmul, (tensor, tensor), {"dtype": torch.float64}),
        (tw.linear, (tensor, tensor, tensor[0], "gelu"), {}),
        (tw.linear, (tensor, tw.pack(view)), {}),
        (tw.einsum, ("ij,jk->ki", tensor, tensor.T), {}),
        (tw.einsum, ("ij->j", tensor), {}),
        (tw.transpose, (tensor,), {}),
        (tw.sum, (tensor,), {}),
        (tw.max, (tensor,), {"axis": 0}),
        (tw.layer_norm, (tensor, tensor[0]), {"return_stats": True}),
        (tw.attention, (four, four, four), {"return_lse": True, "mask": four > 0}),
        (tw.attention_partial, (four, four, four), {}),
        (tw.kron, (tensor, tensor[:0]), {}),
    ]

    def numpys(value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return np.float64
        return value.numpy() if isinstance(value, torch.Tensor) else value

    assert same.shape == (1, 1, 4, 4)
    for function, arguments, options in calls:
        expected = function(*map(numpys, arguments), **{n: numpys(v) for n, v in options.items()})
        for _ in range(3):
            found = function(*arguments, **options)
            pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
            for one, other in pairs:
                assert type(one) is torch.Tensor, function
                assert np.array_equal(one.numpy(), other)
                assert one.numpy().dtype == np.asarray(other).dtype
    assert type(tw.matmul(tensor, view)) is np.ndarray
    assert type(tw.matmul(tensor, memoryview(view))) is np.ndarray


@pytest.mark.parametrize("name", ["bfloat16", "float16", "int8", "bool", "complex64", "float8_e4m3fn"])
def test_types_of_tensors(name: str) -> None:
    torch = pytest.importorskip("torch")
    tensor, _ = torch_pair(torch, getattr(torch, name))
    for _ in range(3):
        found = tw.transpose(tensor)
        assert found.dtype == tensor.dtype
        assert torch.equal(found.view(torch.uint8), tensor.T.contiguous().view(torch.uint8))


def test_tensors_as_out() -> None:
    torch = pytest.importorskip("torch")
    tensor, view = torch_pair(torch)
    out = torch.zeros(4, 4)
    for number in range(1, 4):
        assert tw.matmul(tensor, tensor * number, out=out) is out
        assert np.array_equal(out.numpy(), tw.matmul(view, view * number))
        assert tw.matmul(view, view, out=out) is out
        assert tw.exp(tensor, out=tensor) is tensor
    kernel = tw.compile(tw.Gemm(dtype="f32"))
    for _ in range(3):
        assert kernel(torch.eye(4), torch.eye(4), out) is out
        assert torch.equal(out, torch.eye(4))


def test_tensors_that_require_grad() -> None:
    torch = pytest.importorskip("torch")
    tensor, view = torch_pair(torch)
    weight = torch.nn.Parameter(tensor)
    expected = tw.linear(view, view)
    for _ in range(3):
        with pytest.raises(RequiresGrad, match=r"weight requires grad.*weight.detach\(\).*no_grad"):
            tw.linear(tensor, weight)
        with pytest.raises(RequiresGrad):
            tw.matmul(view, (weight * 2))
        with torch.no_grad():
            assert np.array_equal(tw.linear(tensor, weight).numpy(), expected)
        with torch.inference_mode():
            assert np.array_equal(tw.linear(tensor, weight).numpy(), expected)
        assert np.array_equal(tw.linear(tensor, weight.detach()).numpy(), expected)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(tensor, tensor)
        for _ in range(3):
            with pytest.raises(RequiresGrad, match="tangent"):
                tw.linear(dual, tensor)


def test_tensors_without_elements_in_memory() -> None:
    torch = pytest.importorskip("torch")
    tensor, view = torch_pair(torch)

    class Marked(torch.Tensor):  # type: ignore[misc,name-defined]
        pass

    refused = {
        "to_dense": tensor.to_sparse(),
        "x.cpu": tensor.to("meta"),
        "resolve_conj": tensor.to(torch.complex64).conj(),
        "resolve_neg": torch._neg_view(tensor),
        "Marked.*as_subclass": tensor.as_subclass(Marked),
    }
    for number in range(3):
        tw.linear(tensor * number, tensor)
        for words, operand in refused.items():
            with pytest.raises(TensorNotReadable, match=f"x is of type .*{words}"):
                tw.linear(operand, tensor)
    subclass = pytest.importorskip("torch._subclasses")
    with subclass.FakeTensorMode() as mode, pytest.raises(TensorNotReadable, match="FakeTensor"):
        tw.linear(mode.from_tensor(tensor), view)


def test_repeated_calls_with_tensors_run_no_python() -> None:
    torch = pytest.importorskip("torch")
    tensor, view = torch_pair(torch)
    out, four = torch.zeros(4, 4), tensor[None, None]
    weight = torch.nn.Parameter(tensor)
    packed = tw.pack(view)
    calls: dict[str, Callable[[Any], Any]] = {
        "matmul": lambda x: tw.matmul(x, x),
        "strided": lambda x: tw.matmul(x, x[:, ::2]),
        "out": lambda x: tw.matmul(x, x, out=out),
        "vectors": lambda x: tw.matmul(x[0], x[1]),
        "beside NumPy": lambda x: tw.matmul(x, view),
        "packed": lambda x: tw.linear(x, packed),
        "view": lambda x: tw.einsum("ij->ji", x),
        "transpose": lambda x: tw.transpose(x, (1, 0)),
        "sum": lambda x: tw.sum(x, axis=None),
        "mean": lambda x: tw.mean(x, axis=1),
        "norm": lambda x: tw.layer_norm(x, x[0]),
        "attention": lambda x: tw.attention(x[None, None], four, four, return_lse=True),
        "empty": lambda x: tw.exp(x[:0]),
        "bfloat16": lambda x: tw.exp(x.bfloat16()),
        "no axes": lambda x: tw.exp(x[0, 0]),
    }
    slow = []
    for name, call in calls.items():
        for _ in range(2):
            call(tensor.clone())  # not in the memory of other operands
        other = torch.rand(4, 4)
        results: list[Any] = []
        if python_lines(lambda f=call, x=other, r=results: r.append(f(x))):  # type: ignore[misc]
            slow.append(name)
        replay().table.clear()
        for found in (results[0], call(other), call(other)):
            expected = call(other)
            pairs = zip(found, expected, strict=True) if type(found) is tuple else [(found, expected)]
            for one, two in pairs:
                assert type(one) is type(two)
                assert (one.dtype, one.shape) == (two.dtype, two.shape)
                assert bool((one == two).all()), name
    assert slow == []
    with torch.no_grad():
        for _ in range(2):
            tw.linear(tensor, weight)
        assert python_lines(lambda: tw.linear(tensor, weight)) == 0
    with torch.inference_mode():
        tw.linear(tensor, weight)
        assert tw.linear(tensor, weight).is_inference()
    with pytest.raises(RequiresGrad):
        tw.linear(tensor, weight)
    views = tw.einsum("ij->ji", tensor)
    if views.data_ptr() == tensor.data_ptr():
        views[0, 1] = 77
        assert tensor[1, 0] == 77


def test_functions_of_torch_are_found_in_any_mode() -> None:
    torch = pytest.importorskip("torch")
    for mode in (torch.inference_mode, torch.no_grad, torch.enable_grad):
        with mode():
            assert TorchTypes().connect()
    known = TorchTypes()
    with torch.autograd.forward_ad.dual_level():
        assert not known.connect()
    assert known.connect()


def test_results_of_tensors_live_as_long_as_they_are_used() -> None:
    torch = pytest.importorskip("torch")
    tensor, view = torch_pair(torch)
    expected = tw.matmul(view, view)
    kept = [tw.matmul(tensor, tensor) for _ in range(50)]
    assert all(np.array_equal(one.numpy(), expected) for one in kept)
    assert len({one.data_ptr() for one in kept}) == 50
    assert sys.getrefcount(kept[0]) == sys.getrefcount(kept[-1])
    count = sys.getrefcount(tensor)
    for _ in range(10):
        tw.matmul(tensor, tensor, out=kept[0])
        with pytest.raises(tw.TilewrightError):
            tw.matmul(tensor, kept[0][:3])
    assert sys.getrefcount(tensor) == count
    found = tw.matmul(tensor, tensor)
    found.requires_grad_()
    (found * 2).sum().backward()  # a result is a leaf like others
    assert torch.equal(found.grad, torch.full((4, 4), 2.0))


# --- JAX ----------------------------------------------------------------------------------------


def test_arrays_of_jax_in_and_out() -> None:
    jax = pytest.importorskip("jax")
    for dtype in ("float32", "bfloat16", "int8", "bool"):
        one = jax.numpy.asarray(A, dtype)
        view = np.asarray(one)
        before = view.tobytes()
        for _ in range(3):
            found = tw.matmul(one, one)
            assert type(found) is type(one)
            assert found.dtype == one.dtype
            assert np.array_equal(np.asarray(found), tw.matmul(view, view))
            assert type(tw.max(one, axis=0)) is type(one)
            assert type(tw.matmul(one, view)) is np.ndarray
            with pytest.raises(OutReadOnly):
                tw.transpose(one, out=one)
        assert view.tobytes() == before
    with pytest.raises(TensorNotReadable, match=r"Tracer.*jit"):
        jax.jit(tw.softmax)(one)
    one.delete()
    with pytest.raises(TensorNotReadable, match="deleted"):
        tw.softmax(one)


def test_operands_of_calls_that_a_check_declines() -> None:
    """Their views are given up once: twice, and the next arrays would be in freed memory."""
    code = """
import numpy as np, tilewright as tw
q, k, v = (np.random.default_rng(seed).standard_normal((1, 2, 8, 8)).astype("f4") for seed in range(3))
operands = [memoryview(one) for one in (q, k, v)]
declined, kept = 0, []
for number in range(300):
    try:
        tw.attention(*operands, kv_lengths=np.array([6 if number % 3 else 9]))
    except tw.TilewrightError:
        declined += 1
    kept += [np.empty(3) for _ in range(50)]
assert declined == 100
"""
    run_python("-c", code)
