"""What the measuring method asks of a problem of any kind: who can compute it, a ready call, a check."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tilewright.records import dataclass

if TYPE_CHECKING:
    from tilewright.spec.problem import ProductTypes
    from tilewright.tools.explore.prepared import Environment


class Runnable(Protocol):
    """A prepared call."""

    def run(self, calls: int) -> None:
        """Carry it out `calls` times."""


@dataclass(frozen=True)
class Started:
    """A problem in the hands of one system.

    Attributes
    ----------
    product : the call, with operands of its own.
    check : compares what the last call computed with float64, or exact integers; raises `WrongResult`.
    """

    product: Runnable
    check: Callable[[], None]


class Measured(Protocol):
    """One problem to measure: matrix products (`cases.Case`), attention (`attention.cases.AttentionCase`).

    Attributes
    ----------
    size_note : what the labels of sizes mean.
    """

    size_note: ClassVar[str]

    @property
    def subject(self) -> str:
        """The kind in titles, such as "matrix products"."""

    @property
    def label(self) -> str:
        """What a person reads in tables and plots."""

    @property
    def name(self) -> str:
        """The problem in a report: kind, sizes, variant."""

    @property
    def types(self) -> ProductTypes:
        """The wanted element types of the products in it."""

    @property
    def size_fields(self) -> dict[str, int]:
        """Its sizes by name, as a report lists them."""

    @property
    def request(self) -> dict[str, Any]:
        """The record in JSON values under the name of its kind, from which a worker makes it again."""

    def types_of(self, system: str) -> ProductTypes:
        """The element types that a system computes.

        Raises
        ------
        UnsupportedDtype, InvalidChoice : it computes nothing to compare with.
        PackageMissing : it is not installed.
        """

    def environments_of(self, system: str, threads: int) -> tuple[Environment, ...]:
        """Environment settings to try for a system's process; the fastest is measured."""

    def call_of(self, system: str) -> str:
        """What is called in a system."""

    def flops_of(self, system: str) -> int:
        """The operations that one call of a system counts for."""

    def start(self, system: str, seed: int, threads: int, target: str | None) -> Started:
        """Random operands in a system's own types and form, ready to be computed on `threads` threads."""
