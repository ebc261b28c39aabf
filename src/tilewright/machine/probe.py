"""Readers of what the operating system says about this CPU; every value keeps where it came from."""

from __future__ import annotations

import mmap
import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Generic, TypeVar

from tilewright.errors import InvalidSetting
from tilewright.machine.arch import AARCH64, find_arch
from tilewright.machine.cache import Cache
from tilewright.machine.cores import CpuIdentity
from tilewright.preparing import importing
from tilewright.records import dataclass
from tilewright.settings import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

#: Origin of a value that nothing could be read for.
DEFAULT = "default (documented)"


@dataclass(frozen=True)
class Fact(Generic[T]):
    """A value and where it came from: a file, a sysctl, LLVM, a variable, an argument or a default."""

    value: T
    origin: str


@dataclass(frozen=True)
class CacheFacts:
    """Detected facts about one cache level; the fields are those of `Cache`."""

    size: Fact[int]
    ways: Fact[int]
    line: Fact[int]
    shared_by: Fact[int]

    def cache(self) -> Cache:
        """The record the models use."""
        return Cache(self.size.value, self.ways.value, self.line.value, self.shared_by.value)


@dataclass(frozen=True)
class Caches:
    """The three levels of data cache; l3 is None if the CPU has none."""

    l1: CacheFacts
    l2: CacheFacts
    l3: CacheFacts | None


@dataclass(frozen=True)
class Processor:
    """Facts about this CPU from LLVM and the operating system.

    Attributes
    ----------
    features : each name with whether the CPU has it.
    vector_bits, streaming_bits : lengths of scalable and of streaming vectors; 0 where there are none.
    """

    triple: str
    cpu: str
    features: tuple[tuple[str, bool], ...]
    vector_bits: int = 0
    streaming_bits: int = 0


@dataclass(frozen=True)
class Surroundings:
    """Sources of facts, which tests can replace by fakes.

    Attributes
    ----------
    system : ``sys.platform``.
    root : directory used as "/".
    cpus : CPU numbers this process may run on.
    page_bytes : size of an ordinary page.
    sysctl : reads one integer by name, None where the name does not exist (macOS).
    processor : asks LLVM and the operating system; called at most once per detection.
    description : what the system says of its CPU in a line, for systems that say it nowhere else.
    """

    system: str
    root: Path
    cpus: tuple[int, ...]
    page_bytes: int
    sysctl: Callable[[str], int | None]
    processor: Callable[[], Processor]
    description: Callable[[], str] = str


def this_host() -> Surroundings:
    """The real surroundings of this process."""
    if hasattr(os, "sched_getaffinity"):
        cpus = tuple(sorted(os.sched_getaffinity(0)))
    else:
        cpus = tuple(range(os.cpu_count() or 1))
    return Surroundings(
        sys.platform, Path("/"), cpus, mmap.PAGESIZE, _read_sysctl, _ask_processor, _describe_processor
    )


def _describe_processor() -> str:
    with importing:
        import platform

    return platform.processor()


def _ask_processor() -> Processor:
    # Imported here: loading LLVM takes 20 ms, and importing this package must stay cheap.
    with importing:
        import llvmlite.binding as llvm

    try:
        detected = dict(llvm.get_host_cpu_features())
    except RuntimeError:  # raised by llvmlite if LLVM cannot detect features
        detected = {}
    triple = llvm.get_process_triple()
    arch, lengths = find_arch(triple), (0, 0)
    if not arch.has_cpuid:
        with importing:
            from tilewright.machine import system_facts as facts

        others = facts.linux_features(arch.name, facts.auxiliary_value) if sys.platform == "linux" else {}
        if arch is AARCH64:
            lengths = facts.vector_lengths(_read_sysctl)
            others |= facts.macos_features(_read_sysctl) if sys.platform == "darwin" else {}
        detected = others | detected
    return Processor(triple, llvm.get_host_cpu_name(), tuple(sorted(detected.items())), *lengths)


