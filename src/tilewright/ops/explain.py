"""What a call or a problem comes to, and why: the decisions that its kernel takes, read from its tile IR."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.calls.fastcall import native_entry_possible
from tilewright.calls.foreign import as_array
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.pipeline import Problem
from tilewright.compiler.target import compile_problem
from tilewright.errors import NotExplained, shown
from tilewright.ir.nodes import (
    Constant,
    Pack,
    Program,
    Slice,
    Space,
    Statement,
    TileEpilogue,
    TileForm,
    TileMatmul,
    UnaryMap,
)
from tilewright.ir.text import print_condition
from tilewright.ir.trace import Decision, Trace, trace
from tilewright.macro.blocking import Blocking
from tilewright.ops.attention.backward_cut import BackwardBlocking
from tilewright.ops.attention.backward_problem import AttentionBackward
from tilewright.ops.attention.cut import AttentionBlocking
from tilewright.ops.attention.problem import Attention, Schedule
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.gemm.call import Product, prepare, product_shapes
from tilewright.ops.gemm.epilogue_operands import activation_word
from tilewright.ops.gemm.kernel import arranged, matmul_kernel
from tilewright.ops.gemm.native_entry import MAX_DIRECT_SIZE, MOST_AXES
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.product_nest import SCALARS
from tilewright.ops.gemm.small_products import PRODUCTS_TO_REPAY, fit
from tilewright.ops.linear.call import Wish, find_route
from tilewright.ops.linear.quantized import weight_route
from tilewright.ops.mmt4d.nest import Mmt4dCut
from tilewright.ops.mmt4d.problem import Mmt4d
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.ops.packing.nest import PanelForm
from tilewright.ops.packing.problem import Packing
from tilewright.ops.rows.problem import RowFunction
from tilewright.ops.triangular.syr2k_problem import Syrk
from tilewright.ops.triangular.trmm_problem import Trmm
from tilewright.preparing import importing
from tilewright.spec.arguments import real_number
from tilewright.spec.epilogue import Along, Epilogue
from tilewright.spec.problem import PRODUCT_SIZES, Layout
from tilewright.threads.pool import TEAM_WORK, limited, wanted_threads


@dataclass(frozen=True)
class Explanation:
    """How a call runs.

    Attributes
    ----------
    subject : the call or problem in words.
    kernel : the name of the kernel that it takes.
    strategy : what the kernel does with these sizes.
    decisions : each condition it met, with the values it looked at and whether it holds.
    notes : what happens around the kernel: copies, the entry, the batch.
    figures : blocking, flops, bytes.
    """

    subject: str
    kernel: str
    strategy: str
    decisions: tuple[str, ...]
    notes: tuple[str, ...]
    figures: tuple[str, ...]

    def __str__(self) -> str:
        lines = [self.subject, f"  kernel    {self.kernel}", f"  strategy  {self.strategy}"]
        for title, entries in (
            ("because", self.decisions),
            ("around", self.notes),
            ("figures", self.figures),
        ):
            lines += [f"  {title if not number else '':<9} {entry}" for number, entry in enumerate(entries)]
        return "\n".join(lines)

    __repr__ = __str__


def strategy_of(program: Program, primitives: tuple[Statement, ...]) -> str:
    """What the primitives of a run amount to, in words."""
    forms = {node.form for node in primitives if isinstance(node, TileMatmul)}
    packed = {node.destination.buffer for node in primitives if isinstance(node, Pack)}
    moves = [node for node in primitives if isinstance(node, UnaryMap)]
    if not primitives:
        return "nothing to do: a size is 0"
    if moves:
        turned = any(node.source is not None and _turns(node.source, node.destination) for node in moves)
        return "blocks turned in registers" if turned else "element by element, in whole vectors"
    if TileForm.DOT in forms:
        return "dot products: vectors run along the depth, rows of A are read once"
    if TileForm.TRANSPOSED_B in forms:
        return "one row: B is read along its contiguous depths and turned in registers"
    if any(isinstance(node, TileEpilogue) for node in primitives):
        return "streaming: whole rows of B are read once and added to sums kept in cache"
    if "a_pack" in packed:
        return "packing: five loops around packed panels of A and B (Kuzma et al. 2023, Algorithm 1)"
    if packed and all(program.buffer(name).space is Space.LOCAL for name in packed):
        return "straight tiles of known sizes; the vector operand is turned into a small panel first"
    if packed:
        return "tiling: A in place, B copied one micro-panel at a time"
    if not program.sizes or "alpha" not in program.scalars:
        return "straight tiles of known sizes, operands in place"
    return "tiling: A and B in place"


def _turns(source: Slice, destination: Slice) -> bool:
    """Whether the adjacent axes of two slices differ."""
    one = Constant(1)
    return [stride == one for stride in source.strides] != [stride == one for stride in destination.strides]


def decision_text(decision: Decision) -> str:
    """One decision: the condition, its answer, the values."""
    values = ", ".join(f"{name} = {value}" for name, value in decision.values.items())
    return f"{'yes' if decision.holds else 'no '}  {print_condition(decision.condition)}   ({values})"


def _figures(kernel: Kernel, flops: int | None, moved: int | None) -> tuple[str, ...]:
    found = [repr(kernel.blocking)]
    if flops is not None and moved is not None:
        found.append(f"{flops:,} flops, {moved:,} bytes at least, {flops / max(moved, 1):.2f} flops a byte")
    return tuple(found)


def _gemm_trace(kernel: Kernel, sizes: tuple[int, ...], alpha: complex, beta: complex) -> Trace:
    scalars = dict(zip(SCALARS, (alpha, beta), strict=True))
    return trace(kernel.nest, dict(zip(PRODUCT_SIZES, sizes, strict=True)), scalars)


def python_reason(product: Product, a: Any, b: Any, out: Any, options: dict[str, Any]) -> str | None:
    """Why a product does not stay in the native entry; None where it does, once that is compiled."""
    arrays = (a, b) if out is None else (a, b, out)
    if any(type(array) is not np.ndarray for array in arrays):
        return "an operand is not a plain numpy.ndarray"
    sizes = (*product.a.shape[-2:], product.b.shape[-1])
    batch = product.c.shape[:-2]
    checks = (
        (not native_entry_possible(), "this interpreter lays out objects in another way"),
        (bool(options), f"it was given {', '.join(options)}"),
        (bool(product.copies), "an operand is copied"),
        (any(array.ndim > MOST_AXES for array in arrays), f"an operand has more than {MOST_AXES} axes"),
        (0 in batch, "the batch is empty"),
        (out is not None and out.ndim == 0, "out has no axes"),
        (max(sizes) >= MAX_DIRECT_SIZE, "a size is beyond 2**31"),
    )
    return next((reason for holds, reason in checks if holds), None)


def fused(epilogue: Epilogue) -> list[str]:
    """What is said of an epilogue, if there is one."""
    return [f"fused into the store of C: {str(epilogue).replace(',', ', ')}"] if epilogue else []


def packed_strategy(problem: Gemm, primitives: tuple[Statement, ...]) -> str:
    """What the primitives of a product with packed operands amount to, in words."""
    if not primitives:
        return "nothing to do: a size is 0"
    if any(isinstance(node, TileMatmul) and node.stored is not None for node in primitives):
        return "few rows: panels of the packed operand are read once, several side by side"
    if any(isinstance(node, Pack) and node.stored is not None for node in primitives):
        return "packing: five loops, panels of floats made of the weight's words for each depth block"
    names = " and ".join(name.upper() for name in sorted(problem.packed - {"c"}))
    tiles = {node.destination.buffer for node in primitives if isinstance(node, Pack)}
    if {"a", "b"} <= problem.packed:
        return "mmt4d: five loops around the tiles of both operands, nothing is packed"
    if tiles:
        return f"five loops around the tiles of {names}; the other operand is packed"
    return f"the tiles of {names} one after the other; A in place"


def thread_note(work: int) -> str:
    """How many threads a call of so many multiply-adds takes."""
    threads = wanted_threads()
    if threads == 1:
        return "one thread"
    if work <= TEAM_WORK:
        return f"one thread: no more than {TEAM_WORK:,} multiply-adds"
    return f"{threads} threads, fewer while other calls run"


def explain_packed(a: Any, b: Any, options: dict[str, Any]) -> Explanation:
    """How a product with a `PackedMatrix` runs; nothing is computed."""
    packed, other = (b, a) if isinstance(b, PackedMatrix) else (a, b)
    array = as_array(other, "b" if packed is a else "a")
    along = None if options.get("bias") is None else Along.COLUMN
    wish = Wish(array.dtype, None, along, activation_word(options.get("activation")))
    route = find_route(packed, wish) if packed.form.weights is None else weight_route(packed, array, wish)
    kernel = route.kernel
    first, second = (array.shape, packed.shape) if packed is b else (packed.shape, array.shape)
    shapes = product_shapes(first, second)
    sizes = (shapes.m, shapes.n, shapes.k, shapes.k, 1, shapes.n, 1, shapes.n, 1)
    factors = [real_number(options.get(name, usual), name) for name, usual in (("alpha", 1), ("beta", 0))]
    way = _gemm_trace(kernel, sizes, *factors)
    work = shapes.m * shapes.n * shapes.k * int(np.prod(shapes.batch, dtype=np.int64))
    notes = ["through Python: an operand is packed", thread_note(work), *fused(kernel.problem.epilogue)]
    if array.dtype != route.operand:
        notes.append(f"the other operand is copied: {array.dtype} to {route.operand}")
    count = int(np.prod(shapes.batch, dtype=np.int64))
    flops = 2 * shapes.m * shapes.n * shapes.k * count
    moved = packed.nbytes + array.nbytes + shapes.m * shapes.n * count * route.result.itemsize
    subject = f"matmul {first} @ {second}, packed: {packed!r}"
    strategy = packed_strategy(kernel.problem, way.primitives)
    decisions = tuple(map(decision_text, way.decisions))
    return Explanation(
        subject, kernel.name, strategy, decisions, tuple(notes), _figures(kernel, flops, moved)
    )


def explain_matmul(a: Any, b: Any, /, out: Any = None, **options: Any) -> Explanation:
    """How ``matmul(a, b, out, **options)`` runs; nothing is computed."""
    with limited(options.get("threads")):
        return _explain_matmul(a, b, out, options)


def _explain_matmul(a: Any, b: Any, out: Any, options: dict[str, Any]) -> Explanation:
    """The same, while the number of threads is that of the call."""
    if PackedMatrix in (type(a), type(b)):
        return explain_packed(a, b, options)
    given = {name: value for name, value in options.items() if name != "threads"}
    given["activation"] = activation_word(given.get("activation"))
    product = prepare(a, b, out, **given)
    kernel = matmul_kernel(product.types, product.epilogue)
    matrices = product.matrices()
    batch = matrices[2].shape[:-2]
    first = (0,) * len(batch)
    notes = [*product.copies, *fused(product.epilogue)]
    reason = python_reason(product, a, b, out, options)
    notes.append("native entry: no Python runs" if reason is None else f"through Python: {reason}")
    count = int(np.prod(batch, dtype=np.int64))
    subject = f"matmul {np.shape(a)} @ {np.shape(b)} in {product.types.name}"
    if count == 0:
        return Explanation(subject, kernel.name, "nothing to do: the batch is empty", (), tuple(notes), ())
    a_first, b_first, c_first = (array[first] for array in matrices)
    turned, sizes = arranged(kernel, a_first, b_first, c_first)
    if turned:
        notes.append("computed as the transposed product, whose rows are contiguous")
    if batch:
        notes.append(f"a batch of {count} products in one compiled loop")
    types = product.types
    plain = types.a == types.b == types.c and not product.epilogue
    exact = fit(a_first, b_first, c_first, types.a) if plain else None
    if exact is not None and (product.alpha, product.beta) == (1.0, 0.0) and (batch or reason is None):
        notes.append(f"a kernel of exactly these sizes after {PRODUCTS_TO_REPAY:,} such products")
    m, n, k = sizes[:3]
    notes.append(thread_note(m * n * k * count))
    way = _gemm_trace(kernel, sizes, product.alpha, product.beta)
    operands = m * k * types.a.size + k * n * types.b.size + m * n * types.c.size * (2 if product.beta else 1)
    flops = 2 * m * n * k * count * (4 if types.is_complex else 1)
    figures = _figures(kernel, flops, operands * count)
    strategy = strategy_of(kernel.nest, way.primitives)
    return Explanation(
        subject, kernel.name, strategy, tuple(map(decision_text, way.decisions)), tuple(notes), figures
    )


def _tight(problem: Gemm) -> tuple[int, ...] | None:
    """Sizes of a GEMM whose sizes and layouts are known, with tight leading dimensions."""
    m, n, k = problem.m, problem.n, problem.k
    if m is None or n is None or k is None:
        return None
    strides: list[int] = []
    for operand, rows, columns in zip(problem.operands, (m, k, m), (k, n, n), strict=True):
        strides += [1, rows] if operand.layout is Layout.COL else [columns, 1]
    return (m, n, k, *strides)


def explain_problem(problem: Problem, target: Any = None) -> Explanation:
    """How the kernel of a problem runs, with operands as tight as its layouts allow."""
    if isinstance(problem, Contraction):
        with importing:
            from tilewright.ops.contraction.explain import (
                explain_contraction,  # which makes an `Explanation`
            )

        return explain_contraction(problem, target)
    kernel = compile_problem(problem, target)
    sizes = _tight(problem) if isinstance(problem, Gemm) else None
    notes = [f"for {kernel.machine.name}, row {kernel.machine.isa.name}"]
    if isinstance(problem, Gemm):
        notes += fused(problem.epilogue)
    decisions: tuple[str, ...] = ()
    if sizes is not None:
        way = _gemm_trace(kernel, sizes, 1.0, 0.0)
        decisions, strategy = (
            tuple(map(decision_text, way.decisions)),
            strategy_of(kernel.nest, way.primitives),
        )
        if isinstance(problem, Gemm) and problem.packed:
            strategy = packed_strategy(problem, way.primitives)
        notes.append("with alpha = 1, beta = 0 and tight leading dimensions")
    elif isinstance(problem, Gemm):
        strategy = (
            f"{problem.strategy.value}: decided by the sizes of each call; explain(matmul, a, b) shows one"
        )
    else:
        strategy = _other_strategy(kernel)
    figures = _figures(kernel, kernel.flops, kernel.problem.bytes)
    return Explanation(repr(problem), kernel.name, strategy, decisions, tuple(notes), figures)


def _other_strategy(kernel: Kernel) -> str:
    """What the kernel of a problem without decisions does, in words."""
    match kernel.problem, kernel.blocking:
        case Packing(), PanelForm(lanes=lanes, kr=kr):
            return f"a copy into tiles of {lanes} lanes and {kr} depths, panel after panel"
        case Mmt4d(m0=m0, n0=n0), Mmt4dCut(blocking=cut, in_place=in_place):
            if in_place:
                return f"tiles of {m0}x{n0} read where they stand by register tiles of {cut.mr}x{cut.nr}"
            return f"tiles of {m0}x{n0} packed again for register tiles of {cut.mr}x{cut.nr}, block by block"
        case Attention(schedule=Schedule.DECODE), _:
            return "few queries: keys and values are read once, where they stand, in runs that are merged"
        case Attention(), AttentionBlocking(mr=mr, nr=nr, b1=b1, b2=b2):
            return (
                f"blocks of {b1} queries past blocks of {b2} keys, in register tiles of {mr}x{nr}; "
                "softmax between the two products of a tile of rows"
            )
        case AttentionBackward(), BackwardBlocking(mr=mr, nr=nr, b1=b1, b2=b2):
            return (
                f"blocks of {b1} queries and {b2} keys, register tiles of {mr}x{nr}; a task a head of keys, "
                "five products a block; where these are too few, blocks of queries and then of keys, seven"
            )
        case (Syrk() | Trmm()) as problem, Blocking() as cut:
            with importing:
                from tilewright.ops.triangular.explain import triangle_strategy

            return triangle_strategy(problem, cut)
        case RowFunction() | Elementwise() as problem, _:
            with importing:
                from tilewright.ops.rows.explain import function_strategy

            return function_strategy(problem)
        case LinearChain(layers=layers), _:
            return f"{len(layers)} layers on a block of rows, panels between them; steps on each tile in L1"
        case _:
            way = trace(kernel.nest, dict.fromkeys(kernel.nest.sizes, 1), {})
            return strategy_of(kernel.nest, way.primitives)


def _explain_einsum(*arguments: Any, **options: Any) -> Explanation:
    with importing:
        from tilewright.ops.einsum.explain import explain_einsum  # which makes an `Explanation`

    return explain_einsum(*arguments, **options)


def _explain_attention(*arguments: Any, **options: Any) -> Explanation:
    with importing:
        from tilewright.ops.attention.explain import explain_attention  # which makes an `Explanation`

    return explain_attention(*arguments, **options)


def _explain_triangles(name: str) -> Callable[..., Explanation]:
    def explain(*arguments: Any, **options: Any) -> Explanation:
        with importing:
            from tilewright.ops.triangular.explain import explain_triangles  # which makes an `Explanation`

        return explain_triangles(name, *arguments, **options)

    return explain


#: What `explain` knows beside problems, by the name of the public function.
CALLS: dict[str, Callable[..., Explanation]] = {
    "matmul": explain_matmul,
    "einsum": _explain_einsum,
    "attention": _explain_attention,
    "syrk": _explain_triangles("syrk"),
    "syr2k": _explain_triangles("syr2k"),
    "trmm": _explain_triangles("trmm"),
}
#: The modules that these come from, as they say.
_HOMES = ("tilewright", "tilewright.ops.attention.public", "tilewright.ops.triangular.public")
#: The modules of functions of rows and of elements, all of which are explained alike.
_FUNCTIONS = (
    "tilewright.ops.rows.public",
    "tilewright.ops.rows.public_reductions",
    "tilewright.ops.elementwise.public",
)


def explain(subject: Any, /, *arguments: Any, **options: Any) -> Explanation:
    """Which strategy and kernel a call or a problem takes, and why.

    Parameters
    ----------
    subject : a problem, or a function of this package: ``explain(matmul, a, b, out=c)``.
    arguments, options : those of the function; of a problem, the target it is compiled for.

    Returns
    -------
    Explanation
        Prints as text; its fields hold the kernel, the strategy, each decision with the values it looked
        at, what happens around the kernel (copies, Python, batches), blocking, flops and bytes. Nothing
        is computed.

    Raises
    ------
    NotExplained, and what the call itself would raise.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> a, x = np.ones((64, 64), np.float32), np.ones((64, 1), np.float32)
    >>> tw.explain(tw.matmul, a, x).strategy
    'dot products: vectors run along the depth, rows of A are read once'
    """
    if isinstance(subject, Problem):
        inspect.signature(explain_problem).bind(subject, *arguments, **options)
        return explain_problem(subject, *arguments, **options)
    function = isinstance(subject, (types.FunctionType, types.BuiltinFunctionType))
    name, home = (subject.__name__, subject.__module__) if function else (None, None)
    if home in (*_HOMES, *_FUNCTIONS):
        inspect.signature(subject).bind(*arguments, **options)  # refuses what a call would refuse
    if home in _HOMES and name in CALLS:
        return CALLS[name](*arguments, **options)
    if home in _FUNCTIONS and hasattr(subject, "__self__"):
        with importing:
            from tilewright.ops.rows.explain import explain_function  # which makes an `Explanation`

        return explain_function(subject, *arguments, **options)
    raise NotExplained(found=shown(subject), known=", ".join(f"tilewright.{name}" for name in CALLS))
