"""Packs and stores by tables of offsets: what stands at one distance goes in vectors, the rest one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.ir.nodes import Parts
from tilewright.ir.primitives import NO_STEP
from tilewright.llvm.build import Callee, Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    INT64,
    Value,
    element_type,
    int64,
    memory_type,
    vector_type,
    zero,
)
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, Rows, Window, value, window
from tilewright.micro.pack import PackKernel, chunks, square_function
from tilewright.spec.dtype import DType

#: Lanes that are copied together where they are adjacent: of those that fit a panel, the most.
VECTOR_LANES = (8, 4, 2, 1)


def _entry(f: Function, table: Window, index: Value) -> Value:
    """A number of a table."""
    return f.load(INT64, f.at(table.pointer, f.mul(index, 8)), 8)


@contextmanager
def _until(f: Function, end: Value, name: str) -> Iterator[tuple[Value, Value]]:
    """Repeats a block while a position is below an end; the block stores the next one at the second value."""
    place = f.stack(INT64, 1, 8)
    f.store(int64(0), place, 8)
    again, body, done = (f.new_block(f"{name}.{part}") for part in ("again", "body", "done"))
    f.jump(again)
    f.place(again)
    at = f.load(INT64, place, 8)
    f.jump_if(f.compare("<", at, end), body, done)
    f.place(body)
    yield at, place
    f.jump(again)
    f.place(done)


def emit_pack_table(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `PackTable`."""
    to = window(given, "to").dtype
    Rows(f, isa, "pack_table", to, given).call(lambda f, given: _pack(f, isa, given))


def _pack(f: Function, isa: Isa, given: Operands) -> None:
    to, source, lanes_at = (window(given, name) for name in ("to", "source", "lanes_at"))
    panel, depth = value(given, "panel"), value(given, "depth")
    assert panel.known is not None
    kernel = PackKernel(isa, source.dtype, to.dtype, panel.known, 1, 1, Parts.WHOLE).emit(f.module)
    panel_bytes = f.mul(f.mul(depth, panel.known), to.dtype.size)
    squares = chunks(panel.known, isa.lanes(to.dtype)) if to.dtype == source.dtype else ()
    offsets = f.stack(INT64, panel.known, 64)
    panels = f.divide(value(given, "lanes"), panel)
    with _until(f, panels, "panel") as (number, following):
        first = f.mul(number, panel)
        count = _entry(f, window(given, "counts"), number)
        begin = _entry(f, lanes_at, first)
        place = f.at(to.pointer, f.mul(number, panel_bytes))
        with f.loop(int64(0), panel, int64(1), "lane") as lane:
            distance = f.sub(_entry(f, lanes_at, f.add(first, lane)), begin)
            f.store(f.mul(distance, source.dtype.size), f.at(offsets, f.mul(lane, 8)), 8)
        shifts = int64(0)
        if squares:
            shifts = f.minimum(_entry(f, window(given, "shifts"), number), f.sub(panels, number))
            shifts = f.both(shifts, int64(-squares[0][1]))
        with f.branch(f.compare(">", shifts, 0)) as (shifted, usual):
            with shifted:
                if squares:
                    _shifted(f, given, (place, begin, offsets), (shifts, panel_bytes), squares)
                f.store(f.add(number, shifts), following, 8)
            with usual:
                step = _entry(f, window(given, "steps"), number)
                with f.branch(_in_runs(f, isa, given, step)) as (even, other):
                    with even:
                        _even(f, isa, given, (kernel, place, count, begin, step), offsets)
                    with other:
                        _scattered(f, isa, given, (place, begin), offsets)
                f.store(f.add(number, 1), following, 8)


def _in_runs(f: Function, isa: Isa, given: Operands, step: Value) -> Value:
    """Whether a panel with this step between lanes is packed run by run: in vectors along lanes or depths.

    By the first run; of others elements are put together to vectors.
    """
    depth, lanes = value(given, "depth"), isa.lanes(window(given, "to").dtype)
    run = f.minimum(_entry(f, window(given, "runs"), int64(0)), depth)
    depths_at = window(given, "depths_at")
    second = f.select(f.compare(">", run, 1), int64(1), int64(0))
    distance = f.sub(_entry(f, depths_at, second), _entry(f, depths_at, int64(0)))
    along = f.both(f.compare("==", distance, 1), f.compare(">=", run, lanes))
    turned = f.compare(">=", _entry(f, window(given, "turns"), int64(0)), lanes)
    some = f.compare("!=", step, NO_STEP)
    return f.both(some, f.either(f.compare("==", step, 1), f.either(along, turned)))


