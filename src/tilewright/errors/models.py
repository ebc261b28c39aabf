"""Errors about models: positions, tables and indices of language models, and model files."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class InvalidIndices(TilewrightError, TypeError):
    """An array of indices or positions is not one of integers."""

    message = "{name} has dtype {found}, must be of integers"


class IndexPastEnd(TilewrightError, IndexError):
    """An index or a position is not a row of its table."""

    message = "{name}{place} is {found}, must be at least 0 and less than {limit}, the number of rows"


class EmbeddingTable(TilewrightError, ValueError):
    """The table of an embedding is not a matrix."""

    speaker = "embedding"
    message = "table has shape {found}, must be (rows, d)"


class InvalidLogits(TilewrightError, ValueError):
    """A row of logits that is no distribution."""

    speaker = "sample"
    message = "logits: row {row} {reason}; must be finite numbers, or -inf for tokens that are excluded"


class InvalidGenerator(TilewrightError, TypeError):
    """The source of random numbers is not one of NumPy's generators."""

    speaker = "sample"
    message = "generator is {found}, must be a numpy.random.Generator; make one by numpy.random.default_rng"


class RotaryAxes(TilewrightError, ValueError):
    """The operand of a rotary embedding has too few or too many axes."""

    speaker = "rotary"
    message = "x has shape {found}; must have 2 to 4 axes, in layout {layout!r} {axes}"


class RotaryTables(TilewrightError, ValueError):
    """Tables of cosines and sines that do not fit each other or the heads."""

    speaker = "rotary"
    message = "{name} has shape {found}; must be {required}"


class RotaryPositions(TilewrightError, ValueError):
    """Positions that do not fit the sequences."""

    speaker = "rotary"
    message = "positions have shape {found}, which does not broadcast to {required}: {axes}"


class ModelNotReadable(TilewrightError, OSError):
    """A model file cannot be read."""

    message = "cannot read the model {path}: {reason}"


class InvalidModel(TilewrightError, ValueError):
    """A model is no valid ONNX model."""

    message = "{model} is no valid ONNX model: {reason}"


class ExternalData(TilewrightError, ValueError):
    """A tensor's data in another file is missing, outside of the model's folder or of another size."""

    message = "{model}: external data of tensor {name}: {reason}"


class UnsupportedModel(TilewrightError, NotImplementedError):
    """A model has nodes, inputs or operator sets that cannot be imported; all of them are listed.

    Attributes
    ----------
    nodes : records with `op_type`, `domain`, `name`, `reason`; `known`, whether there is such an operator;
        `needs`, the inputs whose values must be known when the model is loaded.
    """

    message = "{model} cannot be imported: {listed}"


class LoadArgument(TilewrightError, ValueError):
    """A model is given as neither file nor message, or shapes or constants fit none of its inputs."""

    message = "{argument}: {reason}"


class ModelDevice(TilewrightError, ValueError):
    """A model is prepared for a device that is no CPU."""

    message = "device {device!r}: models run on the CPU only"


class InferenceInput(TilewrightError, ValueError):
    """An input of a model on the command line is missing, unknown or no array."""

    message = "input {name}: {reason}"


class ModelResult(TilewrightError, ArithmeticError):
    """Two systems compute different results of one model."""

    message = (
        "output {name} differs from onnxruntime's: by up to {found} of its largest element, "
        "the bound is {bound}; nothing was timed"
    )