def _read_sysctl(name: str) -> int | None:
    """One integer through sysctlbyname(3); the kernel answers with 4 or 8 bytes."""
    with importing:
        import ctypes

    value = ctypes.c_uint64(0)
    size = ctypes.c_size_t(ctypes.sizeof(value))
    try:
        sysctlbyname = ctypes.CDLL(None).sysctlbyname
    except (AttributeError, OSError):
        return None
    status = sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0))
    return int(value.value) if status == 0 else None


# --- caches -------------------------------------------------------------------------------------

_LINE_BYTES = 64

#: What is assumed of a level that nothing is known about: sizes that no CPU with AVX2 or Neon of
#: the last ten years undercuts by much, because panels too large for a cache cost more than small ones.
_DEFAULTS = {1: (32 * 2**10, 8), 2: (512 * 2**10, 8), 3: (8 * 2**20, 16)}


def default_cache(level: int, cpus: tuple[int, ...]) -> CacheFacts:
    """The documented default of a level: 32 KiB 8-way, 512 KiB 8-way, 8 MiB 16-way shared by all.

    >>> default_cache(2, cpus=(0, 1)).size
    Fact(value=524288, origin='default (documented)')
    """
    size, ways = _DEFAULTS[level]
    shared_by = len(cpus) if level == 3 else 1
    return CacheFacts(
        Fact(size, DEFAULT), Fact(ways, DEFAULT), Fact(_LINE_BYTES, DEFAULT), Fact(shared_by, DEFAULT)
    )


def read_caches(surroundings: Surroundings) -> Caches:
    """The data caches of the first CPU this process may run on."""
    if surroundings.system.startswith("linux"):
        return _sysfs_caches(surroundings)
    if surroundings.system == "darwin":
        return _sysctl_caches(surroundings)
    l1, l2, l3 = (default_cache(level, surroundings.cpus) for level in (1, 2, 3))
    return Caches(l1, l2, l3)


def _with_defaults(found: dict[int, CacheFacts], cpus: tuple[int, ...], *, levels_known: bool) -> Caches:
    """Fills the levels not found; only with `levels_known` does a missing L3 mean that there is none."""
    l1, l2 = (found.get(level) or default_cache(level, cpus) for level in (1, 2))
    l3 = found.get(3) or (None if levels_known else default_cache(3, cpus))
    return Caches(l1, l2, l3)


def _sysfs_caches(surroundings: Surroundings) -> Caches:
    """Linux: Documentation/ABI/testing/sysfs-devices-system-cpu in its source."""
    cpus = surroundings.cpus
    directory = surroundings.root / f"sys/devices/system/cpu/cpu{min(cpus)}/cache"
    indices = sorted(directory.glob("index[0-9]*"))
    kinds = [(_read_number(index / "level"), _read_text(index / "type")) for index in indices]
    found: dict[int, CacheFacts] = {}
    for index, (level, kind) in zip(indices, kinds, strict=True):
        if level in _DEFAULTS and kind in ("Data", "Unified"):
            found.setdefault(level, _sysfs_cache(index, default_cache(level, cpus), cpus))
    levels_known = bool(kinds) and all(level and kind for level, kind in kinds)
    return _with_defaults(found, cpus, levels_known=levels_known)


def _sysfs_cache(index: Path, default: CacheFacts, cpus: tuple[int, ...]) -> CacheFacts:
    """One index directory; a file that is missing or makes no sense leaves the default."""
    shared = _parse_cpu_list(_read_text(index / "shared_cpu_list"))
    return CacheFacts(
        _fact(_read_size(index / "size"), f"sysfs {index / 'size'}", default.size),
        _fact(
            _read_number(index / "ways_of_associativity"),
            f"sysfs {index / 'ways_of_associativity'}",
            default.ways,
        ),
        _fact(
            _read_number(index / "coherency_line_size"),
            f"sysfs {index / 'coherency_line_size'}",
            default.line,
        ),
        _fact(len(shared.intersection(cpus)), f"sysfs {index / 'shared_cpu_list'}", default.shared_by),
    )


def _fact(value: int | None, origin: str, default: Fact[int]) -> Fact[int]:
    """The value if one was read and is not 0, the default otherwise."""
    return Fact(value, origin) if value else default


