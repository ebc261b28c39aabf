"""What happens between finished sums and the store, where the sums were kept outside of C."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import (
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    constant,
    element_type,
    int64,
    vector_type,
    zero,
)
from tilewright.machine.isa import Isa
from tilewright.spec.dtype import DType


class Factors(NamedTuple):
    """The scalars alpha and beta of C = alpha · sums + beta · C."""

    alpha: Value
    beta: Value

    @classmethod
    def of_depth(cls, f: Function, dtype: DType) -> Factors:
        """Those of a function's arguments; alpha is not used where the depth is 0."""
        g = f.arguments
        empty = f.compare("==", g["depth"], 0)
        return cls(f.select(empty, constant(dtype, 1.0), g["alpha"]), g["beta"])


def store_sums(
    f: Function, factors: Factors, sums: list[Value], places: list[Value], align: int, *, fused: bool
) -> None:
    """C = alpha · sums + beta · C for some vectors or elements of C; C is not read when beta is 0."""

    def spread(factor: Value, like: Value) -> Value:
        return f.splat(factor, like.type.lanes) if like.type.lanes else factor

    values = [f.float_multiply(value, spread(factors.alpha, value)) for value in sums]
    with f.once_if(f.differs(factors.beta, zero(factors.beta.type)), values) as (given, advance):
        found = []
        for value, place in zip(given, places, strict=True):
            old = f.load(value.type, place, align)
            found.append(f.multiply_add(spread(factors.beta, value), old, value, fused=fused))
        advance(found)
    for value, place in zip(advance.results, places, strict=True):
        f.store(value, place, align)


class EpilogueKernel:
    """C[rows, columns] = alpha · sums + beta · C; rows of both are contiguous."""

    def __init__(self, isa: Isa, dtype: DType) -> None:
        self.isa, self.dtype = isa, dtype
        self.element = element_type(dtype)
        self.fused = isa.tile(dtype).fused

    @property
    def name(self) -> str:
        """The function's name in a module."""
        return f"epilogue_{self.dtype}"

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; the value to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        arguments = [
            ("rows", INT64),
            ("columns", INT64),
            ("c", POINTER),
            ("c_row", INT64),
            ("sums", POINTER),
            ("sums_row", INT64),
            ("alpha", self.element),
            ("beta", self.element),
        ]
        f = module.define(self.name, VOID, arguments)
        g, size = f.arguments, self.dtype.size
        lanes = self.isa.lanes(self.dtype)
        with f.loop(int64(0), g["rows"], int64(1), "row") as row:
            c, sums = (f.at(g[name], f.mul(f.mul(row, g[f"{name}_row"]), size)) for name in ("c", "sums"))
            done = int64(0)
            for kind, step in ((vector_type(self.dtype, lanes), lanes), (self.element, 1)):
                end = f.add(g["columns"], 1 - step)
                with f.carried_loop(done, end, int64(step), (done,), "column") as (column, _, advance):
                    at = f.mul(column, size)
                    self._one(f, kind, f.at(c, at), f.at(sums, at))
                    advance((f.add(column, step),))
                (done,) = advance.results
        f.ret()
        return f.callee

    def _one(self, f: Function, kind: Type, c: Value, sums: Value) -> None:
        """One vector, or one element."""
        g, size = f.arguments, self.dtype.size
        value = f.load(kind, sums, size)
        store_sums(f, Factors(g["alpha"], g["beta"]), [value], [c], size, fused=self.fused)
