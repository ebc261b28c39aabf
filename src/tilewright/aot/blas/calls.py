"""From the arguments of a routine to a call of an operation: one function for each form of routine."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.aot.blas.core import operation_name
from tilewright.aot.blas.elements import Element, ElementArithmetic
from tilewright.aot.blas.routines import Routine
from tilewright.aot.blas.types import JOB_WORDS, BlasType, Job, StridedMatrix
from tilewright.llvm.build import Function
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64
from tilewright.records import dataclass
from tilewright.threads.system_code import FieldAccess


@dataclass(frozen=True)
class Call:
    """The checked arguments of a column-major call, as values of one function."""

    f: Function
    routine: Routine
    kind: BlasType
    given: Mapping[str, Value]

    @property
    def on(self) -> ElementArithmetic:
        """Elements of its type."""
        return ElementArithmetic(self.f, self.kind.dtype)

    def flag(self, name: str) -> Value:
        """Whether a flag has its second value: transposed, right, lower, unit diagonal."""
        return self.f.icmp("!=", self.given[name], 0)

    def stored(self, name: str) -> StridedMatrix:
        """A matrix as it is stored, column-major."""
        return StridedMatrix(self.given[name], int64(1), self.given[f"ld{name}"], int64(0))

    def choose(self, condition: Value, then: StridedMatrix, otherwise: StridedMatrix) -> StridedMatrix:
        """One view or the other."""
        pairs = zip(then.values, otherwise.values, strict=True)
        return StridedMatrix(*(self.f.select(condition, x, y) for x, y in pairs))

    def operated(self, name: str, transpose: str) -> StridedMatrix:
        """op(A): the matrix, its transpose or its conjugate transpose."""
        plain = self.stored(name)
        found = self.choose(self.flag(transpose), plain.transposed(), plain)
        if not self.kind.is_complex:
            return found
        return found.conjugate_if(self.f, self.one_if(self.f.icmp("==", self.given[transpose], 2)))

    def one_if(self, condition: Value) -> Value:
        """A condition as 0 or 1."""
        return self.f.select(condition, int64(1), int64(0))

    def scalar(self, name: str) -> Element:
        """A scalar, from its address."""
        on = self.on
        found = on.load(self.given[name]) if name not in self.routine.real else None
        if found is None:
            real = self.f.load(on.part, self.given[name], on.part_bytes)
            found = (real, *on.constant(0.0)[1:])
        return found

    def done_if(self, condition: Value) -> None:
        """A quick return."""
        with self.f.when(condition):
            self.f.ret(int64(0))

    def done_if_unchanged(self, *sizes: str) -> None:
        """Quick returns of C = alpha ... + beta C: C has no elements, or stays as it is."""
        f, on = self.f, self.on
        for size in sizes:
            self.done_if(f.icmp("==", self.given[size], 0))
        none = on.equals(self.scalar("alpha"), 0.0)
        if "k" in self.given:
            none = f.or_(none, f.icmp("==", self.given["k"], 0))
        self.done_if(f.and_(none, on.equals(self.scalar("beta"), 1.0)))

    def run(
        self,
        operation: str,
        numbers: Mapping[str, Value],
        views: Mapping[str, StridedMatrix],
        **scalars: Element,
    ) -> None:
        """Calls an operation with a job."""
        f, w = self.f, FieldAccess(self.f)
        job = f.alloca(INT64, JOB_WORDS, 16)
        for name, value in numbers.items():
            w.put(value, job, Job, name)
        for name, view in views.items():
            f.store(view.pointer, w.place(job, Job, name), 8)
            for part in ("row", "column", "conjugated"):
                w.put(getattr(view, part), job, Job, f"{name}_{part}")
        for name, element in scalars.items():
            self.on.put_scalar(w, job, name, element)
        f.call(f.module.declare(operation_name(operation, self.kind), VOID, (POINTER,)), [job])


def _gemm(call: Call) -> None:
    """C = alpha op(A) op(B) + beta C, of a batch too."""
    f, given = call.f, call.given
    call.done_if_unchanged("m", "n")
    numbers = {name: given[name] for name in ("m", "n", "k")}
    views = {"a": call.operated("a", "transa"), "b": call.operated("b", "transb"), "c": call.stored("c")}
    factors = {"alpha": call.scalar("alpha"), "beta": call.scalar("beta")}
    if "batch" not in given:
        call.run("gemm", numbers, views, **factors)
        return
    with f.loop(int64(0), given["batch"], int64(1), "member") as member:
        moved = {}
        for name, view in views.items():
            offset = f.mul(f.mul(member, given[f"stride{name}"]), call.kind.dtype.size)
            moved[name] = StridedMatrix(f.at(view.pointer, offset), view.row, view.column, view.conjugated)
        call.run("gemm", numbers, moved, **factors)


def _update_numbers(call: Call) -> dict[str, Value]:
    numbers = {"n": call.given["n"], "k": call.given["k"], "lower": call.given["uplo"]}
    return numbers | {"hermitian": int64(int(call.routine.hermitian))}


def _gemmt(call: Call) -> None:
    """One triangle of C = alpha op(A) op(B) + beta C."""
    call.done_if_unchanged("n")
    views = {"a": call.operated("a", "transa"), "b": call.operated("b", "transb"), "c": call.stored("c")}
    factors = {"alpha": call.scalar("alpha"), "beta": call.scalar("beta")}
    call.run("update", _update_numbers(call), views, **factors)


def _adjoint(call: Call, view: StridedMatrix) -> StridedMatrix:
    """The transpose, of a Hermitian routine the conjugate transpose."""
    return view.transposed().conjugate_if(call.f, int64(int(call.routine.hermitian)))


def _syrk(call: Call) -> None:
    """One triangle of C = alpha A Aᵀ + beta C, or of alpha Aᵀ A + beta C."""
    call.done_if_unchanged("n")
    a = call.operated("a", "trans")
    if call.kind.is_complex and not call.routine.hermitian:
        a = StridedMatrix(a.pointer, a.row, a.column, int64(0))
    views = {"a": a, "b": _adjoint(call, a), "c": call.stored("c")}
    factors = {"alpha": call.scalar("alpha"), "beta": call.scalar("beta")}
    call.run("update", _update_numbers(call), views, **factors)


def _syr2k(call: Call) -> None:
    """One triangle of C = alpha A Bᵀ + alpha B Aᵀ + beta C, conjugated as Hermitian matrices are."""
    call.done_if_unchanged("n")
    on, alpha = call.on, call.scalar("alpha")
    a, b = (call.operated(name, "trans") for name in "ab")
    numbers, c = _update_numbers(call), call.stored("c")
    call.run(
        "update", numbers, {"a": a, "b": _adjoint(call, b), "c": c}, alpha=alpha, beta=call.scalar("beta")
    )
    call.done_if(on.equals(alpha, 0.0))
    other = on.conjugate(alpha, on.constant(-1.0)[0]) if call.routine.hermitian else alpha
    views = {"a": b, "b": _adjoint(call, a), "c": c}
    call.run("update", numbers, views, alpha=other, beta=on.constant(1.0))


def _symm(call: Call) -> None:
    """C = alpha A B + beta C or alpha B A + beta C, as a product from the left of transposes."""
    call.done_if_unchanged("m", "n")
    f, given, right = call.f, call.given, call.flag("side")
    lower = f.xor(given["uplo"], call.one_if(right))
    m, n = f.select(right, given["n"], given["m"]), f.select(right, given["m"], given["n"])
    numbers = {"m": m, "n": n, "lower": lower, "hermitian": int64(int(call.routine.hermitian))}
    stored = {name: call.stored(name) for name in "abc"}
    views = {name: call.choose(right, view.transposed(), view) for name, view in stored.items()}
    call.run("symmetric", numbers, views, alpha=call.scalar("alpha"), beta=call.scalar("beta"))


def _triangle(operation: str) -> Callable[[Call], None]:
    """B = alpha op(A) B or alpha B op(A), or the solution X of op(A) X = alpha B or X op(A) = alpha B."""

    def fill(call: Call) -> None:
        f, given, right = call.f, call.given, call.flag("side")
        for size in ("m", "n"):
            call.done_if(f.icmp("==", given[size], 0))
        lower = f.xor(given["uplo"], call.one_if(call.flag("transa")))
        lower = f.xor(lower, call.one_if(right))
        m, n = f.select(right, given["n"], given["m"]), f.select(right, given["m"], given["n"])
        numbers = {"m": m, "n": n, "lower": lower, "unit": given["diag"]}
        matrices = {"a": call.operated("a", "transa"), "c": call.stored("b")}
        views = {name: call.choose(right, view.transposed(), view) for name, view in matrices.items()}
        call.run(operation, numbers, views, alpha=call.scalar("alpha"))

    return fill


#: The call of each form of routine.
FORMS: dict[str, Callable[[Call], None]] = {
    "gemm": _gemm,
    "gemmt": _gemmt,
    "symm": _symm,
    "syrk": _syrk,
    "syr2k": _syr2k,
    "trmm": _triangle("multiply_triangle"),
    "trsm": _triangle("solve_triangle"),
}
