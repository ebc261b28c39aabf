"""What happens between finished sums and the store, where the sums were kept outside of C."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    constant,
    element_type,
    int64,
    memory_type,
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
    def of_depth(cls, f: Function, acc: DType) -> Factors:
        """Those of a function's arguments; alpha is not used where the depth is 0."""
        g = f.arguments
        empty = f.compare("==", g["depth"], 0)
        return cls(f.select(empty, constant(acc, 1), g["alpha"]), g["beta"])


def store_sums(
    f: Function,
    isa: Isa,
    factors: Factors,
    sums: list[Value],
    places: list[Value],
    types: tuple[DType, DType],
) -> None:
    """C = alpha · sums + beta · C for some vectors or elements of C; C is not read when beta is 0.

    `types` are those of the sums and of C.
    """
    acc, c = types
    convert = Convert(f, half=isa.half)

    def spread(factor: Value, like: Value) -> Value:
        return f.splat(factor, like.type.lanes) if like.type.lanes else factor

    values = [f.times(value, spread(factors.alpha, value)) for value in sums]
    with f.once_if(f.differs(factors.beta, zero(factors.beta.type)), values) as (given, advance):
        found = []
        for value, place in zip(given, places, strict=True):
            lanes = value.type.lanes
            old = f.load(vector_type(c, lanes) if lanes else memory_type(c), place, c.size)
            old = convert(old, c, acc)
            found.append(f.multiply_add(spread(factors.beta, value), old, value, fused=isa.fused))
        advance(found)
    for value, place in zip(advance.results, places, strict=True):
        f.store(convert(value, acc, c), place, c.size)


class EpilogueKernel:
    """C[rows, columns] = alpha · sums + beta · C; rows of both are contiguous.

    Parameters
    ----------
    isa : the row.
    acc, c : element types of the sums and of C.
    """

    def __init__(self, isa: Isa, acc: DType, c: DType) -> None:
        self.isa, self.acc, self.c = isa, acc, c
        self.element = element_type(acc)

    @property
    def name(self) -> str:
        """The function's name in a module."""
        return f"epilogue_{self.acc}_{self.c}"

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
        g, sizes = f.arguments, {"c": self.c.size, "sums": self.acc.size}
        lanes = self.isa.lanes(self.acc)
        with f.loop(int64(0), g["rows"], int64(1), "row") as row:
            c, sums = (f.at(g[name], f.mul(f.mul(row, g[f"{name}_row"]), sizes[name])) for name in sizes)
            done = int64(0)
            for kind, step in ((vector_type(self.acc, lanes), lanes), (self.element, 1)):
                end = f.add(g["columns"], 1 - step)
                with f.carried_loop(done, end, int64(step), (done,), "column") as (column, _, advance):
                    self._one(
                        f, kind, *(f.at(p, f.mul(column, sizes[n])) for p, n in ((c, "c"), (sums, "sums")))
                    )
                    advance((f.add(column, step),))
                (done,) = advance.results
        f.ret()
        return f.callee

    def _one(self, f: Function, kind: Type, c: Value, sums: Value) -> None:
        """One vector, or one element."""
        g = f.arguments
        value = f.load(kind, sums, self.acc.size)
        store_sums(f, self.isa, Factors(g["alpha"], g["beta"]), [value], [c], (self.acc, self.c))
