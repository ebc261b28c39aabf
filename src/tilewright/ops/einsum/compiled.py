"""An einsum of known shapes as a callable: its tree is decided once, memory on the way is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from tilewright.calls.foreign import ANY_ORDER
from tilewright.calls.operands import Array
from tilewright.calls.pieces import copy_to
from tilewright.calls.promotion import no_common_dtype, promoted_dtype, store
from tilewright.calls.recording import new_array, not_repeatable, repeatable
from tilewright.calls.repeated import repeated_method
from tilewright.errors import CompiledOperand, OperandCount
from tilewright.ops.einsum.call import check_out, converted, plain_array, types_of
from tilewright.ops.einsum.labels import Axes
from tilewright.ops.einsum.order import check_search, find_path
from tilewright.ops.einsum.plan import (
    EinsumPlan,
    OperandKey,
    collapses_of,
    costs_of,
    kept_labels,
    place_operands,
)
from tilewright.ops.einsum.run import EinsumOptions, EinsumRun, Types
from tilewright.ops.einsum.steps import steps_of
from tilewright.ops.einsum.subscripts import Indexing, lay_over
from tilewright.ops.einsum.subscripts import parse as parse_subscripts
from tilewright.ops.einsum.tree import (
    Leaf,
    Tree,
    parse_tree,
    path_of_tree,
    print_tree,
    tree_of_path,
    tree_sizes,
    walk,
)
from tilewright.ops.einsum.tree_layout import laid_out
from tilewright.ops.einsum.tree_report import TreeExplanation, explain_tree
from tilewright.ops.gemm.gufuncs import in_order, memory_order
from tilewright.ops.gemm.operands import result_dtype
from tilewright.recorder import Numbered, current
from tilewright.records import dataclass
from tilewright.spec.arguments import as_sizes, check_integer, check_text
from tilewright.spec.axes import row_major
from tilewright.spec.problem import check_elements
from tilewright.threads.pool import limited

#: Places of operands (their strides and types) whose plans one callable keeps.
_PLANS = 64


@dataclass(frozen=True)
class TensorNetwork:
    """The contraction of several operands: labels, sizes, and the tree of pairs.

    Attributes
    ----------
    function : the public function that made it, for messages.
    text : as it was written.
    inputs, output : labels of the operands' axes and of the result's.
    shapes : of the operands; an axis of length 1 repeats along a longer one of its label.
    sizes : of labels.
    tree : over the labels that take part once each operand is alone with them.
    as_given : whether every node is computed as the tree says, in the order of its labels.
    """

    function: str
    text: str
    inputs: tuple[str, ...]
    output: str
    shapes: tuple[tuple[int, ...], ...]
    sizes: Mapping[str, int]
    tree: Tree
    as_given: bool = False

    @classmethod
    def of_subscripts(cls, text: str, shapes: Sequence[tuple[int, ...]], optimize: Any) -> TensorNetwork:
        """That of einsum's subscripts.

        Raises
        ------
        What `parse`, `lay_over` and `find_path` raise.
        """
        indexing = lay_over(parse_subscripts(text), shapes)
        path = find_path(indexing, optimize)
        terms = kept_labels(indexing, shapes)
        if len(shapes) == 1:
            terms = (indexing.output,)
        tree = tree_of_path(terms, _long(indexing.output, indexing.sizes, len(shapes)), path)
        return cls(
            "compile_einsum", text, indexing.inputs, indexing.output, tuple(shapes), indexing.sizes, tree
        )

    @classmethod
    def of_tree(cls, text: str, sizes: Sequence[int] | Mapping[int, int], optimize: Any) -> TensorNetwork:
        """That of a tree in brackets.

        Raises
        ------
        What `parse_tree`, `tree_sizes` and `find_path` raise.
        """
        text = check_text(text, "tree")
        tree = parse_tree(text)
        lengths = tree_sizes(tree, sizes)
        inputs, path = path_of_tree(tree)
        shapes = tuple(tuple(lengths[label] for label in labels) for labels in inputs)
        optimize = check_search(optimize)
        if not isinstance(optimize, bool) and path:
            path = find_path(Indexing(inputs, tree.labels, lengths), optimize)
            tree = tree_of_path(inputs, tree.labels, path)
        return cls(
            "einsum_tree", text, inputs, tree.labels, shapes, lengths, tree, as_given=optimize is False
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(self.sizes[label] for label in self.output)


def _long(output: str, sizes: Mapping[str, int], operands: int) -> str:
    """The labels of a result that pairs make: of several operands those that are longer than 1."""
    return output if operands == 1 else "".join(label for label in output if sizes[label] != 1)


#: Bytes of results on the way that a repeated call allocates each time; of more, the memory is kept.
MOST_TEMPORARIES = 1 << 18
#: Computations of `TreeCall.seconds`.
MOST_REPETITIONS = 1_000_000


class NetworkPlan(NamedTuple):
    """A plan, and the tree of which it is."""

    plan: EinsumPlan
    tree: Tree


class Workspace:
    """ResultMemory of results on the way, kept from call to call."""

    def __init__(self) -> None:
        self._free: list[Array] = []
        self._taken: dict[int, Array] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array in the smallest block that holds it."""
        check_elements("a result", shape)
        needed = prod(shape) * dtype.itemsize
        fitting = [block for block in self._free if block.size >= needed]
        block = min(fitting, key=lambda block: block.size, default=None)
        if block is None:
            block = np.empty(needed, np.uint8)
        else:
            self._free = [one for one in self._free if one is not block]
        array = block[:needed].view(dtype).reshape(shape)
        self._taken[id(array)] = block
        return array

    def give_back(self, array: Array) -> None:
        """The block of an array that was taken is free again; others are not of this workspace."""
        block = self._taken.pop(id(array), None)
        if block is not None:
            self._free.append(block)

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return sum(block.size for block in (*self._free, *self._taken.values()))


