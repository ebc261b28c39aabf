"""The rows of the whole benchmark, and those of its quick form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.ops.gemm.problem import Gemm
from tilewright.records import dataclass
from tilewright.tools.bench.case import OperationCase
from tilewright.tools.explore.attention.cases import parse_shapes
from tilewright.tools.explore.cases import Case, parse_sizes
from tilewright.tools.explore.measured import Measured

#: Peers that compile for seconds; the quick form has them on some rows only.
COMPILING = ("inductor", "iree")


@dataclass(frozen=True)
class TableRow:
    """One row: a problem, and how it is measured.

    Attributes
    ----------
    family : the part of the page that it is in.
    case : the problem.
    label : what a person reads.
    moved : bytes of operands and results; 0 where they do not matter.
    threads : how many threads each system may use.
    quick : whether the quick form has it.
    compiling : whether the quick form has it with peers that compile for seconds.
    """

    family: str
    case: Measured
    label: str
    moved: int
    threads: int = 1
    quick: bool = True
    compiling: bool = False

    @property
    def key(self) -> str:
        """What identifies a row in files."""
        return f"{self.family}: {self.case.name} {self.case.types.name}, {self.threads} threads"


def _product(family: str, case: Case, label: str = "", **options: Any) -> TableRow:
    (m, n, k), types = case.sizes, case.types
    moved = case.batch * (m * k * types.a.size + k * n * types.b.size + m * n * types.c.size)
    return TableRow(family, case, label or f"{types.name} {case.label}", moved, **options)


def _products(
    family: str,
    sizes: str,
    dtype: str = "f32",
    *,
    trans: str = "n",
    out_dtype: str | None = None,
    **options: Any,
) -> Iterator[TableRow]:
    note = {"n": "", "a": " (A transposed)", "b": " (B transposed)", "ab": " (both transposed)"}[trans]
    for case in parse_sizes(sizes, dtype, trans, out_dtype):
        yield _product(family, case, f"{case.types.name} {case.label}{note}", **options)


def _attention(
    shape: str, dtype: str = "f32", *, causal: bool = False, window: str | None = None, **options: Any
) -> TableRow:
    (case,) = parse_shapes(shape, dtype, causal=causal, window=window)
    q = case.batch * case.heads * case.queries * case.head_dim
    kv = case.batch * case.kv_heads * case.keys * case.head_dim
    moved = (2 * q + 2 * kv) * case.types.a.size
    words = " ".join(filter(None, (dtype, shape, "causal" * causal, f"window {window}" if window else "")))
    return TableRow("attention", case, words, moved, **options)


def _operation(
    family: str,
    operation: str,
    sizes: dict[str, int],
    option: str = "",
    label: str = "",
    **options: Any,
) -> TableRow:
    case = OperationCase(operation, tuple(sizes.items()), "f32", option)
    text = label or " ".join(filter(None, (operation, option, "x".join(map(str, sizes.values())))))
    return TableRow(family, case, text, case.row.moved(case), **options)


def _square_products() -> Iterator[TableRow]:
    yield from _products("products", "64,128", compiling=True)
    yield from _products("products", "256", compiling=True)
    yield from _products("products", "512,1024")
    yield from _products("products", "768,1536,2048,4096", quick=False)


def _skewed() -> Iterator[TableRow]:
    yield from _products("skewed products", "1x1024x1024,8x1024x1024,1024x8x1024,1024x1024x8")
    yield from _products("skewed products", "16x16x16384,8192x64x64,64x8192x64,255,1x4096x4096")
    yield from _products("skewed products", "512", trans="a")
    yield from _products("skewed products", "512", trans="b")
    sizes = "127,1000,1023,1025,2x4096x4096,24x4096x4096,4096x1x4096,32x32x65536,65536x32x32,300x1000x50"
    yield from _products("skewed products", sizes, quick=False)
    yield from _products("skewed products", "1x4096x4096,1024", trans="b", quick=False)
    yield from _products("skewed products", "1024", trans="ab", quick=False)


def _types() -> Iterator[TableRow]:
    for dtype, sizes, more in (
        ("f64", "512", "256,1024,2048"),
        ("bf16", "512", "1024,2048"),
        ("f16", "256", "512"),
        ("u8i8", "512", "1024,2048"),
        ("i32", "256", "512"),
        ("c64", "256", "512,1024"),
        ("c128", "256", "512,1024"),
    ):
        yield from _products("element types", sizes, dtype)
        yield from _products("element types", more, dtype, quick=False)
    yield from _products("element types", "256", "i8", out_dtype="i32", quick=False)
    yield from _products("element types", "256", "i64", quick=False)


def _batches() -> Iterator[TableRow]:
    for count, n, quick in (
        (1000, 4, True),
        (1000, 8, True),
        (1000, 16, True),
        (100, 32, True),
        (16, 128, True),
        (1000, 32, False),
        (500, 64, False),
        (64, 256, False),
    ):
        yield _product("batches", Case(Gemm(n, n, n, "f32"), count), f"{count} of {n}x{n}x{n}", quick=quick)


def _attentions() -> Iterator[TableRow]:
    yield _attention("1x12x128x64")
    yield _attention("1x12x384x64")
    yield _attention("1x12x384x64", causal=True)
    yield _attention("1x4x1024x64")
    yield _attention("1x4x1024x64", causal=True, window="128")
    yield _attention("1x32/8x1:2048x128")
    yield _attention("1x12x128x64", "bf16")
    for shape in ("8x12x384x64", "1x16x2048x64", "1x8x4096x128"):
        yield _attention(shape, quick=False)
        yield _attention(shape, causal=True, quick=False)
        yield _attention(shape, "bf16", quick=False)
    yield _attention("1x8x8192x64", causal=True, window="256", quick=False)
    yield _attention("1x32/8x1:32768x128", quick=False)


def _einsums() -> Iterator[TableRow]:
    def row(text: str, quick: bool = True, **sizes: int) -> TableRow:
        shown = ", ".join(f"{name}={size}" for name, size in sizes.items())
        return _operation("einsum", "einsum", sizes, text, f"{text} ({shown})", quick=quick)

    yield row("bij,bjk->bik", b=32, i=64, j=64, k=64)
    yield row("bhqd,bhkd->bhqk", b=2, h=8, q=128, k=128, d=64)
    yield row("ijk,kl->ijl", i=32, j=32, k=128, l=128)
    yield row("aibj,bkal->ijkl", a=12, b=12, i=12, j=12, k=12, l=12)
    yield row("abcd,dc->ab", a=40, b=40, c=24, d=24)
    yield row("ij,jk,kl->il", i=128, j=128, k=128, l=128)
    yield row("bij,bj->bi", b=64, i=64, j=64)
    yield row("ij,ij->i", i=512, j=512)
    yield row("i,j->ij", i=1024, j=1024)
    yield row("aebf,fdec->abcd", quick=False, a=24, b=24, c=24, d=24, e=24, f=24)
    yield row("abcd,ec->abed", quick=False, a=32, b=32, c=32, d=32, e=32)
    yield row("bij,bjk->bik", quick=False, b=64, i=256, j=256, k=256)
    yield row("ijk->ikj", quick=False, i=64, j=256, k=256)


def _linears() -> Iterator[TableRow]:
    name, layer = "linear with GELU", {"m": 256, "n": 1024, "k": 512}
    yield _operation("linear layers", "linear", layer, "bias", "bias, 256x1024x512")
    yield _operation("linear layers", name, layer, "gelu", "bias and GELU, 256x1024x512", compiling=True)
    for m in (1, 16):
        sizes = {"m": m, "n": 2048, "k": 2048}
        shape = "x".join(map(str, sizes.values()))
        yield _operation("linear layers", "linear, packed weight", sizes, "bias", f"packed weight, {shape}")
        for bits in (8, 4):
            name = f"linear, {bits}-bit weight"
            yield _operation("linear layers", name, sizes, "bias", f"{bits}-bit weight, {shape}")
    large = {"m": 512, "n": 4096, "k": 1024}
    yield _operation(
        "linear layers", "linear with GELU", large, "gelu", "bias and GELU, 512x4096x1024", quick=False
    )
    yield _operation("linear layers", "linear", large, "relu", "bias and ReLU, 512x4096x1024", quick=False)
    for bits in (8, 4):
        sizes = {"m": 1, "n": 4096, "k": 4096}
        name = f"linear, {bits}-bit weight"
        yield _operation("linear layers", name, sizes, "bias", f"{bits}-bit weight, 1x4096x4096", quick=False)


def _row_functions() -> Iterator[TableRow]:
    table = {"rows": 1024, "columns": 1024}
    for name in ("softmax", "layer_norm", "rms_norm", "sum of rows", "gelu", "exp", "transpose"):
        yield _operation("norms and softmax", name, table, compiling=name == "softmax")
    for name in ("tanh", "silu"):
        yield _operation("norms and softmax", name, table, quick=False)
    for name in ("softmax", "layer_norm", "rms_norm", "gelu"):
        for rows, columns in ((4096, 1024), (512, 768), (16, 128)):
            yield _operation("norms and softmax", name, {"rows": rows, "columns": columns}, quick=False)


def _models() -> Iterator[TableRow]:
    yield _operation("models", "two layers", {"rows": 64, "inner": 1024, "width": 256})
    yield _operation("models", "encoder layer", {"length": 128, "width": 384}, compiling=True)
    yield _operation("models", "two layers", {"rows": 512, "inner": 4096, "width": 1024}, quick=False)
    yield _operation("models", "encoder layer", {"length": 512, "width": 768}, quick=False)


def _loops() -> Iterator[TableRow]:
    for order, n in (("ijk", 128), ("ijk", 512), ("ikj", 512)):
        yield _operation("loops", "loops in C", {"n": n}, order)
    yield _operation("loops", "loops in Python", {"n": 256}, "ijk")
    for order, n in (("jki", 512), ("ikj", 1024)):
        yield _operation("loops", "loops in C", {"n": n}, order, quick=False)
    yield _operation("loops", "loops in Python", {"n": 256}, "ikj", quick=False)


def _kernels() -> Iterator[TableRow]:
    for n, quick in ((16, True), (32, True), (23, True), (5, False), (13, False), (48, False), (64, False)):
        yield _operation("fixed-size kernels", "kernel", {"m": n, "n": n, "k": n}, quick=quick)


def _calls() -> Iterator[TableRow]:
    for n, quick in ((8, True), (4, False), (16, False)):
        for name in ("matmul", "einsum", "linear", "softmax", "transpose", "attention"):
            yield _operation("calls", f"call of {name}", {"n": n}, label=f"{name} {n}x{n}", quick=quick)


def _threads(cores: int) -> Iterator[TableRow]:
    """Powers of two up to the number of cores, and that number; the quick form has the last."""
    counts = sorted({*(1 << power for power in range(1, cores.bit_length())), cores} - {1})
    counts = [count for count in counts if count <= cores]
    for count in counts:
        quick = count == counts[-1]
        yield from _products("threads", "512,1024", threads=count, quick=quick)
        yield from _products("threads", "2048", threads=count, quick=False)
        yield _attention_of_threads(count, quick=quick)


def _attention_of_threads(count: int, *, quick: bool) -> TableRow:
    row = _attention("1x4x1024x64", threads=count, quick=quick)
    return TableRow("threads", row.case, f"attention {row.label}", row.moved, count, quick)


def rows(cores: int, *, quick: bool = False) -> tuple[TableRow, ...]:
    """The rows of the benchmark on a machine of so many cores, in the order in which they are measured.

    >>> len(rows(2, quick=True)) >= 60
    True
    """
    families = (
        _square_products(),
        _skewed(),
        _types(),
        _batches(),
        _attentions(),
        _einsums(),
        _linears(),
        _row_functions(),
        _models(),
        _loops(),
        _kernels(),
        _calls(),
        _threads(cores),
    )
    return tuple(row for family in families for row in family if row.quick or not quick)
