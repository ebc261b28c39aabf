"""Sums of a tile whose depths come in groups, each with a scale of its own for every column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, int64, memory_type, vector_type, zero
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.tiles.kernel import GroupCall, Part, TileCall

if TYPE_CHECKING:
    from tilewright.micro.tiles.kernel import MicroKernel


def places(f: Function, groups: GroupCall, pointer: Value, part: Part, size: int) -> list[Value]:
    """Where the values of each vector of columns stand, of one group."""
    found, before = [], 0
    for width in part.widths:
        panel, lane = divmod(before, groups.lanes)
        start = f.at(pointer, f.mul(groups.apart, panel * size)) if panel else pointer
        found.append(f.at(start, lane * size))
        before += width
    return found


def grouped(
    kernel: MicroKernel, f: Function, part: Part, call: TileCall, masks: list[Value | None]
) -> Iterator[tuple[int, int, list[Value]]]:
    """Rows of the part that are finished together: the first, how many, their sums of every group.

    Totals stay in the first-level cache: they are read once in each group, beside as many depths as it has,
    and need no registers meanwhile.
    """
    groups, acc = call.groups, kernel.acc
    assert groups is not None
    size, count = acc.size, len(part.widths)
    totals = f.alloca(memory_type(acc), part.rows * kernel.tile.nr, CACHE_LINE)
    where = [
        f.at(totals, (row * kernel.tile.nr + sum(part.widths[:v])) * size)
        for row in range(part.rows)
        for v in range(count)
    ]
    for index, place in enumerate(where):
        f.store(zero(vector_type(acc, part.widths[index % count])), place, size)
    a_bytes, b_bytes = kernel.group_bytes(f, call, groups.depth)
    scale_bytes = f.mul(groups.step, size)
    state = [call.a, call.b, groups.scale, *([] if groups.zero is None else [groups.zero])]
    with f.carried_loop(int64(0), call.depth, groups.depth, state, "group") as (first, values, advance):
        a, b, scale, *zeros = values
        one = call._replace(
            a=a,
            b=b,
            depth=f.minimum(groups.depth, f.sub(call.depth, first)),
            groups=groups._replace(scale=scale, zero=zeros[0] if zeros else None),
            prefetch=False,
        )
        sums = kernel.walk_depth(f, part, one, masks, kernel.begin(f, part))
        scales = places(f, groups, scale, part, size)
        for above, rows, found in kernel.strips(f, part, sums):
            for index, value in enumerate(found):
                place = where[above * count + index]
                factor = f.load(value.type, scales[index % count], size)
                before = f.load(value.type, place, size)
                total = f.multiply_add(factor, value, before, fused=kernel.isa.fused)
                f.store(total, place, size)
            del rows
        advance((f.at(a, a_bytes), f.at(b, b_bytes), *(f.at(v, scale_bytes) for v in (scale, *zeros))))
    loaded = [
        f.load(vector_type(acc, part.widths[index % count]), place, size) for index, place in enumerate(where)
    ]
    yield 0, part.rows, loaded
