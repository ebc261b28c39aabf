"""Inputs of a model: arrays of files that the command line names, and random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import InferenceInput
from tilewright.graph.nodes.sources import InputNode
from tilewright.graph.sizes import Sizes, evaluate_shape

#: Random integers are less than this: rows of every table, and values of every mask.
INTEGER_LIMIT = 2
#: A size that nobody gives, on the first axis and on others.
FIRST_SIZE, OTHER_SIZE = 1, 128


def read_inputs(words: Sequence[str], names: Sequence[str]) -> dict[str, Array]:
    """Arrays by inputs' names, from "name=file.npy" and "file.npy".

    Raises
    ------
    InferenceInput : an unknown or repeated name, too many files, or a file that is no array.
    """
    found: dict[str, Array] = {}
    unnamed = []
    for word in words:
        name, equals, path = word.partition("=")
        if not equals:
            unnamed.append(word)
            continue
        if name not in names or name in found:
            reason = "is given twice" if name in found else f"the model's inputs are {', '.join(names)}"
            raise InferenceInput(name=name, reason=reason)
        found[name] = _array(name, path)
    free = [name for name in names if name not in found]
    if len(unnamed) > len(free):
        reason = f"{len(words)} files for the inputs {', '.join(names) or 'of a model that has none'}"
        raise InferenceInput(name=unnamed[len(free)], reason=reason)
    return found | {name: _array(name, path) for name, path in zip(free, unnamed, strict=False)}


def _array(name: str, path: str) -> Array:
    try:
        found = np.load(Path(path), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InferenceInput(name=name, reason=f"cannot read {path}: {reason}") from error
    if not isinstance(found, np.ndarray):
        raise InferenceInput(name=name, reason=f"{path} holds several arrays")
    return found


def parse_sizes(words: Sequence[str]) -> Sizes:
    """Named sizes of "name=number".

    Raises
    ------
    InferenceInput

    >>> parse_sizes(["batch=8"])
    {'batch': 8}
    """
    found = {}
    for word in words:
        name, _, number = word.partition("=")
        if not name or not number.isdecimal():
            raise InferenceInput(name=word, reason="a size is NAME=NUMBER")
        found[name] = int(number)
    return found


def random_inputs(
    inputs: Sequence[InputNode], known: Mapping[str, Array], sizes: Sizes, seed: int
) -> dict[str, Array]:
    """An array for every input: a known one, or normal floats, or integers less than `INTEGER_LIMIT`.

    Raises
    ------
    InferenceInput : a size that no input has.
    """
    rng = np.random.default_rng(seed)
    chosen: dict[str, int] = {}
    for node in inputs:
        for axis, size in enumerate(node.shape):
            if size.constant is None:
                given = known[node.label].shape if node.label in known else ()
                default = FIRST_SIZE if axis == 0 else OTHER_SIZE
                chosen.setdefault(str(size), given[axis] if axis < len(given) else default)
    unknown = [name for name in sizes if name not in chosen]
    if unknown:
        reason = f"no input has this size; the model's sizes are {', '.join(chosen) or 'all fixed'}"
        raise InferenceInput(name=unknown[0], reason=reason)
    chosen.update(sizes)
    found = dict(known)
    for node in inputs:
        if node.label not in found:
            shape = evaluate_shape(node.shape, chosen)
            is_integer = node.dtype.kind in "biu"
            drawn = rng.integers(0, INTEGER_LIMIT, shape) if is_integer else rng.standard_normal(shape)
            found[node.label] = drawn.astype(node.dtype)
    return found
