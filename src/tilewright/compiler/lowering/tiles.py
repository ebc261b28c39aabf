"""Register tiles: the micro-kernel of a `TileMatmul` or `TileEpilogue`, and the operands of its call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.compiler.lowering.expressions import Scope
from tilewright.ir.expressions import Constant, FirstElse, Scalar, upper_bound
from tilewright.ir.nodes import (
    Finish,
    Program,
    Slice,
    Space,
    TileEpilogue,
    TileForm,
    TileMatmul,
    sums_type,
)
from tilewright.ir.trace import names_in
from tilewright.llvm.values import INT64, Value, int64
from tilewright.machine.isa import MATRIX_MULTIPLY, Broadcast
from tilewright.machine.machine import Machine
from tilewright.micro.calls import Window
from tilewright.micro.tiles.complex import ComplexKernel
from tilewright.micro.tiles.dispatch import Dispatch
from tilewright.micro.tiles.dot import DotKernel
from tilewright.micro.tiles.engine import EngineKernel
from tilewright.micro.tiles.epilogue import ColumnAccess, EpilogueKernel, StepAccess
from tilewright.micro.tiles.generic import GenericKernel
from tilewright.micro.tiles.kernel import MicroKernel
from tilewright.micro.tiles.operands import (
    Ahead,
    BatchCall,
    GroupCall,
    KeptSums,
    OperandA,
    OperandB,
    OperandC,
    PanelCall,
    Prefetch,
    Source,
    TileCall,
    Update,
)
from tilewright.micro.tiles.panels import PanelKernel
from tilewright.micro.tiles.signature import StoredWeights, TileSignature, TileStrides
from tilewright.micro.tiles.transposed import TransposedKernel
from tilewright.micro.tiles.vector import VectorKernel
from tilewright.spec.epilogue import Activation

#: Depths from which C is added to finished sums; before, starting the sums with C saves as much as it waits
#: (docs/decisions/010-add-c-last.md).
ADDED_LAST_DEPTH = 4


def lower_matmul(node: TileMatmul, scope: Scope) -> None:
    """Writes one register tile: in place if its sizes are known, else as a call."""
    match node.form:
        case TileForm.DOT:
            _dot(node, scope)
        case TileForm.TRANSPOSED_A | TileForm.TRANSPOSED_B:
            _transposed(node, scope)
        case TileForm.OUTER:
            kernel = _micro_kernel(node, scope)
            with _configured(kernel, scope):
                if _sizes_known(node, kernel) and kernel.attributes is None:
                    assert node.finish is None, "steps of tiles of known sizes are separated"
                    _inline(node, kernel, scope)
                else:
                    _dispatched(node, kernel, scope)


def _windows(node: TileMatmul, scope: Scope) -> tuple[Window, Window, Window]:
    """A, B and C; rows of a split A are counted in numbers."""
    a, b, c = (scope.window(window) for window in (node.a, node.b, node.c))
    if node.split:
        a = a._replace(row=scope.f.mul(a.row, node.depths_of_a), dtype=a.dtype.real)
    return a, b, c


@contextmanager
def _configured(kernel: MicroKernel, scope: Scope) -> Iterator[None]:
    """Configures the unit of a tile: once in a function, or for each tile if tasks may release it between."""
    f = scope.f
    if not kernel.configured:
        yield
    elif scope.frame.runs_tasks:
        kernel.configure(f)
        yield
        kernel.release(f)
    else:
        f.surround("configure", lambda: kernel.configure(f), lambda: kernel.release(f))
        yield


def _sizes_known(node: TileMatmul, kernel: MicroKernel) -> bool:
    """Whether a tile can be written in place: partial operations of a matrix unit need a spill buffer."""
    rows, columns, m = node.rows, node.columns, kernel.instruction.m
    if m > 1:
        return isinstance(rows, Constant) and rows.value % m == 0 and columns == Constant(node.tile.nr)
    return isinstance(rows, Constant) and isinstance(columns, Constant)


def _micro_kernel(node: TileMatmul, scope: Scope) -> MicroKernel:
    """The micro-kernel of a node: its instruction follows from the element types of its operands."""
    isa = scope.frame.machine.isa
    a, b = (Source(scope.dtype(part.buffer).real, part.interleave > 1) for part in (node.a, node.b))
    if node.stored is not None:
        b = Source(node.stored.elements.value_type(a.dtype), packed=True)
    instruction = isa.tile(a.dtype, b.dtype, node.sums)
    if node.stored is not None:
        instruction = isa.row_tile(instruction) or instruction
    adjacent_a = node.a.strides[0] == Constant(instruction.interleave_a)
    adjacent_a = adjacent_a and (isa.broadcast is not Broadcast.MEMORY or instruction.is_matrix_engine)
    c = scope.dtype(node.c.buffer).real
    if node.stored is not None:
        return PanelKernel(isa, instruction, node.tile, (a, b), c, node.stored.elements)
    if instruction.instruction == MATRIX_MULTIPLY:
        return GenericKernel(isa, instruction, node.tile, (a, b), c, adjacent_a=adjacent_a)
    if node.rotated:
        return ComplexKernel(isa, instruction, node.tile, (a, b), c)
    kind = EngineKernel if instruction.is_matrix_engine else VectorKernel
    return kind(isa, instruction, node.tile, (a, b), c, adjacent_a=adjacent_a)


# --- sizes known at run time only ---------------------------------------------------------------


def _dispatched(node: TileMatmul, kernel: MicroKernel, scope: Scope) -> None:
    """A call of the tile's function for any size; with an epilogue, of the function for whole tiles."""
    a, b, c = _windows(node, scope)
    columns, depth = scope.integers(node.columns, node.depth)
    alpha, beta = (scope.scalar(value, kernel.acc) for value in (node.alpha, node.beta))
    a_depth = _depth_step(scope, node.a, a.column, kernel)
    b_depth = _depth_step(scope, node.b, b.column, kernel)
    operands = {
        "columns": columns,
        "depth": depth,
        "alpha": alpha,
        "beta": beta,
        "a": a.pointer,
        "a_lane": a.row,
        "a_depth": a_depth,
        "b": b.pointer,
        "b_depth": b_depth,
        "c": c.pointer,
        "c_row": c.row,
        "c_column": c.column,
    }
    carry = _carry(node, scope)
    if carry is not None:
        first, last = (scope.f.zext(test, INT64) for test in (carry.first, carry.last))
        operands |= {"sums": carry.sums, "sums_row": carry.row, "first": first, "last": last}
    groups = _groups(node, scope)
    if groups is not None:
        operands |= {"scale": groups.scale, "scale_step": groups.step, "group": groups.depth}
        operands |= {} if groups.zero is None else {"zero": groups.zero}
    fetched = (
        None if scope.f.module.quick else node.fetched
    )  # so that quick code has one tile in place of two
    if fetched is not None:
        ahead = scope.window(fetched)
        operands |= {"ahead": ahead.pointer, "ahead_row": ahead.row}
    for number, one in enumerate(() if node.finish is None else node.finish.steps):
        if one.operand is not None:
            window = scope.window(one.operand)
            operands |= {f"step{number}": window.pointer, f"step{number}_row": window.row}
    copies = node.copied is not None
    if node.copied is not None:
        operands["copied"] = scope.window(node.copied).pointer
    first_read = None if copies else _reads_first(node, kernel, scope)
    if first_read is not None:
        operands["first_read"] = first_read
    strides = TileStrides(a.row.known, a_depth.known, b_depth.known, c.column.known)
    if kernel.walks_ahead:  # addresses of operands loaded ahead are constants beside few pointers
        strides = TileStrides(a_depth=a_depth.known, b_depth=b_depth.known)
    elif kernel.instruction.is_matrix_engine:
        strides = TileStrides()
    elif not scope.frame.uniform_strides:
        # Tiles that prefetch rows of B are functions of their own, so all others may know a panel's step.
        strides = TileStrides(b_depth=b_depth.known if _may_fetch(node, kernel) else None)
    signature = TileSignature(
        strides,
        pairs=node.c.interleave == 2,
        carries=carry is not None,
        weights=StoredWeights(
            panels=node.stored is not None,
            scales=groups is not None,
            zeros=groups is not None and groups.zero is not None,
        ),
        prefetch_bytes=0 if fetched is None else scope.dtype(fetched.buffer).size,
        finish=_step_accesses(node.finish),
        padded=node.padded and not kernel.instruction.is_matrix_engine,
        fetches=first_read is not None,
        apart=first_read is not None and not _is_in_place(node),
        far=copies,
        copies=copies,
    )
    module = scope.f.module
    dispatch = Dispatch(kernel, signature, quick=module.quick)
    if node.finish is None and not copies:
        operands["rows"] = scope.integer(node.rows)
        dispatch.emit_call(scope.f, operands)
    else:
        dispatch.emit_whole_call(scope.f, operands)


