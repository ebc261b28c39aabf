"""Settings from the environment: the one place that reads environment variables."""

from __future__ import annotations

import os
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tilewright.errors import InvalidSetting, shown
from tilewright.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BYTES_PER_SUFFIX = {"": 1, "k": 2**10, "kib": 2**10, "m": 2**20, "mib": 2**20, "g": 2**30, "gib": 2**30}
# Of as many digits as 64 bits have: Python refuses to read some thousand of them.
_BYTES = re.compile(r"([0-9]{1,19})\s*([a-z]*)", re.IGNORECASE | re.ASCII)
_COUNT = re.compile(r"[0-9]{1,19}")
_DECIMAL = re.compile(r"[0-9]{1,19}(\.[0-9]{1,19})?")
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


#: The largest number of any setting.
MOST_NUMBER = 2**63 - 1
#: The largest number of fields that models compute with: more cache or more cores than any machine has.
MOST: dict[str, int] = {
    **dict.fromkeys(("l1_bytes", "l2_bytes", "l3_bytes"), 2**40),
    **dict.fromkeys(("l1_ways", "l2_ways", "cores"), 2**16),
}
#: Microseconds of the longest wait: a quarter of an hour.
_MOST_SPIN_US = 1e9


@dataclass(frozen=True)
class Settings:
    """What the user asked for; None where nothing was asked. The fields are described in `VARIABLES`.

    Raises
    ------
    InvalidSetting : if a size or a count is not a positive integer.

    Examples
    --------
    >>> Settings(isa="avx2", l2_bytes=2**20).l2_bytes
    1048576
    """

    isa: str | None = None
    cpu: str | None = None
    features: str | None = None
    l1_bytes: int | None = None
    l2_bytes: int | None = None
    l3_bytes: int | None = None
    l1_ways: int | None = None
    l2_ways: int | None = None
    cores: int | None = None
    num_threads: int | None = None
    omp_num_threads: int | None = None
    cpu_quota: float | None = None
    spin_us: float | None = None
    huge_pages: bool = True
    measure: bool = True
    tuning: str | None = None
    progress: bool = True
    cache: bool = True
    cache_dir: str | None = None
    cache_bytes: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and not isinstance(value, bool):
                check_positive(variable_of(field.name), value, MOST.get(field.name, MOST_NUMBER))


def check_positive(name: str, value: object, most: int = MOST_NUMBER) -> int:
    """The value itself if it is a positive integer up to a bound; `InvalidSetting` names `name` otherwise.

    >>> check_positive("cores", 4)
    4
    """
    number = 0 if isinstance(value, bool) or not isinstance(value, int) else int.__index__(value)
    if not 0 < number <= most:
        required = "a positive integer" if most == MOST_NUMBER else f"a positive integer up to {most}"
        raise InvalidSetting(name=name, found=shown(value), required=required)
    return number


def parse_bytes(name: str, text: str) -> int:
    """A size such as "32768", "32K", "32KiB", "1M" or "1MiB", in bytes; suffixes are powers of 1024.

    >>> parse_bytes("TILEWRIGHT_L1_BYTES", "48 KiB")
    49152
    """
    match = _BYTES.fullmatch(text)
    unit = _BYTES_PER_SUFFIX.get(match[2].lower()) if match else None
    size = int(match[1]) * unit if match and unit else 0
    if not 0 < size <= MOST_NUMBER:
        required = "a positive size in bytes, such as 32768, 32K, 32KiB or 1M"
        raise InvalidSetting(name=name, found=shown(text), required=required)
    return size


def _parse_count(name: str, text: str) -> int:
    if not _COUNT.fullmatch(text) or not 0 < int(text) <= MOST_NUMBER:
        raise InvalidSetting(name=name, found=shown(text), required="a positive integer")
    return int(text)


def _parse_quota(name: str, text: str) -> float:
    if not _DECIMAL.fullmatch(text) or float(text) == 0:
        raise InvalidSetting(name=name, found=shown(text), required="a positive number of cores, such as 1.5")
    return float(text)


def _parse_microseconds(name: str, text: str) -> float:
    if not _DECIMAL.fullmatch(text) or float(text) > _MOST_SPIN_US:
        required = f"microseconds up to {_MOST_SPIN_US:.0f}, such as 50 or 0"
        raise InvalidSetting(name=name, found=shown(text), required=required)
    return float(text)


def _parse_flag(name: str, text: str) -> bool:
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise InvalidSetting(
            name=name, found=shown(text), required="one of 1, true, yes, on, 0, false, no, off"
        )
    return word in _TRUE


def _parse_text(_name: str, text: str) -> str:
    return text


def _parse_file(_name: str, text: str) -> str:
    """The name of a file; empty for a word that means off."""
    return "" if text.lower() in _FALSE else text


