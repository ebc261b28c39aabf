"""Arrays in, arrays out: the public functions.

What a call needs (LLVM, the stages, the run time) is imported by the first call, so that importing
the package costs a few milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import llvmlite.binding  # noqa: F401  (20 ms that the first call would pay)

from tilewright.calls.afterwards import afterwards
from tilewright.calls.foreign import as_array
from tilewright.errors import InvalidOperand, UnsupportedArgument, shown
from tilewright.llvm.builtin import Builtin
from tilewright.ops.matmul.public import matmul
from tilewright.preparing import Section, importing
from tilewright.spec.arguments import check_word
from tilewright.threads.lifetime import watch_forks
from tilewright.threads.limits import register_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from tilewright.compiler.kernel import Kernel
    from tilewright.machine.isa import Lowering
    from tilewright.machine.machine import Machine
    from tilewright.ops.attention.backward_kernel import AttentionBackwardKernel
    from tilewright.ops.attention.backward_problem import AttentionBackward
    from tilewright.ops.attention.kernel import AttentionKernel
    from tilewright.ops.attention.problem import Attention
    from tilewright.ops.attention.state import AttentionState
    from tilewright.ops.batch_reduce.kernel import BatchReduceKernel
    from tilewright.ops.batch_reduce.problem import BatchReduceGemm
    from tilewright.ops.chain.call import LinearChainKernel
    from tilewright.ops.chain.problem import LinearChain
    from tilewright.ops.contraction.kernel import ContractionKernel
    from tilewright.ops.contraction.problem import Contraction
    from tilewright.ops.einsum.drawn import CompiledEinsum
    from tilewright.ops.elementwise.problem import Elementwise
    from tilewright.ops.explain import Explanation
    from tilewright.ops.gemm.kernel import GemmKernel
    from tilewright.ops.gemm.problem import Gemm
    from tilewright.ops.linear.activations import QuantizedRows
    from tilewright.ops.mmt4d.call import Mmt4dKernel
    from tilewright.ops.mmt4d.problem import Mmt4d
    from tilewright.ops.packing.call import PackingKernel
    from tilewright.ops.packing.matrix import PackedMatrix
    from tilewright.ops.packing.problem import Packing
    from tilewright.ops.rows.kernel import RowKernel
    from tilewright.ops.rows.problem import RowFunction
    from tilewright.ops.scattered.kernel import ScatteredKernel
    from tilewright.ops.scattered.problem import ScatteredGemm
    from tilewright.ops.sum_of_products.kernel import ProductsKernel
    from tilewright.ops.sum_of_products.problem import SumOfProducts
    from tilewright.ops.transpose.native_entry import NativeTranspose
    from tilewright.ops.triangular.syr2k_call import SymmetricKernel
    from tilewright.ops.triangular.syr2k_problem import Syrk
    from tilewright.ops.triangular.trmm_call import TrmmKernel
    from tilewright.ops.triangular.trmm_problem import Trmm
    from tilewright.ops.unary.kernel import UnaryKernel
    from tilewright.ops.unary.problem import Unary
    from tilewright.spec.dtype import DType

register_pool()
watch_forks()


_TRANSPOSE_DOC = """\
transpose(a, axes=None, out=None)
--

The array with its axes permuted, materialised: ``numpy.transpose`` would return a view.

Parameters
----------
a : array_like
    Any dtype, any number of axes, any strides. Objects are copied by NumPy, everything else is moved
    by compiled code, byte for byte.
axes : sequence of int, optional
    Axis i of the result is axis ``axes[i]`` of a; by default the axes are reversed.
out : numpy.ndarray, optional
    Receives the result; exactly of its shape and dtype, of any strides. May share memory with a.

Returns
-------
numpy.ndarray, C-contiguous, or `out`

Raises
------
InvalidAxes, InvalidOperand, OutShape, OutOtherDtype, OutReadOnly, OutNotArray
    Each before `out` changes.

Notes
-----
Axes that stay neighbours are moved as one. Where the innermost axes of both arrays differ, the pair is
transposed in registers (scalable.uni-jena.de/opt/pbtc, §7.3.1); where it is the same, its rows are copied.

Examples
--------
>>> import numpy as np, tilewright as tw
>>> tw.transpose(np.arange(6).reshape(2, 3))
array([[0, 3],
       [1, 4],
       [2, 5]])
