"""Packed matrices in files: a checked header, then arrays on page borders that can be mapped into memory.

All integers are little-endian. Bytes 0..8: magic; 8..12: format version; 12..16: bytes of the description;
16..24: bytes of the file; 24..28: CRC-32 of bytes 0..24 and of the description; then the description, JSON in
ASCII; zeros up to a page; then each array on a page of its own, zeros between them.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tilewright.atomic import check_replaceable, replacing
from tilewright.calls.operands import Array
from tilewright.errors import (
    ForeignPacked,
    PackedFileDamaged,
    PackedFileNotFound,
    PackedFileTruncated,
    PackedNotWritable,
    PackedVersion,
    TilewrightError,
)
from tilewright.machine.host import host_machine
from tilewright.macro.packing import PanelForm, panel_form, weight_lanes
from tilewright.ops.packing.call import repacked
from tilewright.ops.packing.matrix import PANEL_ALIGNMENT, PackedForm, PackedMatrix, aligned_empty
from tilewright.ops.packing.problem import Packing
from tilewright.reading import open_regular
from tilewright.spec.arguments import MAX_SIZE, check_flag, check_path
from tilewright.spec.dtype import BUFFER_DTYPES, DTYPES, F32, U8
from tilewright.spec.parts import Parts
from tilewright.spec.problem import Role, check_elements
from tilewright.spec.weights import WORD_BYTES, Weights

MAGIC = b"TWPACKED"
#: Grows with every change that older versions of this package would misread.
VERSION = 1

_HEAD = struct.Struct("<8sIIQ")
_CRC = struct.Struct("<I")
_START = _HEAD.size + _CRC.size

#: Bytes that the checksum of an array is computed over at a time.
_CHUNK = 1 << 24

#: No description is this long: a length beyond it is an altered one, and nothing is allocated for it.
_LONGEST_DESCRIPTION = 1 << 20


class _Entry(NamedTuple):
    """One array of a file: name, element type, shape, and location of its bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int
    crc: int


