"""Model files: read, parsed, and checked as far as no node is concerned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tilewright.errors import InvalidModel, LoadArgument, ModelNotReadable, UnsupportedModel, shown
from tilewright.onnx.library import onnx, protobuf
from tilewright.reading import open_regular
from tilewright.spec.arguments import check_path

#: The default domain has two names.
DEFAULT_DOMAINS = ("", "ai.onnx")
#: The first operator set whose operators are read; `onnx.version_converter` converts older models.
FIRST_OPSET = 13
#: The last operator set whose operators are known: an operator of a later one may mean something else.
LAST_OPSET = 28
#: The format's version which has operator sets.
_FIRST_IR = 3


#: What a model is read from: the path or the bytes of a file, or a parsed message.
ModelSource: TypeAlias = "str | PathLike[str] | bytes | onnx.ModelProto"


class Model(NamedTuple):
    """A parsed model.

    Attributes
    ----------
    label : what messages call it.
    folder : where its external data may lie; None if it was not read from a file.
    opsets : versions of operator sets by domain.
    """

    proto: onnx.ModelProto
    label: str
    folder: Path | None
    opsets: Mapping[str, int]


def read_model(given: ModelSource) -> Model:
    """A model from a path, bytes or a parsed message; functions of the model are inlined.

    Raises
    ------
    ModelNotReadable, InvalidModel
    UnsupportedModel : an operator set that is too old or too new.
    LoadArgument : neither of these.
    """
    proto, label, folder = _parsed(given)
    if proto.ir_version < _FIRST_IR:
        raise InvalidModel(model=label, reason=f"version {proto.ir_version} of the format")
    if not proto.HasField("graph") or not proto.graph.output:
        raise InvalidModel(model=label, reason="it has no graph with outputs")
    opsets = _opsets(proto, label)
    if not all(isinstance(name, str) for name in _names(proto.graph)):
        raise InvalidModel(model=label, reason="a name in it is no text")
    if proto.functions:
        try:
            proto = onnx.inliner.inline_local_functions(proto)
        except (RuntimeError, ValueError, protobuf.DecodeError) as error:
            raise InvalidModel(model=label, reason=f"its functions: {error}") from error
    return Model(proto, label, folder, opsets)


def _parsed(given: ModelSource) -> tuple[onnx.ModelProto, str, Path | None]:
    """The message, what errors call it, and the folder of its file."""
    if isinstance(given, onnx.ModelProto):
        return given, "the model", None
    if isinstance(given, (bytes, bytearray, memoryview)):
        return _message(bytes(given), "the model"), "the model", None
    if not isinstance(given, (str, PathLike)):
        reason = f"found {shown(given)}, must be a path, bytes or an onnx.ModelProto"
        raise LoadArgument(argument="model", reason=reason)
    label = check_path(given)
    try:
        with open_regular(label) as stream:
            raw = stream.read()
    except OSError as error:
        raise ModelNotReadable(path=label, reason=error.strerror or str(error)) from error
    return _message(raw, label), label, Path(label).parent


def _message(raw: bytes, label: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(raw)
    except (protobuf.DecodeError, RecursionError, MemoryError) as error:
        raise InvalidModel(model=label, reason="it is damaged, or no ONNX file") from error
    return proto


def _names(graph: onnx.GraphProto) -> Iterator[object]:
    """Every name of a graph; those that are no UTF-8 are bytes."""
    for one in (*graph.input, *graph.output, *graph.initializer):
        yield one.name
    for one in graph.input:
        yield from (size.dim_param for size in one.type.tensor_type.shape.dim)
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)


def _opsets(proto: onnx.ModelProto, label: str) -> dict[str, int]:
    found = {
        "" if entry.domain in DEFAULT_DOMAINS else entry.domain: entry.version for entry in proto.opset_import
    }
    if not found:
        raise InvalidModel(model=label, reason="it imports no operator set")
    last = min(LAST_OPSET, onnx.defs.onnx_opset_version())
    version = found.get("", last)
    if not FIRST_OPSET <= version <= last:
        advice = "; convert it with onnx.version_converter" if version < FIRST_OPSET else ""
        listed = f"operator set {version} is not between {FIRST_OPSET} and {last}{advice}"
        raise UnsupportedModel(model=label, listed=listed, nodes=())
    return found


def attribute_value(attribute: Any) -> Any:
    """The value of an attribute: numbers, text, sequences of these, or a message."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type == onnx.AttributeProto.STRINGS:
        return [one.decode("utf-8", "replace") for one in value]
    return value
