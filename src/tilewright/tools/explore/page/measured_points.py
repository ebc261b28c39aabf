"""Measured points of a roofline: a product on this host, beside peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.errors import NotMeasured
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.ops.gemm.problem import Gemm
from tilewright.tools.explore.cases import Case
from tilewright.tools.explore.measure import BenchmarkPlan, measure

#: Rounds of a measurement: seconds for products of a thousand rows.
REPEAT = 5


def add_measured(
    problem: Any, machines: Sequence[Machine], records: Sequence[dict[str, Any]], peers: Sequence[str]
) -> None:
    """Measures a product and adds the points to the record of this host.

    A point is the median share of the peak that was measured right before, times the peak in operations a
    cycle: so clock frequencies and neighbours do not count.

    Raises
    ------
    NotMeasured : the problem is no product of known sizes, or this host is not among the machines.
    """
    host = host_machine()
    if not isinstance(problem, Gemm) or problem.flops is None or problem.packed or problem.weights:
        raise NotMeasured(reason="only a gemm of known m, n and k without packed operands is measured")
    if host not in machines:
        raise NotMeasured(reason="host is not among the targets")
    report = measure(BenchmarkPlan((Case(problem),), tuple(peers), repeat=REPEAT), {})
    record = records[machines.index(host)]["roofline"]
    record["points"] = [
        [row.system, row.share_of_peak * record["peak"]] for row in report.rows if row.share_of_peak
    ]
