"""Products of sixty-odd shapes beside the roofline of the machine and beside every peer that is installed.

`SHAPES` lists them: squares, sizes that are multiples of no power of two, tall, wide, deep and flat products,
a few rows or columns, rows whose distance is a power of two, transposed weights, transposed rows as gradients
of weights have them, and batches of 500 small products. Peers are NumPy as shipped, NumPy with the fastest
``OPENBLAS_CORETYPE`` of each shape, PyTorch (``torch.matmul``, which is ``torch.bmm`` for batches), JAX and
ONNX Runtime. `tilewright.tools.bench.contest` describes how shapes are measured and what the roofline is.

Shares and ratios are medians over the rounds; each sample is divided by the peak measured right before it.
The values in parentheses are those of the shortest times, which other programs on the machine disturb less.
Of several settings of a peer the one with the highest median counts, which favours that peer where the
settings differ by noise alone.

Run ``python benchmarks/shapes_everywhere.py`` on a quiet machine; it measures float32 on one thread. ``--row
avx2`` limits tilewright to its AVX2 kernels: its share is then of the peak of AVX2, NumPy has its Haswell
kernels, which use the same instructions, and the other peers are as shipped. ``--types
bf16,u8i8,f16,i32,f64,c64`` measures squares of these types instead, ``--attention`` attention beside
``scaled_dot_product_attention`` and ONNX Runtime. ``--only 'tall|batch'`` chooses shapes by a regular
expression, ``--quick`` leaves out what takes long.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from figures import HEADER, Line

from tilewright.machine.host import detect_host
from tilewright.spec.dtype import C64, C128, F32, F64
from tilewright.tools.bench.contest import (
    CORE_TYPE,
    Contest,
    Contestant,
    ContestResult,
    MemoryPass,
    find_contestants,
)
from tilewright.tools.explore.attention.cases import parse_shapes
from tilewright.tools.explore.cases import Case, parse_sizes
from tilewright.tools.explore.facts import describe_machine, machine_title
from tilewright.tools.explore.measure import REPEAT
from tilewright.tools.explore.measured import Measured
from tilewright.tools.explore.prepared import System
from tilewright.tools.explore.statistics import geometric_mean, median
from tilewright.tools.explore.systems import TILEWRIGHT, find_system

#: How many small products a batch has.
BATCH = 500
#: ``--quick``: rounds, and the operations of the largest problems that are measured.
QUICK_REPEAT, QUICK_FLOPS = 3, 3e9
#: The least size of the squares and edges whose share of the peak is a figure.
REGULAR_FROM = 200
#: NumPy with OpenBLAS's kernels for the same instructions as the row avx2.
HASWELL = Contestant("numpy", {CORE_TYPE: "Haswell"})
#: The fastest of all settings of NumPy.
NUMPY_BEST = "numpy-best"
#: Peers of any row.
OTHERS = ("torch", "jax", "onnxruntime")
#: Element types for which OpenBLAS has products.
BLAS_TYPES = (F32, F64, C64, C128)
#: A peer that is so many times slower than tilewright, and would take so long, is not measured.
SLOW_RATIO, SLOW_SECONDS = 8, 2.0
#: Squares of other types than float32.
TYPE_SIZES = "256,512,768,1024,1536,2048,4096"
#: Attention: batch x heads (queries/keys) x sequence x head.
ATTENTION_SHAPES = (
    "1x12x384x64,8x12x384x64,16x12x80x64,1x8x1024x64,1x16x2048x64,1x8x4096x128,1x32/8x1024x128,4x8x100x32"
)
#: Variants of these shapes: a title, the type, and whether a query sees no later keys.
ATTENTION_VARIANTS = (("f32", "f32", False), ("f32 causal", "f32", True), ("bf16", "bf16", False))

AnyCase = TypeVar("AnyCase", bound=Measured)


@dataclass(frozen=True)
class Row:
    """An instruction-set row that is measured.

    Attributes
    ----------
    system : whose environment limits tilewright to it.
    columns : peers, of which `NUMPY_BEST` stands for all settings of NumPy.
    """

    system: str
    columns: tuple[str, ...]


ROWS = {
    "host": Row("tilewright", ("numpy", NUMPY_BEST, *OTHERS)),
    "avx2": Row("tilewright-avx2", (HASWELL.name, *OTHERS)),
}


@dataclass(frozen=True)
class Shapes:
    """Sizes of one kind, as `parse_sizes` reads them; `trans` names transposed operands."""

    kind: str
    sizes: str
    trans: str = "n"
    batch: int = 1

    @property
    def cases(self) -> tuple[Case, ...]:
        """The products in float32."""
        batch = f"{self.batch} of " if self.batch > 1 else ""
        transposed = "" if self.trans == "n" else f" trans={self.trans}"
        return tuple(
            Case(case.gemm, self.batch, f"{batch}{case.label}{transposed}")
            for case in parse_sizes(self.sizes, trans=self.trans)
        )


#: The kinds that a core should run near its peak; all others but batches are skewed.
REGULAR = ("square", "edge")
SHAPES = (
    Shapes("square", "48,64,96,128,192,256,384,512,640,768,1024,1536,2048,4096"),
    Shapes("edge", "100,200,300,333x517x791,500,1000,1001,1500x1100x700,3000"),
    Shapes("tall", "8192x64x256,4096x128x512,16384x48x96"),
    Shapes("wide", "64x8192x256,128x4096x512,100x10000x100"),
    Shapes("deep", "128x128x8192,64x64x16384,200x300x5000,256x256x4096"),
    Shapes("flat", "4096x4096x64,2000x3000x16,1500x1500x32"),
    Shapes("few", "4x1000x1000,8x2048x2048,12x1000x1000,16x4096x1024,24x3072x768"),
    Shapes("few", "1000x4x1000,2048x8x2048,1000x17x1000,3072x24x768"),
    Shapes("power", "128x1024x1024,300x2048x1024,96x2048x512,64x4096x4096,1024x96x2048"),
    Shapes("linear", "128x768x3072,32x4096x1024,512x512x8192", trans="b"),
    Shapes("gradient", "256,512,768x3072x128,1000x64x1000,1024x1024x4096", trans="a"),
    Shapes("batch", "8,37x6x90,60x60x16,96x24x64,16x100x20,32,64", batch=BATCH),
)


def label_of(kind: str, case: Measured) -> str:
    """Kind and sizes, from which ``--only`` chooses.

    >>> label_of("square", parse_sizes("512")[0])
    'square 512'
    """
    return f"{kind} {case.label}"


@dataclass(frozen=True)
class Found:
    """One line of the table of shapes."""

    kind: str
    measured: ContestResult

    @property
    def label(self) -> str:
        """Kind and sizes."""
        return label_of(self.kind, self.measured.case)

    @property
    def is_regular(self) -> bool:
        """Whether it is a square or an edge with no size below `REGULAR_FROM`."""
        return self.kind in REGULAR and min(self.measured.case.size_fields.values()) >= REGULAR_FROM

    @property
    def is_skewed(self) -> bool:
        """Whether it is a single product of another kind."""
        return self.kind not in (*REGULAR, "batch")


def bytes_of(case: Case) -> int:
    """Of A, B and C, each once.

    >>> bytes_of(parse_sizes("2x3x4")[0])
    104
    """
    (m, n, k), types = case.sizes, case.types
    return case.batch * (m * k * types.a.size + k * n * types.b.size + m * n * types.c.size)


def peers_of(found: ContestResult) -> list[str]:
    """Every contestant besides tilewright."""
    return [name for name in found.samples if name != TILEWRIGHT.name]


def contestants_of(names: Iterable[str], column: str) -> list[str]:
    """The contestants of a column, of which the fastest counts.

    >>> contestants_of(("numpy", "numpy Zen", "torch"), "numpy-best")
    ['numpy', 'numpy Zen']
    """
    if column == NUMPY_BEST:
        return [name for name in names if name.split()[0] == "numpy"]
    return [name for name in names if name == column]


def columns_of(contest: Contest, options: argparse.Namespace) -> list[str]:
    """The columns in which there is a contestant; `NUMPY_BEST` where NumPy has several settings."""
    columns = ROWS[options.row].columns
    members = {column: contestants_of(contest.names, column) for column in columns}
    return [column for column in columns if len(members[column]) > (column == NUMPY_BEST)]


def ratio(found: ContestResult, peer: str) -> float:
    """Tilewright's speed over a peer's: medians of shares of the peak, so that both saw the same clock."""
    return found.share_of_peak(TILEWRIGHT.name) / found.share_of_peak(peer)


class Figure(NamedTuple):
    """One value of a shape: by medians, and by the shortest times."""

    label: str
    value: float
    best: float

    @property
    def text(self) -> str:
        """Both values."""
        return f"{self.value:.2f} ({self.best:.2f})"


def share_of_peak(one: Found) -> Figure:
    """Tilewright's share of the peak."""
    ours = TILEWRIGHT.name
    return Figure(one.label, one.measured.share_of_peak(ours), one.measured.best_share_of_peak(ours))


