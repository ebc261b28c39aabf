"""Charts of the page as SVG: lines over sizes, and the roofline. Each is drawn for two widths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

from tilewright.records import dataclass

#: Marks of series, which differ without colour: a path around (0, 0), and whether it is filled.
MARKS = (
    ("M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z", True),
    ("M-4 -4H4V4H-4Z", False),
    ("M0 -5L5 4H-5Z", False),
    ("M0 -5L5 0L0 5L-5 0Z", False),
    ("M-4 -4L4 4M-4 4L4 -4", False),
    ("M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z", False),
    ("M0 5L5 -4H-5Z", False),
    ("M-5 0H5M0 -5V5", False),
)
#: Dashes of lines, in the same order.
DASHES = ("none", "6 3", "2 3", "8 3 2 3", "1 3", "12 4", "4 2", "3 5")
#: Pixels between labels of lines.
LABEL_HEIGHT = 15.0


@dataclass(frozen=True)
class Series:
    """One system: its name, and points."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class PlotArea:
    """Where a chart draws: sizes in pixels, margins, and ranges of both axes.

    Attributes
    ----------
    x_range, y_range : the values at the ends of the axes; of logarithmic axes above 0.
    log_y : whether the second axis is logarithmic; the first always is.
    """

    width: int
    height: int
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    right: int
    log_y: bool = False
    left: int = 46
    top: int = 28
    bottom: int = 44

    def x(self, value: float) -> float:
        """Pixels from the left."""
        low, high = map(math.log, self.x_range)
        return self.left + (math.log(value) - low) / (high - low) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        scale: Callable[[float], float] = math.log if self.log_y else float
        low, high = map(scale, self.y_range)
        inner = self.height - self.top - self.bottom
        return self.top + inner - (scale(value) - low) / (high - low) * inner


def both_widths(draw: Callable[[int], str]) -> str:
    """A chart for wide and for narrow windows; the style sheet shows one of them."""
    return f'<div class="wide">{draw(940)}</div><div class="narrow">{draw(350)}</div>'


def line_chart(
    series: Sequence[Series], width: int, x_title: str, y_title: str, ticks: Sequence[float]
) -> str:
    """Shares of the peak over sizes: a line for each system, whose name is at its end."""
    narrow = width < 600
    right = 152 if narrow else 166
    top = max((y for one in series for _, y in one.points), default=1.0)
    area = PlotArea(
        width, 300 if narrow else 380, (min(ticks), max(ticks)), (0.0, max(1.0, 1.05 * top)), right
    )
    parts = [*_grid(area, ticks, [part / 4 for part in range(5)], x_title, lambda value: f"{value:.0%}")]
    parts.append(f'<text class="axis" x="4" y="14">{escape(y_title)}</text>')
    ends = []
    for number, one in enumerate(series):
        path = " L".join(f"{area.x(x):.1f} {area.y(y):.1f}" for x, y in one.points)
        ours = " ours" if number == 0 else ""
        dash = DASHES[number % len(DASHES)]
        parts.append(f'<path class="line{ours}" stroke-dasharray="{dash}" d="M{path}"/>')
        parts += [
            _mark(area, number, x, y, f"{one.name}, {x:g}: {y:.0%}", ours=number == 0) for x, y in one.points
        ]
        ends.append((area.y(one.points[-1][1]), area.x(one.points[-1][0]), number, one.name))
    parts += _labels(area, sorted(ends))
    return _svg(area, parts, f"{y_title} over {x_title}")


def _labels(area: PlotArea, ends: Sequence[tuple[float, float, int, str]]) -> Iterator[str]:
    """Names beside the ends of lines, moved apart where they would overlap."""
    last = area.height - area.bottom - LABEL_HEIGHT * (len(ends) - 1)
    at = -math.inf
    for index, (wanted, x, number, name) in enumerate(ends):
        at = max(at + LABEL_HEIGHT, min(wanted, last + LABEL_HEIGHT * index), area.top + 4)
        edge = area.width - area.right
        ours = " ours" if number == 0 else ""
        yield f'<path class="leader" d="M{x + 6:.1f} {wanted:.1f}L{edge + 8} {at:.1f}"/>'
        yield f'<g transform="translate({edge + 16} {at:.1f})">{_shape(number, ours=number == 0)}</g>'
        yield f'<text class="label{ours}" x="{edge + 24}" y="{at + 4:.1f}">{escape(name)}</text>'


