"""Predicted cycles of one statement of tile IR whose operands are in L1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import ceil
from typing import NamedTuple

from tilewright.errors import UnsupportedDtype
from tilewright.ir.expressions import Constant
from tilewright.ir.nodes import (
    Finish,
    Pack,
    Primitive,
    Slice,
    Statement,
    TileEpilogue,
    TileForm,
    TileMatmul,
    UnaryMap,
    sums_type,
)
from tilewright.ir.primitives.attention import KeyScores, Softmax, SoftmaxGradient, SumValues
from tilewright.ir.primitives.budget import Spend
from tilewright.ir.primitives.gather import GatherRows
from tilewright.ir.primitives.pairs import CombineRows
from tilewright.ir.primitives.prefetch import PrefetchRows
from tilewright.ir.primitives.products import MultiplyRows, SumProducts
from tilewright.ir.primitives.rotary import RotateRows
from tilewright.ir.primitives.rows import RowPrimitive
from tilewright.ir.primitives.tables import PackTable, ScatterTile
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro import cost
from tilewright.macro.levels import Cycles
from tilewright.macro.operations import ROW_WORK, UNPACK_OPERATIONS, function_operations
from tilewright.macro.prediction import TRANSPOSED_PACKING
from tilewright.macro.register_tiles import dots_visit, few_lines_visit, tile_visit
from tilewright.records import dataclass
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Activation
from tilewright.spec.functions import UnaryOp

#: Operations of a vector of gradients of scores beside those of a softmax: difference, product, mask.
_GRADIENT_OPERATIONS = 3
#: The least bits of an element while it is computed with: halves are converted.
_LEAST_BITS = 32


class _Vectors(NamedTuple):
    """Work on vectors, for each of them."""

    operations: float = 0.0
    loads: float = 0.0
    stores: float = 0.0


@dataclass(frozen=True)
class StatementCost:
    """The model for the statements of one program.

    Attributes
    ----------
    machine : whose rates count.
    types : the element types of the program's buffers.
    """

    machine: Machine
    types: Mapping[str, DType]

    def cycles(self, node: Statement, sizes: Mapping[str, int]) -> Cycles:
        """Predicted cycles of a statement of known sizes (see `touches.extents_of`)."""
        match node:
            case TileMatmul():
                return self._tile(node, sizes)
            case Pack():
                return self._pack(node, sizes)
            case PackTable():
                return self._pack_table(sizes)
            case ScatterTile():
                return self._scatter(sizes)
            case TileEpilogue(c=c):
                vectors = sizes["rows"] * self._vectors(c, sizes["columns"])
                steps = self._steps(node.finish, c)
                return self._moved(vectors, _Vectors(steps.operations + 2, steps.loads + 2, 1))
            case UnaryMap():
                return self._unary(node, sizes)
            case RowPrimitive():
                return self._rows(node, sizes)
            case Softmax() | SoftmaxGradient() | KeyScores() | SumValues():
                return self._attention(node, sizes)
            case Spend() | PrefetchRows():
                return Cycles()
            case Primitive():
                return self._other(node, sizes)
            case _:
                return Cycles()

    # --- vectors ------------------------------------------------------------------------------------------

    def _bits(self, part: Slice) -> int:
        """Of an element of a window while it is computed with."""
        return max(self.types[part.buffer].real.bits, _LEAST_BITS)

    def _vectors(self, part: Slice, elements: int) -> int:
        """Vectors that adjacent elements take."""
        return ceil(elements * self._bits(part) / self.machine.isa.vector_bits)

    def _slots(self) -> float:
        """Vector operations that start in a cycle."""
        return self.machine.timed_isa.fma_per_cycle

    def _stores(self) -> float:
        """Stores of vectors that start in a cycle."""
        bits = self.machine.isa.vector_bits
        rates = [one.stores for one in self.machine.core.vectors if one.bits >= bits]
        return rates[0] if rates else 1.0

    def _moved(self, vectors: float, each: _Vectors, visits: float = 1.0) -> Cycles:
        """Arithmetic on vectors, and loads and stores where these take longer."""
        arithmetic = vectors * each.operations / self._slots()
        memory = vectors * max(
            each.loads / self.machine.timed_isa.loads_per_cycle, each.stores / self._stores()
        )
        visit = visits * self.machine.core.tile_cycles
        return Cycles(functions=arithmetic, l1=max(memory - arithmetic, 0.0), tiles=visit)

    # --- products -----------------------------------------------------------------------------------------

    def _instruction(self, node: TileMatmul) -> TileFma:
        """The multiply instruction of a tile; of types that have none, that of the sums'."""
        a, b = self.types[node.a.buffer], self.types[node.b.buffer]
        isa = self.machine.timed_isa
        if node.stored is not None:
            b = node.stored.elements.value_type(a)
        try:
            return isa.tile(a, b)
        except UnsupportedDtype:
            return isa.tile(sums_type(node, a, b))

    def _tile(self, node: TileMatmul, sizes: Mapping[str, int]) -> Cycles:
        instruction = self._instruction(node)
        rows, columns = sizes["rows"], sizes["columns"]
        depth = sizes["depth"] * sizes.get("batch", 1)
        if node.padded:
            rows, columns = node.tile.mr, node.tile.nr
        match node.form:
            case TileForm.OUTER:
                found = tile_visit(self.machine, instruction, rows, columns, depth)
            case TileForm.DOT:
                found = dots_visit(self.machine, instruction, rows * columns * depth)
                found = found.plus(Cycles(tiles=self.machine.core.tile_cycles))
            case TileForm.TRANSPOSED_A | TileForm.TRANSPOSED_B:
                count = columns if node.form is TileForm.TRANSPOSED_A else rows
                found = few_lines_visit(self.machine, instruction, count, depth)
        vectors = ceil(columns / self.machine.timed_isa.lanes(instruction.acc))
        operations = 0.0
        if node.stored is not None:
            operations += depth * vectors * UNPACK_OPERATIONS
        if node.groups is not None:
            group = node.groups.depth.value if isinstance(node.groups.depth, Constant) else depth
            operations += ceil(depth / max(group, 1)) * rows * vectors
        operations += self._steps(node.finish, node.c).operations * rows * vectors
        return found.plus(Cycles(functions=operations / self._slots()))

    def _steps(self, finish: Finish | None, c: Slice) -> _Vectors:
        """Steps on one vector of C before it is stored."""
        operations = loads = 0.0
        for applied in finish.steps if finish is not None else ():
            if isinstance(applied.step, Activation):
                operations += function_operations(applied.step.op, self._bits(c))
            else:
                operations += 1
                loads += applied.operand is not None
        return _Vectors(operations, loads)

    def _pack(self, node: Pack, sizes: Mapping[str, int]) -> Cycles:
        """Elements of which each is copied once; those of rows are interleaved."""
        elements = sizes["lanes"] * sizes["depth"] * node.parts.spread[0] * node.parts.spread[1]
        interleaved = TRANSPOSED_PACKING if sizes["lane_stride"] != 1 and node.panel > 1 else 1.0
        operations = 0.0
        if node.stored is not None and node.stored.elements.scaled:
            interleaved = 1.0
            operations = self._vectors(node.destination, elements) * UNPACK_OPERATIONS
        packing = elements * self.machine.core.pack_cycles * interleaved
        return Cycles(packing=packing, functions=operations / self._slots())

    def _pack_table(self, sizes: Mapping[str, int]) -> Cycles:
        """Elements through tables of offsets: in runs along the lanes or the depth, or one by one."""
        core, elements = self.machine.core, sizes["lanes"] * sizes["depth"]
        runs = sizes["lane_step"] == 1 or sizes["depth_step"] == 1
        return Cycles(packing=elements * (core.gather_run_cycles if runs else core.gather_cycles))

    def _scatter(self, sizes: Mapping[str, int]) -> Cycles:
        """A tile to places in tables: a contiguous matrix, columns at equal distances, or single elements."""
        core, elements = self.machine.core, sizes["rows"] * sizes["columns"]
        step = sizes["step"]
        strided = core.scatter_run_cycles if step > 1 else core.scatter_cycles
        each = core.scatter_tile_cycles if step == 1 else strided
        return Cycles(packing=elements * each)

    # --- functions ----------------------------------------------------------------------------------------

    def _unary(self, node: UnaryMap, sizes: Mapping[str, int]) -> Cycles:
        to, source = node.destination, node.source
        rows, columns = sizes["rows"], sizes["columns"]
        elements = rows * columns
        operations = function_operations(node.op, self._bits(to))
        vectors = elements * self._bits(to) / self.machine.isa.vector_bits
        if source is not None and sizes["from_column"] != sizes["to_column"] and min(rows, columns) > 1:
            copies = Cycles(packing=elements * self.machine.core.copy_cycles)
            return copies.plus(Cycles(functions=vectors * operations / self._slots()))
        return self._moved(vectors, _Vectors(operations, int(source is not None), 1))

    def _rows(self, node: RowPrimitive, sizes: Mapping[str, int]) -> Cycles:
        """Passes over every row, and its reductions to one number."""
        work, bits = ROW_WORK[node.op], self._bits(node.source)
        extra = sum(getattr(node, name, None) is not None for name in ("weight", "bias"))
        operations = work.operations + extra + work.exponentials * function_operations(UnaryOp.EXP, bits)
        rows, columns = sizes["rows"], sizes["columns"]
        across = sizes["from_column"] != 1
        vectors = (
            columns * self._vectors(node.source, rows)
            if across
            else rows * self._vectors(node.source, columns)
        )
        visits = work.reductions * (ceil(rows * bits / self.machine.isa.vector_bits) if across else rows)
        each = _Vectors(operations, work.loads + extra, work.stores)
        return self._moved(vectors, each, visits)

    def _attention(self, node: Statement, sizes: Mapping[str, int]) -> Cycles:
        """Scores and few queries: the constants of `cost`, in multiply-adds of whole vectors."""
        rows, slots = sizes["rows"], self._slots()
        match node:
            case Softmax(scores=scores):
                vectors = rows * self._vectors(scores, sizes["columns"])
                extra = function_operations(UnaryOp.TANH, 32) * (node.softcap is not None)
                return Cycles(functions=vectors * (cost.SOFTMAX_OPERATIONS + extra) / slots)
            case SoftmaxGradient(scores=scores):
                vectors = rows * self._vectors(scores, sizes["columns"])
                each = function_operations(UnaryOp.EXP, self._bits(scores)) + _GRADIENT_OPERATIONS
                return self._moved(vectors, _Vectors(each, 2, 2))
            case KeyScores(k=part):
                width = sizes["depth"]
            case SumValues(values=part):
                width = sizes["columns"]
            case _:
                return Cycles()
        dtype = self.types[part.buffer]
        isa = self.machine.timed_isa
        pairs = isa.pair_tile(dtype, dtype) is not None
        each = cost.KEY_ROW_PAIR_OPERATIONS if pairs else cost.KEY_ROW_OPERATIONS
        lanes = isa.vector_bits / self._bits(part)
        keys = sizes["keys"]
        read = cost.KEY_READ_OPERATIONS * width * dtype.bits / isa.vector_bits
        return Cycles(
            multiply=keys * rows * width / lanes * each / slots,
            tiles=keys * cost.KEY_OPERATIONS / 2 / slots,  # a key is visited once for its score and once more
            l1=keys * read / slots,
        )

    def _other(self, node: Primitive, sizes: Mapping[str, int]) -> Cycles:
        """Primitives of a few operations on each vector of their windows."""
        rows = sizes.get("rows", 1)
        columns = sizes.get("columns", sizes.get("elements", 1))
        to: Slice = next(
            value for value in (getattr(node, one.name) for one in fields(node)) if isinstance(value, Slice)
        )
        match node:
            case CombineRows(to=to, activation=activation):
                extra = 0.0 if activation is None else function_operations(activation, self._bits(to))
                each = _Vectors(1 + extra, 2, 1)
            case RotateRows(to=to):
                columns = 2 * sizes["pairs"] + sizes["rest"]
                each = _Vectors(2, 2, 1)  # a product and a multiply-add with a sine and a cosine each
            case GatherRows(to=to, scale=scale, scales=scales):
                each = _Vectors((scale is not None) + 2.0 * (scales is not None), 1, 1)
            case SumProducts(left=to, right=right):
                rows *= sizes["turns"]
                each = _Vectors(1, 1 + (right is not None), 0)
            case MultiplyRows(to=to):
                each = _Vectors(1, 2, 1)
            case _:  # states of rows and results of attention: read, scaled, stored
                each = _Vectors(2, 1, 1)
        return self._moved(rows * self._vectors(to, columns), each)
