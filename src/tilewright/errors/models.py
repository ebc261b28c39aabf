"""Errors of model files: reading them, and what they need that graphs do not have."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


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
    nodes : records with `op_type`, `domain`, `name`, `reason` and `needs`, the inputs whose values must be
        known when the model is loaded.
    """

    message = "{model} cannot be imported: {listed}"


class LoadArgument(TilewrightError, ValueError):
    """Shapes or constants are given for inputs that a model does not have, or do not fit them."""

    message = "{argument} for input {name}: {reason}"


class ModelDevice(TilewrightError, ValueError):
    """A model is prepared for a device that is no CPU."""

    message = "device {device!r}: models run on the CPU only"


class InferenceInput(TilewrightError, ValueError):
    """An input of a model on the command line is missing, unknown or no array."""

    message = "input {name}: {reason}"


class ModelResult(TilewrightError, ArithmeticError):
    """Two systems compute different results of one model."""

    message = (
        "output {name} differs from onnxruntime's: by up to {found:.3g} of its largest element, "
        "the bound is {bound:.3g}; nothing was timed"
    )
