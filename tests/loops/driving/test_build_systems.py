"""Build systems with `tilewright-cc` before their compiler, as docs/reference/loops.md has it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recognise.toolchains import CLANG, FLANG, RUSTC, Toolchain

TWICE = "int twice(int x) { return 2 * x; }"
MAIN = """
int twice(int);
void mm(int n, const float *a, const float *b, float *c) {
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int p = 0; p < n; p++)
    c[i * n + j] += a[i * n + p] * b[p * n + j];
}
static float a[400], b[400], c[400];
int main(void) { a[0] = 3; b[0] = 7; mm(20, a, b, c); return twice((int)c[0]); }
"""
CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(p C)
add_executable(p main.c twice.c)
target_compile_options(p PRIVATE -O2 -ffast-math -Rpass=tilewright)
"""
MESON = """
project('p', 'c', default_options: ['buildtype=plain'])
executable('p', 'main.c', 'twice.c', c_args: ['-O2', '-ffast-math', '-Rpass=tilewright'])
"""
MAKE = "p: main.o twice.o\n\t$(CC) $(CFLAGS) $^ -o $@\n"
#: System: its file, what it configures, and what it builds. {cc} is `tilewright-cc`, {clang} the compiler.
SYSTEMS = {
    "make": (
        "Makefile",
        MAKE,
        "",
        "make p CC='{cc} {clang}' CFLAGS='-O2 -ffast-math -Rpass=tilewright'",
        "p",
    ),
    "cmake": (
        "CMakeLists.txt",
        CMAKE,
        "cmake -S . -B b -DCMAKE_C_COMPILER={clang} -DCMAKE_C_COMPILER_LAUNCHER={cc}",
        "cmake --build b",
        "b/p",
    ),
    "meson": ("meson.build", MESON, "meson setup b", "meson compile -C b -v", "b/p"),
}
REMARK = "main.c:4:3: remark: loop nest replaced: c[m,n] += a[m,k]*b[k,n], m=n, n=n, k=n, f32"
SECONDS = 300


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script that an installation of the package has."""
    path = tmp_path / "bin" / "tilewright-cc"
    path.parent.mkdir()
    path.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tilewright_cc "$@"\n', encoding="utf-8"
    )
    path.chmod(0o755)
    return path


def needs(program: str) -> str:
    found = shutil.which(program) or shutil.which(program, path=Path(sys.executable).parent)
    return found or pytest.skip(f"{program} is not installed")


def program_of(toolchain: Toolchain) -> str:
    if toolchain.program is None:
        pytest.skip(f"{toolchain.name} is not installed")
    return toolchain.program[0]


def run(command: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        shlex.split(command), cwd=folder, env={**os.environ, **environment}, check=False, timeout=SECONDS,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.exhaustive  # each configures a project, which takes many runs of its compiler
@pytest.mark.parametrize("system", SYSTEMS)
def test_programs_of_c(tmp_path: Path, script: Path, system: str) -> None:
    name, text, configure, build, program = SYSTEMS[system]
    clang, tool = program_of(CLANG), needs(system)
    for file, content in ((name, text), ("main.c", MAIN), ("twice.c", TWICE)):
        (tmp_path / file).write_text(content, encoding="utf-8")
    if configure:
        words = configure.format(cc=script, clang=clang).replace(system, tool, 1)
        run(words, tmp_path, CC=f"{script} {clang}")
    assert REMARK in run(build.format(cc=script, clang=clang).replace(system, tool, 1), tmp_path)
    assert subprocess.run([tmp_path / program], check=False).returncode == 42


RUST = """
fn mm(n: usize, a: &[i32], b: &[i32], c: &mut [i32]) {
    for i in 0..n { for j in 0..n { for k in 0..n { c[i * n + j] += a[i * n + k] * b[k * n + j]; } } }
}
fn main() {
    let n = std::env::args().count() + 29;
    let (a, b) = (vec![1; n * n], vec![2; n * n]);
    let mut c = vec![0; n * n];
    mm(n, &a, &b, &mut c);
    std::process::exit(if c[5] == 60 { 35 + p::seven() } else { 1 });
}
"""


@pytest.mark.exhaustive
def test_a_program_of_cargo(tmp_path: Path, script: Path) -> None:
    program_of(RUSTC)
    cargo = needs("cargo")
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n')
    (tmp_path / "src" / "lib.rs").write_text("pub fn seven() -> i32 { 7 }\n", encoding="utf-8")
    (tmp_path / "src" / "main.rs").write_text(RUST, encoding="utf-8")
    shown = run(f"{cargo} build --release --offline", tmp_path, RUSTC_WORKSPACE_WRAPPER=str(script))
    assert "p is compiled without replacing loops: rustc links no lib" in shown
    assert "jobserver" not in shown
    assert subprocess.run([tmp_path / "target/release/p"], check=False).returncode == 42


FORTRAN = """
program p
  implicit none
  real :: a(30,30), b(30,30), c(30,30)
  integer :: i, j, k
  a = 1; b = 2; c = 0
  do j = 1, 30; do k = 1, 30; do i = 1, 30
    c(i,j) = c(i,j) + a(i,k) * b(k,j)
  end do; end do; end do
  if (c(4,5) /= 60) stop 1
