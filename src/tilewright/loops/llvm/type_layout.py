"""Layout of LLVM types in memory: sizes, alignments, field offsets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tilewright.loops.llvm.text import split_commas
from tilewright.spec.dtype import find_llvm_type

_INTEGER = re.compile(r"i(\d+)$")
_ARRAY = re.compile(r"\[(\d+) x (.*)\]$", re.DOTALL)
_STRUCTURE = re.compile(r"(<?)\{ ?(.*?) ?\}>?$", re.DOTALL)
#: Bytes of a pointer, where sizes and addresses are understood.
POINTER_BYTES = 8
#: Integers are aligned to their size rounded up to a power of two, but never more than this.
_WIDEST_ALIGNMENT = 16

#: Pointer width that sizes and addresses are analysed for.
BITS = 64
_POINTERS = re.compile(r"(?:^|-)p0?:(\d+)")


def pointer_bits(datalayout: str) -> int:
    """Pointer width: 64 bits unless the data layout says otherwise.

    >>> pointer_bits("e-m:e-p:32:32-i64:64"), pointer_bits("e-m:e-p270:32:32-i64:64")
    (32, 64)
    """
    found = _POINTERS.search(datalayout)
    return int(found[1]) if found else BITS


class DataLayout:
    """Sizes of types on targets with pointers of 64 bits.

    Parameters
    ----------
    names : definitions of named types, as in `ParsedModule.types`.

    Source: LLVM Language Reference, "Data Layout"; structures are laid out as in C.

    Examples
    --------
    >>> layout = DataLayout({"%pair": "{ i8, double }"})
    >>> layout.size("[4 x %pair]"), layout.field("%pair", 1)
    (64, (8, 'double'))
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def size(self, kind: str) -> int | None:
        """Bytes between consecutive array elements of this type; None if unknown."""
        measured = self._measure(kind)
        return measured[0] if measured else None

    def field(self, kind: str, number: int) -> tuple[int, str] | None:
        """Offset and type of a structure field or an array element."""
        kind = self._names.get(kind, kind)
        array = _ARRAY.match(kind)
        if array:
            size = self.size(array[2])
            return None if size is None else (number * size, array[2])
        parts = self._fields(kind)
        laid = None if parts is None else self._lay(parts, packed=kind.startswith("<{"))
        return (laid[0][number], parts[number]) if laid and parts and number < len(parts) else None

    def element(self, kind: str) -> str | None:
        """Element type of an array; None for other types."""
        array = _ARRAY.match(self._names.get(kind, kind))
        return array[2] if array else None

    @staticmethod
    def _fields(kind: str) -> list[str] | None:
        found = _STRUCTURE.match(kind)
        return split_commas(found[2]) if found else None

    def _lay(self, parts: list[str], *, packed: bool) -> tuple[list[int], int, int] | None:
        """Field offsets, and size and alignment of the whole."""
        offsets, end, alignment = [], 0, 1
        for part in parts:
            measured = self._measure(part)
            if measured is None:
                return None
            size, asked = measured[0], 1 if packed else measured[1]
            end = -(-end // asked) * asked
            offsets.append(end)
            end += size
            alignment = max(alignment, asked)
        return offsets, -(-end // alignment) * alignment, alignment

    def _measure(self, kind: str) -> tuple[int, int] | None:
        kind = self._names.get(kind, kind)
        dtype = find_llvm_type(kind)
        if dtype is not None or kind == "ptr":
            size = POINTER_BYTES if dtype is None else dtype.size
            return size, size
        integer = _INTEGER.match(kind)
        if integer:
            stored = (int(integer[1]) + 7) // 8
            alignment = min(1 << (stored - 1).bit_length(), _WIDEST_ALIGNMENT)
            return (stored + alignment - 1) // alignment * alignment, alignment
        array = _ARRAY.match(kind)
        if array:
            inner = self._measure(array[2])
            return None if inner is None else (int(array[1]) * inner[0], inner[1])
        parts = self._fields(kind)
        laid = None if parts is None else self._lay(parts, packed=kind.startswith("<{"))
        return (laid[1], laid[2]) if laid else None
