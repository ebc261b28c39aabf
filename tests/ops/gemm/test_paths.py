"""Predicted cycles of the paths of a product: ranks as measured, and the same bits on every path."""

from __future__ import annotations

import random

import numpy as np
import pytest
from support import rough

import tilewright as tw
from tilewright.ir.expressions import AnyOf
from tilewright.ir.interpret import Interpreter
from tilewright.ir.text import print_program
from tilewright.machine.catalog import find_machine
from tilewright.machine.host import host_machine
from tilewright.machine.isa_rows import AVX2
from tilewright.machine.machine import Machine
from tilewright.macro.levels import Cycles
from tilewright.macro.prediction import Path, Product
from tilewright.ops.gemm.cut import cut_gemm
from tilewright.ops.gemm.nest import build_gemm, limits_of, small_product
from tilewright.ops.gemm.paths import GemmPaths
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.streaming import most_few
from tilewright.spec.dtype import F32, F64, DType
from tilewright.spec.problem import PRODUCT_SIZES
from tilewright.threads.pool import TEAM_WORK

PROBLEM = Gemm(dtype="f32", a="strided", b="strided", c="strided")
ZEN4 = find_machine("znver4")
ROWS = {"avx512": ZEN4, "avx2": ZEN4.with_isa(AVX2)}

#: Measured on a Zen 4 (docs/decisions/046-strips-of-a.md, 059-rows-of-b.md): the faster path and a slower
#: one; the share of the peak of the faster one, from and to, where it was measured.
MEASURED: dict[tuple[str, tuple[int, int, int]], tuple[Path, Path, tuple[float, float] | None]] = {
    ("avx512", (512, 512, 512)): (Path.STRIPS, Path.IN_PLACE, (0.93, 0.97)),
    ("avx512", (2048, 2048, 2048)): (Path.STRIPS, Path.IN_PLACE, (0.94, 0.96)),
    ("avx512", (4096, 4096, 64)): (Path.STRIPS, Path.IN_PLACE, (0.82, 0.88)),
    ("avx512", (128, 128, 8192)): (Path.IN_PLACE, Path.PACKED, (0.88, 0.92)),
    ("avx512", (12, 1000, 1000)): (Path.IN_PLACE, Path.PACKED, None),
    ("avx512", (17, 1000, 1000)): (Path.IN_PLACE, Path.PACKED, None),
    ("avx2", (512, 512, 512)): (Path.STRIPS, Path.IN_PLACE, (0.91, 0.91)),
    ("avx2", (2048, 2048, 2048)): (Path.STRIPS, Path.IN_PLACE, (0.82, 0.92)),
    ("avx2", (8192, 64, 256)): (Path.STRIPS, Path.IN_PLACE, None),  # 0.78, before strips were prefetched
    ("avx2", (4096, 4096, 64)): (Path.STRIPS, Path.IN_PLACE, (0.86, 0.86)),
}
#: How far a predicted share may be from a measured one.
TOLERANCE = 0.2


def share(machine: Machine, sizes: tuple[int, int, int], cycles: Cycles) -> float:
    """Share of the peak that cycles amount to."""
    m, n, k = sizes
    tile = machine.isa.tile(F32)
    return m * n * k / (tile.products * machine.isa.rate(tile)) / cycles.total


@pytest.mark.parametrize(("row", "sizes"), MEASURED, ids=str)
def test_ranks_and_shares_of_a_zen4(row: str, sizes: tuple[int, int, int]) -> None:
    machine = ROWS[row]
    faster, slower, shares = MEASURED[row, sizes]
    paths, product = GemmPaths.of(PROBLEM, machine), Product.contiguous(*sizes)
    cycles = paths.predict(faster, product)
    assert cycles.total < paths.predict(slower, product).total
    assert paths.chosen(product) is faster
    if shares is not None:
        low, high = shares
        assert low * (1 - TOLERANCE) <= share(machine, sizes, cycles) <= high * (1 + TOLERANCE)


@pytest.mark.parametrize("name", ["znver2", "znver4", "znver5", "haswell", "sapphirerapids", "neoverse-v2"])
def test_predictions_are_at_least_the_multiply_adds(name: str) -> None:
    """No path is predicted to be faster than the multiply unit, and each part is positive."""
    machine = find_machine(name)
    paths = GemmPaths.of(PROBLEM, machine)
    for sizes in (
        (1, 500, 300),
        (7, 64, 2000),
        (5, 6, 0),
        (64, 64, 64),
        (300, 1, 400),
        (513, 700, 129),
        (2048, 2048, 2048),
    ):
        for tight in (Product.contiguous(*sizes), Product(*sizes, sizes[2], 1, 1, sizes[2], sizes[1], 1)):
            for path in paths.possible(tight):
                cycles = paths.predict(path, tight)
                assert min(cycles) >= 0, (path, tight)
                assert share(machine, sizes, cycles) <= 1, (path, tight)


