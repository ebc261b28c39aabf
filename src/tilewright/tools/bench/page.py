"""The page of a run: one HTML file without scripts and without anything from the network."""

from __future__ import annotations

from html import escape
from pathlib import Path

from tilewright.tools.bench.details import details_section
from tilewright.tools.bench.peers import title_of
from tilewright.tools.bench.pictures import (
    family_bars,
    ratio_bars,
    roofline_section,
    size_section,
    threads_section,
)
from tilewright.tools.bench.results import OURS, Results
from tilewright.tools.bench.verdicts import Verdict, verdict_of
from tilewright.tools.explore.facts import machine_title
from tilewright.tools.explore.statistics import geometric_mean

_STYLE = Path(__file__).with_name("page.css")

_METHOD = """<p>Each system runs in a process of its own. Every result is compared with float64, or exact integers,
before anything is timed. Then come rounds: in each, every system is measured once, in a new random order. One
measurement repeats the call until it lasts 5 ms, after calls that are not timed. Right before it the peak of the
multiply unit for the element types is measured, and once in a round a pass over as many bytes as the operands and
the result have. So all see the same clock rate and the same neighbours on the machine.</p>
<p>Times are medians with their 95 % confidence interval (between two order statistics; fewer than six measurements
have only a range). A ratio is the peer's time by Tilewright's: above 1, Tilewright is faster. Its interval comes
from a bootstrap. A row is <em>faster</em> or <em>slower</em> if the interval of its ratio to the fastest peer excludes 1,
else <em>even</em>. The fastest peer is chosen for each row after the measurement, which favours the peers.</p>
<p>The roofline of a row is the longer of two times: its operations at the peak, or the pass over its bytes. Calls of
tiny operands have none.</p>
<p>Peers are at their best: NumPy as shipped, and with the fastest <code>OPENBLAS_CORETYPE</code> that the CPU runs;
JAX under <code>jit</code> on arrays of its own; ONNX Runtime with weights in the model; PyTorch eager and, where a C++
compiler is installed, by Inductor. In the quick form, Inductor and IREE, which compile for seconds, are on some rows
only.</p>"""


def render_page(results: Results) -> str:
    """The page as HTML."""
    machine = results.machine
    title = f"Tilewright benchmark: {machine_title(machine)}"
    style = _STYLE.read_text(encoding="utf-8")
    sections = [
        ("summary", "By family", family_bars(results)),
        ("ratios", "Wins and losses", ratio_bars(results)),
        ("sizes", "Scaling with size", size_section(results)),
        ("threads", "Scaling with threads", threads_section(results)),
        ("roofline", "Rooflines", roofline_section(results)),
        ("rows", "All rows", details_section(results)),
        ("method", "Method", _METHOD),
        ("machine", "Machine and versions", _machine(results)),
        ("peers", "Peers left out", _skipped(results)),
    ]
    kept = [(name, text, body) for name, text, body in sections if body]
    links = " ".join(f'<a href="#{name}">{text}</a>' for name, text, _ in kept)
    body = "\n".join(f'<section id="{name}"><h2>{text}</h2>\n{part}</section>' for name, text, part in kept)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"{_head(results)}\n<nav>{links}</nav>\n{_tiles(results)}\n{_noise(results)}\n{body}\n</main>\n</body>\n</html>\n"
    )


def _head(results: Results) -> str:
    machine, form = results.machine, results.identity.get("form", "")
    where = f"{machine.get('system', '')}, {machine_title(machine)}"
    when = str(machine.get("started", ""))[:16].replace("T", " ")
    peers = ", ".join(title_of(name) for name in results.systems if name != OURS) or "no peer"
    return (
        f"<h1>Tilewright beside its peers</h1>\n"
        f'<p class="note">{escape(where)} · {escape(when)} UTC · {escape(str(form))} form, {len(results.rows)} rows · '
        f"beside {escape(peers)}</p>"
    )


def _tiles(results: Results) -> str:
    """The run in numbers."""
    found = [verdict_of(row) for row in results.rows]
    ratios = [row.ratio(row.peers[0]) for row in results.rows if row.peers]
    tiles = [
        (str(found.count(Verdict.FASTER)), "rows faster than the fastest peer"),
        (str(found.count(Verdict.EVEN)), "rows even"),
        (str(found.count(Verdict.SLOWER)), "rows slower than the fastest peer"),
    ]
    if ratios:
        tiles.append((f"{geometric_mean(ratios):.2f}×", "speed over the fastest peer, geometric mean"))
        tiles.append((f"{min(ratios):.2f}×", "least of all rows"))
    inner = "".join(f'<div class="tile"><b>{value}</b><span>{text}</span></div>' for value, text in tiles)
    return f'<div class="tiles">{inner}</div>'


def _noise(results: Results) -> str:
    """A warning where something else ran on the machine."""
    if not results.noisy_rows:
        return ""
    return (
        f'<p class="warning">In {results.noisy_rows} of {len(results.rows)} rows the measured peak varied: its median '
        "was more than 5 % below its highest value, so something else ran on the machine. Intervals of these rows are "
        "wide, and the fastest peer of a row may be so by chance.</p>"
    )


def _machine(results: Results) -> str:
    facts = {
        name: value
        for name, value in results.machine.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }
    versions = dict(results.machine.get("versions", {}))
    pairs = [*facts.items(), *versions.items()]
    inner = "".join(f"<dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs)
    return f"<dl>{inner}</dl>"


def _skipped(results: Results) -> str:
    """Peers that were left out of the run, and of single rows."""
    parts = []
    if results.skipped:
        inner = "".join(
            f"<dt>{escape(title_of(name))}</dt><dd>{escape(reason)}</dd>"
            for name, reason in results.skipped.items()
        )
        parts.append(f"<dl>{inner}</dl>")
    else:
        parts.append("<p>None: every peer that the benchmark knows was measured.</p>")
    failures = [(row, text) for row in results.rows for text in row.failures]
    if failures:
        items = "".join(
            f"<dt>{escape(row.family)}: {escape(row.label)}</dt><dd>{escape(text)}</dd>"
            for row, text in failures
        )
        parts.append(f"<h3>Left out of single rows</h3><dl>{items}</dl>")
    return "".join(parts)
