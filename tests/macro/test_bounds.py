"""The rules behind block sizes: their numbers give the sizes that the model chose."""

from __future__ import annotations

import pytest

from tilewright.machine.catalog import CATALOG
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import choose_blocking
from tilewright.macro.bounds import BlockBound, blocking_bounds
from tilewright.ops.attention.cut import bounds_of_attention, choose_attention
from tilewright.ops.attention.problem import Attention
from tilewright.spec.dtype import BF16, F32, F64, I8

MACHINES = [entry.machine for entry in CATALOG]


def follows(block: BlockBound) -> bool:
    """Whether the size is the largest multiple of its unit that the rules which decide allow."""
    allowed = min(rule.allows for rule in block.rules if rule.binds)
    return block.size == max(block.unit, int(allowed) // block.unit * block.unit)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_sizes_of_products_follow_from_the_rules_that_decide(machine: Machine) -> None:
    for dtype in (F32, F64, BF16, I8):
        one = machine.isa.tile(dtype)
        cut = choose_blocking(machine, one)
        found = {block.block: block for block in blocking_bounds(machine, one, cut).blocks}
        assert [found[name].size for name in ("kc", "mc", "nc")] == [cut.kc, cut.mc, cut.nc]
        assert all(follows(found[name]) for name in ("kc", "mc", "nc")), (dtype, found)
        assert found["mr × nr"].size == cut.mr * cut.nr


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_blocks_fit_their_caches(machine: Machine) -> None:
    one = machine.isa.tile(F32)
    found = blocking_bounds(machine, one, choose_blocking(machine, one))
    sizes = {"L1": machine.l1.size, "L2": machine.l2.size}
    for name in ("L2",):
        assert sum(part.nbytes for part in found.occupants if part.cache == name) <= sizes[name]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_sizes_of_attention_obey_their_rules(machine: Machine) -> None:
    for problem in (Attention(64), Attention(128), Attention(64, 32)):
        cut = choose_attention(problem, machine)
        found = bounds_of_attention(problem, machine, cut)
        blocks = {block.block: block for block in found.blocks}
        assert [blocks[name].size for name in ("b1", "b2", "b3")] == [cut.b1, cut.b2, cut.b3]
        b2 = blocks["b2"]
        assert b2.size <= max(b2.unit, min(rule.allows for rule in b2.rules))
        assert any(rule.binds for rule in b2.rules)
        l1 = sum(part.nbytes for part in found.occupants if part.cache == "L1")
        assert l1 <= machine.l1.size or cut.b3 == blocks["b3"].unit
