"""A kernel shown to a person: aligned lines in a terminal, a table and the stages' texts in a notebook."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from enum import Enum

from tilewright.compiler.operation import Compilation
from tilewright.compiler.registers import RegisterUse
from tilewright.machine.host import host_machine
from tilewright.machine.machine import runs_on
from tilewright.macro.blocking import Cover
from tilewright.notebook import entry, facts_table, folded


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
    parts = [folded(name, text, f"print(kernel.{name}) for all") for name, text in texts.items()]
    return entry(state.name, facts_table(kernel_facts(state, registers)), *parts)


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
