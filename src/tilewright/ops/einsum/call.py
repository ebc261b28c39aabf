"""Calls of einsum: arguments are checked, operands contracted in pairs; what was decided is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import methodcaller
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from tilewright.calls.afterwards import afterwards
from tilewright.calls.foreign import as_array, foreign_operand, leave_to_numpy
from tilewright.calls.operands import Array, overlaps_itself
from tilewright.calls.pieces import as_type
from tilewright.calls.promotion import (
    computing_dtype,
    narrowed,
    no_common_dtype,
    promoted_dtype,
    same_kind,
    store,
    summed_in,
)
from tilewright.calls.recipes import EinsumCall
from tilewright.errors import (
    EinsumCast,
    OutOverlapsItself,
    OutReadOnly,
    OutShape,
)
from tilewright.ops.einsum.collapse import Collapse, plan_collapse
from tilewright.ops.einsum.elementwise_pair import ElementwisePair
from tilewright.ops.einsum.labels import Axes
from tilewright.ops.einsum.matmul_pair import MatmulPair
from tilewright.ops.einsum.pair import contract, plan_pair
from tilewright.ops.einsum.public import MOST_CALLS, calls, keep_steps
from tilewright.ops.einsum.public import einsum as front
from tilewright.ops.einsum.recipe import steps_of_plan
from tilewright.ops.einsum.scattered_pair import TABLE_TYPES, ScatteredPair
from tilewright.ops.einsum.steps import PairStep, PermuteStep, Steps, steps_of
from tilewright.ops.einsum.strategies import PairCosts
from tilewright.ops.einsum.subscripts import Indexing, check_search, find_path, lay_over, parse
from tilewright.ops.einsum.tree import tree_of_path
from tilewright.ops.einsum.tree_layout import laid_out
from tilewright.ops.gemm.call import check_array, find_dtype, result_dtype
from tilewright.ops.gemm.gufuncs import CASTINGS, in_order, memory_order
from tilewright.ops.transpose.call import transpose
from tilewright.spec.arguments import as_dtype, check_word
from tilewright.spec.problem import check_elements

#: What a plan depends on in an operand: shape, strides, and the kind of its type in NumPy's letters.
_OperandKey: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], str]

#: Two operands meet in one way; results of more stand in orders that are chosen.
_OPERANDS_OF_ONE_PAIR = 2

#: Bytes of the types that have kernels which follow tables.
_BYTES_BY_TABLES = {dtype.itemsize for dtype in TABLE_TYPES}

#: Plans kept: one of three operands takes about 200 us to make.
_PLANS = 1024


class EinsumPlan(NamedTuple):
    """What is done to operands of known shapes and strides.

    Attributes
    ----------
    collapses : what becomes of each operand first; None: nothing.
    steps : pairs that meet and moves, in order.
    shape : of the result.
    squeezed : axes of it of length 1, which no step makes.
    """

    collapses: tuple[Collapse | None, ...]
    steps: Steps
    shape: tuple[int, ...]
    squeezed: tuple[int, ...]

    @property
    def is_view(self) -> bool:
        """Whether the result is a view of the one operand."""
        return not self.steps and self.collapses[0] is not None and self.collapses[0].is_view

    def pair(self, arrays: Sequence[Array]) -> MatmulPair | ScatteredPair | ElementwisePair | None:
        """How two operands meet where nothing else is done."""
        match self.steps:
            case (PairStep(labels=labels, shape=None),) if (
                self.collapses == (None, None) and not self.squeezed
            ):
                a, b = arrays
                return plan_pair(labels, (a.shape, b.shape), (a.strides, b.strides), None, a.dtype)
            case _:
                return None

    def run(self, operands: Sequence[Array], out: Array | None, types: Types) -> Array:
        """The result, or `out`, which shares no memory with an operand."""
        one = EinsumRun(self, operands, out, types, FRESH)
        for place in range(len(self.steps)):
            one.step(place)
        return one.result()


class ResultMemory(Protocol):
    """Where results on the way stand."""

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array that nothing else uses until it is given back."""

    def give_back(self, array: Array) -> None:
        """An array that was taken, or any other, is needed no more."""


class _Fresh:
    """New memory for every result."""

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        check_elements("einsum: a result", shape)
        return np.empty(shape, dtype)

    def give_back(self, array: Array) -> None:
        """Nothing: the array goes when nothing refers to it."""


FRESH = _Fresh()


