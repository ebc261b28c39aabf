"""The recipes of docs/reference/array_api.md for xarray, in memory and in chunks of Dask."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

xr = pytest.importorskip("xarray")

import tilewright as tw  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "array_api.md"


def labelled(shape: tuple[int, ...], axes: tuple[str, ...], seed: int) -> Any:
    values = np.random.default_rng(seed).integers(-3, 4, shape).astype("f4")
    return xr.DataArray(
        values, dims=axes, coords={axis: range(size) for axis, size in zip(axes, shape, strict=True)}
    )


def product(a: Any, b: Any, **options: Any) -> Any:
    return xr.apply_ufunc(
        tw.matmul,
        a,
        b,
        input_core_dims=[["row", "k"], ["k", "column"]],
        output_core_dims=[["row", "column"]],
        **options,
    )


def test_labels_are_kept() -> None:
    a, b = labelled((2, 3, 4), ("time", "row", "k"), 0), labelled((4, 5), ("k", "column"), 1)
    found = product(a, b)
    xr.testing.assert_equal(found, xr.dot(a, b, dim="k"))
    assert found.dims == ("time", "row", "column")


def test_chunks_stay_with_dask() -> None:
    pytest.importorskip("dask.array")
    a, b = labelled((6, 3, 4), ("time", "row", "k"), 0), labelled((4, 5), ("k", "column"), 1)
    calls: list[tuple[int, ...]] = []

    def noted(one: Any, other: Any) -> Any:
        calls.append(one.shape)
        return tw.matmul(one, other)

    found = xr.apply_ufunc(
        noted,
        a.chunk(time=2),
        b,
        input_core_dims=[["row", "k"], ["k", "column"]],
        output_core_dims=[["row", "column"]],
        dask="parallelized",
        output_dtypes=[a.dtype],
    )
    assert found.chunks[0] == (2, 2, 2)
    assert (2, 3, 4) not in calls  # nothing is computed yet
    xr.testing.assert_equal(found.compute(scheduler="synchronous"), xr.dot(a, b, dim="k"))
    assert calls.count((2, 3, 4)) == 3


def test_contracted_axes_in_chunks_are_refused_or_gathered() -> None:
    pytest.importorskip("dask.array")
    a, b = labelled((3, 4), ("row", "k"), 0), labelled((4, 5), ("k", "column"), 1)
    parts = a.chunk(k=2)
    options: dict[str, Any] = {"dask": "parallelized", "output_dtypes": [a.dtype]}
    with pytest.raises(ValueError, match="core dimension"):
        product(parts, b, **options)
    allowed = product(parts, b, **options, dask_gufunc_kwargs={"allow_rechunk": True})
    xr.testing.assert_equal(allowed.compute(scheduler="synchronous"), xr.dot(a, b, dim="k"))


def test_examples_of_the_page() -> None:
    pytest.importorskip("dask.array")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    assert names["y"].shape == (2, 2)
    assert names["c"].dims == ("time", "row", "column")