def _read_text(path: Path) -> str | None:
    try:
        # Not as text: that imports a codec, which a signal handler may interrupt.
        return path.read_bytes().decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _read_number(path: Path) -> int | None:
    text = _read_text(path) or ""
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else None


def _read_size(path: Path) -> int | None:
    """A sysfs size such as "48K"."""
    try:
        return parse_bytes(str(path), _read_text(path) or "")
    except InvalidSetting:
        return None


def _parse_cpu_list(text: str | None) -> frozenset[int]:
    """A kernel CPU list such as "0-3,8"; empty where it makes no sense."""
    cpus: set[int] = set()
    for part in (text or "").split(","):
        match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part.strip())
        if not match:
            return frozenset()
        cpus.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(cpus)


def _sysctl_caches(surroundings: Surroundings) -> Caches:
    """macOS: sysctl(3); perflevel0 are the performance cores, older systems have only the plain names.

    Associativity is not published there, so it stays the default.
    """
    found: dict[int, CacheFacts] = {}
    for level, key in ((1, "l1dcachesize"), (2, "l2cachesize"), (3, "l3cachesize")):
        default = default_cache(level, surroundings.cpus)
        size = _first_sysctl(surroundings, f"hw.perflevel0.{key}", f"hw.{key}")
        if size is None:
            continue
        line = _first_sysctl(surroundings, "hw.cachelinesize") or default.line
        shared_by = _first_sysctl(surroundings, f"hw.perflevel0.cpusperl{level}") or default.shared_by
        found[level] = CacheFacts(size, default.ways, line, shared_by)
    return _with_defaults(found, surroundings.cpus, levels_known=1 in found)


def _first_sysctl(surroundings: Surroundings, *names: str) -> Fact[int] | None:
    """The first of the names that exists with a positive value."""
    for name in names:
        value = surroundings.sysctl(name)
        if value is not None and value > 0:
            return Fact(value, f"sysctl {name}")
    return None


# --- the CPU's own numbers ------------------------------------------------------------------------

#: What Linux writes of each CPU into /proc/cpuinfo: vendor, family and model of x86, implementer and part of
#: Arm's MIDR, version of POWER's PVR.
_X86_LINES, _MIDR_LINES, _PVR_LINE = (
    ("vendor_id", "cpu family", "model"),
    ("CPU implementer", "CPU part"),
    "revision",
)
_PVR = re.compile(r"\(pvr ([0-9a-f]{4}) [0-9a-f]{4}\)")

_UNTOLD: Fact[CpuIdentity | None] = Fact(None, "the system does not tell")

#: Windows describes an x86 CPU so: "Intel64 Family 6 Model 151 Stepping 2, GenuineIntel".
_WINDOWS = re.compile(r"\w+ Family (\d+) Model (\d+) Stepping \d+, (\w+)", re.ASCII)


def read_identity(surroundings: Surroundings) -> Fact[CpuIdentity | None]:
    """The numbers of the first CPU this process may run on; None if the system does not tell them."""
    if surroundings.system.startswith("linux"):
        return _proc_identity(surroundings)
    if surroundings.system == "darwin":
        return _sysctl_identity(surroundings)
    match = _WINDOWS.fullmatch(surroundings.description())
    if match is None:
        return _UNTOLD
    return Fact(CpuIdentity(match[3], int(match[1]), int(match[2])), "description of Windows")


def _proc_identity(surroundings: Surroundings) -> Fact[CpuIdentity | None]:
    """Linux: the block of the CPU in /proc/cpuinfo, and the kinds of cores of hybrid parts in sysfs.

    Documentation/ABI/testing/sysfs-bus-event_source-devices: cpu_atom has the CPUs for which CPUID leaf 1AH
    says Atom, cpu_core the others; neither is there where all are alike.
    """
    path, first = surroundings.root / "proc/cpuinfo", min(surroundings.cpus)
    blocks = [_fields(block) for block in re.split(r"\n\s*\n", _read_text(path) or "")]
    block = next((one for one in blocks if one.get("processor") == str(first)), blocks[0])
    origin = f"{path}, CPU {first}"
    try:
        if block.keys() >= set(_X86_LINES):
            vendor, family, model = (block[name] for name in _X86_LINES)
            atoms = _read_text(surroundings.root / "sys/devices/cpu_atom/cpus")
            efficient = first in _parse_cpu_list(atoms)
            return Fact(CpuIdentity(vendor, int(family), int(model), efficient), origin)
        if block.keys() >= set(_MIDR_LINES):
            implementer, part = (int(block[name], 16) for name in _MIDR_LINES)
            return Fact(CpuIdentity(f"MIDR {implementer:#x}", 0, part), origin)
    except ValueError:
        return _UNTOLD
    version = _PVR.search(block.get(_PVR_LINE, ""))
    return Fact(CpuIdentity("PVR", 0, int(version[1], 16)), origin) if version else _UNTOLD


