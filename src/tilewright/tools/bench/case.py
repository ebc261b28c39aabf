"""One operation as the measuring method wants it: a request for workers, a ready call, a check."""

from __future__ import annotations

from dataclasses import field
from itertools import repeat
from typing import Any, ClassVar

import numpy as np

from tilewright.errors import InvalidChoice, WrongResult, shown
from tilewright.records import dataclass
from tilewright.spec.problem import ProductTypes
from tilewright.tools.bench.families import OPERATIONS
from tilewright.tools.bench.operation import Array, Call, Operation, OperationShape, Way, wide
from tilewright.tools.bench.peers import find_peer
from tilewright.tools.explore.measured import Started
from tilewright.tools.explore.prepared import Environment
from tilewright.tools.explore.systems import TILEWRIGHT, find_system


class OperationRun:
    """A prepared call; every system is called the same way, so the overhead of the loop is equal."""

    def __init__(self, call: Call) -> None:
        self._call, self._last = call, None

    def run(self, calls: int) -> None:
        """Call it `calls` times."""
        call, last = self._call, None
        for _ in repeat(None, calls):
            last = call()
        self._last = last

    def result(self) -> Any:
        """What the last call returned; it is let go of."""
        last, self._last = self._last, None
        return last


@dataclass(frozen=True)
class OperationCase(OperationShape):
    """One operation to measure.

    Examples
    --------
    >>> OperationCase("softmax", (("rows", 8), ("columns", 4))).name
    'softmax 8x4'
    """

    size_note: ClassVar[str] = "sizes of the operation"

    label: str = field(default="", compare=False)

    @classmethod
    def from_request(cls, fields: dict[str, Any]) -> OperationCase:
        """The case of a worker's command."""
        sizes = tuple((str(name), int(size)) for name, size in fields.pop("sizes"))
        return cls(sizes=sizes, **fields)

    @property
    def row(self) -> Operation:
        """What is known of the operation."""
        if self.operation not in OPERATIONS:
            raise InvalidChoice(
                name="operation", found=shown(self.operation), allowed=", ".join(sorted(OPERATIONS))
            )
        found: Operation = OPERATIONS[self.operation]
        return found

    @property
    def subject(self) -> str:
        """The kind in titles."""
        return self.row.subject

    @property
    def name(self) -> str:
        """Operation, option and sizes."""
        sizes = "x".join(str(size) for _, size in self.sizes)
        return " ".join(filter(None, (self.operation, self.option, sizes)))

    @property
    def types(self) -> ProductTypes:
        """The element types whose peak is measured."""
        return ProductTypes.parse(self.dtype)

    @property
    def size_fields(self) -> dict[str, int]:
        """Its sizes by name."""
        return dict(self.sizes)

    @property
    def request(self) -> dict[str, Any]:
        """The record in JSON values, from which a worker makes it again."""
        fields = {
            "operation": self.operation,
            "sizes": self.sizes,
            "dtype": self.dtype,
            "option": self.option,
        }
        return {"operation": fields}

    def types_of(self, system: str) -> ProductTypes:
        """Those of the case, of systems that are here and compute it."""
        self.way_of(system)
        return self.types

    def environments_of(self, system: str, threads: int) -> tuple[Environment, ...]:
        """JAX takes its settings from the environment."""
        if system == "jax":
            row: Any = find_system("jax")
            settings: tuple[Environment, ...] = row.environments(threads)
            return settings
        return ({},)

    def call_of(self, system: str) -> str:
        """What is called in a system."""
        return self.way_of(system).call

    def flops_of(self, system: str) -> int:  # noqa: ARG002  (every system counts for the same)
        """The operations that one call counts for; its bytes, or 1, where it has none."""
        row = self.row
        return row.work(self) if row.work is not None else row.moved(self) or 1

    def start(self, system: str, seed: int, threads: int, target: str | None) -> Started:
        """Random operands, ready to be computed; operations run on this host only."""
        if target is not None:
            raise InvalidChoice(name="target of measured operations", found=shown(target), allowed="host")
        row, way = self.row, self.way_of(system)
        arrays = row.operands(self, np.random.default_rng(seed))
        run = OperationRun(way.prepare(self, arrays, threads))

        def check() -> None:
            exact = row.exact(self, *map(wide, arrays))
            bound = row.tolerance if way.tolerance is None else way.tolerance
            self.check(system, way.read(run.result()), exact, bound)

        return Started(run, check)

    def way_of(self, system: str) -> Way:
        """How a system computes it.

        Raises
        ------
        InvalidChoice : it does not.
        PackageMissing, ToolMissing : it is not here.
        """
        ways = self.row.ways
        if system not in ways:
            raise InvalidChoice(
                name=f"system of {self.operation}", found=shown(system), allowed=", ".join(ways)
            )
        if system != TILEWRIGHT.name:
            find_peer(system).check()
        return ways[system]

    def check(self, system: str, found: Array, exact: Array, tolerance: float) -> None:
        """Compare a result with the exact one.

        Raises
        ------
        WrongResult : names the worst element.
        """
        theirs, ours = wide(np.atleast_1d(found)), np.atleast_1d(exact)
        if theirs.shape != ours.shape:
            theirs = np.broadcast_to(np.nan, ours.shape)
        error = np.abs(theirs - ours)
        bound = tolerance * float(np.abs(ours).max(initial=0.0))
        excess = np.where(np.isnan(error), np.inf, error - bound).reshape(-1, ours.shape[-1])
        if not (excess > 0).any():
            return
        i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
        flat_found, flat_exact = theirs.reshape(excess.shape), ours.reshape(excess.shape)
        raise WrongResult(
            system=system,
            problem=self.name,
            row=int(i),
            column=int(j),
            found=flat_found[i, j].item(),
            expected=flat_exact[i, j].item(),
            bound=bound,
        )
