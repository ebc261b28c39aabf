"""Sequences that Python iterates over, as the lengths and items that a loop over a range needs."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import field

from tilewright.records import dataclass

#: Built-in functions that make a sequence of others.
ITERATORS = frozenset({"range", "enumerate", "zip", "reversed"})


@dataclass
class Iteration:
    """One loop over sequences.

    Attributes
    ----------
    lengths : of the sequences; the loop ends with the shortest.
    items : the names that the loop binds, each with the item of its sequence.
    equal : pairs of integers that must be equal, or Python raises an error: ``zip(..., strict=True)``.
    """

    lengths: list[ast.expr] = field(default_factory=list)
    items: list[tuple[str, ast.expr]] = field(default_factory=list)
    equal: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)


def iteration(target: ast.expr, iterable: ast.expr, place: ast.expr) -> Iteration | None:
    """What ``for target in iterable`` binds in iteration number `place`; None for what is not read here.

    >>> made = iteration(*(ast.parse(text, mode="eval").body for text in ("(i, x)", "enumerate(A[j])", "p")))
    >>> [(name, ast.unparse(item)) for name, item in made.items], ast.unparse(made.lengths[0])
    ([('i', 'p'), ('x', 'A[j][p]')], 'A.shape[1]')
    """
    match target, iterable:
        case ast.Tuple(elts=[first, second]), ast.Call(
            func=ast.Name(id="enumerate"), args=[inner, *starts], keywords=keywords
        ) if len(starts) + len(keywords) < 2 and all(word.arg == "start" for word in keywords):
            made = iteration(second, inner, place)
            start = [*starts, *(word.value for word in keywords)]
            counted = plus(start[0], place) if start else place
            if made is None or not isinstance(first, ast.Name):
                return None
            made.items.insert(0, (first.id, counted))
            return made
        case ast.Tuple(elts=names), ast.Call(func=ast.Name(id="zip"), args=parts, keywords=words) if len(
            names
        ) == len(parts) > 0 and not any(isinstance(one, ast.Starred) for one in parts):
            strict = [word.value.value for word in words if isinstance(word.value, ast.Constant)]
            if len(strict) < len(words) or any(word.arg != "strict" for word in words):
                return None
            return _zipped([iteration(*pair, place) for pair in zip(names, parts, strict=True)], strict)
        case _, ast.Call(func=ast.Name(id="reversed"), args=[inner], keywords=[]):
            size = _size(inner)
            last = None if size is None else minus(minus(size, ast.Constant(1)), place)
            return None if last is None else iteration(target, inner, last)
        case ast.Name(id=name), _:
            size = _size(iterable)
            item = None if size is None else _item(iterable, place)
            if size is None or item is None:
                return None
            return Iteration([size], [(name, item)], two_axes(iterable))
        case _:
            return None


def numbered(target: ast.expr, iterable: ast.expr) -> tuple[str, ast.expr]:
    """The name that `enumerate` counts in, and its first value; no name for anything else."""
    match target, iterable:
        case ast.Tuple(elts=[ast.Name(id=name), _]), ast.Call(
            func=ast.Name(id="enumerate"), args=[_, *starts], keywords=words
        ):
            return name, next(iter([*starts, *(word.value for word in words)]), ast.Constant(0))
        case _:
            return "", ast.Constant(0)


def _zipped(parts: list[Iteration | None], strict: Sequence[object]) -> Iteration | None:
    made = Iteration()
    for part in parts:
        if part is None:
            return None
        made.items += part.items
        made.equal += part.equal
        made.lengths += part.lengths
    if any(strict):
        made.equal += [(made.lengths[0], other) for other in made.lengths[1:]]
    return made


def _size(sequence: ast.expr) -> ast.expr | None:
    """The length of a range or an array; None for anything else."""
    match sequence:
        case ast.Call(func=ast.Name(id="range"), args=[_, *_] as words, keywords=[]):
            first, stop, step = bounds_of(words)
            if isinstance(step, ast.Constant) and step.value == 1:
                return minus(stop, first)
            return _call("len", deepcopy(sequence))
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return length(sequence)
        case _:
            return None


def _item(sequence: ast.expr, place: ast.expr) -> ast.expr | None:
    match sequence:
        case ast.Call(args=words):
            first, _, step = bounds_of(words)
            return plus(first, times(place, step))
        case _:
            return indexed(sequence, place, inside=True)


def bounds_of(words: list[ast.expr]) -> tuple[ast.expr, ast.expr, ast.expr]:
    """Start, stop and step of a range."""
    first, stop, *rest = [ast.Constant(0), *words] if len(words) == 1 else words
    return first, stop, rest[0] if rest else ast.Constant(1)


def backwards(words: list[ast.expr]) -> list[ast.expr] | None:
    """The arguments of the range that ``reversed(range(...))`` is; None if the step is not a constant.

    >>> [ast.unparse(word) for word in backwards([ast.Name("n")])]
    ['n - 1', '-1', '-1']
    """
    first, stop, sign = bounds_of(words)
    step = _integer(sign)
    if not step:
        return None
    if abs(step) == 1:
        return [minus(stop, ast.Constant(step)), minus(first, ast.Constant(step)), ast.Constant(-step)]
    count = _call("len", _call("range", *words))
    last = plus(first, times(minus(count, ast.Constant(1)), ast.Constant(step)))
    return [last, minus(first, ast.Constant(step)), ast.Constant(-step)]


def _integer(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
        case _:
            return None


def length(array: ast.expr) -> ast.expr:
    """The length of an array or of a part of one: ``len(A)``, ``A.shape[1]`` of ``A[i]``."""
    match array:
        case ast.Attribute(value=base, attr="T"):
            return _shape(base, 1)
        case ast.Subscript():
            base, axes = subscripts_of(array)
            place = next((n for n, axis in enumerate(axes) if isinstance(axis, ast.Slice)), len(axes))
            axis = axes[place] if place < len(axes) else ast.Slice()
            assert isinstance(axis, ast.Slice)
            end = _shape(base, place) if axis.upper is None else axis.upper
            return end if axis.lower is None else minus(end, axis.lower)
        case _:
            return _call("len", deepcopy(array))


def indexed(
    array: ast.expr, index: ast.expr, context: ast.expr_context | None = None, *, inside: bool = False
) -> ast.expr:
    """``array[index]``, with slices resolved: ``A[:, j][k]`` is ``A[k, j]``.

    Parameters
    ----------
    inside : the index is one of the slice, so that a start may be added to it.
    """
    context = context or ast.Load()
    if isinstance(index, ast.Tuple):
        for part in index.elts:
            array = indexed(array, part, context, inside=inside)
        return array
    match array:
        case ast.Attribute(value=base, attr="T") if not isinstance(index, ast.Slice):
            return ast.Subscript(deepcopy(base), ast.Tuple([ast.Slice(), index], ast.Load()), context)
        case ast.Subscript(slice=parts) if not isinstance(index, ast.Slice):
            axes = list(parts.elts) if isinstance(parts, ast.Tuple) else [parts]
            for number, axis in enumerate(axes):
                if isinstance(axis, ast.Slice) and (inside or axis.lower is None is axis.upper):
                    if axis.step is not None:
                        break
                    axes[number] = index if axis.lower is None else plus(axis.lower, index)
                    place = axes[0] if len(axes) == 1 else ast.Tuple(axes, ast.Load())
                    return ast.Subscript(deepcopy(array.value), place, context)
    return ast.Subscript(deepcopy(array), index, context)


def subscripts_of(node: ast.Subscript) -> tuple[ast.expr, list[ast.expr]]:
    """The array and the subscripts of an access: those of ``A[i][k]`` are i and k."""
    axes: list[ast.expr] = []
    array: ast.expr = node
    while isinstance(array, ast.Subscript):
        axes[:0] = array.slice.elts if isinstance(array.slice, ast.Tuple) else [array.slice]
        array = array.value
    return array, axes


def plus(left: ast.expr, right: ast.expr) -> ast.expr:
    """The sum of two integers."""
    if isinstance(left, ast.Constant) and left.value == 0:
        return right
    return ast.BinOp(left, ast.Add(), right)


def minus(left: ast.expr, right: ast.expr) -> ast.expr:
    """The difference of two integers."""
    match left, right:
        case _, ast.Constant(value=0):
            return left
        case ast.Constant(value=int() as one), ast.Constant(value=int() as other):
            return _constant(one - other)
        case _, ast.Constant(value=int() as other) if other < 0:
            return ast.BinOp(left, ast.Add(), ast.Constant(-other))
        case _:
            return ast.BinOp(left, ast.Sub(), right)


def times(left: ast.expr, right: ast.expr) -> ast.expr:
    """The product of two integers."""
    if isinstance(right, ast.Constant) and right.value == 1:
        return left
    return ast.BinOp(left, ast.Mult(), right)


def two_axes(array: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Integers that must be equal for the rows of ``A.T`` to be columns of A: A has two axes."""
    match array:
        case ast.Attribute(value=base, attr="T"):
            return [(ast.Attribute(deepcopy(base), "ndim", ast.Load()), ast.Constant(2))]
        case _:
            return []


def _constant(value: int) -> ast.expr:
    return ast.Constant(value)


def _call(name: str, *words: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(words), [])


def _shape(array: ast.expr, axis: int) -> ast.expr:
    shape = ast.Attribute(deepcopy(array), "shape", ast.Load())
    return ast.Subscript(shape, ast.Constant(axis), ast.Load())
