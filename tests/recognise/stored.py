"""LLVM IR of sources, stored for machines without their compilers: ``python tests/recognise/stored.py``."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import llvmlite.binding as llvm

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("shared", "")]

from recognise.calls import SOURCES
from recognise.toolchains import RUSTC, SOURCE_TOOLCHAINS
from tilewright.llvm.backends import initialize
from tilewright.llvm.canonical import inline_calls, shape_loops
from tilewright_cc.invocation import Invocation

FOLDER = Path(__file__).parent / "ir"
#: What is stored of each source: what its compiler writes, which is shaped or has its calls inlined.
STORED: dict[str, Callable[[Any, Any], None] | None] = {
    "forms.c": shape_loops,
    "rows.c": shape_loops,
    "products.f90": None,
    "products.rs": inline_calls,
}

#: What no reader of loops looks at.
_ATTACHED = re.compile(r", !(tbaa|llvm\.loop|srcloc|alias\.scope|noalias) !\d+")
_UNREAD = re.compile(r"^(; ModuleID|source_filename|\^|!).*\n", re.MULTILINE)


def stored_text(source: str) -> str:
    """The IR of a source, as its compiler writes it now."""
    toolchain = SOURCE_TOOLCHAINS[source]
    with TemporaryDirectory() as folder:
        bitcode = Path(folder) / "unit.bc"
        if toolchain is RUSTC:
            words = [*(RUSTC.program or ()), *RUSTC.options, "-C", "no-prepopulate-passes"]
            no_folder = f"--remap-path-prefix={SOURCES}/="  # panics name their source
            command = [*words, no_folder, "--emit=llvm-bc", "-o", str(bitcode), str(SOURCES / source)]
        else:
            found = Invocation.read(toolchain.command([SOURCES / source], Path("unit.so")))
            written = bitcode.with_suffix(".ll")
            subprocess.run(found.emitting(found.sources[0], written), check=True, cwd=folder)
            command = found.assembling(written, bitcode)
        subprocess.run(command, check=True, cwd=folder)
        initialize()
        module = llvm.parse_bitcode(bitcode.read_bytes())
    change = STORED[source]
    if change is not None:
        change(module, llvm.Target.from_triple(module.triple).create_target_machine())
    text = _ATTACHED.sub("", str(module))
    # Facts of single instructions stay, with what they name.
    named = set(re.findall(r"(?<=[ ,(])![0-9]+\b", re.sub(r"^!.*$", "", text, flags=re.MULTILINE)))
    lines = [
        line for line in text.splitlines() if not _UNREAD.match(f"{line}\n") or line.split(" = ")[0] in named
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name in STORED:
        (FOLDER / f"{name}.ll").write_text(stored_text(name), encoding="utf-8")
