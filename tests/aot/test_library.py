"""Libraries of small kernels: their files and header, and the command that writes them."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tilewright.aot.build as building
from tilewright.aot import resolver
from tilewright.aot.build import KernelLibrary, build_library
from tilewright.aot.files import library_files
from tilewright.aot.form import LibraryForm
from tilewright.aot.spec_file import parse_spec
from tilewright.compiler.target import resolve_target
from tilewright.errors import InvalidTargetList, OutputNotWritable, SpecUnreadable, VariantsDiffer
from tilewright.llvm.values import POINTER, Type
from tilewright.tools.cli import app

SPEC = """
[[kernel]]
problem = "unary"
name = "relu"
op = "relu"

[[kernel]]
problem = "brgemm"
name = "product"
m = 4
n = 4
k = 4
batch = "address"

[[kernel]]
problem = "gemm"
name = "gemm"
dtype = "f64"
"""
#: What build systems read.
PACKAGE_FILES = ("tilewright.pc", "tilewrightConfig.cmake", "tilewrightConfigVersion.cmake")
TARGETS = {
    "x86_64": ("x86-64-v2", "x86-64-v3"),
    "amx": ("sapphirerapids", "x86_64-linux-gnu:x86-64"),
    "aarch64": ("neoverse-n1", "neoverse-v2"),
    "powerpc64le": ("pwr9", "pwr10"),
}


@cache
def build(targets: tuple[str, ...], spec: str = SPEC) -> KernelLibrary:
    return build_library(parse_spec(spec), [resolve_target(name) for name in targets])


def header_of(targets: tuple[str, ...], form: LibraryForm = LibraryForm.ARCHIVE) -> str:
    header = library_files(build(targets), form, "1.0")["tilewright.h"]
    assert isinstance(header, str)
    return header


def test_files_of_an_archive() -> None:
    files = library_files(build(TARGETS["x86_64"]), LibraryForm.ARCHIVE, "1.0")
    assert set(files) == {"libtilewright.a", "tilewright.h", *PACKAGE_FILES}


def test_files_of_objects() -> None:
    files = library_files(build(TARGETS["x86_64"]), LibraryForm.OBJECTS, "1.0")
    kernels = {f"{name}__x86_64_v{level}.o" for name in ("relu", "product", "gemm") for level in (2, 3)}
    assert set(files) == kernels | {"tilewright_resolver.o", "tilewright.h"}
    for name in kernels | {"tilewright_resolver.o"}:
        content = files[name]
        assert isinstance(content, bytes)
        assert content.startswith(b"\x7fELF")


def test_the_library_names_its_files_and_functions() -> None:
    library = build(("haswell",), f'library = "fast"\n{SPEC}')
    files = library_files(library, LibraryForm.ARCHIVE, "1.0")
    assert set(files) == {"libfast.a", "fast.h", "fast.pc", "fastConfig.cmake", "fastConfigVersion.cmake"}
    header = files["fast.h"]
    assert isinstance(header, str)
    assert "const char *fast_variant(void);" in header
    assert "tilewright_variant" not in header
    assert library.exports == ("fast_variant", "relu", "product", "gemm")


def test_the_same_input_gives_the_same_bytes() -> None:
    makers = (build, build.__wrapped__)  # which is not cached
    first, second = (library_files(made(TARGETS["x86_64"]), LibraryForm.ARCHIVE, "1.0") for made in makers)
    assert first == second


def test_header_says_what_was_made() -> None:
    header = header_of(TARGETS["x86_64"])
    for words in (
        " *   x86-64-v3\n *     sse3 ssse3 sse4.1 sse4.2 movbe popcnt lzcnt bmi bmi2 avx f16c fma avx2\n",
        " *   x86-64-v2\n *     sse3 ssse3 sse4.1 sse4.2 popcnt\n",
        "libtilewright.a holds every variant, and the resolver, which runs on any x86_64 CPU",
        "relu_function relu__x86_64_v3;  /* x86-64-v3 */",
    ):
        assert words in header
    assert header.index("x86-64-v3") < header.index("x86-64-v2")
    objects = header_of(TARGETS["amx"], LibraryForm.OBJECTS)
    assert "tilewright_resolver.o is the resolver, which runs on any x86_64 CPU" in objects
    assert " *   x86_64-linux-gnu:x86-64\n *     any x86_64 CPU\n" in objects


def test_scratch_is_enough_for_every_variant() -> None:
    library = build(("x86-64-v2", "x86-64-v4"))
    gemm = library.functions[-1]
    header = header_of(("x86-64-v2", "x86-64-v4"))
    (written,) = re.findall(r"#define GEMM_SCRATCH_BYTES (\d+)", header)
    assert int(written) >= max(kernel.scratch_bytes for kernel in gemm.kernels) > 0
    assert int(written) % 4096 == 0
    assert "RELU_SCRATCH_BYTES" not in header


def compiler(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


@pytest.mark.parametrize("targets", TARGETS.values(), ids=TARGETS)
def test_compilers_take_header(targets: tuple[str, ...], tmp_path: Path) -> None:
    header = header_of(targets)
    (tmp_path / "tilewright.h").write_text(header, encoding="utf-8")
    twice = '#include "tilewright.h"\n#include "tilewright.h"\nint x;\n'
    for name, options, suffix in (("cc", ("-std=c99", "-pedantic"), "c"), ("c++", (), "cpp")):
        source = tmp_path / f"twice.{suffix}"
        source.write_text(twice, encoding="utf-8")
        command = [compiler(name), *options, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)]
        subprocess.run(command, check=True)


NARROW = """
[[kernel]]
problem = "gemm"
name = "narrow"
dtype = "bf16"

