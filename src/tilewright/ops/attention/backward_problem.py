"""The gradients of fused attention as a problem: what `Attention` computes, differentiated."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.ops.attention.problem import MASK_DTYPES, MAX_HEAD
from tilewright.records import dataclass
from tilewright.spec.arguments import check_flag, check_integer
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import F32, DType, Use, dtypes_for, parse_dtype
from tilewright.spec.problem import RunTimeSizes
from tilewright.spec.records import set_fields
from tilewright.typing import ElementType

#: Element types that have gradients.
BACKWARD_DTYPES = dtypes_for(Use.ATTENTION_GRADIENTS)


@dataclass(frozen=True, init=False)
class AttentionBackward(RunTimeSizes):
    """dQ, dK and dV of O = softmax(mask(scale · Q·Kᵀ))·V, given dO, O and the logarithms of the row sums.

    With S the scores, P = e^(S - lse) and δ the row sums of dO ∘ O (Dao et al., FlashAttention, NeurIPS
    2022, appendix B.2)::

        dV = Pᵀ·dO    dP = dO·Vᵀ    dS = P ∘ (dP - δ) ∘ S'    dQ = scale · dS·K    dK = scale · dSᵀ·Q

    S' is 1, or 1 - tanh² under a softcap. P is computed again, block by block: nothing of the size of S is
    kept. Keys and values of grouped queries get the sum over their group. A sink is part of lse, and so
    needs nothing more.

    Parameters
    ----------
    head_dim, value_dim : elements of one query and key, and of one value (as many by default).
    dtype : of every array but lse: f32 or bf16. Sums and softmax are f32.
    bounded : each query sees a range of keys that moves on with it: causal attention, windows.
    mask : element type of a mask, u8 for truths, or None.
    softcap : scores s become cap · tanh(s / cap).
    slopes : ALiBi: the distance between query and key times a slope of the head is subtracted.

    Raises
    ------
    InvalidSize, InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> AttentionBackward(64, bounded=True).features
    ('bounded',)
    """

    operation: ClassVar[str] = "attention_backward"
    __repr__ = constructor_text
    head_dim: int
    value_dim: int
    dtype: DType
    bounded: bool
    mask: DType | None
    softcap: bool
    slopes: bool

    def __init__(
        self,
        head_dim: int,
        value_dim: int | None = None,
        dtype: DType | ElementType = "f32",
        *,
        bounded: bool = False,
        mask: DType | ElementType | None = None,
        softcap: bool = False,
        slopes: bool = False,
    ) -> None:
        value_dim = head_dim if value_dim is None else value_dim
        head_dim = check_integer(head_dim, "head_dim", 1, MAX_HEAD)
        value_dim = check_integer(value_dim, "value_dim", 1, MAX_HEAD)
        set_fields(
            self,
            head_dim=head_dim,
            value_dim=value_dim,
            dtype=parse_dtype(dtype, BACKWARD_DTYPES),
            bounded=check_flag(bounded, "bounded"),
            mask=None if mask is None else parse_dtype(mask, MASK_DTYPES),
            softcap=check_flag(softcap, "softcap"),
            slopes=check_flag(slopes, "slopes"),
        )

    @property
    def acc(self) -> DType:
        """The type of scores, sums and unfinished results."""
        return F32

    @property
    def features(self) -> tuple[str, ...]:
        """The non-default options, as words of the kernel's name."""
        words = ["bounded"] * self.bounded
        words += [f"mask{self.mask}"] if self.mask else []
        words += [name for name in ("softcap", "slopes") if getattr(self, name)]
        return tuple(words)


Array: TypeAlias = NDArray[Any]


class AttentionGradients(NamedTuple):
    """The gradients in float64, and the intermediate values they are computed from."""

    out: Array
    lse: Array
    dq: Array
    dk: Array
    dv: Array


def reference(
    q: Array,
    k: Array,
    v: Array,
    dout: Array,
    scale: float,
    *,
    bias: Array | float = 0.0,
    softcap: float = 0.0,
) -> AttentionGradients:
    """The meaning of `AttentionBackward` by whole matrices, each axis as in layout "bhsd".

    Parameters
    ----------
    q, k, v, dout : (batch, heads, queries, d), (batch, kv_heads, keys, d or value_dim), as out.
    bias : what is added to the scores behind the softcap, of a shape that broadcasts to (batch, heads,
        queries, keys); -inf where a key is not seen.

    Examples
    --------
    >>> one, two = np.ones((1, 1, 1, 1)), np.array([[[[0.0], [2.0]]]])
    >>> reference(one, two, two, one, 1.0, bias=np.array([0.0, -np.inf])).dv.ravel()
    array([1., 0.])
    """
    q, k, v, dout = (array.astype(np.float64) for array in (q, k, v, dout))
    kv_heads, group = k.shape[1], q.shape[1] // k.shape[1]
    keys, values = (np.repeat(array, group, axis=1) for array in (k, v))
    scores: Array = scale * (q @ keys.swapaxes(2, 3))
    slope: Array | float = scale
    if softcap:
        bounded = np.tanh(scores / softcap)
        scores, slope = softcap * bounded, scale * (1 - bounded**2)
    scores = scores + bias
    largest = scores.max(axis=3, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(largest == -np.inf, 0, largest))
    total = weights.sum(axis=3, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.log(total) + largest
    weights /= np.where(total == 0, 1, total)
    out = weights @ values
    products = dout @ values.swapaxes(2, 3)
    gradients = weights * (products - (dout * out).sum(axis=3, keepdims=True)) * slope

    def over_group(array: Array) -> Array:
        batch, _, rows, columns = array.shape
        summed: Array = array.reshape(batch, kv_heads, group, rows, columns).sum(axis=2)
        return summed

    dk, dv = (over_group(left.swapaxes(2, 3) @ right) for left, right in ((gradients, q), (weights, dout)))
    return AttentionGradients(out, lse[..., 0], gradients @ keys, dk, dv)
