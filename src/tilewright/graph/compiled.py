"""Compiled graphs: one call from input arrays to results, machine code from the second call of a shape on."""

from __future__ import annotations

import hashlib
import os
import statistics
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array, data_address
from tilewright.calls.recording import repeatable, restartable
from tilewright.calls.repeated import repeated_method
from tilewright.errors import GraphInput, GraphInputs, UnsupportedArgument
from tilewright.errors.callers import named_in_errors
from tilewright.graph.calibration import input_statistics, sample_calls
from tilewright.graph.drawing import Shown, draw, graph_text
from tilewright.graph.drawn_samples import drawn_inputs, drawn_statistics
from tilewright.graph.execute import run_network
from tilewright.graph.network import Network, bind_sizes
from tilewright.graph.nodes.sources import ConstantNode
from tilewright.graph.passes.pack_weights import CALIBRATED, PRECISIONS
from tilewright.graph.passes.pipeline import run_passes
from tilewright.graph.plan import MemoryPlan, plan_memory
from tilewright.graph.profile import MOST_REPEATS, REPEAT, GraphTimes, measure_nodes
from tilewright.graph.saved import load_network, network_bytes, network_of, save_network
from tilewright.graph.sizes import Sizes
from tilewright.machine.machine import Machine
from tilewright.recorder import Numbered
from tilewright.spec.arguments import check_integer, check_path, check_word
from tilewright.spec.operations import PAGES
from tilewright.threads.pool import limited
from tilewright.threads.scratch import ScratchPool