def test_rows_in_few_sets_are_not_read_in_place() -> None:
    """B stays in place unless its rows share few sets of L1; for few rows always, where tiles prefetch it."""
    way = ZEN4.l1.size // ZEN4.l1.ways // 4
    for row, rows, k in (("avx2", 20, 1000), ("avx512", 90, 100)):
        paths, n = GemmPaths.of(PROBLEM, ROWS[row]), 4 * way
        assert paths.chosen(Product.contiguous(rows, n - 16, k)) is Path.IN_PLACE
        assert paths.chosen(Product.contiguous(rows, n, k)) is Path.STRIPS
    assert paths.chosen(Product.contiguous(20, n, 2000)) is Path.IN_PLACE
    paths = GemmPaths.of(PROBLEM, ROWS["avx2"])  # whose tiles read one line of a row of B
    assert paths.chosen(Product.contiguous(8, n, 1000)) is Path.STREAMING
    assert paths.chosen(Product.contiguous(9, n, 1000)) is Path.STRIPS


#: Measured on a Zen 3 with A transposed (docs/decisions/057-columns-of-a.md): the faster path, a slower one.
TRANSPOSED: dict[tuple[int, int, int], tuple[Path, Path]] = {
    (96, 96, 96): (Path.STRIPS, Path.PACKED),
    (2000, 64, 64): (Path.STRIPS, Path.IN_PLACE),
    (1000, 32, 1000): (Path.STRIPS, Path.IN_PLACE),
    (1000, 16, 1000): (Path.IN_PLACE, Path.PACKED),
    (24, 1000, 1000): (Path.IN_PLACE, Path.STRIPS),
    (256, 256, 256): (Path.PACKED, Path.STRIPS),
    (512, 512, 512): (Path.PACKED, Path.STRIPS),
    (640, 640, 640): (Path.PACKED, Path.STRIPS),
    (1000, 1000, 1000): (Path.PACKED, Path.STRIPS),
    (1000, 64, 1000): (Path.PACKED, Path.STRIPS),
    (2000, 512, 256): (Path.PACKED, Path.STRIPS),
    (512, 512, 64): (Path.PACKED, Path.STRIPS),
}


def transposed(m: int, n: int, k: int) -> Product:
    """A product whose A has adjacent rows, as the transpose of a row-major matrix has."""
    return Product(m, n, k, 1, m, n, 1, n, 1)


@pytest.mark.parametrize("sizes", TRANSPOSED, ids=str)
def test_paths_of_a_transposed_a(sizes: tuple[int, int, int]) -> None:
    """A is packed where L1 does not keep a line of each depth, and the prediction agrees."""
    faster, slower = TRANSPOSED[sizes]
    for problem in (PROBLEM, Gemm(dtype="f32", a="col")):
        paths = GemmPaths.of(problem, ROWS["avx2"])
        assert paths.chosen(transposed(*sizes)) is faster
        if faster is Path.PACKED:
            predicted = [paths.predict(path, transposed(*sizes)).total for path in (faster, slower)]
            assert predicted == sorted(predicted)


