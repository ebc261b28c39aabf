"""A kernel shown to a person: aligned lines in a terminal, a table and the stages' texts in a notebook."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from enum import Enum
from html import escape

from tilewright.compiler.operation import Compilation
from tilewright.compiler.registers import RegisterUse
from tilewright.machine.host import host_machine
from tilewright.machine.machine import runs_on
from tilewright.macro.blocking import Cover

#: Lines of a text that a notebook shows, and so keeps in its file; the kernel's attribute has them all.
SHOWN_LINES = 500

#: Colours come from the page, so that light and dark themes both fit; lines are grey on either.
_LINE = "1px solid rgba(128, 128, 128, 0.4)"
_TABLE = "border-collapse: collapse; color: inherit; background: transparent"
_CELL = f"padding: 2px 12px 2px 0; text-align: left; border-bottom: {_LINE}; white-space: pre-wrap"
_TEXT = f"max-height: 30em; overflow: auto; padding: 4px; border: {_LINE}; color: inherit"


def describe(state: Compilation, registers: RegisterUse | None = None) -> str:
    """The facts of a kernel in aligned lines; compiles nothing, so registers only where they are counted.

    >>> import tilewright as tw
    >>> print(describe(tw.compile(tw.BatchReduceGemm(16, 6, 64), "neoverse-v2").compilation))
    tilewright.Kernel brgemm_f32_16x6x64x1_ccc_neon
      problem    BatchReduceGemm m=16 n=6 k=64 count=1 dtype=f32 a=col b=col c=col beta=1 batch=stride
      target     neoverse-v2 (neon), runs elsewhere
      cover      1 x 6 across vectors, 1 x 16 along them
      flops      12,288
      bytes      6,400
      intensity  1.92 flops/byte
    """
    facts = dict(kernel_facts(state, registers))
    width = max(map(len, facts))
    lines = [f"  {name:{width}}  {value}" for name, value in facts.items()]
    return "\n".join([f"tilewright.Kernel {state.name}", *lines])


def describe_html(state: Compilation, registers: RegisterUse, texts: Mapping[str, str]) -> str:
    """The facts as an HTML table; texts of the kernel's attributes (tile IR, LLVM IR, ...) folded below it.

    Self-contained: no scripts, no style sheet, nothing to load; all text is escaped.
    """
    rows = "".join(
        f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in kernel_facts(state, registers)
    )
    folded = "".join(_folded(name, text) for name, text in texts.items())
    head = f"<code>{escape(state.name)}</code>"
    return f'<div>{head}<table style="{_TABLE}">{rows}</table>{folded}</div>'


def _folded(name: str, text: str) -> str:
    """A text behind its name, the first lines of a long one."""
    lines = text.splitlines()
    title = f"{name}, {len(lines)} lines"
    if len(lines) > SHOWN_LINES:
        title += f", the first {SHOWN_LINES}; print(kernel.{name}) for all"
    shown = escape("\n".join(lines[:SHOWN_LINES]))
    return f'<details><summary>{title}</summary><pre style="{_TEXT}">{shown}</pre></details>'


def kernel_facts(state: Compilation, registers: RegisterUse | None) -> Iterator[tuple[str, str]]:
    """Names and values, in order; what is open is left out."""
    problem, machine = state.problem, state.machine
    yield "problem", f"{type(problem).__name__} {record_text(problem)}"
    where = machine.cpu if machine.cpu == machine.name else f"{machine.name}, {machine.cpu}"
    elsewhere = "" if runs_on(machine, host_machine()) else ", runs elsewhere"
    yield "target", f"{where} ({machine.isa.name}){elsewhere}"
    match state.blocking:
        case Cover(heights=heights, widths=widths):
            yield "cover", f"{_tiles(heights)} across vectors, {_tiles(widths)} along them"
        case blocking:
            yield "blocking", record_text(blocking)
    if registers is not None:
        yield "registers", f"{registers.used} used, {registers.spilled} spilled"
    if problem.flops is not None:
        yield "flops", f"{problem.flops:,}"
    if problem.bytes is not None:
        yield "bytes", f"{problem.bytes:,}"
    if problem.flops is not None and problem.bytes:
        yield "intensity", f"{problem.flops / problem.bytes:.2f} flops/byte"


def record_text(record: object) -> str:
    """The fields of a record in the order of their declaration; those that are None are open sizes.

    Element types of B and C are shown where they are not A's, an epilogue, weights, a mask and what else a
    problem may have where there are any.
    """
    assert dataclasses.is_dataclass(record)
    found = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    values = [
        (name, value)
        for name, value in found.items()
        if not (name.endswith("_dtype") and value == found.get("dtype"))
        and value is not False
        and (value or name not in ("epilogue", "weights", "mask"))
    ]
    return " ".join(f"{name}={_word(value)}" for name, value in values)


def _word(value: object) -> str:
    match value:
        case None:
            return "any"
        case Enum():
            return str(value.value)
        case tuple() if any(map(dataclasses.is_dataclass, value)):
            return "(" + "; ".join(map(str, value)) + ")"
        case _:
            return str(value)


def _tiles(parts: tuple[tuple[int, int], ...]) -> str:
    """Tiles of one direction: (size, how many)."""
    return " + ".join(f"{count} x {size}" for size, count in parts)
