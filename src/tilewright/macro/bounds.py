"""The rules that fixed each block size, with the numbers of a machine: for people who read a blocking."""

from __future__ import annotations

from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import (
    LAST_CACHE_SHARE,
    MOST_ROWS_L2,
    PANELS_L2_PART,
    ROW_TILES,
    UPDATE_SHARE,
    Blocking,
    depth_limits,
    depth_unit,
    machine_tile,
    panel_bytes,
    register_candidates,
    row_limits,
)
from tilewright.macro.cost import RegisterTile
from tilewright.records import dataclass


@dataclass(frozen=True)
class Rule:
    """One rule about a block size.

    Attributes
    ----------
    text : the inequality in symbols.
    numbers : the same with the numbers of the machine.
    allows : the size at which both sides are equal.
    binds : whether it decided the size.
    """

    text: str
    numbers: str
    allows: float
    binds: bool = False


@dataclass(frozen=True)
class BlockBound:
    """One block size and the rules that were weighed.

    Attributes
    ----------
    block, size, unit : its name, its value, and what it is a multiple of.
    meaning : what it counts, in words.
    rules : those that it obeys, in the order in which they are weighed.
    """

    block: str
    size: int
    unit: int
    meaning: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Occupant:
    """Part of a cache that one block is meant to take.

    Attributes
    ----------
    cache : L1, L2 or L3.
    what : the block in words.
    nbytes : how much it takes.
    """

    cache: str
    what: str
    nbytes: int


@dataclass(frozen=True)
class CutBounds:
    """Why a problem is cut as it is.

    Attributes
    ----------
    blocks : every block size with its rules.
    occupants : what the caches hold.
    notes : in sentences, what else decided.
    source : where the rules are from.
    """

    blocks: tuple[BlockBound, ...]
    occupants: tuple[Occupant, ...]
    notes: tuple[str, ...] = ()
    source: str = "Kuzma et al. 2023, doi:10.1002/spe.3214, §3.1 (1)-(7)"


def bound_by(rules: tuple[Rule, ...], chosen: float) -> tuple[Rule, ...]:
    """Rules of which those that allow exactly the chosen size are marked."""
    return tuple(Rule(one.text, one.numbers, one.allows, one.allows == chosen) for one in rules)


def tile_bounds(machine: Machine, instruction: TileFma, mr: int, nr: int) -> tuple[BlockBound, ...]:
    """The register tile: registers, latency, loads, and the ratio of computation to memory traffic."""
    isa = machine.isa
    tiles = register_candidates(isa, instruction)
    tile = next((one for one in tiles if (one.mr, one.nr) == (mr, nr)), None)
    if tile is None:
        return ()
    chains = isa.rate(instruction) * isa.latency(instruction)
    most = instruction.accumulators or isa.registers(instruction)
    word = "accumulators" if instruction.accumulators else "registers"
    used = tile.accumulators if instruction.accumulators else tile.registers
    best = max(one.cmr for one in tiles)
    rules = (
        Rule(f"{word} of sums, of B and of A ≤ those of the unit", f"{used} ≤ {most}", most, used == most),
        Rule(
            "independent sums ≥ multiply-adds started in a cycle · latency",
            f"{tile.accumulators} ≥ {isa.rate(instruction):g} · {isa.latency(instruction)}",
            chains,
        ),
        _load_rule(machine, instruction, tile),
        Rule(
            "where tiles of about the same ratio have them: rows ≤ ways of L1, as rows may share a set",
            f"{mr} rows, {machine.l1.ways} ways",
            machine.l1.ways,
            mr == machine.l1.ways and not instruction.is_matrix_engine,
        ),
        Rule(
            "computation to memory 2·mr·nr / (mr + nr), as large as the other rules allow",
            f"2·{mr}·{nr} / ({mr} + {nr}) = {tile.cmr:.1f}, at most {best:.1f} in these registers",
            best,
        ),
    )
    what = "rows and columns of C that stay in registers"
    return (BlockBound("mr × nr", mr * nr, instruction.m * instruction.n, f"{mr} × {nr}: {what}", rules),)


def _load_rule(machine: Machine, instruction: TileFma, tile: RegisterTile) -> Rule:
    """Loads of one depth take no longer than its multiply-adds."""
    isa = machine.isa
    loads = tile.loads_per_depth / isa.loads_per_cycle
    fmas = tile.accumulators / isa.rate(instruction)
    return Rule(
        "cycles of the loads of a depth ≤ cycles of its multiply-adds",
        f"{tile.loads_per_depth} / {isa.loads_per_cycle:g} = {loads:.3g} ≤ "
        f"{tile.accumulators} / {isa.rate(instruction):g} = {fmas:.3g}",
        fmas,
    )


