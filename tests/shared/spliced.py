"""Functions whose loop only says that it ran: what is spliced in front of it is all that computes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from shares import EVERY_TEST_RUNS

from tilewright.llvm.jit import Linked
from tilewright.llvm.target import CODEGEN_LEVEL, QUICK_LEVEL, data_layout, parse, target_machine
from tilewright.loops.llvm.symbols import Found, NestLocation, SsaValue
from tilewright.loops.nests.nest import (
    Condition,
    Disjoint,
    Extent,
    Factor,
    MatrixOperand,
    MatrixProduct,
    MemoryObject,
    ProductDimension,
    Where,
)
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.opt.records import ProductOptions
from tilewright.loops.splice.plan import ProductStrategy
from tilewright.loops.splice.splice import Splicer
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.preparing import preparing
from tilewright.spec.dtype import U8, DType
from tilewright.spec.roles import DimensionRole

#: The arguments of a function of a test: name, type. The loop sets what %ran points to.
_FUNCTION = """define i64 @f({arguments}, ptr %ran) {{
entry:
  br label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  store i64 1, ptr %ran, align 8
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 3
  br i1 %more, label %loop, label %done

done:                                             ; preds = %loop
  %end = phi i64 [ %next, %loop ]
  ret i64 %end
}}
"""
#: What the loop of `_FUNCTION` returns.
LOOP_RETURNS = 3
#: What new code returns instead.
SPLICED_RETURNS = 7

PLACE = NestLocation("f", "entry", "loop", "done", (("%end", Polynomial.of(SPLICED_RETURNS)),))
WHERE = Where("f", 1)


def value(name: str, kind: str = "i64", *, signed: bool = True) -> SsaValue:
    """An argument as a symbol."""
    return SsaValue.of(f"%{name}", kind, signed=signed)


def dimension(
    role: DimensionRole, extent: Polynomial | Symbol | int, a: Any, b: Any, c: Any
) -> ProductDimension:
    """A dimension whose operands move by so many bytes."""
    strides = (Polynomial.of(one) for one in (a, b, c))
    return ProductDimension(role, Index(role.value), Extent.of(Polynomial.of(extent)), *strides)


def operand(
    name: str, dtype: DType | None, offset: Polynomial | int = 0, *, private: bool = False
) -> MatrixOperand:
    """A matrix behind a pointer argument."""
    return MatrixOperand(MemoryObject(value(name, "ptr"), name, private), Polynomial.of(offset), dtype)


def gemm(
    dtype: DType,
    sizes: Sequence[Polynomial | Symbol | int],
    strides: Sequence[Polynomial | Symbol | int],
    *,
    alpha: Factor | None = None,
    beta: Factor | None = None,
    conditions: tuple[Condition, ...] = (Disjoint("a"), Disjoint("b")),
    types: tuple[DType, DType, DType] | None = None,
    acc: DType | None = None,
) -> MatrixProduct:
    """A product of matrices: strides are rs_a, cs_a, rs_b, cs_b, rs_c, cs_c in bytes."""
    rs_a, cs_a, rs_b, cs_b, rs_c, cs_c = strides
    m, n, k = sizes
    a, b, c = types or (dtype, dtype, dtype)
    return MatrixProduct(
        operand("a", a),
        operand("b", b),
        operand("c", c),
        (
            dimension(DimensionRole.M, m, rs_a, 0, rs_c),
            dimension(DimensionRole.N, n, 0, cs_b, cs_c),
            dimension(DimensionRole.K, k, cs_a, rs_b, 0),
        ),
        alpha or Factor(),
        beta or Factor(),
        acc,
        conditions,
        WHERE,
    )


@dataclass(frozen=True)
class Run:
    """What a call did: whether the loop ran, and what was returned."""

    looped: bool
    returned: int


class Spliced:
    """A compiled function of a test.

    Parameters
    ----------
    product : what is spliced.
    arguments : names and LLVM types of the function's arguments but the last.
    """

    def __init__(
        self,
        product: MatrixProduct,
        arguments: Sequence[tuple[str, str]],
        machine: Machine | None = None,
        strategy: ProductStrategy = ProductStrategy.AUTO,
        arena: dict[str, int] | None = None,
    ) -> None:
        machine = machine or host_machine()
        self.text = module_text(product, arguments, machine, strategy, *(arena or ()))
        libc = ctypes.CDLL(None)
        names = ("malloc", "free", "memset", "memcpy")
        imports = {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0 for name in names}
        imports |= arena or {}
        level = CODEGEN_LEVEL if EVERY_TEST_RUNS else QUICK_LEVEL  # what it does is what the IR says
        target = target_machine(machine.triple, machine.cpu, machine.features, level=level)
        with preparing:
            self.object_code = bytes(target.emit_object(parse(self.text, "f")))
        self._linked = Linked(self.object_code, ("f",), imports)
        kinds = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "i32": ctypes.c_int32}
        kinds |= {"float": ctypes.c_float, "double": ctypes.c_double}
        types = [*(kinds[kind] for _, kind in arguments), ctypes.c_void_p]
        self._call = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(self._linked.address("f"))

    def __call__(self, *arguments: Any) -> Run:
        """Runs it; arrays are passed by their addresses."""
        ran = ctypes.c_int64(0)
        plain = [one.ctypes.data if hasattr(one, "ctypes") else one for one in arguments]
        returned = self._call(*plain, ctypes.addressof(ran))
        looped = bool(ran.value)
        assert returned == (LOOP_RETURNS if looped else SPLICED_RETURNS)
        return Run(looped, returned)


def module_text(
    product: MatrixProduct,
    arguments: Sequence[tuple[str, str]],
    machine: Machine,
    strategy: ProductStrategy = ProductStrategy.AUTO,
    arena: str | None = None,
) -> str:
    """The module of a function of a test, spliced, linked and verified."""
    splicer = Splicer(
        machine.triple, data_layout(machine), strategy=strategy, memory=ProductOptions(arena=arena).memory
    )
    function = _FUNCTION.format(arguments=", ".join(f"{kind} %{name}" for name, kind in arguments))
    lines = splicer.splice(function.splitlines(), Found(product, PLACE), machine)
    assert isinstance(lines, list), lines
    header = (f'target datalayout = "{data_layout(machine)}"', f'target triple = "{machine.triple}"')
    with preparing:
        module = parse("\n".join([*header, *splicer.declarations, *lines]), "f")
        splicer.link(module)
        splicer.link_kernels(module)
        module.verify()
    return str(module)


#: The arguments of most tests: pointers, sizes, leading dimensions in elements.
POINTERS = [("a", "ptr"), ("b", "ptr"), ("c", "ptr")]
SIZES = [(name, "i64") for name in ("m", "n", "k")]
LEADING = [(name, "i64") for name in ("lda", "ldb", "ldc")]
ROW_MAJOR = [*POINTERS, *SIZES, *LEADING]
M, N, K = (Polynomial.of(value(name)) for name in "mnk")
LDA, LDB, LDC = (Polynomial.of(value(name)) for name in ("lda", "ldb", "ldc"))
FOURS = (LDA * 4, 4, LDB * 4, 4, LDC * 4, 4)


def numbers(shape: tuple[int, ...], dtype: DType, seed: int = 0) -> NDArray[Any]:
    """Small integers of a type, whose sums are exact in any order."""
    low = 0 if dtype is U8 else -4
    return np.random.default_rng(seed).integers(low, 5, shape).astype(dtype.numpy)


@cache
def under(product: MatrixProduct) -> Spliced:
    """A product whose conditions are looked at; of its kernels, the smallest."""
    return Spliced(product, ROW_MAJOR, strategy=ProductStrategy.TILING)