def _page(size: int) -> int:
    return -(-size // PANEL_ALIGNMENT) * PANEL_ALIGNMENT


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _checksum(array: Array) -> int:
    data, crc = _bytes_of(array), 0
    for start in range(0, len(data), _CHUNK):
        crc = zlib.crc32(data[start : start + _CHUNK], crc)
    return crc


def _description(packed: PackedMatrix, entries: list[_Entry]) -> dict[str, Any]:
    form = packed.form
    panels = form.panels
    return {
        "role": form.role.value,
        "dtype": form.dtype.name,
        "other": form.other.name,
        "row": form.row,
        "weights": form.weights.name if form.weights else "",
        "panels": {
            "storage": panels.storage.name,
            "lanes": panels.lanes,
            "kr": panels.kr,
            "unit": panels.unit,
            "parts": panels.parts.value,
        },
        "shape": list(packed.shape),
        "arrays": [entry._asdict() for entry in entries],
    }


def _encoded(packed: PackedMatrix, arrays: dict[str, Array]) -> tuple[bytes, list[_Entry]]:
    """The header of a file, padded to a page, and the offsets of its arrays.

    The description contains the offsets, which depend on its length: layout starts from a first guess, which
    grows until the description fits.
    """
    room = PANEL_ALIGNMENT
    sums = {name: _checksum(array) for name, array in arrays.items()}
    while True:
        entries, end = [], room
        for name, array in arrays.items():
            kind = next(d.name for d in DTYPES.values() if d.numpy == array.dtype)
            entries.append(_Entry(name, kind, array.shape, end, array.nbytes, sums[name]))
            end = _page(end + array.nbytes)
        text = json.dumps(_description(packed, entries), separators=(",", ":")).encode("ascii")
        if _START + len(text) <= room:
            length = max([room, *(entry.offset + entry.size for entry in entries)])
            head = _HEAD.pack(MAGIC, VERSION, len(text), length)
            crc = _CRC.pack(zlib.crc32(text, zlib.crc32(head)))
            return (head + crc + text).ljust(room, b"\0"), entries
        room += PANEL_ALIGNMENT


def save(packed: PackedMatrix, path: str | os.PathLike[str]) -> None:
    """Write a packed matrix to a temporary file next to `path`, then rename it atomically."""
    path = check_path(path)
    try:
        target = Path(os.path.realpath(path))
        check_replaceable(target)
        with replacing(target) as stream:
            write_packed(stream, packed)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise PackedNotWritable(path=str(path), reason=reason) from error


def write_packed(stream: BinaryIO, packed: PackedMatrix) -> int:
    """Write the bytes of a file where a stream is; returns their number."""
    arrays = {"panels": packed.data4d, **packed.vectors}
    head, entries = _encoded(packed, arrays)
    stream.write(head)
    at = len(head)
    for entry in entries:
        stream.write(b"\0" * (entry.offset - at))
        stream.write(_bytes_of(arrays[entry.name]))
        at = entry.offset + entry.size
    return at


def load(path: str | os.PathLike[str], *, mapped: bool, verify: bool, repack: bool) -> PackedMatrix:
    """Implementation of `PackedMatrix.load`, which documents it."""
    path = where = check_path(path)
    mapped, verify = check_flag(mapped, "mmap"), check_flag(verify, "verify")
    repack = check_flag(repack, "repack")
    try:
        with open_regular(path) as stream:
            length = os.fstat(stream.fileno()).st_size
            return read_packed(stream, where, (0, length), mapped=mapped, verify=verify, repack=repack)
    except OSError as error:
        if isinstance(error, TilewrightError):
            raise
        raise PackedFileNotFound(path=where, reason=error.strerror or str(error)) from error


def read_packed(
    stream: BinaryIO, where: str, part: tuple[int, int], *, mapped: bool, verify: bool, repack: bool
) -> PackedMatrix:
    """A packed matrix out of a part of a file.

    Parameters
    ----------
    part : its first byte, on a page, and its length.
    mapped, verify, repack : as of `PackedMatrix.load`.
    """
    first, length = part
    stream.seek(first)
    described = _read_head(stream, where, length)
    form, shape, entries = _parse(described, where, length)
    foreign = _foreign(form, where)
    if foreign is not None and not repack:
        raise foreign
    arrays = {entry.name: _array(stream, first, entry, where, mapped=mapped) for entry in entries}
    if verify:
        for entry in entries:
            if _checksum(arrays[entry.name]) != entry.crc:
                raise PackedFileDamaged(path=where, reason=f"the checksum of its {entry.name} differs")
    panels = arrays.pop("panels")
    packed = PackedMatrix(form, shape, panels, MappingProxyType(arrays))
    if foreign is None:
        return packed
    return repacked(packed)


def _read_head(stream: Any, where: str, length: int) -> bytes:
    """The description of a file whose head is whole."""
    start = stream.read(_START)
    if not MAGIC.startswith(start[: len(MAGIC)]):
        raise PackedFileDamaged(path=where, reason="it does not begin with the signature of a packed matrix")
    if len(start) < _START:
        raise PackedFileTruncated(path=where, found=length, required=f"at least {_START}")
    _, version, size, whole = _HEAD.unpack_from(start)
    (crc,) = _CRC.unpack_from(start, _HEAD.size)
    text = stream.read(min(size, _LONGEST_DESCRIPTION))
    intact = zlib.crc32(text, zlib.crc32(start[: _HEAD.size])) == crc
    if intact and version != VERSION:
        raise PackedVersion(path=where, found=version, required=VERSION)
    if not intact and length < _START + size <= _LONGEST_DESCRIPTION:
        raise PackedFileTruncated(path=where, found=length, required=f"at least {_START + size}")
    if not intact:
        raise PackedFileDamaged(path=where, reason="the checksum of its header differs")
    if length < whole:
        raise PackedFileTruncated(path=where, found=length, required=whole)
    if length > whole:
        raise PackedFileDamaged(path=where, reason=f"it has {length} bytes, its header says {whole}")
    described: bytes = text
    return described


def _integer(value: object) -> int:
    """A JSON integer in the range of a length or an offset; true and 1.0 are refused."""
    if type(value) is not int or not 0 <= value <= MAX_SIZE:
        raise ValueError(f"{value!r:.40} is no length")
    return value


def _entry(said: Any) -> _Entry:
    """Parse the entry of one array of a description."""
    name, dtype = said["name"], said["dtype"]
    shape = tuple(map(_integer, said["shape"]))
    if type(name) is not str or set(said) != set(_Entry._fields):
        raise ValueError(f"{name!r:.40} is not described as an array")
    return _Entry(name, dtype, shape, *(_integer(said[field]) for field in ("offset", "size", "crc")))


def _parse(text: bytes, where: str, length: int) -> tuple[PackedForm, tuple[int, int], list[_Entry]]:
    """Parse and validate a description; a valid checksum does not imply valid contents."""
    try:
        said = json.loads(text)
        inner = said["panels"]
        lanes, kr, unit = (_integer(inner[name]) for name in ("lanes", "kr", "unit"))
        panels = PanelForm(BUFFER_DTYPES[inner["storage"]], lanes, kr, unit, Parts(inner["parts"]))
        role = Role(said["role"])
        weights = Weights.parse(said["weights"]) if said["weights"] else None
        form = PackedForm(role, DTYPES[said["dtype"]], DTYPES[said["other"]], panels, said["row"], weights)
        rows, columns = map(_integer, said["shape"])
        entries = list(map(_entry, said["arrays"]))
        shape, beside = form.tiles_shape((rows, columns)), form.vector_shapes((rows, columns))
        for entry in entries:
            check_elements(entry.name, entry.shape)
        whole = all(
            entry.offset % PANEL_ALIGNMENT == 0
            and entry.size == int(np.prod(entry.shape, dtype=object)) * DTYPES[entry.dtype].size
            and entry.offset + entry.size <= length
            for entry in entries
        )
        first = entries[0]
        fits = (first.name, first.shape, first.dtype) == ("panels", shape, panels.storage.cell.name)
        fits &= {entry.name: entry.shape for entry in entries[1:]} == beside and len(entries) == 1 + len(
            beside
        )
        fits &= isinstance(form.row, str) and _is_whole(form)
        fits &= all(entry.dtype == F32.name for entry in entries[1:])
    except (LookupError, ValueError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        reason = f"its header is not understood ({type(error).__name__}: {error!s:.200})"
        raise PackedFileDamaged(path=where, reason=reason) from error
    if not whole or not fits:
        raise PackedFileDamaged(path=where, reason="its header describes arrays that do not fit")
    return form, (rows, columns), entries


def _is_whole(form: PackedForm) -> bool:
    """Return whether tiles hold every depth; tiles of weights must be as `quantise` makes them."""
    panels, weights = form.panels, form.weights
    if weights is None:
        return panels.unit % panels.kr == panels.kr % panels.storage.held == 0
    elements = weights.elements
    kr = WORD_BYTES if elements.scaled else elements.depths
    storage = U8 if elements.scaled else DTYPES[elements.value]
    required = PackedForm(Role.B, F32, F32, PanelForm(storage, panels.lanes, kr, kr), form.row, weights)
    return form == required


def on_this_host(packed: PackedMatrix) -> PackedMatrix:
    """The matrix itself if products of this host can read its tiles, otherwise packed again."""
    return packed if _foreign(packed.form, "memory") is None else repacked(packed)


def _foreign(form: PackedForm, where: str) -> ForeignPacked | None:
    """The error that says why this host cannot use a matrix as it is."""
    machine = host_machine()
    if not form.row:
        return None  # tiles that the caller chose
    if form.weights is not None:
        lanes = weight_lanes(machine)
        if form.panels.lanes == lanes:
            return None
        return ForeignPacked(
            packed=f"the weight in {where}",
            found=f"panels of {form.panels.lanes} columns for the row {form.row}",
            required=f"panels of {lanes}",
            row=machine.isa.name,
        )
    required = panel_form(Packing(form.role, form.dtype, form.other).types, form.role, machine)
    if required == form.panels:
        return None
    stored = form.panels
    return ForeignPacked(
        packed=f"the matrix in {where}",
        found=f"tiles {stored.lanes}x{stored.kr} of {stored.storage} for the row {form.row}",
        required=f"{required.lanes}x{required.kr} of {required.storage}",
        row=machine.isa.name,
    )


def _array(stream: Any, first: int, entry: _Entry, where: str, *, mapped: bool) -> Array:
    dtype = DTYPES[entry.dtype].numpy
    if mapped and entry.size:
        found = np.memmap(stream, dtype=np.uint8, mode="r", offset=first + entry.offset, shape=(entry.size,))
        return np.asarray(found).view(dtype).reshape(entry.shape)
    array = aligned_empty(entry.shape, dtype)
    stream.seek(first + entry.offset)
    if stream.readinto(_bytes_of(array)) != entry.size:
        raise PackedFileTruncated(path=where, found="fewer", required=entry.offset + entry.size)
    return array
