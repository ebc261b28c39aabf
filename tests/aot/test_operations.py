"""Libraries of every operation: what specifications say of them, that they compile, and that they run."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.aot.build import KernelLibrary, build_library
from tilewright.aot.files import library_files
from tilewright.aot.form import LibraryForm
from tilewright.aot.spec_file import parse_spec, problem_names
from tilewright.compiler.target import resolve_target
from tilewright.errors import InvalidSpec, NoLinker, NoResolver
from tilewright.spec.operations import OPS

#: A kernel of each operation.
KERNELS = {
    "gemm": "",
    "packed_gemm": 'b = "packed"\nepilogue = "bias"',
    "brgemm": "m = 4\nn = 4\nk = 4",
    "unary": 'op = "relu"',
    "packing": "",
    "mmt4d": "m0 = 4\nn0 = 4",
    "chain": 'sizes = [8, 16, 4]\nactivations = ["relu", "none"]',
    "attention": "head_dim = 32\nmask = 'f32'",
    "attention_decode": 'schedule = "decode"',
    "attention_backward": "head_dim = 32",
    "rows": 'op = "softmax"',
    "elementwise": 'op = "exp"',
    "binary": 'op = "multiply"',
    "rotary": "",
    "embedding": "",
    "syrk": "upper = true",
    "syr2k": "",
    "products": "factors = 2",
    "contraction": 'subscripts = "ij,jk->ik"\nsizes = {i = 8, j = 4, k = 6}',
    "table_product": 'sums = "f64"',
    "trmm": 'side = "right"',
}
SPEC = 'library = "all"\nprefix = "all_"\n' + "".join(
    f'[[kernel]]\nproblem = "{name}"\nname = "{name}"\n{keys}\n' for name, keys in KERNELS.items()
)


@cache
def built() -> KernelLibrary:
    try:
        return build_library(parse_spec(SPEC), [resolve_target("host")])
    except NoResolver as reason:
        pytest.skip(str(reason))


@cache
def loaded(folder: Path) -> ctypes.CDLL:
    try:
        files = library_files(built(), LibraryForm.SHARED, "1.0")
    except NoLinker as reason:
        pytest.skip(str(reason))
    content = files["liball.so"]
    assert isinstance(content, bytes)
    (folder / "liball.so").write_bytes(content)
    return ctypes.CDLL(str(folder / "liball.so"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return loaded(tmp_path_factory.mktemp("all"))


def test_every_operation_has_a_kernel_here() -> None:
    assert set(KERNELS) >= {
        name for name in problem_names() if OPS[name].problem.__module__.startswith("tilewright")
    }


def test_names_have_the_prefix() -> None:
    assert [function.name for function in built().functions] == [f"all_{name}" for name in KERNELS]


def test_the_header_is_c(tmp_path: Path) -> None:
    """All declarations of all operations."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    header = library_files(built(), LibraryForm.ARCHIVE, "1.0")["all.h"]
    assert isinstance(header, str)
    (tmp_path / "all.h").write_text(header, encoding="utf-8")
    (tmp_path / "p.c").write_text('#include "all.h"\n', encoding="utf-8")
    subprocess.run([compiler, "-std=c99", "-Wall", "-Werror", "-c", "p.c"], cwd=tmp_path, check=True)


def kernel_arguments(name: str) -> list[str]:
    """The names of a function's arguments."""
    (function,) = (one for one in built().functions if one.name == f"all_{name}")
    return [parameter.name for parameter in function.parameters]


