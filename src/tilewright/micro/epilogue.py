"""What happens between finished sums and the store, where the sums were kept outside of C."""

from __future__ import annotations

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Type, Value, element_type, int64, vector_type, zero
from tilewright.machine.isa import Isa
from tilewright.spec.dtype import DType


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
        alpha, beta = (f.splat(g[name], kind.lanes) if kind.lanes else g[name] for name in ("alpha", "beta"))
        value = f.float_multiply(f.load(kind, sums, size), alpha)
        with f.once_if(f.differs(g["beta"], zero(self.element)), (value,)) as (values, advance):
            advance((f.multiply_add(beta, f.load(kind, c, size), values[0], fused=self.fused),))
        f.store(advance.results[0], c, size)
