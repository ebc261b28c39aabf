"""Pictures of the site, drawn from the package while the site is built.

Every figure takes its sizes from a kernel, its order of elements from a packed matrix, and its cycles from
the cost model: it changes when they change.
"""

from __future__ import annotations

import re
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

import tilewright as tw
from tilewright.macro.blocking import register_candidates
from tilewright.macro.blocking import register_tiles as good_tiles

#: Okabe and Ito's colours, which differ without colour vision too; hatches tell them apart in print.
BLUE, ORANGE, GREEN, PINK, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#9CCBEA", "#D9DEE3"
_PARTS = {
    "multiply": BLUE,
    "packing": ORANGE,
    "tiles": GREEN,
    "l1": SKY,
    "l2": PINK,
    "l3": "#E69F00",
    "memory": "#555555",
}

plt.rcParams.update(
    {"font.size": 11, "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False}
)


def _box(axes: Axes, place: tuple[float, float], size: tuple[float, float], **style: Any) -> None:
    """A rectangle by its upper left corner (column, row)."""
    axes.add_patch(Rectangle(place, size[0], size[1], **style))


def _matrix(axes: Axes, name: str, rows: int, columns: int, labels: tuple[str, str]) -> None:
    """The outline of a matrix with its name and sizes."""
    _box(axes, (0, 0), (columns, rows), facecolor="#f4f6f8", edgecolor="#333333", linewidth=1)
    axes.set_xlim(-0.02 * columns, 1.02 * columns)
    axes.set_ylim(1.02 * rows, -0.02 * rows)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title(f"{name}: {rows} × {columns}\n({labels[0]} × {labels[1]})", fontsize=11)


def cut(m: int = 1000, n: int = 2000, k: int = 1500, target: str = "znver4") -> Figure:
    """C = A·B with one block of each operand, to scale, as the kernel for a machine cuts it."""
    kernel = tw.compile(tw.Gemm(m, n, k), target=target)
    b = kernel.blocking
    kc, mc, nc = min(b.kc, k), min(b.mc, m), min(b.nc, n)
    widths = [n, k, n]
    figure, (c, a, other) = plt.subplots(1, 3, figsize=(8.6, 3.7), width_ratios=widths, layout="constrained")
    for axes in (c, a, other):
        axes.set_anchor("N")
    _matrix(c, "C", m, n, ("m", "n"))
    _matrix(a, "A", m, k, ("m", "k"))
    _matrix(other, "B", k, n, ("k", "n"))
    row = (m // mc // 2) * mc
    height = min(mc, m - row)
    _box(c, (0, row), (nc, height), facecolor=SKY, edgecolor=BLUE)
    _box(a, (0, row), (kc, height), facecolor="#F6C9AE", edgecolor=ORANGE)
    _box(other, (0, 0), (nc, kc), facecolor="#A9DCCB", edgecolor=GREEN)
    panel = (nc // b.nr // 2) * b.nr
    _box(other, (panel, 0), (b.nr, kc), facecolor=GREEN, edgecolor="none")
    _box(c, (panel, row), (b.nr, height), facecolor=BLUE, edgecolor="none")
    c.legend(
        handles=[
            Patch(facecolor="#F6C9AE", edgecolor=ORANGE, label=f"block of A, mc × kc = {mc} × {kc}, in L2"),
            Patch(facecolor="#A9DCCB", edgecolor=GREEN, label=f"panel of B, kc × nc = {kc} × {nc}, in L3"),
            Patch(facecolor=GREEN, label=f"micro-panel of B, kc × nr = {kc} × {b.nr}, from L2 to L1"),
            Patch(facecolor=BLUE, label=f"tiles of C, mr × nr = {b.mr} × {b.nr}, in registers"),
        ],
        loc="upper left", bbox_to_anchor=(-0.02, -0.02), frameon=False, fontsize=9.5,
    )  # fmt: skip
    return figure


def caches(targets: tuple[str, ...] = ("znver4", "neoverse-v2", "pwr10")) -> Figure:
    """How much of L2 and L3 the blocks take, by machine."""
    figure, rows = plt.subplots(len(targets), 1, figsize=(8, 0.95 * len(targets) + 0.9), layout="constrained")
    for axes, target in zip(np.atleast_1d(rows), targets, strict=True):
        kernel = tw.compile(tw.Gemm(), target=target)
        b, machine, element = kernel.blocking, kernel.machine, 4
        levels = [
            ("L3", machine.l3, (("panel of B", "#A9DCCB", b.nc * b.kc * element),)),
            (
                "L2",
                machine.l2,
                (
                    ("block of A", "#F6C9AE", b.mc * b.kc * element),
                    ("micro-panel of B", GREEN, b.nr * b.kc * element),
                ),
            ),
        ]
        for place, (_, cache, blocks) in enumerate(levels):
            axes.barh(place, 100, color=GREY, height=0.75)
            if cache is None or not cache.size:
                axes.text(99, place, "no such cache", va="center", ha="right", fontsize=9)
                continue
            left = 0.0
            for _, colour, size in blocks:
                axes.barh(place, 100 * size / cache.size, left=left, color=colour, height=0.75)
                left += 100 * size / cache.size
            words = ", ".join(f"{name} {size / 1024:,.0f}" for name, _, size in blocks)
            axes.text(
                99, place, f"{words} of {cache.size / 1024:,.0f} KiB", va="center", ha="right", fontsize=9
            )
        axes.set_yticks(range(2), [level for level, _, _ in levels])
        axes.set_xlim(0, 100)
        axes.set_xticks([])
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.tick_params(length=0)
        title = f"{target} ({machine.isa.name}): mr={b.mr} nr={b.nr} mc={b.mc} kc={b.kc} nc={b.nc}"
        axes.set_title(title, loc="left", fontsize=10.5)
    return figure


def register_tiles(target: str = "znver4") -> Figure:
    """Multiply-adds for each loaded element, for every tile that fits the registers of a machine."""
    kernel = tw.compile(tw.Gemm(), target=target)
    isa, chosen = kernel.machine.isa, kernel.blocking
    instruction = isa.tile(tw.Gemm().dtype)
    figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
    feeds = {(one.mr, one.nr) for one in good_tiles(isa, instruction)}
    found = register_candidates(isa, instruction)
    others = [one for one in found if (one.mr, one.nr) not in feeds]
    good = [one for one in found if (one.mr, one.nr) in feeds]
    words = "loads or latency would limit it"
    axes.scatter(
        [one.nr for one in others], [one.mr for one in others], c="#B8BFC6", marker="x", s=34, label=words
    )
    shown = axes.scatter(
        [one.nr for one in good], [one.mr for one in good], c=[one.cmr for one in good], s=34,
        cmap="cividis_r", label="keeps the multiply unit busy",
    )  # fmt: skip
    figure.colorbar(shown, label="2·mr·nr / (mr + nr)")
    axes.axhline(kernel.machine.l1.ways, color="#555555", linewidth=0.8, linestyle=":")
    axes.text(
        axes.get_xlim()[1],
        kernel.machine.l1.ways + 0.3,
        "ways of L1",
        ha="right",
        fontsize=9,
        color="#555555",
    )
    axes.scatter(chosen.nr, chosen.mr, s=200, facecolors="none", edgecolors=ORANGE, linewidths=2.5)
    words = f"chosen: {chosen.mr} × {chosen.nr}"
    axes.annotate(
        words, (chosen.nr, chosen.mr), (12, 8), textcoords="offset points", color=ORANGE, weight="bold"
    )
    axes.set_xlabel("nr, columns of the register tile")
    axes.set_ylabel("mr, rows")
    axes.legend(frameon=False, fontsize=9.5, loc="upper right")
    title = f"{target}: every tile that fits {isa.vector_registers} registers of {isa.vector_bits} bits"
    axes.set_title(title, loc="left", fontsize=10.5)
    return figure


def panel_order(depths: int = 4) -> Figure:
    """The order in memory of a packed B, element by element, read from a real packed matrix."""
    packed = tw.pack(np.arange(1.0, dtype=np.float32).reshape(1, 1))
    width = packed.tiles[0]
    columns = 2 * width
    # Element (row, column) of B has the number row * columns + column; where does packing put it?
    numbers = np.arange(depths * columns, dtype=np.float32).reshape(depths, columns)
    memory = np.asarray(tw.pack(numbers).data4d).reshape(-1)
    place = {int(number): at for at, number in enumerate(memory)}
    figure, axes = plt.subplots(figsize=(9, 0.36 * depths + 1.1), layout="constrained")
    for row in range(depths):
        for column in range(columns):
            at = place[row * columns + column]
            shade = SKY if column < width else "#F6C9AE"
            _box(axes, (column, row), (1, 1), facecolor=shade, edgecolor="white")
            axes.text(
                column + 0.5,
                row + 0.5,
                str(at),
                ha="center",
                va="center",
                fontsize=7.5 if columns > 24 else 9,
            )
    axes.set_xlim(0, columns)
    axes.set_ylim(depths, 0)
    axes.set_xticks([0, width, columns])
    axes.set_yticks([0.5, depths - 0.5], ["depth 0", f"depth {depths - 1}"])
    axes.set_title(
        f"B, {depths} × {columns}: place of each element in packed memory, micro-panels of {width} columns",
        fontsize=10.5,
    )
    return figure


def paths(m: int, n: int, k: int) -> Figure:
    """Predicted cycles of every strategy that a product may take, by what they are spent on."""
    a, b = np.zeros((m, k), np.float32), np.zeros((k, n), np.float32)
    tw.matmul(a, b)
    found = [one for one in tw.explain(tw.matmul, a, b).considered if one.cycles is not None]
    figure, axes = plt.subplots(figsize=(9, 0.62 * len(found) + 1.2), layout="constrained")
    seen: set[str] = set()
    for row, way in enumerate(reversed(found)):
        left = 0.0
        for part, percent in re.findall(r"(\w+) (\d+)%", way.reason.rpartition("(")[2]):
            width = (way.cycles or 0.0) * float(percent) / 100
            label = None if part in seen else part
            seen.add(part)
            axes.barh(row, width, left=left, color=_PARTS.get(part, GREY), label=label, height=0.55)
            left += width
        words = way.strategy + (" (taken)" if way.taken else "")
        axes.text(0, row + 0.42, words, fontsize=9.5, va="bottom", weight="bold" if way.taken else "normal")
    axes.set_yticks([])
    axes.set_ylim(-0.5, len(found) - 0.3)
    axes.set_xlabel("predicted cycles, in millions")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g}")
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.set_title(f"{m} × {k} times {k} × {n}, float32, on {tw.machine().cpu}", loc="left", fontsize=10.5)
    return figure


def error_growth() -> Figure:
    """RMS error of float32 dot products against their length: one chain of sums, NumPy, and these kernels."""
    random = np.random.default_rng(0)
    depths = [2**power for power in range(4, 16)]
    lines: dict[str, list[float]] = {"one chain of sums": [], "numpy.matmul": [], "tw.matmul": []}
    for depth in depths:
        a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((48, depth), (depth, 48)))
        exact = a.astype(float) @ b.astype(float)
        chain = np.zeros((48, 48), np.float32)
        for at in range(depth):
            chain += np.outer(a[:, at], b[at])
        results = {"one chain of sums": chain, "numpy.matmul": a @ b, "tw.matmul": tw.matmul(a, b)}
        for name, result in results.items():
            lines[name].append(float(np.sqrt(np.mean((result - exact) ** 2))))
    figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
    styles = (("#777777", "o:"), (ORANGE, "s--"), (BLUE, "^-"))
    for (name, errors), (colour, style) in zip(lines.items(), styles, strict=True):
        axes.loglog(depths, errors, style, color=colour, label=name)
    axes.set_xlabel("k, the length of each sum")
    axes.set_ylabel("RMS error")
    axes.legend(frameon=False)
    return figure


def online_softmax(scores: np.ndarray, block: int) -> Figure:
    """The running maximum and the running sum of one row of scores, block by block."""
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(8, 4.6), sharex=True, layout="constrained", height_ratios=(2, 1.4)
    )
    ends = range(block, len(scores) + 1, block)
    maxima = [scores[:end].max() for end in ends]
    sums = [np.exp(scores[:end] - scores[:end].max()).sum() for end in ends]
    top.plot(scores, ".", color="#8899a6", label="scores")
    top.step([0, *ends], [maxima[0], *maxima], where="pre", color=ORANGE, label="running maximum")
    bottom.bar([end - block / 2 for end in ends], sums, width=0.8 * block, color=BLUE)
    for end, total, before, now in zip(ends, sums, [maxima[0], *maxima], maxima, strict=False):
        factor = f"×{np.exp(before - now):.2f}" if now > before else ""
        bottom.annotate(
            factor,
            (end - block / 2, total),
            (0, 3),
            textcoords="offset points",
            ha="center",
            color=ORANGE,
            fontsize=9,
        )
    bottom.margins(y=0.2)
    bottom.set_ylabel("running sum")
    bottom.set_xlabel(f"keys, in blocks of {block}")
    top.set_ylabel("score")
    top.legend(frameon=False, ncols=2, fontsize=9.5)
    return figure
