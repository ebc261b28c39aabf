"""The public function that samples tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.calls.exchange import exchanging
from tilewright.errors import InvalidGenerator, InvalidLogits, InvalidScalar
from tilewright.errors.callers import named_in_errors
from tilewright.ops.rows.call import as_floats
from tilewright.ops.sampling.choose import Limits, check_row, choose
from tilewright.spec.arguments import MAX_SIZE, check_integer, real_number

if TYPE_CHECKING:
    from tilewright.calls.operands import Array
    from tilewright.typing import ArrayLike


@named_in_errors
@exchanging
def sample(
    logits: ArrayLike,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    generator: np.random.Generator | None = None,
) -> Array:
    """Choose a token for each row of logits, at random or the most likely one.

    Limits apply one after the other, each to the tokens that the one before has kept: top_k, top_p, min_p.
    Of equally likely tokens those come first that are first in the row.

    Parameters
    ----------
    logits : array_like, shape (..., tokens)
        Any float type; -inf excludes a token.
    temperature : float, optional
        Logits are divided by it; 0 for the most likely token, the first one of several.
    top_k : int, optional
        Keeps so many of the most likely tokens.
    top_p : float, optional
        Above 0 up to 1: keeps the fewest most likely tokens whose probabilities add up to this share of the
        kept tokens' sum, at least one.
    min_p : float, optional
        From 0 to 1: keeps tokens at least this many times as likely as the most likely one.
    generator : numpy.random.Generator, optional
        Gives one `random()` for each row, in their order, and none at temperature 0; by default a new one.

    Returns
    -------
    numpy.ndarray of int64, shape (...)
        Computed in float64 by NumPy, without threads. A draw u selects the first kept token, in the order of
        the row, up to which the probabilities add up to more than u.

    Raises
    ------
    InvalidLogits : a row has NaN or inf, or no token above -inf.
    InvalidScalar, InvalidSize, InvalidGenerator, UnsupportedDtype, InvalidOperand

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.sample([[0.0, 2.0, 1.0], [3.0, -1.0, 3.0]], temperature=0)
    array([1, 0])
    >>> tw.sample(np.zeros((4, 10)), top_k=3, generator=np.random.default_rng(0))
    array([1, 0, 0, 0])

    Source: Fan et al., arXiv:1805.04833 (top-k); Holtzman et al., arXiv:1904.09751 (top-p, nucleus sampling);
    Nguyen et al., arXiv:2407.01082 (min-p).
    """
    limits = Limits(
        _number(temperature, "temperature", "a number of at least 0", least=0.0),
        None if top_k is None else check_integer(top_k, "top_k", 1, MAX_SIZE, "None or a positive integer"),
        None if top_p is None else _share(top_p),
        None if min_p is None else _number(min_p, "min_p", "a number from 0 to 1", least=0.0, most=1.0),
    )
    if generator is not None and not isinstance(generator, np.random.Generator):
        raise InvalidGenerator(found=type(generator).__name__)
    array, _ = as_floats(logits, "logits")
    if not array.ndim:
        raise InvalidLogits(row=0, reason="has no axis of tokens")
    rows = array.reshape(-1, array.shape[-1]) if array.size else array[..., :0].reshape(0, 0)
    if not array.shape[-1] and np.prod(array.shape[:-1]):
        raise InvalidLogits(row=0, reason="has no token")
    for number, row in enumerate(rows):
        check_row(row, number)
    if not limits.temperature:
        found: Any = rows.argmax(axis=-1) if len(rows) else []
    else:
        source = np.random.default_rng() if generator is None else generator
        draws = source.random(len(rows))
        pairs = zip(rows, draws, strict=True)
        found = [choose(row.astype(np.float64), limits, draw) for row, draw in pairs]
    tokens: Array = np.array(found, np.int64).reshape(array.shape[:-1])
    return tokens


def _number(value: Any, name: str, required: str, *, least: float, most: float = np.inf) -> float:
    """A finite number of a range.

    Raises
    ------
    InvalidScalar
    """
    found = real_number(value, name, required)
    if not (np.isfinite(found) and least <= found <= most):
        raise InvalidScalar(name=name, found=found, required=required)
    return found


def _share(value: Any) -> float:
    """The share of a nucleus."""
    required = "a number above 0, up to 1"
    found = _number(value, "top_p", required, least=0.0, most=1.0)
    if not found:
        raise InvalidScalar(name="top_p", found=found, required=required)
    return found
