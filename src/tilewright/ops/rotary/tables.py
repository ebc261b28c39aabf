"""Tables of cosines and sines for rotary embeddings, with the usual scalings to longer sequences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.promotion import narrowed
from tilewright.errors import InvalidScalar, InvalidSize
from tilewright.errors.callers import named_in_errors
from tilewright.records import dataclass
from tilewright.spec.arguments import MAX_SIZE, check_integer, check_word, real_number
from tilewright.spec.dtype import FUNCTION_DTYPES, DType, parse_dtype
from tilewright.spec.problem import check_elements
from tilewright.typing import RotaryScalingName

if TYPE_CHECKING:
    from tilewright.typing import ElementType

#: The defaults of the papers: turns of a pair within the original length beyond which YaRN leaves it alone,
#: and below which it interpolates; Llama 3.1's factors of wavelengths.
BETA_FAST, BETA_SLOW, LOW_FREQ, HIGH_FREQ = 32.0, 1.0, 1.0, 4.0


@named_in_errors
def rotary_tables(
    length: int,
    dim: int,
    base: float = 10000.0,
    *,
    scaling: RotaryScalingName | None = None,
    factor: float = 1.0,
    original_length: int | None = None,
    beta_fast: float = BETA_FAST,
    beta_slow: float = BETA_SLOW,
    low_freq_factor: float = LOW_FREQ,
    high_freq_factor: float = HIGH_FREQ,
    attention_factor: float | None = None,
    dtype: DType | ElementType = "f32",
) -> tuple[Array, Array]:
    """Cosines and sines of a rotary embedding: of position · base^(-2j/dim) for each pair j.

    Parameters
    ----------
    length : int
        Positions, from 0 on.
    dim : int
        Elements of a head that are rotated, an even number: twice the pairs.
    base : float, optional
        The base of the frequencies, also called theta.
    scaling : str, optional
        How frequencies are changed for sequences longer than in training. "linear": divided by `factor`.
        "ntk": with a larger base, such that the lowest one is divided by `factor`. "dynamic": "ntk" as far as
        `length` exceeds `original_length`. "yarn": high ones stay, low ones are divided by `factor`, with a
        ramp in between. "llama3": the same by wavelengths, as of Llama 3.1.
    factor : float, optional
        How many times as long sequences are as in training.
    original_length : int, optional
        Positions of training; required by "dynamic", "yarn" and "llama3".
    beta_fast, beta_slow : float, optional
        Of "yarn": turns within the original length between which frequencies are mixed.
    low_freq_factor, high_freq_factor : float, optional
        Of "llama3": original lengths over wavelength between which frequencies are mixed.
    attention_factor : float, optional
        Both tables are multiplied by this; of "yarn" by 0.1·ln(factor) + 1 by default, otherwise by 1.
    dtype : optional
        Element type of the tables: f32, f64, bf16 or f16.

    Returns
    -------
    cos, sin : numpy.ndarray, shape (length, dim / 2)
        Computed in float64, rounded once.

    Raises
    ------
    InvalidSize, InvalidScalar, InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> import tilewright as tw
    >>> cos, sin = tw.rotary_tables(3, 4, base=100.0)
    >>> cos.round(3)
    array([[ 1.   ,  1.   ],
           [ 0.54 ,  0.995],
           [-0.416,  0.98 ]], dtype=float32)

    Source: Su et al., arXiv:2104.09864; Chen et al., Extending Context Window of Large Language Models via
    Positional Interpolation, arXiv:2306.15595 ("linear"); Peng et al., YaRN, arXiv:2309.00071 ("ntk",
    "dynamic", "yarn"); Llama Team, arXiv:2407.21783.
    """
    rows = check_integer(length, "length", 0, MAX_SIZE)
    size = check_integer(dim, "dim", 2, MAX_SIZE)
    if size % 2:
        raise InvalidSize(name="dim", found=size, required="an even number")
    word = None if scaling is None else check_word(scaling, "scaling", get_args(RotaryScalingName))
    numbers = {
        "base": base,
        "factor": factor,
        "beta_fast": beta_fast,
        "beta_slow": beta_slow,
        "low_freq_factor": low_freq_factor,
        "high_freq_factor": high_freq_factor,
    }
    found = {name: _positive(value, name) for name, value in numbers.items()}
    if found["base"] <= 1:
        raise InvalidScalar(name="base", found=found["base"], required="a number greater than 1")
    check_elements("a table", (rows, size // 2))
    original = _original(original_length, word)
    spec = _Frequencies(size, length=rows, original_length=original, **found)
    frequencies, scale = spec.plain(), 1.0
    if word is not None:
        frequencies = _SCALINGS[word](spec)
        scale = spec.yarn_scale() if word == "yarn" else 1.0
    if attention_factor is not None:
        scale = _positive(attention_factor, "attention_factor")
    angles = np.outer(np.arange(rows, dtype=np.float64), frequencies)
    kind = parse_dtype(dtype, FUNCTION_DTYPES).numpy
    return narrowed(scale * np.cos(angles), kind), narrowed(scale * np.sin(angles), kind)


def _positive(value: Any, name: str) -> float:
    """A positive number.

    Raises
    ------
    InvalidScalar
    """
    found = real_number(value, name, "a positive number")
    if not 0 < found < math.inf:
        raise InvalidScalar(name=name, found=found, required="a positive number")
    return found


def _original(value: Any, scaling: str | None) -> int:
    """The original length; 0 where it is not given and no scaling reads it."""
    if value is None and scaling not in ("dynamic", "yarn", "llama3"):
        return 0
    required = None if value is not None else f"an integer: scaling {scaling!r} depends on it"
    return check_integer(value, "original_length", 1, MAX_SIZE, required)


@dataclass(frozen=True)
class _Frequencies:
    """What the frequencies of the pairs follow from; see `rotary_tables`."""

    dim: int
    length: int
    original_length: int
    base: float
    factor: float
    beta_fast: float
    beta_slow: float
    low_freq_factor: float
    high_freq_factor: float

    def plain(self, base: float | np.float64 | None = None) -> Array:
        """base^(-2j/dim) of each pair j."""
        return np.power(self.base if base is None else base, -np.arange(0, self.dim, 2) / self.dim)

    def linear(self) -> Array:
        """Positions as if they were closer together."""
        return self.plain() / self.factor

    def ntk(self, factor: float | None = None) -> Array:
        """A larger base: the first pair keeps its frequency, the last one's is divided by the factor."""
        if self.dim == 2:
            return self.plain()
        by = self.factor if factor is None else factor
        with np.errstate(over="ignore"):
            return self.plain(self.base * np.power(by, self.dim / (self.dim - 2)))

    def dynamic(self) -> Array:
        """NTK by how much longer than the original length the tables are, times the factor."""
        longer = max(self.length, self.original_length) / self.original_length
        return self.ntk(self.factor * longer - (self.factor - 1))

    def yarn(self) -> Array:
        """Plain frequencies of the first pairs, divided ones of the last pairs, a ramp in between."""
        first, last = (self._pair_of(turns) for turns in (self.beta_fast, self.beta_slow))
        low, high = math.floor(max(first, 0.0)), math.ceil(min(last, self.dim - 1.0))
        ramp = (np.arange(self.dim // 2) - low) / (high - low if high != low else 1e-3)
        divided = np.clip(ramp, 0.0, 1.0)
        found: Array = self.linear() * divided + self.plain() * (1 - divided)
        return found

    def _pair_of(self, turns: float) -> float:
        """The pair, as a real number, that turns so often within the original length; at most `dim`."""
        reach = math.log(self.original_length) - math.log(turns) - math.log(2 * math.pi)
        return min(self.dim * reach / (2 * math.log(self.base)), float(self.dim))

    def yarn_scale(self) -> float:
        """The factor of both tables, which sharpens the scores: YaRN, §3.4."""
        return 0.1 * math.log(self.factor) + 1.0 if self.factor > 1 else 1.0

    def llama3(self) -> Array:
        """Plain frequencies of short waves, divided ones of long waves, mixed in between."""
        plain = self.plain()
        lengths = self.original_length * plain / (2 * math.pi)  # the original length in wavelengths
        low, high = self.low_freq_factor, self.high_freq_factor
        kept = np.clip((lengths - low) / (high - low), 0.0, 1.0) if high > low else (lengths >= low) * 1.0
        found: Array = kept * plain + (1 - kept) * plain / self.factor
        return found


_SCALINGS: dict[str, Callable[[_Frequencies], Array]] = dict(
    zip(
        get_args(RotaryScalingName),
        (
            _Frequencies.linear,
            _Frequencies.ntk,
            _Frequencies.dynamic,
            _Frequencies.yarn,
            _Frequencies.llama3,
        ),
        strict=True,
    )
)