def share(one: Found) -> Figure:
    """Tilewright's share of the roofline."""
    ours = TILEWRIGHT.name
    return Figure(one.label, one.measured.share(ours), one.measured.best_share(ours))


def ratio_to(one: Found, peers: Sequence[str]) -> Iterator[Figure]:
    """Tilewright's speed over that of the fastest of some contestants; nothing for none."""
    found = one.measured
    peer = found.fastest(peers)
    if peer is not None:
        best = found.best_speed(TILEWRIGHT.name) / max(found.best_speed(name) for name in peers)
        yield Figure(one.label, ratio(found, peer), best)


def to_best_peer(found: Iterable[Found]) -> list[Figure]:
    """The ratio of each shape to its best peer."""
    return [figure for one in found for figure in ratio_to(one, peers_of(one.measured))]


def to_column(found: Iterable[Found], column: str) -> list[Figure]:
    """The ratio of each shape to the peer of a column."""
    return [figure for one in found for figure in ratio_to(one, contestants_of(one.measured.samples, column))]


def mean_and_worst(what: str, asked: tuple[float, float], figures: Sequence[Figure]) -> Iterator[Line]:
    """Two lines about a figure of several shapes: its geometric mean and the worst; none for no shapes."""
    if not figures:
        return
    worst = min(figures, key=lambda figure: figure.value)
    shortest = min(figures, key=lambda figure: figure.best)
    below = sum(figure.value < asked[1] for figure in figures)
    mean = geometric_mean([figure.value for figure in figures])
    by_shortest = f"({geometric_mean([figure.best for figure in figures]):.3g})"
    yield Line(f"{what}, geometric mean", asked[0], mean, by_shortest)
    labels = dict.fromkeys((worst.label, shortest.label))
    note = f"({shortest.best:.3g})  {' and '.join(labels)}; {below} of {len(figures)} are below"
    yield Line(f"{what}, worst", asked[1], worst.value, note)


