"""One product by the kernel of a type, on scratch and threads of the library."""

from __future__ import annotations

from tilewright.aot.blas.blocks import BlockCode
from tilewright.aot.blas.types import PREFIX
from tilewright.llvm.build import Callee, Function
from tilewright.llvm.values import INT64, POINTER, VOID, Type, Value, int64
from tilewright.records import dataclass
from tilewright.threads.pool_memory import APART, TeamMemory


@dataclass(frozen=True)
class KernelUse:
    """The product kernel of a type and a target: its symbol and the types of its arguments."""

    symbol: str
    arguments: tuple[Type, ...]


def emit_product(code: BlockCode, kernel: KernelUse, factor: Type) -> Callee:
    """``product(m, n, k, A, B, C, alpha, beta)``, whose factors have one part.

    The kernel wants adjacent columns of C; of one column, a contiguous A. Else the transposes are multiplied.
    """
    module, more = code.module, (("alpha", factor), ("beta", factor))
    f, (m, n, k), (a, b, c), _ = code.define("product", "m n k", "a b c", more=more)
    with f.when(f.or_(f.icmp("<=", m, 0), f.icmp("<=", n, 0))):
        f.ret()
    one = f.and_(f.icmp("==", n, 1), f.icmp("==", a.row, 1))
    swap = f.and_(f.icmp("==", c.row, 1), f.or_(f.icmp("!=", c.column, 1), one))
    sizes = [f.select(swap, n, m), f.select(swap, m, n), k]
    views = []
    for straight, other in ((a, b), (b, a), (c, c)):
        pairs = zip(straight.values[:3], other.transposed().values[:3], strict=True)
        views.append([f.select(swap, y, x) for x, y in pairs])
    scratch = f.call(module.declare(f"{PREFIX}_scratch_take", POINTER, ()), [])
    memory = f.alloca(INT64, TeamMemory.next.offset // 8 + APART // 8, APART)
    work = f.mul(f.mul(_short(f, m), _short(f, n)), _short(f, k))
    opened = module.declare(f"{PREFIX}_team_open", POINTER, (POINTER, INT64))
    team = f.call(opened, [memory, work])
    pointers = [view[0] for view in views]
    strides = [stride for view in views for stride in view[1:]]
    factors = [f.arguments["alpha"], f.arguments["beta"]]
    symbol = module.declare(kernel.symbol, VOID, kernel.arguments)
    f.call(symbol, [*pointers, *sizes, *strides, *factors, scratch, team])
    f.call(module.declare(f"{PREFIX}_team_close", VOID, (POINTER,)), [team])
    f.call(module.declare(f"{PREFIX}_scratch_give", VOID, (POINTER,)), [scratch])
    f.ret()
    return f.callee


def _short(f: Function, size: Value) -> Value:
    """A size of which three can be multiplied in 64 bits."""
    return f.minimum(size, int64(1 << 20))
