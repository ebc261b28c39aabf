"""Many functions of one C file, compiled with their loops replaced and without, and called.

What takes longest of a replaced nest is its kernel, and few kernels serve thousands of nests. `SharedKernels`
therefore compiles each kernel once, into an object that the library of every batch is linked with; all other
code is made and optimised as `tilewright opt` does.
"""

from __future__ import annotations

import ctypes
import hashlib
import pickle
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import llvmlite.binding as llvm

from recognise.calls import Call, calls_of
from recognise.drivers import differences
from recognise.findings import found_in, reasons
from recognise.toolchains import CLANG, SECONDS
from tilewright.llvm.matrix import PREFIX, lower_matrices
from tilewright.llvm.target import parse, target_machine
from tilewright.loops.nests import distribute, factorise
from tilewright.loops.opt import work
from tilewright.loops.opt.records import OutputFormat, ProductOptions, Remark
from tilewright.loops.opt.work import Work, optimise_here, target_machine_of
from tilewright.loops.splice import distribution, kernel_call, splice, team_runtime
from tilewright.loops.splice.kernels import EmbeddedKernel, Kernels
from tilewright.loops.splice.plan import ProductStrategy
from tilewright.loops.splice.splice import Splicer
from tilewright.loops.splice.threads import ThreadSource
from tilewright.machine.machine import Machine
from tilewright.threads import program_pool

#: Multiply-adds that small nests have threads from, so that sizes are drawn above and below.
TEAM_WORK = 1 << 12
#: Constants that keep small nests as they are, and values that do not.
SMALL = (
    *((distribution, "LEAST_WORK", 1), (distribute, "LENGTH", 5), (factorise, "LENGTH", 5)),
    *((kernel_call, "TEAM_WORK", TEAM_WORK), (splice, "TEAM_WORK", TEAM_WORK)),
    *((program_pool, "TEAM_WORK", TEAM_WORK), (program_pool, "WAKE_WORK", TEAM_WORK)),
    (team_runtime, "OPENMP_WORK", TEAM_WORK),
)
#: LLVM IR as the front end writes it.
PLAIN = ("-O2", "-Xclang", "-disable-llvm-passes")


@contextmanager
def small_steps() -> Iterator[None]:
    """Nests are replaced however little they compute, triangles cut into short strips, and products shared
    among threads.

    Sizes that functions are called with have several strips and tasks then.
    """
    with ExitStack() as changed:
        for module, constant, value in SMALL:
            changed.enter_context(mock.patch.object(module, constant, value))
        yield


@dataclass(frozen=True)
class Setting:
    """One way of compiling a batch.

    Attributes
    ----------
    level : clang's options for the LLVM IR in which loops are looked for.
    machine : clang's option for the processor.
    small : whether nests are replaced however little they compute, by kernels that read operands in place.
    finished : whether LLVM's -O3 follows, as users have it; it takes half of the time, most of it for the
        program's own loops. Else its -O1.
    threads : whose threads run products.
    """

    level: tuple[str, ...]
    machine: tuple[str, ...] = ()
    small: bool = True
    finished: bool = False
    threads: ThreadSource = ThreadSource.OFF

    @property
    def name(self) -> str:
        """Its name in tables."""
        level = "plain" if self.level == PLAIN else self.level[0]
        words = ["any size" if self.small else "", "finished by -O3" if self.finished else ""]
        words += [f"{self.threads.value} threads" if self.has_threads else ""]
        return ", ".join(filter(None, [" ".join([level, *self.machine]), *words]))

    @property
    def has_threads(self) -> bool:
        """Whether products may have threads."""
        return self.threads is not ThreadSource.OFF


#: Each seed is compiled with the next of these.
SETTINGS = (
    Setting(PLAIN),
    Setting(("-O2",)),
    Setting(PLAIN, threads=ThreadSource.OWN),
    Setting(PLAIN, finished=True),
    Setting(PLAIN, small=False),
    Setting(("-O3",), ("-march=native",)),
    Setting(PLAIN, threads=ThreadSource.OPENMP),
    Setting(("-O1",)),
    Setting(("-O2",), ("-march=native",), threads=ThreadSource.OWN),
    Setting(PLAIN, ("-march=native",), small=False, finished=True),
    Setting(("-O3",)),
    Setting(("-O2",), threads=ThreadSource.OPENMP),
)


