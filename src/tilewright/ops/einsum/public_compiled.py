"""`compile_einsum` and `einsum_tree`: contractions of known shapes, planned once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import DTypeLike

from tilewright.errors.callers import named_in_errors
from tilewright.ops.einsum.compiled import TensorNetwork, known_places
from tilewright.ops.einsum.drawn import CompiledEinsum
from tilewright.typing import ArrayLike, Order


@named_in_errors
def compile_einsum(
    subscripts: str,
    /,
    *operands: ArrayLike | Sequence[int],
    dtype: DTypeLike | None = None,
    order: Order | None = "K",
    optimize: Any = "auto",
) -> CompiledEinsum:
    """An einsum of known shapes as a callable: the order of contraction and all layouts are decided once.

    Parameters
    ----------
    subscripts : str
        As in `einsum`.
    operands : shapes or arrays
        A shape stands for a C-contiguous array. Of arrays the strides and types decide too; calls may pass
        others, for which layouts are decided again.
    dtype : optional
        Element type of the results, as in `einsum`. By default they have NumPy's promotion of the operands of
        each call; costs are those of float32 where only shapes are given.
    order : "K", "C", "F" or "A"
        Order in memory of results that are not `out`, as in `einsum`.
    optimize : bool, str, tuple or list
        The order in which three or more operands meet, as in `einsum`.

    Returns
    -------
    CompiledEinsum
        ``run(*arrays, out=None, threads=None)`` computes. ``run.explain()`` is a table of contractions and
        permutations: labels, sizes, flops, bytes, way, predicted time. ``run.tree`` is the tree as it runs,
        in brackets; ``run.seconds()`` measures its nodes, ``run.picture(path)`` draws them.

    Raises
    ------
    MalformedSubscripts, OutputLabelUnknown, OutputLabelRepeated, EllipsisNotInOutput, OperandCount,
    AxesWithoutLabels, LabelSizes, InvalidOperand, InvalidPath, InvalidChoice, UnsupportedDtype

    Notes
    -----
    Results on the way stand in memory in the order that costs least over the whole tree, by a model of moved
    and packed elements; their memory is kept between calls, as much as the largest of them need at once.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> run = tw.compile_einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 5))
    >>> run(np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5)))[0, 0]
    np.float64(12.0)
    """
    shapes, strides, found = known_places(operands, dtype)
    network = TensorNetwork.of_subscripts(subscripts, shapes, optimize)
    return CompiledEinsum(network, found, strides, fixed=dtype is not None, order=order)


@named_in_errors
def einsum_tree(
    tree: str,
    sizes: Sequence[int] | Mapping[int, int],
    /,
    *,
    dtype: DTypeLike | None = None,
    optimize: Any = True,
) -> CompiledEinsum:
    """A tree of contractions in brackets as a callable.

    Parameters
    ----------
    tree : str
        Dimensions are numbers. A list of them is an operand, ``[8,4]``; two nodes and what they make are a
        contraction, ``[[8,4],[7,3,8]->[7,3,4]]``; one node and another order of its dimensions a permutation,
        ``[[8,4]->[4,8]]``. The outermost brackets may be missing. Operands count from left to right.
    sizes : sequence or mapping
        The length of each dimension, by its number.
    dtype : optional
        As in `compile_einsum`.
    optimize : bool, str, tuple or list
        True: what meets what stays, results on the way stand in the order that costs least, and permutations
        of the text are left out where nothing needs them. False: every node is computed as it is written, in
        the order of its dimensions in memory. Anything else: another order of contraction, as in `einsum`.

    Returns
    -------
    CompiledEinsum : see `compile_einsum`.

    Raises
    ------
    MalformedTree, TreeDimensionRepeated, TreeDimensionUnknown, TreeDimensionLost
        With the place in the text.
    TreeSizeMissing, TreeSize, InvalidPath, InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> run = tw.einsum_tree("[0,1],[[1,2],[2,3]->[1,3]]->[3,0]", (2, 3, 4, 5))
    >>> run(np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))).shape
    (5, 2)
    """
    network = TensorNetwork.of_tree(tree, sizes, optimize)
    _, _, found = known_places((), dtype)
    return CompiledEinsum(network, found, [None] * len(network.shapes), fixed=dtype is not None)
