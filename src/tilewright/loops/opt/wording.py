"""Text of remarks: products and reasons in terms of the source program."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilewright.loops.llvm.loops import Root
from tilewright.loops.llvm.text import NAME
from tilewright.loops.nests.nest import MatrixProduct, Refusal
from tilewright.loops.nests.text import product_text
from tilewright.loops.opt.records import NO_ELEMENTS
from tilewright.loops.opt.source_names import SourceNames
from tilewright.loops.opt.subscripts import StorageOrder, as_in_language

#: Loop indices, named after the loop header.
_INDEX = re.compile(rf"\bi\.{NAME}")

#: Metadata of loops that LLVM has already unrolled or vectorised.
_SPOILT = frozenset(
    ("llvm.loop.isvectorized", "llvm.loop.unroll.disable", "llvm.loop.unroll.runtime.disable")
)


def reason(root: Root, refusal: Refusal) -> str:
    """The reason of a refusal, with loops named by source lines, and the line that it refers to."""
    names = _index_names(root)
    text = _INDEX.sub(lambda found: names.get(found[0], found[0]), _in_source(root, refusal.reason))
    if refusal.reason != NO_ELEMENTS and is_optimised(root):
        text += "; a compiler has unrolled or vectorised it before (see docs/reference/loops.md)"
    return text if refusal.where.line in (root.where.line, None) else f"{text} (line {refusal.where.line})"


def is_optimised(root: Root) -> bool:
    """Whether a compiler has unrolled or vectorised a loop of a nest."""
    return any(_is_spoilt(one) for one, _ in _loops(root))


def _is_spoilt(root: Root) -> bool:
    properties = root.module.loop_properties(root.flow.function, root.loop.latches[0])
    return not _SPOILT.isdisjoint(properties)


def _index_names(root: Root) -> dict[str, str]:
    """Names of the indices of a nest for readers: source lines of the loops, or their depth."""
    loops = list(_loops(root))
    lines = [one.where.line for one, _ in loops]
    return {
        f"i.{one.loop.header}": f"the index of line {line}"
        if line and lines.count(line) == 1
        else f"the index of loop {depth}"
        for (one, depth), line in zip(loops, lines, strict=True)
    }


def _loops(root: Root, depth: int = 1) -> Iterator[tuple[Root, int]]:
    """A loop and all loops inside, with their depth."""
    yield root, depth
    for inner in root.inner:
        yield from _loops(inner, depth + 1)


def described(root: Root, product: MatrixProduct) -> str:
    """A product with its element types; those of A, B and C if they differ."""
    shown = as_in_language(product, by_columns=root.module.is_fortran)
    types = dict.fromkeys(str(operand.dtype) for operand in (shown.a, shown.b, shown.c))
    return f"{_in_source(root, product_text(shown, StorageOrder(shown)))}, {' '.join(types)}"


#: First and last index of a strip.
_STRIP = re.compile(rf"%tilewright\.(begin|end)\.{NAME}(?::\w+)?")


def _in_source(root: Root, text: str) -> str:
    """A text with source names of values, as far as they are known."""
    return SourceNames(root.module, root.flow.function)(_STRIP.sub(r"\1", text))