"""

_connecting = Section()
_transposing: list[NativeTranspose] = []  # the one entry of this process, once made


def _transpose(a: Any, axes: Sequence[int] | None = None, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """The Python half of `transpose`: everything but plain 2-D arrays, and every error."""
    with importing:
        from tilewright.ops.transpose import call as implementation

    result = implementation.transpose(a, axes, out)
    if _transposing and _transposing[0].connected == len(implementation.move_kernels):
        return result
    with importing:
        from tilewright.calls.fastcall import native_entry_possible
        from tilewright.ops.transpose.native_entry import NativeTranspose

    with afterwards("transpose"), _connecting as first:
        if first and native_entry_possible():
            if not _transposing:
                _transposing.append(NativeTranspose(_transpose_builtin))
            kernels = dict(implementation.move_kernels)
            _transposing[0].connect({size: kernel.address for size, kernel in kernels.items()})
    return result


_transpose_builtin = Builtin(_transpose, "transpose", "tilewright", _TRANSPOSE_DOC)

if TYPE_CHECKING:
    transpose = _transpose
else:
    transpose = _transpose_builtin.function


def compile_einsum(
    subscripts: str,
    /,
    *operands: Any,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
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
    with importing:
        from tilewright.ops.einsum.compiled import TensorNetwork, known_places
        from tilewright.ops.einsum.drawn import CompiledEinsum

    shapes, strides, found = known_places(operands, dtype)
    network = TensorNetwork.of_subscripts(subscripts, shapes, optimize)
    return CompiledEinsum(network, found, strides, fixed=dtype is not None, order=order)


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
    with importing:
        from tilewright.ops.einsum.compiled import TensorNetwork, known_places
        from tilewright.ops.einsum.drawn import CompiledEinsum

    network = TensorNetwork.of_tree(tree, sizes, optimize)
    _, _, found = known_places((), dtype)
    return CompiledEinsum(network, found, [None] * len(network.shapes), fixed=dtype is not None)


def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = 2) -> NDArray[Any]:
    """The sum over axes of a and of b of products of elements: `numpy.tensordot`.

    Parameters
    ----------
    a, b : array_like
    axes : int or pair
        So many last axes of a and first of b; or those of a and those of b, integers or sequences of them.

    Returns
    -------
    numpy.ndarray : the other axes of a, then those of b.

    Raises
    ------
    ContractionAxes, InvalidOperand, UnsupportedDtype

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
    (2, 5)
    """
    with importing:
        from tilewright.ops.einsum.products import tensordot as implementation

    return implementation(a, b, axes)


def inner(a: ArrayLike, b: ArrayLike, /) -> Any:
    """Products of elements summed over the last axes of both: `numpy.inner`.

    Parameters
    ----------
    a, b : array_like of shapes (..., k), or a scalar, which multiplies

    Returns
    -------
    numpy.ndarray of shape (*a.shape[:-1], *b.shape[:-1]); a scalar of two vectors

    Raises
    ------
    ContractionAxes, InvalidOperand, UnsupportedDtype

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.inner(np.ones((2, 4)), np.ones((3, 4))).shape
    (2, 3)
    """
    with importing:
        from tilewright.ops.einsum.products import inner as implementation

    return implementation(a, b)


def kron(a: ArrayLike, b: ArrayLike) -> Any:
    """Blocks of b, each multiplied by one element of a: `numpy.kron`.

    Parameters
    ----------
    a, b : array_like
        The one of fewer axes gets axes of length 1 in front.

    Returns
    -------
    numpy.ndarray whose axes are as long as the products of theirs

    Raises
    ------
    InvalidOperand, UnsupportedDtype

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.kron([1, 10], [1, 2, 3])
    array([ 1,  2,  3, 10, 20, 30])
    """
    with importing:
        from tilewright.ops.einsum.products import kron as implementation

    return implementation(a, b)


def vecdot(
    a: ArrayLike,
    b: ArrayLike,
    /,
    out: NDArray[Any] | tuple[NDArray[Any]] | None = None,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    axes: list[Any] | None = None,
    keepdims: bool = False,
    casting: str = "same_kind",
    order: str = "K",
    subok: bool = True,
    **unexpected: Any,
) -> Any:
    """Products of vectors, of complex ones with the conjugate of a: `numpy.vecdot`.

    Parameters
    ----------
    a, b : array_like of shapes (..., k)
        Axes before the last broadcast.
    out : numpy.ndarray, optional
        Receives the result, which broadcasts to it.
    dtype : optional
        As in `matmul`.
    axis : int
        Which axis of both is that of the vectors.
    axes : list, optional
        The axis in a, in b and, with `keepdims`, in the result.
    keepdims : bool
        Whether the result keeps the axis, with length 1.
    casting, order, subok : optional
        As in `matmul`.

    Returns
    -------
    numpy.ndarray of shape (...); a scalar of two vectors; or `out`

    Raises
    ------
    ContractionAxes, AxisOutOfRange, InvalidFlag, and what `matmul` raises

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.vecdot(np.ones((2, 3)), np.ones(3))
    array([3., 3.])
    """
    with importing:
        from tilewright.ops.einsum.products import of_vectors
        from tilewright.ops.gemm.gufuncs import Options

    options = Options(dtype, axes, axis, keepdims, casting, order, subok)
    return of_vectors("vecdot", a, b, out, options, unexpected)


def matvec(
    a: ArrayLike,
    b: ArrayLike,
    /,
    out: NDArray[Any] | tuple[NDArray[Any]] | None = None,
    *,
    dtype: DTypeLike | None = None,
    axes: list[Any] | None = None,
    casting: str = "same_kind",
    order: str = "K",
    subok: bool = True,
    **unexpected: Any,
) -> NDArray[Any]:
    """Matrices times vectors, both in stacks that broadcast: `numpy.matvec`.

    Parameters
    ----------
    a, b : array_like of shapes (..., m, k) and (..., k)
    out : numpy.ndarray, optional
        Receives the result, which broadcasts to it.
    dtype, axes, casting, order, subok : optional
        As in `matmul`.

    Returns
    -------
    numpy.ndarray of shape (..., m), or `out`

    Raises
    ------
    ContractionAxes, and what `matmul` raises

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.matvec(np.ones((5, 2, 3)), np.ones((5, 3))).shape
    (5, 2)
    """
    with importing:
        from tilewright.ops.einsum.products import of_vectors
        from tilewright.ops.gemm.gufuncs import Options

    options = Options(dtype, axes, casting=casting, order=order, subok=subok)
    found: NDArray[Any] = of_vectors("matvec", a, b, out, options, unexpected)
    return found


def vecmat(
    a: ArrayLike,
    b: ArrayLike,
    /,
    out: NDArray[Any] | tuple[NDArray[Any]] | None = None,
    *,
    dtype: DTypeLike | None = None,
    axes: list[Any] | None = None,
    casting: str = "same_kind",
    order: str = "K",
    subok: bool = True,
    **unexpected: Any,
) -> NDArray[Any]:
    """Vectors times matrices, of complex ones the conjugate of a: `numpy.vecmat`.

    Parameters
    ----------
    a, b : array_like of shapes (..., k) and (..., k, n)
    out : numpy.ndarray, optional
        Receives the result, which broadcasts to it.
    dtype, axes, casting, order, subok : optional
        As in `matmul`.

    Returns
    -------
    numpy.ndarray of shape (..., n), or `out`

    Raises
    ------
    ContractionAxes, and what `matmul` raises

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.vecmat(np.ones((5, 3)), np.ones((5, 3, 4))).shape
    (5, 4)
    """
    with importing:
        from tilewright.ops.einsum.products import of_vectors
        from tilewright.ops.gemm.gufuncs import Options

    options = Options(dtype, axes, casting=casting, order=order, subok=subok)
    found: NDArray[Any] = of_vectors("vecmat", a, b, out, options, unexpected)
    return found


def pack(
    b: ArrayLike,
    *,
    role: str = "b",
    tiles: Sequence[int] | None = None,
    form: str | None = None,
    target: str | Machine | None = None,
) -> PackedMatrix:
    """A matrix in the tiles in which products read it: packed once, multiplied often.

    Parameters
    ----------
    b : array_like
        Shape (k, n); in the role of A, (m, k). Any strides. Of a linear layer's weight (out, in) pass
        ``weight.T``.
    role : "b" or "a"
        On which side of products it stands.
    tiles : two ints, optional
        Lanes and adjacent depths of one tile, (N0, K0) or (M0, K0), for `mmt4d`; by default those of the
        machine, which `matmul` takes.
    form : "bf16" or "f16", optional
        A weight is rounded to nearest and kept so, and multiplied with float32 (or bfloat16) as the float32
        that each element is. For integers see `quantize_weights`.
    target : optional
        As in `compile`: the machine whose tiles are taken.

    Returns
    -------
    PackedMatrix
        Its ``data4d`` is [N1, K1, N0, K0], or [M1, K1, M0, K0]. Depths that fill the last tile are zero.
        Lanes that fill it are zero where `tiles` are given; otherwise they repeat the last lane, so that
        products raise no floating-point flag of their own, and no product reads them into a result.

    Raises
    ------
    InvalidOperand, UnsupportedDtype, InvalidChoice, InvalidTiles, UnknownTarget

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> x, b = np.ones((2, 300), np.float32), np.ones((300, 50), np.float32)
    >>> packed = tw.pack(b)
    >>> bool((tw.matmul(x, packed) == x @ b).all())
    True
    >>> tw.pack(b, tiles=(8, 4)).data4d.shape
    (7, 75, 8, 4)

    Source: IREE, Matrix Multiplication with MMT4D (2021), pack_2d_4d.
    """
    with importing:
        from tilewright.ops.packing.call import pack as implementation

    if form is not None:
        with importing:
            from tilewright.ops.quantized.quantise import FORMS, pack_floats

        form = check_word(form, "form", FORMS)
        if check_word(role, "role", ("b", "a")) != "b" or tiles is not None:
            name, value = ("role", role) if tiles is None else ("tiles", tiles)
            raise UnsupportedArgument(name=name, value=shown(value), remedy=f"pass form={form!r} without it")
        return pack_floats(b, form, _machine(target))
    return implementation(b, role=role, tiles=tiles, target=target)


def _machine(target: str | Machine | None) -> Machine:
    with importing:
        from tilewright.compiler.target import resolve_target

    return resolve_target(target)


def quantize_weights(
    w: ArrayLike,
    *,
    bits: int = 8,
    group: int | None = None,
    symmetric: bool = True,
    target: str | Machine | None = None,
) -> PackedMatrix:
    """A weight as integers of 8 or 4 bits with scales, packed: products read a fraction of the bytes.

    An element stands for s · (u - z): u unsigned, s the scale and z the zero point of its column and group.
    Products of float32 and bfloat16 with it sum x · (u - z) exactly as floats, group by group, and multiply
    each group's sum by its scale; no matrix of floats is made.

    Parameters
    ----------
    w : array_like
        Shape (k, n), converted to float32. Of a linear layer's weight (out, in) pass ``weight.T``.
    bits : 8 or 4
    group : 32, 64, 128, 256, 512 or 1024, optional
        Depths that share a scale, the last group the rest of k; None: one scale for each column.
    symmetric : bool
        Zero points are the middle of the range and s = max|w| / 127 (of 4 bits / 7); otherwise each group has
        its own, s = (max(w, 0) - min(w, 0)) / 255 (15) and z = round(-min(w, 0) / s). In float32, to nearest,
        ties to even.
    target : optional
        As in `compile`: the machine whose panels are taken.

    Returns
    -------
    PackedMatrix
        `unpack` gives the float32 matrix that it stands for.

    Raises
    ------
    InvalidOperand, InvalidChoice, InvalidGroup

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> w = np.arange(-8.0, 8.0).reshape(4, 4)
    >>> packed = tw.quantize_weights(w, bits=8)
    >>> bool(abs(tw.unpack(packed) - w).max() <= 8 / 127 / 2)
    True
    """
    with importing:
        from tilewright.ops.quantized.quantise import quantize_weights as implementation

    return implementation(w, _machine(target), bits=bits, group=group, symmetric=symmetric)


def pack_quantized(
    q: ArrayLike,
    scales: ArrayLike,
    zeros: ArrayLike | None = None,
    *,
    bits: int = 8,
    group: int | None = None,
    target: str | Machine | None = None,
) -> PackedMatrix:
    """A weight that is quantised already, by GPTQ, AWQ or the like, packed: see `quantize_weights`.

    Parameters
    ----------
    q : array_like of integers, shape (k, n)
        The weight is scales · (q - zeros). Of a signed dtype from -2^(bits-1), of an unsigned one from 0.
    scales : array_like, shape (groups, n)
        Converted to float32; of one group a column also (n,).
    zeros : array_like of integers, shape (groups, n), optional
        Zero points in the range of q; by default 0, of an unsigned q the middle of its range.
    bits, group, target : as in `quantize_weights`.

    Raises
    ------
    InvalidOperand, InvalidChoice, InvalidGroup
    ScaleShape : scales or zeros are not one for each group and column.
    QuantisedRange : elements or zero points are no integers of so many bits.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> q = np.array([[-8, 7], [0, 1]], np.int8)
    >>> tw.unpack(tw.pack_quantized(q, [0.5, 2.0], bits=4))
    array([[-4., 14.],
           [ 0.,  2.]], dtype=float32)
    """
    with importing:
        from tilewright.ops.quantized.quantise import pack_quantized as implementation

    return implementation(q, scales, zeros, _machine(target), bits=bits, group=group)


def unpack(packed: PackedMatrix) -> NDArray[Any]:
    """The matrix that was packed, bit for bit, C-contiguous, without the padding of its tiles.

    Raises
    ------
    NotPacked : for anything but a `PackedMatrix`.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.unpack(tw.pack(np.arange(6.0).reshape(2, 3)))
    array([[0., 1., 2.],
           [3., 4., 5.]])
    """
    with importing:
        from tilewright.ops.packing.call import unpack as implementation

    return implementation(packed)


def quantize_rows(x: ArrayLike) -> QuantizedRows:
    """Activations as 8-bit integers with one scale for each row, for products with weights of 8 bits.

    q = x / s rounded to nearest, ties to even; s = max|x| / 127 of the row in float32, 1 where that is 0.
    A row that holds NaN or an infinity gets the scale NaN (and q = 0), so that all of its results are NaN.

    Parameters
    ----------
    x : array_like
        Shape (m, k), of float32, float16 or bfloat16; anything else is converted to float32.

    Returns
    -------
    QuantizedRows
        `linear` and `matmul` take it as their first operand, beside ``quantize_weights(w, bits=8)``: the sums
        of integers are exact and become floats once: float32, or bfloat16 by `dtype` or `out`.

    Raises
    ------
    InvalidOperand

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> x, w = np.ones((2, 64), np.float32), np.ones((64, 3), np.float32)
    >>> tw.linear(tw.quantize_rows(x), tw.quantize_weights(w)).round(3)
    array([[64., 64., 64.],
           [64., 64., 64.]], dtype=float32)
    """
    with importing:
        from tilewright.ops.linear.activations import quantize_rows as implementation

    return implementation(x)


def linear(
    x: ArrayLike | QuantizedRows,
    weight: ArrayLike | PackedMatrix,
    bias: ArrayLike | None = None,
    activation: str | None = None,
    *,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """activation(x @ weight.T + bias): a linear layer, in one pass over the result.

    Parameters
    ----------
    x : array_like, shape (..., in); or QuantizedRows
    weight : array_like of shape (out, in), or PackedMatrix
        A weight that is used again is packed once: ``tilewright.pack(weight.T)``, whose shape is (in, out).
    bias : array_like of shape (out,), optional
    activation : str, optional
        As in `matmul`: "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh".
    out : numpy.ndarray of shape (..., out), optional
        Receives the result.
    threads : int, optional
        As in `matmul`.

    Returns
    -------
    numpy.ndarray of shape (..., out), or `out`
        The bits of ``matmul(x, weight.T, bias=bias, activation=activation)``, also by a packed weight.

    Raises
    ------
    InvalidOperand, and what `matmul` raises; each before `out` changes.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> x, weight = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)
    >>> packed = tw.pack(weight.T)
    >>> tw.linear(x, packed, -np.arange(4, dtype=np.float32) * 2, "relu")
    array([[3., 1., 0., 0.],
           [3., 1., 0., 0.]], dtype=float32)
    """
    with importing:
        import numpy as np

        from tilewright.ops.packing.matrix import PackedMatrix

    if type(weight) is not PackedMatrix:
        weight = as_array(weight, "weight")
        if weight.ndim != 2:
            raise InvalidOperand(
                name="weight", reason=f"it has {weight.ndim} dimensions; a weight is (out, in)"
            )
        weight = weight.T
    if type(x) is not np.ndarray:
        with importing:
            from tilewright.ops.linear.activations import QuantizedRows

        x = x if isinstance(x, QuantizedRows) else as_array(x, "x")
    if bias is None and activation is None and threads is None:
        return matmul(x, weight, out)  # in machine code
    return matmul(x, weight, out, bias=bias, activation=activation, threads=threads)


def matmul_integer(
    a: ArrayLike,
    b: ArrayLike,
    a_zero_point: ArrayLike | None = None,
    b_zero_point: ArrayLike | None = None,
    *,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """(a - a_zero_point) @ (b - b_zero_point) of bytes, exact in int32: ONNX's MatMulInteger.

    Parameters
    ----------
    a, b : array_like of int8 or uint8, in any combination
        Shapes (..., m, k) and (..., k, n), as in `matmul`: batch axes broadcast, 1-D operands are vectors.
    a_zero_point : integer or array_like, optional
        One number, (m,) for the rows of a, or (..., m, 1). Values of a's type; 0 by default.
    b_zero_point : integer or array_like, optional
        One number, (n,) for the columns of b, or (..., 1, n). Values of b's type; 0 by default.
    out : numpy.ndarray of int32, optional
        Receives the result.
    threads : int, optional
        As in `matmul`.

    Returns
    -------
    numpy.ndarray of int32, shape (..., m, n), or `out`
        Sums wrap around modulo 2**32.

    Raises
    ------
    InvalidZeroPoint, UnsupportedDtype, and what `matmul` raises; each before `out` changes.

    Notes
    -----
    The bytes are multiplied as they are. Two numbers are taken off with the sums of a's rows and b's columns
    when the product is stored; zero points by rows or columns through a product of depth 2.
    QLinearMatMul's scales follow: ``np.clip(np.rint(found * (a_scale * b_scale / y_scale)) + y_zero_point,
    0, 255)``.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> a, b = np.array([[11, 7]], np.uint8), np.array([[1], [-3]], np.int8)
    >>> tw.matmul_integer(a, b, 12, -1)
    array([[8]], dtype=int32)
    """
    with importing:
        from tilewright.ops.matmul.integers import matmul_integer as implementation
        from tilewright.threads.pool import limited

    with limited(threads):
        return implementation(a, b, a_zero_point, b_zero_point, out)


def mmt4d(
    lhs4d: ArrayLike | PackedMatrix, rhs4d: ArrayLike | PackedMatrix, out4d: NDArray[Any] | None = None
) -> NDArray[Any]:
    """The product of matrices in tiles, the second one transposed: linalg.mmt4d of MLIR.

    out[m1, n1] += Σ over k1 of lhs[m1, k1] @ rhs[n1, k1].T, each of these a tile.

    Parameters
    ----------
    lhs4d : array_like, shape (M1, K1, M0, K0)
    rhs4d : array_like, shape (N1, K1, N0, K0)
        Any tile sizes. Those of the machine (``tw.pack(b).tiles``) and their multiples are read where they
        stand; tiles that whole vectors don't fill, or of other element types than the machine multiplies,
        are packed again on the way.
    out4d : numpy.ndarray of shape (M1, N1, M0, N0), optional
        The product is added to it, as in linalg.mmt4d. Without it the result is a new array.

    Returns
    -------
    numpy.ndarray of shape (M1, N1, M0, N0), or `out4d`
        float32 for floats of up to 32 bits, int32 for integers of up to 16; `out4d` may also be narrower, and
        is rounded once.

    Raises
    ------
    InvalidOperand, TilesMismatch, UnsupportedDtype, OutShape, OutDtype, OutReadOnly, OutNotArray
        Each before `out4d` changes.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> a, b = np.ones((10, 6), np.float32), np.ones((6, 7), np.float32)
    >>> lhs, rhs = tw.pack(a, role="a", tiles=(4, 2)), tw.pack(b, tiles=(8, 2))
    >>> tw.mmt4d(lhs, rhs).shape
    (3, 1, 4, 8)

    Source: IREE, Matrix Multiplication with MMT4D (2021).
    """
    with importing:
        from tilewright.ops.mmt4d.call import mmt4d as implementation

    return implementation(lhs4d, rhs4d, out4d)


def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    causal: bool | str = False,
    scale: float | None = None,
    window: tuple[int | None, int | None] | None = None,
    q_offset: ArrayLike | None = None,
    softcap: float | None = None,
    alibi_slopes: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    q_lengths: ArrayLike | None = None,
    kv_lengths: ArrayLike | None = None,
    cu_seqlens_q: ArrayLike | None = None,
    cu_seqlens_k: ArrayLike | None = None,
    block_table: ArrayLike | None = None,
    key_scales: ArrayLike | None = None,
    value_scales: ArrayLike | None = None,
    layout: str = "bhsd",
    out: NDArray[Any] | None = None,
    return_lse: bool = False,
    return_scores: str | None = None,
    strategy: str = "auto",
    threads: int | None = None,
) -> Any:
    """softmax(scale · q·kᵀ + ...) · v, fused: the scores of all keys never exist at once.

    A score is made in this order: scale · q·k, the key's scale, softcap, the slope of the head times the
    distance, the mask added; then keys that the mask, `causal`, `window` or a length excludes take no part at
    all, whatever they and their values hold, NaN included. Softmax is computed in float32, for float64 in
    float64.

    Parameters
    ----------
    q : array_like, shape (batch, heads, queries, d)
    k, v : array_like, shapes (batch, kv_heads, keys, d) and (batch, kv_heads, keys, value_dim)
        float32, float64, bfloat16 or float16, of any strides; different floats are converted to the widest,
        bfloat16 and float16 to float32. k and v may both be int8. kv_heads divides heads: query head h reads
        head h // (heads / kv_heads) of k and v. A batch of 1 serves every sequence of the other operands.
        Without the batch axis 3-D, of one head 2-D; axes in front of the last four are batches too.
    mask : array_like, optional
        Broadcasts to (batch, heads, queries, keys) in every layout, and is not copied for that. bool: True
        where a key is seen, as in torch and ONNX. A float is added to the scores; values of at most half the
        least number of its type exclude, as -inf does. Keys are counted from the first key of each sequence
        on: for paged keys the last axis covers the longest of `kv_lengths`, or more, up to the pages of the
        table; for packed ones the longest sequence. A last axis of fewer keys (but not 1, which broadcasts)
        excludes those it does not cover, as in ONNX.
    causal : bool, "lower_right" or "upper_left"
        True and "lower_right": the last query is at the last key, as with a cache of earlier keys
        (flash-attention; ``torch.nn.attention.bias.causal_lower_right``). "upper_left": the first query is at
        the first key, as in torch's ``is_causal=True`` and in ONNX's ``is_causal`` without a cache. For equal
        numbers of queries and keys both are the same. With `q_offset` pass True.
    scale : float, optional
        1 / sqrt(d) by default.
    window : (left, right), optional
        Each query sees the keys from `left` before its own to `right` behind, both included; None: all of
        that side. Where a query stands is as with `causal`.
    q_offset : int or array_like of integers, shape (batch,), optional
        Position of the first query of each sequence among its keys, for `causal`, `window` and
        `alibi_slopes`: query i is at key q_offset + i. By default the last query is at the last key. Pass the
        number of earlier keys (the length of ONNX's ``past_key``) when a step adds a different number of keys
        than queries. May be negative or beyond the last key.
    softcap : float, optional
        Scores become softcap · tanh(score / softcap); 0 is none.
    alibi_slopes : array_like, shape (heads,), optional
        slope · |key - place of the query| is subtracted; without `q_offset` the last query is at the last
        key.
    sinks : array_like, shape (heads,), optional
        A score of each head that takes part in the sum and has no value; lse counts it.
    q_lengths, kv_lengths : array_like of integers, shape (batch,), optional
        How many queries and keys of each sequence count, from the first on; the others are not read. Results
        of queries that don't count are 0, their lse is -inf.
    cu_seqlens_q, cu_seqlens_k : array_like of integers, shape (sequences + 1,), optional
        Sequences packed behind one another: q is (heads, rows, d), with layout "bshd" (rows, heads, d), and
        sequence i are the rows cu_seqlens_q[i] to cu_seqlens_q[i + 1]. Without cu_seqlens_k that of the
        queries serves keys that are packed too.
    block_table : array_like of integers, shape (batch, pages), optional
        Keys and values stand in pages: k is (pages, kv_heads, page, d), with layout "bshd" (pages, page,
        kv_heads, d); key j of sequence i stands in page block_table[i, j // page]. Needs `kv_lengths`.
    key_scales, value_scales : array_like, optional
        What a quantised key or value is multiplied by: a number, (kv_heads,), (batch, kv_heads), or one for
        each token in the shape of k without its last axis.
    layout : "bhsd" or "bshd"
        "bshd": (batch, sequence, heads, d), in all operands and the result.
    out : numpy.ndarray, optional
        Receives the result; exactly of its shape. May share memory with the operands.
    return_lse : bool
        Whether the logarithm of each row's sum of exponentials is returned too.
    return_scores : "product", "softcap", "mask" or "softmax", optional
        Returns the scores too, as they are after this step: scale · q·k and the key's scale; then softcap;
        then slopes, mask, `causal` and `window`, with -inf for what is excluded; then softmax, with 0 for it.
        Takes a second pass and memory for every query and key; the first result is the same.
    strategy : "auto", "blocks", "decode" or "unfused"
        By default each sequence goes the way that costs least by its number of queries, see `explain`.
        "decode", for few queries, reads keys and values where they stand (blocks if their elements are not
        adjacent); "unfused" makes all scores of some heads, for comparison.
    threads : int, optional
        As in `matmul`; the result has the same bits with any number.

    Returns
    -------
    numpy.ndarray of q's shape, the last axis value_dim long, of the (converted) dtype of q; or `out`
    lse : numpy.ndarray (batch, heads, queries) in every layout, float32 or float64; if `return_lse`
        -inf for a query that sees no key and has no sink, whose result is 0.
    scores : numpy.ndarray (batch, heads, queries, keys) in every layout, of lse's type; if `return_scores`
        For packed sequences (sequences, heads, longest queries, longest keys), for paged keys as many keys as
        the longest of `kv_lengths`. Outside of lengths -inf, after softmax 0.

    Raises
    ------
    AttentionAxes, AttentionDtype, AttentionBatch, HeadsMismatch, HeadSizeMismatch, KeysMismatch, MaskShape,
    MaskDtype, InvalidWindow, InvalidQueryOffset, InvalidLengths, InvalidOffsets, OffsetsNotIncreasing,
    OffsetsPastEnd, BlockTableShape, BlockOutsideCache, HeadVectorShape, AttentionScales, AttentionArguments,
    InvalidOperand, InvalidScalar, InvalidChoice, InvalidThreads, OutShape, OutDtype, OutReadOnly, OutNotArray
        Each before `out` changes.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> q, k = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 1, 5, 4), np.float32)
    >>> v = np.arange(5, dtype=np.float32).reshape(1, 1, 5, 1)
    >>> tw.attention(q, k, v, causal=True)[0, 0, :, 0]
    array([1. , 1.5, 2. ], dtype=float32)

    Source: MEATTEN (ICS 2024), §4 and §5.
    """
    with importing:
        from tilewright.ops.attention.call import attention as implementation
        from tilewright.ops.attention.operands import Keywords
        from tilewright.threads.pool import limited

    keywords = Keywords(
        *(mask, causal, scale, window, softcap, alibi_slopes, sinks),
        *(q_lengths, kv_lengths, cu_seqlens_q, cu_seqlens_k, block_table),
        *(key_scales, value_scales, layout, q_offset),
    )
    if return_scores is not None:
        with importing:
            from tilewright.ops.attention.call import attention_with_scores

        options: dict[str, Any] = {"return_lse": return_lse, "strategy": strategy, "stage": return_scores}
        with limited(threads):
            return attention_with_scores(q, k, v, out, keywords, **options)
    if threads is None:
        return implementation(q, k, v, out, keywords, return_lse=return_lse, strategy=strategy)
    with limited(threads):
        return implementation(q, k, v, out, keywords, return_lse=return_lse, strategy=strategy)


def append_kv(
    k_cache: NDArray[Any],
    v_cache: NDArray[Any],
    k: ArrayLike,
    v: ArrayLike,
    kv_lengths: ArrayLike,
    *,
    new_lengths: ArrayLike | None = None,
    block_table: ArrayLike | None = None,
    layout: str = "bhsd",
) -> NDArray[Any]:
    """Write new keys and values behind those that caches hold, in place, and return the new lengths.

    The step before `attention` over a cache that is allocated once. With as many queries as new keys the
    default position of the queries is right: the last query is at the last key.

    Parameters
    ----------
    k_cache, v_cache : numpy.ndarray, shapes (batch, kv_heads, capacity, d) and (batch, kv_heads, capacity, ·)
        Written in place, of any strides and type. Without the batch axis 3-D, of one head 2-D. With
        `block_table` (pages, kv_heads, page, ·).
    k, v : array_like, shapes (batch, kv_heads, new, d) and (batch, kv_heads, new, ·)
        As many axes as the caches; converted to their types under "same_kind" casting.
    kv_lengths : array_like of integers, shape () or (batch,)
        Keys that each sequence has so far.
    new_lengths : array_like of integers, shape () or (batch,), optional
        How many of the new keys of each sequence count, from the first on; by default all.
    block_table : array_like of integers, shape (batch, pages), optional
        The pages of each sequence, as in `attention`. Places that two sequences share are written twice, in
        no order.
    layout : "bhsd" or "bshd"
        "bshd": (batch, sequence, heads, d), in the caches and the new keys and values.

    Returns
    -------
    numpy.ndarray of int64, shape (batch,)
        The new lengths, for ``attention(..., kv_lengths=)`` and the next step.

    Raises
    ------
    CacheNotArray, CacheReadOnly, AttentionAxes, AppendShape, AppendDtype, KeysMismatch, InvalidLengths,
    CacheFull, BlockTableShape, BlockOutsideCache, InvalidOperand, InvalidChoice
        Each before a cache changes.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> k_cache, v_cache = np.zeros((1, 2, 8, 4), np.float32), np.zeros((1, 2, 8, 4), np.float32)
    >>> new = np.ones((1, 2, 3, 4), np.float32)
    >>> lengths = tw.append_kv(k_cache, v_cache, new, new, 0)
    >>> lengths = tw.append_kv(k_cache, v_cache, new, 2 * new, lengths)
    >>> lengths, v_cache[0, 0, :, 0]
    (array([6]), array([1., 1., 1., 2., 2., 2., 0., 0.], dtype=float32))
    >>> tw.attention(new, k_cache, v_cache, kv_lengths=lengths, causal=True)[0, 0, :, 0]
    array([1.25, 1.4 , 1.5 ], dtype=float32)
    """
    with importing:
        from tilewright.ops.attention.kv_cache import append_kv as implementation

    return implementation((k_cache, v_cache), (k, v), kv_lengths, new_lengths, block_table, layout)


def attention_partial(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, *, threads: int | None = None, **keywords: Any
) -> AttentionState:
    """Attention to some of the keys, in a form that `merge_attention` puts together with that to others.

    What a run over several machines needs, each of which holds a part of the keys: merged, the states are
    those of all keys, up to rounding, in whatever order and grouping.

    Parameters
    ----------
    q, k, v : as in `attention`; k and v are those of the part.
    threads : as in `attention`.
    keywords : mask, causal, scale, window, q_offset, softcap, alibi_slopes, sinks, the lengths, block_table,
        the scales and layout, as in `attention`. Places (of causal, window and slopes) are those in the part:
        for a part that begins at key j, causal attention takes ``causal=True, q_offset=p - j`` with p the
        place of the first query among all keys. Sinks belong to one part alone.

    Returns
    -------
    AttentionState : (out, row_max, row_sum), and the properties `lse` and `layout`
        The result of these keys alone, in `layout`, in float32 (float64 for float64 queries); then for each
        row its largest score and the sum of e^(score - row_max), (batch, heads, queries) in every layout, as
        the lse of `attention` is. A row that sees no key has 0, -inf and 0.

    Raises
    ------
    As `attention`.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> q, k, v = np.random.rand(1, 8, 1, 64), np.random.rand(1, 2, 100, 64), np.random.rand(1, 2, 100, 64)
    >>> halves = slice(0, 60), slice(60, 100)
    >>> parts = [tw.attention_partial(q, k[:, :, keys], v[:, :, keys]) for keys in halves]
    >>> np.allclose(tw.merge_attention(parts).out, tw.attention(q, k, v))
    True

    Source: MEATTEN (ICS 2024), §5.1 (the state of an online softmax).
    """
    with importing:
        from tilewright.ops.attention.operands import Keywords
        from tilewright.ops.attention.state import attention_partial as implementation
        from tilewright.threads.pool import limited

    if threads is None:
        return implementation(q, k, v, Keywords(**keywords))
    with limited(threads):
        return implementation(q, k, v, Keywords(**keywords))


def merge_attention(states: Iterable[AttentionState], *, layout: str | None = None) -> AttentionState:
    """The state of all keys from those of their parts: sums weighted by e^row_max, in the order given.

    Associative and commutative up to rounding: states of merged states may be merged again. The same states
    in the same order give the same bits.

    Parameters
    ----------
    states : iterable of AttentionState, or of (out, row_max, row_sum)
        One for each part, all of the same queries: out in `layout`, row_max and row_sum (batch, heads,
        queries) in every layout.
    layout : "bhsd" or "bshd", optional
        The layout of the results. By default that of the first `AttentionState`; "bhsd" for plain tuples.

    Returns
    -------
    AttentionState : `out` is the result (``.astype(q.dtype)`` rounds it as `attention` does), `lse` the
        logarithm of each row's sum of exponentials.

    Raises
    ------
    NoStates : of nothing.
    StateShape : if they are of different queries.
    StateLayouts : if their results are in different layouts.
    InvalidChoice : for an invalid `layout`.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> one = (np.full((1, 4), 2.0), np.zeros(1), np.ones(1))
    >>> other = (np.full((1, 4), 5.0), np.zeros(1), np.full(1, 2.0))
    >>> tw.merge_attention([one, other]).out
    array([[4., 4., 4., 4.]])
    """
    with importing:
        from tilewright.ops.attention.state import merge_attention as implementation

    return implementation(states, layout)


def attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    out: ArrayLike,
    lse: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    causal: bool | str = False,
    scale: float | None = None,
    window: tuple[int | None, int | None] | None = None,
    q_offset: ArrayLike | None = None,
    softcap: float | None = None,
    alibi_slopes: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    q_lengths: ArrayLike | None = None,
    kv_lengths: ArrayLike | None = None,
    cu_seqlens_q: ArrayLike | None = None,
    cu_seqlens_k: ArrayLike | None = None,
    layout: str = "bhsd",
    threads: int | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The gradients of `attention` with respect to q, k and v, fused as it is.

    Weights are computed again, block by block, from lse: extra memory grows with the operands, not with the
    square of the length. Sums are float32.

    Parameters
    ----------
    dout : array_like
        The gradient of the result, of its shape.
    q, k, v : array_like
        As `attention` had them, float32 or bfloat16.
    out, lse : array_like
        What ``attention(..., return_lse=True)`` returned for them: lse is (batch, heads, queries) in every
        layout.
    mask, causal, scale, window, q_offset, softcap, alibi_slopes, sinks : optional
    q_lengths, kv_lengths, cu_seqlens_q, cu_seqlens_k : optional
        As `attention` had them. Sinks take part by way of lse; they, slopes and masks get no gradients.
    layout : "bhsd" or "bshd"
        Of every operand but lse, and of the gradients.
    threads : int, optional
        As in `matmul`; the gradients have the same bits with any number.

    Returns
    -------
    dq, dk, dv : numpy.ndarray
        Of the shapes of q, k and v, of the type to which these are converted. Heads of keys that serve
        several heads of queries get the sum over these, as operands with a batch of 1 do over the sequences.
        Rows that belong to no sequence, and queries that see no key, have gradient 0.

    Raises
    ------
    AttentionGradientShape : if dout, out or lse is of another shape.
    UnsupportedDtype : for operands of another type.
    InvalidSize : for heads of no or of more than 1024 elements.
    The errors of `attention` for what it takes too.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> q, k = np.ones((1, 1, 1, 2), np.float32), np.eye(2, dtype=np.float32).reshape(1, 1, 2, 2)
    >>> v = np.array([[[[0.0], [1.0]]]], np.float32)
    >>> out, lse = tw.attention(q, k, v, scale=1.0, return_lse=True)
    >>> dq, dk, dv = tw.attention_backward(np.ones_like(out), q, k, v, out, lse, scale=1.0)
    >>> dq.ravel(), dv.ravel()
    (array([-0.25,  0.25], dtype=float32), array([0.5, 0.5], dtype=float32))

    Source: Dao et al., FlashAttention, NeurIPS 2022, appendix B.2, with the blocks of MEATTEN (ICS 2024).
    """
    with importing:
        from tilewright.ops.attention.backward_call import attention_backward as implementation
        from tilewright.ops.attention.operands import Keywords
        from tilewright.threads.pool import limited

    keywords = Keywords(
        *(mask, causal, scale, window, softcap, alibi_slopes, sinks),
        *(q_lengths, kv_lengths, cu_seqlens_q, cu_seqlens_k),
        layout=layout,
        q_offset=q_offset,
    )
    with limited(threads):
        return implementation(dout, (q, k, v), out, lse, keywords)


