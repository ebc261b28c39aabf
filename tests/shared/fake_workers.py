"""Processes of systems that compute nothing: each answers with times that a test gives it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tilewright.errors import WorkerFailed, WrongResult
from tilewright.tools.bench.results import Results, RowResult, SystemResult

#: The peak that every fake process reports, in GFLOPS.
PEAK = 100.0


class FakeWorker:
    """What `contest.py` asks of a process.

    Attributes
    ----------
    seconds : of a call, by system; a system that is not in it fails.
    asked : every command of every process, in order.
    wrong : systems whose results are wrong.
    dying : systems whose process ends when it is measured.
    on_prepare : called with a system and a request before it is prepared.
    """

    seconds: ClassVar[Mapping[str, float]] = {}
    asked: ClassVar[list[tuple[str, str]]] = []
    wrong: frozenset[str] = frozenset()
    dying: frozenset[str] = frozenset()
    on_prepare: Callable[[str, dict[str, Any]], None] = staticmethod(lambda system, request: None)
    noise = random.Random(0)

    def __init__(self, system: str, threads: int, target: str | None = None, environment: Any = None) -> None:
        self.system, self.threads, self.environment = system, threads, environment or {}
        self.is_alive = True

    def __enter__(self) -> FakeWorker:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, command: str, **arguments: Any) -> dict[str, float]:
        self.asked.append((self.system, command))
        match command:
            case "peak":
                return {"gflops": PEAK}
            case "prepare":
                type(self).on_prepare(self.system, arguments)
                if self.system in self.wrong:
                    raise WrongResult(
                        system=self.system, problem="p", row=0, column=0, found=1.0, expected=2.0, bound=0.0
                    )
                if self.system not in self.seconds:
                    self.is_alive = False
                    raise WorkerFailed(system=self.system, reason="it is fake")
                return {"seconds": 0.005}
            case _:
                if self.system in self.dying:
                    self.is_alive = False
                    raise WorkerFailed(system=self.system, reason="it died")
                return {"seconds": self.seconds[self.system] * self.noise.uniform(0.98, 1.02)}


def fake_row(
    seconds: Mapping[str, float], *, label: str = "a", seed: int = 0, noise: float = 0.02, count: int = 20
) -> RowResult:
    """A row of a million operations, whose times are noisy around those given."""
    draw = random.Random(f"{label} {seed}")
    systems = tuple(
        SystemResult(
            name,
            f"call of {name}",
            {},
            tuple(time * draw.uniform(1 - noise, 1 + noise) for _ in range(count)),
            (PEAK,) * count,
        )
        for name, time in seconds.items()
    )
    return RowResult(
        key=f"products: {label}",
        family="products",
        label=label,
        problem=label,
        dtype="f32",
        sizes={"m": 64, "n": 64, "k": 64},
        threads=1,
        counts="flops",
        work=1_000_000,
        moved=49152,
        memory_seconds=(1e-6,) * count,
        systems=systems,
    )


def fake_results(*rows: RowResult, **identity: Any) -> Results:
    versions = {"numpy": "2", "torch": "2"}
    machine = {"cpu": "znver5", "isa": "avx512", "system": "Linux", "versions": versions}
    return Results({"versions": versions, "form": "quick", **identity}, machine, {}, rows)
