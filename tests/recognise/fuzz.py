"""Loop nests drawn at random, with their loops and without: ``python tests/recognise/fuzz.py SEED SECONDS``.

Prints each function that does not compute the same, with the source that it is in; the exit status is 1 then.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("shared", "")]

from recognise.calls import calls_of
from recognise.drivers import differences
from recognise.findings import found_in, reasons
from recognise.random_nests import WEIGHTS, source
from recognise.toolchains import CLANG, library
from tilewright.loops.driving.build import build
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.nests import distribute, factorise
from tilewright.loops.opt.records import OutputFormat, ProductOptions
from tilewright.loops.opt.work import Work, optimise_here
from tilewright.loops.splice import distribution
from tilewright.loops.splice.plan import ProductStrategy

#: Functions of one source.
COUNT = 40


@dataclass
class SmallSteps(UnitCompiler):
    """Replaces nests in this process, however little they compute, and cuts triangles into short strips.

    Sizes that functions are called with have several strips then, and every product is computed by a kernel.
    """

    def code(self, bitcode: bytes, form: OutputFormat, name: str) -> bytes:
        """As `UnitCompiler.code`."""
        with ExitStack() as changed:
            for module, constant, value in SMALL:
                changed.enter_context(mock.patch.object(module, constant, value))
            options = ProductOptions(strategy=ProductStrategy.TILING)
            done = optimise_here(Work(bitcode, name, form, options))
        self.remarks += done.remarks
        return done.content


#: Constants that keep small nests as they are, and values that do not.
SMALL = ((distribution, "LEAST_WORK", 1), (distribute, "LENGTH", 5), (factorise, "LENGTH", 5))


def wrong(
    seed: int,
    count: int,
    folder: Path,
    *,
    apart: bool = False,
    weights: tuple[int, ...] = WEIGHTS,
    units: UnitCompiler | None = None,
) -> tuple[list[str], Counter[str]]:
    """Where functions drawn for a seed do not compute the same, and what became of how many.

    Parameters
    ----------
    folder : for the source and its libraries.
    apart : each function runs in a process of its own, which may crash.
    weights : how often each form is drawn.
    units : what replaces loops.
    """
    text = source(seed, count, weights)
    path, units = folder / f"{seed}.c", units or UnitCompiler()
    path.write_text(text, encoding="utf-8")
    assert build(CLANG.command([path], folder / f"{seed}-replaced.so"), units) == 0
    original, replaced = library(CLANG, path, folder), ctypes.CDLL(str(folder / f"{seed}-replaced.so"))
    found: list[str] = []
    became: Counter[str] = Counter()
    for call in calls_of(text, path.name):
        product = found_in(units.remarks, call.function)
        became[product or reasons(units.remarks, call.function).split(";")[0]] += 1
        if apart:
            found += _in_a_child(lambda: differences(call, original, replaced), call.function)  # noqa: B023
        else:
            found += differences(call, original, replaced)
    return found, became


def _in_a_child(compare: object, name: str) -> Iterator[str]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        assert callable(compare)
        os.write(writing, "\n".join(compare()).encode()[: 1 << 15])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as answer:
        yield from answer.read().splitlines()
    status = os.waitpid(child, 0)[1]
    if status:
        yield f"{name}: the process ended with status {status}"


def main() -> None:
    """Seed after seed until the time is over."""
    seed, seconds = int(sys.argv[1]), float(sys.argv[2])
    start, failed, total = time.monotonic(), False, Counter[str]()
    while time.monotonic() - start < seconds:
        with TemporaryDirectory() as folder:
            units = SmallSteps() if seed % 2 else None
            found, became = wrong(seed, COUNT, Path(folder), apart=True, units=units)
        for line in found:
            print(f"seed {seed}: {line}")
        failed |= bool(found)
        total += became
        seed += 1
    for what, count in total.most_common():
        print(f"{count:6} {what}")
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
