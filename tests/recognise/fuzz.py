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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("shared", "")]

from recognise.batches import SETTINGS, Batch, Setting, SharedKernels, compiled
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
    became : products and reasons of refusals.
    wrong : functions that do not compute the same.
    """

    seed: int = 1
    functions: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    became: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Progress:
        """That of an earlier run, or of none."""
        if not path.exists():
            return cls()
        found = json.loads(path.read_text(encoding="utf-8"))
        counters = {name: Counter(found[name]) for name in ("functions", "replaced", "became")}
        return cls(found["seed"], **counters, wrong=found["wrong"])

    def write(self, path: Path) -> None:
        """Keep it for the next run."""
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        unfinished.replace(path)

    def add(self, seed: int, setting: Setting, became: Counter[str], wrong: Sequence[str]) -> None:
        """Count one source."""
        self.seed = seed + 1
        self.functions[setting.name] += sum(became.values())
        self.replaced[setting.name] += sum(count for what, count in became.items() if "->" in what)
        self.became += became
        self.wrong += [f"seed {seed}, {setting.name}: {line}" for line in wrong]


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


def checked(seed: int, setting: Setting, kernels: SharedKernels) -> tuple[Counter[str], list[str]]:
    """One source: what became of its functions, and those that do not compute the same."""

    def work() -> tuple[Counter[str], list[str]]:
        with TemporaryDirectory() as folder:
            batch = compiled(source(seed, COUNT), setting, Path(folder), kernels)
            return batch.became, _wrong_calls(batch, seed)

    done, ended = in_a_child(work)
    return (Counter(), [ended]) if ended else (Counter(done[0]), done[1])


def _wrong_calls(batch: Batch, seed: int) -> list[str]:
    """Calls of all functions in one child; only if it crashes, each function in a child of its own."""
    numbers = range(len(batch.calls))
    done, ended = in_a_child(lambda: [line for number in numbers for line in batch.wrong(number, seed)])
    if not ended:
        return list(done)
    found: list[str] = []
    for number, call in enumerate(batch.calls):
        lines, ended = in_a_child(lambda: batch.wrong(number, seed))  # noqa: B023
        found += lines if not ended else [f"{call.function}: {ended}"]
    return found


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
        became, wrong = checked(seed, setting, kernels)
        progress.add(seed, setting, became, wrong)
        progress.write(path)
        for line in wrong:
            print(f"seed {seed}, {setting.name}: {line}", flush=True)
        total, replaced = progress.functions.total(), progress.replaced.total()
        print(f"{total} functions, {replaced} replaced, {len(progress.wrong)} wrong", flush=True)
    for name, count in progress.functions.items():
        print(f"{name:24} {count:6} functions, {progress.replaced[name]:6} replaced")
    for what, count in progress.became.most_common():
        print(f"{count:6} {what}")
    sys.exit(bool(progress.wrong))


if __name__ == "__main__":
    main()