#: The path of a Golden Cove server (docs/decisions/060-late-l3.md), and that of a Zen 5.
LATE: dict[tuple[int, int, int], tuple[Path, Path]] = {
    (250, 250, 250): (Path.STRIPS, Path.IN_PLACE),
    (300, 300, 300): (Path.STRIPS, Path.IN_PLACE),
    (500, 500, 500): (Path.STRIPS, Path.IN_PLACE),
    (48, 1000, 1000): (Path.IN_PLACE, Path.IN_PLACE),
    (49, 1000, 1000): (Path.STRIPS, Path.IN_PLACE),
    (64, 2080, 2080): (Path.COPYING, Path.IN_PLACE),
    (65, 2080, 2080): (Path.STRIPS, Path.IN_PLACE),
    (192, 4128, 4128): (Path.STRIPS, Path.IN_PLACE),
    (384, 4128, 4128): (Path.STRIPS, Path.IN_PLACE),
    (385, 4128, 4128): (Path.STRIPS, Path.STRIPS),
    (16, 4096, 256): (Path.IN_PLACE, Path.IN_PLACE),  # rows of B in one set of L1
    (17, 4096, 256): (Path.STRIPS, Path.IN_PLACE),
    (36, 4096, 256): (Path.STRIPS, Path.IN_PLACE),
    (37, 4096, 256): (Path.STRIPS, Path.STRIPS),
    (24, 1000, 1000): (Path.IN_PLACE, Path.IN_PLACE),
    (12, 1040, 1040): (Path.IN_PLACE, Path.IN_PLACE),  # one tile
    (13, 1040, 1040): (Path.COPYING, Path.IN_PLACE),  # B in more than twice L2
    (24, 2080, 20800): (Path.COPYING, Path.IN_PLACE),
    (200, 300, 5000): (Path.STRIPS, Path.IN_PLACE),
    (2, 1600, 1600): (Path.STREAMING, Path.STREAMING),  # whose tiles prefetch no rows of B
    (3, 1600, 1600): (Path.IN_PLACE, Path.IN_PLACE),  # a tile of four
    (3, 400, 400): (Path.IN_PLACE, Path.IN_PLACE),  # in L2
    (4, 1600, 1600): (Path.IN_PLACE, Path.IN_PLACE),
    (7, 1600, 1600): (Path.IN_PLACE, Path.IN_PLACE),
    (4, 4096, 512): (Path.IN_PLACE, Path.IN_PLACE),  # rows of B in one set, of one tile of rows
    (5, 4096, 512): (Path.IN_PLACE, Path.IN_PLACE),
    (7, 4096, 512): (Path.IN_PLACE, Path.IN_PLACE),
    (7, 512, 256): (Path.IN_PLACE, Path.IN_PLACE),  # in L2
    (8, 4096, 4096): (Path.IN_PLACE, Path.IN_PLACE),
    (256, 256, 4096): (Path.STRIPS, Path.STRIPS),  # rows of B in four sets
    (256, 272, 4096): (Path.STRIPS, Path.IN_PLACE),
    (128, 1280, 1024): (Path.STRIPS, Path.IN_PLACE),  # in four sets, fewer rows
    (129, 1280, 1024): (Path.STRIPS, Path.STRIPS),
    (64, 512, 96): (Path.IN_PLACE, Path.IN_PLACE),  # a small B with rows in two sets
    (65, 512, 96): (Path.STRIPS, Path.STRIPS),
    (512, 512, 8): (Path.STRIPS, Path.STRIPS),
    (1024, 96, 2048): (Path.STRIPS, Path.STRIPS),
    (7, 10000, 100): (Path.IN_PLACE, Path.IN_PLACE),  # shallow
    (8, 10000, 100): (Path.STRIPS, Path.IN_PLACE),
    (100, 10000, 100): (Path.STRIPS, Path.IN_PLACE),
    (48, 4000, 200): (Path.IN_PLACE, Path.IN_PLACE),
    (49, 4000, 200): (Path.STRIPS, Path.IN_PLACE),
    (96, 600, 100): (Path.IN_PLACE, Path.IN_PLACE),  # in L2
    (97, 600, 100): (Path.STRIPS, Path.IN_PLACE),
    (200, 200, 200): (Path.IN_PLACE, Path.IN_PLACE),  # four times L1
    (1000, 32, 1000): (Path.STRIPS, Path.IN_PLACE),  # one tile of columns, A is not near
    (200, 32, 600): (Path.IN_PLACE, Path.IN_PLACE),
    (400, 250, 128): (Path.IN_PLACE, Path.IN_PLACE),  # A and C in a third of L2
    (800, 250, 64): (Path.STRIPS, Path.IN_PLACE),
    (1500, 72, 60): (Path.IN_PLACE, Path.IN_PLACE),  # B in L1, the others in a half of L2
    (3000, 72, 60): (Path.STRIPS, Path.IN_PLACE),
    (500, 24, 200): (Path.IN_PLACE, Path.FEW_COLUMNS),  # a quarter of the lanes are idle
    (500, 18, 200): (Path.FEW_COLUMNS, Path.FEW_COLUMNS),  # nearly a half
    (500, 12, 200): (Path.FEW_COLUMNS, Path.FEW_COLUMNS),
}