def _reads_first(node: TileMatmul, kernel: MicroKernel, scope: Scope) -> Value | None:
    """Whether this is the first tile to read its rows of B; None if tiles do not prefetch them.

    The innermost loop goes over rows of C where B's place does not depend on it. Panels that the program
    packs are near. Those that the caller has packed may be far, and hardware, which prefetches adjacent rows,
    stops at each page (docs/decisions/071-panels-from-afar.md).
    """
    if not _may_fetch(node, kernel) or not (_is_in_place(node) or _is_given_panel(node, scope)):
        return None
    axis = next(reversed(scope.begins), None)
    if axis is None or axis in names_in(node.b.offset):
        return int64(1)
    return scope.f.zext(scope.at_first(axis), INT64)


def _is_in_place(node: TileMatmul) -> bool:
    """Whether the distance of B's rows is known at run time only: it is in no panels."""
    return not isinstance(node.b.strides[1], Constant)


def _is_given_panel(node: TileMatmul, scope: Scope) -> bool:
    """Whether B is a panel that the caller has packed; quick code has no functions that prefetch them."""
    if scope.f.module.quick:
        return False
    given = scope.frame.program.buffer(node.b.buffer).space is Space.ARGUMENT
    return given and node.b.strides[1] == Constant(node.tile.kr * node.tile.nr)


