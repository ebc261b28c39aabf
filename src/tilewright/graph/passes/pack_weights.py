"""Weight packing: constant weights of linear layers are stored in the tiles of this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import get_args

import numpy as np

from tilewright.cached import cached_property
from tilewright.calls.operands import Array
from tilewright.graph.calibration import InputStatistics, Statistics
from tilewright.graph.network import Network, Rewriter, rewritten
from tilewright.graph.nodes.elementwise import CastNode
from tilewright.graph.nodes.products import LinearNode
from tilewright.graph.nodes.rows import NormNode
from tilewright.graph.nodes.sources import ConstantNode
from tilewright.graph.passes.attention_projections import attention_projections
from tilewright.graph.passes.balance_columns import Balance, column_balances, divided, folded_norm
from tilewright.graph.passes.narrow_values import narrow_values, source_of
from tilewright.graph.passes.patterns import constant_array
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.ops.quantized.gptq import shrunk_moments
from tilewright.ops.quantized.public import pack, quantize_weights
from tilewright.ops.quantized.quantise import quantized_for
from tilewright.progress import Steps
from tilewright.records import dataclass
from tilewright.spec.dtype import BF16, F32
from tilewright.spec.weights import Elements, Weights
from tilewright.typing import GraphPrecision

#: How weights are stored, by the precision that a caller asks for.
PRECISIONS: tuple[str, ...] = get_args(GraphPrecision)
#: Those that sample inputs make more precise.
CALIBRATED = ("i8-weights", "i4-weights", "i8-dynamic")
#: Those in which rows are rounded to bfloat16 where that pays (`rounds_rows`).
ROUNDED = ("bf16", "i8-weights", "i4-weights")
#: Words beside which they are, where the caller has packed a weight: others hold more than bfloat16 does, or
#: are converted by way of subnormal numbers.
ROUNDED_BESIDE = (Elements.I8, Elements.I4, Elements.BF16)
#: Depths that share a scale and a zero point, of weights of 4 bits. The least cosine of MiniLM's embeddings
#: to those in float32 is 0.960 with 32, 0.946 with 64, and 0.909 with 64 and no zero points.
GROUP = 32
#: Depths that share a scale, of weights of 8 bits that have more: the least cosine of MiniLM is 0.99948, and
#: 0.99895 with one scale for all 1536 depths, in the same time.
WIDE_GROUP = 512
#: How many times as fast bfloat16 is multiplied where rows are rounded to it: AMX multiplies 16 times as many
#: numbers in a cycle. With BFMMLA (4) and VDPBF16PS (2) nobody has measured whether that pays.
ROUNDING_GAIN = 8


def packed_weight(weight: Array, precision: str, known: InputStatistics | None = None) -> PackedMatrix:
    """A weight (in, out) packed as a precision says; of f64 and the like always as it is.

    With statistics of its inputs it is rounded for products with them.
    """
    group = WIDE_GROUP if len(weight) > WIDE_GROUP else None
    if known is not None and known.moments is not None and precision in ("i4-weights", "i8-weights"):
        four, eight = Weights(Elements.I4, GROUP, zeros=True), Weights(Elements.I8, group or 0)
        moments = shrunk_moments(known.moments, known.rows)
        return quantized_for(weight, four if precision == "i4-weights" else eight, moments, host_machine())
    if precision == "bf16":
        if rounds_here(precision):
            return pack(weight.astype(BF16.numpy, copy=False))
        return pack(weight.astype(F32.numpy, copy=False), form="bf16")
    if precision == "i8-dynamic":
        return quantize_weights(weight, bits=8)
    if precision == "i8-weights":
        return quantize_weights(weight, bits=8, group=group)
    if precision == "i4-weights":
        return quantize_weights(weight, bits=4, group=GROUP, symmetric=False, rounding="hqq")
    return pack(weight)


def rounds_rows(machine: Machine) -> bool:
    """Whether x is rounded too: where a unit multiplies bfloat16 so much faster than float32 that it pays.

    Else float32 rows meet widened weights, which is more precise and as fast where memory is what limits.

    >>> from tilewright.machine.catalog import find_machine
    >>> rounds_rows(find_machine("sapphirerapids")), rounds_rows(find_machine("znver5"))
    (True, False)
    >>> rounds_rows(find_machine("neoverse-v2"))
    False
    """
    narrow, wide = (machine.isa.tile(dtype) for dtype in (BF16, F32))
    rates = (one.products * machine.isa.rate(one) for one in (narrow, wide))
    return narrow.a == BF16 and next(rates) >= ROUNDING_GAIN * next(rates)


def rounds_here(precision: str) -> bool:
    """Whether layers of a precision round float32 rows to bfloat16 on this host."""
    return precision in ROUNDED and rounds_rows(host_machine())


@dataclass
class _WeightPacking:
    """The pass on one network.

    Attributes
    ----------
    statistics : of inputs of layers, where there are sample inputs.
    sensitive : layers whose weights have 8 bits where others have 4.
    balances : factors of columns, by position of a norm.
    packed : constants added so far, by position, order, precision and x of the weight they are made of.
    divided : results of norms divided by factors, by the norm's position.
    rounded : x of layers in bfloat16, by position.
    """

    network: Network
    precision: str
    statistics: Statistics
    sensitive: frozenset[int]
    balances: Mapping[int, Balance]
    packed: dict[tuple[int, bool, str, int], int] = field(default_factory=dict)
    divided: dict[int, int] = field(default_factory=dict)
    rounded: dict[int, int] = field(default_factory=dict)

    def change(self, rewriter: Rewriter, at: int) -> int | None:
        """Adds what a node becomes; None where it stays."""
        node = self.network.nodes[at]
        if isinstance(node, NormNode) and at in self.balances and self.balances[at].folded:
            return folded_norm(self.network, rewriter, at, self.balances[at].factors)
        array, rounds = self._array(at), self._rounds(at)
        if not isinstance(node, LinearNode) or not (rounds or array is not None):
            return None
        x, changed = self.network.types[node.operands[0]], node
        operands = [rewriter.moved[one] for one in node.operands]
        if array is not None:
            if node.operands[0] in self.balances:
                operands[0] = self._balanced(rewriter, node.operands[0])
            precision = self._precision(at, x.dtype)
            operands[1] = self._weight(rewriter, node, array, precision)
            changed = replace(node, by_columns=True, quantised_rows=precision == "i8-dynamic")
        if rounds:
            operands[0] = self._rounded(rewriter, node.operands[0])
            changed = replace(changed, dtype=BF16.numpy if at in self.narrow else x.dtype)
        return rewriter.add(replace(changed, operands=tuple(operands)))

    def _array(self, at: int) -> Array | None:
        """The weight of a layer that is packed; None of other nodes."""
        if not isinstance(self.network.nodes[at], LinearNode):
            return None
        x, weight = self.network.operand_types(at)[:2]
        array = constant_array(self.network, self.network.nodes[at].operands[1])
        stored = self.precision == "bf16" and (x.dtype, weight.dtype) == (F32.numpy, BF16.numpy)
        return None if array is None or not (stored or x.dtype == weight.dtype) or 0 in array.shape else array

    def _rounds(self, at: int) -> bool:
        """Whether a node is a layer that rounds its rows to bfloat16; its weight may be packed already."""
        if not rounds_here(self.precision) or (self._array(at) is None and not self._has_words(at)):
            return False
        return self.network.types[self.network.nodes[at].operands[0]].dtype == np.float32

    def _has_words(self, at: int) -> bool:
        """Whether a node is a layer whose weight the caller has packed as integers or in bfloat16."""
        node = self.network.nodes[at]
        if not isinstance(node, LinearNode) or node.quantised_rows:
            return False
        weight = self.network.nodes[node.operands[1]]
        stored = weight.value.form.weights if isinstance(weight, ConstantNode) and weight.packed else None
        return stored is not None and stored.elements in ROUNDED_BESIDE

    @cached_property
    def narrow(self) -> frozenset[int]:
        """Nodes whose results are bfloat16."""
        every = range(len(self.network.nodes))
        return narrow_values(self.network, frozenset(at for at in every if self._rounds(at)))

    def _rounded(self, rewriter: Rewriter, x: int) -> int:
        if source_of(self.network, x) in self.narrow:
            return rewriter.moved[x]
        if x not in self.rounded:
            self.rounded[x] = rewriter.add(CastNode((rewriter.moved[x],), BF16.numpy))
        return self.rounded[x]

    def _precision(self, at: int, dtype: np.dtype[np.generic]) -> str:
        if dtype != np.float32:
            return "f32"
        return "i8-weights" if at in self.sensitive else self.precision

    def _balanced(self, rewriter: Rewriter, x: int) -> int:
        balance = self.balances[x]
        if balance.folded:
            return rewriter.moved[x]
        if x not in self.divided:
            self.divided[x] = divided(rewriter, rewriter.moved[x], balance.factors)
        return self.divided[x]

    def _weight(self, rewriter: Rewriter, node: LinearNode, array: Array, precision: str) -> int:
        """The packed weight of a layer; layers with the same x, or without statistics, share it."""
        x, at = node.operands[:2]
        key = at, node.by_columns, precision, x if x in self.statistics else -1
        if key not in self.packed:
            weight = array if node.by_columns else array.T
            if x in self.balances:
                weight = weight * self.balances[x].factors[:, np.newaxis]
            label = self.network.nodes[at].label  # type: ignore[attr-defined]
            value = packed_weight(weight, precision, self.statistics.get(x))
            self.packed[key] = rewriter.add(ConstantNode((), value, label))
        return self.packed[key]


def pack_weights(
    network: Network, precision: str, statistics_of: Callable[[Network], Statistics] | None = None
) -> Network:
    """Pack the constant weights.

    ::

        %1 = constant : float32[1536, 384]      %1 = constant packed : float32[384, 1536]
        %2 = linear(%0, %1)                ->   %2 = linear(%0, %1) by_columns=True

    In "i4-weights" the projections of attention have 8 bits. In these, in "bf16" and in "i8-weights" x is
    rounded to bfloat16 where the machine has a unit for it (`rounds_rows`), beside weights that the caller
    has packed as integers or in bfloat16, too; sums and results stay in float32.

    Parameters
    ----------
    statistics_of : measures the inputs of the layers of a network. Weights of "i4-weights" and "i8-weights"
        are then rounded for these inputs, and columns are balanced for "i8-dynamic".
    """
    statistics = {} if statistics_of is None else statistics_of(network)
    sensitive = attention_projections(network) if precision == "i4-weights" else frozenset()
    balances = column_balances(network, statistics) if precision == "i8-dynamic" else {}
    packing = _WeightPacking(network, precision, statistics, sensitive, balances)
    with Steps("pack weights", len(network.nodes)) as steps:

        def change(rewriter: Rewriter, at: int) -> int | None:
            found = packing.change(rewriter, at)
            steps.advance()
            return found

        return rewritten(network, change)