@pytest.mark.parametrize("sizes", LATE, ids=str)
def test_paths_where_l3_is_late(sizes: tuple[int, int, int]) -> None:
    for name, path in zip(("sapphirerapids", "znver5"), LATE[sizes], strict=True):
        paths = GemmPaths.of(PROBLEM, find_machine(name))
        assert paths.chosen(Product.contiguous(*sizes)) is path, name


def test_rows_of_several_tiles_stream_a_b_whose_rows_share_sets() -> None:
    """On a Zen 4, tiles have six rows."""
    paths = GemmPaths.of(PROBLEM, ZEN4)
    for rows, path in ((2, Path.STREAMING), (5, Path.IN_PLACE), (6, Path.IN_PLACE), (7, Path.STREAMING)):
        assert paths.chosen(Product.contiguous(rows, 4096, 512)) is path
    assert paths.chosen(Product.contiguous(7, 4000, 512)) is Path.IN_PLACE


def test_rows_in_one_set_are_packed_on_cores_not_measured() -> None:
    chosen = GemmPaths.of(PROBLEM, find_machine("x86-64-v4")).chosen(Product.contiguous(1024, 96, 2048))
    assert chosen is Path.PACKED


def test_a_transposed_a_where_panels_stay_in_l2() -> None:
    """It is packed for few columns, too, but not for few rows, nor for some where B has few slices."""
    paths = GemmPaths.of(PROBLEM, find_machine("sapphirerapids"))
    for sizes in ((1000, 16, 1000), (1000, 64, 1000), (3000, 32, 300), (257, 1000, 1000), (65, 1000, 1000)):
        assert paths.chosen(transposed(*sizes)) is Path.PACKED
    for sizes in ((28, 1000, 1000), (64, 1000, 1000), (250, 300, 500), (100, 16, 1000)):
        assert paths.chosen(transposed(*sizes)) is Path.STRIPS


@pytest.mark.parametrize("name", ["sapphirerapids", "znver4", "znver5", "haswell"])
def test_paths_of_a_transposed_b(name: str) -> None:
    """Rows copy one micro-panel at a time, while a slice of A takes a quarter of L2; few read it as it is.

    Where strips have panels that stay in L2, all are copied at once.
    """
    machine = find_machine(name)
    copies = name != "sapphirerapids"
    paths = GemmPaths.of(PROBLEM, machine)
    n, k = 3072, 256  # one slice
    most = machine.l2.size // 4 // (k * F32.size)
    few = most_few(machine.isa)
    for rows, copied in ((few + 1, True), (most, True), (most + 1, False), (4 * most, False)):
        product = Product(rows, n, k, k, 1, 1, k, n, 1)
        assert (paths.chosen(product) is Path.IN_PLACE) is (copied and copies)
    for rows in (1, 2, few):
        assert paths.chosen(Product(rows, n, k, k, 1, 1, k, n, 1)) is Path.FEW_ROWS


#: Sizes, and whether rows of A are transposed in registers for few columns: where vectors have 16 lanes of
#: f32, and where they have 8.
FEW_COLUMNS = {
    (1000, 4, 1000): (True, True),
    (1000, 10, 1000): (True, True),
    (1000, 16, 1000): (False, False),  # on both, whole vectors; on the narrow row, too many of them
    (1000, 12, 1000): (True, False),
    (1000, 26, 1000): (True, False),
    (1000, 27, 1000): (False, False),
    (64, 4, 64): (True, False),
    (63, 4, 64): (False, False),
    (128, 4, 63): (False, False),
    (2048, 8, 2048): (False, False),  # half a vector, rows of A in one set of L1; a whole one
    (2048, 4, 2048): (True, False),
    (2048, 6, 2048): (True, True),
    (2047, 8, 2047): (True, False),
    (1000, 2, 1): (False, False),
}


@pytest.mark.parametrize("sizes", FEW_COLUMNS, ids=str)
def test_paths_of_few_columns(sizes: tuple[int, int, int]) -> None:
    for name, few in zip(("znver4", "haswell"), FEW_COLUMNS[sizes], strict=True):
        chosen = GemmPaths.of(PROBLEM, find_machine(name)).chosen(Product.contiguous(*sizes))
        assert (chosen is Path.FEW_COLUMNS) is few, name


def test_few_columns_of_lines_in_one_set() -> None:
    """Half a vector of columns takes the path where that was measured: 062-lines-in-registers.md."""
    for name, path in {"znver5": Path.FEW_COLUMNS, "znver4": Path.IN_PLACE}.items():
        assert GemmPaths.of(PROBLEM, find_machine(name)).chosen(Product.contiguous(2048, 8, 2048)) is path, (
            name
        )