def explain(subject: Any, /, *arguments: Any, **options: Any) -> Explanation:
    """Which strategy and kernel a call or a problem takes, and why.

    Parameters
    ----------
    subject : a problem, or a function of this package: ``explain(matmul, a, b, out=c)``.
    arguments, options : those of the function; of a problem, the target it is compiled for.

    Returns
    -------
    Explanation
        Prints as text; its fields hold the kernel, the strategy, each decision with the values it looked
        at, what happens around the kernel (copies, Python, batches), blocking, flops and bytes. Nothing
        is computed.

    Raises
    ------
    NotExplained, and what the call itself would raise.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> a, x = np.ones((64, 64), np.float32), np.ones((64, 1), np.float32)
    >>> tw.explain(tw.matmul, a, x).strategy
    'dot products: vectors run along the depth, rows of A are read once'
    """
    with importing:
        from tilewright.ops.explain import explain as implementation

    return implementation(subject, *arguments, **options)


def einsum_contraction(
    subscripts: str,
    /,
    *operands: Any,
    dtype: DType | str | None = None,
    out_dtype: DType | str | None = None,
    out_strides: Sequence[int] | None = None,
    main: str | None = None,
    first: str | None = None,
    last: str | None = None,
) -> Contraction:
    """The contraction that subscripts name, with no schedule yet: a dimension for each label.

    Parameters
    ----------
    subscripts : as `einsum` takes them, of one or two operands: ``"ij,jk->ik"``. A label that stands twice on
        one operand is its diagonal.
    operands : the shape of each, which then is row-major, or an array, whose strides and type are taken.
    dtype, out_dtype : element types, of both operands and of the result; by default those of arrays, or f32.
    out_strides : elements between the axes of the result; by default it is row-major.
    main, first, last : as in `Contraction`; of one operand `main` is "identity" by default.

    Returns
    -------
    Contraction
        All of its dimensions are sequential: `compile` finds a schedule, `schedule` shows it.

    Raises
    ------
    ContractionOperands, ContractionPrimitive, InvalidOperand, and what `einsum` raises of subscripts, shapes

    Examples
    --------
    >>> import tilewright as tw
    >>> print(tw.einsum_contraction("ij,jk->ik", (2, 3), (3, 4)))
    contraction dtype=f32 in1_dtype=f32 out_dtype=f32 main=packed_gemm first=zero
    m sequential 2 in0=3 in1=0 out=4
    n sequential 4 in0=0 in1=1 out=1
    k sequential 3 in0=1 in1=4 out=0
    """
    with importing:
        from tilewright.ops.einsum.contraction_call import einsum_contraction as implementation

    choices = {"dtype": dtype, "in1_dtype": dtype, "out_dtype": out_dtype}
    choices |= {"main": main, "first": first, "last": last}
    return implementation(subscripts, operands, out_strides, choices)