def print_header(first: str, columns: Sequence[str]) -> None:
    """The titles of the columns of `print_found`."""
    titles = "".join(f"{column:>14}" for column in columns)
    print(f"\n{first:<28}{'GFLOPS':>7}{'bound':>7}{TILEWRIGHT.name:>13}{titles}  ratio to best peer")


def print_found(one: Found, columns: Sequence[str]) -> None:
    """One line: speed, what bounds it, shares of the roofline, ratio to the best peer."""
    found = one.measured
    for failure in found.failures:
        print(failure)
    bound = "bytes" if found.is_memory_bound else "flops"
    fastest = (found.fastest(contestants_of(found.samples, column)) for column in columns)
    shares = "".join(f"{'-' if name is None else f'{found.share(name):.2f}':>14}" for name in fastest)
    ratios = "".join(f"  {figure.text}  {found.fastest(peers_of(found))}" for figure in to_best_peer([one]))
    noise = "" if found.is_quiet else "  (disturbed)"
    speed = f"{found.speed(TILEWRIGHT.name):7.1f}"
    print(f"{one.label:<28}{speed}{bound:>7}{share(one).text:>13}{shares}{ratios}{noise}", flush=True)


def print_peaks(found: Sequence[Found]) -> None:
    """The peaks of a run, and how many problems were disturbed by something else on the machine."""
    peaks = [peak for one in found for peak in one.measured.peaks]
    print(f"peak of the multiply unit: median {median(peaks):.1f}, highest {max(peaks):.1f} GFLOPS")
    disturbed = sum(not one.measured.is_quiet for one in found)
    if disturbed:
        print(f"{disturbed} of {len(found)} were disturbed: compare their shortest times, in parentheses")


