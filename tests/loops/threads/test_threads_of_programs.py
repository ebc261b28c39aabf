"""Programs whose replaced nests have threads: the same bits, and threads where they may be, no others."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from recognise.toolchains import CLANG, SECONDS
from shares import EVERY_TEST_RUNS
from support import host_rows
from tiers import each_value

from tilewright.loops.driving.build import build
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt.records import ProductOptions
from tilewright.loops.splice.threads import ThreadSource
from tilewright.machine.host import host_facts, host_machine
from tilewright.machine.machine import Machine
from tilewright.settings import read_settings

pytestmark = [
    pytest.mark.skipif(CLANG.program is None, reason="clang is not installed"),
    pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads of programs are Linux's"),
]
several_cores = pytest.mark.skipif(host_facts(read_settings()).usable_cores < 2, reason="one core")

HERE = Path(__file__).parent
#: Rows of the matrices: large enough for threads, also in the batch of 564 small products.
N = "380"
NESTS = 4

Program = Callable[..., list[str]]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as found:
        yield Path(found)


def compiled(folder: Path, name: str, source: ThreadSource, machine: Machine) -> Path:
    """The object of a file, with its nests replaced."""
    made = folder / f"{Path(name).stem}-{source.value}-{machine.isa.name}.o"
    if not made.exists():
        units = UnitCompiler(ProductOptions(target=machine, threads=source))
        command = [*clang(), "-O2", "-ffast-math", "-fPIC", "-c", str(HERE / name), "-o", str(made)]
        assert build(command, units) == 0
        assert units.remarks
        assert all(remark.replaced for remark in units.remarks)
    return made


def clang() -> tuple[str, ...]:
    assert CLANG.program is not None
    return CLANG.program


def linked(folder: Path, objects: list[Path], *options: str, compiler: tuple[str, ...] = ()) -> Program:
    """The program of program.c and objects."""
    made = folder / f"program-{abs(hash((*objects, options, compiler)))}"
    if len(objects) > 1:
        options = ("-DTWO_FILES", *options)
    command = [*(compiler or clang()), "-O1", "-w", *options, str(HERE / "program.c")]
    command += [*map(str, objects), "-o", str(made), "-lm", "-lpthread", "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        pytest.skip(f"{command[0]} {' '.join(options)} does not link: {done.stderr.strip()[-200:]}")

    def run(*words: str, **variables: str) -> list[str]:
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        done = subprocess.run(
            [made, *words], capture_output=True, text=True, timeout=SECONDS, check=True, env=kept | variables
        )
        return done.stdout.splitlines()

    return run


@pytest.fixture(scope="module", params=["host", pytest.param("avx2", marks=pytest.mark.exhaustive)])
def machine(request: pytest.FixtureRequest) -> Machine:
    if request.param == "host":
        return host_machine()
    row = next((row for row in host_rows() if row.name == request.param), None)
    if row is None or row is host_machine().isa:
        pytest.skip(f"not a further row of this host: {request.param}")
    return host_machine().with_isa(row)


@pytest.fixture(scope="module")
def own(folder: Path, machine: Machine) -> Program:
    """A program of two files with a pool."""
    names = ("nests.c", "nests_triangle.c")
    return linked(folder, [compiled(folder, name, ThreadSource.OWN, machine) for name in names])


@pytest.fixture(scope="module")
def nests(folder: Path, machine: Machine) -> Path:
    """An object that uses OpenMP where it is linked."""
    return compiled(folder, "nests.c", ThreadSource.OPENMP, machine)


@pytest.fixture(scope="module")
def bits(own: Program) -> list[str]:
    """What one thread computes."""
    *found, threads, _ = own("results", N, TILEWRIGHT_NUM_THREADS="1")
    assert threads == "1 threads"
    assert len(set(found)) == NESTS
    return found


# --- a pool ---------------------------------------------------------------------------------------


@several_cores
def test_files_share_a_pool(own: Program, bits: list[str]) -> None:
    """The variable counts the calling thread, and there is one pool, though each object has its code."""
    for turn in range(20 if EVERY_TEST_RUNS else 3):
        variable = ("TILEWRIGHT_NUM_THREADS", "OMP_NUM_THREADS")[turn % 2]
        assert own("results", N, **{variable: "2"}) == [*bits, "2 threads", "0 regions"]


def test_a_threads_variable_of_one(own: Program, bits: list[str]) -> None:
    variables = {"TILEWRIGHT_NUM_THREADS": "4", "OMP_NUM_THREADS": "1"}
    assert own("results", N, **variables) == [*bits, "1 threads", "0 regions"]


@several_cores
def test_little_work_starts_no_threads(own: Program) -> None:
    assert own("results", "48")[NESTS:] == ["1 threads", "0 regions"]


def test_calls_at_the_same_time(own: Program, bits: list[str]) -> None:
    assert own("callers", N, "20" if EVERY_TEST_RUNS else "3") == [*bits, "0 wrong"]


@several_cores
def test_forks(own: Program, bits: list[str]) -> None:
    """Children and their children start threads of their own, and end."""
    assert own("forks", N, TILEWRIGHT_NUM_THREADS="2") == [*bits, "2 threads"] * 6


def test_the_end_of_a_program_whose_threads_compute(own: Program) -> None:
    for _ in range(20 if EVERY_TEST_RUNS else 5):
        assert own("exit", N) == []


def test_the_rounding_of_the_caller(own: Program, bits: list[str]) -> None:
    several = own("upward", N)
    assert several == own("upward", N, TILEWRIGHT_NUM_THREADS="1")
    assert several[0] != bits[0]


@several_cores
def test_a_library_is_unloaded(folder: Path, own: Program, machine: Machine, bits: list[str]) -> None:
    """Its threads end before its code goes."""
    made = folder / f"libnests-{machine.isa.name}.so"
    objects = compiled(folder, "nests.c", ThreadSource.OWN, machine)
    subprocess.run([*clang(), "-shared", objects, "-o", made, "-lpthread"], check=True, timeout=SECONDS)
    assert own("unload", N, str(made), TILEWRIGHT_NUM_THREADS="2") == [f"{bits[0]} 2 1"] * 5


@several_cores
def test_a_pool_knows_parallel_regions(folder: Path, machine: Machine, bits: list[str]) -> None:
    objects = compiled(folder, "nests.c", ThreadSource.OWN, machine)
    program = linked(folder, [objects], "-DPRETENDED")
    assert program("inside", N)[:3] == bits[:3]
    assert program("inside", N)[NESTS:] == ["1 threads", "0 regions"]
    assert program("results", N, TILEWRIGHT_NUM_THREADS="2")[NESTS:] == ["2 threads", "0 regions"]


# --- the program's OpenMP -------------------------------------------------------------------------


@cache
def _pretended(folder: Path, nests: Path) -> Program:
    return linked(folder, [nests], "-DPRETENDED")


def test_parallel_regions_for_products(folder: Path, nests: Path, bits: list[str]) -> None:
    """Each kind of nest asks for some; the runtime is one that counts them."""
    *found, threads, regions = _pretended(folder, nests)("results", N)
    assert found[:3] == bits[:3]
    assert threads == "1 threads"
    assert int(regions.split()[0]) >= 3
    assert _pretended(folder, nests)("results", "48")[NESTS:] == ["1 threads", "0 regions"]


def test_no_parallel_region_inside_of_another(folder: Path, nests: Path, bits: list[str]) -> None:
    found = _pretended(folder, nests)("inside", N)
    assert found[:3] == bits[:3]
    assert found[NESTS:] == ["1 threads", "0 regions"]


def test_without_openmp(folder: Path, nests: Path, bits: list[str]) -> None:
    found = linked(folder, [nests])("results", N)
    assert found[:3] == bits[:3]
    assert found[NESTS:] == ["1 threads", "0 regions"]


@cache
def _runtime(folder: Path, nests: Path, name: str) -> Program:
    """A program with the OpenMP of LLVM or of GNU, whose compiler it takes."""
    if name == "llvm":
        return linked(folder, [nests], "-fopenmp=libomp")
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed")
    return linked(folder, [nests], "-fopenmp", compiler=(gcc,))


runtimes = pytest.mark.parametrize("name", ["llvm", "gnu"])


@runtimes
@each_value
def test_threads_of_openmp(folder: Path, nests: Path, bits: list[str], name: str) -> None:
    program = _runtime(folder, nests, name)
    for threads in ("1", "3"):
        found = program("results", N, OMP_NUM_THREADS=threads, TILEWRIGHT_NUM_THREADS="7")
        assert found[:3] == bits[:3]
        assert found[NESTS] == f"{threads} threads"


@runtimes
def test_a_parallel_region_of_the_program(folder: Path, nests: Path, bits: list[str], name: str) -> None:
    """Both of its threads compute, alone, though the program allows nested regions."""
    *found, inside, outside = _runtime(folder, nests, name)("region", N)
    assert found[:3] == bits[:3]
    assert inside == "2 threads inside"
    assert outside == "4 outside"


@runtimes
@each_value
def test_calls_at_the_same_time_on_openmp(folder: Path, nests: Path, bits: list[str], name: str) -> None:
    found = _runtime(folder, nests, name)("callers", N, "20" if EVERY_TEST_RUNS else "2", OMP_NUM_THREADS="2")
    assert found[:3] == bits[:3]
    assert found[NESTS:] == ["0 wrong"]


@runtimes
def test_the_rounding_of_openmp(folder: Path, nests: Path, own: Program, name: str) -> None:
    """The runtime's threads have started in another mode, which they have again afterwards."""
    found = _runtime(folder, nests, name)("upward", N, OMP_NUM_THREADS="2")
    assert found[:3] == own("upward", N, TILEWRIGHT_NUM_THREADS="1")[:3]


@runtimes
def test_forks_beside_openmp(folder: Path, nests: Path, bits: list[str], name: str) -> None:
    """GNU's runtime would wait for threads of the parent; LLVM's starts new ones."""
    found = _runtime(folder, nests, name)("forks", N, OMP_NUM_THREADS="2")
    each = NESTS + 1
    runs = [found[number : number + each] for number in range(0, len(found), each)]
    assert [run[:3] for run in runs] == [bits[:3]] * 6
    children = "1 threads" if name == "gnu" else "2 threads"
    parent = "2 threads"
    assert [run[NESTS] for run in runs] == [children, children, parent, children, children, parent]
