"""Right arguments of the functions of optional packages' namespaces, where `wrong_calls.py` starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from wrong_graphs import Make

#: A subject's name, what makes the function, right arguments by position, and by keyword.
Row = tuple[str, Callable[[], Callable[..., Any]], Mapping[str, Make], Mapping[str, Make]]


def rows(arr: Callable[..., Make], of: Callable[..., Make]) -> Iterator[Row]:
    """Those of every namespace whose packages are installed; Dask computes nothing here."""
    tables = {
        "array_api": (_array_api, "numpy"),
        "array_api.linalg": (_array_api_linalg, "numpy"),
        "dask": (_dask, "dask.array"),
        "jax": (_jax, "jax"),
    }
    for namespace, (table, package) in tables.items():
        if find_spec(package.partition(".")[0]) is None:
            continue
        for name, first, named in table(arr, of):
            yield f"{namespace}.{name}", _function(namespace, name), first, named


def _function(namespace: str, name: str) -> Callable[[], Callable[..., Any]]:
    function = getattr(import_module(f"tilewright.{namespace}"), name)
    if name == "plan":  # no client of Dask is here that says how many workers there are
        function = partial(function, workers=2)
    return lambda: function


Table = Iterator[tuple[str, dict[str, Make], dict[str, Make]]]


def _array_api(arr: Callable[..., Make], of: Callable[..., Make]) -> Table:
    pair = {"x1": arr(4, 5), "x2": arr(5, 6)}
    vectors = {"x1": arr(4, 5), "x2": arr(4, 5)}
    yield "matmul", pair, {}
    yield "tensordot", {"x1": arr(3, 4, 5), "x2": arr(4, 5, 6)}, {"axes": of(2, ((1, 2), (0, 1)))}
    yield "vecdot", vectors, {"axis": of(-1)}
    yield "matrix_transpose", {"x": arr(3, 4)}, {}
    yield "einsum", {"subscripts": of("ij,jk->ik"), "a": arr(4, 5), "b": arr(5, 6)}, {}


def _array_api_linalg(arr: Callable[..., Make], of: Callable[..., Make]) -> Table:
    yield "matmul", {"x1": arr(4, 5), "x2": arr(5, 6)}, {}
    yield "outer", {"x1": arr(4), "x2": arr(6)}, {}


def _dask(arr: Callable[..., Make], of: Callable[..., Make]) -> Table:
    from_array = import_module("dask.array").from_array

    def chunked(*shape: int) -> Make:
        make = arr(*shape)
        return lambda: from_array(make(), chunks=2)

    pair = {"a": chunked(4, 6), "b": chunked(6, 8)}
    head = {name: chunked(1, 2, 4, 8) for name in "qkv"}
    yield "matmul", pair, {"dtype": of("f32"), "bias": arr(8), "activation": of("relu"), "plan": of(None)}
    yield "linear", {"x": chunked(4, 6), "weight": arr(8, 6)}, {"bias": arr(8), "activation": of("gelu")}
    yield "einsum", {"subscripts": of("ij,jk->ik"), **pair}, {"dtype": of("f32"), "optimize": of("auto")}
    yield "tensordot", {"a": chunked(3, 4, 5), "b": chunked(4, 5, 6)}, {"axes": of(2)}
    yield "softmax", {"x": chunked(4, 6)}, {"axis": of(-1, 0)}
    norm = {"weight": arr(6), "axis": of(-1), "eps": of(1e-5)}
    yield "layer_norm", {"x": chunked(4, 6)}, {**norm, "bias": arr(6)}
    yield "rms_norm", {"x": chunked(4, 6)}, norm
    yield "plan", pair, {"workers": of(2), "memory_limit": of(1 << 30), "gbits": of(10.0), "gflops": of(50.0)}
    yield (
        "attention",
        head,
        {
            "mask": of(None),
            "causal": of(True, "top"),
            "scale": of(0.5),
            "window": of((2, 0)),
            "q_offset": of(0),
            "softcap": of(30.0),
            "alibi_slopes": arr(2),
            "sinks": arr(2),
            "layout": of("bhsd"),
            "return_lse": of(True),
        },
    )


def _jax(arr: Callable[..., Make], of: Callable[..., Make]) -> Table:
    pair = {"a": arr(4, 5), "b": arr(5, 6)}
    head = {name: arr(1, 2, 4, 8) for name in "qkv"}
    yield "matmul", pair, {"dtype": of("f32")}
    yield "einsum", {"subscripts": of("ij,jk->ik"), **pair}, {"dtype": of("f32"), "optimize": of("auto")}
    yield (
        "attention",
        head,
        {
            "mask": of(None),
            "causal": of(True),
            "scale": of(0.5),
            "window": of((2, 0)),
            "softcap": of(30.0),
            "layout": of("bhsd"),
        },
    )
