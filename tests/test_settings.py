"""Settings: every variable, its spellings, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tilewright.errors import InvalidSetting
from tilewright.settings import VARIABLES, Settings, parse_bytes, read_settings, variable_of

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
]


@pytest.mark.parametrize(("environ", "expected"), READ)
def test_read(environ: dict[str, str], expected: Settings) -> None:
    assert read_settings(environ) == expected


@pytest.mark.parametrize(
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
