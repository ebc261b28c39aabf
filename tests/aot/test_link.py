"""Shared libraries: what the linker makes of objects, its failures, and the files of build systems."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tilewright.aot.link as linking
from tilewright.aot.archive import Member
from tilewright.aot.build import build_library
from tilewright.aot.files import library_files
from tilewright.aot.form import LibraryForm
from tilewright.aot.link import shared_library
from tilewright.aot.packages import Package, package_files
from tilewright.aot.spec_file import parse_spec
from tilewright.compiler.target import resolve_target
from tilewright.errors import LinkFailed, NoLinker, NoResolver
from tilewright.machine.host import host_machine

SPEC = """
library = "fast"
prefix = "fast_"

[[kernel]]
problem = "unary"
name = "relu"
op = "relu"
"""

PROGRAM = """
#include "fast.h"
int main(void) { float a = -1, b = 5; fast_relu(&a, &b, 1, 1, 1, 1); return b != 0; }
"""


def written(folder: Path, form: LibraryForm) -> Path:
    """The library in a folder."""
    try:
        files = library_files(build_library(parse_spec(SPEC), [resolve_target("host")]), form, "1.2")
    except (NoResolver, NoLinker) as reason:
        pytest.skip(str(reason))
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_a_shared_library_runs(tmp_path: Path) -> None:
    """Its functions have the prefix of the specification; nothing else is visible."""
    library = ctypes.CDLL(str(written(tmp_path, LibraryForm.SHARED) / "libfast.so"))
    a, b = np.linspace(-1, 1, 12, dtype=np.float32), np.zeros(12, np.float32)
    pointers = (ctypes.c_void_p(one.ctypes.data) for one in (a, b))
    library.fast_relu(*pointers, *map(ctypes.c_int64, (4, 4, 4, 3)))
    assert np.array_equal(b, np.maximum(a, 0))
    assert not hasattr(library, "choose")


def test_a_failure_is_told() -> None:
    try:
        linking.linker()
    except NoLinker as reason:
        pytest.skip(str(reason))
    with pytest.raises(LinkFailed, match=r"cannot link libx\.so"):
        shared_library([Member("a.o", b"this is no object", ())], ("f",), "libx.so", host_machine().arch)


def test_no_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what was looked for, and what to do."""

    def missing(name: str) -> None:
        del name

    monkeypatch.setattr(linking, "find_spec", missing)
    monkeypatch.setattr(shutil, "which", missing)
    with pytest.raises(NoLinker, match=r"pip install ziglang, or write a static archive"):
        linking.linker()


def linker_of_system(monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    """The linker where ziglang is not installed."""

    def missing(name: str) -> None:
        del name

    monkeypatch.setattr(linking, "find_spec", missing)
    return linking.linker()


def test_the_linker_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    try:
        (command,) = linker_of_system(monkeypatch)
    except NoLinker as reason:
        pytest.skip(str(reason))
    assert Path(command).name in linking.LINKERS
    test_a_shared_library_runs(tmp_path)


@pytest.mark.parametrize("form", [LibraryForm.SHARED, LibraryForm.ARCHIVE])
def test_programs_find_it_by_pkg_config(form: LibraryForm, tmp_path: Path) -> None:
    """A program is compiled with the flags that the file gives."""
    compiler, tool = shutil.which("cc"), shutil.which("pkg-config")
    if compiler is None or tool is None:
        pytest.skip("there is no C compiler or no pkg-config")
    folder, source, program = written(tmp_path, form), tmp_path / "p.c", tmp_path / "p"
    source.write_text(PROGRAM)
    asked = subprocess.run(
        [tool, "--cflags", "--libs", "fast"],
        env={"PKG_CONFIG_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    rpath = f"-Wl,-rpath,{folder}"
    subprocess.run([compiler, str(source), *asked.stdout.split(), rpath, "-o", str(program)], check=True)
    assert subprocess.run([str(program)], check=False).returncode == 0


def test_files_of_packages() -> None:
    """Static libraries name what they need; shared ones their own name."""
    static = package_files(Package("fast", "Kernels.", "1.2", ("a",), ("pthread",)))
    shared = package_files(Package("fast", "Kernels.", "1.2", ("so", "a"), ("pthread",)))
    assert "Libs.private: -lpthread\n" in static["fast.pc"]
    assert 'INTERFACE_LINK_LIBRARIES "pthread"' in static["fastConfig.cmake"]
    assert "SHARED IMPORTED" in shared["fastConfig.cmake"]
    assert 'set(PACKAGE_VERSION "1.2")' in shared["fastConfigVersion.cmake"]


@pytest.mark.parametrize("form", [LibraryForm.SHARED, LibraryForm.ARCHIVE])
def test_programs_find_it_by_cmake(form: LibraryForm, tmp_path: Path) -> None:
    """`find_package` gives a target to link with."""
    tool = shutil.which("cmake")
    if tool is None or shutil.which("cc") is None:
        pytest.skip("there is no CMake or no C compiler")
    written(tmp_path, form)
    (tmp_path / "p.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(p C)\nfind_package(fast 1.0 CONFIG REQUIRED PATHS "
        "${CMAKE_CURRENT_SOURCE_DIR})\nadd_executable(p p.c)\ntarget_link_libraries(p fast::fast)\n"
    )
    build = tmp_path / "build"
    for words in (["-S", str(tmp_path), "-B", str(build)], ["--build", str(build)]):
        subprocess.run([tool, *words], check=True, capture_output=True)
    assert subprocess.run([str(build / "p")], check=False).returncode == 0
