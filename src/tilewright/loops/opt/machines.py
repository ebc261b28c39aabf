"""Target machine of a function in LLVM IR, from its triple and target attributes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tilewright.llvm.subtarget import cpu_features, known_features
from tilewright.loops.opt.records import ProductOptions
from tilewright.machine.cache import Cache
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.custom import TargetName
from tilewright.machine.feature_bits import DETECTIONS, Saved
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine

#: LLVM's name for the CPU of functions without a target CPU.
ANY_CPU = "generic"


def machine_of(triple: str, cpu: str, features: str, options: ProductOptions) -> Machine:
    """The machine that the products of a function are compiled for.

    Parameters
    ----------
    triple, cpu, features : of the module and the function. The CPU may be empty; features unknown to this
        LLVM, which other versions of compilers write, are ignored.

    Raises
    ------
    UnknownTriple, UnknownCpu, InvalidTarget : LLVM has no 64-bit code generator for it.

    Examples
    --------
    >>> machine_of("powerpc64le-linux-gnu", "pwr10", "", ProductOptions()).isa.name
    'vsx'

    AMX tiles are excluded: Linux terminates programs that use them without requesting permission first.

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


#: Features that Linux grants on request only, and terminates programs for otherwise: the tiles of AMX. A
#: program whose loops are replaced does not request them.
_GRANTED = frozenset(row.feature for known in DETECTIONS for row in known.rows if row.saved & Saved.TILES)


def _without_grants(machine: Machine) -> Machine:
    """The machine without features that programs must request."""
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
    """The machine with known cache sizes, from this host or the catalogue entry of the same CPU."""
    known = (host_machine(), *map(find_machine, targets()))
    return next((one for one in known if (one.arch, one.cpu) == (machine.arch, machine.cpu)), None)
