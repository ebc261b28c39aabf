"""A model as a compiled graph, beside ONNX Runtime on the same inputs.

Both run in this process. In each round either system is measured once, in a new random order, by calls that
together last `MEASUREMENT_SECONDS`; idle threads of the other one are given `SETTLE_SECONDS` to rest.
Reported are the median time of a call with its 95 % confidence interval. The results of the two systems are
compared before anything is timed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.calls.operands import Array
from tilewright.errors import ModelResult
from tilewright.graph.compiled import CompiledGraph
from tilewright.machine.host import detect_host
from tilewright.progress import Steps
from tilewright.records import dataclass
from tilewright.tools.explore.facts import describe_machine
from tilewright.tools.explore.model_inputs import parse_sizes, random_inputs, read_inputs
from tilewright.tools.explore.rounds import compare_calls
from tilewright.tools.explore.statistics import median, median_interval
from tilewright.tools.explore.systems import onnx_session
from tilewright.tools.explore.worker import MEASUREMENT_SECONDS, SETTLE_SECONDS

#: Systems by name.
OURS, PEER = "tilewright", "onnxruntime"
#: The largest accepted difference of two systems, of the largest element, of weights as in the model.
BOUND = 1e-3


@dataclass(frozen=True)
class ModelRow:
    """One system; the fields are the JSON form. Times are in seconds.

    Attributes
    ----------
    first_seconds : from the file to the first result.
    difference : the largest difference from ONNX Runtime's results, of the largest element; None without it.
    """

    system: str
    seconds: float
    seconds_ci: tuple[float, float]
    first_seconds: float
    difference: float | None


@dataclass(frozen=True)
class ModelReport:
    """A finished measurement; the fields are the JSON form."""

    model: str
    machine: Mapping[str, object]
    inputs: Mapping[str, tuple[int, ...]]
    threads: int
    precision: str
    rows: tuple[ModelRow, ...]

    def to_json(self) -> str:
        """The report as a JSON text."""
        return json.dumps(asdict(self), indent=2) + "\n"


@dataclass(frozen=True)
class ModelOptions:
    """How a model is measured.

    Attributes
    ----------
    bound : the largest accepted difference of two systems, of the largest element.
    """

    precision: str = "f32"
    threads: int = 1
    repeat: int = 20
    seed: int = 0
    bound: float = BOUND


@dataclass(frozen=True)
class ModelPlan:
    """What is measured.

    Attributes
    ----------
    inputs : by name, in the model's order.
    load_seconds : how long the graph took to be loaded and compiled.
    """

    path: Path
    graph: CompiledGraph
    inputs: Mapping[str, Array]
    load_seconds: float
    options: ModelOptions


def measure_file(
    path: Path, inputs: Sequence[str], sizes: Sequence[str], options: ModelOptions
) -> ModelReport:
    """Measure a model of a file; `inputs` and `sizes` are words of the command line.

    Raises
    ------
    InferenceInput, ModelResult, and what `tilewright.onnx.load` raises
    """
    started = time.perf_counter()
    graph = tw.onnx.load(path, precision=options.precision)
    load_seconds = time.perf_counter() - started
    nodes = [node for _, node in graph.network.inputs]
    names = [node.label for node in nodes]
    found = random_inputs(nodes, read_inputs(inputs, names), parse_sizes(sizes), options.seed)
    plan = ModelPlan(path, graph, {name: found[name] for name in names}, load_seconds, options)
    return measure_model(plan, describe_machine(detect_host()))


def measure_model(plan: ModelPlan, machine: Mapping[str, object]) -> ModelReport:
    """Carry out a plan; the method is described at the head of this file.

    Raises
    ------
    ModelResult : the results differ by more than the bound, of weights that are as in the model.
    """
    calls: dict[str, Callable[[], Any]] = {}
    firsts: dict[str, float] = {}
    results: dict[str, list[Array]] = {}
    started = time.perf_counter()
    calls[OURS] = lambda: plan.graph(*plan.inputs.values(), threads=plan.options.threads)
    found = calls[OURS]()
    results[OURS] = list(found) if isinstance(found, tuple) else [found]
    firsts[OURS] = plan.load_seconds + time.perf_counter() - started
    if find_spec(PEER) is not None:
        started = time.perf_counter()
        calls[PEER] = _session(plan)
        results[PEER] = calls[PEER]()
        firsts[PEER] = time.perf_counter() - started
    differences = {OURS: _difference(plan, results) if PEER in results else None, PEER: None}
    samples = _samples(plan, calls)
    rows = tuple(
        ModelRow(name, median(times), median_interval(times), firsts[name], differences[name])
        for name, times in samples.items()
    )
    shapes = {name: array.shape for name, array in plan.inputs.items()}
    return ModelReport(str(plan.path), machine, shapes, plan.options.threads, plan.options.precision, rows)


def _session(plan: ModelPlan) -> Callable[[], Any]:
    """A session of ONNX Runtime on the same model."""
    onnxruntime = import_module(PEER)
    session = onnx_session(onnxruntime, str(plan.path), plan.options.threads)
    return lambda: session.run(None, dict(plan.inputs))


def _difference(plan: ModelPlan, results: Mapping[str, list[Array]]) -> float:
    """The largest difference of the results, of the largest element of each output."""
    largest = 0.0
    for (name, _), ours, theirs in zip(plan.graph.network.outputs, results[OURS], results[PEER], strict=True):
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        if not a.size:
            continue
        with np.errstate(invalid="ignore"):
            apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
            found = float(apart.max() / (np.abs(b).max() or 1))
        if plan.options.precision == "f32" and not found <= plan.options.bound:
            raise ModelResult(name=name, found=f"{found:.3g}", bound=f"{plan.options.bound:.3g}")
        largest = max(largest, found)
    return largest


def _samples(plan: ModelPlan, calls: Mapping[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Seconds of a call, in each round; threads of the other system are given time to rest."""
    rest = SETTLE_SECONDS if plan.options.threads > 1 and len(calls) > 1 else 0.0
    repeat = plan.options.repeat
    with Steps("measure", repeat * len(calls), timed=True) as steps:
        return compare_calls(
            calls, repeat, MEASUREMENT_SECONDS, plan.options.seed, rest, advance=steps.advance
        )
