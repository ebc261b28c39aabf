"""The plain nests as optimising compilers write them: what is recognised, as a table.

``python tests/recognise/optimised.py`` prints how many of the eleven shapes in three orders are replaced, for
each compiler, level and machine, and each reason of a refusal; ``--run`` also calls them, with and without
their loops, and compares.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("shared", "")]

from recognise.plain_nests import ORDERS, PLAIN_NESTS, PlainNest, c_source, fortran_source
from recognise.toolchains import CLANG, FLANG, SECONDS, ZIG, Toolchain
from tilewright.loops.opt.optimise import optimise
from tilewright.loops.opt.records import Optimised

_C_TYPES = {"float": ctypes.c_float, "double": ctypes.c_double, "int": ctypes.c_int}
#: Elements of each operand of a call; no size is larger than its root.
_ELEMENTS = 10_000
_SIZES = [(0, 5, 7), (5, 0, 7), (5, 7, 0), (1, 1, 1), (1, 9, 33), (17, 1, 31), (13, 35, 1), (64, 64, 64)]


@dataclass(frozen=True)
class Configuration:
    """A compiler with a level of optimisation and a machine."""

    toolchain: Toolchain
    level: str
    native: bool

    @property
    def name(self) -> str:
        """Its name in tables."""
        return f"{self.toolchain.name} {self.level} {'native' if self.native else 'generic'}"

    def bitcode(self, nests: Sequence[tuple[PlainNest, str]], folder: Path) -> Path:
        """Some shapes and orders as its optimised bitcode."""
        fortran = self.toolchain is FLANG
        source, made = folder / ("nests.f90" if fortran else "nests.c"), folder / "nests.bc"
        write = fortran_source if fortran else c_source
        source.write_text("\n".join(write(*one) for one in nests), encoding="utf-8")
        machine = ["-march=native"] if self.native else []
        if self.toolchain is ZIG:
            machine = ["-mcpu=native" if self.native else "-mcpu=baseline"]
        options = [self.level, "-ffast-math", "-fPIC", *machine, "-emit-llvm", "-c", source.name]
        self._run([*options, "-o", made.name], folder)
        return made

    def library(self, bitcode: Path) -> ctypes.CDLL:
        """The bitcode as it is, as a library."""
        compiler = CLANG if self.toolchain is FLANG else self.toolchain
        made = bitcode.with_suffix(".original.so")
        assert compiler.program is not None
        command = [*compiler.program, "-O1", "-shared", "-fPIC", bitcode.name, "-o", made.name]
        subprocess.run(command, cwd=bitcode.parent, check=True, capture_output=True, timeout=SECONDS)
        return ctypes.CDLL(str(made))

    def _run(self, options: Sequence[str], folder: Path) -> None:
        assert self.toolchain.program is not None
        command = [*self.toolchain.program, *options]
        done = subprocess.run(
            command, cwd=folder, check=False, capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, done.stderr


#: zig compiles at one level, whichever is asked for.
CONFIGURATIONS = [
    Configuration(toolchain, level, native)
    for toolchain, levels in ((CLANG, ("-O2", "-O3")), (FLANG, ("-O2", "-O3")), (ZIG, ("-O2",)))
    for level in levels
    for native in (False, True)
]
EVERY_NEST = list(product(PLAIN_NESTS, ORDERS))


def replaced_in(done: Optimised) -> set[str]:
    """The functions in which a product was found."""
    return {remark.where.function for remark in done.remarks if remark.replaced}


def refusals(done: Optimised) -> Counter[str]:
    """Reasons of refusals in functions in which nothing was found, without names."""
    found = replaced_in(done)
    texts = (one.text for one in done.remarks if one.where.function not in found)
    return Counter(re.sub(r"%[\w.]+", "%", text.split(" (line")[0]) for text in texts)


def wrong(
    nests: Sequence[tuple[PlainNest, str]], libraries: Sequence[ctypes.CDLL], seed: int, draws: int
) -> Iterator[str]:
    """Calls that do not compute the same: sizes of 0 and 1, odd ones, operands that overlap."""
    random, numbers = Random(seed), np.random.default_rng(seed)
    for nest, order in nests:
        sizes = [*_SIZES, *(tuple(random.randrange(90) for _ in range(3)) for _ in range(draws))]
        for m, n, k in sizes if not nest.fixed else [(nest.fixed,) * 3]:
            dtype = np.dtype(nest.dtype)
            apart = _ELEMENTS * dtype.itemsize
            near = dtype.itemsize * random.randrange(m * n + 2)
            places = [(0, apart, 2 * apart)]
            if not nest.restrict and dtype.kind == "i":  # sums that overlap are exact if they may wrap
                places += [(0, 0, apart), (0, apart, 0), (0, near, apart), (0, apart, near)]
            for place in places:
                before = numbers.integers(-4, 5, 3 * _ELEMENTS).astype(dtype)
                original, replaced = (
                    _called(library, nest, order, before, place, (m, n, k)) for library in libraries
                )
                if not np.array_equal(original, replaced):
                    yield f"{nest.name}_{order} of {m}, {n}, {k} at {place}"


def _called(
    library: ctypes.CDLL,
    nest: PlainNest,
    order: str,
    before: np.ndarray,
    place: tuple[int, ...],
    sizes: tuple[int, int, int],
) -> np.ndarray:
    """The operands after a call."""
    memory = before.copy()
    function = getattr(library, f"{nest.name}_{order}")
    function.restype = None
    size = ctypes.c_int if nest.index == "int" else ctypes.c_long
    pointers = [ctypes.c_void_p(memory.ctypes.data + offset) for offset in place]
    function(*pointers, *map(size, sizes), _C_TYPES[nest.element](2))
    return memory


def checked(
    configuration: Configuration, nests: Sequence[tuple[PlainNest, str]], folder: Path, draws: int
) -> tuple[Optimised, list[str]]:
    """Nests with products in the place of their loops, and calls of them that are wrong."""
    bitcode = configuration.bitcode(nests, folder)
    done = optimise(bitcode.read_bytes(), ".o")
    made = folder / "replaced.o"
    made.write_bytes(done.content)
    compiler = CLANG.program or ZIG.program
    assert compiler is not None
    linked = folder / "replaced.so"
    subprocess.run(
        [*compiler, "-shared", str(made), "-o", str(linked)], check=True, capture_output=True, timeout=SECONDS
    )
    kept = nests
    if configuration.toolchain is FLANG:  # Fortran's arguments do not overlap
        kept = [(replace(nest, restrict=True), order) for nest, order in nests]
    libraries = configuration.library(bitcode), ctypes.CDLL(str(linked))
    return done, list(wrong(kept, libraries, 1, draws))


def main() -> None:
    """Print the table."""
    runs = "--run" in sys.argv
    for configuration in CONFIGURATIONS:
        if configuration.toolchain.program is None:
            continue
        with TemporaryDirectory() as name:
            if runs:
                done, found = checked(configuration, EVERY_NEST, Path(name), 8)
            else:
                bitcode = configuration.bitcode(EVERY_NEST, Path(name))
                done, found = optimise(bitcode.read_bytes(), ".ll"), []
        print(f"{configuration.name:20} {len(replaced_in(done))} of {len(EVERY_NEST)}", *found, flush=True)
        for reason, count in refusals(done).most_common():
            print(f"    {count:3} {reason}")


if __name__ == "__main__":
    main()