[[kernel]]
problem = "gemm"
name = "mixed"
dtype = "u8"
b_dtype = "i8"
out_dtype = "i32"
"""


def test_mixed_types_are_declared() -> None:
    """Scalars have the type of the sums."""
    header = library_files(build(TARGETS["x86_64"], NARROW), LibraryForm.ARCHIVE, "1.0")["tilewright.h"]
    assert isinstance(header, str)
    for words in ("float alpha,", "/* A: m x k of bf16, row-major */", "const uint8_t *a,", "int32_t alpha,"):
        assert words in header


# --- the command ----------------------------------------------------------------------------------

runner = CliRunner()


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC, encoding="utf-8")
    return str(path)


def test_both_spellings_write_the_same(spec: str, tmp_path: Path) -> None:
    folders = tmp_path / "of option", tmp_path / "of" / "command"
    options = ("--spec", spec, "--target", "x86-64-v2,x86-64-v3")
    spellings = (
        ("emit", "--library", str(folders[0]), *options),
        ("emit", "library", *options, str(folders[1])),
    )
    for words, folder in zip(spellings, folders, strict=True):
        result = runner.invoke(app, words, catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
        assert result.stdout == f"{folder}: 5 files, 3 kernels; best first: x86-64-v3, x86-64-v2\n"
    written = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert written[0] == written[1]
    assert len(written[0]) == 5


def test_objects_for_this_host(spec: str, tmp_path: Path) -> None:
    if resolve_target("host").arch not in TARGETS:
        pytest.skip("libraries are not for this architecture")
    words = ("emit", "--library", str(tmp_path / "out"), "--spec", spec, "--form", "objects")
    assert runner.invoke(app, words, catch_exceptions=False).exit_code == 0
    assert (tmp_path / "out" / "relu__host.o").exists()


REFUSED = {
    ("--form", "zip"): "form is 'zip', must be one of: archive, shared, objects",
    ("--target", "rva23"): "what a riscv64 CPU has",
    ("--target", "x86-64-v2,"): str(
        InvalidTargetList(found="'x86-64-v2,'", reason="one of the names is empty")
    ),
    ("--spec", "absent.toml"): str(SpecUnreadable(path="absent.toml", reason="No such file or directory")),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.items(), ids=range(len(REFUSED)))
def test_refused(words: tuple[str, ...], message: str, spec: str, tmp_path: Path) -> None:
    result = runner.invoke(app, ("emit", "--library", str(tmp_path / "out"), "--spec", spec, *words))
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line
    assert not (tmp_path / "out").exists()


def test_variants_with_different_arguments(
    monkeypatch: pytest.MonkeyPatch, spec: str, tmp_path: Path
) -> None:
    """A kernel that takes scratch on one target only has no single function: the command says which it is."""
    found = resolver.argument_types

    def with_scratch(text: str, symbol: str) -> tuple[Type, ...]:
        return (*found(text, symbol), *((POINTER,) if symbol == "relu__x86_64_v2" else ()))

    monkeypatch.setattr(building, "argument_types", with_scratch)
    with pytest.raises(VariantsDiffer, match=r"relu .*ptr, ptr, .* on x86-64-v3 .*i64, ptr\) on x86-64-v2"):
        build_library(parse_spec(SPEC), [resolve_target(name) for name in TARGETS["x86_64"]])
    words = ("--spec", spec, "--target", "x86-64-v2,x86-64-v3")
    result = runner.invoke(app, ("emit", "--library", str(tmp_path / "out"), *words))
    assert result.exit_code == 2
    assert "build one library for each of these targets" in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_refused_folder(spec: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = runner.invoke(app, ("emit", "--library", str(tmp_path / "file"), "--spec", spec))
    assert result.exit_code == 2
    assert str(OutputNotWritable(path=str(tmp_path / "file"), reason="File exists")) in result.stderr


def test_usage(spec: str) -> None:
    for words, message in (
        (("emit", "--spec", spec), "needs a command, or --library DIR"),
        (("emit", "--library", "out"), "--spec FILE"),
        (("emit", "--target", "haswell", "gemm"), "options of gemm stand behind it"),
    ):
        result = runner.invoke(app, words)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.replace("│", " ").split())
    assert runner.invoke(app, ("emit", "gemm", "--target", "haswell", "--dump", "nest")).exit_code == 0
