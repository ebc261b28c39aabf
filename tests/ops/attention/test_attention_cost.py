"""The model that chooses between the schedules of attention."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import pytest
from shares import looped

from tilewright.machine.catalog import find_machine, targets
from tilewright.ops.attention.cut import MOST_ROWS, attention_cost, decode_queries
from tilewright.ops.attention.problem import Attention

ZEN5 = find_machine("znver5")


@pytest.mark.parametrize(
    ("head", "dtype", "group", "expected"),
    [
        # Measured on Zen 5, one thread, 4096 keys: up to how many queries it is faster not to pack.
        (64, "f32", 1, range(8, 25)),
        (128, "f32", 4, range(12, 17)),
        (64, "bf16", 1, range(5, 10)),
        (128, "bf16", 4, range(8, 17)),
        (128, "f32", 16, range(4, 5)),
        (32, "f32", 1, range(2, 6)),
        (16, "f32", 1, range(2)),
    ],
)
def test_where_the_schedules_meet(head: int, dtype: str, group: int, expected: range) -> None:
    assert decode_queries(Attention(head, dtype=dtype), ZEN5, group) in expected


@pytest.mark.parametrize("target", targets())
@looped("dtype", ["f32", "f64", "bf16", "f16"])
def test_one_query_reads_keys_where_they_stand(target: str, dtype: str) -> None:
    machine = find_machine(target)
    for head in (32, 64, 128, 256):
        for group in (1, 4, 8, 2 * MOST_ROWS):
            most = decode_queries(Attention(head, dtype=dtype), machine, group)
            assert most >= 1
            assert most * group <= max(MOST_ROWS, group)


@pytest.mark.parametrize("queries", [1, 16, 1000])
def test_all_scores_at_once_never_cost_less_than_blocks(queries: int) -> None:
    cost = attention_cost(Attention(64), ZEN5, queries, 1)
    assert cost.unfused > cost.blocks


def test_every_row_costs_more() -> None:
    costs = [attention_cost(Attention(64), ZEN5, queries, 2) for queries in range(1, 100)]
    for name in ("blocks", "decode", "unfused"):
        steps = [getattr(cost, name) for cost in costs]
        assert steps == sorted(steps)
        assert steps[0] > 0
