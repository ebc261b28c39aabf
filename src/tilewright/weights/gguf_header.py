"""The header of a GGUF file: metadata, and name, shape, type and offset of each tensor.

Format: github.com/ggml-org/ggml, docs/gguf.md, versions 2 and 3. Every length and offset is compared with the
bytes that are there before anything is read or allocated.
"""

from __future__ import annotations

import struct
from dataclasses import field
from typing import Any, NoReturn

import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import WeightFileDamaged, WeightFileTruncated
from tilewright.records import dataclass

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
#: Bytes that tensors are aligned to where the metadata does not say, and at most.
_ALIGNMENT, _MOST_ALIGNMENT = 32, 1 << 20
#: Axes of a tensor at most: the format has four.
_MOST_AXES = 8
#: Arrays inside arrays at most.
_MOST_NESTED = 8

_STRING, _ARRAY, _BOOL = 8, 9, 7
#: Types of metadata that are numbers, by number.
_NUMBERS: dict[int, np.dtype[Any]] = {
    0: np.dtype("u1"),
    1: np.dtype("i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype("u1"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}


@dataclass(frozen=True)
class TensorInfo:
    """An entry of the header.

    Attributes
    ----------
    name : of the tensor.
    shape : as NumPy has it, slowest axis first.
    type : number of the element type.
    offset : of its first byte, from the start of the file.
    """

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int


@dataclass
class HeaderReader:
    """Reads a header from its first byte to its last.

    Attributes
    ----------
    path : for messages.
    data : the bytes of the file.
    at : the next byte.
    """

    path: str
    data: Array
    at: int = field(default=0)

    def read(self) -> tuple[dict[str, Any], list[TensorInfo]]:
        """Metadata and tensors.

        Raises
        ------
        WeightFileTruncated, WeightFileDamaged
        """
        start = self.data[: len(_MAGIC)].tobytes()
        if not _MAGIC.startswith(start):
            self.refuse(f"it begins with {start!r}, not with {_MAGIC!r}")
        self._take(len(_MAGIC), "the signature")
        version = self._integer("<I", "the version")
        if version not in _VERSIONS:
            big = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
            words = "it is big-endian" if big else f"its version is {version}"
            self.refuse(f"{words}; little-endian files of versions 2 and 3 are read")
        tensors, pairs = (
            self._integer("<Q", "the number of tensors"),
            self._integer("<Q", "the number of keys"),
        )
        self._room(pairs, 8 + 4 + 1, "the metadata")
        metadata = dict(self._pair() for _ in range(pairs))
        if len(metadata) != pairs:
            self.refuse("a key of the metadata is there twice")
        self._room(tensors, 8 + 4 + 4 + 8, "the list of tensors")
        entries = [self._tensor() for _ in range(tensors)]
        if len({entry.name for entry in entries}) != tensors:
            self.refuse("a tensor is there twice")
        return metadata, self._placed(entries, metadata.get("general.alignment", _ALIGNMENT))

    def refuse(self, reason: str) -> NoReturn:
        """Raises the error of a damaged file."""
        raise WeightFileDamaged(path=self.path, format="GGUF", reason=reason)

    def needs(self, end: int, what: str) -> None:
        """Refuses a file that ends before some byte."""
        if end > self.data.size:
            raise WeightFileTruncated(path=self.path, found=self.data.size, what=what, required=end)

    def _take(self, count: int, what: str) -> bytes:
        self.needs(self.at + count, what)
        found: bytes = self.data[self.at : self.at + count].tobytes()
        self.at += count
        return found

    def _room(self, count: int, least: int, what: str) -> None:
        """Refuses a count of items, each of at least so many bytes, that the rest of the file cannot hold."""
        self.needs(self.at + count * least, what)

    def _integer(self, form: str, what: str) -> int:
        (found,) = struct.unpack(form, self._take(struct.calcsize(form), what))
        return int(found)

    def _text(self, what: str) -> str:
        raw = self._take(self._integer("<Q", what), what)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            self.refuse(f"{what} is not UTF-8: {error}")

    def _pair(self) -> tuple[str, Any]:
        key = self._text("a key of the metadata")
        return key, self._value(self._integer("<I", key), f"{key:.100}", 0)

    def _value(self, kind: int, what: str, nested: int) -> Any:
        """A number, a truth or text; of an array a list, or an array of NumPy where it has numbers."""
        if kind == _STRING:
            return self._text(what)
        if kind == _ARRAY:
            inner, count = self._integer("<I", what), self._integer("<Q", what)
            if inner in _NUMBERS:
                return self._numbers(inner, count, what)
            if inner not in (_STRING, _ARRAY):
                self.refuse(f"the items of {what} are of type {inner}, which does not exist")
            if nested == _MOST_NESTED:
                self.refuse(f"{what} has more than {_MOST_NESTED} arrays inside one another")
            self._room(count, 8, what)
            return [self._value(inner, what, nested + 1) for _ in range(count)]
        if kind not in _NUMBERS:
            self.refuse(f"the value of {what} is of type {kind}, which does not exist")
        return self._numbers(kind, 1, what)[0].item()

    def _numbers(self, kind: int, count: int, what: str) -> Array:
        self._room(count, _NUMBERS[kind].itemsize, what)
        found = np.frombuffer(self._take(count * _NUMBERS[kind].itemsize, what), _NUMBERS[kind])
        if kind != _BOOL:
            return found
        if found.size and found.max() > 1:
            self.refuse(f"{what} has truths that are neither 0 nor 1")
        return found.astype(np.bool_)

    def _tensor(self) -> TensorInfo:
        name = self._text("the name of a tensor")
        axes = self._integer("<I", f"tensor {name:.100}")
        if axes > _MOST_AXES:
            self.refuse(f"tensor {name:.100} has {axes} axes, at most {_MOST_AXES} are read")
        sizes = [self._integer("<Q", f"tensor {name:.100}") for _ in range(axes)]
        kind, offset = self._integer("<I", f"tensor {name:.100}"), self._integer("<Q", f"tensor {name:.100}")
        return TensorInfo(name, tuple(reversed(sizes)), kind, offset)

    def _placed(self, entries: list[TensorInfo], alignment: Any) -> list[TensorInfo]:
        """The tensors with offsets in the file: those of the header count from the end of the header."""
        if type(alignment) is not int or not 0 < alignment <= _MOST_ALIGNMENT or alignment % 8:
            self.refuse(f"general.alignment is {alignment!r:.50}, must be a multiple of 8")
        start = -(-self.at // alignment) * alignment
        for entry in entries:
            if entry.offset % alignment:
                self.refuse(f"tensor {entry.name:.100} is at {entry.offset}, not a multiple of {alignment}")
        return [TensorInfo(e.name, e.shape, e.type, start + e.offset) for e in entries]
