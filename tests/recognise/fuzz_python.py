"""Nests of Python drawn at random, replaced and not: ``python tests/recognise/fuzz_python.py SEED COUNT``.

Prints each nest that does not have the same outcome; the exit status is 1 then. Nests run replaced however
few iterations they have, and triangles are cut into short strips.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("shared", "")]

from python_draws import drawn_call

from tilewright.loops.python import calls, vector_call, vector_code

#: Constants that keep small nests as they are, and values that do not.
SMALL = (
    (calls, "FEWEST_ITERATIONS", 1),
    (vector_call, "FEWEST_ITERATIONS", 1),
    (vector_code, "STRIP", 3),
)


#: What becomes of nests.
OUTCOMES = ("drawn", "replaced", "ran replaced", "refused", "wrong")


def wrong(seed: int, count: int) -> tuple[list[str], Counter[str]]:
    """What differs among the nests drawn for a seed, and what became of how many."""
    rng = random.Random(seed)
    found: list[str] = []
    became: Counter[str] = Counter()
    with ExitStack() as changed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module, constant, value in SMALL:
            changed.enter_context(mock.patch.object(module, constant, value))
        while became["nests"] < count:
            call = drawn_call(rng, f"{seed}, {became['nests']}")
            if call is None:
                continue
            became["nests"] += 1
            for family in ("", f"{call.family}: "):
                became[f"{family}drawn"] += 1
                became[f"{family}replaced" if call.replaced else f"{family}refused"] += 1
                became[f"{family}ran replaced"] += call.ran
                became[f"{family}wrong"] += bool(call.wrong)
            if call.wrong:
                found.append(f"seed {seed}: {call.wrong}\n{call.text}")
    return found, became


def main() -> None:
    """So many nests of one seed."""
    found, became = wrong(int(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.write("".join(f"{one}\n" for one in found))
    for family in ("forms: ", "changed forms: ", "recognised: ", "statements: ", ""):
        counts = [f"{became[family + what]} {what}" for what in OUTCOMES]
        sys.stdout.write(f"{family or 'all: '}{', '.join(counts)}\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
