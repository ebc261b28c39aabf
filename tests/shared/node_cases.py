"""The node tests of the ONNX library: one model for each form of each operator, with inputs and results."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.backend.test.case.node as node_tests
import onnx.numpy_helper
from numpy.testing import assert_allclose

from tilewright.onnx.operators.table import OPERATORS
from tilewright.onnx.source import FIRST_OPSET

#: Pooling: making these cases takes nine of twelve seconds, and their operators are not supported.
SLOW_MODULES = {"averagepool", "lppool", "maxpool"}
#: Cases of supported operators that fail, with the reason.
FAILING = {
    "batchnorm_epsilon_training_mode": "training",
    "batchnorm_example_training_mode": "training",
    "training_dropout": "training",
    "training_dropout_default": "training",
    "training_dropout_default_mask": "training",
    "training_dropout_mask": "training",
    "training_dropout_zero_ratio": "training",
    "training_dropout_zero_ratio_mask": "training",
    "cast_e8m0_FLOAT16_to_FLOAT8E8M0": "rounding modes of float8e8m0",
    "cast_e8m0_FLOAT_to_FLOAT8E8M0": "rounding modes of float8e8m0",
    "equal_string": "strings",
    "equal_string_broadcast": "strings",
    "identity_opt": "an optional value",
    "identity_sequence": "a sequence",
    "attention_4d_causal_fp16_expanded": "two elements differ by one ulp of float16",
}


class NodeCase(NamedTuple):
    """One test."""

    name: str
    model: onnx.ModelProto
    data_sets: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float

    @property
    def operators(self) -> frozenset[str]:
        """The operators of its nodes."""
        return frozenset(node.op_type for node in self.model.graph.node)

    @property
    def expanded(self) -> bool:
        """Whether it is an operator's definition in terms of others."""
        return "_expanded" in self.name


def node_cases() -> Iterator[NodeCase]:
    """The tests whose operators are all supported, of the operator sets that are read."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # what NumPy says of the cases' own arithmetic
        for module in pkgutil.iter_modules(node_tests.__path__):
            if module.name not in SLOW_MODULES:
                import_module(f"{node_tests.__name__}.{module.name}")
    for case in node_tests._NodeTestCases:
        model = case.model
        versions = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
        known = all((node.domain, node.op_type) in OPERATORS for node in model.graph.node)
        if known and all(version >= FIRST_OPSET for version in versions):
            yield NodeCase(case.name.removeprefix("test_"), model, case.data_sets, case.rtol, case.atol)


def array_of(given: Any) -> Any:
    """An array of a case, which may be a message."""
    return onnx.numpy_helper.to_array(given) if isinstance(given, onnx.TensorProto) else np.asarray(given)


def compare(found: Any, expected: Any, case: NodeCase) -> None:
    """Shapes, element types and values, within the tolerances of the library's own runner."""
    assert len(found) == len(expected)
    for one, other in zip(found, map(array_of, expected), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if one.dtype.name == "bfloat16":
            assert_allclose(one.astype("f4"), other.astype("f4"), rtol=max(case.rtol, 2**-6), atol=case.atol)
        else:
            assert_allclose(one, other, rtol=case.rtol, atol=case.atol)
