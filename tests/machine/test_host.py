"""The host: fake sysfs, sysctl and control groups read right, and wishes win over what was read."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tilewright.errors import InvalidSetting, IsaNotOnHost, UnknownIsa
from tilewright.machine.cache import Cache
from tilewright.machine.core_rows import CORES
from tilewright.machine.cores import CpuIdentity
from tilewright.machine.host import default_thread_count, detect_host, host_machine, machine
from tilewright.machine.isa_rows import AVX2, NEON
from tilewright.machine.machine import enabled_features
from tilewright.machine.probe import DEFAULT, Processor, Surroundings, read_caches, read_quota, this_host
from tilewright.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ThreeCaches = tuple[Cache, Cache, Cache | None]

KIB = 2**10
MIB = 2**20
ZEN = Processor(
    "x86_64-unknown-linux-gnu",
    "znver5",
    (
        ("amx-tile", False),
        *(
            (name, True)
            for name in ("avx", "avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "f16c", "fma")
        ),
    ),
)
OLD = Processor(
    "x86_64-unknown-linux-gnu", "nehalem", (("avx", False), ("avx2", False), ("fma", False), ("sse4.2", True))
)
MAC = Processor("arm64-apple-darwin23.0.0", "apple-m1", ())
DEFAULT_L1 = Cache(32 * KIB, ways=8, line=64)
DEFAULT_L2 = Cache(512 * KIB, ways=8, line=64)


def default_l3(cpus: int) -> Cache:
    return Cache(8 * MIB, ways=16, line=64, shared_by=cpus)


def surroundings(
    root: Path,
    *,
    system: str = "linux",
    cpus: Iterable[int] = (0, 1, 2, 3),
    processor: Processor = ZEN,
    sysctl: dict[str, int] | None = None,
) -> Surroundings:
    return Surroundings(system, root, tuple(cpus), 4096, (sysctl or {}).get, lambda: processor)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="latin-1")
    return root


def index(
    number: int,
    level: int | str,
    kind: str | None,
    *values: object,
    cpu: int = 0,
    line: str | None = "64",
) -> dict[str, str]:
    size, ways, shared = values
    base = f"sys/devices/system/cpu/cpu{cpu}/cache/index{number}"
    files = {
        "level": level,
        "type": kind,
        "size": size,
        "ways_of_associativity": ways,
        "coherency_line_size": line,
        "shared_cpu_list": shared,
    }
    return {f"{base}/{name}": str(value) for name, value in files.items() if value is not None}


L1 = index(0, 1, "Data", "48K", 12, "0")
L1_CODE = index(1, 1, "Instruction", "64K", 4, "0")
L2 = index(2, 2, "Unified", "1024K", 16, "0-1")
L3 = index(3, 3, "Unified", "32M", 16, "0-7")
ZEN_L1, ZEN_L2, ZEN_L3 = Cache(48 * KIB, 12, 64), Cache(MIB, 16, 64, 2), Cache(32 * MIB, 16, 64, 4)

SYSFS = {
    "complete": (L1 | L1_CODE | L2 | L3, (ZEN_L1, ZEN_L2, ZEN_L3)),
    "no tree": ({}, (DEFAULT_L1, DEFAULT_L2, default_l3(4))),
    "no L3": (L1 | L1_CODE | L2, (ZEN_L1, ZEN_L2, None)),
    "no L2, no L3": (L1, (ZEN_L1, DEFAULT_L2, None)),
    "only code": (L1_CODE, (DEFAULT_L1, DEFAULT_L2, None)),
    "level garbled": (
        L1 | L2 | index(3, "three", "Unified", "32M", 16, "0-7"),
        (ZEN_L1, ZEN_L2, default_l3(4)),
    ),
    "type missing": (L1 | L2 | index(3, 3, None, "32M", 16, "0-7"), (ZEN_L1, ZEN_L2, default_l3(4))),
    "size garbled": (
        index(0, 1, "Data", "big", 12, "0") | L2 | L3,
        (Cache(32 * KIB, 12, 64), ZEN_L2, ZEN_L3),
    ),
    "size missing": (
        L1 | L2 | index(3, 3, "Unified", None, 16, "0-7"),
        (ZEN_L1, ZEN_L2, Cache(8 * MIB, 16, 64, 4)),
    ),
    "size 0": (index(0, 1, "Data", "0K", 12, "0") | L2 | L3, (Cache(32 * KIB, 12, 64), ZEN_L2, ZEN_L3)),
    "not ASCII": (
        index(0, 1, "Data", "48\xb5", 12, "0") | L2 | L3,
        (Cache(32 * KIB, 12, 64), ZEN_L2, ZEN_L3),
    ),
    "ways 0": (index(0, 1, "Data", "48K", 0, "0") | L2 | L3, (Cache(48 * KIB, 8, 64), ZEN_L2, ZEN_L3)),
    "line missing": (
        index(0, 1, "Data", "48K", 12, "0", line=None) | L2 | L3,
        (ZEN_L1, ZEN_L2, ZEN_L3),
    ),
    "line 128": (
        index(0, 1, "Data", "48K", 12, "0", line="128") | L2 | L3,
        (Cache(48 * KIB, 12, 128), ZEN_L2, ZEN_L3),
    ),
    "sharing garbled": (
        L1 | index(2, 2, "Unified", "1M", 16, "0-x") | L3,
        (ZEN_L1, Cache(MIB, 16, 64), ZEN_L3),
    ),
    "sharing list": (
        L1 | index(2, 2, "Unified", "1M", 16, "0,2-3,9") | L3,
        (ZEN_L1, Cache(MIB, 16, 64, 3), ZEN_L3),
    ),
    "level 4": (L1 | L2 | L3 | index(4, 4, "Unified", "128M", 16, "0-7"), (ZEN_L1, ZEN_L2, ZEN_L3)),
}


def caches_of(place: Surroundings) -> ThreeCaches:
    caches = read_caches(place)
    return caches.l1.cache(), caches.l2.cache(), caches.l3.cache() if caches.l3 else None


@pytest.mark.parametrize(("files", "expected"), SYSFS.values(), ids=SYSFS.keys())
def test_sysfs(tmp_path: Path, files: dict[str, str], expected: ThreeCaches) -> None:
    assert caches_of(surroundings(write(tmp_path, files))) == expected


def test_sysfs_of_the_first_allowed_cpu(tmp_path: Path) -> None:
    little = index(0, 1, "Data", "32K", 4, "0")
    big = index(0, 1, "Data", "64K", 4, "6-7", cpu=6)
    root = write(tmp_path, little | big)
    assert read_caches(surroundings(root, cpus=(6, 7))).l1.cache() == Cache(64 * KIB, 4, 64, 2)


def test_origins_of_caches(tmp_path: Path) -> None:
    caches = read_caches(surroundings(write(tmp_path, L1 | index(2, 2, "Unified", "1M", "?", "0"))))
    directory = tmp_path / "sys/devices/system/cpu/cpu0/cache"
    assert caches.l1.size.origin == f"sysfs {directory / 'index0/size'}"
    assert caches.l1.line.origin == f"sysfs {directory / 'index0/coherency_line_size'}"
    assert caches.l2.ways.origin == DEFAULT


SYSCTL = {
    "apple silicon": (
        {
            "hw.perflevel0.l1dcachesize": 128 * KIB,
            "hw.perflevel0.l2cachesize": 12 * MIB,
            "hw.perflevel0.cpusperl2": 4,
            "hw.l1dcachesize": 64 * KIB,
            "hw.l2cachesize": 4 * MIB,
            "hw.cachelinesize": 128,
        },
        (Cache(128 * KIB, 8, 128), Cache(12 * MIB, 8, 128, 4), None),
    ),
    "intel": (
        {
            "hw.l1dcachesize": 32 * KIB,
            "hw.l2cachesize": 256 * KIB,
            "hw.l3cachesize": 6 * MIB,
            "hw.cachelinesize": 64,
        },
        (DEFAULT_L1, Cache(256 * KIB, 8, 64), Cache(6 * MIB, 16, 64, 4)),
    ),
    "L3 of size 0": (
        {"hw.l1dcachesize": 64 * KIB, "hw.l2cachesize": 4 * MIB, "hw.l3cachesize": 0},
        (Cache(64 * KIB, 8, 64), Cache(4 * MIB, 8, 64), None),
    ),
    "silent": ({}, (DEFAULT_L1, DEFAULT_L2, default_l3(4))),
}


@pytest.mark.parametrize(("sysctl", "expected"), SYSCTL.values(), ids=SYSCTL.keys())
def test_sysctl(tmp_path: Path, sysctl: dict[str, int], expected: ThreeCaches) -> None:
    assert caches_of(surroundings(tmp_path, system="darwin", sysctl=sysctl)) == expected


def test_sysctl_origin(tmp_path: Path) -> None:
    place = surroundings(tmp_path, system="darwin", sysctl={"hw.l1dcachesize": 65536})
    assert read_caches(place).l1.size.origin == "sysctl hw.l1dcachesize"


def test_other_systems_get_the_documented_defaults(tmp_path: Path) -> None:
    root = write(tmp_path, L1 | L2 | L3)
    place = surroundings(root, system="win32", sysctl={"hw.l1dcachesize": 64 * KIB})
    assert caches_of(place) == (DEFAULT_L1, DEFAULT_L2, default_l3(4))


V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/cpu,cpuacct"
QUOTA = {
    "nothing": ({}, None),
    "v2 no limit": ({"proc/self/cgroup": "0::/a", f"{V2}/a/cpu.max": "max 100000"}, None),
    "v2 own group": ({"proc/self/cgroup": "0::/a", f"{V2}/a/cpu.max": "250000 100000"}, 2.5),
    "v2 parent": ({"proc/self/cgroup": "0::/a/b/c", f"{V2}/a/cpu.max": "150000 100000"}, 1.5),
    "v2 least of the chain": (
        {
            "proc/self/cgroup": "0::/a/b",
            f"{V2}/cpu.max": "400000 100000",
            f"{V2}/a/cpu.max": "100000 50000",
            f"{V2}/a/b/cpu.max": "300000 100000",
        },
        2.0,
    ),
    "v2 other group": ({"proc/self/cgroup": "0::/a", f"{V2}/b/cpu.max": "100000 100000"}, None),
    "v2 mount is the group": ({"proc/self/cgroup": "0::/", f"{V2}/cpu.max": "300000 100000"}, 3.0),
    "v2 path of the host": ({"proc/self/cgroup": "0::/docker/4f", f"{V2}/cpu.max": "300000 100000"}, 3.0),
    "v2 outside the namespace": ({"proc/self/cgroup": "0::/../x", f"{V2}/cpu.max": "300000 100000"}, 3.0),
    "v2 outside the namespace, decoy": (
        {"proc/self/cgroup": "0::/../x", f"{V2}/cgroup.procs": "1", "sys/fs/x/cpu.max": "100000 100000"},
        None,
    ),
    "v2 unreadable membership": ({f"{V2}/cpu.max": "300000 100000"}, 3.0),
    "v2 garbled": ({"proc/self/cgroup": "0::/", f"{V2}/cpu.max": "plenty"}, None),
    "v2 in a hybrid tree": ({"proc/self/cgroup": "0::/a", f"{V2}/unified/a/cpu.max": "300000 100000"}, 3.0),
    "v1 no limit": (
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/a",
            f"{V1}/a/cpu.cfs_quota_us": "-1",
            f"{V1}/a/cpu.cfs_period_us": "100000",
        },
        None,
    ),
    "v1 own group": (
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/a\n0::/",
            f"{V1}/a/cpu.cfs_quota_us": "50000",
            f"{V1}/a/cpu.cfs_period_us": "100000",
        },
        0.5,
    ),
    "v1 parent, own mount": (
        {
            "proc/self/cgroup": "9:memory:/m\n1:cpu:/a/b",
            "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "700000",
            "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
        },
        7.0,
    ),
    "v1 mount in another order": (
        {
            "proc/self/cgroup": "1:cpuacct,cpu:/a",
            "sys/fs/cgroup/cpuacct,cpu/a/cpu.cfs_quota_us": "200000",
            "sys/fs/cgroup/cpuacct,cpu/a/cpu.cfs_period_us": "100000",
        },
        2.0,
    ),
    "v1 period 0": (
        {"proc/self/cgroup": "1:cpu:/", f"{V1}/cpu.cfs_quota_us": "1", f"{V1}/cpu.cfs_period_us": "0"},
        None,
    ),
    "cpuset is not cpu": (
        {
            "proc/self/cgroup": "1:cpuset:/a",
            "sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us": "100000",
            "sys/fs/cgroup/cpuset/a/cpu.cfs_period_us": "100000",
        },
        None,
    ),
}


@pytest.mark.parametrize(("files", "expected"), QUOTA.values(), ids=QUOTA.keys())
def test_quota(tmp_path: Path, files: dict[str, str], expected: float | None) -> None:
    place = surroundings(write(tmp_path, files))
    quota = read_quota(place)
    assert quota.value == expected
    assert (expected is None) == (quota.origin == "no cgroup quota")


@pytest.mark.parametrize(
    ("cpus", "quota", "cores", "origin"),
    [(4, None, 4, "affinity"), (4, 250000, 2, "cgroup"), (4, 50000, 1, "cgroup"), (2, 250000, 2, "affinity")],
)
def test_usable_cores(tmp_path: Path, cpus: int, quota: int | None, cores: int, origin: str) -> None:
    root = write(tmp_path, {f"{V2}/cpu.max": f"{quota or 'max'} 100000"})
    facts = detect_host(Settings(), surroundings=surroundings(root, cpus=range(cpus)))
    assert facts.cores.value == cores
    assert origin in facts.cores.origin
    assert facts.affinity_cores.value == cpus


THREADS = [
    # cores by affinity, quota, settings -> threads
    (4, None, {}, 4),
    (4, 3, {}, 3),
    (4, None, {"omp_num_threads": 2}, 2),
    (4, None, {"num_threads": 1, "omp_num_threads": 2}, 1),
    (4, None, {"num_threads": 3, "omp_num_threads": 2}, 2),
    (4, None, {"num_threads": 64}, 4),
    (4, None, {"cores": 2}, 2),
    (4, 2, {"cores": 64}, 2),
    (4, None, {"cpu_quota": 1.9}, 1),
    (4, 1, {"cpu_quota": 3.0}, 3),
    (4, None, {"cpu_quota": 0.5}, 1),
]


@pytest.mark.parametrize(("cpus", "quota", "wishes", "threads"), THREADS)
def test_default_thread_count(
    tmp_path: Path, cpus: int, quota: int | None, wishes: dict[str, Any], threads: int
) -> None:
    root = write(tmp_path, {f"{V2}/cpu.max": f"{quota * 100000 if quota else 'max'} 100000"})
    settings = Settings(**wishes)
    facts = detect_host(settings, surroundings=surroundings(root, cpus=range(cpus)))
    assert default_thread_count(settings, facts) == threads


@pytest.mark.parametrize(
    ("processor", "isa", "features"),
    [
        (ZEN, "avx512", "-amx-tile,+avx,+avx2,+avx512bw,+avx512dq,+avx512f,+avx512vl,+f16c,+fma"),
        (OLD, "generic128", "-avx,-avx2,-fma,+sse4.2"),
        (MAC, "neon", "+neon"),
        (Processor("aarch64-linux", "a64fx", (("neon", True), ("sve", True))), "neon", "+neon,+sve"),
        (Processor("aarch64-linux", "odd", (("neon", False),)), "neon", "+neon"),
        (Processor("riscv64-linux", "sifive-x280", (("v", True),)), "generic128", "+v"),
    ],
)
def test_best_row(tmp_path: Path, processor: Processor, isa: str, features: str) -> None:
    facts = detect_host(Settings(), surroundings=surroundings(tmp_path, processor=processor))
    assert facts.isa.value.name == isa
    assert facts.features.value == features
    assert facts.machine().isa.name == isa


def test_neon_without_detection_says_so(tmp_path: Path) -> None:
    facts = detect_host(Settings(), surroundings=surroundings(tmp_path, processor=MAC))
    assert DEFAULT in facts.features.origin
    assert facts.isa.value is NEON


def test_a_forced_lower_row_turns_wider_vectors_off(tmp_path: Path) -> None:
    facts = detect_host(Settings(isa="avx2"), surroundings=surroundings(tmp_path))
    assert facts.isa.value is AVX2
    assert facts.isa.origin == "TILEWRIGHT_ISA"
    limited = facts.machine()
    assert limited.features == "-amx-tile,+avx,+avx2,+f16c,+fma,-avx512bw,-avx512dq,-avx512f,-avx512vl"


def test_a_feature_turned_off_takes_its_row_away(tmp_path: Path) -> None:
    facts = detect_host(Settings(features="-avx512f"), surroundings=surroundings(tmp_path))
    assert facts.isa.value is AVX2
    assert "TILEWRIGHT_FEATURES" in facts.features.origin
    assert enabled_features(facts.machine().features) == {"avx", "avx2", "f16c", "fma"}


@pytest.mark.parametrize(
    ("wishes", "error", "words"),
    [
        (
            {"isa": "avx512"},
            IsaNotOnHost,
            "needs avx, avx2, f16c, fma, avx512f, .* choose one of: generic128",
        ),
        ({"isa": "neon"}, IsaNotOnHost, "aarch64"),
        ({"isa": "avx1024"}, UnknownIsa, "avx1024"),
        ({"features": "+avx2"}, InvalidSetting, r"features.*\+avx2"),
        ({"features": "avx2"}, InvalidSetting, "signs"),
        ({"features": "-"}, InvalidSetting, "signs"),
        ({"l1_bytes": 0}, InvalidSetting, "l1_bytes=0"),
        ({"l2_ways": -1}, InvalidSetting, "l2_ways=-1"),
        ({"l3_bytes": 1.5}, InvalidSetting, "l3_bytes=1.5"),
        ({"cores": True}, InvalidSetting, "cores=True"),
        ({"l4_bytes": 1}, TypeError, "l4_bytes"),
    ],
)
def test_impossible_wishes(
    tmp_path: Path, wishes: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        detect_host(Settings(), surroundings=surroundings(tmp_path, processor=OLD), **wishes)


def test_arguments_win_over_settings_win_over_the_host(tmp_path: Path) -> None:
    place = surroundings(write(tmp_path, L1 | L2 | L3))
    settings = Settings(
        l1_bytes=16 * KIB, l1_ways=4, l2_bytes=256 * KIB, l3_bytes=4 * MIB, cores=3, cpu="znver4"
    )
    facts = detect_host(settings, surroundings=place, l2_bytes=128 * KIB, l2_ways=2, cpu="znver3")
    assert (facts.l1.size.value, facts.l1.size.origin) == (16 * KIB, "TILEWRIGHT_L1_BYTES")
    assert (facts.l1.ways.value, facts.l1.ways.origin) == (4, "TILEWRIGHT_L1_WAYS")
    assert (facts.l2.size.value, facts.l2.size.origin) == (128 * KIB, "argument")
    assert (facts.l2.ways.value, facts.l2.ways.origin) == (2, "argument")
    assert facts.l3 is not None
    assert facts.l3.cache() == Cache(4 * MIB, 16, 64, 4)
    assert (facts.cores.value, facts.cores.origin) == (3, "TILEWRIGHT_CORES")
    assert (facts.cpu.value, facts.cpu.origin) == ("znver3", "argument")
    assert facts.l1.line.origin.startswith("sysfs")


def test_an_l3_can_be_asked_for_where_there_is_none(tmp_path: Path) -> None:
    place = surroundings(write(tmp_path, L1 | L2))
    facts = detect_host(Settings(), surroundings=place, l3_bytes=MIB)
    assert facts.l3 is not None
    assert facts.l3.cache() == Cache(MIB, 16, 64, 4)


def test_table_names_every_origin(tmp_path: Path) -> None:
    facts = detect_host(Settings(cores=2), surroundings=surroundings(write(tmp_path, L1 | L2)))
    rows = {name: (value, origin) for name, value, origin in facts.table()}
    assert rows["cores"] == ("2", "TILEWRIGHT_CORES")
    assert rows["isa"] == ("avx512", "LLVM host features")
    assert rows["l1 size"][0] == "49152"
    assert "l3 size" not in rows
    assert all(value and origin for value, origin in rows.values())


def test_this_host() -> None:
    facts = detect_host(Settings())
    assert facts.machine().name == "host"
    assert 1 <= facts.cores.value <= (os.cpu_count() or 1)
    if sys.platform == "linux":
        assert facts.affinity_cores.value == len(os.sched_getaffinity(0))
    assert this_host().sysctl("no.such.name") is None


def test_host_machine_is_detected_once_per_settings() -> None:
    assert host_machine(Settings()) is host_machine(Settings())
    assert host_machine(Settings(l2_bytes=MIB)).l2.size == MIB


def test_machine_without_arguments_is_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_L1_BYTES", "16K")
    assert machine() is host_machine()
    assert machine().l1.size == 16 * KIB
    assert machine(l1_bytes=8 * KIB).l1.size == 8 * KIB
    assert machine("generic128", cores=1).isa.name == "generic128"


def test_importing_the_module_does_not_load_llvm() -> None:
    """The module and what it imports; a stand-in for the package, which loads LLVM for its first call."""
    code = (
        "import importlib.util, sys, types; package = types.ModuleType('tilewright'); "
        "package.__path__ = importlib.util.find_spec('tilewright').submodule_search_locations; "
        "sys.modules['tilewright'] = package; import tilewright.machine.host; "
        "sys.exit('llvmlite' in sys.modules)"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environ, check=False).returncode == 0


# --- the CPU's own numbers ---------------------------------------------------------------------------------


def cpuinfo(*blocks: dict[str, object]) -> str:
    return "\n\n".join("\n".join(f"{name}\t: {value}" for name, value in block.items()) for block in blocks)


def x86(number: int, vendor: str, family: int, model: int) -> dict[str, object]:
    return {"processor": number, "vendor_id": vendor, "cpu family": family, "model": model, "model name": "x"}


ALDER_LAKE = {"proc/cpuinfo": cpuinfo(*(x86(number, "GenuineIntel", 6, 0x97) for number in range(24)))}
ATOMS = {"sys/devices/cpu_core/cpus": "0-15", "sys/devices/cpu_atom/cpus": "16-23"}
MILAN = {"proc/cpuinfo": cpuinfo(x86(0, "AuthenticAMD", 25, 1), x86(1, "AuthenticAMD", 25, 0x11))}
GRACE = {
    "proc/cpuinfo": cpuinfo(
        {
            "processor": 0,
            "BogoMIPS": 2000.0,
            "CPU implementer": "0x41",
            "CPU part": "0xd4f",
            "CPU revision": 0,
        }
    )
}
POWER = {
    "proc/cpuinfo": cpuinfo(
        {"processor": 0, "cpu": "POWER10 (architected), altivec", "revision": "2.0 (pvr 0080 0200)"},
        {"timebase": 512000000, "platform": "pSeries"},
    )
}
LEVEL = replace(ZEN, cpu="x86-64-v3")
ARM = Processor("aarch64-linux", "generic", (("neon", True),))
PPC = Processor("powerpc64le-linux", "ppc64le", ())

IDENTITIES = [
    pytest.param("linux", MILAN, (0,), LEVEL, "Zen 3", id="a level for a name"),
    pytest.param("linux", MILAN, (1,), LEVEL, "Zen 4", id="numbers of the first allowed CPU"),
    pytest.param("linux", MILAN, (0,), ZEN, "Zen 3", id="a wrong name"),
    pytest.param("linux", MILAN, (7,), ZEN, "Zen 3", id="a CPU without a block"),
    pytest.param("linux", ALDER_LAKE | ATOMS, (0,), LEVEL, "Golden Cove client", id="performance core"),
    pytest.param("linux", ALDER_LAKE | ATOMS, (16, 17), LEVEL, "Gracemont", id="efficient core"),
    pytest.param("linux", ALDER_LAKE, (16,), LEVEL, "Golden Cove client", id="kinds of cores hidden"),
    pytest.param("linux", GRACE, (0,), ARM, "Neoverse V2", id="MIDR"),
    pytest.param("linux", POWER, (0,), PPC, "POWER10", id="PVR"),
    pytest.param("linux", {}, (0,), ZEN, "Zen 5", id="no numbers: the name"),
    pytest.param("linux", {"proc/cpuinfo": "model: x"}, (0,), ZEN, "Zen 5", id="no known lines: the name"),
    pytest.param(
        "linux",
        {"proc/cpuinfo": cpuinfo(x86(0, "AuthenticAMD", 25, 1) | {"model": "one"})},
        (0,),
        ZEN,
        "Zen 5",
        id="numbers garbled: the name",
    ),
    pytest.param(
        "linux", {"proc/cpuinfo": cpuinfo(x86(0, "GenuineIntel", 6, 0xFE))}, (0,), ZEN, "", id="unknown model"
    ),
    pytest.param("darwin", {}, (0,), MAC, "Apple M1", id="macOS without numbers: the name"),
    pytest.param("win32", {}, (0,), ZEN, "Zen 5", id="Windows without numbers: the name"),
]


@pytest.mark.parametrize(("system", "files", "cpus", "processor", "core"), IDENTITIES)
def test_core(
    tmp_path: Path,
    system: str,
    files: dict[str, str],
    cpus: tuple[int, ...],
    processor: Processor,
    core: str,
) -> None:
    place = surroundings(write(tmp_path, files), system=system, cpus=cpus, processor=processor)
    facts = detect_host(Settings(cache=False), surroundings=place)
    assert facts.core.value.name == core
    assert facts.machine().core.name == core


@pytest.mark.parametrize(
    ("sysctl", "core"),
    [
        ({"hw.cpufamily": 0x6F5129AC}, "Apple M4"),
        ({"hw.cpufamily": 0xFA33415E}, "Apple M3"),
        ({"machdep.cpu.family": 6, "machdep.cpu.model": 0x9E, "hw.cpufamily": 0x0F817246}, "Skylake client"),
    ],
)
def test_core_under_macos(tmp_path: Path, sysctl: dict[str, int], core: str) -> None:
    place = surroundings(tmp_path, system="darwin", processor=MAC, sysctl=sysctl)
    assert detect_host(Settings(), surroundings=place).core.value.name == core


def test_core_under_windows(tmp_path: Path) -> None:
    text = "AMD64 Family 25 Model 33 Stepping 0, AuthenticAMD"
    place = replace(surroundings(tmp_path, system="win32", processor=LEVEL), description=lambda: text)
    facts = detect_host(Settings(), surroundings=place)
    assert (facts.core.value.name, str(facts.identity.value)) == (
        "Zen 3",
        "AuthenticAMD family 0x19 model 0x21",
    )


def test_the_core_of_a_cpu_that_the_user_names(tmp_path: Path) -> None:
    place = surroundings(write(tmp_path, MILAN))
    facts = detect_host(Settings(cpu="haswell"), surroundings=place)
    assert (facts.core.value.name, facts.core.origin) == ("Haswell", "TILEWRIGHT_CPU")


def test_every_model_has_one_row() -> None:
    rows = [(models, core.name) for core in CORES for models in core.models]
    for models, name in rows:
        for span in models.models:
            cpu = CpuIdentity(models.vendor, models.family, span[0], efficient=bool(models.efficient))
            assert [other for more, other in rows if cpu in more] == [name]
