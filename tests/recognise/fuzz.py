"""Loop nests drawn at random, with their loops and without: ``python tests/recognise/fuzz.py FOLDER NESTS``.

Draws functions until there are so many, from where an earlier run with the same folder ended. Prints each
function that does not compute the same, with the seed of its source; the exit status is 1 then. Delete the
folder when the package has changed: it has the code of kernels.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("shared", "")]

from recognise.batches import SETTINGS, Batch, Setting, SharedKernels, compiled, family_of
from recognise.random_nests import source
from tilewright.loops.opt.work import RECURSION

#: Functions of one source.
COUNT = 60


@dataclass
class Progress:
    """What a run has done so far, kept in a file between runs.

    Attributes
    ----------
    seed : the next source.
    functions, replaced : by setting.
    became : products and reasons of refusals, by family.
    threads : sources, of those whose products may have threads, where calls started some; and where none did.
    wrong : functions that do not compute the same.
    """

    seed: int = 1
    functions: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    became: Counter[str] = field(default_factory=Counter)
    threads: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Progress:
        """That of an earlier run, or of none."""
        if not path.exists():
            return cls()
        found = json.loads(path.read_text(encoding="utf-8"))
        counters = {name: Counter(found[name]) for name in ("functions", "replaced", "became", "threads")}
        return cls(found["seed"], **counters, wrong=found["wrong"])

    def write(self, path: Path) -> None:
        """Keep it for the next run."""
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(vars(self), indent=1), encoding="utf-8")
        unfinished.replace(path)

    def add(self, seed: int, setting: Setting, done: Checked) -> None:
        """Count one source."""
        became, wrong = done.became, done.wrong
        self.seed = seed + 1
        self.functions[setting.name] += sum(became.values())
        self.replaced[setting.name] += sum(count for what, count in became.items() if "->" in what)
        self.became += became
        if setting.has_threads:
            self.threads[f"{setting.threads.value}, {'some' if done.threads > 1 else 'none'}"] += 1
        self.wrong += [f"seed {seed}, {setting.name}: {line}" for line in wrong]

    def table(self) -> list[str]:
        """Functions by family: drawn, replaced and wrong."""
        drawn, replaced = Counter[str](), Counter[str]()
        for what, count in self.became.items():
            family, _, found = what.partition(": ")
            drawn[family] += count
            replaced[family] += count if "->" in found else 0
        # "seed 7, plain: rows3 {'m': 33}: c": a function is wrong once, whatever the number of its calls.
        names = {(line.split(",")[0], line.split(": ", 1)[1].split()[0].rstrip(":")) for line in self.wrong}
        wrong = Counter(family_of(name) for _, name in names)
        head = f"{'family':12} {'drawn':>6} {'replaced':>8} {'wrong':>5}"
        return [head, *(f"{one:12} {drawn[one]:6} {replaced[one]:8} {wrong[one]:5}" for one in sorted(drawn))]


@dataclass(frozen=True)
class Checked:
    """One source: what became of its functions, those that do not compute the same, and the process's threads
    after the calls.
    """

    became: Counter[str]
    wrong: Sequence[str]
    threads: int


def in_a_child(work: Callable[[], Any]) -> tuple[Any, str]:
    """What some work returns, as JSON has it, and "" or how its process ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            content = json.dumps(work()).encode()
            with os.fdopen(writing, "wb") as answer:
                answer.write(content)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        content = answer.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        return None, f"the process ended with {signal.Signals(-status).name if status < 0 else status}"
    return json.loads(content), ""


def checked(seed: int, setting: Setting, kernels: SharedKernels) -> Checked:
    """One source, compiled and called."""

    def work() -> tuple[Counter[str], list[str], int]:
        with TemporaryDirectory() as folder:
            batch = compiled(source(seed, COUNT), setting, Path(folder), kernels)
            return batch.became, *_wrong_calls(batch, seed)

    done, ended = in_a_child(work)
    if ended:
        return Checked(Counter(), [f"source {ended}"], 1)
    became, wrong, threads = done
    return Checked(Counter(became), wrong, threads)


def _wrong_calls(batch: Batch, seed: int) -> tuple[list[str], int]:
    """Calls of all functions in one child; only if it crashes, each function in a child of its own."""

    def all_calls() -> tuple[list[str], int]:
        found = [line for number in range(len(batch.calls)) for line in batch.wrong(number, seed)]
        return found, len(list(Path("/proc/self/task").glob("*")))

    done, ended = in_a_child(all_calls)
    if not ended:
        lines, threads = done
        return lines, threads
    found: list[str] = []
    for number, call in enumerate(batch.calls):
        lines, ended = in_a_child(lambda: batch.wrong(number, seed))  # noqa: B023
        found += lines if not ended else [f"{call.function}: {ended}"]
    return found, 1


def main() -> None:
    """Source after source, until there have been as many functions as asked for."""
    folder, asked = Path(sys.argv[1]), int(sys.argv[2])
    sys.setrecursionlimit(RECURSION)
    gc.disable()  # each source is the work of a child
    kernels, path = SharedKernels(folder / "kernels"), folder / "progress.json"
    progress = Progress.read(path)
    while progress.functions.total() < asked:
        seed = progress.seed
        setting = SETTINGS[seed % len(SETTINGS)]
        done = checked(seed, setting, kernels)
        progress.add(seed, setting, done)
        progress.write(path)
        for line in done.wrong:
            print(f"seed {seed}, {setting.name}: {line}", flush=True)
        total, replaced = progress.functions.total(), progress.replaced.total()
        print(f"{total} functions, {replaced} replaced, {len(progress.wrong)} wrong", flush=True)
    print(*progress.table(), sep="\n")
    for name, count in progress.functions.items():
        print(f"{name:40} {count:6} functions, {progress.replaced[name]:6} replaced")
    for name, count in progress.threads.items():
        print(f"{count:6} sources with threads: {name}")
    for what, count in progress.became.most_common():
        print(f"{count:6} {what}")
    sys.exit(bool(progress.wrong))


if __name__ == "__main__":
    main()
