"""`emit --blas --behind`: names that the library does not have are found in another BLAS, by any loading."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from blas_calls import host_library, shared_file
from typer.testing import CliRunner

import tilewright.tools.cli.emit as emitting
from tilewright.aot.link import shared_library
from tilewright.errors import LinkFailed
from tilewright.machine.host import host_machine
from tilewright.tools.cli import app

#: Another BLAS: names of all levels. Its product is wrong, to tell who was called.
OTHER = """
double ddot_(int *n, double *x, int *ix, double *y, int *iy) {
    double s = 0;
    for (int i = 0; i < *n; i++) s += x[i * *ix] * y[i * *iy];
    return s;
}
double cblas_ddot(int n, double *x, int ix, double *y, int iy) { return ddot_(&n, x, &ix, y, &iy); }
void xerbla_(char *name, int *number, long length) { extern int printf(const char *, ...);
    printf("%.6s %d ", name, *number); }
void dgemm_(char *ta, char *tb, int *m, int *n, int *k, double *alpha, double *a, int *lda, double *b,
            int *ldb, double *beta, double *c, int *ldc) { c[0] = -1; }
"""
#: A program linked with the other one only. It prints the files that its functions are from.
PROGRAM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
double ddot_(int *, double *, int *, double *, int *);
double cblas_ddot(int, double *, int, double *, int);
void dgemm_(char *, char *, int *, int *, int *, double *, double *, int *, double *, int *, double *,
            double *, int *);
static void tell(const char *name) {
    Dl_info found;
    dladdr(dlsym(RTLD_DEFAULT, name), &found);
    printf("%s ", found.dli_fname);
}
int main(void) {
    double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, c[4] = {0}, one = 1, zero = 0;
    int two = 2, unit = 1, four = 4, bad = -1;
    dgemm_("N", "N", &two, &two, &two, &one, a, &two, b, &two, &zero, c, &two);
    printf("%g %g ", c[0], ddot_(&four, a, &unit, b, &unit) + cblas_ddot(2, a, 1, b, 1));
    tell("dgemm_");
    tell("ddot_");
    dgemm_("N", "N", &two, &two, &bad, &one, a, &two, b, &two, &zero, c, &two);
    return 0;
}
"""
#: The name that Debian gives every BLAS, so that one takes the place of another.
COMMON = "libblas.so.3"


@cache
def compiler() -> str:
    """The C compiler."""
    found = shutil.which("cc")
    if found is None:
        pytest.skip("there is no C compiler")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`other/libblas.so.3`, a program linked with it, and a library in front of it."""
    shared_file()  # skips without a linker
    root = tmp_path_factory.mktemp("behind")
    other = root / "other"
    other.mkdir()
    (root / "other.c").write_text(OTHER, encoding="utf-8")
    (root / "program.c").write_text(PROGRAM, encoding="utf-8")
    options = ["-shared", "-fPIC", f"-Wl,-soname,{COMMON}"]
    subprocess.run([compiler(), *options, "other.c", "-o", f"other/{COMMON}"], cwd=root, check=True)
    command = [compiler(), "program.c", f"other/{COMMON}", "-ldl", "-o", "program"]
    subprocess.run(command, cwd=root, check=True)
    words = ("emit", "--library", str(root / "made"), "--blas", "--form", "shared")
    library = host_library()
    with pytest.MonkeyPatch.context() as patch:  # the other tests' library, which takes seconds to build
        patch.setattr(emitting, "build_blas", lambda machines: library)
        result = CliRunner().invoke(app, (*words, "--behind", str(other / COMMON)))
    assert result.exit_code == 0, result.output
    (root / "place").mkdir()
    (root / "place" / COMMON).symlink_to(root / "made" / "libtilewright_blas.so")
    return root


def run(folder: Path, **variables: str) -> list[str]:
    """What the program prints."""
    done = subprocess.run(
        [str(folder / "program")],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split()


def test_without_the_library(folder: Path) -> None:
    """The program calls the other BLAS."""
    other = folder / "other"
    found = run(folder, LD_LIBRARY_PATH=str(other))
    assert found == ["-1", "87", str(other / COMMON), str(other / COMMON)]


def test_preloaded(folder: Path) -> None:
    """Products are ours, and errors go to the other one's `xerbla_`."""
    preloaded, other = str(folder / "made" / "libtilewright_blas.so"), folder / "other"
    found = run(folder, LD_PRELOAD=preloaded, LD_LIBRARY_PATH=str(other))
    assert found == ["23", "87", preloaded, str(other / COMMON), "DGEMM", "5"]


def test_in_the_place_of_the_other(folder: Path) -> None:
    """The library has the other one's file name, and loads that one in spite of it."""
    place = folder / "place"
    found = run(folder, LD_LIBRARY_PATH=str(place))
    assert found == ["23", "87", str(place / COMMON), str(folder / "other" / COMMON), "DGEMM", "5"]


def test_no_library(folder: Path) -> None:
    """A file that is missing, and one that is no library."""
    for path in (folder / "absent.so", folder / "other.c"):
        with pytest.raises(LinkFailed, match=path.name):
            shared_library([], (), "libx.so", host_machine().arch, path)
