"""Measuring a core: plausible figures, once for each kind of CPU, and never in the way of a result."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path

import numpy as np
import pytest
from support import ROOT, host_rows, rough

import tilewright as tw
from tilewright.compiler import measure_core as measuring
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.measure_core import measure_core, measure_once
from tilewright.llvm.target import emit_object
from tilewright.machine.catalog import CATALOG
from tilewright.machine.cores import Core
from tilewright.machine.host import detect_host
from tilewright.machine.isa import Isa
from tilewright.machine.machine import Machine
from tilewright.machine.measure import Measurement, keep_measurement
from tilewright.ops.unary.problem import Unary
from tilewright.settings import Settings
from tilewright.store import ObjectCache

#: An x86 CPU of which the package is told no more than its level: no row describes its core.
UNKNOWN_CPU = "x86-64-v3"

FOUND = Measurement(3.0, 256, 2.0, 2.0, 64.0, 32.0, 20.0, 7.0, 4.0, 6.0)


@pytest.mark.parametrize("isa", host_rows(), ids=lambda isa: isa.name)
def test_figures_are_plausible(isa: Isa) -> None:
    """Orders of magnitude only: other load on the machine is part of what is measured."""
    found = measure_core(tw.machine(isa.name))
    assert all(isfinite(value) and value > 0 for value in asdict(found).values())
    assert found.vector_bits == isa.vector_bits
    assert 0.02 < found.clock_ghz < 50
    assert found.fmas < 40
    assert found.loads < 40
    assert found.l1_bytes_per_cycle > found.memory_bytes_per_cycle / 4
    assert found.l2_bytes_per_cycle > found.memory_bytes_per_cycle / 8


@pytest.mark.parametrize("machine", [entry.machine for entry in CATALOG], ids=lambda machine: machine.name)
def test_the_code_compiles_for_every_machine(machine: Machine) -> None:
    assert emit_object(measuring._emit(machine), "measure_core", machine)


def unknown(**more: object) -> Machine:
    """This host, as if no row described its core."""
    return replace(tw.machine(), core=Core(), **more)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectCache:
    """A store of this test's own, and a measurement that takes no time."""
    found = ObjectCache(tmp_path / "store")
    monkeypatch.setattr(measuring, "store_for", lambda _: found)
    monkeypatch.setattr(measuring, "_tried", set())
    monkeypatch.setattr(measuring, "measure_core", lambda _: FOUND)
    return found


def test_an_unknown_core_is_measured(store: ObjectCache) -> None:
    measure_once(unknown())
    assert len(store.entries()) == 1


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(lambda: replace(unknown(), core=Core(name="known")), id="a core with a row"),
        pytest.param(lambda: replace(unknown(), name="another"), id="another machine than the host"),
        pytest.param(lambda: unknown(measurement=FOUND), id="measured before"),
    ],
)
def test_nothing_is_measured(store: ObjectCache, machine: object) -> None:
    measure_once(machine())  # type: ignore[operator]
    assert not store.entries()


def test_nothing_is_measured_where_settings_forbid(
    store: ObjectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "read_settings", lambda: Settings(measure=False))
    measure_once(unknown())
    assert not store.entries()


def test_what_another_process_measured_is_kept(store: ObjectCache) -> None:
    kind = detect_host(Settings()).kind.value
    other = replace(FOUND, clock_ghz=1.0)
    keep_measurement(store, kind, other)
    measure_once(unknown())
    (entry,) = store.entries()
    assert json.dumps(asdict(other)).encode() in entry.path.read_bytes()


