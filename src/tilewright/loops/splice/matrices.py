"""Lowering of LLVM's matrix intrinsics (`llvm.matrix.multiply`, clang's matrix types) to register tiles."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.errors import TilewrightError
from tilewright.llvm.matrix import MULTIPLY
from tilewright.loops.llvm.text import closing, split_commas
from tilewright.loops.splice.kernels import EmbeddedKernel, Kernels
from tilewright.loops.splice.text import LABEL
from tilewright.machine.machine import Machine
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.records import dataclass
from tilewright.spec.dtype import F32, DType, find_llvm_type

#: Alignment of matrices in the stack frame: a cache line.
ALIGNMENT = 64

#: Operand size limit of inlined kernels, in multiples of the vector register file: A and B are read once and
#: need few registers, as 16x16 f32 on AVX-512 shows. Smaller matrices whose columns are not whole vectors are
#: left to LLVM: partial vectors would go through the stack frame (docs/decisions/036-spliced-products.md).
INLINED_FILLS = 2

_CALL = re.compile(
    r"^\s*(?P<result>%\S+) = (?:(?:tail|notail|musttail) )?call (?P<flags>(?:[a-z]+ )*)"
    r"(?P<kind><(?P<lanes>\d+) x (?P<element>\w+)>) @llvm\.matrix\.multiply\.[\w.]+(?P<operands>\(.*)$"
)


@dataclass(frozen=True)
class _Product:
    """One call of the intrinsic: result, operands with types, sizes, and the text after the call."""

    result: str
    kind: str
    left: str
    right: str
    problem: BatchReduceGemm
    rest: str

    @property
    def bytes(self) -> int:
        """Size of the three matrices in bytes."""
        one = self.problem
        return (one.m * one.k + one.k * one.n + one.m * one.n) * one.dtype.size


def multiply_by_tiles(
    lines: Sequence[str], kernels: Kernels, machine: Machine, *, assume_reassociation: bool
) -> list[str]:
    """Replace matrix intrinsics of a function by kernel calls where a kernel is available and faster.

    Before: ``%c = call contract <4 x float> @llvm.matrix.multiply...(<4 x float> %a, <4 x float> %b, i32 2,
    i32 2, i32 2)``. After: stores of %a and %b to the stack frame, a kernel call on these, and a load of %c.
    A kernel whose operands fit into registers is inlined, which removes these stores and loads.
    """
    result: list[str] = []
    frame: list[str] = []
    for line in lines:
        product = _product(line, assume_reassociation=assume_reassociation)
        kernel = None if product is None else _kernel(product, kernels, machine)
        if product is None or kernel is None:
            result.append(line)
            continue
        kernels.take(kernel)
        number = len(frame) // 3
        places = [f"%{kernel.name}.{name}.{number}" for name in "abc"]
        kinds = (product.left.partition(">")[0] + ">", product.right.partition(">")[0] + ">", product.kind)
        frame += [
            f"  {place} = alloca {kind}, align {ALIGNMENT}" for place, kind in zip(places, kinds, strict=True)
        ]
        a, b, c = places
        one = product.problem
        sizes = ", ".join(f"i64 {size}" for size in (one.m, one.k, one.m, 0, 0))
        result += [
            f"  store {product.left}, ptr {a}, align {ALIGNMENT}",
            f"  store {product.right}, ptr {b}, align {ALIGNMENT}",
            f"  call void @{kernel.name}(ptr {a}, ptr {b}, ptr {c}, {sizes}){product.rest}",
            f"  {product.result} = load {product.kind}, ptr {c}, align {ALIGNMENT}{product.rest}",
        ]
    first = next(number for number, line in enumerate(lines) if line.endswith("{")) + 1
    if LABEL.match(lines[first]):
        first += 1
    return [*result[:first], *frame, *result[first:]]


def _product(line: str, *, assume_reassociation: bool) -> _Product | None:
    """The call in a line, if its rounding may differ as in a kernel."""
    match = _CALL.match(line) if MULTIPLY in line else None
    dtype = find_llvm_type(match["element"]) if match is not None else None
    if match is None or dtype is None:
        return None
    operands, flags = match["operands"], set(match["flags"].split())
    if not (assume_reassociation or _may_round(dtype, flags)):
        return None
    end = closing(operands, 0)
    left, right, *sizes = split_commas(operands[1 : end - 1])
    m, k, n = (int(size.removeprefix("i32 ")) for size in sizes)
    rest = operands[end:]
    debug = re.search(r", !dbg !\d+", rest)
    try:
        problem = BatchReduceGemm(m, n, k, 1, dtype, out_dtype=dtype, beta=0)
    except TilewrightError:
        return None
    return _Product(match["result"], match["kind"], left, right, problem, debug[0] if debug else "")


def _may_round(dtype: DType, flags: set[str]) -> bool:
    """Whether products may stay unrounded, and narrow floats be summed in a wider type."""
    if dtype.is_integer or "fast" in flags:
        return True
    return "contract" in flags and (dtype.bits >= F32.bits or "reassoc" in flags)


def _kernel(product: _Product, kernels: Kernels, machine: Machine) -> EmbeddedKernel | None:
    """The kernel of a product, if it is faster than LLVM's lowering of the intrinsic."""
    isa, rows = machine.isa, product.problem.m
    inlined = product.bytes <= INLINED_FILLS * isa.vector_registers * isa.vector_bits // 8
    whole = rows & (rows - 1) == 0 or rows % isa.lanes(product.problem.types.acc) == 0
    if inlined and not whole:
        return None
    try:
        return kernels.find(product.problem, machine, inlined=inlined)
    except TilewrightError:
        return None