def schedule(contraction: Contraction, target: str | Machine | None = None) -> Contraction:
    """The same contraction with a schedule for a machine: how its dimensions run, in which order.

    Dimensions that are one in every operand are fused; the primitive and its dimensions are those of the
    least estimated cycles; what caches don't hold is cut; outer loops become tasks, if need be after a cut.
    Order and execution of the given dimensions are not looked at. `compile` does this where all are
    sequential.

    Parameters
    ----------
    contraction : of one operand or two.
    target : as in `compile`.

    Returns
    -------
    Contraction
        It means the same, on the same memory. Sizes of run time are given in the same order.

    Raises
    ------
    ContractionPrimitive : if no primitive takes the element types.
    UnknownTarget, InvalidTarget, UnknownTriple, UnknownCpu, UnknownFeature : as `compile`.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.schedule(tw.einsum_contraction("bij,bjk->bik", (4, 64, 64), (4, 64, 64)), "znver5")
    >>> print(found)
    contraction dtype=f32 in1_dtype=f32 out_dtype=f32 main=gemm first=zero
    c sequential 4  in0=4096 in1=4096 out=4096
    m primitive  64 in0=64   in1=0    out=64
    n primitive  64 in0=0    in1=1    out=1
    k primitive  64 in0=1    in1=64   out=0
    """
    with importing:
        from tilewright.ops.contraction.schedule.passes import schedule as implementation

    return implementation(contraction, _machine(target))


