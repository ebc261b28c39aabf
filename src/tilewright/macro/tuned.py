"""Constants that `tilewright tune` found, in place of those that the models chose.

What a tuning names is taken only where it keeps what the models guarantee: a register tile that fits the
registers, blocks of whole tiles, scratch of bounded size. kc stays, and with it the order of every sum; so a
tuned kernel gives the bits of an untuned one.
"""

from __future__ import annotations

from dataclasses import fields, replace

from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.machine.tuning import Tuning
from tilewright.macro.blocking import Blocking, column_block, register_candidates, row_block
from tilewright.macro.cost import InPlaceLimits
from tilewright.spec.problem import ProductTypes

#: Constants of `Blocking` that decide bits, or follow from the instruction.
FIXED_BLOCKS = ("kr", "kc")
#: Constants of `InPlaceLimits` that follow from the geometry of the caches.
FIXED_LIMITS = (
    *("b_in_l1", "near", "fetched_slice", "fetched_rows", "crowded_rows", "late_slice", "late_rows"),
    *("slice_rows", "lone_columns", "seldom_columns", "spread_rows"),
    *("late_near", "idle_lanes", "late_depth", "uncopied_rows"),
    *("copied_a", "streamed_rows", "crowded_above", "crowded_streamed"),
    *("one_set", "rows_in_one_set", "few_in_one_set", "strip_slice", "half_in_one_set", "few_sets"),
    *("columns_in_place", "depths_of_strip", "tall_rows"),
)
#: What a tuning may replace.
TUNABLE_BLOCKS = tuple(field.name for field in fields(Blocking) if field.name not in FIXED_BLOCKS)
TUNABLE_LIMITS = tuple(field.name for field in fields(InPlaceLimits) if field.name not in FIXED_LIMITS)

#: Cache blocks, whose product with kc is scratch memory, are at most this many times those of the models.
MOST_GROWTH = 16


def tuned_blocking(machine: Machine, types: ProductTypes, instruction: TileFma, model: Blocking) -> Blocking:
    """The blocking of a product whose operands are not packed.

    With another register tile, the cache blocks are first those that the models choose for it.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.machine.tuning import TunedConstant
    >>> from tilewright.macro.blocking import choose_blocking
    >>> from tilewright.spec.dtype import F32
    >>> machine = find_machine("znver5")
    >>> tuned = replace(machine, tunings=(Tuning("f32", (TunedConstant("mc", 60, 120),)),))
    >>> one = machine.isa.tile(F32)
    >>> tuned_blocking(tuned, ProductTypes.parse(F32), one, choose_blocking(machine, one)).mc
    120
    """
    tuning = machine.tuning(types.name)
    if tuning is None:
        return model
    found = _with_tile(machine, instruction, model, tuning)
    blocks = {}
    for name, unit in (("mc", found.mr), ("nc", found.nr)):
        before = getattr(found, name)
        value = tuning.value(name, before)
        if value % unit == 0 and value <= MOST_GROWTH * before:
            blocks[name] = value
    return replace(found, **blocks)


def _with_tile(machine: Machine, instruction: TileFma, model: Blocking, tuning: Tuning) -> Blocking:
    """A blocking with the tuned register tile, if both of its sizes are tuned and it fits the registers."""
    mr, nr = tuning.value("mr", model.mr), tuning.value("nr", model.nr)
    if (mr, nr) == (model.mr, model.nr):
        return model
    candidates = register_candidates(machine.isa, instruction)
    tile = next((tile for tile in candidates if (tile.mr, tile.nr) == (mr, nr)), None)
    if tile is None:
        return model
    kc = model.kc
    return replace(
        model,
        mr=mr,
        nr=nr,
        mc=row_block(machine, instruction, tile, kc),
        nc=column_block(machine, instruction, tile, kc),
    )


def tuned_limits(machine: Machine, types: ProductTypes, limits: InPlaceLimits, mr: int) -> InPlaceLimits:
    """The limits of a product whose operands are not packed; strips are of whole tiles of mr rows."""
    tuning = machine.tuning(types.name)
    if tuning is None:
        return limits
    found = {name: tuning.value(name, getattr(limits, name)) for name in TUNABLE_LIMITS}
    if found["strip"] % mr or found["strip"] > MOST_GROWTH * limits.strip:
        found["strip"] = limits.strip
    return replace(limits, **found)