def _shifted(
    f: Function,
    given: Operands,
    places: tuple[Value, Value, Value],
    panels: tuple[Value, Value],
    squares: tuple[tuple[int, int], ...],
) -> None:
    """Panels that are one element apart, in squares of lanes and panels that are turned in registers.

    Parameters
    ----------
    places : the first panel, its first lane in the source in elements, and bytes from that to each lane.
    panels : how many, whole squares of them, and bytes of each.
    squares : how the lanes of a panel are cut: (first lane, side of the square).
    """
    (place, begin, offsets), (shifts, panel_bytes) = places, panels
    to, source, depths_at = (window(given, name) for name in ("to", "source", "depths_at"))
    width, size = value(given, "panel").known, to.dtype.size
    assert width is not None
    for first, side in squares:
        square = square_function(f.module, to.dtype.bits, side)
        lanes = f.at(offsets, 8 * first)
        with f.loop(int64(0), shifts, int64(side), "shift") as shift:
            to_panel = f.at(place, f.add(f.mul(shift, panel_bytes), first * size))
            from_panel = f.at(source.pointer, f.mul(f.add(begin, shift), size))
            with f.loop(int64(0), value(given, "depth"), int64(1), "depth") as depth:
                from_ = f.at(from_panel, f.mul(_entry(f, depths_at, depth), size))
                f.call(square, [f.at(to_panel, f.mul(depth, width * size)), panel_bytes, from_, lanes])


def _even(
    f: Function, isa: Isa, given: Operands, panel: tuple[Callee, Value, Value, Value, Value], offsets: Value
) -> None:
    """A panel whose lanes keep one distance, `offsets` bytes from the first: run after run of depths."""
    kernel, place, count, begin, step = panel
    to, source = window(given, "to"), window(given, "source")
    depths_at, runs, depth = window(given, "depths_at"), window(given, "runs"), value(given, "depth")
    width = value(given, "panel").known
    assert width is not None
    squares = chunks(width, isa.lanes(to.dtype)) if to.dtype == source.dtype else ()
    apart = f.compare("!=", step, 1)
    with _until(f, depth, "run") as (first, following):
        run = f.minimum(_entry(f, runs, first), f.sub(depth, first))
        offset = _entry(f, depths_at, first)
        next_one = f.select(f.compare(">", run, 1), f.add(first, 1), first)
        distance = f.sub(_entry(f, depths_at, next_one), offset)
        block = f.at(source.pointer, f.mul(f.add(begin, offset), source.dtype.size))
        target = f.at(place, f.mul(first, width * to.dtype.size))
        turns = int64(0)
        if squares:
            most = max(size for _, size in squares)
            turns = f.minimum(_entry(f, window(given, "turns"), first), f.divide(f.sub(depth, first), run))
            turns = f.select(apart, f.both(turns, int64(-most)), int64(0))
        with f.branch(f.compare(">", turns, 0)) as (turned, usual):
            with turned:
                if squares:
                    strides = (f.mul(run, width * to.dtype.size), f.mul(distance, source.dtype.size))
                    _squares(f, (target, block, offsets), (run, turns), strides, (to.dtype, width, squares))
                f.store(f.add(first, f.mul(turns, run)), following, 8)
            with usual:
                f.call(kernel, [target, block, step, distance, count, run])
                f.store(f.add(first, run), following, 8)


def _squares(
    f: Function,
    places: tuple[Value, Value, Value],
    counts: tuple[Value, Value],
    strides: tuple[Value, Value],
    form: tuple[DType, int, tuple[tuple[int, int], ...]],
) -> None:
    """Depths that are adjacent from run to run, in squares of lanes and runs that are turned in registers.

    Parameters
    ----------
    places : the panel, the source, and bytes from the first lane to each.
    counts : depths of a run, and runs, whole squares of them.
    strides : bytes of the panel from run to run, and of the source from depth to depth of a run.
    form : element type, lanes of the panel, and how they are cut: (first lane, side of the square).
    """
    (target, block, offsets), (run, turns), (run_bytes, depth_bytes) = places, counts, strides
    dtype, width, squares = form
    for first, side in squares:
        square = square_function(f.module, dtype.bits, side)
        lanes = f.at(offsets, 8 * first)
        with f.loop(int64(0), turns, int64(side), "turn") as turn:
            to_turn = f.at(target, f.add(f.mul(turn, run_bytes), first * dtype.size))
            from_turn = f.at(block, f.mul(turn, dtype.size))
            with f.loop(int64(0), run, int64(1), "depth") as depth:
                to = f.at(to_turn, f.mul(depth, width * dtype.size))
                f.call(square, [to, run_bytes, f.at(from_turn, f.mul(depth, depth_bytes)), lanes])


