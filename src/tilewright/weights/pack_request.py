"""Which tensors of a file become packed matrices, and in which precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeAlias, get_args

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.pieces import as_type
from tilewright.errors import InvalidChoice, UnsupportedArgument, shown
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.ops.quantized.public import pack, quantize_weights
from tilewright.records import dataclass
from tilewright.spec.arguments import as_flag, as_items, as_text, check_flag, check_word
from tilewright.spec.dtype import GEMM_DTYPES
from tilewright.spec.weights import Elements
from tilewright.typing import WeightForm, WeightPrecision
from tilewright.weights.tensors import unknown_tensor

#: How callers choose tensors: all weights, a pattern of names, or a function of a name.
PackChoice: TypeAlias = bool | str | Callable[[str], bool]

#: Parts of names of embeddings: tables that rows are looked up in, and that nothing multiplies.
_EMBEDDINGS = ("embed", "embd", "wte", "wpe", "shared.weight")

#: Depths that share a scale of 4-bit weights.
_GROUP = 128


@dataclass(frozen=True)
class PackRequest:
    """A choice of tensors, and the precision that they are packed in.

    Attributes
    ----------
    chosen : whether a tensor of a name is packed if it is a matrix.
    precision : the stored type if None.
    """

    chosen: Callable[[str], bool]
    precision: WeightPrecision | None = None

    @classmethod
    def parse(cls, choice: Any, precision: Any) -> PackRequest:
        """The request of the arguments `pack` and `precision`.

        Raises
        ------
        InvalidChoice, UnsupportedArgument

        >>> request = PackRequest.parse("*.weight", None)
        >>> request.chosen("h.0.attn.weight"), request.chosen("h.0.attn.bias")
        (True, False)
        """
        chosen = _chosen(choice)
        if precision is None:
            return cls(chosen)
        word = check_word(precision, "precision", get_args(WeightPrecision))
        if chosen is _nothing:
            raise UnsupportedArgument(
                name="precision", value=shown(precision), remedy="pass pack=True, or a pattern of names"
            )
        return cls(chosen, word)  # type: ignore[arg-type]

    def wants(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether a tensor becomes a packed matrix."""
        return len(shape) == 2 and check_flag(self.chosen(name), "what pack returns")

    def pack(self, weight: Array) -> PackedMatrix:
        """The transpose of a weight (out, in), packed."""
        matrix = weight.T
        match self.precision:
            case "i8-weights":
                return quantize_weights(matrix, bits=8)
            case "i4-weights":
                return quantize_weights(matrix, bits=4, group=_GROUP, symmetric=False)
            case "bf16":
                return pack(matrix, form="bf16")
            case "f32":
                return pack(as_type(matrix, np.float32))
            case None:
                return _as_stored(matrix)


def _as_stored(matrix: Array) -> PackedMatrix:
    """Narrow floats stay as narrow; other types that no product has become float32."""
    for form in get_args(WeightForm):
        if matrix.dtype == Elements(form).dtype.numpy:
            return pack(matrix, form=form)
    known = any(matrix.dtype == dtype.numpy for dtype in GEMM_DTYPES)
    return pack(matrix if known else as_type(matrix, np.float32))


def _nothing(name: str) -> bool:  # noqa: ARG001
    return False


def _weights(name: str) -> bool:
    """Whether a name is of a weight that is multiplied."""
    return name.endswith("weight") and not any(part in name.lower() for part in _EMBEDDINGS)


def _chosen(choice: Any) -> Callable[[str], bool]:
    flag, pattern = as_flag(choice), as_text(choice)
    if flag is not None:
        return _weights if flag else _nothing
    if pattern is not None:
        return lambda name: fnmatchcase(name, pattern)
    if callable(choice):
        return choice  # type: ignore[no-any-return]
    allowed = "True, False, a pattern such as '*.weight', or a function of a name"
    raise InvalidChoice(name="pack", found=shown(choice), allowed=allowed)


def name_patterns(names: Any) -> tuple[str, ...] | None:
    """The patterns of the argument `names`: None, one pattern, or a sequence of them.

    Raises
    ------
    InvalidChoice
    """
    if names is None:
        return None
    text = as_text(names)
    items = (text,) if text is not None else as_items(names)
    found = [as_text(item) for item in items or ()]
    if items is None or None in found:
        allowed = "None, a name or pattern such as 'model.layers.0.*', or a sequence of them"
        raise InvalidChoice(name="names", found=shown(names), allowed=allowed)
    return tuple(pattern for pattern in found if pattern is not None)


def matching(patterns: tuple[str, ...], names: Any) -> dict[str, list[str]]:
    """The names that each pattern matches; a name that is its own pattern matches itself only.

    >>> matching(("a.*", "b"), ["a.x", "a.y", "b", "bb"])
    {'a.*': ['a.x', 'a.y'], 'b': ['b']}
    """
    return {
        pattern: [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        for pattern in patterns
    }


def selected_names(path: str, patterns: tuple[str, ...], known: Mapping[str, Any]) -> list[str]:
    """The names of a file that match any pattern.

    Raises
    ------
    UnknownTensor : a pattern matches nothing.
    """
    found = matching(patterns, known)
    for pattern, names in found.items():
        if not names:
            raise unknown_tensor(path, pattern, known)
    return list(dict.fromkeys(name for names in found.values() for name in names))
