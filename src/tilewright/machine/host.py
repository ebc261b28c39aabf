"""Detection of this host's CPU: facts with their origins, and the machine record built from them."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypedDict

from tilewright.errors import InvalidSetting, IsaNotOnHost, shown
from tilewright.errors.callers import named_in_errors
from tilewright.machine.amx_permission import amx_permitted
from tilewright.machine.arch import find_arch, triple_arch
from tilewright.machine.core_rows import find_core, identified_core
from tilewright.machine.cores import Core, CpuIdentity
from tilewright.machine.feature_rules import check_calling, expanded
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import best_isa, find_isa, usable_isas
from tilewright.machine.machine import Machine, enabled_features
from tilewright.machine.measure import Measurement, kept_measurement
from tilewright.machine.probe import (
    DEFAULT,
    CacheFacts,
    Caches,
    Fact,
    Processor,
    Surroundings,
    default_cache,
    read_caches,
    read_identity,
    read_quota,
    this_host,
)
from tilewright.machine.tuning import Tuning, kept_tunings, tuning_path
from tilewright.records import dataclass
from tilewright.settings import MOST, MOST_NUMBER, Settings, check_positive, read_settings, variable_of
from tilewright.spec.arguments import check_text
from tilewright.store import store_for

if TYPE_CHECKING:
    from typing import Unpack

#: The name of the machine of this host.
HOST = "host"

_LLVM_FEATURES = "LLVM host features"
#: A feature with its sign.
_FEATURE = re.compile(r"[+-][\w.-]+", re.ASCII)


class Overrides(TypedDict, total=False):
    """Values a caller may override by argument; arguments win over environment variables. None: unset."""

    isa: str | None
    cpu: str | None
    features: str | None
    l1_bytes: int | None
    l2_bytes: int | None
    l3_bytes: int | None
    l1_ways: int | None
    l2_ways: int | None
    cores: int | None


@dataclass(frozen=True)
class HostFacts:
    """Everything known of this host, each value with its origin.

    Attributes
    ----------
    triple, cpu, features : arguments of LLVM's target machine.
    isa : the instruction-set row: the best usable one, or the one requested.
    l1, l2, l3 : data caches; l3 is None if missing.
    page_bytes : size of an ordinary page.
    affinity_cores : CPUs this process may run on.
    quota_cores : CPUs' worth of time its control group grants; None without a limit.
    cores : min(affinity, floor of the quota) and at least 1, or the number requested.
    vector_bits, streaming_bits : lengths of scalable and of streaming vectors; 0 if unsupported.
    identity : the CPU's own numbers; None if the system does not tell them.
    core : the row of the micro-architecture; the defaults if no row describes it.
    kind : the kind of CPU that measurements are kept for: all that figures of a core depend on.
    measurement : what was measured of a core without a row; None if nothing was, or it is not to be used.
    tunings : constants that `tilewright tune` replaced on such a CPU.
    named : whether the user specified the CPU or features.
    """

    triple: Fact[str]
    cpu: Fact[str]
    features: Fact[str]
    isa: Fact[Isa]
    l1: CacheFacts
    l2: CacheFacts
    l3: CacheFacts | None
    page_bytes: Fact[int]
    affinity_cores: Fact[int]
    quota_cores: Fact[float | None]
    cores: Fact[int]
    vector_bits: Fact[int]
    streaming_bits: Fact[int]
    identity: Fact[CpuIdentity | None]
    core: Fact[Core]
    kind: Fact[str]
    measurement: Fact[Measurement | None]
    tunings: Fact[tuple[Tuning, ...]]
    named: bool = False

    @property
    def usable_cores(self) -> int:
        """Number of threads that can run in parallel: min(affinity, floor of the quota), at least 1."""
        return _usable_cores(self.affinity_cores, self.quota_cores).value

    def machine(self) -> Machine:
        """The record that models and back end use, named "host"."""
        return Machine(
            name=HOST,
            isa=self.isa.value,
            triple=self.triple.value,
            cpu=self.cpu.value,
            features=self.features.value,
            l1=self.l1.cache(),
            l2=self.l2.cache(),
            l3=self.l3.cache() if self.l3 else None,
            cores=self.cores.value,
            page_bytes=self.page_bytes.value,
            vector_bits=self.vector_bits.value,
            streaming_bits=self.streaming_bits.value,
            named=self.named,
            core=self.core.value,
            measurement=self.measurement.value,
            tunings=self.tunings.value,
        )

    def table(self) -> tuple[tuple[str, str, str], ...]:
        """Rows of name, value and origin, for a person to read; sizes are in bytes."""
        rows: list[tuple[str, Fact[str] | Fact[int] | Fact[float | None]]] = [
            ("triple", self.triple),
            ("cpu", self.cpu),
            ("features", self.features),
            ("isa", Fact(self.isa.value.name, self.isa.origin)),
            ("core", Fact(self.core.value.name or "no row", self.core.origin)),
        ]
        for name, length in (("vector bits", self.vector_bits), ("streaming bits", self.streaming_bits)):
            if length.value:
                rows.append((name, length))
        for name, level in (("l1", self.l1), ("l2", self.l2), ("l3", self.l3)):
            if level is not None:
                rows += [
                    (f"{name} size", level.size),
                    (f"{name} ways", level.ways),
                    (f"{name} line", level.line),
                    (f"{name} shared by", level.shared_by),
                ]
        rows += [
            ("page size", self.page_bytes),
            ("cores by affinity", self.affinity_cores),
            ("cores by quota", self.quota_cores),
            ("cores", self.cores),
        ]
        return tuple((name, str(fact.value), fact.origin) for name, fact in rows)


@dataclass(frozen=True)
class _Wishes:
    """Values the user fixed, by argument or by setting, with the origin of each."""

    settings: Settings
    overrides: Overrides

    def __post_init__(self) -> None:
        unknown = self.overrides.keys() - Overrides.__annotations__.keys()
        if unknown:
            raise TypeError(f"unknown overrides: {', '.join(sorted(unknown))}")

    def _origin(self, field: str) -> str:
        return "argument" if self.overrides.get(field) is not None else variable_of(field)

    def text(self, field: str) -> Fact[str] | None:
        """The requested text, or None."""
        value = self.overrides.get(field)
        value = getattr(self.settings, field) if value is None else value
        return None if value is None else Fact(str(value), self._origin(field))

    def number(self, field: str) -> Fact[int] | None:
        """The requested positive number, or None."""
        value = self.overrides.get(field)
        if value is not None:
            return Fact(check_positive(field, value, MOST.get(field, MOST_NUMBER)), "argument")
        value = getattr(self.settings, field)
        return None if value is None else Fact(value, self._origin(field))

    def quota(self) -> Fact[float | None] | None:
        """The CPU quota that overrides the control group's, or None."""
        value = self.settings.cpu_quota
        return None if value is None else Fact(value, variable_of("cpu_quota"))