def _scattered(f: Function, isa: Isa, given: Operands, panel: tuple[Value, Value], offsets: Value) -> None:
    """A panel whose lanes stand anywhere, `offsets` bytes from the first.

    Depths that are adjacent go in squares that are turned in registers, the others in vectors of lanes, put
    together of elements where they are not adjacent.
    """
    place, begin = panel
    to, source, width = window(given, "to"), window(given, "source"), value(given, "panel").known
    depths_at, runs, depth = window(given, "depths_at"), window(given, "runs"), value(given, "depth")
    assert width is not None
    squares = chunks(width, isa.lanes(to.dtype)) if to.dtype == source.dtype else ()
    lanes = next(size for size in VECTOR_LANES if width % size == 0)
    apart = _apart(f, offsets, (width, lanes), source.dtype.size)
    with _until(f, depth, "run") as (first, following):
        run = f.minimum(_entry(f, runs, first), f.sub(depth, first))
        offset = _entry(f, depths_at, first)
        next_one = f.select(f.compare(">", run, 1), f.add(first, 1), first)
        adjacent = f.compare("==", f.sub(_entry(f, depths_at, next_one), offset), 1)
        block = f.at(source.pointer, f.mul(begin, source.dtype.size))
        whole = int64(0)
        if squares:
            most = max(size for _, size in squares)
            whole = f.select(adjacent, f.both(run, int64(-most)), int64(0))
        for lane, side in squares:
            square = square_function(f.module, to.dtype.bits, side)
            target = f.at(place, f.add(f.mul(first, width * to.dtype.size), lane * to.dtype.size))
            from_ = f.at(block, f.mul(offset, source.dtype.size))
            with f.loop(int64(0), whole, int64(side), "depth") as p:
                to_square = f.at(target, f.mul(p, width * to.dtype.size))
                from_square = f.at(from_, f.mul(p, source.dtype.size))
                f.call(
                    square, [to_square, int64(width * to.dtype.size), from_square, f.at(offsets, 8 * lane)]
                )
        end = f.add(first, run)
        _by_lanes(f, isa, given, (place, block), (offsets, apart, lanes), (f.add(first, whole), end))
        f.store(end, following, 8)


