"""How the elements of a packed weight are held: narrower than the product's, several depths in one word."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import InvalidChoice, InvalidGroup, shown
from tilewright.records import dataclass
from tilewright.spec.arguments import check_text
from tilewright.spec.dtype import DTYPES, F32, I32, DType

#: Depths that may share one scale: whole words of every form, whole steps of every multiply instruction, and
#: at most as many as one depth block has room for.
GROUPS = (32, 64, 128, 256, 512, 1024)

#: Bytes of one word of integers.
WORD_BYTES = 4


class Elements(Enum):
    """What a word of a packed weight holds.

    I8 and I4 stand for s · (u - z): u is unsigned, s the scale of its column and group, z the zero point,
    the middle of u's range where the weight has none of its own.
    """

    F32 = "f32"
    BF16 = "bf16"
    F16 = "f16"
    E4M3 = "f8e4m3"
    E5M2 = "f8e5m2"
    I8 = "i8"
    I4 = "i4"

    @property
    def dtype(self) -> DType:
        """The element type; of integers without a sign, the signed one of as many bits."""
        return DTYPES[self.value]

    @property
    def bits(self) -> int:
        """Of one element."""
        return self.dtype.significand if self.scaled else self.dtype.bits

    @property
    def depths(self) -> int:
        """Consecutive depths of a column in one word.

        As many as words of 32 bits hold; halves are converted side by side, one in a word.
        """
        return 1 if self is Elements.F16 else 32 // self.bits

    @property
    def word_bytes(self) -> int:
        """Of one word."""
        return self.depths * self.bits // 8

    @property
    def storage(self) -> DType:
        """The element type of the buffer: of floats their own, of integers whole words."""
        return I32 if self.scaled else self.dtype

    @property
    def unit(self) -> int:
        """Elements of the buffer in one word."""
        return self.word_bytes // self.storage.size

    @property
    def scaled(self) -> bool:
        """Whether elements are integers with a scale."""
        return self.dtype.is_integer

    @property
    def middle(self) -> int:
        """What is taken off an unsigned element that has no zero point of its own."""
        return 1 << self.bits - 1 if self.scaled else 0

    def value_type(self, activation: DType) -> DType:
        """The float type that holds every element less its zero point, for products with activations.

        Differences of bytes have 8 bits and a sign, which bfloat16 holds.

        >>> from tilewright.spec.dtype import BF16
        >>> Elements.I4.value_type(BF16).name, Elements.F16.value_type(F32).name
        ('bf16', 'f16')
        """
        return activation if self.scaled else self.dtype


#: The elements that are narrower than those of products.
NARROW = tuple(elements.value for elements in Elements if elements is not Elements.F32)
_FORM = re.compile(rf"({'|'.join(NARROW)})(?:g(\d{{1,18}}))?(z?)")


@dataclass(frozen=True)
class Weights:
    """The form of a packed weight.

    Attributes
    ----------
    elements : what words hold.
    group : depths that share a scale; 0 where each column has one.
    zeros : zero points are given, one beside each scale.

    Raises
    ------
    InvalidGroup : a group that words or multiply instructions would cut.
    InvalidChoice : float32, which panels hold as it is.

    >>> Weights(Elements.I4, 64).name
    'i4g64'
    """

    elements: Elements
    group: int = 0
    zeros: bool = False

    def __post_init__(self) -> None:
        assert self.elements.scaled or not self.zeros
        if self.elements is Elements.F32:
            raise InvalidChoice(name="elements of a weight", found="f32", allowed=", ".join(NARROW))
        if self.group not in ((0, *GROUPS) if self.elements.scaled else (0,)):
            raise InvalidGroup(group=self.group, allowed=", ".join(map(str, GROUPS)))

    @property
    def name(self) -> str:
        """As kernel names spell it."""
        group = f"g{self.group}" if self.group else ""
        return f"{self.elements.value}{group}{'z' * self.zeros}"

    @classmethod
    def parse(cls, name: str) -> Weights:
        """The form of a name.

        Raises
        ------
        InvalidChoice, InvalidGroup

        >>> Weights.parse("i4g64z")
        Weights(elements=<Elements.I4: 'i4'>, group=64, zeros=True)
        """
        found = _FORM.fullmatch(check_text(name, "form of a weight"))
        if found is None or (found[3] and not Elements(found[1]).scaled):
            allowed = f"{', '.join(NARROW[:-1])} or i4g64z"
            raise InvalidChoice(name="form of a weight", found=shown(name), allowed=allowed)
        return cls(Elements(found[1]), int(found[2] or 0), bool(found[3]))

    @property
    def vectors(self) -> tuple[str, ...]:
        """The arrays beside the words, by name."""
        return ("scales", *(("zeros",) if self.zeros else ())) if self.elements.scaled else ()

    def groups(self, depth: int) -> int:
        """Scales of one column; the last group may be shorter."""
        return max(1, -(-depth // self.group)) if self.group else 1

    def words(self, depth: int) -> int:
        """Words of one column."""
        return -(-depth // self.elements.depths)

    def column_bytes(self, depth: int) -> int:
        """Bytes of one column: its words, scales and zero points."""
        vectors = len(self.vectors) * self.groups(depth) * F32.size
        return self.words(depth) * self.elements.word_bytes + vectors

    def unpacked(self, words: NDArray[Any], depth: int) -> NDArray[Any]:
        """The unsigned integers in words of shape (..., w): (..., depth).

        >>> Weights(Elements.I4).unpacked(np.array([[0x87654321]], np.uint32), 3)
        array([[1., 2., 3.]], dtype=float32)
        """
        elements = self.elements
        raw = words.astype(np.uint32)[..., None]
        places = np.arange(elements.depths, dtype=np.uint32) * np.uint32(elements.bits)
        parts = (raw >> places) & np.uint32((1 << elements.bits) - 1)
        whole = parts.reshape(*words.shape[:-1], words.shape[-1] * elements.depths)
        return whole[..., :depth].astype(np.float32)