def test_few_columns_of_rows_without_lanes_to_spare() -> None:
    for name in ("neoverse-v1", "a64fx", "pwr9", "x86-64-v2"):
        paths = GemmPaths.of(PROBLEM, find_machine(name))
        assert Path.FEW_COLUMNS not in paths.all
        assert paths.chosen(Product(1, 300, 300, 300, 1, 1, 300, 300, 1)) is Path.FEW_ROWS
        assert paths.chosen(Product(2, 300, 300, 300, 1, 1, 300, 300, 1)) is not Path.FEW_ROWS


def test_every_path_computes_the_same_bits() -> None:
    """The kernel of one path alone has the bits of the kernel that chooses, whatever the path."""
    import sys
    from pathlib import Path as File

    sys.path.append(str(File(__file__).resolve().parents[3] / "benchmarks"))
    from predictions import kernel_of

    machine = host_machine()
    paths = GemmPaths.of(PROBLEM, machine)
    chosen = tw.compile(PROBLEM)
    kernels = {path: kernel_of(PROBLEM, machine, path) for path in paths.all}
    for m, n, k in ((1, 40, 600), (5, 300, 1100), (15, 64, 300), (40, 50, 2100), (37, 230, 1300)):
        a, b = rough((m, k), np.float32, 1), rough((k, n), np.float32, 2)
        expected = np.empty((m, n), np.float32)
        chosen(a, b, expected)
        for path in paths.possible(Product.contiguous(m, n, k)):
            c = np.full((m, n), np.nan, np.float32)
            kernels[path](a, b, c)
            assert np.array_equal(c, expected), path


