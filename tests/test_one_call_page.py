"""docs/one-call.md: a first call makes the stops of the page in their order, a second one runs no Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "one-call.md").read_text(encoding="utf-8")
#: Function and file of each stop.
STOPS = [
    (path, function)
    for function, path in re.findall(r"^\d+\. \*\*.*?\*\*: `([\w.]+)` in `([\w/.]+)`", PAGE, re.MULTILINE)
]
#: Prints the functions of the package that two calls enter, one a line, and dashes after each call.
TRACED = """
import sys
import numpy as np
import tilewright as tw
a, b = np.random.rand(1000, 300), np.random.rand(300, 2000)
entered = []
def note(frame, event, _):
    _, inside, path = frame.f_code.co_filename.partition("/src/tilewright/")
    if event == "call" and inside:
        entered.append(f"{path} {frame.f_code.co_qualname}")
for _ in range(2):
    sys.setprofile(note)
    tw.matmul(a, b)
    sys.setprofile(None)
    entered.append("--")
print("\\n".join(entered))
"""


def test_a_call_makes_the_stops() -> None:
    assert len(STOPS) == 12
    settings = {**os.environ, "TILEWRIGHT_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", TRACED], env=settings, capture_output=True, text=True, check=True
    )
    first, second, _ = done.stdout.split("--\n")
    entered, at = first.splitlines(), -1
    for path, function in STOPS:
        assert f"{path} {function}" in entered[at + 1 :], (path, function)
        at = entered.index(f"{path} {function}", at + 1)
    assert second == ""
