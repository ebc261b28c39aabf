"""The pictures of the page, from results: bars of ratios, scaling with size and threads, rooflines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from tilewright.tools.bench.charts import Dot, Series, both_widths, line_chart, roofline_chart
from tilewright.tools.bench.peers import title_of
from tilewright.tools.bench.results import OURS, Results, RowResult
from tilewright.tools.bench.verdicts import Verdict, verdict_of
from tilewright.tools.explore.statistics import geometric_mean, median

_SIGNS = {Verdict.FASTER: "▲", Verdict.EVEN: "●", Verdict.SLOWER: "▼", Verdict.ALONE: ""}


def _place(ratio: float, ends: tuple[float, float]) -> float:
    """Percent along a logarithmic axis."""
    low, high = map(math.log, ends)
    return min(100.0, max(0.0, 100 * (math.log(ratio) - low) / (high - low)))


def _ends(ratios: Sequence[float]) -> tuple[float, float]:
    """An axis that holds 1 and most ratios; those beyond are drawn at its end."""
    ordered = sorted(ratios)
    high = ordered[math.ceil(0.9 * len(ordered)) - 1]
    return min(0.5, 0.9 * ordered[0]), max(2.0, 1.1 * high)


def _scale(ends: tuple[float, float]) -> str:
    """Numbers above the bars."""
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if ends[0] <= tick <= ends[1]]
    marks = "".join(f'<span style="left:{_place(tick, ends):.2f}%">{tick:g}</span>' for tick in ticks)
    return f'<div class="scale">{marks}</div>'


def _bar(
    name: str, value: str, verdict: Verdict, spread: tuple[float, float, float], ends: tuple[float, float]
) -> str:
    """One line: a name, an interval around a point, numbers."""
    low, middle, high = (_place(one, ends) for one in spread)
    return (
        f'<div class="bar {verdict.name.lower()}"><div class="name">{name}</div>'
        f'<div class="track" style="--one:{_place(1, ends):.2f}%"><i style="left:{low:.2f}%;width:{high - low:.2f}%"></i>'
        f'<b style="left:{middle:.2f}%"></b></div><div class="value">{value}</div></div>'
    )


def family_bars(results: Results) -> str:
    """A line for each family: geometric mean of the ratio to the fastest peer of each row, and the range."""
    groups = {
        family: [row for row in results.rows if row.family == family and row.peers]
        for family in results.families
    }
    found = {family: [row.ratio(row.peers[0]) for row in rows] for family, rows in groups.items() if rows}
    if not found:
        return ""
    ends = _ends([ratio for ratios in found.values() for ratio in ratios])
    lines = []
    for family, ratios in found.items():
        verdicts = [verdict_of(row) for row in groups[family]]
        mean = geometric_mean(ratios)
        counts = " ".join(f"{_SIGNS[one]}{verdicts.count(one)}" for one in _SIGNS if one is not Verdict.ALONE)
        whole = Verdict.FASTER if min(ratios) > 1 else Verdict.SLOWER if mean < 1 else Verdict.EVEN
        value = f"{mean:.2f} <i>{counts}</i>"
        lines.append(_bar(escape(family), value, whole, (min(ratios), mean, max(ratios)), ends))
    head = f'<div class="bar head"><div class="name">family</div>{_scale(ends)}<div class="value">mean, rows</div></div>'
    return (
        "<p>Speed of Tilewright over the fastest peer of each row: the geometric mean (mark) and the range over the "
        "rows (bar), on a logarithmic axis. ▲ rows faster, ● even, ▼ slower.</p>"
        f'<div class="bars">{head}{"".join(lines)}</div>'
    )


def ratio_bars(results: Results) -> str:
    """A line for each row, losses first."""
    rows = sorted((row for row in results.rows if row.peers), key=lambda row: row.ratio(row.peers[0]))
    if not rows:
        return ""
    ends = _ends([row.ratio(row.peers[0]) for row in rows])
    lines = []
    for row in rows:
        peer = row.peers[0]
        ratio, (low, high) = row.ratio(peer), row.ratio_interval(peer)
        threads = f", {row.threads} threads" if row.threads > 1 else ""
        name = f'{escape(row.label)}{threads} <span class="note">{escape(row.family)}, beside {escape(title_of(peer))}</span>'
        verdict = verdict_of(row)
        value = f"{_SIGNS[verdict]} {ratio:.2f} <i>{low:.2f}..{high:.2f}</i>"
        lines.append(_bar(name, value, verdict, (low, ratio, high), ends))
    head = f'<div class="bar head"><div class="name">row</div>{_scale(ends)}<div class="value">ratio, interval</div></div>'
    return (
        "<p>Every row beside its fastest peer, from the largest loss to the largest win. Left of the line at 1 the peer "
        "is faster. Bars are 95 % confidence intervals of the ratio; marks beyond the axis are drawn at its end.</p>"
        f'<div class="bars">{head}{"".join(lines)}</div>'
    )


def size_section(results: Results) -> str:
    """Share of the peak of square products by size, a line for each system."""
    squares = [
        row
        for row in results.rows
        if row.family == "products" and row.threads == 1 and len(set(row.sizes.values())) == 1
    ]
    squares.sort(key=lambda row: row.sizes["n"])
    if len({row.sizes["n"] for row in squares}) < 2:
        return ""
    systems = [name for name in (OURS, *results.systems[:-1]) if any(name in row.names for row in squares)]
    series = [
        Series(
            title_of(name),
            tuple(
                (row.sizes["n"], median([row.work / s * 1e-9 / p for s, p in _samples(row, name)]))
                for row in squares
                if name in row.names
            ),
        )
        for name in systems
    ]
    ticks = [row.sizes["n"] for row in squares]
    chart = both_widths(lambda width: line_chart(series, width, "n, for n x n x n", "share of peak", ticks))
    return (
        f"<p>Square {escape(squares[0].dtype)} products, one thread: share of the peak that was measured right before each "
        f"measurement.</p><figure>{chart}</figure>"
    )


def _samples(row: RowResult, system: str) -> list[tuple[float, float]]:
    one = row.of(system)
    return list(zip(one.seconds, one.peaks, strict=True))


def threads_section(results: Results) -> str:
    """Speed-up over one thread of each system, for rows of several threads that have one of one thread."""
    alone = {(row.problem, row.dtype): row for row in results.rows if row.threads == 1}
    parts = []
    for row in results.rows:
        one = alone.get((row.problem, row.dtype))
        if row.threads == 1 or one is None:
            continue
        names = [name for name in (OURS, *row.peers) if name in one.names and name in row.names]
        lines = []
        for name in sorted(names, key=lambda name: row.seconds(name) / one.seconds(name)):
            speed = one.seconds(name) / row.seconds(name)
            width = min(100.0, 100 * speed / row.threads)
            ours = " ours" if name == OURS else ""
            value = f"{speed:.2f} × <i>{row.seconds(name) * 1e3:.3g} ms</i>"
            lines.append(
                f'<div class="bar"><div class="name">{escape(title_of(name))}</div>'
                f'<div class="fill{ours}"><i style="width:{width:.1f}%"></i></div>'
                f'<div class="value">{value}</div></div>'
            )
        parts.append(
            f'<h3>{escape(row.label)}, {row.threads} threads</h3><div class="bars">{"".join(lines)}</div>'
        )
    if not parts:
        return ""
    intro = "<p>Speed-up over one thread of the same system; a full bar is as many times as there are threads.</p>"
    return intro + "".join(parts)


def roofline_section(results: Results) -> str:
    """float32 rows of one thread below the peak and below the bandwidths that were measured beside them."""
    rows = [
        row
        for row in results.rows
        if row.counts == "flops"
        and row.moved
        and row.threads == 1
        and row.dtype == "f32"
        and row.memory_seconds
    ]
    if len(rows) < 2:
        return ""
    dots = []
    for row in rows:
        for name in (OURS, *row.peers[:1]):
            speed = row.gflops(name)
            of_bound = row.share(name) or 0.0
            note = f"{row.family}, {row.label}: {title_of(name)} {speed:.3g} GFLOPS, {of_bound:.0%} of its roofline"
            dots.append(Dot(row.work / row.moved, speed, note, name == OURS))
    largest = max(rows, key=lambda row: row.moved)
    bandwidths = [(f"{_bytes(largest.moved)}", _bandwidth(largest))]
    middle = min(rows, key=lambda row: abs(math.log(row.moved / 2**18)))
    if _bandwidth(middle) > 1.3 * bandwidths[0][1]:
        bandwidths.append((_bytes(middle.moved), _bandwidth(middle)))
    peak = median([row.peak for row in rows])
    chart = both_widths(lambda width: roofline_chart(dots, peak, bandwidths, width))
    shares = [share for row in rows if (share := row.share(OURS)) is not None]
    return (
        "<p>float32 rows of one thread. Filled circles are Tilewright, hollow diamonds the fastest peer of each row. The "
        "sloped lines are passes over memory of two sizes, the level one the median peak; each row has a roofline of its "
        f"own, since smaller operands stay in faster caches. Tilewright runs at {geometric_mean(shares):.0%} of "
        f"these rooflines in the geometric mean.</p><figure>{chart}</figure>"
    )


def _bandwidth(row: RowResult) -> float:
    """GB/s of a pass over the bytes of a row."""
    return row.moved / median(row.memory_seconds) * 1e-9


def _bytes(count: int) -> str:
    """Bytes for people.

    >>> _bytes(1 << 20), _bytes(300 << 10)
    ('1 MiB', '300 KiB')
    """
    return f"{count / 2**20:.0f} MiB" if count >= 1 << 20 else f"{count / 2**10:.0f} KiB"