class CompiledGraph(Numbered, Shown):
    """A graph as one function of its inputs.

    The first call of each shape runs Python, which plans the memory and prepares every kernel; later calls
    are one call of machine code.

    Attributes
    ----------
    network : the nodes after all passes.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._pool: ScratchPool | None = None
        self._names = [node.label for _, node in network.inputs]
        self._memory, self._owned = _constants_of(network)

    def __repr__(self) -> str:
        return graph_text("CompiledGraph", self.network.nodes, self.network.types, self.network.outputs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (network_bytes(self.network),)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """What Dask names tasks by: the digest of the saved form."""
        return type(self).__name__, hashlib.sha256(network_bytes(self.network)).hexdigest()

    def memory(self) -> Iterable[tuple[int, int]]:
        """Where the constants are."""
        return self._memory

    def owned(self) -> Iterable[object]:
        """The constants, and the arenas of runs."""
        return self._owned

    @repeated_method
    def __call__(self, *inputs: Any, threads: int | None = None, **named: Any) -> Any:
        """Runs the graph.

        Parameters
        ----------
        inputs : in the order of their declaration; `named` by their names.
        threads : the most threads of this call.

        Returns
        -------
        numpy.ndarray, or a tuple of them in the order of the outputs

        Raises
        ------
        GraphInputs : missing or unexpected inputs.
        GraphInput : an input whose type or shape is not as declared.
        """
        arrays = self.checked_inputs(inputs, named)
        restartable()
        with limited(threads):
            found = self._run(arrays)
        repeatable()
        return found[0] if len(found) == 1 else found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file, weights as they are packed for this machine; see `load_graph`.

        Raises
        ------
        GraphNotWritable
        """
        save_network(self.network, path)

    def draw(self, path: str | os.PathLike[str] | None = None) -> str:
        """The graph after all passes as a picture in SVG, also written to a file; see `Graph.draw`."""
        return draw(self.network, path)

    def explore(self, *targets: str | Machine, sizes: Mapping[str, int] | None = None) -> Any:
        """A page about the graph: nodes, memory of a run, least time of each node, kernels of its products.

        Parameters
        ----------
        targets : for times and kernels; this host by default.
        sizes : values of the named sizes of the inputs.

        Returns
        -------
        A page with `save(path)`, `show()` and `html`; notebooks show it. It loads nothing.
        """
        return PAGES["graph"](self, targets, sizes)

    def explain(self, *inputs: Any, repeat: int = REPEAT, **named: Any) -> GraphTimes:
        """The time, operations and bytes of every node, measured with these inputs; `print` it.

        Each node runs as a graph of its own, in turn, so that caches are about as in a whole run.
        """
        arrays = self.checked_inputs(inputs, named)
        count = check_integer(repeat, "repeat", 1, MOST_REPEATS)
        times = []
        for _ in range(count + 2):
            started = time.perf_counter()
            self(*arrays)
            times.append(time.perf_counter() - started)
        sizes = self._sizes(arrays)
        nodes = measure_nodes(self.network, arrays, sizes, CompiledGraph, count)
        arena = plan_memory(self.network, arrays, sizes).arena_bytes
        return GraphTimes(nodes, statistics.median(times[2:]), arena)

    def profile(self, path: str | Path, *inputs: Any, repeat: int = REPEAT, **named: Any) -> GraphTimes:
        """Write `explain` in Chrome's trace format, and return it."""
        target = check_path(path)
        found = self.explain(*inputs, repeat=repeat, **named)
        found.write_trace(target)
        return found

    def plan(self, *inputs: Any, **named: Any) -> MemoryPlan:
        """Where the values of a call are in memory; nothing is computed."""
        arrays = self.checked_inputs(inputs, named)
        return plan_memory(self.network, arrays, self._sizes(arrays))

    def checked_inputs(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> list[Array]:
        """The inputs as arrays of the declared types, in their order."""
        known = ", ".join(self._names) or "none"
        if len(inputs) > len(self._names):
            raise GraphInputs(known=known, reason=f"found {len(inputs)}")
        given = dict(zip(self._names, inputs, strict=False))
        for name, value in named.items():
            if name not in self._names or name in given:
                reason = "is given twice" if name in given else "is none of them"
                raise GraphInputs(known=known, reason=f"{name} {reason}")
            given[name] = value
        missing = [name for name in self._names if name not in given]
        if missing:
            raise GraphInputs(known=known, reason=f"{', '.join(missing)} is missing")
        arrays = []
        for at, node in self.network.inputs:
            array = as_array(given[node.label], node.label)
            if at in self.network.written:
                check_writable(node.label, given[node.label], array)
            if array.dtype != node.dtype:
                raise GraphInput(name=node.label, reason=f"it has dtype {array.dtype}, must be {node.dtype}")
            arrays.append(array if array.flags.aligned else array.copy())
        return arrays

    def _sizes(self, arrays: list[Array]) -> Sizes:
        declared = zip(self.network.inputs, arrays, strict=True)
        return bind_sizes([(node.label, node.shape, array.shape) for (_, node), array in declared])

    def _run(self, arrays: list[Array]) -> tuple[Array, ...]:
        sizes = self._sizes(arrays)
        plan = plan_memory(self.network, arrays, sizes)
        if not plan.arena_bytes:
            return run_network(self.network, plan, arrays, sizes, 0)
        with self._arena(plan.arena_bytes).block() as address:
            return run_network(self.network, plan, arrays, sizes, address)

    def _arena(self, nbytes: int) -> ScratchPool:
        """Scratch for a run; a larger run replaces it, by half more at least, so that few exist."""
        if self._pool is None or self._pool.size < nbytes:
            least = 0 if self._pool is None else self._pool.size * 3 // 2
            self._pool = ScratchPool(max(nbytes, least))
            self._owned.append(self._pool)
        return self._pool


def _unpickled(content: bytes) -> CompiledGraph:
    """The graph of the bytes of a file; weights in tiles of another machine are packed again."""
    return CompiledGraph(network_of(content))


def check_writable(name: str, given: Any, array: Array) -> None:
    """Raise `GraphInput` unless a run can write to an input."""
    if not isinstance(given, np.ndarray) or not array.flags.writeable or not array.flags.aligned:
        raise GraphInput(name=name, reason="the graph writes to it: it must be a writable, aligned array")


def _constants_of(network: Network) -> tuple[list[tuple[int, int]], list[object]]:
    """Where the constants of a network are, and what owns them."""
    memory: list[tuple[int, int]] = []
    owned: list[object] = []
    for node in network.nodes:
        if not isinstance(node, ConstantNode):
            continue
        owned.append(node.value)
        if node.packed:
            memory += node.value.memory()
            owned += node.value.owned()
        else:
            low, high = np.lib.array_utils.byte_bounds(node.value)
            memory.append((low, max(high - low, 1)))
            assert data_address(node.value) >= low
    return memory, owned


@named_in_errors
def load_graph(path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False) -> CompiledGraph:
    """A graph that `CompiledGraph.save` wrote.

    Parameters
    ----------
    path : the file. It is data: nothing in it is executed.
    mmap : whether weights are mapped into memory: opening takes milliseconds, and processes share them.
    verify : whether the checksums of weights are compared too, which reads all of them.

    Returns
    -------
    CompiledGraph
        With the bits of the one that was saved. Weights in tiles of another machine are packed again.

    Raises
    ------
    GraphFileNotFound, GraphFileDamaged, GraphFileVersion

    Examples
    --------
    >>> import numpy as np, tempfile, tilewright as tw
    >>> from pathlib import Path
    >>> g = tw.Graph()
    >>> g.output(g.relu(g.input("x", shape=("n",))))
    >>> path = Path(tempfile.mkdtemp()) / "relu.twgraph"
    >>> g.compile().save(path)
    >>> tw.load_graph(path)(np.array([-1, 2], np.float32))
    array([0., 2.], dtype=float32)
    """
    return CompiledGraph(load_network(path, mapped=mmap, verify=verify))


def compile_network(network: Network, precision: str = "f32", calibration: Any = None) -> CompiledGraph:
    """The network after all passes, as a function.

    Raises
    ------
    InvalidChoice, UnsupportedArgument, InvalidOperand, GraphInputs, GraphInput
    """
    word = check_word(precision, "precision", PRECISIONS)
    if calibration is None:
        drawn = drawn_inputs(network) if word == "i8-dynamic" else None
        measured = None if drawn is None else partial(drawn_statistics, inputs=drawn)
        return CompiledGraph(run_passes(network, word, measured))
    if word not in CALIBRATED:
        remedy = f"pass it with precision={' or '.join(map(repr, CALIBRATED))}"
        raise UnsupportedArgument(name="calibration", value="...", remedy=remedy)
    whole = CompiledGraph(network)
    calls = [whole.checked_inputs(inputs, dict(named)) for inputs, named in sample_calls(calibration)]
    measure = partial(input_statistics, calls=calls, moments=word != "i8-dynamic")
    return CompiledGraph(run_passes(network, word, measure))