def _apart(f: Function, offsets: Value, sizes: tuple[int, int], element_bytes: int) -> Value:
    """For each vector of lanes of a panel, 0 where its lanes are adjacent elements."""
    width, lanes = sizes
    found = f.stack(INT64, width // lanes, 8)
    for number in range(width // lanes):
        uneven = int64(0)
        for lane in range(number * lanes, (number + 1) * lanes - 1):
            here, next_one = (f.load(INT64, f.at(offsets, 8 * at), 8) for at in (lane, lane + 1))
            distance = f.sub(f.sub(next_one, here), element_bytes)
            uneven = f.either(uneven, distance)
        f.store(uneven, f.at(found, 8 * number), 8)
    return found


def _by_lanes(
    f: Function,
    isa: Isa,
    given: Operands,
    places: tuple[Value, Value],
    lanes_at: tuple[Value, Value, int],
    depths: tuple[Value, Value],
) -> None:
    """Some depths of a panel, a vector of lanes after the other."""
    (place, block), (offsets, apart, lanes) = places, lanes_at
    to, source, depths_at = (window(given, name) for name in ("to", "source", "depths_at"))
    convert, width = Convert(f, half=isa.half), value(given, "panel").known
    assert width is not None

    one = memory_type(source.dtype)
    kind = vector_type(source.dtype, lanes) if lanes > 1 else one

    def copy(lane: Value) -> None:
        """A vector of adjacent elements, for each depth."""
        from_ = f.at(block, f.load(INT64, f.at(offsets, f.mul(lane, 8)), 8))
        target = f.at(place, f.mul(lane, to.dtype.size))
        with f.loop(*depths, int64(1), "depth") as p:
            at = f.at(from_, f.mul(_entry(f, depths_at, p), source.dtype.size))
            elements = convert(f.load(kind, at, source.dtype.size), source.dtype, to.dtype)
            f.store(elements, f.at(target, f.mul(p, width * to.dtype.size)), to.dtype.size)

    def put_together(lane: Value) -> None:
        """Vectors of elements that stand apart, for each depth."""
        begins = [f.load(INT64, f.at(offsets, f.mul(f.add(lane, number), 8)), 8) for number in range(lanes)]
        from_ = [f.at(block, begin) for begin in begins]
        target = f.at(place, f.mul(lane, to.dtype.size))
        with f.loop(*depths, int64(1), "depth") as p:
            at = f.mul(_entry(f, depths_at, p), source.dtype.size)
            elements = [f.load(one, f.at(begin, at), source.dtype.size) for begin in from_]
            vector = f.together(elements) if lanes > 1 else elements[0]
            f.store(
                convert(vector, source.dtype, to.dtype),
                f.at(target, f.mul(p, width * to.dtype.size)),
                to.dtype.size,
            )

    with f.loop(int64(0), int64(width), int64(lanes), "lanes") as first:
        uneven = f.load(INT64, f.at(apart, f.mul(f.divide(first, int64(lanes)), 8)), 8)
        with f.branch(f.compare("==", uneven, 0)) as (adjacent, other):
            with adjacent:
                copy(first)
            with other:
                put_together(first)


def _apart_columns(f: Function, columns_at: Window, columns: Value, sizes: tuple[int, int]) -> Value:
    """For each vector of columns of a tile, 0 where there are all of them and they are adjacent in C."""
    width, lanes = sizes
    found = f.stack(INT64, width // lanes, 8)
    with f.loop(int64(0), columns, int64(lanes), "vector") as first:
        place = f.at(found, f.mul(f.divide(first, int64(lanes)), 8))
        f.store(int64(1), place, 8)
        with f.when(f.compare("<=", f.add(first, lanes), columns)):
            uneven = int64(0)
            for lane in range(lanes - 1):
                here, next_one = (_entry(f, columns_at, f.add(first, at)) for at in (lane, lane + 1))
                uneven = f.either(uneven, f.sub(f.sub(next_one, here), 1))
            f.store(uneven, place, 8)
    return found


def emit_scatter_tile(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `ScatterTile`."""
    acc = window(given, "tile").dtype
    Rows(f, isa, "scatter_tile", acc, given).call(lambda f, given: _scatter(f, isa, acc, given))


def _scatter(f: Function, isa: Isa, acc: DType, given: Operands) -> None:
    to, tile, columns_at = (window(given, name) for name in ("to", "tile", "columns_at"))
    columns, beta = value(given, "columns"), value(given, "beta")
    convert, lanes = Convert(f, half=isa.half), isa.lanes(acc)
    some = f.differs(beta, zero(element_type(acc)))

    def put(pointer: Value, row: Value, column: Value, count: int) -> None:
        """One element or vector."""
        kind = vector_type(acc, count) if count > 1 else element_type(acc)
        stored = vector_type(to.dtype, count) if count > 1 else memory_type(to.dtype)
        sums = f.load(kind, tile.at(f, row, column), acc.size)
        with f.once_if(some, [sums]) as ((held,), advance):
            old = convert(f.load(stored, pointer, to.dtype.size), to.dtype, acc)
            factor = f.splat(beta, count) if count > 1 else beta
            advance([f.multiply_add(factor, old, held, fused=isa.fused)])
        f.store(convert(advance.results[0], acc, to.dtype), pointer, to.dtype.size)

    def place_of(begin: Value, column: Value) -> Value:
        return f.at(begin, f.mul(_entry(f, columns_at, column), to.dtype.size))

    width = tile.row.known
    assert width is not None
    some_lanes = next(size for size in VECTOR_LANES if size <= lanes and width % size == 0)
    apart = _apart_columns(f, columns_at, columns, (width, some_lanes))
    with f.loop(int64(0), value(given, "rows"), int64(1), "row") as row:
        offset = f.mul(_entry(f, window(given, "rows_at"), row), to.dtype.size)
        begin = f.at(to.pointer, offset)
        first = f.at(begin, f.mul(_entry(f, columns_at, int64(0)), to.dtype.size))
        adjacent = f.compare("==", value(given, "step"), 1)
        whole = f.select(adjacent, f.both(columns, int64(-lanes)), int64(0))
        with f.loop(int64(0), whole, int64(lanes), "column") as column:
            put(f.at(first, f.mul(column, to.dtype.size)), row, column, lanes)
        with f.loop(whole, columns, int64(some_lanes), "some") as column:
            end = f.minimum(f.add(column, some_lanes), columns)
            near = f.load(INT64, f.at(apart, f.mul(f.divide(column, int64(some_lanes)), 8)), 8)
            with f.branch(f.compare("==", near, 0)) as (together, other):
                with together:
                    put(place_of(begin, column), row, column, some_lanes)
                with other, f.loop(column, end, int64(1), "element") as one:
                    put(place_of(begin, one), row, one, 1)
