"""Tables of the page: every system on every row, with intervals, shares and what was called."""

from __future__ import annotations

from html import escape

from tilewright.tools.bench.peers import title_of
from tilewright.tools.bench.results import OURS, Results, RowResult

_HEADS = ("row", "system", "time", "95 % interval", "speed", "of roofline", "ratio", "n")


def details_section(results: Results) -> str:
    """A table for each family, folded away."""
    parts = [
        "<p>Time of one call, and the ratio of each peer's time to Tilewright's. n is the number of measurements.</p>"
    ]
    for family in results.families:
        rows = [row for row in results.rows if row.family == family]
        heads = "".join(f"<th>{head}</th>" for head in _HEADS) + '<th class="left">call</th>'
        body = "".join(map(_lines, rows))
        parts.append(
            f"<details><summary>{escape(family)} ({len(rows)})</summary>"
            f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div></details>'
        )
    return "".join(parts)


def _lines(row: RowResult) -> str:
    """The systems of one row, Tilewright first."""
    found = []
    for name in (OURS, *row.peers):
        if name not in row.names:
            continue
        one, (low, high) = row.of(name), row.interval(name)
        threads = f", {row.threads} threads" if row.threads > 1 else ""
        setting = " ".join(f"{key}={value}" for key, value in one.environment.items() if "OPENBLAS" in key)
        share = row.share(name)
        cells = (
            f"{escape(row.label)}{threads}" if name == OURS else "",
            escape(title_of(name)),
            time_text(row.seconds(name)),
            f"{time_text(low)} .. {time_text(high)}",
            _speed(row, name),
            "" if share is None else f"{share:.0%}",
            "" if name == OURS else f"{row.ratio(name):.2f}",
            str(len(one.seconds)),
        )
        kind = "first ours" if name == OURS else ""
        inner = "".join(f"<td>{cell}</td>" for cell in cells)
        call = escape(" ".join(filter(None, (one.call, setting))))
        found.append(f'<tr class="{kind}">{inner}<td class="call">{call}</td></tr>')
    return "".join(found)


def _speed(row: RowResult, system: str) -> str:
    match row.counts:
        case "flops":
            return f"{row.gflops(system):.3g} GFLOPS"
        case "bytes":
            return f"{row.gflops(system):.3g} GB/s"
        case _:
            return ""


def time_text(seconds: float) -> str:
    """A time in a fitting unit.

    >>> time_text(2.5e-7), time_text(0.0123), time_text(2.0)
    ('250 ns', '12.3 ms', '2 s')
    """
    for factor, unit in ((1e9, "ns"), (1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"