def set_num_threads(count: int) -> None:
    """Sets how many threads a call uses, in every thread of this process.

    Parameters
    ----------
    count : threads of later calls, the caller among them; 1 computes on the caller alone. More than the
        process may use cores are allowed, but then threads take turns and never poll for work, so that most
        products take longer.

    Raises
    ------
    InvalidThreads : if `count` is not an integer from 1 to a bound of about a thousand.

    Notes
    -----
    By default it is the least of the CPUs that the process may run on, the whole cores in its control
    group's quota, OMP_NUM_THREADS and TILEWRIGHT_NUM_THREADS. Results have the same bits with any number.
    Threads are started when they are first needed; those that become too many sleep.

    Examples
    --------
    >>> import tilewright as tw
    >>> before = tw.get_num_threads()
    >>> tw.set_num_threads(1)
    >>> tw.get_num_threads()
    1
    >>> tw.set_num_threads(before)
    """
    with importing:
        from tilewright.threads import pool as threads

    threads.set_num_threads(count)


def get_num_threads() -> int:
    """How many threads a call uses; see `set_num_threads`.

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.get_num_threads() >= 1
    True
    """
    with importing:
        from tilewright.threads import pool as threads

    return threads.get_num_threads()


def targets() -> tuple[str, ...]:
    """Names of the machines that kernels can be compiled for, beside this host.

    Examples
    --------
    >>> import tilewright as tw
    >>> "znver5" in tw.targets()
    True
    """
    with importing:
        from tilewright.machine import catalog

    return catalog.targets()


