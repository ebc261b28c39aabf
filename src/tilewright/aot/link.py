"""Shared libraries: object files linked by the linker that this machine has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tilewright.aot.archive import Member
from tilewright.errors import LinkFailed, NoLinker

#: Linkers of ELF files on the path, the best first; those of GNU take foreign objects seldom.
LINKERS = ("ld.lld", "ld.lld-19", "ld")
#: The emulation of each architecture, as both LLD and GNU's linker name it.
EMULATIONS = {
    "x86_64": "elf_x86_64",
    "aarch64": "aarch64linux",
    "powerpc64le": "elf64lppc",
    "riscv64": "elf64lriscv",
}


def linker() -> tuple[str, ...]:
    """The command of a linker: LLD of the ziglang wheel, or one on the path.

    Raises
    ------
    NoLinker
    """
    if find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "ld.lld")
    for name in LINKERS:
        found = shutil.which(name)
        if found is not None:
            return (found,)
    raise NoLinker(tried=", ".join(("python -m ziglang ld.lld", *LINKERS)))


def shared_library(
    members: Sequence[Member], exports: Sequence[str], name: str, arch: str, behind: Path | None = None
) -> bytes:
    """A shared library of object files.

    Parameters
    ----------
    exports : the symbols that others see; all others stay inside.
    name : its name for the dynamic linker, such as "libfast.so".
    arch : the architecture of the objects.
    behind : a shared library that is loaded with it, from this very path. Its own name does not matter: with
        that of the library which this one replaces, such as libblas.so.3, the loader would find this one.

    Functions of the C library stay undefined, and are found in the process that loads the library: every
    program has one, and the same file serves any. Threads may be inside, so it is never unloaded.

    Raises
    ------
    NoLinker, LinkFailed
    """
    with TemporaryDirectory() as folder:
        root = Path(folder)
        paths = []
        for number, member in enumerate(members):
            path = root / f"{number}.o"
            path.write_bytes(member.content)
            paths.append(str(path))
        script, output = root / "exports", root / name
        listed = "".join(f"{symbol};" for symbol in exports)
        script.write_text(f"{{ global: {listed} local: *; }};\n", encoding="utf-8")
        options = ["-shared", "-m", EMULATIONS[arch], "-soname", name, "--version-script", str(script)]
        options += ["-z", "nodelete", "-z", "relro", "-z", "noexecstack", "--build-id=sha1", "--gc-sections"]
        if behind is not None:
            paths += ["--no-as-needed", str(_loaded_by_path(behind.absolute(), root / "behind.so", arch))]
        _link([*options, "-o", str(output), *paths], name)
        return output.read_bytes()


def _loaded_by_path(library: Path, stub: Path, arch: str) -> Path:
    """An empty library whose name for the dynamic linker is the path of another.

    The other is an input too, so that the linker refuses a file that is no library of this architecture.
    """
    options = ["-shared", "-m", EMULATIONS[arch], "-soname", str(library)]
    _link([*options, "-o", str(stub), str(library)], stub.name)
    return stub


def _link(words: Sequence[str], name: str) -> None:
    """Run the linker.

    Raises
    ------
    NoLinker, LinkFailed
    """
    command = [*linker(), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr or done.stdout).strip()
        raise LinkFailed(name=name, command=" ".join(command[:3]), reason=reason[:2000])
