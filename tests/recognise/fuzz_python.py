"""Nests of Python drawn at random, replaced and not: ``python tests/recognise/fuzz_python.py SEED COUNT``.

Prints each nest that does not have the same outcome; the exit status is 1 then.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("shared", "")]

from python_draws import FAMILIES, OUTCOMES, drawn_calls


def main() -> None:
    """So many nests of one seed."""
    found, became = drawn_calls(int(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.write("".join(f"{one}\n" for one in found))
    for family in (*FAMILIES, "all"):
        counts = [f"{became[family, what]} {what}" for what in OUTCOMES]
        sys.stdout.write(f"{family}: {', '.join(counts)}\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