@overload
def compile(
    problem: Gemm, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> GemmKernel: ...


@overload
def compile(
    problem: BatchReduceGemm, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> BatchReduceKernel: ...


@overload
def compile(
    problem: Unary, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> UnaryKernel: ...


@overload
def compile(
    problem: Packing, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> PackingKernel: ...


@overload
def compile(
    problem: Mmt4d, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> Mmt4dKernel: ...


@overload
def compile(
    problem: LinearChain, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> LinearChainKernel: ...


@overload
def compile(
    problem: ScatteredGemm, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> ScatteredKernel: ...


@overload
def compile(
    problem: Attention, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> AttentionKernel: ...


@overload
def compile(
    problem: AttentionBackward, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> AttentionBackwardKernel: ...


@overload
def compile(
    problem: RowFunction | Elementwise,
    target: str | Machine | None = None,
    *,
    lowering: Lowering | str = ...,
) -> RowKernel: ...


@overload
def compile(
    problem: Syrk, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> SymmetricKernel: ...


@overload
def compile(
    problem: SumOfProducts, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> ProductsKernel: ...


@overload
def compile(
    problem: Contraction, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> ContractionKernel: ...


@overload
def compile(
    problem: Trmm, target: str | Machine | None = None, *, lowering: Lowering | str = ...
) -> TrmmKernel: ...


def compile(
    problem: Gemm
    | BatchReduceGemm
    | Unary
    | Packing
    | Mmt4d
    | LinearChain
    | Attention
    | AttentionBackward
    | ScatteredGemm
    | RowFunction
    | Elementwise
    | Syrk
    | SumOfProducts
    | Contraction
    | Trmm,
    target: str | Machine | None = None,
    *,
    lowering: Lowering | str = "target",
) -> Kernel:
    """Compiles a problem for this host or another machine.

    Parameters
    ----------
    problem : what to compute. A `Contraction` whose dimensions are all sequential gets a `schedule` first.
    target : None or "host" for this host, a name of `targets()`, "triple:cpu" or "triple:cpu:+features"
        in LLVM's names (such as "aarch64-linux-gnu:neoverse-n2:+sve"), or a `Machine`.
    lowering : who writes the tile products: "target", this package by the target's multiply instructions,
        or "generic", LLVM from its intrinsic `llvm.matrix.multiply` (Kuzma et al. 2023, §3.2).

    Raises
    ------
    NotAProblem, InvalidChoice, UnknownTarget, InvalidTarget, UnknownTriple, UnknownCpu, UnknownFeature,
    UnsupportedDtype, CompilationFailed

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.compile(tw.Gemm(m=8, n=8, k=8)).flops
    1024
    """
    with importing:
        from tilewright.compiler.target import compile_problem

    return compile_problem(problem, target, lowering)
