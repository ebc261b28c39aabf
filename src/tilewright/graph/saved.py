"""Compiled graphs in files: a checked header, weights on page borders that are mapped, nodes as JSON.

All integers are little-endian. Bytes 0..8: magic; 8..12: format version; 12..16: CRC-32 of bytes 16..40 and
of the description; 16..24: bytes of the file; 24..32, 32..40: where the description is, and its bytes. Then
each constant on a page of its own: the bytes of an array, or a packed matrix as in files of its own
(`ops/packing/file.py`); at the end the description, JSON in ASCII. No part of a file is executed or
unpickled.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tilewright.atomic import check_replaceable, replacing
from tilewright.errors import (
    GraphFileDamaged,
    GraphFileNotFound,
    GraphFileVersion,
    GraphNotWritable,
    TilewrightError,
)
from tilewright.graph.dtypes import graph_dtype
from tilewright.graph.network import Network
from tilewright.graph.nodes.base import Node
from tilewright.graph.nodes.kinds import NODE_KINDS
from tilewright.graph.nodes.sources import ConstantNode
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.ops.packing.file import read_packed, write_packed
from tilewright.ops.packing.matrix import PANEL_ALIGNMENT, PackedMatrix
from tilewright.reading import open_regular
from tilewright.spec.arguments import MAX_SIZE, check_flag, check_path

MAGIC = b"TWGRAPH\0"
#: Grows with every change that older versions of this package would misread.
VERSION = 1

_HEAD = struct.Struct("<8sII")
_PLACES = struct.Struct("<QQQ")
_START = _HEAD.size + _PLACES.size
#: No description is this long; nothing is allocated for an altered length.
_LONGEST_DESCRIPTION = 1 << 28
#: Sizes, products of named sizes and factors in a description, at most.
_MOST_TERMS = 64


# --- values as JSON -----------------------------------------------------------------------------------


def _said(value: Any) -> Any:
    """An option of a node as JSON."""
    match value:
        case Polynomial():
            return {"size": [[factor, [symbol.name for symbol in names]] for names, factor in value.terms]}
        case np.dtype():
            return {"dtype": value.name}
        case tuple():
            return [_said(one) for one in value]
        case float() if not math.isfinite(value):
            return {"float": repr(value)}
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise AssertionError(value)


def _meant(said: Any) -> Any:
    """An option of a node from JSON."""
    match said:
        case list():
            return tuple(map(_meant, said))
        case {"size": list(terms)} if len(terms) <= _MOST_TERMS:
            total = Polynomial()
            for factor, names in terms:
                if type(factor) is not int or len(names) > _MOST_TERMS or not all(map(_is_name, names)):
                    raise ValueError("a size is no sum of products")
                product = Polynomial.of(factor)
                for name in names:
                    product = product * Symbol(name)
                total = total + product
            return total
        case {"dtype": str(name)}:
            return graph_dtype(name)
        case {"float": "inf" | "-inf" | "nan" as text}:
            return float(text)
        case None | bool() | int() | float() | str():
            return said
        case _:
            raise ValueError(f"{said!r:.40} is no option")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _node_said(node: Node, number: int | None) -> dict[str, Any]:
    """A node as JSON; of a constant the number of its section."""
    options = {
        one.name: getattr(node, one.name) for one in fields(node) if one.name not in ("operands", "value")
    }
    found: dict[str, Any] = {"kind": node.name, "operands": list(node.operands)}
    found["options"] = {name: _said(value) for name, value in options.items()}
    return found if number is None else found | {"section": number}


# --- writing ------------------------------------------------------------------------------------------


def _write_section(stream: BinaryIO, value: Any) -> dict[str, Any]:
    """Writes a constant on a page of its own; returns its description."""
    stream.write(b"\0" * (-stream.tell() % PANEL_ALIGNMENT))
    first = stream.tell()
    if isinstance(value, PackedMatrix):
        return {"packed": True, "offset": first, "size": write_packed(stream, value)}
    array = np.ascontiguousarray(value)
    data = array.reshape(-1).view(np.uint8).data if array.size else b""
    stream.write(data)
    shape = list(value.shape)
    crc = zlib.crc32(data)
    return {"dtype": value.dtype.name, "shape": shape, "offset": first, "size": len(data), "crc": crc}


def save_network(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network after all passes to a temporary file next to `path`, then rename it atomically.

    Raises
    ------
    GraphNotWritable
    """
    path = check_path(path)
    try:
        target = Path(os.path.realpath(path))
        check_replaceable(target)
        with replacing(target) as stream:
            _write(stream, network)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise GraphNotWritable(path=str(path), reason=reason) from error


def _write(stream: BinaryIO, network: Network) -> None:
    """Write the bytes of a file to an empty stream."""
    stream.write(b"\0" * _START)
    sections: list[dict[str, Any]] = []
    nodes = []
    for node in network.nodes:
        constant = isinstance(node, ConstantNode)
        nodes.append(_node_said(node, len(sections) if constant else None))
        if isinstance(node, ConstantNode):
            sections.append(_write_section(stream, node.value))
    said = {"nodes": nodes, "sections": sections, "outputs": [list(one) for one in network.outputs]}
    text = json.dumps(said, separators=(",", ":"), allow_nan=False).encode("ascii")
    at = stream.tell()
    stream.write(text)
    places = _PLACES.pack(at + len(text), at, len(text))
    crc = zlib.crc32(text, zlib.crc32(places))
    stream.seek(0)
    stream.write(_HEAD.pack(MAGIC, VERSION, crc) + places)


