"""The node tests of ONNX's `Attention` operator, by the keywords that attention.md names; need onnx."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from support import Array

import tilewright as tw
from tilewright.typing import ScoreStageName

onnx = pytest.importorskip("onnx")

#: `qk_matmul_output_mode`, in its order.
STAGES: tuple[ScoreStageName, ...] = ("product", "softcap", "mask", "softmax")
INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")


class Node(NamedTuple):
    """One node test: attributes, inputs by name, and the outputs that it asks for (None: not asked for)."""

    attributes: dict[str, Any]
    inputs: dict[str, Array]
    expected: list[Array | None]


def as_array(tensor: Any) -> Array:
    found: Array = tensor if isinstance(tensor, np.ndarray) else onnx.numpy_helper.to_array(tensor)
    return found


def node_tests() -> dict[str, Node]:
    """All node tests whose graph is one `Attention`."""
    found = {}
    # Only the module that has them: `collect_testcases` computes those of every operator, for 10 s.
    pytest.importorskip("onnx.backend.test.case.node.attention")
    for case in onnx.backend.test.case.node._NodeTestCases:
        nodes = case.model.graph.node
        if [node.op_type for node in nodes] == ["Attention"]:
            (node,), ((inputs, outputs),) = nodes, case.data_sets
            given = [name for place, name in enumerate(INPUTS) if node.input[place : place + 1] > [""]]
            results = iter(outputs)
            found[case.name] = Node(
                {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute},
                dict(zip(given, map(as_array, inputs), strict=True)),
                [as_array(next(results)) if name else None for name in node.output],
            )
    return found


NODES = node_tests()


def heads_of(array: Array, heads: int) -> Array:
    """(batch, sequence, heads · d) as (batch, heads, sequence, d)."""
    return array.reshape(*array.shape[:2], heads, -1).swapaxes(1, 2)


def attend(node: Node) -> list[Array]:
    """Y, present_key, present_value and the scores."""
    attributes, given = node.attributes, node.inputs
    q, k, v = (given[name] for name in "QKV")
    flat = q.ndim == 3
    if flat:
        q = heads_of(q, attributes["q_num_heads"])
        k, v = (heads_of(array, attributes["kv_num_heads"]) for array in (k, v))
    keywords: dict[str, Any] = {name: attributes.get(name) for name in ("scale", "softcap")}
    keywords |= {"mask": given.get("attn_mask"), "causal": bool(attributes.get("is_causal", 0))}
    sides = (attributes.get(f"{side}_window_size", -1) for side in ("left", "right"))
    keywords["window"] = tuple(None if side < 0 else side for side in sides)
    if "nonpad_kv_seqlen" in given:
        keywords["kv_lengths"] = given["nonpad_kv_seqlen"]
    else:
        keywords["q_offset"] = 0
    if "past_key" in given:
        keywords["q_offset"] = given["past_key"].shape[2]
        k = np.concatenate([given["past_key"], k], axis=2)
        v = np.concatenate([given["past_value"], v], axis=2)
    stage = STAGES[attributes.get("qk_matmul_output_mode", 0)]
    out, scores = tw.attention(q, k, v, **keywords, return_scores=stage)
    if flat:
        out = out.swapaxes(1, 2).reshape(len(out), out.shape[2], -1)
    return [out, k, v, scores]


@pytest.mark.parametrize("name", NODES)
def test_node(name: str) -> None:
    for found, expected in zip(attend(NODES[name]), NODES[name].expected, strict=False):
        if expected is not None:
            near = 1e-5 if expected.dtype == np.float32 else 1e-2
            wide, exact = (np.asarray(array).astype(np.float64) for array in (found, expected))
            np.testing.assert_allclose(wide, exact, rtol=max(near, 1e-3), atol=near)
