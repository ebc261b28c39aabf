"""The level-3 operations of one type on one target: recursions whose work is done by the product kernel.

Every matrix is a `StridedMatrix`, so a transpose, a side or a storage order is a matter of strides, and each
operation is written once. Triangles are halved until a block on the diagonal is small; all that is beside the
diagonal is one product for each half, and those are large.
"""

from __future__ import annotations

from tilewright.aot.blas.blocks import (
    TRIANGLE_ROWS,
    BlockCode,
    allocated,
    release,
    square_rows,
)
from tilewright.aot.blas.elements import Element
from tilewright.aot.blas.product import KernelUse, emit_product
from tilewright.aot.blas.types import PREFIX, BlasType, Job, StridedMatrix, job_view
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import POINTER, VOID, Value, int64
from tilewright.machine.machine import Machine
from tilewright.threads.system_code import FieldAccess


def operations_of(kind: BlasType) -> tuple[str, ...]:
    """What is exported for a type, and dispatched by the CPU."""
    if kind.operands is not None:
        return ("gemm",)
    return ("gemm", "update", "symmetric", "multiply_triangle", "solve_triangle")


#: Rows of the blocks on the diagonal of a symmetric matrix that are copied whole.
SYMMETRIC_ROWS = 128
#: Depths, and rows or columns, of a conjugated or scaled copy of a complex factor: at most 16 MiB.
COPIED_DEPTHS, COPIED_ROWS = 256, 4096


def operation_name(operation: str, kind: BlasType) -> str:
    """The symbol of an operation, which is dispatched."""
    return f"{PREFIX}_{operation}_{kind.name}"