def _parse_openmp_threads(_name: str, text: str) -> int | None:
    """The outermost level of OpenMP's list of thread counts, as OpenMP 5.2 §21.1.2 defines it.

    A malformed list counts as unset, like in OpenMP run-time libraries: the variable is not ours.
    """
    counts = [part.strip() for part in text.split(",")]
    if not all(_COUNT.fullmatch(count) and 0 < int(count) <= MOST_NUMBER for count in counts):
        return None
    return int(counts[0])


@dataclass(frozen=True)
class Variable:
    """One environment variable: its name, the field of `Settings` it fills, and what it means."""

    name: str
    field: str
    parse: Callable[[str, str], object]
    meaning: str


#: Every environment variable that is read, in the order the documentation shows them.
VARIABLES: tuple[Variable, ...] = (
    Variable("TILEWRIGHT_ISA", "isa", _parse_text, "instruction-set row to use, such as avx2"),
    Variable("TILEWRIGHT_CPU", "cpu", _parse_text, "LLVM name of the CPU to schedule for"),
    Variable("TILEWRIGHT_FEATURES", "features", _parse_text, "LLVM features to change, such as -avx512f"),
    Variable("TILEWRIGHT_L1_BYTES", "l1_bytes", parse_bytes, "L1 data cache size the blocking plans with"),
    Variable("TILEWRIGHT_L2_BYTES", "l2_bytes", parse_bytes, "L2 cache size the blocking plans with"),
    Variable("TILEWRIGHT_L3_BYTES", "l3_bytes", parse_bytes, "L3 cache size the blocking plans with"),
    Variable("TILEWRIGHT_L1_WAYS", "l1_ways", _parse_count, "associativity of the L1 data cache"),
    Variable("TILEWRIGHT_L2_WAYS", "l2_ways", _parse_count, "associativity of the L2 cache"),
    Variable("TILEWRIGHT_CORES", "cores", _parse_count, "number of cores the blocking plans with"),
    Variable("TILEWRIGHT_NUM_THREADS", "num_threads", _parse_count, "upper bound of the thread count"),
    Variable(
        "OMP_NUM_THREADS",
        "omp_num_threads",
        _parse_openmp_threads,
        "upper bound of the thread count; the first number of a list counts, a malformed list is ignored",
    ),
    Variable(
        "TILEWRIGHT_CPU_QUOTA",
        "cpu_quota",
        _parse_quota,
        "CPU quota in cores, such as 1.5, in place of the control group's",
    ),
    Variable(
        "TILEWRIGHT_SPIN_US",
        "spin_us",
        _parse_microseconds,
        "for how long threads poll for work before they sleep, in microseconds (default 50)",
    ),
    Variable(
        "TILEWRIGHT_HUGE_PAGES", "huge_pages", _parse_flag, "ask for huge pages for scratch (default 1)"
    ),
    Variable(
        "TILEWRIGHT_MEASURE",
        "measure",
        _parse_flag,
        "measure a core that no table describes, once, and plan with its figures (default 1)",
    ),
    Variable(
        "TILEWRIGHT_TUNING",
        "tuning",
        _parse_file,
        "file of what `tilewright tune` found, in place of the user's own; 0: plan by the models alone",
    ),
    Variable(
        "TILEWRIGHT_PROGRESS",
        "progress",
        _parse_flag,
        "show progress bars on a terminal for work of over two seconds (default 1)",
    ),
    Variable("TILEWRIGHT_CACHE", "cache", _parse_flag, "keep compiled objects on disk (default 1)"),
    Variable("TILEWRIGHT_CACHE_DIR", "cache_dir", _parse_text, "directory of the object cache"),
    Variable("TILEWRIGHT_CACHE_BYTES", "cache_bytes", parse_bytes, "bound of the object cache (256M)"),
)


def variable_of(field: str) -> str:
    """The name of the variable that fills a field of `Settings`.

    >>> variable_of("l2_bytes")
    'TILEWRIGHT_L2_BYTES'
    """
    return next(variable.name for variable in VARIABLES if variable.field == field)


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in an environment; read anew on each call.

    Parameters
    ----------
    environ : the environment, ``os.environ`` by default. A blank variable counts as unset.

    Raises
    ------
    InvalidSetting : if a TILEWRIGHT_* variable holds an impossible value.

    Examples
    --------
    >>> read_settings({"TILEWRIGHT_L2_BYTES": "1M", "OMP_NUM_THREADS": "4,2"}).omp_num_threads
    4
    """
    source = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    for variable in VARIABLES:
        text = source.get(variable.name, "").strip()
        if text:
            values[variable.field] = variable.parse(variable.name, text)
    return Settings(**values)
