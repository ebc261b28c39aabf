"""Which values are bfloat16: those that are read only where they would be rounded to it."""

from __future__ import annotations

from tilewright.graph.network import Network
from tilewright.graph.nodes.attention import AttentionNode
from tilewright.graph.nodes.products import LinearNode
from tilewright.records import dataclass

#: Operands of attention that have the type of its result: q, k and v.
_NARROW_OPERANDS = 3


def narrow_values(network: Network, rounding: frozenset[int]) -> frozenset[int]:
    """The layers and the attention whose results are in bfloat16.

    A layer that rounds its rows gives a bfloat16 result where every reader would round it: another such
    layer, as its rows, or attention that is in bfloat16 itself, as q, k or v. Attention is in bfloat16 if q,
    k and v all are, and its result is read as rows of such layers alone. A view has the type of its value.

    Parameters
    ----------
    rounding : positions of the layers that round their rows.
    """
    found = frozenset(at for at, node in enumerate(network.nodes) if isinstance(node, AttentionNode))
    while True:
        seen = _Narrow(network, rounding, found)
        left = frozenset(at for at in found if seen.is_narrow(at))
        if left == found:
            break
        found = left
    return found | {at for at in rounding if seen.is_given(at)}


def source_of(network: Network, at: int) -> int:
    """The value that a value is a view of; itself if it is none."""
    while network.nodes[at].is_view:
        at = network.nodes[at].operands[0]
    return at


@dataclass(frozen=True)
class _Narrow:
    """The types of values, given which attention is in bfloat16."""

    network: Network
    rounding: frozenset[int]
    attention: frozenset[int]

    def is_narrow(self, at: int) -> bool:
        """Whether attention takes and gives bfloat16."""
        operands = self.network.nodes[at].operands[:_NARROW_OPERANDS]
        return self.is_taken(at) and all(self.is_given(source_of(self.network, one)) for one in operands)

    def is_given(self, at: int) -> bool:
        """Whether a layer gives bfloat16; what is added to a residual has the residual's type."""
        node = self.network.nodes[at]
        layer = isinstance(node, LinearNode) and at in self.rounding and not node.in_place()
        return layer and self.is_taken(at)

    def is_taken(self, at: int) -> bool:
        """Whether everything that reads a value takes it in bfloat16."""
        readers = set(self.network.readers[at])
        return (
            bool(readers) and at not in self.network.results and all(self._takes(one, at) for one in readers)
        )

    def _takes(self, reader: int, at: int) -> bool:
        """Whether one reader takes a value in bfloat16, wherever it is among its operands."""
        node = self.network.nodes[reader]
        places = [place for place, operand in enumerate(node.operands) if operand == at]
        if node.is_view:
            return places == [0] and self.is_taken(reader)
        if reader in self.rounding:
            return places == [0]
        return reader in self.attention and places[-1] < _NARROW_OPERANDS