class CoreCode(BlockCode):
    """Emits the operations of one type.

    Parameters
    ----------
    kind : the type.
    machine : the target.
    suffix : what the exported names end with.
    kernel : its product.
    """

    def __init__(self, kind: BlasType, machine: Machine, suffix: str, kernel: KernelUse) -> None:
        module = Module(f"{PREFIX}_{kind.letter}", machine.triple, data_layout(machine))
        super().__init__(module, kind)
        self.suffix = suffix
        self.product = emit_product(self, kernel, self.part)
        self.gemm = self.emit_complex_gemm() if kind.is_complex else self.product
        self.export("gemm", self.gemm, "m n k", "a b c")
        if operations_of(kind) == ("gemm",):
            return
        self.update = self.emit_update(self.emit_update_block())
        self.symmetric = self.emit_symmetric()
        self.multiply = self.emit_triangle(self.emit_triangle_block(solving=False), solving=False)
        self.solve = self.emit_triangle(self.emit_triangle_block(solving=True), solving=True)
        self.emit_exports()

    # --- products -----------------------------------------------------------------------------------

    def emit_complex_gemm(self) -> Callee:
        """``gemm(m, n, k, A, B, C, alpha, beta)`` of complex matrices.

        The kernel has real factors and does not conjugate. What is conjugated is copied, and alpha is applied
        to a copy too; beta is applied to C beforehand.
        """
        f, (m, n, k), (a, b, c), (alpha, beta) = self.define("gemm", "m n k", "a b c", "alpha beta")
        on = self.on(f)
        none = f.or_(on.equals(alpha, 0.0), f.icmp("<=", k, 0))
        with f.when(f.or_(none, f.not_(on.is_real(beta)))):
            f.call(self.scale, [m, n, *c.values, *beta])
        with f.when(none):
            f.ret()
        left = f.select(on.is_real(beta), beta[0], on.constant(1.0)[0])
        conjugated_a, conjugated_b = (f.icmp("!=", one.conjugated, 0) for one in (a, b))
        scaled = f.not_(on.is_real(alpha))
        copies_a = f.or_(conjugated_a, f.and_(scaled, f.not_(conjugated_b)))
        with f.when(f.not_(f.or_(copies_a, conjugated_b))):
            f.call(self.product, [m, n, k, *a.values, *b.values, *c.values, alpha[0], left])
            f.ret()
        one = on.constant(1.0)
        # Alpha is applied once: to the copy of A if there is one.
        for_a, for_b = on.select(copies_a, alpha, one), on.select(copies_a, one, alpha)
        space = int64(COPIED_DEPTHS * COPIED_ROWS)
        copy_a, copy_b = allocated(f, space, self.size), allocated(f, space, self.size)
        steps = [int64(COPIED_ROWS), int64(COPIED_DEPTHS)]
        with (
            f.loop(int64(0), n, steps[0], "columns") as j,
            f.loop(int64(0), k, steps[1], "depths") as p,
        ):
            columns, depths = f.minimum(steps[0], f.sub(n, j)), f.minimum(steps[1], f.sub(k, p))
            used_b = self.copied(
                f, b.part(f, p, j, self.size), (depths, columns), copy_b, conjugated_b, for_b
            )
            first = f.select(f.icmp("==", p, 0), left, one[0])
            with f.loop(int64(0), m, steps[0], "rows") as i:
                rows = f.minimum(steps[0], f.sub(m, i))
                used_a = self.copied(f, a.part(f, i, p, self.size), (rows, depths), copy_a, copies_a, for_a)
                target = c.part(f, i, j, self.size)
                f.call(
                    self.product,
                    [rows, columns, depths, *used_a.values, *used_b.values, *target.values, one[0], first],
                )
        release(f, copy_a)
        release(f, copy_b)
        f.ret()
        return f.callee

    def copied(
        self,
        f: Function,
        view: StridedMatrix,
        sizes: tuple[Value, Value],
        memory: Value,
        wanted: Value,
        factor: Element,
    ) -> StridedMatrix:
        """A copy of a block, conjugated and scaled as it says, if one is wanted; else the block."""
        rows, columns = sizes
        copy = StridedMatrix(memory, columns, int64(1), int64(0))
        with f.when(wanted):
            f.call(self.copy, [rows, columns, *view.values, *copy.values, *factor])
        pairs = zip(copy.values, view.values, strict=True)
        return StridedMatrix(*(f.select(wanted, x, y) for x, y in pairs))

    # --- triangles ----------------------------------------------------------------------------------

    def half(self, f: Function, n: Value, unit: int) -> Value:
        """About a half, in whole blocks; n is larger than one block.

        Before: n = 100, unit = 32. After: 64.
        """
        blocks = f.udiv(f.add(n, 2 * unit - 1), int64(2 * unit))
        return f.mul(blocks, unit)

    def emit_update_block(self) -> Callee:
        """``update_block(n, k, lower, hermitian, A, B, C, alpha, beta)``: one block on the diagonal."""
        f, (n, k, lower, hermitian), (a, b, c), (alpha, beta) = self.define(
            "update_block", "n k lower hermitian", "a b c", "alpha beta"
        )
        on, rows = self.on(f), square_rows(self.size)
        buffer = f.alloca(on.part, rows * rows * on.parts, 64)
        square = StridedMatrix(buffer, int64(rows), int64(1), int64(0))
        zero = on.constant(0.0)
        f.call(self.gemm, [n, n, k, *a.values, *b.values, *square.values, *alpha, *zero])
        f.call(self.add_triangle, [n, lower, hermitian, *square.values, *c.values, *beta])
        f.ret()
        return f.callee

    def emit_update(self, block: Callee) -> Callee:
        """``update(n, k, lower, hermitian, A, B, C, alpha, beta)``: a triangle of C = alpha A B + beta C."""
        f, (n, k, lower, hermitian), (a, b, c), (alpha, beta) = self.define(
            "update", "n k lower hermitian", "a b c", "alpha beta"
        )
        unit, factors, zero = square_rows(self.size), [*alpha, *beta], int64(0)
        with f.when(f.icmp("<=", n, unit)):
            f.call(block, [n, k, lower, hermitian, *a.values, *b.values, *c.values, *factors])
            f.ret()
        h = self.half(f, n, unit)
        rest = f.sub(n, h)
        for begin, size in ((zero, h), (h, rest)):
            corners = ((a, begin, zero), (b, zero, begin), (c, begin, begin))
            views = [view.part(f, row, column, self.size) for view, row, column in corners]
            values = [value for view in views for value in view.values]
            f.call(f.callee, [size, k, lower, hermitian, *values, *factors])
        is_lower = f.icmp("!=", lower, 0)
        i, j = f.select(is_lower, h, zero), f.select(is_lower, zero, h)
        rows, columns = f.select(is_lower, rest, h), f.select(is_lower, h, rest)
        views = [
            view.part(f, row, column, self.size)
            for view, row, column in ((a, i, zero), (b, zero, j), (c, i, j))
        ]
        values = [value for view in views for value in view.values]
        f.call(self.gemm, [rows, columns, k, *values, *factors])
        f.ret()
        return f.callee

    def emit_symmetric(self) -> Callee:
        """``symmetric(m, n, lower, hermitian, A, B, C, alpha, beta)``: A is stored as a triangle."""
        f, (m, n, lower, hermitian), (a, b, c), (alpha, beta) = self.define(
            "symmetric", "m n lower hermitian", "a b c", "alpha beta"
        )
        on, zero = self.on(f), int64(0)
        with f.when(f.icmp("<=", m, SYMMETRIC_ROWS)):
            memory = allocated(f, f.mul(m, m), self.size)
            whole = StridedMatrix(memory, m, int64(1), zero)
            f.call(self.expand, [m, lower, hermitian, *a.values, *whole.values])
            operands = [*whole.values, *b.values, *c.values]
            f.call(self.gemm, [m, n, m, *operands, *alpha, *beta])
            release(f, memory)
            f.ret()
        h = self.half(f, m, SYMMETRIC_ROWS)
        rest = f.sub(m, h)
        b_parts, c_parts = ([x.part(f, begin, zero, self.size) for begin in (zero, h)] for x in (b, c))
        for number, (begin, size) in enumerate(((zero, h), (h, rest))):
            operands = [*a.part(f, begin, begin, self.size).values]
            operands += [*b_parts[number].values, *c_parts[number].values]
            f.call(f.callee, [size, n, lower, hermitian, *operands, *alpha, *beta])
        # The stored block beside the diagonal, as the one below it, and its mirror image.
        is_lower, one = f.icmp("!=", lower, 0), on.constant(1.0)
        stored = a.part(f, f.select(is_lower, h, zero), f.select(is_lower, zero, h), self.size)
        mirrored = stored.transposed().conjugate_if(f, hermitian)
        pairs = list(zip(stored.values, mirrored.values, strict=True))
        below = [f.select(is_lower, x, y) for x, y in pairs]
        above = [f.select(is_lower, y, x) for x, y in pairs]
        for rows, depth, left, right, target in (
            (rest, h, below, b_parts[0], c_parts[1]),
            (h, rest, above, b_parts[1], c_parts[0]),
        ):
            operands = [*left, *right.values, *target.values]
            f.call(self.gemm, [rows, n, depth, *operands, *alpha, *one])
        f.ret()
        return f.callee

    def emit_triangle(self, block: Callee, *, solving: bool) -> Callee:
        """``multiply/solve(m, n, lower, unit, T, X)``: X = T X in place, or the solution of T X' = X."""
        name = "solve" if solving else "multiply"
        f, (m, n, lower, unit), (t, x), _ = self.define(name, "m n lower unit", "t x")
        on, zero = self.on(f), int64(0)
        with f.when(f.icmp("<=", m, TRIANGLE_ROWS)):
            f.call(block, [m, n, lower, unit, *t.values, *x.values])
            f.ret()
        h = self.half(f, m, TRIANGLE_ROWS)
        is_lower = f.icmp("!=", lower, 0)
        # The half that depends on no other one, then the half that depends on it.
        first, last = f.select(is_lower, zero, h), f.select(is_lower, h, zero)
        first_rows = f.select(is_lower, h, f.sub(m, h))
        halves = [
            (first, first_rows, x.part(f, first, zero, self.size)),
            (last, f.sub(m, first_rows), x.part(f, last, zero, self.size)),
        ]

        def diagonal(number: int) -> None:
            begin, rows, part = halves[number]
            corner = t.part(f, begin, begin, self.size)
            f.call(f.callee, [rows, n, lower, unit, *corner.values, *part.values])

        diagonal(0 if solving else 1)
        beside = t.part(f, last, first, self.size)
        operands = [*beside.values, *halves[0][2].values, *halves[1][2].values]
        sign, one = on.constant(-1.0 if solving else 1.0), on.constant(1.0)
        f.call(self.gemm, [halves[1][1], n, first_rows, *operands, *sign, *one])
        diagonal(1 if solving else 0)
        f.ret()
        return f.callee

    # --- exports ------------------------------------------------------------------------------------

    def emit_exports(self) -> None:
        """The operations on triangles as functions of a `Job`."""
        self.export("update", self.update, "n k lower hermitian", "a b c")
        self.export("symmetric", self.symmetric, "m n lower hermitian", "a b c")
        self.export("multiply_triangle", self.multiply, "m n lower unit", "a c")
        self.export("solve_triangle", self.solve, "m n lower unit", "a c")

    def export(self, operation: str, callee: Callee, sizes: str, views: str) -> None:
        """One operation; that on a triangle in place scales its matrix by alpha first."""
        name = f"{operation_name(operation, self.kind)}{self.suffix}"
        f = self.module.define(name, VOID, [("job", POINTER)], exported=True)
        w, job, on = FieldAccess(f), f.arguments["job"], self.on(f)
        given = [w.get(job, Job, size) for size in sizes.split()]
        matrices = {view: job_view(w, job, view) for view in views.split()}
        values = [value for view in matrices.values() for value in view.values]
        alpha = on.scalar(w, job, "alpha")
        if "b" in matrices:
            factors = [*alpha, *on.scalar(w, job, "beta")]
            f.call(callee, [*given, *values, *factors])
        else:
            f.call(self.scale, [*given[:2], *matrices["c"].values, *alpha])
            with f.when(f.not_(on.equals(alpha, 0.0))):
                f.call(callee, [*given, *values])
        f.ret()