class EinsumRun:
    """One computation of a plan: `step` for each step in order, then `result`.

    Parameters
    ----------
    out : receives the result; shares no memory with an operand.
    memory : for results on the way whose order is chosen.
    """

    def __init__(
        self,
        plan: EinsumPlan,
        operands: Sequence[Array],
        out: Array | None,
        types: Types,
        memory: ResultMemory,
    ) -> None:
        self.plan, self.out, self.types, self.memory = plan, out, types, memory
        self.arrays: list[Any] = [
            operand if collapse is None else collapse.compute(operand, types.of_sum(operand, plan.steps))
            for collapse, operand in zip(plan.collapses, operands, strict=True)
        ]
        pairs = (place for place, step in enumerate(plan.steps) if isinstance(step, PairStep))
        self.product = max(pairs, default=-1)

    def step(self, place: int) -> None:
        """Computes one step."""
        step, arrays, types = self.plan.steps[place], self.arrays, self.types
        if isinstance(step, PermuteStep):
            array = arrays[step.place]
            arrays[step.place] = None  # its memory may be free from here on
            shape = tuple(array.shape[axis] for axis in step.axes)
            last = place == len(self.plan.steps) - 1  # which is returned
            arrays.append(transpose(array, step.axes, None if last else self.memory.take(shape, array.dtype)))
            self.memory.give_back(array)
            return
        a, b, made, target = arrays[step.left], arrays[step.right], types.partial, None
        if place == self.product:
            a, b = types.alike(a, b)
            made = types.result
        if place == len(self.plan.steps) - 1:
            target = None if self.out is None else self.out.squeeze(self.plan.squeezed)
        elif step.shape is not None:
            target = self.memory.take(step.shape, made)
        arrays[step.left] = arrays[step.right] = None
        dtype = None if a.dtype == b.dtype == made else made
        arrays.append(contract(a, b, *step.labels, target, dtype=dtype))
        self.memory.give_back(a)
        self.memory.give_back(b)

    def result(self) -> Array:
        """The result, or `out`."""
        plan, out = self.plan, self.out
        found: Array = self.arrays[-1]
        if self.product < 0:
            found = narrowed(found, self.types.result)
        if out is None:
            return found.reshape(plan.shape) if plan.shape else found[()]
        written = bool(plan.steps) and self.product == len(plan.steps) - 1
        return out if written else _copied(found.reshape(plan.shape), out)


