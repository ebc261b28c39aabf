"""The kernel calls of one product: their arguments, memory, and threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from tilewright.compiler.interface import SCRATCH_ALIGNMENT
from tilewright.compiler.lowering.frame import LOCAL_ALIGNMENT
from tilewright.llvm.build import Function
from tilewright.llvm.matrix import MatrixAt, add_product, load_matrix, multiply_matrices, store_matrix
from tilewright.llvm.values import INT1, INT8, INT64, POINTER, VOID, Value, element_type, int64, null
from tilewright.loops.nests.nest import Factor, MatrixOperand, ProductDimension
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.loops.splice.arithmetic import MOST_COUNTED, Invariants, factor_value, least
from tilewright.loops.splice.call_loops import CallLoops, Write
from tilewright.loops.splice.conditions import Conditions
from tilewright.loops.splice.context import Context
from tilewright.loops.splice.kernels import EmbeddedKernel
from tilewright.loops.splice.plan import KernelChoice, KernelMatrix, KernelPlan
from tilewright.loops.splice.threads import close_team, open_team, team_of_call
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.epilogue import Residual
from tilewright.spec.problem import Layout
from tilewright.threads.pool import TEAM_WORK

#: Work of a call is counted up to this: its product with the number of calls does not overflow.
MOST_WORK = 1 << 40

TRUE = Value(INT1, "true")


class KernelCall:
    """The kernel calls of a product, in its function."""

    def __init__(
        self,
        f: Function,
        invariants: Invariants,
        plan: KernelPlan,
        counts: Mapping[ProductDimension, Value],
        context: Context,
    ) -> None:
        self.memory, self.teams = context.memory, context.teams
        self.f, self.invariants, self.plan, self.counts = f, invariants, plan, counts
        self.given: dict[str, Value] = {"scratch": null(), "br_stride_a": int64(0), "br_stride_b": int64(0)}
        for name, dimension in (("m", plan.m), ("n", plan.n), ("k", plan.k)):
            self.given[name] = int64(1) if dimension is None else counts[dimension]

    def strides(self, conditions: Conditions) -> None:
        """Strides in elements; strides in bytes must be multiples of the element size."""
        for matrix in self.plan.matrices:
            rows, columns = (
                int64(1) if stride is None else self._elements(stride, matrix, conditions)
                for stride in (matrix.rows, matrix.columns)
            )
            leading = columns if matrix.layout is Layout.COL else rows
            if matrix.name == "b" and self.plan.product.triangle is not None:
                rows, columns = columns, rows  # the kernel's B has C's rows too
            name = matrix.name
            self.given |= {f"rs_{name}": rows, f"cs_{name}": columns, f"ld_{name}": leading}
        if self.plan.product.finish:
            self._finish(conditions)

    def _finish(self, conditions: Conditions) -> None:
        """The operands of finishing steps; numbers go into memory."""
        problem, acc = self.plan.ways[-1].problem, self.plan.types.acc
        assert isinstance(problem, Gemm)
        steps = [one for one in self.plan.product.finish if one.operand is not None]
        for own, step in zip(problem.step_operands, steps, strict=True):
            match step.operand:
                case MatrixOperand() as operand:
                    place = self.invariants.address(operand.memory.base, operand.offset)
                    if isinstance(step.step, Residual):
                        matrix = KernelMatrix(own.name, operand, step.rows, step.columns)
                        for axis, stride in (("rs", step.rows), ("cs", step.columns)):
                            self.given[f"{axis}_{own.name}"] = self._elements(stride, matrix, conditions)
                case Factor() as factor:
                    place = self.f.alloca(element_type(acc), 1, acc.size)
                    self.f.store(factor_value(self.f, self.invariants, factor, acc), place, acc.size)
                case None:
                    continue
            self.given[own.name] = place

    def work(self) -> Value:
        """Multiply-adds of one call; above the thresholds the exact number does not matter."""
        sizes = [least(self.f, self.given[name], int64(MOST_COUNTED)) for name in ("m", "n", "k")]
        return self.f.mul(self.f.mul(sizes[0], sizes[1]), sizes[2])

    def _elements(self, stride: Polynomial, matrix: KernelMatrix, conditions: Conditions) -> Value:
        """A stride in elements."""
        f, size = self.f, matrix.dtype.size
        if all(coefficient % size == 0 for _, coefficient in stride.terms):
            terms = tuple((monomial, coefficient // size) for monomial, coefficient in stride.terms)
            return self.invariants.integer(Polynomial(terms), f)
        in_bytes = self.invariants.integer(stride, f)
        conditions.require(f.icmp("==", f.and_(in_bytes, int64(size - 1)), 0))
        return f.ashr(in_bytes, int64(size.bit_length() - 1))

    def write(self, work: Value, kernels: Sequence[tuple[KernelChoice, EmbeddedKernel]]) -> None:
        """Calls the first kernel suited to the amount of work, and returns true."""
        f, plan = self.f, self.plan
        for name, factor in (("alpha", plan.product.alpha), ("beta", plan.product.beta)):
            self.given[name] = factor_value(f, self.invariants, factor, plan.types.acc)
        loops = CallLoops.of(self.invariants, plan, self.counts, self.given)
        if plan.intrinsic:
            loops.write(f, lambda _, given, __: self._multiply(given))
            f.ret(TRUE)
            return
        *others, last = kernels
        for way, kernel in others:
            assert way.most_work is not None
            with f.when(f.icmp("<=", work, int64(way.most_work))):
                self._run(loops, way, kernel, work)
        self._run(loops, *last, work)

    def _run(self, loops: CallLoops, way: KernelChoice, kernel: EmbeddedKernel, work: Value) -> None:
        """Runs every call, and returns true; or false if there is no memory for panels.

        Little work has its panels in the frame. A team shares each call if these are large; else it shares
        the calls, if there are several.
        """
        f = self.f
        if self.teams is not None and loops.independent:
            self._run_tasks(loops, way, kernel, work)
        if way.most_work is not None:
            loops.with_arguments(team=null(), scratch=in_frame(f, kernel)).write(f, call_of(kernel))
            f.ret(TRUE)
            return
        with team_of_call(f, kernel, self.teams, work) as team, ExitStack() as some:
            scratch, done = null(), TRUE
            if kernel.scratch_bytes:
                scratch, done = some.enter_context(self._memory(team.scratch_bytes))
            loops.with_arguments(team=team.team, scratch=scratch).write(f, call_of(kernel))
        f.ret(done)

    def _run_tasks(self, loops: CallLoops, way: KernelChoice, kernel: EmbeddedKernel, work: Value) -> None:
        """Runs calls as tasks of a team, and returns true; goes on if there is none, or no memory for it."""
        f, calls, functions = self.f, loops.calls(self.f), self.teams
        assert functions is not None
        several = f.icmp("<", int64(1), calls)
        if kernel.takes_team:  # which large calls share
            several = f.and_(several, f.icmp("<=", work, TEAM_WORK))
        everything = f.mul(least(f, work, int64(MOST_WORK)), calls)
        with f.when(several), open_team(f, functions, everything) as (team, threads):
            if way.most_work is not None or not kernel.scratch_bytes:

                def write(g: Function, given: Mapping[str, Value], _: Value) -> None:
                    call_of(kernel)(g, {**given, "scratch": in_frame(g, kernel)}, _)

                loops.with_arguments(team=null()).write_tasks(f, team, work, write)
                close_team(f, functions, team)
                f.ret(TRUE)
                return
            each = whole_pages(kernel.scratch_bytes)

            def write_at(g: Function, given: Mapping[str, Value], thread: Value) -> None:
                scratch = g.at(given["scratch"], g.mul(thread, each))
                call_of(kernel)(g, {**given, "scratch": scratch}, thread)

            size = f.add(f.mul(threads, each), SCRATCH_ALIGNMENT)
            with self._memory(size) as (scratch, done):
                loops.with_arguments(team=null(), scratch=scratch).write_tasks(f, team, work, write_at)
            close_team(f, functions, team)
            with f.when(done):
                f.ret(TRUE)

    @contextmanager
    def _memory(self, size: Value) -> Iterator[tuple[Value, Value]]:
        """A block for panels; yields where it begins, and whether there is one: else what is inside does not
        run.
        """
        f = self.f
        block = f.call(f.module.declare(self.memory.allocate, POINTER, (INT64,)), [size])
        some = f.icmp("!=", block, null())
        with f.when(some):
            up = f.add(f.ptrtoint(block), SCRATCH_ALIGNMENT - 1)
            ahead = f.sub(f.and_(up, int64(-SCRATCH_ALIGNMENT)), f.ptrtoint(block))
            yield f.at(block, ahead), some
            if self.memory.release is not None:
                f.call(f.module.declare(self.memory.release, VOID, (POINTER,)), [block])

    def _multiply(self, pointers: Mapping[str, Value]) -> None:
        """The product as one `llvm.matrix.multiply` on whole matrices, loaded and stored by intrinsics."""
        f, (a, b, c), whole = self.f, self.plan.matrices, self.plan.ways[0].problem
        assert isinstance(whole, BatchReduceGemm)
        places = {
            one.name: MatrixAt(
                pointers[one.name], self.given[f"ld_{one.name}"], rows_adjacent=one.layout is Layout.COL
            )
            for one in (a, b, c)
        }
        kind = element_type(whole.dtype)
        left = load_matrix(f, kind, places["a"], (whole.m, whole.k))
        right = load_matrix(f, kind, places["b"], (whole.k, whole.n))
        product = multiply_matrices(f, left, right, (whole.m, whole.k, whole.n))
        if whole.beta:
            product = add_product(f, load_matrix(f, kind, places["c"], (whole.m, whole.n)), product)
        store_matrix(f, product, places["c"], (whole.m, whole.n))


def call_of(kernel: EmbeddedKernel) -> Write:
    """Writes a call of a kernel."""

    def write(f: Function, given: Mapping[str, Value], _: Value) -> None:
        callee = f.module.declare(kernel.name, VOID, [kind for _, kind in kernel.arguments])
        f.call(callee, [given[name] for name, _ in kernel.arguments])

    return write


def in_frame(f: Function, kernel: EmbeddedKernel) -> Value:
    """Memory for panels in the frame of a function; null for a kernel without."""
    size = kernel.scratch_bytes
    return f.alloca(INT8, size, LOCAL_ALIGNMENT) if size else null()


def whole_pages(size: int) -> int:
    """A number of bytes, rounded up to pages."""
    return -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
