"""The request for AMX's tiles: what it answers here, that it is sent once, and what it says elsewhere."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewright.machine import amx_permission
from tilewright.machine.amx_permission import amx_permitted

CPUINFO = Path("/proc/cpuinfo")
GET_SUPPORTED, REQUEST, TILES = 0x1021, 0x1023, 18


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    amx_permitted.cache_clear()
    yield
    amx_permitted.cache_clear()


class Kernel:
    """A kernel that supports some components and answers requests with a status; keeps what it was asked."""

    def __init__(self, supported: int, status: int, *, known: bool = True) -> None:
        self.supported, self.status, self.known = supported, status, known
        self.asked: list[tuple[int, ...]] = []

    def call(self, request: int, argument: Any) -> int:
        if request == GET_SUPPORTED:
            self.asked.append((GET_SUPPORTED,))
            ctypes.cast(argument, ctypes.POINTER(ctypes.c_uint64))[0] = self.supported
            return 0 if self.known else -1
        self.asked.append((request, argument.value))
        return self.status

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(platform, "machine", lambda: "x86_64")
        monkeypatch.setattr(amx_permission, "_arch_prctl", self.call)


@pytest.mark.skipif(sys.platform != "linux" or not CPUINFO.exists(), reason="reads /proc/cpuinfo")
def test_no_permission_without_the_unit() -> None:
    permitted = amx_permitted()
    if " amx_tile" not in CPUINFO.read_text():
        assert permitted is False


@pytest.mark.parametrize(
    ("kernel", "expected", "requests"),
    [
        (Kernel(0b11 << 17, 0), True, [(GET_SUPPORTED,), (REQUEST, TILES)]),
        (Kernel(0b11 << 17, -1), False, [(GET_SUPPORTED,), (REQUEST, TILES)]),
        (Kernel(1 << 17, 0), False, [(GET_SUPPORTED,)]),
        (Kernel(0b11 << 17, 0, known=False), False, [(GET_SUPPORTED,)]),
    ],
    ids=["given", "refused", "no unit", "old kernel"],
)
def test_the_kernel_is_asked_once(
    kernel: Kernel, expected: bool, requests: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.install(monkeypatch)
    assert [amx_permitted(), amx_permitted()] == [expected, expected]
    assert kernel.asked == requests


@pytest.mark.parametrize(
    ("system", "processor"), [("darwin", "x86_64"), ("win32", "AMD64"), ("linux", "aarch64")]
)
def test_other_systems_are_not_asked(system: str, processor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(0b11 << 17, 0)
    kernel.install(monkeypatch)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: processor)
    assert amx_permitted() is False
    assert kernel.asked == []
