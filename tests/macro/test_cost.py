"""The cost model takes its numbers from the machine's core."""

from __future__ import annotations

from dataclasses import replace

from tilewright.machine.catalog import find_machine
from tilewright.machine.cores import Core
from tilewright.macro.blocking import machine_tile
from tilewright.macro.cost import call_limits, tile_cycles
from tilewright.ops.einsum.labels import Axes, Roles
from tilewright.ops.einsum.strategies import PairCosts
from tilewright.spec.dtype import F32


def test_a_slower_call_needs_more_work() -> None:
    usual, slow = call_limits(Core()), call_limits(replace(Core(), kernel_call_cycles=1000.0))
    assert (usual.kernel, usual.exact, usual.triangle) == (128, 64, 8192)
    assert (slow.kernel, slow.exact) == (1000, 64)


def test_tiles_take_longer_where_l2_is_slow() -> None:
    machine = find_machine("znver5")
    slow = replace(machine, core=replace(Core(), l2_bytes_per_cycle=1.0))
    instruction = machine.isa.tile(F32)
    tile = machine_tile(machine, instruction)
    cycles = [tile_cycles(one, instruction, tile, 4096, masked=False) for one in (machine, slow)]
    assert cycles[1] > 2 * cycles[0]


def test_operands_are_copied_only_where_that_is_cheap() -> None:
    sizes = dict.fromkeys("bijk", 64)
    roles = Roles.of("ijb", "jkb", "bik")
    a, b = Axes.adjacent("ijb", sizes, 4), Axes.adjacent("jkb", sizes, 4)
    costs = PairCosts(4, 32.0, by_tables=False)
    expensive = costs._replace(core=replace(Core(), copy_cycles=1e6, far_copy_cycles=1e6))
    assert [one.cheapest(roles, a, b).copied for one in (costs, expensive)] == ["ab", ""]
