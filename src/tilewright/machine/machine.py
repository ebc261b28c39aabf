"""The record of one machine: an ISA row, an LLVM CPU, caches and cores."""

from __future__ import annotations

from dataclasses import field, fields, replace

from tilewright.errors import InvalidSize, IsaNotOnHost
from tilewright.machine.arch import triple_arch
from tilewright.machine.cache import Cache
from tilewright.machine.core_rows import find_core
from tilewright.machine.cores import Core
from tilewright.machine.feature_rules import check_calling
from tilewright.machine.isa import Isa, Lowering
from tilewright.machine.isa_rows import ISAS, usable_isas
from tilewright.machine.measure import Measurement
from tilewright.machine.tuning import Tuning
from tilewright.records import dataclass
from tilewright.spec.records import set_fields

#: Bytes between two prefetches and of aligned stack buffers: the smallest cache line of the catalogued CPUs.
CACHE_LINE = 64

#: Stands for the row of a machine's CPU until the machine is made.
_OF_CPU = Core(name="of the CPU")


def _kib(size: int) -> str:
    """A cache size in the largest unit that gives a whole number.

    >>> _kib(48 * 2**10), _kib(2**20), _kib(1000)
    ('48K', '1M', '1000')
    """
    for unit, letter in ((2**20, "M"), (2**10, "K")):
        if size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def _feature_states(features: str) -> dict[str, bool]:
    """On or off for each feature of a feature string; of several mentions the last counts."""
    return {entry[1:]: entry.startswith("+") for entry in features.split(",") if entry}


def enabled_features(features: str) -> frozenset[str]:
    """The features that a feature string turns on.

    >>> sorted(enabled_features("+avx2,+avx512f,-amx-tile,-avx512f"))
    ['avx2']
    """
    return frozenset(name for name, on in _feature_states(features).items() if on)


def limit_features(features: str, isa: Isa, arch: str) -> str:
    """A feature string that keeps LLVM from using wider vectors than a row has.

    "+avx2,+avx512f,+avx512vl,+fma" for row avx2 -> "+avx2,+fma,-avx512dq,-avx512f,-avx512vl"

    Features that only rows of `arch` with wider vectors than `isa` need are turned off. Rows of
    the same width stay: 128-bit generic vectors are lowered to Neon. The entries go to the end,
    because LLVM applies a feature string from left to right and turning a feature on also turns on
    what it implies (llvm/lib/MC/MCSubtargetInfo.cpp, ApplyFeatureFlag). Entries that are off
    already stay where they are, so a second call changes nothing.
    """
    rows = [row for row in ISAS if row.arch in ("", arch)]
    kept = {
        *isa.features,
        *(name for row in rows if row.vector_bits <= isa.vector_bits for name in row.features),
    }
    wider = {name for row in rows if row.vector_bits > isa.vector_bits for name in row.features} - kept
    entries = [entry for entry in features.split(",") if entry]
    to_end = {name for name in wider if f"-{name}" not in entries or f"+{name}" in entries}
    return ",".join(
        [entry for entry in entries if entry[1:] not in to_end] + [f"-{name}" for name in sorted(to_end)]
    )