class Types(NamedTuple):
    """Element types of one call.

    Attributes
    ----------
    result : of the result.
    computed : that operands are converted to.
    partial : of what steps before the last make: 16-bit floats stay in the 32 bits that they are summed in.
    """

    result: np.dtype[Any]
    computed: np.dtype[Any]
    partial: np.dtype[Any]

    @classmethod
    def of(cls, result: np.dtype[Any], operands: Sequence[Array] = ()) -> Types:
        """Those of calls with this result: operands are not rounded to it, results are once."""
        given = tuple([operand.dtype for operand in operands if operand.dtype is not result])
        computed = computing_dtype(given, result) if given else result
        return cls(result, computed, summed_in(computed))

    def of_sum(self, operand: Array, steps: Steps) -> np.dtype[Any] | None:
        """In which type an operand is summed by itself, None: in its own."""
        wanted = self.partial if steps else self.result
        return None if operand.dtype == wanted else wanted

    def alike(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Two operands, in 32 bits if one was made so."""
        if self.partial == self.result or a.dtype == b.dtype or self.partial not in (a.dtype, b.dtype):
            return a, b
        return as_type(a, self.partial), as_type(b, self.partial)


def _copied(found: Array, out: Array) -> Array:
    store(found, out)
    return out


# --- plans --------------------------------------------------------------------------------------


@lru_cache(maxsize=_PLANS)
def _plan(subscripts: str, places: tuple[_OperandKey, ...], optimize: Any) -> EinsumPlan:
    """What is done to operands at these places; `optimize` where it can be a key."""
    return make_plan(subscripts, places, optimize)


def make_plan(subscripts: str, places: Sequence[_OperandKey], optimize: Any) -> EinsumPlan:
    """What is done to operands of these shapes and strides.

    Raises
    ------
    What `parse`, `lay_over` and `find_path` raise.

    Examples
    --------
    >>> make_plan("ij,jk->ki", [((2, 3), (24, 8), "f"), ((3, 4), (32, 8), "f")], "auto").steps
    (PairStep(left=0, right=1, labels=('ij', 'jk', 'ki'), shape=None),)
    """
    indexing = lay_over(parse(subscripts), [shape for shape, _, _ in places])
    path = find_path(indexing, optimize)
    if len(places) == 1:
        collapse = plan_collapse(indexing.inputs[0], places[0][0], indexing.output)
        return EinsumPlan((collapse,), (), indexing.shape, ())
    terms = kept_labels(indexing, [shape for shape, _, _ in places])
    collapses = tuple(
        None if labels == term else plan_collapse(labels, shape, term)
        for labels, (shape, _, _), term in zip(indexing.inputs, places, terms, strict=True)
    )
    output = "".join(label for label in indexing.output if indexing.sizes[label] != 1)
    squeezed = tuple(axis for axis, size in enumerate(indexing.shape) if size == 1)
    tree = tree_of_path(terms, output, path)
    if len(terms) == _OPERANDS_OF_ONE_PAIR:
        return EinsumPlan(collapses, steps_of(tree, len(places)), indexing.shape, squeezed)
    operands = place_operands(terms, indexing.sizes, places, collapses)
    tree = laid_out(tree, operands, costs_of(places, operands))
    return EinsumPlan(collapses, steps_of(tree, len(places), indexing.sizes), indexing.shape, squeezed)


def place_operands(
    terms: Sequence[str],
    sizes: Mapping[str, int],
    places: Sequence[_OperandKey],
    collapses: Sequence[Collapse | None],
) -> tuple[Axes, ...]:
    """Where the labels of operands stand; sums are new arrays."""
    bytes_of_sums = min((abs(step) for _, strides, _ in places for step in strides if step), default=1)
    return tuple(
        Axes.of(term, shape, strides) if collapse is None else Axes.adjacent(term, sizes, bytes_of_sums)
        for term, (shape, strides, _), collapse in zip(terms, places, collapses, strict=True)
    )


def costs_of(places: Sequence[_OperandKey], operands: Sequence[Axes]) -> PairCosts:
    """What costs are those of: elements as large as the smallest step, by tables where all are floats."""
    costs = PairCosts.of(None, operands)
    floats = all(kind == "f" for _, _, kind in places)
    return costs._replace(by_tables=floats and costs.itemsize in _BYTES_BY_TABLES)


def kept_labels(indexing: Indexing, shapes: Sequence[tuple[int, ...]]) -> tuple[str, ...]:
    """The labels with which operands meet others: none of length 1, none twice, none of one operand alone."""
    long = [
        [label for label, size in zip(labels, shape, strict=True) if size != 1]
        for labels, shape in zip(indexing.inputs, shapes, strict=True)
    ]
    owners = Counter(label for labels in long for label in set(labels))
    return tuple(
        "".join(dict.fromkeys(label for label in labels if owners[label] > 1 or label in indexing.output))
        for labels in long
    )


# --- calls --------------------------------------------------------------------------------------


class EinsumOptions(NamedTuple):
    """The keywords of a call."""

    out: Array | None
    dtype: DTypeLike | None
    order: str
    casting: str
    optimize: Any

    def check(self) -> None:
        """The words among them.

        Raises
        ------
        InvalidChoice
        """
        memory_order(self.order)
        check_word(self.casting, "casting", CASTINGS)

    def given(self) -> dict[str, Any]:
        """Those that are not as they are by default, as NumPy has them."""
        given = zip(self._fields, self, (None, None, "K", "safe", "auto"), strict=True)
        return {name: value for name, value, usual in given if value is not usual}


#: Elements up to which an operand of another type is converted before it is multiplied: products of two types
#: go through Python, where a conversion of 4 Ki elements takes a microsecond or two.
_CONVERTED_FIRST = 1 << 12


def einsum(
    subscripts: str | bytes, given: Sequence[Any], options: EinsumOptions, key: tuple[Any, ...] | None = None
) -> Array:
    """A call that no earlier one has decided, which is kept by its key; see `tilewright.einsum`."""
    text = subscripts.decode("latin-1") if isinstance(subscripts, bytes) else subscripts
    foreign = foreign_operand("__array_function__", (*given, options.out))
    if foreign is not None:
        left: Array = leave_to_numpy("einsum", foreign, (text, *given), options.given())
        return left
    options.check()
    operands = [plain_array(value, number) for number, value in enumerate(given)]
    places = tuple((operand.shape, operand.strides, operand.dtype.kind) for operand in operands)
    plan = _plan(text, places, check_search(options.optimize))
    out = None if options.out is None else check_out(options.out, plan.shape)
    own, asked = operands[0].dtype, options.dtype
    if plan.is_view and out is None and (asked is None or as_dtype(asked) == own):  # of any type
        types = Types(own, own, own)
    else:
        types = types_of(operands, options)
        operands = [converted(operand, types.computed) for operand in operands]
    with afterwards("einsum"):
        if isinstance(subscripts, str):
            _keep_steps(EinsumCall(subscripts, options.optimize, given, options.out), plan, options, types)
        if out is None:
            _remember(key, plan, types, given)
    if out is None:
        return in_order(plan.run(operands, None, types), operands, memory_order(options.order))
    if out.dtype == types.result and not any(np.may_share_memory(out, operand) for operand in operands):
        return plan.run(operands, out, types)
    return _copied(plan.run(operands, None, types), out)


def _remember(key: tuple[Any, ...] | None, plan: EinsumPlan, types: Types, values: Sequence[Any]) -> None:
    """Keeps what a call on plain arrays computes, so that its repetition only looks it up."""
    if key is None or any(type(value) is not np.ndarray or value.dtype.char in "qQ" for value in values):
        return  # C's long long is equal to int64 as a key
    if len(calls) >= MOST_CALLS:
        calls.clear()
    calls[key] = _direct(key[0], plan, values, types)


def _keep_steps(call: EinsumCall, plan: EinsumPlan, options: EinsumOptions, types: Types) -> None:
    """Lets machine code repeat a call on plain arrays of the type that all steps have."""
    plain = options.dtype is None and options.order == "K" and options.casting == "safe"
    alike = all(
        type(array) is np.ndarray and array.dtype == types.result and array.flags.aligned
        for array in call.arrays
    )
    sums = sum(collapse is not None and not collapse.is_view for collapse in plan.collapses)
    widened = types.partial != types.result and len(plan.steps) + sums > 1
    if widened or not (plain and alike and call.fits):
        return
    steps = steps_of_plan(plan, call.operands, call.out)
    if steps is not None:
        keep_steps(call, steps)


def _direct(text: str, plan: EinsumPlan, arrays: Sequence[Array], types: Types) -> Callable[..., Array]:
    """The least that a call with this plan has to do, as a function of the operands."""
    if any(array.dtype != types.result for array in arrays):
        if all(converted(array, types.result).dtype == types.result for array in arrays):  # then it is alike
            return lambda *operands: front(text, *(as_type(one, types.result) for one in operands))
        return lambda *operands: plan.run([converted(one, types.computed) for one in operands], None, types)
    if not plan.steps and plan.collapses[0] is not None:
        alone = plan.collapses[0]
        turned = alone.is_view and not (alone.diagonals or alone.squeezed) and bool(alone.shape)
        order = alone.axes or tuple(range(len(alone.shape)))
        return methodcaller("transpose", order) if turned else alone.total
    pair = plan.pair(arrays) if plan.shape else None
    if pair is not None:
        return pair.multiply
    return lambda *operands: plan.run(operands, None, types)


# --- checks -------------------------------------------------------------------------------------


def plain_array(value: Any, number: int) -> Array:
    """An operand as a plain array."""
    return as_array(value, str(number))


def types_of(operands: Sequence[Array], options: EinsumOptions) -> Types:
    """The type of the result: asked for, or NumPy's promotion of operands and `out`.

    Raises
    ------
    UnsupportedDtype, EinsumCast
    """
    if options.dtype is not None:
        result = result_dtype(operands[0], operands[0], None, options.dtype)
    else:
        given = [*operands] if options.out is None else [*operands, options.out]
        dtypes = [array.dtype for array in given]
        promoted = promoted_dtype(*dtypes)
        if promoted is None:
            raise no_common_dtype(*dtypes)
        result = promoted
    if result != np.bool_:
        find_dtype(result)  # refuses types that have no product
    casts = [(f"operand {number}", array.dtype, result) for number, array in enumerate(operands)]
    if options.out is not None:
        casts.append(("the result", result, options.out.dtype))
    for name, found, required in casts:
        if not _castable(found, required, options.casting):
            raise EinsumCast(name=name, found=found, required=required, casting=options.casting)
    return Types.of(result, operands)


def _castable(source: np.dtype[Any], target: np.dtype[Any], casting: Any) -> bool:
    return same_kind(source, target) if casting == "same_kind" else np.can_cast(source, target, casting)


def converted(operand: Array, dtype: np.dtype[Any]) -> Array:
    """An operand that products take, which convert large ones of the same kind or narrower themselves."""
    itself = operand.size > _CONVERTED_FIRST and same_kind(operand.dtype, dtype)
    return operand if itself else as_type(operand, dtype)


def check_out(out: Any, shape: tuple[int, ...]) -> Array:
    """`out`, if it can hold the result."""
    array = check_array(out)
    if array.shape != shape:
        raise OutShape(found=array.shape, required=shape)
    if not array.flags.writeable:
        raise OutReadOnly
    if overlaps_itself(array):
        raise OutOverlapsItself(shape=array.shape, strides=array.strides)
    return array
