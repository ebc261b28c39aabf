"""Measures kernels that differ in tuned constants, on one thread of this process.

The method is that of the benchmarks (`measure.py`): the peak of the multiply unit right before each
measurement, a few untimed calls in front of the timed ones. All kernels of a class multiply the same arrays.
A peak that is lower than others shows that something else runs on the machine; it is measured again some
times before a kernel is measured.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewright.calls.kernels import new_kernel
from tilewright.compiler.peak import measure_peak
from tilewright.errors import OtherBits
from tilewright.machine.machine import Machine
from tilewright.threads.pool import get_num_threads, set_num_threads
from tilewright.tools.explore.cases import Case
from tilewright.tools.explore.measure import LONGEST_PEAK_SECONDS
from tilewright.tools.explore.prepared import KernelProduct
from tilewright.tools.explore.tuning.choice import Round
from tilewright.tools.explore.tuning.classes import any_sizes
from tilewright.tools.explore.worker import TimedProduct, call_seconds, warmed_up

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray


#: A peak of less than this share of the highest one is measured again, so many times.
QUIET, ATTEMPTS = 0.95, 5


class KernelTimer:
    """Measures kernels of this host; as a context, one thread computes.

    Parameters
    ----------
    seed : of the operands.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._prepared: list[list[TimedProduct]] = []
        self._cases: Sequence[Case] = ()
        self._machine: Machine | None = None
        self._highest = 0.0
        self._threads = get_num_threads()

    def __enter__(self) -> KernelTimer:
        self._threads = get_num_threads()
        set_num_threads(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        set_num_threads(self._threads)

    def prepare(self, machines: Sequence[Machine], cases: Sequence[Case]) -> None:
        """Compiles, checks and warms up; see `tune.Timer`."""
        self._machine, self._cases = replace(machines[0], tunings=()), cases
        self._highest = 0.0
        # Equal machines have kernels of their own: where code and scratch are is part of the noise.
        kernels = [new_kernel(any_sizes(cases[0].types), machine) for machine in machines]
        self._prepared = [[] for _ in machines]
        self._seed += 1
        for case in cases:
            a, b, c = case.operands(self._seed)
            expected: NDArray[Any] | None = None
            for machine, kernel, prepared in zip(machines, kernels, self._prepared, strict=True):
                product = KernelProduct(kernel.native, a, b, c)
                c.fill(0)
                product.run(1)
                if expected is None:
                    expected = c.copy()
                elif c.tobytes() != expected.tobytes():
                    raise OtherBits(problem=case.name, constants=_constants(machine))
                prepared.append(warmed_up(product, 0.0))

    def measure(self, order: random.Random) -> Round:
        """Times in cycles at the peak; see `tune.Timer`."""
        todo = [(place, case) for place in range(len(self._prepared)) for case in range(len(self._cases))]
        order.shuffle(todo)
        found = [[0.0] * len(self._cases) for _ in self._prepared]
        for place, case in todo:
            prepared = self._prepared[place][case]
            peak = self._peak(min(prepared.seconds, LONGEST_PEAK_SECONDS))
            found[place][case] = call_seconds(prepared) * peak
        return found

    def _peak(self, seconds: float) -> float:
        """The peak of the multiply unit over some seconds, in GFLOPS."""
        assert self._machine is not None
        types, peak = self._cases[0].types, 0.0
        for _ in range(ATTEMPTS):
            peak = measure_peak(types.a, self._machine, seconds, b_dtype=types.b)
            self._highest = max(peak, self._highest)
            if peak >= QUIET * self._highest:
                break
        return peak


def _constants(machine: Machine) -> str:
    """The tuned constants of a machine, for an error."""
    return "; ".join(
        f"{tuning.types}: " + ", ".join(f"{one.name}={one.value}" for one in tuning.constants)
        for tuning in machine.tunings
    )