@dataclass(frozen=True)
class Dot:
    """One row on the roofline: operations per byte, GFLOPS, what it is, whose it is."""

    intensity: float
    gflops: float
    note: str
    is_ours: bool


def roofline_chart(
    dots: Sequence[Dot], peak: float, bandwidths: Sequence[tuple[str, float]], width: int
) -> str:
    """Speed over operations per byte, below the peak and below each bandwidth in GB/s."""
    narrow = width < 600
    xs = [dot.intensity for dot in dots]
    ys = [dot.gflops for dot in dots]
    x_range = (min(xs) / 1.5, max(xs) * 1.5)
    y_range = (min(ys) / 1.5, max(*ys, peak) * 1.4)
    area = PlotArea(width, 320 if narrow else 420, x_range, y_range, 14, log_y=True)
    x_ticks = [10.0**power for power in range(-2, 5) if x_range[0] <= 10.0**power <= x_range[1]]
    y_ticks = [10.0**power for power in range(-2, 6) if y_range[0] <= 10.0**power <= y_range[1]]
    parts = [*_grid(area, x_ticks, y_ticks, "operations per byte", lambda value: f"{value:g}")]
    parts.append('<text class="axis" x="4" y="14">GFLOPS</text>')
    for name, bandwidth in bandwidths:
        low = max(x_range[0], y_range[0] / bandwidth)
        ridge = min(peak / bandwidth, x_range[1])
        start, end = (area.x(low), area.y(low * bandwidth)), (area.x(ridge), area.y(ridge * bandwidth))
        parts.append(f'<path class="roof" d="M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"/>')
        slope = math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 - 5)
        text = f"{name}: {bandwidth:.0f} GB/s"
        parts.append(
            f'<text class="label" text-anchor="middle" transform="translate({middle[0]:.1f} {middle[1]:.1f}) '
            f'rotate({slope:.1f})">{escape(text)}</text>'
        )
    ridge = area.x(max(peak / max(bandwidth for _, bandwidth in bandwidths), x_range[0]))
    edge = area.width - area.right
    parts.append(f'<path class="roof" d="M{ridge:.1f} {area.y(peak):.1f}H{edge}"/>')
    text = f"peak: {peak:.0f} GFLOPS"
    parts.append(f'<text class="label" text-anchor="end" x="{edge}" y="{area.y(peak) - 6:.1f}">{text}</text>')
    for dot in sorted(dots, key=lambda one: one.is_ours):
        number = 0 if dot.is_ours else 3
        parts.append(_mark(area, number, dot.intensity, dot.gflops, dot.note, ours=dot.is_ours))
    return _svg(area, parts, "speed over operations per byte, with the rooflines")


def _grid(
    area: PlotArea,
    x_ticks: Sequence[float],
    y_ticks: Sequence[float],
    x_title: str,
    text: Callable[[float], str],
) -> Iterator[str]:
    """Lines, numbers and the title of the first axis; numbers that would overlap are left out."""
    bottom, edge = area.height - area.bottom, area.width - area.right
    free = -math.inf
    for x in x_ticks:
        at = area.x(x)
        yield f'<path class="grid" d="M{at:.1f} {area.top}V{bottom}"/>'
        if at - free > 34:
            yield f'<text class="tick" text-anchor="middle" x="{at:.1f}" y="{bottom + 16}">{x:g}</text>'
            free = at
    for y in y_ticks:
        at = area.y(y)
        yield f'<path class="grid" d="M{area.left} {at:.1f}H{edge}"/>'
        yield f'<text class="tick" text-anchor="end" x="{area.left - 6}" y="{at + 4:.1f}">{text(y)}</text>'
    middle = (area.left + edge) / 2
    place = f'x="{middle:.1f}" y="{area.height - 8}"'
    yield f'<text class="axis" text-anchor="middle" {place}>{escape(x_title)}</text>'


def _mark(area: PlotArea, number: int, x: float, y: float, note: str, *, ours: bool) -> str:
    place = f"translate({area.x(x):.1f} {area.y(y):.1f})"
    return f'<g transform="{place}"><title>{escape(note)}</title>{_shape(number, ours=ours)}</g>'


def _shape(number: int, *, ours: bool) -> str:
    path, filled = MARKS[number % len(MARKS)]
    return f'<path class="mark{" ours" if ours else ""}{" filled" if filled else ""}" d="{path}"/>'


def _svg(area: PlotArea, parts: Sequence[str], title: str) -> str:
    size = f'viewBox="0 0 {area.width} {area.height}" width="{area.width}" height="{area.height}"'
    return f'<svg {size} role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
