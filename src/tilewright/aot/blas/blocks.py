"""Loops over single elements around the products: copies, scaling, and blocks on the diagonal of a triangle.

LLVM's optimiser makes vectors of the inner loops; all of them together touch each element of an operand a few
times, while products read it once for every block of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tilewright.aot.blas.elements import Element, ElementArithmetic
from tilewright.aot.blas.types import BlasType, StridedMatrix, view_of, view_parameters
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Type, Value, element_type, int64

#: Rows of the triangles that are multiplied or solved element by element: a 32nd of a triangle of 1024.
TRIANGLE_ROWS = 32
#: Columns of the right-hand sides that such a block takes at a time: its copy has 16 KiB of doubles.
TRIANGLE_COLUMNS = 64
#: Bytes of a square block of results on the stack, of which a triangle is then added to C.
SQUARE_BYTES = 1 << 15


def square_rows(dtype_bytes: int) -> int:
    """Rows of a block of results on the diagonal.

    >>> square_rows(4), square_rows(8), square_rows(16)
    (64, 64, 32)
    """
    return min(64, 1 << ((SQUARE_BYTES // dtype_bytes).bit_length() - 1) // 2)


class BlockCode:
    """Emits the functions of one type into a module, callees first."""

    def __init__(self, module: Module, kind: BlasType) -> None:
        self.module, self.kind = module, kind
        # Calls cost nothing beside what they do; inlined, functions take LLVM's optimiser longer.
        module.attributes += " noinline"
        self.part, self.parts = element_type(kind.dtype), 2 if kind.is_complex else 1
        self.size = kind.dtype.size
        self.scale = self.emit_scale()
        self.copy = self.emit_copy()
        self.expand = self.emit_expand()
        self.add_triangle = self.emit_add_triangle()

    # --- what functions are made of -----------------------------------------------------------------

    def scalars(self, *names: str) -> list[tuple[str, Type]]:
        """Parameters for scalars: one or two parts each."""
        parts = ("re", "im")[: self.parts]
        return [(f"{name}_{part}", self.part) for name in names for part in parts]

    def scalar(self, f: Function, name: str) -> Element:
        """A scalar that a function was given by `scalars`."""
        return tuple(f.arguments[f"{name}_{part}"] for part in ("re", "im")[: self.parts])

    def define(
        self,
        name: str,
        sizes: str,
        views: str,
        scalars: str = "",
        more: Sequence[tuple[str, Type]] = (),
    ) -> tuple[Function, list[Value], list[StridedMatrix], list[Element]]:
        """A function of sizes and flags, matrices, scalars and more."""
        arguments: list[tuple[str, Type]] = [(size, INT64) for size in sizes.split()]
        for view in views.split():
            arguments += view_parameters(view)
        f = self.module.define(name, VOID, [*arguments, *self.scalars(*scalars.split()), *more])
        given = [f.arguments[size] for size in sizes.split()]
        matrices = [view_of(f, view) for view in views.split()]
        return f, given, matrices, [self.scalar(f, one) for one in scalars.split()]

    def on(self, f: Function) -> ElementArithmetic:
        """Elements of the type in a function."""
        return ElementArithmetic(f, self.kind.dtype)

    @contextmanager
    def each(self, f: Function, rows: Value, columns: Value) -> Iterator[tuple[Value, Value]]:
        """A loop over rows and, inside, columns."""
        with (
            f.loop(int64(0), rows, int64(1), "row") as row,
            f.loop(int64(0), columns, int64(1), "column") as column,
        ):
            yield row, column

    def along_rows(
        self, f: Function, m: Value, n: Value, view: StridedMatrix
    ) -> tuple[Value, Value, StridedMatrix]:
        """Sizes and view such that the inner loop runs along the adjacent elements."""
        swap = f.icmp("==", view.row, 1)
        turned = view.transposed()
        pairs = zip(view.values, turned.values, strict=True)
        return (
            f.select(swap, n, m),
            f.select(swap, m, n),
            StridedMatrix(*(f.select(swap, b, a) for a, b in pairs)),
        )

    # --- functions ----------------------------------------------------------------------------------

    def emit_scale(self) -> Callee:
        """``scale(m, n, C, factor)``: C = factor * C; 0 does not read C, 1 does nothing."""
        f, (m, n), (c,), (factor,) = self.define("scale", "m n", "c", "factor")
        on = self.on(f)
        with f.when(on.equals(factor, 1.0)):
            f.ret()
        m, n, c = self.along_rows(f, m, n, c)
        with f.when(on.equals(factor, 0.0)):
            with self.each(f, m, n) as (i, j):
                on.store(on.constant(0.0), on.place(c, i, j))
            f.ret()
        with self.each(f, m, n) as (i, j):
            place = on.place(c, i, j)
            on.store(on.times(factor, on.load(place)), place)
        f.ret()
        return f.callee

    def emit_copy(self) -> Callee:
        """``copy(m, n, A, C, factor)``: C = factor * A, where C has adjacent columns."""
        f, (m, n), (a, c), (factor,) = self.define("copy", "m n", "a c", "factor")
        on = self.on(f)
        with self.each(f, m, n) as (i, j):
            on.store(on.times(factor, on.read(a, i, j)), on.place(c, i, j))
        f.ret()
        return f.callee

    def emit_expand(self) -> Callee:
        """``expand(n, lower, hermitian, A, C)``: the whole of a matrix of which a triangle is stored."""
        f, (n, lower, hermitian), (a, c), _ = self.define("expand", "n lower hermitian", "a c")
        on = self.on(f)
        sign = on.sign(hermitian)
        with f.loop(int64(0), n, int64(1), "row") as i:
            left = f.select(f.icmp("!=", lower, 0), int64(0), i)
            right = f.select(f.icmp("!=", lower, 0), i, n)
            with f.loop(left, right, int64(1), "stored") as j:
                element = on.read(a, i, j)
                on.store(element, on.place(c, i, j))
                on.store(on.conjugate(element, sign), on.place(c, j, i))
        with f.loop(int64(0), n, int64(1), "diagonal") as i:
            element = on.read(a, i, i)
            on.store(self.real_if(on, hermitian, element), on.place(c, i, i))
        f.ret()
        return f.callee

    def real_if(self, on: ElementArithmetic, flag: Value, element: Element) -> Element:
        """The real part where the flag is 1: on the diagonal of a Hermitian matrix."""
        real = (element[0], *on.constant(0.0)[1:])
        return on.select(on.f.icmp("!=", flag, 0), real, element)

    def emit_add_triangle(self) -> Callee:
        """``add_triangle(n, lower, hermitian, A, C, beta)``: C = A + beta * C on one triangle."""
        f, (n, lower, hermitian), (a, c), (beta,) = self.define(
            "add_triangle", "n lower hermitian", "a c", "beta"
        )
        on = self.on(f)
        unread = on.equals(beta, 0.0)
        with f.loop(int64(0), n, int64(1), "row") as i:
            left = f.select(f.icmp("!=", lower, 0), int64(0), i)
            right = f.select(f.icmp("!=", lower, 0), f.add(i, 1), n)
            with f.loop(left, right, int64(1), "column") as j:
                place = on.place(c, i, j)
                before = on.select(unread, on.constant(0.0), on.times(beta, on.load(place)))
                on.store(on.plus(on.read(a, i, j), before), place)
            place = on.place(c, i, i)
            on.store(self.real_if(on, hermitian, on.load(place)), place)
        f.ret()
        return f.callee

    def emit_triangle_block(self, *, solving: bool) -> Callee:
        """``..._block(m, n, lower, unit, T, X)``: X = T * X, or the solution of T * Y = X, for few rows.

        Nothing is multiplied by the zeros beyond the triangle, so that no infinity there becomes a NaN.
        """
        name = "solve_block" if solving else "multiply_block"
        f, (m, n, lower, unit), (t, x), _ = self.define(name, "m n lower unit", "t x")
        on = self.on(f)
        buffer = f.alloca(on.part, TRIANGLE_ROWS * TRIANGLE_COLUMNS * on.parts, 64)
        w = StridedMatrix(buffer, int64(TRIANGLE_COLUMNS), int64(1), int64(0))
        is_lower, is_unit = f.icmp("!=", lower, 0), f.icmp("!=", unit, 0)
        down = is_lower if solving else f.not_(is_lower)
        with f.loop(int64(0), n, int64(TRIANGLE_COLUMNS), "first") as first:
            columns = f.minimum(int64(TRIANGLE_COLUMNS), f.sub(n, first))
            source = x.part(f, int64(0), first, self.size)
            with self.each(f, m, columns) as (i, j):
                on.store(on.read(source, i, j), on.place(w, i, j))
            with f.loop(int64(0), m, int64(1), "step") as step:
                i = f.select(down, step, f.sub(f.sub(m, 1), step))
                begin = f.select(is_lower, int64(0), f.add(i, 1))
                end = f.select(is_lower, i, m)
                if not solving:
                    self.by_diagonal(on, t, w, i, columns, is_unit, solving=False)
                with f.loop(begin, end, int64(1), "depth") as p:
                    factor = on.read(t, i, p)
                    with f.loop(int64(0), columns, int64(1), "column") as j:
                        place = on.place(w, i, j)
                        product = on.times(factor, on.load(on.place(w, p, j)))
                        combine = on.minus if solving else on.plus
                        on.store(combine(on.load(place), product), place)
                if solving:
                    self.by_diagonal(on, t, w, i, columns, is_unit, solving=True)
            with self.each(f, m, columns) as (i, j):
                on.store(on.load(on.place(w, i, j)), on.place(source, i, j))
        f.ret()
        return f.callee

    def by_diagonal(
        self,
        on: ElementArithmetic,
        t: StridedMatrix,
        w: StridedMatrix,
        i: Value,
        columns: Value,
        is_unit: Value,
        *,
        solving: bool,
    ) -> None:
        """Multiplies or divides a row of a block by the element on the diagonal, unless that is 1."""
        f = on.f
        with f.when(f.not_(is_unit)):
            factor = on.read(t, i, i)
            with f.loop(int64(0), columns, int64(1), "column") as j:
                place = on.place(w, i, j)
                row = on.load(place)
                on.store(on.divide(row, factor) if solving else on.times(factor, row), place)


def allocated(f: Function, count: Value, size: int) -> Value:
    """Memory for elements, which `free` returns; the library ends the process where there is none."""
    allocate = f.module.declare("tilewright_blas_allocate", POINTER, (INT64,))
    return f.call(allocate, [f.mul(count, size)])


def release(f: Function, pointer: Value) -> None:
    """Returns memory."""
    f.call(f.module.declare("free", VOID, (POINTER,)), [pointer])