end program
"""


@pytest.mark.exhaustive
def test_a_program_of_fpm(tmp_path: Path, script: Path) -> None:
    flang, fpm = program_of(FLANG), needs("fpm")
    (tmp_path / "app").mkdir()
    (tmp_path / "fpm.toml").write_text('name = "p"\n', encoding="utf-8")
    (tmp_path / "app" / "main.f90").write_text(FORTRAN, encoding="utf-8")
    wrapper = script.with_name("flang-new")  # fpm knows compilers by their names
    wrapper.write_text(f'#!/bin/sh\nexec {script} {flang} "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    run(f"{fpm} run --compiler {wrapper} --flag '-O2 -ffast-math -fsave-optimization-record'", tmp_path)
    (record,) = tmp_path.glob("build/**/*.opt.yaml")  # fpm shows nothing that compilers print
    assert "Name:            Replaced\nDebugLoc:        { File: 'app/main.f90', Line: 7" in record.read_text()


C_HOT = """
void mm_(const int *n, const double *a, const double *b, double *c) {
  for (int i = 0; i < *n; i++) for (int j = 0; j < *n; j++) for (int p = 0; p < *n; p++)
    c[i * *n + j] += a[i * *n + p] * b[p * *n + j];
}
"""
GFORTRAN = """
program p
  double precision :: a(8,8), b(8,8), c(8,8)
  external :: mm
  a = 1; b = 2; c = 0
  call mm(8, a, b, c)
  if (any(c /= 16)) stop 1
end program
"""
F_HOT = """
subroutine mm(n, a, b, c)
  integer :: n, i, j, k
  double precision :: a(n,n), b(n,n), c(n,n)
  do j = 1, n; do k = 1, n; do i = 1, n
    c(i,j) = c(i,j) + a(i,k) * b(k,j)
  end do; end do; end do
end subroutine
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("toolchain", "file"), [(CLANG, "hot.c"), (FLANG, "hot.f90")], ids=["clang", "flang"]
)
def test_the_hot_file_of_a_gfortran_program(
    tmp_path: Path, script: Path, toolchain: Toolchain, file: str
) -> None:
    compiler, gfortran = program_of(toolchain), needs("gfortran")
    (tmp_path / "main.f90").write_text(GFORTRAN, encoding="utf-8")
    (tmp_path / file).write_text(C_HOT if file.endswith("c") else F_HOT, encoding="utf-8")
    shown = run(f"{script} --remarks - {compiler} -O2 -ffast-math -c {file} -o hot.o", tmp_path)
    assert shown.startswith("replaced ")
    run(f"{gfortran} -O2 main.f90 hot.o -o prog", tmp_path)
    run("./prog", tmp_path)