@pytest.mark.parametrize("begin", [0, 1, 4, 12, 13])
@pytest.mark.parametrize("sizes", [(100, 5, 1300), (70, 20, 40), (1, 100, 1024), (6, 50, 1500)], ids=str)
def test_lines_in_one_set_of_l1(sizes: tuple[int, int, int], begin: int) -> None:
    """They are copied by cache lines where these begin with a line's depths; sums of integers are exact."""
    m, n, k = sizes
    distance = host_machine().l1.size // host_machine().l1.ways // 4
    apart = -(-(k + 16) // distance) * distance
    lines = np.full((max(m, n) + 1, apart), np.nan, np.float32)
    address = lines.ctypes.data % 64 // 4
    first = begin - address + 16 * (address > begin)  # elements behind a cache line
    lines = lines[:-1, first : first + k]
    lines[...] = np.random.default_rng(0).integers(-9, 10, lines.shape)
    others = np.random.default_rng(1).integers(-9, 10, (k, min(m, n))).astype(np.float32)
    a, b = (lines, others) if m > n else (others.T, lines.T)
    c = np.empty((m, n), np.float32)
    tw.compile(PROBLEM)(a, b, c)  # `matmul` has quick code at first, without this path
    assert np.array_equal(c, a.astype(int) @ b.astype(int))


def test_explain_names_every_path() -> None:
    """Each path with its cost and the reason; the condition that fails is told with its values."""
    a, b = np.ones((300, 200), np.float32), np.ones((200, 100), np.float32)
    first, *others = tw.explain(tw.matmul, a, b).considered
    assert first.taken
    assert first.reason.startswith(
        ("the first path whose condition holds", "its condition holds", "no other")
    )
    assert not any(one.taken for one in others)
    cycles = [one.cycles for one in others if one.cycles is not None]
    assert cycles == sorted(cycles)
    assert {one.strategy for one in (first, *others)} == {
        path.value for path in GemmPaths.of(PROBLEM, host_machine()).all
    }
    for one in others:
        assert (one.cycles is None) is one.reason.startswith("impossible: needs ")
    (dots,) = [one for one in others if one.strategy.startswith("dot products")]
    assert "n == 1" in dots.reason
    assert "n = 100" in dots.reason
    assert "cs_a" not in dots.reason, "what holds is not named"
    assert not tw.explain(tw.Gemm(64, 64, 64, strategy="packing")).considered


def test_explain_says_why_a_faster_path_is_not_taken() -> None:
    """A path before the one that is taken lacks something, one behind it was not tried."""
    for m, n, k in ((1, 40, 600), (64, 64, 64), (300, 1000, 400), (2000, 2000, 2000)):
        paths = GemmPaths.of(PROBLEM, host_machine())
        found = {one.meaning: one.considered for one in paths.predicted(Product.contiguous(m, n, k))}
        place = [found[path.value].taken for path in paths.all].index(True)
        for number, path in enumerate(paths.all):
            one = found[path.value]
            if one.cycles is not None and number != place:
                assert ("needs " in one.reason) is (number < place), (m, n, k, path)
                assert "cycles" in one.reason


@pytest.mark.parametrize("name", ["sapphirerapids", "znver5", "haswell"])
def test_strips_meet_as_many_panels_as_l2_keeps_where_l3_is_late(name: str) -> None:
    machine = find_machine(name)
    blocking = cut_gemm(PROBLEM, machine)
    text = print_program(build_gemm(PROBLEM, blocking, machine, "product", only=Path.STRIPS))
    kept = f"ceildiv({machine.l2.size * 3 // 16 // F32.size}, kc) * threads"
    assert (kept in text) == (name == "sapphirerapids")


def test_strips_of_many_columns_have_wide_tiles_where_l3_is_late() -> None:
    machine = find_machine("sapphirerapids")
    blocking = cut_gemm(PROBLEM, machine)
    text = print_program(build_gemm(PROBLEM, blocking, machine, "product", only=Path.STRIPS))
    assert "if 192 <= n" in text
    wide, usual = text.split("else", 1)
    assert "matmul 8x48x1" in wide, "four panels"
    assert "matmul 12x32x1" in usual
    paths = GemmPaths.of(PROBLEM, machine)
    narrow, broad = (paths.predict(Path.STRIPS, Product.contiguous(600, n, 512)) for n in (191, 192))
    assert broad.tiles < narrow.tiles, "as many tiles, with fewer rows of C"


@pytest.mark.parametrize(
    ("sizes", "tile"),
    [
        ((100, 32, 100), (12, 32)),
        ((100, 48, 100), (8, 48)),
        ((100, 64, 100), (6, 64)),
        ((100, 80, 100), (8, 48)),
        ((100, 128, 100), (6, 64)),
        ((15, 128, 100), (12, 32)),  # partial tiles are too large a part
        ((16, 1000, 1000), (8, 48)),  # two whole tiles
        ((17, 1000, 1000), (12, 32)),  # L1 keeps no wide column of B
        ((100, 64, 193), (12, 32)),
        ((100, 48, 256), (8, 48)),
    ],
    ids=str,
)
def test_operands_in_place_have_the_tile_that_loads_least(
    sizes: tuple[int, int, int], tile: tuple[int, int]
) -> None:
    """Where L3 is late, as wide tiles are for strips."""
    paths = GemmPaths.of(PROBLEM, find_machine("sapphirerapids"))
    found = paths.nest_in_place(Product.contiguous(*sizes)).tile
    assert (found.mr, found.nr) == tile
    usual = GemmPaths.of(PROBLEM, find_machine("znver5"))
    assert usual.nest_in_place(Product.contiguous(*sizes)) == usual.nest
    apart = Product.contiguous(*sizes)._replace(rs_b=1, cs_b=sizes[2])
    assert paths.nest_in_place(apart) == paths.nest, "B is copied one panel at a time"


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("name", ["haswell", "znver4", "znver5", "sapphirerapids", "cascadelake", "a64fx"])
def test_small_products_have_no_other_path_than_the_one_in_place(name: str, dtype: DType) -> None:
    """So the kernel may take it before it asks about any other; of larger ones it asks."""
    machine, problem = find_machine(name), Gemm(dtype=dtype)
    paths = GemmPaths.of(problem, machine)
    small = small_product(paths.nest, limits_of(paths.nest, machine))
    assert small is not None
    run, draw = Interpreter({}, {}), random.Random(name)
    found = 0
    for _ in range(1500):
        m, n, k = draw.randrange(72), draw.randrange(72), draw.randrange(270)
        gaps = [draw.choice((0, 0, 1, draw.randrange(300), 1024)) for _ in range(3)]
        rows_of_a = draw.choice((k + gaps[0], 1024, 4096))
        product = Product(m, n, k, rows_of_a, draw.choice((1, 1, 1, 2)), n + gaps[1], 1, n + gaps[2], 1)
        if draw.random() < 0.1:
            product = product._replace(rs_b=1, cs_b=k)
        names = dict(zip(PRODUCT_SIZES, product, strict=True))
        if run.holds(AnyOf((small,)), names):
            found += 1
            assert paths.chosen(product) is Path.IN_PLACE, product
            assert m * n * k < TEAM_WORK, "no team would share its tasks"
    assert found > 400