class SharedKernels:
    """The objects of kernels in a folder, each compiled when a product first needs it.

    Parameters
    ----------
    folder : where they stay, for one state of the sources of kernels.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._make, self._link = Kernels._make, Splicer.link_kernels
        self.taken: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Modules call kernels of the folder in the place of kernels of their own."""
        shared = self

        def make(
            self: Kernels, problem: Any, machine: Machine, depth: int | None, *, inlined: bool, threads: bool
        ) -> EmbeddedKernel:
            if inlined:
                return shared._make(self, problem, machine, depth, inlined=True, threads=threads)
            return shared._found(problem, machine, depth, threads=threads)

        def link(self: Splicer, module: Any) -> None:
            taken = [one for one in self._kernels._taken.values() if not one.inlined]
            shared.taken |= {shared._object(one, module) for one in taken}
            with mock.patch.object(Kernels, "texts", return_value=()):
                shared._link(self, module)

        with mock.patch.object(Kernels, "_make", make), mock.patch.object(Splicer, "link_kernels", link):
            yield

    def _found(self, problem: Any, machine: Machine, depth: int | None, *, threads: bool) -> EmbeddedKernel:
        key = hashlib.sha256(repr((problem, machine, depth, threads)).encode()).hexdigest()[:16]
        path = self._folder / f"{key}.pickle"
        if not path.exists():
            own = Kernels(f"shared_{key}_")
            kernel = self._make(own, problem, machine, depth, inlined=False, threads=threads)
            _write_complete(path, pickle.dumps(kernel))
        found: EmbeddedKernel = pickle.loads(path.read_bytes())
        return found

    def _object(self, kernel: EmbeddedKernel, module: Any) -> str:
        path = self._folder / f"{kernel.name}.o"
        if not path.exists():
            part = parse(kernel.text, "kernel")
            part.triple, part.data_layout = module.triple, module.data_layout
            if PREFIX in kernel.text:
                lower_matrices(part, target_machine(module.triple, "", ""))
            target = target_machine_of(part, Work(b"", "kernel", OutputFormat.OBJECT, ProductOptions()))
            _write_complete(path, bytes(target.emit_object(part)))
        return str(path)


def _write_complete(path: Path, content: bytes) -> None:
    """A run may be stopped at any time, and goes on with the files that it wrote."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


@dataclass(frozen=True)
class Batch:
    """Functions of one source as two libraries, and the remarks on their nests.

    The process that calls functions loads the libraries: OpenMP's threads are not there for its children.
    """

    calls: tuple[Call, ...]
    original: str
    replaced: str
    remarks: Sequence[Remark]

    def wrong(self, number: int, seed: int) -> list[str]:
        """Calls of one function that do not compute the same; the seed draws their sizes."""
        libraries = ctypes.CDLL(self.original), ctypes.CDLL(self.replaced)
        return differences(self.calls[number], *libraries, Random(1000 * seed + number))

    @property
    def became(self) -> Counter[str]:
        """How many functions of each family became which product, or were refused for which reason.

        ``finished: mk,kn->mn set then relu``.
        """
        names = [call.function for call in self.calls]
        return Counter(f"{family_of(name)}: {self._became(name)}" for name in names)

    def _became(self, name: str) -> str:
        return found_in(self.remarks, name) or reasons(self.remarks, name).split(";")[0]


def family_of(function: str) -> str:
    """The form that a function was drawn of."""
    return function.rstrip("0123456789")


def compiled(text: str, setting: Setting, folder: Path, kernels: SharedKernels) -> Batch:
    """The functions of a C source, compiled as `tilewright opt` does, and by clang alone."""
    path, bitcode, made = (folder / name for name in ("nests.c", "nests.bc", "replaced.o"))
    path.write_text(text, encoding="utf-8")
    options = ("-ffast-math", "-fPIC", "-w", *setting.machine)
    _clang(*setting.level, *options, "-emit-llvm", "-c", str(path), "-o", str(bitcode))
    original, replaced = str(folder / "original.so"), str(folder / "replaced.so")
    _clang("-O1", *options, "-shared", str(path), "-o", original, "-lm")
    strategy = ProductStrategy.TILING if setting.small else ProductStrategy.AUTO
    chosen = ProductOptions(strategy=strategy, threads=setting.threads)
    job = Work(bitcode.read_bytes(), path.name, OutputFormat.OBJECT, chosen)
    with ExitStack() as changed:
        changed.enter_context(kernels.used())
        if setting.small:
            changed.enter_context(small_steps())
        if not setting.finished:
            changed.enter_context(mock.patch.object(work, "optimise_module", _optimise_quickly))
        done = optimise_here(job)
    made.write_bytes(done.content)
    runtime = ["-fopenmp=libgomp", "-Wl,--no-as-needed"] if setting.threads is ThreadSource.OPENMP else []
    _clang("-shared", *runtime, str(made), *sorted(kernels.taken), "-o", replaced, "-lm", "-lpthread")
    return Batch(calls_of(text, path.name), original, replaced, done.remarks)


def _optimise_quickly(module: Any, target_machine: Any) -> None:
    """LLVM's -O1 without copies of loops."""
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_interleaving = options.loop_unrolling = False
    builder = llvm.create_pass_builder(target_machine, options)
    builder.getModulePassManager().run(module, builder)


def _clang(*options: str) -> None:
    assert CLANG.program is not None
    done = subprocess.run(
        [*CLANG.program, *options], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
