"""What a page says of one kernel, as values that JSON has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from enum import Enum
from typing import Any

from tilewright.compiler.alternatives import PredictedPath
from tilewright.compiler.example import Example
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.matrix_example import example_of
from tilewright.compiler.operation import operation_of
from tilewright.compiler.repr_html import kernel_facts
from tilewright.errors import TilewrightError
from tilewright.ir.expressions import Constant
from tilewright.ir.nodes import If, Loop, Pack, Program, Statement, TileMatmul
from tilewright.ir.primitives.tables import PackTable
from tilewright.machine.machine import Machine
from tilewright.ops.explain import explain_problem
from tilewright.tools.explore.page.costs import PARTS, predicted_paths, roofline_of
from tilewright.tools.explore.page.inner import inner_loops
from tilewright.tools.explore.page.listing import Listing, listing_of
from tilewright.tools.explore.page.walk import CallSteps, walk_of

#: Lines of one text that a page holds; no kernel so far has as many.
MOST_LINES = 40_000


def kernel_record(kernel: Kernel, wanted: Mapping[str, int]) -> dict[str, Any]:
    """Everything that a page shows of a kernel.

    Parameters
    ----------
    wanted : lengths of axes that are open, for the call that is drawn.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = kernel_record(tw.compile(tw.Gemm(24, 64, 32), "znver4"), {})
    >>> found["walk"]["count"], found["target"]["isa"]
    (4, 'avx512')
    """
    listing = listing_of(kernel)
    example = example_of(kernel, wanted)
    try:
        walk = walk_of(listing.program, example)
    except TilewrightError as error:
        walk, reason = CallSteps((), 0, {}, 0), str(error)
    else:
        reason = ""
    paths = predicted_paths(kernel, example)
    counts = _counts(kernel, example, walk)
    return {
        "kernel": kernel.name,
        "problem": type(kernel.problem).__name__,
        "formula": operation_of(kernel.problem).formula(kernel.problem),
        "facts": [*map(list, kernel_facts(kernel.compilation, kernel.registers))],
        "target": machine_record(kernel.machine),
        "explanation": _explanation(kernel),
        "example": {"shape": dict(example.shape), "flops": counts[0], "bytes": counts[1]},
        "cut": _cut(kernel),
        "buffers": list(_buffers(listing.program, example, walk)),
        "walk": _walk(walk, reason),
        "packs": list(_packs(listing.program, walk)),
        "tiles": list(_tiles(listing.program, walk, kernel.machine)),
        "listing": _listing(listing),
        "inner": plain(inner_loops(kernel)),
        "parts": PARTS,
        "paths": [_path(one) for one in paths],
        "roofline": plain(roofline_of(kernel, paths, counts)),
    }


def machine_record(machine: Machine) -> dict[str, Any]:
    """The facts of a machine that a page shows."""
    levels = [("L1", machine.l1), ("L2", machine.l2), ("L3", machine.l3)]
    core = machine.core
    return {
        "name": machine.name,
        "cpu": machine.cpu,
        "isa": machine.isa.name,
        "core": core.name,
        "vector_bits": machine.isa.vector_bits,
        "registers": machine.isa.vector_registers,
        "tlb": list(core.tlb_pages),
        "page_bytes": machine.page_bytes,
        "caches": [
            {
                "name": name,
                "bytes": cache.size,
                "ways": cache.ways,
                "line": cache.line,
                "cores": cache.shared_by,
            }
            for name, cache in levels
            if cache is not None
        ],
    }


def plain(value: Any) -> Any:
    """A record as JSON values: dictionaries, lists, numbers, words."""
    match value:
        case Enum():
            return value.value
        case dict() | Mapping():
            return {str(name): plain(one) for name, one in value.items()}
        case tuple() | list():
            return [plain(one) for one in value]
        case None | bool() | int() | float() | str():
            return value
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
        case _:
            return str(value)


def _explanation(kernel: Kernel) -> dict[str, Any]:
    """What `explain` says of the problem."""
    found = explain_problem(kernel.problem, kernel.machine)
    return {"strategy": found.strategy, "decisions": list(found.decisions), "notes": list(found.notes)}


def _cut(kernel: Kernel) -> dict[str, Any]:
    """How a kernel is cut, and the rules behind it where the operation names them."""
    op, cut = operation_of(kernel.problem), kernel.blocking
    bounds = None if op.bounds is None else op.bounds(kernel.problem, kernel.machine, cut)
    values = plain(cut) if is_dataclass(cut) else {"cut": str(cut)}
    return {"kind": type(cut).__name__, "values": values, "bounds": plain(bounds)}


def _counts(kernel: Kernel, example: Example, walk: CallSteps) -> tuple[int, int]:
    """Operations and bytes of the example: of the problem with its sizes, or of the steps and the views."""
    problem = kernel.problem
    named = {one.name for one in fields(problem)} if is_dataclass(problem) else set()
    sizes = {name: size for name, size in example.shape.items() if name in named}
    if problem.flops is None and sizes and problem.operands:
        problem = replace(problem, **sizes)
    flops = problem.flops if problem.flops is not None else 2 * walk.multiply_adds
    moved = problem.bytes if example.moved is None else example.moved
    if moved is None:
        types = {one.name: one.dtype for one in kernel.nest.arguments}
        moved = sum(types[name].bytes(view.rows * view.columns) for name, view in example.views.items())
    return flops, moved


def _buffers(program: Program, example: Example, walk: CallSteps) -> Iterator[dict[str, Any]]:
    """The buffers that steps touch: matrices where the example has a view, else as far as they are used."""
    ends: dict[str, int] = {}
    for step in walk.steps:
        for touch in step.touches:
            for _, column, _, columns in touch.parts:
                ends[touch.buffer] = max(ends.get(touch.buffer, 0), column + columns)
    for buffer in program.buffers:
        if buffer.name not in ends:
            continue
        view = example.views.get(buffer.name)
        used = ends[buffer.name] if buffer.size is None else min(ends[buffer.name], buffer.size)
        shape = {"rows": 1, "columns": used, "axes": ["", "elements"]}
        if view is not None:
            shape = {"rows": view.rows, "columns": view.columns, "axes": list(view.axes)}
        yield {
            "name": buffer.name,
            "space": buffer.space.value,
            "dtype": str(buffer.dtype),
            "bytes": buffer.dtype.bytes(1),
            "memory": view is None,
            **shape,
        }


def _walk(walk: CallSteps, reason: str) -> dict[str, Any]:
    """Steps as lists: statement, places of the loops, and buffer, role and rectangles of each touch."""
    buffers = list(dict.fromkeys(touch.buffer for step in walk.steps for touch in step.touches))
    roles = list(dict.fromkeys(touch.role for step in walk.steps for touch in step.touches))
    steps = [
        [
            step.statement,
            [place for _, place in step.axes],
            [
                [
                    buffers.index(one.buffer),
                    roles.index(one.role),
                    *(number for part in one.parts for number in part),
                ]
                for one in step.touches
            ],
        ]
        for step in walk.steps
    ]
    return {
        "count": walk.count,
        "whole": walk.whole,
        "reason": reason,
        "buffers": buffers,
        "roles": roles,
        "words": {str(number): word for number, word in walk.words.items()},
        "axes": {str(step.statement): [name for name, _ in step.axes] for step in walk.steps},
        "steps": steps,
    }


def _statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements of a block, those inside others behind them; numbers are those of `statement_lines`."""
    for statement in body:
        yield statement
        match statement:
            case Loop(body=inside):
                yield from _statements(inside)
            case If(then=then, otherwise=otherwise):
                yield from _statements((*then, *otherwise))


