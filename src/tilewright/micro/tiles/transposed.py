"""Few rows times columns of B that are contiguous along the depth, or few columns times such rows of A."""

from __future__ import annotations

from tilewright.ir.nodes import FEW_LANES, LINE_BITS
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Type, Value, element_type, int64, vector_of, zero
from tilewright.llvm.written import write_once
from tilewright.machine.isa import SUMS_OF_A_CHAIN, Isa
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.packing.squares import OFFSET_BYTES, square_function
from tilewright.micro.packing.transpose import transpose
from tilewright.spec.dtype import DType

#: Beyond one vector, the functions are for every second count; of an odd one, the last vector is computed
#: twice: panels repeat their last lane.
COUNT_STEP = 2

#: Lines that have a pointer together: their distances take two registers more, that of one line and of three.
LINES_A_POINTER = 4


class TransposedKernel:
    """sums[v, l] = Σ few[v, p] · lines[l, p] for up to `most` v and as many lines l as a vector has lanes.

    Lines are contiguous along the depth. 128 bits of each are loaded together, and transposed in registers:
    two shuffles of all lines for four depths of 32 bits, which multiply-adds of all v share. Elements of
    `few` are in panels of `FEW_LANES` and repeated in all lanes. Each sum is that of every other tile: depth
    by depth, in chains. All elements have one type.

    Parameters
    ----------
    isa : the row.
    dtype : the element type.
    most : the largest count.
    lines_first : whether sums are stored line by line, sums[l, v].
    set_bytes : distance of lines that share a set of L1, a power of two: their cache lines are copied to a
        buffer, where they survive until all of their depths have been read; 0 never.
    """

    def __init__(self, isa: Isa, dtype: DType, most: int, *, lines_first: bool, set_bytes: int = 0) -> None:
        self.isa, self.dtype, self.most, self.lines_first = isa, dtype, most, lines_first
        self.set_bytes = set_bytes if most > 1 else 0
        self.lanes, self.element = isa.lanes(dtype), element_type(dtype)
        self.kind = vector_of(self.element, self.lanes)

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts of vectors that have a function.

        >>> from tilewright.machine.isa_rows import AVX2, NEON
        >>> from tilewright.spec.dtype import F32
        >>> TransposedKernel(AVX2, F32, 10, lines_first=True).counts
        (1, 2, 4, 6, 8, 10)
        >>> TransposedKernel(NEON, F32, 1, lines_first=False).counts
        (1,)
        """
        return (1, *range(COUNT_STEP, self.most + 1, COUNT_STEP))

    def depths(self, module: Module) -> int:
        """Depths that are loaded together: those of squares where vectors have no parts of 128 bits."""
        return self.lanes if module.vector_bits > LINE_BITS else LINE_BITS // self.dtype.bits

    @property
    def name(self) -> str:
        """The function's name in a module."""
        return f"transposed_{self.dtype}_{self.most}{'_lines' if self.lines_first else ''}"

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; the value to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        shape = (self.dtype, self.most, self.lines_first, self.set_bytes)
        return write_once(module, (type(self), self.isa, shape), self._define)

    def _define(self, module: Module) -> Callee:
        functions = {count: self._emit_count(module, count) for count in self.counts}
        f = module.define(self.name, VOID, self._arguments())
        g = f.arguments
        place, step = g["sums"], g["sums_step"]
        if self.lines_first:
            rows = -(-self.most // self.lanes) * self.lanes
            place, step = f.alloca(self.element, rows * self.lanes, CACHE_LINE), int64(self.lanes)
        operands = [g[name] for name, _ in self._arguments()[:-2]]
        self._call(f, functions, [*operands, place, step])
        if self.lines_first:
            self._store_lines(f, place)
        f.ret()
        return f.callee

    @staticmethod
    def _arguments() -> list[tuple[str, Type]]:
        return [
            ("count", INT64),
            ("depth", INT64),
            ("few", POINTER),
            ("few_step", INT64),
            ("lines", POINTER),
            ("line_step", INT64),
            ("sums", POINTER),
            ("sums_step", INT64),
        ]

    def _call(self, f: Function, functions: dict[int, Callee], operands: list[Value]) -> None:
        """Calls the function of the smallest count that suffices."""
        (count, function), *others = functions.items()
        if not others:
            f.call(function, operands)
            return
        with f.branch(f.icmp("<=", f.arguments["count"], count)) as (then, otherwise):
            with then:
                f.call(function, operands)
            with otherwise:
                self._call(f, dict(others), operands)

    def _store_lines(self, f: Function, tile: Value) -> None:
        """Stores a tile of sums line by line, in squares; lanes behind the count are not sums."""
        g, lanes, size = f.arguments, self.lanes, self.dtype.size
        square = square_function(f.module, self.dtype.bits, lanes)
        offsets = f.alloca(INT64, lanes, CACHE_LINE)
        for lane in range(lanes):
            f.store(int64(lane * lanes * size), f.at(offsets, lane * OFFSET_BYTES), OFFSET_BYTES)
        step = f.mul(g["sums_step"], size)
        with f.loop(int64(0), g["count"], int64(lanes), "square") as first:
            to, source = f.at(g["sums"], f.mul(first, size)), f.at(tile, f.mul(first, lanes * size))
            f.call(square, [to, step, source, offsets])

    def _emit_count(self, module: Module, count: int) -> Callee:
        """The function of `count` vectors of sums, of which the last may be one too many."""
        f = module.define(f"{self.name.removesuffix('_lines')}_{count}", VOID, self._arguments())
        g, chain = f.arguments, int64(SUMS_OF_A_CHAIN)
        with f.carried_loop(int64(0), g["depth"], chain, [g["few"], g["lines"]], "chain") as (
            begin,
            (few, lines),
            advance,
        ):
            depths = f.minimum(f.sub(g["depth"], begin), chain)
            sums, *following = self._chain(f, depths, few, lines, count)
            self._close(f, begin, sums)
            advance(following)
        f.ret()
        return f.callee

    def _chain(
        self, f: Function, depths: Value, few: Value, lines: Value, count: int
    ) -> tuple[list[Value], Value, Value]:
        """The sums of some depths, and where both operands go on."""
        size, together = self.dtype.size, self.depths(f.module)
        line = f.mul(f.arguments["line_step"], size)
        sums = [zero(self.kind) for _ in range(count)]
        state = [few, lines, *sums]
        end, run = f.sub(depths, together - 1), CACHE_LINE // size
        if self.set_bytes and run > together:
            buffer = f.alloca(self.element, self.lanes * run, CACHE_LINE)
            apart = f.icmp("!=", f.and_(line, int64(self.set_bytes - 1)), 0)
            with f.carried_walk(int64(0), end, state, "line") as (first, values, advance):
                before = f.and_(f.ptrtoint(values[1]), int64(CACHE_LINE - 1))
                left = f.ashr(f.sub(int64(CACHE_LINE), before), int64(size.bit_length() - 1))
                depths_left = f.maximum(f.and_(left, int64(-together)), int64(together))
                following = f.add(first, f.select(apart, int64(SUMS_OF_A_CHAIN), depths_left))
                # What is not a whole cache line is read where it is.
                partly = f.or_(f.icmp("!=", left, run), f.icmp(">", following, depths))
                place = f.or_(apart, partly)
                with f.when(f.not_(place)):
                    self._copy(f, buffer, values[1], line)
                at, step = f.select(place, values[1], buffer), f.select(place, line, int64(CACHE_LINE))
                span = (first, f.minimum(following, end))
                here, _, *sums = self._squares(f, span, [values[0], at, *values[2:]], step)
                further = f.at(values[1], f.mul(f.sub(following, first), size))
                advance([following, here, further, *sums])
            few, _, *sums = advance.results
            lines = f.at(lines, f.mul(f.and_(depths, int64(-together)), size))
        else:
            few, lines, *sums = self._squares(f, (int64(0), end), state, line)
        begin = f.and_(depths, int64(-together))
        buffer = f.alloca(self.element, self.lanes, CACHE_LINE)
        with f.carried_loop(begin, depths, int64(1), [few, lines, *sums], "rest") as (_, values, advance):
            here, at = values[:2]
            with f.loop(int64(0), int64(self.lanes), int64(1), "lane") as lane:
                element = f.load(self.element, f.at(at, f.mul(line, lane)), size)
                f.store(element, f.at(buffer, f.mul(lane, size)), size)
            sums = self._add(f, here, f.load(self.kind, buffer, CACHE_LINE), list(values[2:]))
            advance([f.at(here, FEW_LANES * size), f.at(at, size), *sums])
        few, lines, *sums = advance.results
        return sums, few, lines

    def _copy(self, f: Function, buffer: Value, lines: Value, line: Value) -> None:
        """Copies one cache line of each line, which share a set of L1 that has not room for all of them."""
        part = min(CACHE_LINE, self.kind.lanes * self.dtype.size)
        for lane in range(self.lanes):
            source = f.at(lines, f.mul(line, lane))
            for place in range(0, CACHE_LINE, part):
                vector = f.load(self.kind, f.at(source, place), self.dtype.size)
                f.store(vector, f.at(buffer, lane * CACHE_LINE + place), part)

    def _squares(
        self, f: Function, span: tuple[Value, Value], state: list[Value], line: Value
    ) -> list[Value]:
        """Depths of a span in squares: few, lines and sums before it, and behind it."""
        size, together = self.dtype.size, self.depths(f.module)
        few, lines, *sums = state
        beside = min(LINES_A_POINTER, self.lanes)
        far = {distance: f.freeze(f.mul(line, distance)) for distance in range(3, beside)}
        firsts = [f.at(lines, f.mul(line, first)) for first in range(0, self.lanes, LINES_A_POINTER)]
        few_step, line_step = together * FEW_LANES * size, together * size
        initial = [few, *firsts, *sums]
        with f.carried_loop(*span, int64(together), initial, "depths") as (_, values, advance):
            here, sums = values[0], list(values[1 + len(firsts) :])
            pointers = [f.freeze(pointer) for pointer in values[1 : 1 + len(firsts)]]
            runs = vector_of(self.element, together)
            steps = [far.get(distance, f.mul(line, distance)) for distance in range(beside)]
            read = [f.load(runs, f.at(pointer, step), size) for pointer in pointers for step in steps]
            for p, vector in enumerate(transpose(f, read)):
                sums = self._add(f, f.at(here, p * FEW_LANES * size), vector, sums)
            advance([f.at(here, few_step), *(f.at(pointer, line_step) for pointer in pointers), *sums])
        few, lines, *_ = advance.results
        return [few, lines, *advance.results[1 + len(firsts) :]]

    def _add(self, f: Function, few: Value, vector: Value, sums: list[Value]) -> list[Value]:
        """Adds one depth of the lines times each element of `few`."""
        size, found = self.dtype.size, []
        panel = f.mul(f.arguments["few_step"], size)
        for number, total in enumerate(sums):
            place = f.at(f.at(few, f.mul(panel, number // FEW_LANES)), number % FEW_LANES * size)
            element = f.splat(f.load(self.element, place, size), self.lanes)
            found.append(f.multiply_add(element, vector, total, fused=self.isa.fused))
        return found

    def _close(self, f: Function, begin: Value, sums: list[Value]) -> None:
        """Stores the sums of a chain, added to those of the chains before it."""
        g, size = f.arguments, self.dtype.size
        places = [f.at(g["sums"], f.mul(g["sums_step"], number * size)) for number in range(len(sums))]
        with f.once_if(f.icmp(">", begin, 0), sums) as (values, advance):
            before = [f.load(self.kind, place, size) for place in places]
            advance([f.plus(value, closed) for value, closed in zip(values, before, strict=True)])
        for value, place in zip(advance.results, places, strict=True):
            f.store(value, place, size)