def detect_host(
    settings: Settings | None = None,
    *,
    surroundings: Surroundings | None = None,
    **overrides: Unpack[Overrides],
) -> HostFacts:
    """Describe this CPU.

    Parameters
    ----------
    settings : the environment's wishes; read now by default.
    surroundings : where to look; this host by default.
    **overrides : the fields of `Overrides`; they win over `settings`. Sizes in bytes.

    Raises
    ------
    UnknownIsa : if the row asked for does not exist.
    IsaNotOnHost : if this CPU lacks what the row needs.
    InvalidSetting : if a size or a count is not positive, or a feature is turned on that the CPU lacks.
    FeatureNeeded : if a feature is turned off that calls need.

    Examples
    --------
    >>> detect_host(cores=2).cores
    Fact(value=2, origin='argument')
    """
    wishes = _Wishes(read_settings() if settings is None else settings, overrides)
    place = this_host() if surroundings is None else surroundings
    processor = place.processor()
    features = _features(processor, wishes.text("features"))
    caches = _caches(place, wishes)
    affinity = Fact(len(place.cpus), "CPU affinity")
    quota = wishes.quota() or read_quota(place)
    identity = read_identity(place)
    cpu = wishes.text("cpu") or Fact(processor.cpu, "LLVM host CPU")
    isa = _choose_isa(processor, features, wishes.text("isa"))
    core = _choose_core(processor, identity, wishes.text("cpu"))
    kind = _kind(
        cpu.value if identity.value is None else str(identity.value), isa.value, caches, place.page_bytes
    )
    named = bool(wishes.text("cpu") or wishes.text("features"))
    return HostFacts(
        triple=Fact(processor.triple, "LLVM process triple"),
        cpu=cpu,
        features=features,
        isa=isa,
        l1=caches.l1,
        l2=caches.l2,
        l3=caches.l3,
        page_bytes=Fact(place.page_bytes, "operating system"),
        affinity_cores=affinity,
        quota_cores=quota,
        cores=wishes.number("cores") or _usable_cores(affinity, quota),
        vector_bits=Fact(processor.vector_bits, "operating system"),
        streaming_bits=Fact(processor.streaming_bits, "operating system"),
        identity=identity,
        core=core,
        kind=kind,
        measurement=_kept(core.value, kind.value, wishes.settings),
        tunings=_kept_tunings(kind.value, wishes.settings, named=named),
        named=named,
    )