def call(library: ctypes.CDLL, name: str, **given: object) -> None:
    """Calls a function by the names of its arguments; scratch is a page-aligned block, the team null."""
    (function,) = (one for one in built().functions if one.name == f"all_{name}")
    scratch = np.zeros(function.scratch_bytes + 4096, np.uint8)
    start = -(-scratch.ctypes.data // 4096) * 4096
    known: dict[str, object] = {"scratch": ctypes.c_void_p(start), "team": None, **given}
    values: list[Any] = []
    for parameter in kernel_arguments(name):
        value = known[parameter]
        if isinstance(value, np.ndarray):
            values.append(ctypes.c_void_p(value.ctypes.data))
        elif isinstance(value, int):
            values.append(ctypes.c_int64(value))
        elif isinstance(value, float):
            values.append(ctypes.c_float(value))
        else:
            values.append(value)
    getattr(library, f"all_{name}")(*values)


def test_softmax_runs(library: ctypes.CDLL) -> None:
    x = np.random.default_rng(0).standard_normal((5, 33)).astype(np.float32)
    y = np.zeros_like(x)
    strides = {
        f"{name}_{axis}": 33 if axis == "line" else 0 for name in "xy" for axis in ("batch", "outer", "line")
    }
    call(library, "rows", x=x, y=y, batch=1, outer=1, rows=5, columns=33, **strides)
    assert np.abs(y - tw.softmax(x)).max() < 1e-6


def test_a_packed_linear_layer_runs(library: ctypes.CDLL) -> None:
    """The weight is packed by one function of the library and multiplied by another."""
    rng = np.random.default_rng(1)
    x, weight, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 40), (40, 50), (50,)))
    panels, c = np.zeros((40 + 64, 50 + 64), np.float32), np.zeros((7, 50), np.float32)
    call(library, "packing", source=weight, panels=panels, lanes=50, depth=40, lane_stride=1, depth_stride=50)
    sizes = {"m": 7, "n": 50, "k": 40, "rs_a": 40, "cs_a": 1, "rs_b": 0, "cs_b": 0, "rs_c": 50, "cs_c": 1}
    call(library, "packed_gemm", a=x, b=panels, c=c, bias=bias, alpha=1.0, beta=0.0, **sizes)
    assert np.abs(c - (x @ weight + bias)).max() < 1e-4


def test_attention_runs(library: ctypes.CDLL) -> None:
    """Two heads, 5 queries, 9 keys, with a mask that is added to scores."""
    rng, heads, queries, keys, size = np.random.default_rng(2), 2, 5, 9, 32
    q = rng.standard_normal((1, heads, queries, size)).astype(np.float32)
    k, v = rng.standard_normal((2, 1, heads, keys, size)).astype(np.float32)
    mask = rng.standard_normal((1, heads, queries, keys)).astype(np.float32)
    out, state = np.zeros_like(q), np.zeros((2, heads * queries), np.float32)
    items = np.zeros(16, np.int64)
    items[8:12] = queries, keys, -keys, keys
    strides = {"q": queries * size, "k": keys * size, "v": keys * size, "o": queries * size}
    given = {f"{name}_head": step for name, step in strides.items()}
    given |= {f"{name}_{axis}": step for name in "qkvo" for axis, step in (("row", size), ("col", 1))}
    given |= {"mask_head": queries * keys, "mask_row": keys, "mask_col": 1, "state_head": queries}
    sizes = {"batch": 1, "kv_heads": heads, "group": 1, "queries": queries}
    arrays = {"q": q, "k": k, "v": v, "out": out, "items": items, "mask": mask}
    arrays |= {"row_max": state[0], "row_sum": state[1]}
    call(library, "attention", **arrays, **given, **sizes, scale=size**-0.5)
    assert np.abs(out - tw.attention(q, k, v, mask=mask)).max() < 1e-5


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('problem = "contraction"\nsubscripts = "ij,jk->ik"\nsizes = {i = 8}', "a length for each label"),
        ('problem = "chain"\nsizes = "8,16"', "kernel 1"),
        ('problem = "rows"\nop = "softmin"', "kernel 1"),
        ('problem = "rows"\nop = ["softmax"]', "must be an integer or a word"),
    ],
)
def test_mistakes(keys: str, words: str) -> None:
    with pytest.raises(InvalidSpec, match=words):
        parse_spec(f"[[kernel]]\n{keys}")