class _Temporaries:
    """Memory of results on the way in a call that is recorded, which machine code allocates anew.

    Attributes
    ----------
    nbytes : of all results.
    """

    def __init__(self) -> None:
        self.nbytes = 0

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A new array, until there are too many bytes."""
        check_elements("a result", shape)
        array = new_array(shape, dtype)
        self.nbytes += array.nbytes
        return array

    def give_back(self, array: Array) -> None:
        """Nothing: recorded arrays are not used again."""


class TreeCall(Numbered):
    """A compiled einsum: call it with arrays.

    Parameters
    ----------
    network : what is computed.
    dtype : of the operands that it is laid out for; that of the result if `fixed`.
    strides : of these operands; None: those of C-contiguous ones.
    fixed : whether results have this type for operands of any type.
    order : in memory, of results that are not `out`.
    """

    def __init__(
        self,
        network: TensorNetwork,
        dtype: np.dtype[Any],
        strides: Sequence[Any],
        *,
        fixed: bool,
        order: Any = ANY_ORDER,
    ) -> None:
        self.network, self.dtype, self._fixed, self._order = network, dtype, fixed, memory_order(order)
        self._plans: dict[Any, NetworkPlan] = {}
        self._workspaces: list[Workspace] = []
        self._keeps_memory = False  # as results on the way are large
        for number, shape in enumerate(network.shapes):
            check_elements(f"operand {number}", shape)
        check_elements("the result", network.shape)
        self._places = tuple(
            (shape, own or row_major(shape, dtype.itemsize), dtype.kind)
            for shape, own in zip(network.shapes, strides, strict=True)
        )
        self._laid = self._lay(self._places)

    @property
    def laid_tree(self) -> Tree:
        """The tree as it runs, for operands as it was compiled for."""
        return self._laid.tree

    @property
    def tree(self) -> str:
        """The same in brackets."""
        return print_tree(self._laid.tree)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.network.shape

    @repeated_method
    def __call__(self, *operands: Any, out: Array | None = None, threads: int | None = None) -> Any:
        """The result for arrays of the shapes that this was compiled for, of any strides and types.

        Parameters
        ----------
        operands : array_like
        out : numpy.ndarray, optional
            Receives the result; exactly of its shape, any strides. May share memory with operands.
        threads : int, optional
            As in `tilewright.matmul`.

        Returns
        -------
        numpy.ndarray, a scalar where the result has no axes, or `out`

        Raises
        ------
        OperandCount, CompiledOperand, InvalidOperand, UnsupportedDtype, EinsumCast, OutShape, OutReadOnly,
        OutNotArray, OutOverlapsItself, InvalidThreads
            Each before `out` changes.
        """
        with limited(threads):
            arrays, laid, options = self._prepared(operands, out)
            types = types_of(arrays, options)
            arrays = [converted(array, types.computed) for array in arrays]
            target = out
            if out is not None and (
                out.dtype != types.result or any(np.may_share_memory(out, array) for array in arrays)
            ):
                target = None
            found = self._computed(laid.plan, arrays, target, types)
            if out is None:
                if not laid.plan.steps and np.ndim(found):
                    view, found = found, new_array(found.shape, found.dtype)
                    copy_to(found, view)
                found = in_order(found, arrays, self._order)
            elif target is None:
                store(found, out)
                found = out
            repeatable()
            return found

    def _computed(self, plan: EinsumPlan, arrays: list[Array], target: Array | None, types: Types) -> Array:
        """The result of a plan; machine code repeats it unless results on the way are large."""
        if self._keeps_memory:
            not_repeatable("large results on the way, whose memory is kept")
        recorded = current.recorder is not None
        memory: Any = (
            _Temporaries() if recorded else self._workspaces.pop() if self._workspaces else Workspace()
        )
        run = EinsumRun(plan, arrays, target, types, memory)
        for place in range(len(plan.steps)):
            run.step(place)
        found = run.result()
        if not recorded:
            self._workspaces.append(memory)  # not after an error: what is taken would stay so
        elif memory.nbytes > MOST_TEMPORARIES:
            self._keeps_memory = True
            not_repeatable("large results on the way, whose memory is kept")
        return found

    def explain(self) -> TreeExplanation:
        """How it runs: the order, and of each node labels, sizes, work, how it is computed, predicted time.

        Examples
        --------
        >>> import tilewright as tw
        >>> run = tw.compile_einsum("ij,jk,kl->il", (64, 64), (64, 64), (64, 9))
        >>> [node.how for node in run.explain().nodes]
        ['in place', 'in place']
        """
        costs = costs_of(self._places, self._operands(self._places))
        subject = f"{repr(self).strip('<>')} in {self.dtype}"
        operands = self._operands(self._places)
        return explain_tree(subject, self.laid_tree, operands, costs, as_given=self.network.as_given)

    def seconds(self, *operands: Any, repeat: int = 5) -> list[float]:
        """The time of each contraction and permutation, in the order in which they run: the least of several.

        Parameters
        ----------
        operands : array_like; none: random ones.
        repeat : computations.
        """
        arrays, laid, options = self._prepared(operands or self.random_operands(), None)
        types = types_of(arrays, options)
        workspace, steps = Workspace(), len(laid.plan.steps)
        found = [float("inf")] * steps
        for _ in range(check_integer(repeat, "repeat", 1, MOST_REPETITIONS) + 1):  # the first one compiles
            given = [converted(array, types.computed) for array in arrays]
            run = EinsumRun(laid.plan, given, None, types, workspace)
            for place in range(steps):
                start = perf_counter()
                run.step(place)
                found[place] = min(found[place], perf_counter() - start)
        return found

    def random_operands(self) -> list[Array]:
        """Operands as it was compiled for, of small random numbers."""
        random = np.random.default_rng(0)
        return [random.standard_normal(shape).astype(self.dtype) for shape in self.network.shapes]

    def __repr__(self) -> str:
        return f"<{self.network.function} {self.network.text} of {', '.join(map(str, self.network.shapes))}>"

    def _prepared(
        self, operands: Sequence[Any], out: Array | None
    ) -> tuple[list[Array], NetworkPlan, EinsumOptions]:
        """Operands as arrays, and the plan for their strides."""
        network = self.network
        if len(operands) != len(network.shapes):
            raise OperandCount(subscripts=network.text, found=len(operands), required=len(network.shapes))
        arrays = [plain_array(value, number) for number, value in enumerate(operands)]
        for number, (array, shape) in enumerate(zip(arrays, network.shapes, strict=True)):
            if array.shape != shape:
                name = network.function
                raise CompiledOperand(name=name, number=number, found=array.shape, required=shape)
        if out is not None:
            check_out(out, network.shape)
        options = EinsumOptions(out, self.dtype if self._fixed else None, "K", "safe", None)
        places = tuple((array.shape, array.strides, array.dtype.kind) for array in arrays)
        laid = self._plans.get(places)
        return arrays, self._lay(places) if laid is None else laid, options

    def _operands(self, places: Sequence[OperandKey]) -> tuple[Axes, ...]:
        terms = self._terms()
        return place_operands(
            terms, self.network.sizes, places, collapses_of(self.network.inputs, places, terms)
        )

    def _terms(self) -> tuple[str, ...]:
        """The labels with which each operand takes part."""
        leaves = {node.operand: node.labels for node in walk(self.network.tree) if isinstance(node, Leaf)}
        return tuple(labels for _, labels in sorted(leaves.items()))

    def _lay(self, places: tuple[OperandKey, ...]) -> NetworkPlan:
        """The plan for operands at these places, which is kept."""
        network = self.network
        tree = network.tree
        if not network.as_given:
            operands = self._operands(places)
            tree = laid_out(tree, operands, costs_of(places, operands))
        steps = steps_of(tree, len(places), network.sizes, all_placed=network.as_given)
        missing = tuple(axis for axis, label in enumerate(network.output) if label not in tree.labels)
        collapses = collapses_of(network.inputs, places, self._terms())
        laid = NetworkPlan(EinsumPlan(collapses, steps, network.shape, missing), tree)
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        self._plans[places] = laid
        return laid


def known_places(values: Sequence[Any], dtype: DTypeLike | None) -> tuple[list[Any], list[Any], Any]:
    """Shapes, strides (None: C-contiguous) and type of what a call to compile was given for operands.

    >>> known_places([(2, 3), np.ones((3, 4), np.float32)], None)
    ([(2, 3), (3, 4)], [None, (16, 4)], dtype('float32'))
    """
    shapes: list[Any] = []
    strides: list[Any] = []
    dtypes = []
    for number, value in enumerate(values):
        sizes = as_sizes(value) if isinstance(value, (tuple, list)) else None
        if sizes is not None:
            shapes.append(sizes)
            strides.append(None)
            continue
        array = plain_array(value, number)
        shapes.append(array.shape)
        strides.append(array.strides)
        dtypes.append(array.dtype)
    if dtype is not None:
        probe = np.empty(0, np.float32)
        return shapes, strides, result_dtype(probe, probe, None, dtype)
    found = promoted_dtype(*dtypes) if dtypes else np.dtype(np.float32)
    if found is None:
        raise no_common_dtype(*dtypes)
    return shapes, strides, found