def _kind(cpu: str, isa: Isa, caches: Caches, page_bytes: int) -> Fact[str]:
    """A text of everything that the figures of a core depend on."""
    levels = [level.cache() for level in (caches.l1, caches.l2, caches.l3) if level is not None]
    sizes = " ".join(f"{cache.size}/{cache.ways}/{cache.line}" for cache in levels)
    return Fact(f"{cpu}, {isa.name}, caches {sizes}, pages {page_bytes}", "the values above")


def _choose_core(
    processor: Processor, identity: Fact[CpuIdentity | None], wanted: Fact[str] | None
) -> Fact[Core]:
    """The row of the CPU that the user named, else of the CPU's own numbers, else of LLVM's name for it.

    LLVM names an x86 CPU whose numbers it does not know by its features. So its name counts there only if
    the numbers can't be read.
    """
    if wanted is not None:
        return Fact(find_core(wanted.value), wanted.origin)
    if identity.value is not None:
        row = identified_core(identity.value)
        if row is not None or find_arch(processor.triple).has_cpuid:
            return Fact(row or Core(), f"{identity.value} ({identity.origin})")
    return Fact(find_core(processor.cpu), f"LLVM's name {processor.cpu}")


def _kept(core: Core, kind: str, settings: Settings) -> Fact[Measurement | None]:
    """What was measured on such a CPU before, for a core without a row."""
    if core.name:
        return Fact(None, "the core has a row")
    if not settings.measure:
        return Fact(None, variable_of("measure"))
    found = kept_measurement(store_for(settings), kind)
    return Fact(found, "nothing kept" if found is None else "measured before, kept in the object cache")


def _kept_tunings(kind: str, settings: Settings, *, named: bool) -> Fact[tuple[Tuning, ...]]:
    """What `tilewright tune` found on such a CPU; nothing for a CPU or features that the user named."""
    path = tuning_path(settings, kind)
    if path is None or named:
        return Fact((), variable_of("tuning") if path is None else "the CPU or features are named")
    found = kept_tunings(settings, kind)
    return Fact(found, str(path) if found else "nothing kept")


def _usable_cores(affinity: Fact[int], quota: Fact[float | None]) -> Fact[int]:
    """min(affinity, floor of the quota), at least 1; the origin is that of the smaller."""
    if quota.value is None or quota.value >= affinity.value:
        return affinity
    return Fact(max(1, math.floor(quota.value)), quota.origin)


def _features(processor: Processor, changes: Fact[str] | None) -> Fact[str]:
    """LLVM's feature string, sorted, followed by the requested changes ("+name" or "-name")."""
    known = dict(processor.features)
    origin = _LLVM_FEATURES
    # LLVM cannot detect features on some AArch64 systems, macOS among them.
    undetected = [name for name in find_arch(processor.triple).always if not known.get(name)]
    if undetected:
        known |= dict.fromkeys(undetected, True)
        origin = f"{_LLVM_FEATURES}; {', '.join(undetected)}: {DEFAULT}"
    if known.get("amx-tile") and not amx_permitted():
        for name in [name for name in known if name.startswith("amx")]:
            known[name] = False
        origin = f"{origin}; AMX: not permitted by the operating system"
    entries = [f"{'+' if known[name] else '-'}{name}" for name in sorted(known)]
    if changes is not None:
        wanted = [entry.strip() for entry in changes.value.split(",") if entry.strip()]
        for entry in wanted:
            _check_feature(entry, known, changes.origin)
        arch = triple_arch(processor.triple)
        check_calling(processor.triple, arch, wanted)
        wanted = list(expanded(arch, wanted))
        names = {entry[1:] for entry in wanted}
        entries = [entry for entry in entries if entry[1:] not in names] + wanted
        origin = f"{origin}; {changes.origin}"
    return Fact(",".join(entries), origin)


def _check_feature(entry: str, known: dict[str, bool], origin: str) -> None:
    """A change must have a sign and must not promise instructions that the CPU lacks."""
    if not _FEATURE.fullmatch(entry):
        required = "a comma list of LLVM features with signs, such as -avx512f"
        raise InvalidSetting(name=f"{origin} (features)", found=shown(entry), required=required)
    if entry[0] == "+" and not known.get(entry[1:], True):
        raise InvalidSetting(
            name=f"{origin} (features)", found=shown(entry), required="a feature of this CPU; remove it"
        )