def _may_fetch(node: TileMatmul, kernel: MicroKernel) -> bool:
    """Whether tiles prefetch their rows of B where those are far."""
    return kernel.fetches(node.tile.mr * kernel.vectors)


def _depth_step(scope: Scope, window: Slice, depth: Value, kernel: MicroKernel) -> Value:
    """Elements from one step of the depth to the next, given the second stride of an operand."""
    k = kernel.instruction.k
    return scope.f.mul(depth, k // window.interleave if window.interleave > 1 else k)


def _carry(node: TileMatmul, scope: Scope) -> KeptSums | None:
    """The buffer of unfinished sums, and whether this iteration is the first or the last."""
    if node.carry is None:
        return None
    sums, axis = scope.window(node.carry.sums), node.carry.axis
    return KeptSums(sums.pointer, sums.row, scope.at_first(axis), scope.lasts[axis])


def _groups(node: TileMatmul, scope: Scope) -> GroupCall | None:
    """Groups of depths, with their scales and zero points."""
    if node.groups is None:
        return None
    window, depth = node.groups.scale, scope.integer(node.groups.depth)
    assert window.panels is not None
    scale, zero = scope.window(window), None
    if node.stored is not None and node.stored.zero is not None:
        zero = scope.window(node.stored.zero).pointer
    panel_stride = scope.integer(window.panels.stride)
    return GroupCall(depth, window.panels.lanes, panel_stride, scale.pointer, scale.column, zero)


# --- known rows and columns ---------------------------------------------------------------------


def _inline(node: TileMatmul, kernel: MicroKernel, scope: Scope) -> None:
    """A tile of known rows and columns, written in place."""
    rows, columns, depth = scope.integers(node.rows, node.columns, node.depth)
    assert rows.known is not None
    assert columns.known is not None
    a, b, c = _windows(node, scope)
    batch, (a_pointer, b_pointer) = None, (a.pointer, b.pointer)
    if node.batch is not None:
        a_step, b_step, products = scope.integers(node.batch.a_step, node.batch.b_step, node.batch.count)
        batch = BatchCall(products, a_step, b_step, node.batch.addresses)
        if node.batch.addresses:
            a_pointer, b_pointer = (scope.frame.pointers[part.buffer] for part in (node.a, node.b))
            offsets = [scope.offset_bytes(part) for part in (node.a, node.b)]
            batch = batch._replace(a_offset=offsets[0], b_offset=offsets[1])
    a_depth = _depth_step(scope, node.a, a.column, kernel)
    b_depth = _depth_step(scope, node.b, b.column, kernel)
    update = Update(
        None if node.alpha == Scalar(1.0) else scope.scalar(node.alpha, kernel.acc),
        None if node.beta == Scalar(0.0) else scope.scalar(node.beta, kernel.acc),
    )
    first_read = _reads_first(node, kernel, scope)
    call = TileCall(
        columns,
        depth,
        OperandA(a_pointer, a.row, a_depth),
        OperandB(b_pointer, b_depth, b.column, _panels(node, scope)),
        OperandC(c.pointer, c.row),
        update,
        batch=batch,
        groups=_groups(node, scope),
        # With a long depth, C arrives while the last of it is multiplied.
        prefetch=Prefetch(c.pointer, c.row, kernel.c.size) if depth.known is None else None,
        ahead=_ahead(node, scope),
        carry=_carry(node, scope),
        first_read=None if first_read is None else scope.f.icmp("!=", first_read, 0),
        most_depth=upper_bound(node.depth),
    )
    if node.carry is None:  # else C is added once, together with the last sums
        call = call._replace(update=_update(node, kernel, call, scope))
    kernel.emit_inline(scope.f, rows.known, columns.known, call)


def _ahead(node: TileMatmul, scope: Scope) -> Ahead | None:
    """What the steps of a tile prefetch."""
    if node.ahead is None:
        return None
    window = scope.window(node.ahead)
    assert window.column.known is not None
    return Ahead(window.pointer, window.column.known * scope.dtype(node.ahead.buffer).size)


def _panels(node: TileMatmul, scope: Scope) -> PanelCall | None:
    """The panels of words that a tile reads."""
    if node.stored is None:
        return None
    panels = node.b.panels
    assert panels is not None
    return PanelCall(panels.lanes, scope.integer(panels.stride))


def _update(node: TileMatmul, kernel: MicroKernel, call: TileCall, scope: Scope) -> Update:
    """How C is updated: with alpha = beta = 1 it is added to the sums, or they start with it."""
    chains = kernel.chains and node.groups is None
    match node.beta:
        case Scalar(1.0) if call.update.alpha is None:
            last = not chains or _adds_c_last(call, folds_loads=scope.frame.machine.isa.folds_loads)
            return call.update._replace(beta=None, added=last, chain=not last)
        case FirstElse(axis, Scalar(0.0), Scalar(1.0)) if call.update.alpha is None and chains:
            return call.update._replace(beta=None, chain=scope.f.not_(scope.at_first(axis)))
        case _:
            return call.update


def _adds_c_last(call: TileCall, *, folds_loads: bool) -> bool:
    """Whether C is added to finished sums; else they start with it.

    If arithmetic takes no operand from memory, all of C would be in registers beside the sums.
    """
    products = 1 if call.batch is None else call.batch.products.known or 1
    return folds_loads and (call.depth.known or 0) * products >= ADDED_LAST_DEPTH


# --- other forms, and epilogues -----------------------------------------------------------------


def _dot(node: TileMatmul, scope: Scope) -> None:
    """A tile of one column: vectors run along the depth."""
    types = [scope.dtype(part.buffer) for part in (node.a, node.b, node.c)]
    acc = sums_type(node, types[0].real, types[1].real)
    a, b, c = (scope.window(window) for window in (node.a, node.b, node.c))
    sizes = scope.integers(node.rows, node.depth)
    scalars = [scope.scalar(value, acc) for value in (node.alpha, node.beta)]
    kernel = DotKernel(scope.frame.machine.isa, acc, *types)
    operands = [*sizes, a.pointer, a.row, b.pointer, c.pointer, c.row, *scalars]
    scope.f.call(kernel.emit(scope.f.module), operands)


def _transposed(node: TileMatmul, scope: Scope) -> None:
    """A tile of few rows or columns over lines of the other operand, contiguous along the depth."""
    of_a = node.form is TileForm.TRANSPOSED_A
    few, lines = (node.b, node.a) if of_a else (node.a, node.b)
    count, most = (node.columns, node.tile.nr) if of_a else (node.rows, node.tile.mr)
    dtype = scope.dtype(lines.buffer).real
    machine = scope.frame.machine
    crowded = machine.isa.lanes(dtype) > machine.l1.ways
    set_bytes = machine.l1.size // machine.l1.ways if crowded else 0
    kernel = TransposedKernel(machine.isa, dtype, most, lines_first=of_a, set_bytes=set_bytes)
    assert kernel.lanes == (node.tile.mr if of_a else node.tile.nr), "lanes are lines"
    assert few.panels is not None
    a, b, sums = _windows(node, scope)
    panels, given = (b, a) if of_a else (a, b)
    sizes = scope.integers(count, node.depth)
    operands = [*sizes, panels.pointer, scope.integer(few.panels.stride), given.pointer, given.row]
    scope.f.call(kernel.emit(scope.f.module), [*operands, sums.pointer, sums.row])


def lower_epilogue(node: TileEpilogue, scope: Scope) -> None:
    """A call of the function that applies steps to sums stored outside of C."""
    acc, dtype = scope.dtype(node.sums.buffer), scope.dtype(node.c.buffer)
    sums = scope.window(node.sums)
    sizes = scope.integers(node.rows, node.columns)
    scalars = [scope.scalar(value, acc) for value in (node.alpha, node.beta)]
    steps = () if node.finish is None else node.finish.steps
    windows = [scope.window(one.operand) for one in steps if one.operand is not None]
    c = scope.window(node.c)
    kernel = EpilogueKernel(
        *(scope.frame.machine.isa, acc, dtype, _step_accesses(node.finish)),
        pairs=node.c.interleave > 1,
        strided=scope.f.module.quick or node.c.strides[1] != Constant(node.c.interleave),
    )
    arguments = [*sizes, c.pointer, c.row, c.column, sums.pointer, sums.row, *scalars]
    arguments += [window.pointer for window in windows]
    arguments += [stride for window in windows for stride in (window.row, window.column)]
    scope.f.call(kernel.emit(scope.f.module), arguments)


def _step_accesses(finish: Finish | None) -> tuple[StepAccess, ...]:
    """Steps, each with how its operand is read."""
    applied = () if finish is None else finish.steps
    return tuple(
        StepAccess(one.step, None if one.operand is None else _access(one.operand)) for one in applied
    )


def _access(window: Slice) -> ColumnAccess:
    """How the operand of a step follows the columns of C."""
    column = window.strides[1]
    if column == Constant(0):
        return ColumnAccess.REPEATED
    return ColumnAccess.ADJACENT if column == Constant(window.interleave) else ColumnAccess.STRIDED


def takes_steps_in_registers(node: TileMatmul, program: Program, machine: Machine) -> bool:
    """Whether whole tiles apply their steps in registers: vector units only, and light steps.

    An activation on all of a tile's accumulators would be a thousand instructions in each of its functions:
    these go through a loop (docs/decisions/018-epilogues.md).
    """
    assert node.finish is not None
    known = isinstance(node.rows, Constant) and isinstance(node.columns, Constant)
    plain = node.form is TileForm.OUTER and node.stored is None and node.c.interleave == 1 and not known
    if not plain or any(isinstance(one.step, Activation) and not one.step.light for one in node.finish.steps):
        return False
    a, b = (program.buffer(window.buffer).dtype for window in (node.a, node.b))
    return not machine.isa.tile(a, b, node.sums).is_matrix_engine
