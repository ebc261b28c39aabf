"""Settings: every variable, its spellings, and what is refused."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import pytest
from shares import looped

from tilewright.errors import InvalidSetting
from tilewright.settings import VARIABLES, Settings, Variable, parse_bytes, read_settings, variable_of

READ = [
    ({}, Settings()),
    ({"PATH": "/bin"}, Settings()),
    ({"TILEWRIGHT_ISA": " avx2 "}, Settings(isa="avx2")),
    ({"TILEWRIGHT_ISA": "  "}, Settings()),
    ({"TILEWRIGHT_CPU": "znver5"}, Settings(cpu="znver5")),
    ({"TILEWRIGHT_FEATURES": "-avx512f"}, Settings(features="-avx512f")),
    ({"TILEWRIGHT_L1_BYTES": "32768"}, Settings(l1_bytes=32768)),
    ({"TILEWRIGHT_L2_BYTES": "512K"}, Settings(l2_bytes=512 * 1024)),
    ({"TILEWRIGHT_L3_BYTES": "8MiB"}, Settings(l3_bytes=8 * 1024 * 1024)),
    ({"TILEWRIGHT_L1_WAYS": "12"}, Settings(l1_ways=12)),
    ({"TILEWRIGHT_L2_WAYS": "16"}, Settings(l2_ways=16)),
    ({"TILEWRIGHT_CORES": "3"}, Settings(cores=3)),
    ({"TILEWRIGHT_NUM_THREADS": "2"}, Settings(num_threads=2)),
    ({"OMP_NUM_THREADS": "4"}, Settings(omp_num_threads=4)),
    ({"OMP_NUM_THREADS": " 4 , 2"}, Settings(omp_num_threads=4)),
    ({"OMP_NUM_THREADS": "4,x"}, Settings()),
    ({"OMP_NUM_THREADS": "4,"}, Settings()),
    ({"OMP_NUM_THREADS": "0"}, Settings()),
    ({"OMP_NUM_THREADS": "-1"}, Settings()),
    ({"OMP_NUM_THREADS": "many"}, Settings()),
    ({"TILEWRIGHT_CPU_QUOTA": "1.5"}, Settings(cpu_quota=1.5)),
    ({"TILEWRIGHT_SPIN_US": "0"}, Settings(spin_us=0.0)),
    ({"TILEWRIGHT_HUGE_PAGES": "0"}, Settings(huge_pages=False)),
    ({"TILEWRIGHT_HUGE_PAGES": "Off"}, Settings(huge_pages=False)),
    ({"TILEWRIGHT_HUGE_PAGES": "yes"}, Settings(huge_pages=True)),
    ({"TILEWRIGHT_MEASURE": "0"}, Settings(measure=False)),
    ({"TILEWRIGHT_TUNING": "off"}, Settings(tuning="")),
    ({"TILEWRIGHT_TUNING": "found.json"}, Settings(tuning="found.json")),
]


@looped(("environ", "expected"), READ)
def test_read(environ: dict[str, str], expected: Settings) -> None:
    assert read_settings(environ) == expected


@looped(
    ("name", "text"),
    [
        ("TILEWRIGHT_L1_BYTES", "0"),
        ("TILEWRIGHT_L1_BYTES", "-1"),
        ("TILEWRIGHT_L2_BYTES", "1.5M"),
        ("TILEWRIGHT_L3_BYTES", "8 megabytes"),
        ("TILEWRIGHT_L3_BYTES", "M"),
        ("TILEWRIGHT_L1_WAYS", "0"),
        ("TILEWRIGHT_L2_WAYS", "eight"),
        ("TILEWRIGHT_CORES", "0"),
        ("TILEWRIGHT_CORES", "1_0"),
        ("TILEWRIGHT_NUM_THREADS", "-2"),
        ("TILEWRIGHT_NUM_THREADS", "2,1"),
        ("TILEWRIGHT_CPU_QUOTA", "0"),
        ("TILEWRIGHT_CPU_QUOTA", "-1"),
        ("TILEWRIGHT_CPU_QUOTA", "inf"),
        ("TILEWRIGHT_SPIN_US", "-1"),
        ("TILEWRIGHT_SPIN_US", "1us"),
        ("TILEWRIGHT_HUGE_PAGES", "maybe"),
        ("TILEWRIGHT_SPIN_US", "9e400"),
        ("TILEWRIGHT_SPIN_US", "9999999999"),
        ("TILEWRIGHT_SPIN_US", "nan"),
        ("TILEWRIGHT_CACHE_BYTES", "9223372036854775808"),
        ("TILEWRIGHT_L2_BYTES", "1\u212a"),  # the sign of kelvin, which is a k in lower case
        ("TILEWRIGHT_CORES", "\u0664"),  # a digit, but none of ASCII's
        ("TILEWRIGHT_NUM_THREADS", "\uff12"),
    ],
)
def test_malformed(name: str, text: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        read_settings({name: text})
    assert caught.value.name == name
    assert caught.value.found == repr(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("48K", 49152),
        ("48k", 49152),
        ("48KiB", 49152),
        ("48 kib", 49152),
        ("1M", 2**20),
        ("1G", 2**30),
    ],
)
def test_parse_bytes(text: str, expected: int) -> None:
    assert parse_bytes("size", text) == expected


@pytest.mark.parametrize("field", ["l1_bytes", "l2_ways", "cores", "num_threads", "omp_num_threads"])
def test_settings_check_themselves(field: str) -> None:
    zero: dict[str, Any] = {field: 0}
    with pytest.raises(InvalidSetting, match=variable_of(field)):
        Settings(**zero)


def test_the_environment_is_read_on_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CORES", "5")
    assert read_settings().cores == 5
    monkeypatch.setenv("TILEWRIGHT_CORES", "6")
    assert read_settings().cores == 6


def test_one_variable_per_field() -> None:
    assert [variable.field for variable in VARIABLES] == [
        field.name for field in dataclasses.fields(Settings)
    ]
    assert len({variable.name for variable in VARIABLES}) == len(VARIABLES)
    assert all(variable.meaning for variable in VARIABLES)


#: What numbers, sizes and words are made of, and what they are not.
PIECES = (
    "0", "1", "9" * 5000, "18446744073709551616", "-1", "+1", "1e9", "9e400", "nan", "inf", "0x10", "1_0",
    "1.5", ".5", "5.", "1" * 20 + ".5", "0." + "1" * 400, "K", "KiB", "TiB", "\u0664", "\u00b2", "\u2460",
    "\uff11", " ",
    "\t", "\n", "\x00", "\x1f", "\u3000", "\ud800", "\udc80", ",", ";", "%s", "{x}", "{", "true", "on",
    "TRUE", "off", "+avx2", "-sse2", "-64bit", "help", "avx2", "znver4", "/", "..", "~", "\u00e9",
)  # fmt: skip


@looped("variable", VARIABLES)
def test_every_text_is_read_or_refused(variable: Variable) -> None:
    random = Random(variable.name)
    texts = [*PIECES, *("".join(random.choices(PIECES, k=random.randint(2, 4))) for _ in range(400))]
    refused = longest = 0
    for text in texts:
        try:
            settings = read_settings({variable.name: text})
        except InvalidSetting as error:
            refused += 1
            longest = max(longest, len(str(error)))
            continue
        value = getattr(settings, variable.field)
        assert value is None or isinstance(value, (str, bool)) or 0 <= value < 2**63
    assert refused < len(texts)
    assert longest < 300


@pytest.mark.parametrize("field", ["l1_bytes", "l1_ways", "cores", "num_threads", "cache_bytes"])
def test_numbers_have_bounds(field: str) -> None:
    for value in (2**63, 10**5000, -(10**5000)):
        wrong: dict[str, Any] = {field: value}
        with pytest.raises(InvalidSetting, match=r"2\*\*|9223372036854775808"):
            Settings(**wrong)


def test_more_than_any_machine_has() -> None:
    for name, text in (("TILEWRIGHT_CORES", "65537"), ("TILEWRIGHT_L1_BYTES", "1025G")):
        with pytest.raises(InvalidSetting, match=f"{name}=[0-9]+ is not a positive integer up to"):
            read_settings({name: text})
