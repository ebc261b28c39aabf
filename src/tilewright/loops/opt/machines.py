"""The machine of a function in LLVM IR, from its triple and the attributes that name CPU and features."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tilewright.llvm.subtarget import cpu_features, known_features
from tilewright.loops.opt.records import ProductOptions
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.custom import TargetName
from tilewright.machine.feature_bits import DETECTIONS, Saved
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Cache, Machine

#: What LLVM calls the CPU of functions that name none.
ANY_CPU = "generic"


def machine_of(triple: str, cpu: str, features: str, options: ProductOptions) -> Machine:
    """What a function's products are compiled for.

    Parameters
    ----------
    triple, cpu, features : of the module, and of the function; cpu may be empty, features that this LLVM
        does not know, which compilers of other versions write, are left out.

    Raises
    ------
    UnknownTriple, UnknownCpu, InvalidTarget : LLVM has no 64-bit code for it.

    Examples
    --------
    >>> machine_of("powerpc64le-linux-gnu", "pwr10", "", ProductOptions()).isa.name
    'vsx'

    The tiles of AMX are left out: Linux ends programs that use them and have not asked for them before.

    >>> from tilewright.spec.dtype import BF16
    >>> machine_of("x86_64-linux-gnu", "sapphirerapids", "", ProductOptions()).isa.tile(BF16).instruction
    'vdpbf16ps'
    """
    machine = options.target or _machine(triple, cpu or ANY_CPU, features)
    if options.l2_bytes is not None:
        machine = replace(machine, l2=replace(machine.l2, size=options.l2_bytes))
    if options.l3_bytes is not None:
        machine = replace(machine, l3=_sized(machine.l3 or machine.l2, options.l3_bytes))
    return _without_grants(machine)


#: Features whose registers Linux gives to programs that ask for them, and ends others at their first use: the
#: tiles of AMX. A program whose loops are replaced does not know that it would have to.
_GRANTED = frozenset(row.feature for known in DETECTIONS for row in known.rows if row.saved & Saved.TILES)


def _without_grants(machine: Machine) -> Machine:
    """The machine without instructions that programs have to ask for."""
    tiles = tuple(tile for tile in machine.isa.tiles if tile.feature not in _GRANTED)
    return replace(machine, isa=replace(machine.isa, tiles=tiles))


def _sized(cache: Cache, size: int) -> Cache:
    return replace(cache, size=size, shared_by=1)


@lru_cache(maxsize=64)
def _machine(triple: str, cpu: str, features: str) -> Machine:
    known = known_features(triple) if features else frozenset()
    kept = ",".join(entry for entry in features.split(",") if entry[1:] in known)
    name = TargetName.parse(f"{triple}:{cpu}:{kept}")
    machine = name.machine(cpu_features(name.triple, name.cpu, name.features, name.questions))
    like = _with_known_caches(machine)
    return machine if like is None else replace(machine, l1=like.l1, l2=like.l2, l3=like.l3)


def _with_known_caches(machine: Machine) -> Machine | None:
    """A machine with the same CPU whose caches are known: this host, or one of the catalogue."""
    known = (host_machine(), *map(find_machine, targets()))
    return next((one for one in known if (one.arch, one.cpu) == (machine.arch, machine.cpu)), None)