def blocking_bounds(machine: Machine, instruction: TileFma, cut: Blocking, rows: int = 1) -> CutBounds:
    """The rules behind the blocking of a product.

    Parameters
    ----------
    rows : how many times the rows of the usual block mc has; see `prepacked`.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.macro.blocking import choose_blocking
    >>> from tilewright.spec.dtype import F32
    >>> machine = find_machine("znver5")
    >>> one = machine.isa.tile(F32)
    >>> found = blocking_bounds(machine, one, choose_blocking(machine, one))
    >>> [(block.block, block.size) for block in found.blocks]
    [('mr × nr', 384), ('kc', 1024), ('mc', 60), ('nc', 2048)]
    >>> [rule.numbers for rule in found.blocks[2].rules if rule.binds]
    ['mc ≤ (1,048,576 - 262,144) / 3 / 4,096 = 64.0']
    """
    tile = machine_tile(machine, instruction, cut.nr)
    chosen = (tile.mr, tile.nr) == (cut.mr, cut.nr)
    notes = () if chosen else (f"The register tile {cut.mr} × {cut.nr} was measured to be faster.",)
    blocks = (
        *tile_bounds(machine, instruction, cut.mr, cut.nr),
        _depth_bound(machine, instruction, tile, cut),
        _row_bound(machine, instruction, cut, rows),
        _column_bound(machine, instruction, cut),
    )
    a, b = instruction.a, instruction.b
    last = "L3" if machine.l3 is not None else "memory"
    occupants = (
        Occupant("L1", f"A: {cut.mr} rows of {cut.kc} depths", a.bytes(cut.mr * cut.kc)),
        Occupant("L2", f"A: block of {cut.mc} × {cut.kc}", a.bytes(cut.mc * cut.kc)),
        Occupant("L2", f"B: two panels of {cut.kc} × {cut.nr}", b.bytes(2 * cut.kc * cut.nr)),
        Occupant(last, f"B: packed panel of {cut.kc} × {cut.nc}", b.bytes(cut.kc * cut.nc)),
    )
    return CutBounds(blocks, occupants, notes)


def _depth_bound(machine: Machine, instruction: TileFma, tile: RegisterTile, cut: Blocking) -> BlockBound:
    limits = depth_limits(machine, instruction, tile)
    rate, cost = machine.isa.rate(instruction), machine.core.update_cycles
    b, a = instruction.b.bytes(tile.nr), instruction.a.bytes(3 * ROW_TILES * tile.mr)
    l1, l2 = machine.l1.size, machine.l2.size
    depths = f" · {instruction.k} depths of an instruction" * (instruction.k > 1)
    rules = (
        Rule("kc · nr bytes ≥ L1 / 2", f"kc ≥ {l1:,} / 2 / {b} = {limits.in_l1:,.0f}", limits.in_l1),
        Rule(
            f"updates of C ≤ {UPDATE_SHARE:.1%} of the time: kc ≥ update cycles · multiply-adds a cycle / "
            f"{UPDATE_SHARE}",
            f"kc ≥ {cost:g} · {rate:g} / {UPDATE_SHARE}{depths}, rounded up to {limits.wanted:,.0f}",
            limits.wanted,
        ),
        Rule(
            f"two panels of B: 2 · kc · nr bytes ≤ L2 / {PANELS_L2_PART}",
            f"kc ≤ {l2:,} / {PANELS_L2_PART} / {2 * b} = {limits.in_l2:,.0f}",
            limits.in_l2,
        ),
        Rule(
            f"{ROW_TILES} tiles of A in a third of the rest: {3 * ROW_TILES}·mr·kc + 2·kc·nr bytes ≤ L2",
            f"kc ≤ {l2:,} / ({a} + {2 * b}) = {limits.beside_a:,.0f}",
            limits.beside_a,
        ),
    )
    unit = depth_unit(instruction)
    meaning = "depths of a packed panel, after which sums go to C"
    return BlockBound("kc", cut.kc, unit, meaning, bound_by(rules, limits.depth))


def _row_bound(machine: Machine, instruction: TileFma, cut: Blocking, rows: int) -> BlockBound:
    panels = instruction.b.bytes(2 * cut.kc * cut.nr)
    remaining = machine.l2.size - panels
    depth_bytes = instruction.a.bits * cut.kc / 8
    tile = machine_tile(machine, instruction, cut.nr)
    limits = row_limits(machine, instruction, tile, cut.kc)
    text = "block of A in a third of L2 less two panels of B: mc · kc bytes ≤ (L2 - 2 · kc · nr) / 3"
    numbers = f"mc ≤ ({machine.l2.size:,} - {panels:,}) / 3 / {depth_bytes:,.0f} = {limits.third:,.1f}"
    more_in_time = limits.rows > limits.third
    found = [Rule(text, numbers, limits.third, binds=rows == 1 and not more_in_time)]
    if more_in_time:
        text = "as many tiles of rows as let panels of B stream from L3 in time, in most of L2"
        numbers = (
            f"mc ≤ {limits.in_time}, {MOST_ROWS_L2:g} · {remaining / depth_bytes:,.1f} = {limits.most:,.1f}"
        )
        found.append(Rule(text, numbers, limits.rows, binds=rows == 1))
    if rows > 1:
        more = f"B is packed already, so that A may take {rows} times as many rows"
        found.append(Rule(more, f"{rows} · {cut.mc // rows} = {cut.mc}", cut.mc, binds=True))
    return BlockBound("mc", cut.mc, cut.mr, "rows of the block of A that L2 keeps", tuple(found))


def _column_bound(machine: Machine, instruction: TileFma, cut: Blocking) -> BlockBound:
    given = panel_bytes(machine)
    depth_bytes = instruction.b.bits * cut.kc / 8
    if machine.l3 is None:
        text = "packed panel of B in memory, as there is no L3: kc · nc bytes ≤ the scratch that is kept"
    elif given < machine.l3.size * LAST_CACHE_SHARE:
        text = "packed panel of B in what the cores of a call take of L3: kc · nc bytes ≤ share of each core"
    else:
        text = f"packed panel of B in part of L3: kc · nc bytes ≤ {LAST_CACHE_SHARE:.0%} of L3"
    numbers = f"nc ≤ {given:,.0f} / {depth_bytes:,.0f} = {given / depth_bytes:,.0f}"
    rule = Rule(text, numbers, given / depth_bytes, binds=True)
    return BlockBound("nc", cut.nc, cut.nr, "columns of the packed panel of B", (rule,))