def _packs(program: Program, walk: CallSteps) -> Iterator[dict[str, Any]]:
    """The forms of panels that copies make, each once; those that the example makes first."""
    seen = set()
    numbered = sorted(enumerate(_statements(program.body)), key=lambda one: one[0] not in walk.words)
    for number, node in numbered:
        if isinstance(node, PackTable) and isinstance(node.panel, Constant):
            node = Pack(node.to, node.source, node.lanes, node.depth, node.panel.value)  # noqa: PLW2901 - its panels are the same
        if not isinstance(node, Pack):
            continue
        form = (node.source.buffer, node.destination.buffer, node.panel, node.kr, node.unit, node.parts)
        if form in seen:
            continue
        seen.add(form)
        yield {
            "statement": number,
            "runs": number in walk.words,
            "source": node.source.buffer,
            "buffer": node.destination.buffer,
            "panel": node.panel,
            "kr": node.kr,
            "unit": node.unit,
            "parts": node.parts.value,
            "stored": None if node.stored is None else node.stored.elements.value,
            "from": str(program.buffer(node.source.buffer).dtype),
            "to": str(program.buffer(node.destination.buffer).dtype),
        }


def _tiles(program: Program, walk: CallSteps, machine: Machine) -> Iterator[dict[str, Any]]:
    """The register tiles of the program, each size once; those that the example computes first."""
    seen = set()
    numbered = sorted(enumerate(_statements(program.body)), key=lambda one: one[0] not in walk.words)
    for number, node in numbered:
        if not isinstance(node, TileMatmul) or (node.tile, node.form) in seen:
            continue
        seen.add((node.tile, node.form))
        a, b = (program.buffer(window.buffer).dtype for window in (node.a, node.b))
        tile: dict[str, Any] = {"m": 1, "n": 1, "k": 1, "name": ""}
        try:
            one = machine.isa.tile(a.real, a.real if node.stored is not None else b.real, node.sums)
            tile = {"m": one.m, "n": one.n, "k": one.k, "name": one.instruction}
        except TilewrightError:
            pass
        found = asdict(node.tile)
        yield {
            "statement": number,
            "runs": number in walk.words,
            "form": node.form.value,
            **found,
            "unit": tile,
        }


def _listing(listing: Listing) -> dict[str, Any]:
    """The texts and links; a line of LLVM IR has a number, or a list where several statements call it."""
    return {
        "tile": "\n".join(listing.tile[:MOST_LINES]),
        "llvm": "\n".join(listing.llvm[:MOST_LINES]),
        "assembly": "\n".join(listing.assembly[:MOST_LINES]),
        "tileStatements": list(listing.tile_statements[:MOST_LINES]),
        "llvmStatements": [list(one) for one in listing.llvm_statements[:MOST_LINES]],
        "llvmShared": list(map(int, listing.shared[:MOST_LINES])),
        "assemblyLlvm": list(listing.assembly_llvm[:MOST_LINES]),
    }


def _path(path: PredictedPath) -> dict[str, Any]:
    return {**plain(path), "cycles": path.cycles}