def print_systems(found: Sequence[Found], columns: Sequence[str]) -> None:
    """Shares of each system, and our ratio to it over all shapes: geometric mean and worst."""
    print(f"\n{'mean / worst':<16}{'regular, share':>16}{'skewed, share':>16}{'ratio, all':>16}")
    groups = [
        [one.measured for one in found if one.is_regular],
        [one.measured for one in found if one.is_skewed],
    ]
    for column in (TILEWRIGHT.name, *columns):
        shares = [
            [one.share(name) for one in group if (name := one.fastest(contestants_of(one.samples, column)))]
            for group in groups
        ]
        ratios = [figure.value for figure in to_column(found, column)]
        print(f"{column:<16}" + "".join(f"{pair(values):>16}" for values in (*shares, ratios)))


def pair(values: Sequence[float]) -> str:
    """Geometric mean and worst.

    >>> pair([0.5, 2.0]), pair([])
    ('1.00 / 0.50', '-')
    """
    return f"{geometric_mean(values):.2f} / {min(values):.2f}" if values else "-"


def contestants_for(case: Measured, options: argparse.Namespace) -> tuple[Contestant, ...]:
    """Tilewright limited to the row, and every peer that is installed; says which peers are not."""
    row: System = find_system(ROWS[options.row].system)
    (limits,) = row.environments(options.threads)
    blas = isinstance(case, Case) and case.types.a in BLAS_TYPES
    numpy = NUMPY_BEST if blas else "numpy"
    peers, absent = find_contestants(case, (numpy, *OTHERS), options.threads)
    print("".join(f"{line}\n" for line in absent), end="")
    # The settings of "numpy-best" are those of NumPy, of which the first is NumPy as shipped.
    peers = tuple(Contestant(peer.system.removesuffix("-best"), peer.environment) for peer in peers)
    if blas and options.row == "avx2":
        peers = tuple(peer for peer in peers if peer.system != "numpy" or peer == HASWELL)
    return (*peers, Contestant(TILEWRIGHT.name, limits))


def chosen(kind: str, cases: Sequence[AnyCase], options: argparse.Namespace) -> list[AnyCase]:
    """The cases that ``--only`` and ``--quick`` leave."""
    return [
        case
        for case in cases
        if re.search(options.only, label_of(kind, case))
        and (not options.quick or case.flops_of(TILEWRIGHT.name) <= QUICK_FLOPS)
    ]


def products(options: argparse.Namespace) -> Iterator[Line]:
    """The table of shapes in float32."""
    cases = [(shapes.kind, case) for shapes in SHAPES for case in chosen(shapes.kind, shapes.cases, options)]
    if not cases:
        return
    found = []
    with Contest(contestants_for(cases[0][1], options), options.threads) as contest:
        columns = columns_of(contest, options)
        print_header("share of the roofline", columns)
        for kind, case in cases:
            memory = MemoryPass(bytes_of(case), options.threads)
            found.append(Found(kind, contest.measure(case, options.repeat, memory)))
            print_found(found[-1], columns)
    print_peaks(found)
    print_systems(found, columns)
    regular = [share_of_peak(one) for one in found if one.is_regular]
    skewed = [share(one) for one in found if one.is_skewed]
    batches = [one for one in found if one.kind == "batch"]
    yield from mean_and_worst(f"squares and edges from {REGULAR_FROM}: share of peak", (0.94, 0.90), regular)
    yield from mean_and_worst("skewed: share of roofline", (0.85, 0.70), skewed)
    yield from mean_and_worst("ratio to best peer", (1.10, 0.97), to_best_peer(found))
    if options.row == "avx2":
        yield from mean_and_worst(
            f"ratio to {HASWELL.name}, the equal peer", (1.10, 0.97), to_column(found, HASWELL.name)
        )
    for column in (column for column in columns if column.startswith(("numpy", "torch"))):
        yield from mean_and_worst(
            f"batches of {BATCH}: ratio to {column}", (1, 1), to_column(batches, column)
        )