def network_bytes(network: Network) -> bytes:
    """The bytes of the file that `save_network` writes."""
    stream = io.BytesIO()
    _write(stream, network)
    return stream.getvalue()


# --- reading ------------------------------------------------------------------------------------------


def load_network(path: str | os.PathLike[str], *, mapped: bool = True, verify: bool = False) -> Network:
    """The network of a file, checked; weights of another machine's tiles are packed again.

    Raises
    ------
    GraphFileNotFound, GraphFileDamaged, GraphFileVersion
    """
    where = check_path(path)
    mapped, verify = check_flag(mapped, "mmap"), check_flag(verify, "verify")
    try:
        with open_regular(where) as stream:
            said = _description(stream, where, os.fstat(stream.fileno()).st_size)
            return _network(stream, where, said, mapped=mapped, verify=verify)
    except OSError as error:
        if isinstance(error, TilewrightError):
            raise
        raise GraphFileNotFound(path=where, reason=error.strerror or str(error)) from error


def network_of(content: bytes) -> Network:
    """The network of the bytes of a file, checked; as `load_network` reads it.

    Raises
    ------
    GraphFileDamaged, GraphFileVersion
    """
    stream, where = io.BytesIO(content), "the pickled graph"
    return _network(stream, where, _description(stream, where, len(content)), mapped=False, verify=True)


def _description(stream: BinaryIO, where: str, length: int) -> dict[str, Any]:
    """The description of a file that is whole."""
    head = stream.read(_START)
    if not MAGIC.startswith(head[: len(MAGIC)]) or not head:
        raise GraphFileDamaged(path=where, reason="it does not begin with the signature of a graph")
    if len(head) < _START:
        raise GraphFileDamaged(path=where, reason=f"it has {length} bytes")
    _, version, crc = _HEAD.unpack_from(head)
    whole, at, size = _PLACES.unpack_from(head, _HEAD.size)
    if version != VERSION:
        raise GraphFileVersion(path=where, found=version, required=VERSION)
    if length != whole:
        raise GraphFileDamaged(path=where, reason=f"it has {length} bytes, its header says {whole}")
    if size > _LONGEST_DESCRIPTION or at + size != whole:
        raise GraphFileDamaged(path=where, reason="its description is not at its end")
    stream.seek(at)
    text = stream.read(size)
    if zlib.crc32(text, zlib.crc32(head[_HEAD.size :])) != crc:
        raise GraphFileDamaged(path=where, reason="the checksum of its description differs")
    try:
        said: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GraphFileDamaged(path=where, reason=f"its description is no JSON ({error!s:.100})") from error
    return said


def _network(stream: BinaryIO, where: str, said: dict[str, Any], *, mapped: bool, verify: bool) -> Network:
    """The network that a description means; a valid checksum does not imply valid contents."""
    try:
        nodes: list[Node] = []
        for one in said["nodes"]:
            operands = tuple(map(_length, one["operands"]))
            if not all(operand < len(nodes) for operand in operands):
                raise ValueError("a node reads a later one")
            options = {name: _meant(value) for name, value in one["options"].items()}
            kind = NODE_KINDS[one["kind"]]
            if kind is ConstantNode:
                section = said["sections"][_length(one["section"])]
                options["value"] = _constant(stream, where, section, mapped=mapped, verify=verify)
            nodes.append(kind(operands, **options))
        outputs = tuple((str(name), _length(at)) for name, at in said["outputs"])
        if not outputs or any(at >= len(nodes) for _, at in outputs):
            raise ValueError("its outputs are none of its nodes")
        network = Network(tuple(nodes), outputs)
        assert network.types is not None  # infers every type, which checks every operand
    except (LookupError, ValueError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        if isinstance(error, (GraphFileDamaged, OSError)):
            raise
        reason = f"its description is not understood ({type(error).__name__}: {error!s:.200})"
        raise GraphFileDamaged(path=where, reason=reason) from error
    return network


def _length(value: object) -> int:
    """A JSON integer in the range of a length or an offset."""
    if type(value) is not int or not 0 <= value <= MAX_SIZE:
        raise ValueError(f"{value!r:.40} is no length")
    return value


def _constant(stream: BinaryIO, where: str, said: dict[str, Any], *, mapped: bool, verify: bool) -> Any:
    """The value of a constant."""
    first, size = _length(said["offset"]), _length(said["size"])
    if first % PANEL_ALIGNMENT or first + size > stream.seek(0, os.SEEK_END):
        raise ValueError("a section is not inside of the file")
    if said.get("packed"):
        return read_packed(stream, where, (first, size), mapped=mapped, verify=verify, repack=True)
    dtype, shape = graph_dtype(said["dtype"]), tuple(map(_length, said["shape"]))
    if math.prod(shape) * dtype.itemsize != size:
        raise ValueError("a section does not have the bytes of its array")
    if not size:
        return np.empty(shape, dtype)
    if mapped:
        found = np.asarray(np.memmap(stream, np.uint8, "r", first, (size,)))
    else:
        stream.seek(first)
        found = np.frombuffer(stream.read(size), np.uint8)
    if verify and zlib.crc32(found.data) != _length(said["crc"]):
        raise GraphFileDamaged(path=where, reason="the checksum of a constant differs")
    array = found.view(dtype).reshape(shape)
    array.flags.writeable = False
    return array
