"""`explain`: which operations of a model run in compiled graphs, and why the others do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from tilewright.torch.backend import tilewright
from tilewright.torch.partition import NodeReport


class GraphReport(NamedTuple):
    """One graph of PyTorch.

    Attributes
    ----------
    nodes : where each operation runs, in order.
    """

    nodes: tuple[NodeReport, ...]

    @property
    def regions(self) -> int:
        """The number of compiled graphs that it was cut into."""
        return len({one.region for one in self.nodes} - {None})

    @property
    def converted(self) -> int:
        """The number of operations that run in these."""
        return sum(one.region is not None for one in self.nodes)


class DynamoReport(tuple[GraphReport, ...]):
    """The graphs that Dynamo made of a model; prints as a list."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = []
        for number, graph in enumerate(self):
            lines.append(
                f"graph {number}: {graph.converted} of {len(graph.nodes)} operations "
                f"in {graph.regions} compiled graph{'s' * (graph.regions != 1)}"
            )
            left = Counter((one.operation, one.reason) for one in graph.nodes if one.region is None)
            lines += [
                f"  {count} x {operation} by PyTorch: {reason}"
                for (operation, reason), count in left.most_common()
            ]
        return "\n".join(lines) or "no graph"

    __repr__ = __str__


def explain(
    model: Callable[..., Any],
    /,
    *inputs: Any,
    options: Mapping[str, Any] | None = None,
    dynamic: bool | None = None,
    **named: Any,
) -> DynamoReport:
    """Compile a model for some inputs, run it once, and say which operations run where.

    Parameters
    ----------
    model : a module or a function; call this where the model would be called, under `torch.no_grad()` say.
    inputs, named : its arguments.
    options, dynamic : as of `torch.compile`.

    Examples
    --------
    >>> with torch.no_grad():
    ...     print(explain(torch.nn.Linear(4, 4), torch.ones(2, 4)))
    graph 0: 2 of 2 operations in 1 compiled graph
    """
    found: list[GraphReport] = []

    def listen(reports: Sequence[NodeReport]) -> None:
        found.append(GraphReport(tuple(reports)))

    backend = partial(tilewright, options=options, listener=listen)
    torch.compile(model, backend=backend, dynamic=dynamic)(*inputs, **named)
    return DynamoReport(found)