def test_a_call_that_interrupts_a_measurement_goes_on_without(
    store: ObjectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = []

    def interrupted(machine: Machine) -> Measurement:
        began.append(machine)
        measure_once(machine)  # as from a signal handler
        return FOUND

    monkeypatch.setattr(measuring, "measure_core", interrupted)
    measure_once(unknown())
    assert len(began) == len(store.entries()) == 1


def test_a_measurement_that_fails_is_logged(
    store: ObjectCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = []

    def fail(machine: Machine) -> Measurement:
        tries.append(machine)
        raise MemoryError("no memory")

    monkeypatch.setattr(measuring, "measure_core", fail)
    with caplog.at_level(logging.WARNING, logger="tilewright"):
        kernel = Kernel.compiled(Unary("identity", 4, 4), unknown())
        measure_once(unknown())
    assert kernel.object_code
    assert "the core was not measured: MemoryError: no memory" in caplog.text
    assert len(tries) == 1
    assert not store.entries()


# --- whole processes -----------------------------------------------------------------------------

#: Prints what a process planned with, how often it measured, and results in hexadecimal.
PROCESS = """
import json, sys
import numpy as np
import tilewright as tw
from tilewright.compiler import measure_core as measuring

measured, measure = [], measuring.measure_core
measuring.measure_core = lambda machine: measured.append(measure(machine)) or measured[-1]
inputs = np.load(sys.argv[1])
results = [tw.matmul(inputs["a"], inputs["b"]) for _ in range(3)]
machine = tw.machine()
print(json.dumps({
    "measured": len(measured),
    "used": machine.measurement is not None,
    "core": machine.core.name,
    "results": [result.tobytes().hex() for result in results],
}))
"""


#: Forks again and again while another thread makes the first product, and with it the measurement.
FORKS = """
import json, os, sys, threading, time, warnings
import numpy as np
import tilewright as tw
from tilewright.compiler import measure_core as measuring

warnings.simplefilter("ignore")
measured, measure = [], measuring.measure_core
measuring.measure_core = lambda machine: measured.append(measure(machine)) or measured[-1]
inputs = np.load(sys.argv[1])
a, b = inputs["a"], inputs["b"]
results, well = [], []
thread = threading.Thread(target=lambda: results.append(tw.matmul(a, b)))
thread.start()
while thread.is_alive() or len(well) < 3:
    child = os.fork()
    if not child:
        os._exit(0 if np.allclose(tw.matmul(a, b), a @ b, atol=1e-2) else 1)
    well.append(os.waitpid(child, 0)[1] == 0)
thread.join()
print(json.dumps({"measured": len(measured), "well": all(well), "forks": len(well)}))
"""


class Child:
    """A process on a CPU that no row describes, with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.store, self.inputs = folder / "store", folder / "inputs.npz"
        np.savez(self.inputs, a=rough((70, 1300)), b=rough((1300, 90), seed=1))

    def start(self, code: str = PROCESS, **settings: str) -> subprocess.Popen[str]:
        path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "tests/shared"))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TILEWRIGHT_")}
        own = {"PYTHONPATH": path, "TILEWRIGHT_CPU": UNKNOWN_CPU, "TILEWRIGHT_CACHE_DIR": str(self.store)}
        command = [sys.executable, "-c", code, str(self.inputs)]
        return subprocess.Popen(
            command, env=kept | own | settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def finish(self, process: subprocess.Popen[str]) -> dict[str, object]:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        found: dict[str, object] = json.loads(output)
        return found

    def run(self, **settings: str) -> dict[str, object]:
        return self.finish(self.start(**settings))


@pytest.fixture
def child(tmp_path: Path) -> Child:
    if tw.machine().arch != "x86_64" or "avx2" not in {row.name for row in host_rows()}:
        pytest.skip("needs an x86 CPU of the third level")
    return Child(tmp_path)


def test_the_first_process_measures_and_later_ones_use_it(child: Child) -> None:
    first, second = child.run(), child.run()
    assert (first["measured"], first["used"], first["core"]) == (1, False, "")
    assert (second["measured"], second["used"], second["core"]) == (0, True, "")
    off = child.run(TILEWRIGHT_MEASURE="0")
    assert (off["measured"], off["used"]) == (0, False)
    known = child.run(TILEWRIGHT_CPU="haswell")
    assert (known["measured"], known["used"], known["core"]) == (0, False, "Haswell")
    # The bits are those of the type, k and the machine alone.
    assert first["results"] == second["results"] == off["results"]


def test_a_damaged_entry_is_measured_again(child: Child) -> None:
    kind = detect_host(Settings(cpu=UNKNOWN_CPU)).kind.value
    store = ObjectCache(child.store)
    keep_measurement(store, kind, FOUND)
    (entry,) = store.entries()
    entry.path.write_bytes(entry.path.read_bytes()[:-3])
    found = child.run()
    assert (found["measured"], found["used"]) == (1, False)
    assert child.run()["used"]


def test_where_nothing_can_be_kept_nothing_is_measured(child: Child, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = child.run(TILEWRIGHT_CACHE_DIR=str(tmp_path / "file" / "store"))
    assert (found["measured"], found["used"]) == (0, False)
    found = child.run(TILEWRIGHT_CACHE="0")
    assert (found["measured"], found["used"]) == (0, False)


def test_processes_at_once(child: Child) -> None:
    running = [child.start(), child.start()]
    found = [child.finish(process) for process in running]
    assert found[0]["results"] == found[1]["results"]
    assert all(1 >= one["measured"] >= 0 for one in found)  # type: ignore[operator]
    assert child.run()["used"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")
def test_forks_while_another_thread_measures(child: Child) -> None:
    found = child.finish(child.start(FORKS))
    assert found["well"]
    assert found["measured"] in (0, 1)  # on a busy machine a child of the fork is the first
    assert child.run()["used"]