def element_types(options: argparse.Namespace) -> Iterator[Line]:
    """Squares of other types."""
    for dtype in options.types.split(","):
        cases = chosen(dtype, parse_sizes(TYPE_SIZES, dtype), options)
        found = compared(dtype, cases, options)
        yield from mean_and_worst(f"{dtype}: ratio to best peer", (1, 1), to_best_peer(found))


def attention(options: argparse.Namespace) -> Iterator[Line]:
    """Attention beside PyTorch and ONNX Runtime."""
    for title, dtype, causal in ATTENTION_VARIANTS:
        cases = chosen(title, parse_shapes(ATTENTION_SHAPES, dtype, causal=causal), options)
        found = compared(title, cases, options)
        for column in OTHERS:
            yield from mean_and_worst(
                f"attention, {title}: ratio to {column}", (1.1, 1.1), to_column(found, column)
            )


def compared(kind: str, cases: Sequence[Measured], options: argparse.Namespace) -> list[Found]:
    """The table of some problems, which are near the peak of the multiply unit."""
    found: list[Found] = []
    if not cases:
        return found
    with Contest(contestants_for(cases[0], options), options.threads) as contest:
        columns = columns_of(contest, options)
        print_header("share of the peak", columns)
        for case in cases:
            if found:
                leave_out_slow(contest, found[-1].measured, case)
            found.append(Found(kind, contest.measure(case, options.repeat)))
            print_found(found[-1], columns)
    print_peaks(found)
    return found


def leave_out_slow(contest: Contest, last: ContestResult, case: Measured) -> None:
    """Measure no peer that was much slower at the last problem and would take long at the next one."""
    for name in set(contest.names) & set(peers_of(last)):
        seconds = case.flops_of(name.split()[0]) / last.speed(name) * 1e-9
        if ratio(last, name) > SLOW_RATIO and seconds > SLOW_SECONDS:
            print(f"{name} is left out: {seconds:.0f} s a call, {ratio(last, name):.0f} times slower before")
            contest.leave_out(name)


def machine_lines(options: argparse.Namespace) -> Iterator[str]:
    """The CPU, its caches, the row, and the versions of everything that is measured."""
    machine = describe_machine(detect_host())
    sizes = {name: machine[name]["size"] for name in ("l1", "l2", "l3") if machine[name] is not None}
    caches = ", ".join(f"{name} {size >> 10} KiB" for name, size in sizes.items())
    row = "" if options.row == "host" else f"; kernels of the row {options.row}"
    yield f"{machine_title(machine)}, {machine['cores']} cores, {caches}{row}; threads: {options.threads}"
    yield ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    yield f"{options.repeat} rounds: medians, and in parentheses the shortest times"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, help=f"rounds; default {REPEAT}, with --quick {QUICK_REPEAT}")
    parser.add_argument("--row", choices=ROWS, default="host")
    parser.add_argument("--only", metavar="REGEX", default="", help="such as 'tall|batch' or '8192x64x256'")
    parser.add_argument("--types", default="", help="comma list, such as bf16,u8i8,f16,i32,f64,c64")
    parser.add_argument("--attention", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few rounds of the problems that are not large")
    options = parser.parse_args()
    options.repeat = options.repeat or (QUICK_REPEAT if options.quick else REPEAT)
    print("\n".join(machine_lines(options)))
    measure = element_types if options.types else attention if options.attention else products
    lines = list(measure(options))
    print(f"\n{HEADER}", *lines, sep="\n")
    print(f"\n{sum(not line.reached for line in lines)} of {len(lines)} figures are not reached")


if __name__ == "__main__":
    main()