def _choose_isa(processor: Processor, features: Fact[str], wanted: Fact[str] | None) -> Fact[Isa]:
    """The best usable row, or the requested row if it is usable."""
    arch, enabled = triple_arch(processor.triple), enabled_features(features.value)
    # Without their length, scalable vectors are of no use.
    usable = [isa for isa in usable_isas(arch, enabled) if processor.vector_bits or not isa.scalable]
    if wanted is None:
        return Fact(best_isa(arch, enabled, processor.vector_bits), features.origin)
    isa = find_isa(wanted.value)
    if isa not in usable:
        lacking = ", ".join(name for name in isa.features if name not in enabled)
        raise IsaNotOnHost(
            isa=isa.name,
            features=lacking if isa.arch in ("", arch) else f"{isa.arch} ({lacking})",
            usable=", ".join(row.name for row in usable),
        )
    return Fact(isa, wanted.origin)


def _caches(place: Surroundings, wishes: _Wishes) -> Caches:
    """The detected caches, with the requested sizes and associativities substituted."""
    caches = read_caches(place)
    l3_size = wishes.number("l3_bytes")
    l3 = caches.l3
    if l3_size is not None:
        l3 = replace(l3 or default_cache(3, place.cpus), size=l3_size)
    return Caches(
        replace(
            caches.l1,
            size=wishes.number("l1_bytes") or caches.l1.size,
            ways=wishes.number("l1_ways") or caches.l1.ways,
        ),
        replace(
            caches.l2,
            size=wishes.number("l2_bytes") or caches.l2.size,
            ways=wishes.number("l2_ways") or caches.l2.ways,
        ),
        l3,
    )


def default_thread_count(settings: Settings, facts: HostFacts) -> int:
    """Default number of threads of a call.

    The least of the cores by affinity, the floor of the control group's CPU quota, the cores asked
    for, OMP_NUM_THREADS and TILEWRIGHT_NUM_THREADS; at least 1.

    Examples
    --------
    >>> default_thread_count(Settings(num_threads=1), detect_host(Settings()))
    1
    """
    bounds = (facts.usable_cores, facts.cores.value, settings.omp_num_threads, settings.num_threads)
    return min(bound for bound in bounds if bound is not None)


@cache
def host_facts(settings: Settings) -> HostFacts:
    """`detect_host` of some settings, once."""
    return detect_host(settings)


@cache
def _host_machine(settings: Settings) -> Machine:
    return host_facts(settings).machine()


def host_machine(settings: Settings | None = None) -> Machine:
    """The machine of this host; detected once for each different `settings`.

    Parameters
    ----------
    settings : the environment's wishes; read now by default.

    Raises
    ------
    UnknownIsa, IsaNotOnHost, InvalidSetting : as `detect_host`.

    Examples
    --------
    >>> host_machine().name
    'host'
    """
    return _host_machine(read_settings() if settings is None else settings)


@named_in_errors
def machine(
    isa: str | None = None,
    *,
    l1_bytes: int | None = None,
    l2_bytes: int | None = None,
    l3_bytes: int | None = None,
    cores: int | None = None,
    cpu: str | None = None,
    features: str | None = None,
) -> Machine:
    """The host as a machine to compile for, with some of its values replaced.

    Parameters
    ----------
    isa : name of an instruction-set row this CPU can run; the best one by default.
    l1_bytes, l2_bytes, l3_bytes : cache sizes in bytes that the blocking plans with.
    cores : number of cores the blocking plans with.
    cpu : LLVM name of the CPU to schedule for.
    features : LLVM features to change, such as "-avx512f".

    Arguments win over the TILEWRIGHT_* environment variables, which win over what was detected.

    Raises
    ------
    UnknownIsa : if the row does not exist.
    IsaNotOnHost : if this CPU lacks what the row needs.
    InvalidSetting : if a size or a count is not positive, or a feature is turned on that the CPU lacks.
    FeatureNeeded : if a feature is turned off that calls need.

    Examples
    --------
    >>> machine("generic128", l2_bytes=2**20).l2.size
    1048576
    """
    words = (("isa", isa), ("cpu", cpu), ("features", features))
    isa, cpu, features = (None if word is None else check_text(word, name) for name, word in words)
    overrides = Overrides(
        isa=isa,
        cpu=cpu,
        features=features,
        l1_bytes=l1_bytes,
        l2_bytes=l2_bytes,
        l3_bytes=l3_bytes,
        cores=cores,
    )
    if all(value is None for value in overrides.values()):
        return host_machine()
    return detect_host(**overrides).machine()