def _fields(block: str) -> dict[str, str]:
    """The lines "name : value" of a block of /proc/cpuinfo."""
    lines = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def _sysctl_identity(surroundings: Surroundings) -> Fact[CpuIdentity | None]:
    """macOS: hw.cpufamily of Apple's CPUs (mach/machine.h), CPUID's numbers of Intel's."""
    names = ("machdep.cpu.family", "machdep.cpu.model", "hw.cpufamily")
    family, model, apple = map(surroundings.sysctl, names)
    if family and model:
        return Fact(CpuIdentity("GenuineIntel", family, model), "sysctl machdep.cpu")
    return Fact(CpuIdentity("hw.cpufamily", 0, apple), "sysctl hw.cpufamily") if apple else _UNTOLD


# --- CPU quota ----------------------------------------------------------------------------------


def read_quota(surroundings: Surroundings) -> Fact[float | None]:
    """CPUs' worth of time that control groups grant per period: the least along the chain of parents.

    Linux: Documentation/admin-guide/cgroup-v2.rst (cpu.max) and Documentation/scheduler/sched-bwc.rst
    (cpu.cfs_quota_us, cpu.cfs_period_us). None where there is no limit.
    """
    quotas = [quota for quota in _quotas(surroundings) if quota.value is not None]
    return min(quotas, key=lambda quota: quota.value or 0.0, default=Fact(None, "no cgroup quota"))


def _quotas(surroundings: Surroundings) -> Iterator[Fact[float | None]]:
    if not surroundings.system.startswith("linux"):
        return
    mounts = surroundings.root / "sys/fs/cgroup"
    membership = _read_text(surroundings.root / "proc/self/cgroup") or ""
    # The mount point itself is always looked at: in a container without a cgroup namespace it is
    # the container's own group, while /proc/self/cgroup shows its path on the host.
    lines = ["0::/", "1:cpu:/", *membership.splitlines()]
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            for group in _chain(path, mounts, mounts / "unified"):
                yield _quota_v2(group)
        elif "cpu" in controllers.split(","):
            for group in _chain(path, mounts / "cpu", mounts / "cpu,cpuacct", mounts / controllers):
                yield _quota_v1(group)


def _chain(path: str, *mounts: Path) -> Iterator[Path]:
    """A control group and all its parents under each mount point; "/a/b" -> m/a/b, m/a, m."""
    group = PurePosixPath(path or "/")
    if ".." in group.parts:  # the group lies outside this cgroup namespace
        group = PurePosixPath("/")
    for mount in mounts:
        for member in (group, *group.parents):
            yield mount / member.relative_to("/")


def _quota_v2(group: Path) -> Fact[float | None]:
    path = group / "cpu.max"
    match = re.fullmatch(r"([0-9]+) ([0-9]+)", _read_text(path) or "")
    return _quota(int(match[1]) if match else None, int(match[2]) if match else None, path)


def _quota_v1(group: Path) -> Fact[float | None]:
    path = group / "cpu.cfs_quota_us"
    return _quota(_read_number(path), _read_number(group / "cpu.cfs_period_us"), path)


def _quota(quota: int | None, period: int | None, path: Path) -> Fact[float | None]:
    """Microseconds of CPU time per period of microseconds; a quota of -1 or "max" is no limit."""
    if not quota or not period or quota < 0 or period < 0:
        return Fact(None, f"cgroup {path}")
    return Fact(quota / period, f"cgroup {path}")
