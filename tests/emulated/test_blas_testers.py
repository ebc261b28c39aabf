"""The reference level-3 testers of AArch64 and POWER on our library under qemu, error exits included.

They come from Debian's packages, unpacked one beside the other into a folder for each architecture, whose
parent the variable TILEWRIGHT_FOREIGN_DEBIAN names. For arm64 (or ppc64el):

    dpkg --add-architecture arm64 && apt-get update
    apt-get download libblas-test:arm64 libblas3:arm64 libgfortran5:arm64 libc6:arm64 libgcc-s1:arm64
    for package in *_arm64.deb; do dpkg -x $package $TILEWRIGHT_FOREIGN_DEBIAN/arm64; done

The loader lib64/ld64.so.2 of ppc64el is a link to an absolute path; a copy of what it means replaces it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from blas_calls import check_tester
from tiers import exhaustive

import tilewright as tw
from tilewright.aot.blas.build import build_blas
from tilewright.aot.blas.files import blas_files
from tilewright.aot.form import LibraryForm
from tilewright.errors import NoLinker
from tilewright.machine.catalog import find_machine
from tilewright.records import dataclass

ROOT = os.environ.get("TILEWRIGHT_FOREIGN_DEBIAN")


@dataclass(frozen=True)
class Foreign:
    """An architecture of Debian, the targets of the library, and qemu's CPUs that take each of them."""

    debian: str
    multiarch: str
    qemu: str
    targets: tuple[str, ...]
    cpus: tuple[str, ...]

    @property
    def root(self) -> Path:
        """The folder of its packages."""
        return Path(ROOT or "/none") / self.debian

    @property
    def testers(self) -> Path:
        """The folder of the testers and what they read."""
        return self.root / "usr" / "lib" / self.multiarch / "blas"


FOREIGN = (
    Foreign(
        *("arm64", "aarch64-linux-gnu", "qemu-aarch64"),
        ("neoverse-n1", "neoverse-v1"),
        ("neoverse-n1", "max"),
    ),
    Foreign(*("ppc64el", "powerpc64le-linux-gnu", "qemu-ppc64le"), ("pwr9", "pwr10"), ("power9", "power10")),
)


@cache
def library(foreign: Foreign) -> Path:
    """The shared library of an architecture, made once."""
    made = build_blas([find_machine(target) for target in foreign.targets])
    try:
        files = blas_files(made, (LibraryForm.SHARED,), tw.__version__)
    except NoLinker as reason:
        pytest.skip(str(reason))
    path = Path(mkdtemp(prefix="tilewright-blas-")) / "libtilewright_blas.so"
    content = files[path.name]
    assert isinstance(content, bytes)
    path.write_bytes(content)
    return path


def run(foreign: Foreign, cpu: str, tester: str, given: str, folder: Path) -> str:
    """What a tester prints and writes with the library in front of the reference implementation."""
    parts = (foreign.testers, foreign.testers.parent, foreign.root / "lib" / foreign.multiarch)
    variables = (f"LD_LIBRARY_PATH={':'.join(map(str, parts))}", f"LD_PRELOAD={library(foreign)}")
    settings = [word for variable in variables for word in ("-E", variable)]
    command = [foreign.qemu, "-cpu", cpu, "-L", str(foreign.root), *settings, str(foreign.testers / tester)]
    with (foreign.testers / given).open() as stream:
        done = subprocess.run(
            command, stdin=stream, capture_output=True, text=True, cwd=folder, check=False, timeout=600
        )
    assert "cannot be preloaded" not in done.stderr
    return done.stdout + "".join(path.read_text() for path in folder.iterdir())


@exhaustive
@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize(("foreign", "cpu"), [(one, cpu) for one in FOREIGN for cpu in one.cpus])
def test_reference_testers(tmp_path: Path, foreign: Foreign, cpu: str, letter: str) -> None:
    """Numbers and error exits of every routine, by its Fortran name and by its C name in both layouts."""
    if ROOT is None or not foreign.testers.exists() or shutil.which(foreign.qemu) is None:
        pytest.skip(f"{foreign.qemu}, or the testers of {foreign.debian} in TILEWRIGHT_FOREIGN_DEBIAN")
    passes = 12 if letter in "sd" else 18
    check_tester(run(foreign, cpu, f"xblat3{letter}", f"{letter}blat3.in", tmp_path), passes)
    (tmp_path / f"{letter}blat3.out").unlink()
    check_tester(run(foreign, cpu, f"x{letter}cblat3", f"{letter}in3", tmp_path), passes * 3 // 2)
