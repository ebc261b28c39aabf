"""The linker that rustc starts: `python -m tilewright.driving.link_rust JOB.json ARGUMENTS...`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tilewright.driving.processes import run

#: How LLVM bitcode begins.
_BITCODE = b"BC\xc0\xde"
#: What rustc tells a linker that optimises; ours is given machine code.
_FOR_PLUGINS = ("-Wl,-plugin-opt=", "-plugin-opt=", "-Wl,--lto-", "--lto-")


def main(arguments: Sequence[str]) -> int:
    """Replace the loops of each object that is bitcode, then link as rustc asked."""
    job = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    words = [word for word in arguments[1:] if not word.startswith(_FOR_PLUGINS)]
    for word in words:
        path = Path(word)
        if path.suffix == ".o" and path.is_file() and _begins(path, _BITCODE):
            code = path.with_suffix(".tilewright.o")
            status = run([sys.executable, "-m", "tilewright", "opt", word, "-o", str(code), *job["options"]])
            if status:
                return status
            code.replace(path)
    return run([job["linker"], *words])


def _begins(path: Path, start: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(start)) == start


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