@dataclass(frozen=True, repr=False)
class Machine:
    """The machine a kernel is generated for: all inputs of the models and the back end.

    `repr` is one line; `full_text` has every field.

    Attributes
    ----------
    name : catalogue name, or "host".
    isa : the instruction-set row.
    triple, cpu, features : arguments of LLVM's target machine; features that only rows with
        wider vectors need are turned off (`limit_features`).
    l1, l2, l3 : data caches; l3 is None if missing.
    cores : usable cores.
    page_bytes : size of an ordinary page.
    vector_bits, streaming_bits : lengths of scalable vectors, and of those of the matrix unit of Arm (SME);
        0 if unsupported or unknown.
    named : whether a user named the CPU or features of a host: LLVM is asked about them before it compiles.
    core : the micro-architecture, for the models; by default the row of `cpu`, with what was measured if no
        row describes it.
    measurement : what was measured of a core without a row. The register tile and kc, and so the order of
        sums, do not depend on it: they follow from `isa` and `core_row`.
    tunings : constants that `tilewright tune` replaced for the row of this host; none of other machines.
    """

    name: str
    isa: Isa
    triple: str
    cpu: str
    features: str
    l1: Cache
    l2: Cache
    l3: Cache | None
    cores: int
    page_bytes: int = 4096
    vector_bits: int = 0
    streaming_bits: int = 0
    named: bool = False
    core: Core = field(default=_OF_CPU, hash=False)
    measurement: Measurement | None = None
    tunings: tuple[Tuning, ...] = ()

    def __post_init__(self) -> None:
        check_calling(self.triple, self.arch, [entry for entry in self.features.split(",") if entry])
        if self.cores <= 0:
            raise InvalidSize(name="cores", found=self.cores, required="positive")
        if self.isa.scalable and not self.vector_bits:
            raise InvalidSize(name="vector_bits", found=0, required=f"known for the row {self.isa.name}")
        if self.isa.emulated:  # every instruction, on the features of the machine that emulates
            return
        set_fields(self, features=limit_features(self.features, self.isa, self.arch))
        enabled = enabled_features(self.features)
        limited = self.isa.limited(enabled, self.vector_bits, self.streaming_bits)
        row = find_core(self.cpu) if self.core == _OF_CPU else self.core
        if self.measurement is not None:
            row = Core()
        core = row if self.measurement is None else self.measurement.applied_to(row)
        set_fields(self, isa=limited.on_core(row), core=core)

    def __repr__(self) -> str:
        caches = "+".join(_kib(cache.size) for cache in (self.l1, self.l2, self.l3) if cache is not None)
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        return f"<Machine {self.name}: {self.cpu}, {self.isa.name}, {caches} caches, {cores}>"

    @property
    def full_text(self) -> str:
        """Every field of this record and its nested records, as used in keys of the object cache."""
        return ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self))

    @property
    def arch(self) -> str:
        """The architecture, in the spelling of `Isa.arch`."""
        return triple_arch(self.triple)

    @property
    def core_row(self) -> Core:
        """The core without what was measured. Tiles and kc, which decide bits, follow from it and `isa`."""
        return self.core if self.measurement is None else Core()

    @property
    def timed_isa(self) -> Isa:
        """The row with the rates of the core, measured ones too: for times, never for the order of sums."""
        return self.isa if self.measurement is None else self.isa.on_core(self.core)

    @property
    def function_bits(self) -> int:
        """The length of scalable vectors passed to LLVM for each function; 0 if rows have none."""
        return self.isa.vector_bits if self.isa.scalable and not self.isa.emulated else 0

    def emulated_on(self, host: Machine) -> Machine:
        """A machine that runs this one's kernels on another's CPU: its row, tiles and blocks.

        Examples
        --------
        >>> from tilewright.machine.catalog import find_machine
        >>> find_machine("pwr10").emulated_on(find_machine("znver5")).name
        'emulate:pwr10'
        """
        isa = replace(
            self.isa,
            emulated=True,
            fused=self.isa.fused and host.isa.fused,
            half=self.isa.half and host.isa.half,
        )
        return replace(
            host,
            name=f"emulate:{self.name}",
            isa=isa,
            l1=self.l1,
            l2=self.l2,
            l3=self.l3,
            vector_bits=self.vector_bits,
            streaming_bits=self.streaming_bits,
            core=self.core,
            measurement=self.measurement,
            tunings=(),
        )

    def tuning(self, types: str) -> Tuning | None:
        """The constants that are replaced for products of some types."""
        return next((tuning for tuning in self.tunings if tuning.types == types), None)

    def with_lowering(self, lowering: Lowering) -> Machine:
        """The same machine with another lowering of tile products."""
        return self if lowering is Lowering.TARGET else self._with_row(self.isa.generic())

    def with_isa(self, isa: Isa) -> Machine:
        """The same machine limited to another row.

        Raises
        ------
        IsaNotOnHost : if the feature string turns off a feature that the row needs.
        """
        states = _feature_states(self.features)
        missing = [feature for feature in isa.features if not states.get(feature, True)]
        if missing:
            usable = ", ".join(row.name for row in usable_isas(self.arch, enabled_features(self.features)))
            raise IsaNotOnHost(isa=isa.name, features=", ".join(missing), usable=usable)
        return self._with_row(isa)

    def _with_row(self, isa: Isa) -> Machine:
        """The same machine with another row, whose constants were not tuned."""
        return replace(self, isa=isa, tunings=self.tunings if isa == self.isa else ())


def runs_on(machine: Machine, host: Machine) -> bool:
    """Whether a host has every feature that LLVM may use for a machine, and vectors of the same length."""
    same_arch = machine.arch == host.arch
    same_vectors = machine.function_bits in (0, host.vector_bits)
    streams = machine.isa.streams
    same_vectors = same_vectors and (not streams or machine.streaming_bits == host.streaming_bits)
    return (
        same_arch and same_vectors and enabled_features(machine.features) <= enabled_features(host.features)
    )
