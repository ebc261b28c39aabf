"""Commands taken apart: what is compiled, where to, and what is left for the linker."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from shares import looped

from tilewright.errors import CompilerUnknown, CompilerWithoutIr, InputNotReadable
from tilewright_cc.compilers import split_program
from tilewright_cc.invocation import Invocation, SourceFile, Stop

TEXT = Path("unit.ll")
CLANG_IR = "-Xclang -disable-llvm-passes -fno-discard-value-names -Rpass=tilewright -emit-llvm -S -o unit.ll"
FLANG_IR = (
    "-mllvm -vectorize-loops=false -mllvm -vectorize-slp=false -mllvm -unroll-count=1 "
    "-emit-llvm -S -o unit.ll"
)

#: Command -> where it stops, its sources, what it writes, what compiles its first source.
COMMANDS = {
    "clang -O2 a.c": (Stop.PROGRAM, ["a.c"], None, f"clang -O2 {CLANG_IR} a.c"),
    "clang-19 -c -O2 a.c": (Stop.OBJECT, ["a.c"], None, f"clang-19 -O2 {CLANG_IR} a.c"),
    "clang -c a.c -o b.o": (Stop.OBJECT, ["a.c"], "b.o", f"clang {CLANG_IR} a.c"),
    "clang -c -ob.o a.c": (Stop.OBJECT, ["a.c"], "b.o", f"clang {CLANG_IR} a.c"),
    "clang -S a.c": (Stop.ASSEMBLY, ["a.c"], None, f"clang {CLANG_IR} a.c"),
    "clang -emit-llvm -S a.c": (Stop.IR, ["a.c"], None, f"clang {CLANG_IR} a.c"),
    "clang -emit-llvm -c a.c": (Stop.BITCODE, ["a.c"], None, f"clang {CLANG_IR} a.c"),
    "clang -E a.c": (Stop.OTHER, ["a.c"], None, f"clang -E {CLANG_IR} a.c"),
    "clang a.o -lm": (Stop.PROGRAM, [], None, ""),
    "clang++ -I inc -D X=1 -Wl,-z,now a.cpp b.cc c.o -L lib -lm -o p": (
        Stop.PROGRAM,
        ["a.cpp", "b.cc"],
        "p",
        f"clang++ -I inc -D X=1 {CLANG_IR} a.cpp",
    ),
    "clang -x c a.inc -x none b.o": (Stop.PROGRAM, ["a.inc"], None, f"clang {CLANG_IR} -x c a.inc"),
    "clang -include a.c b.c": (Stop.PROGRAM, ["b.c"], None, f"clang -include a.c {CLANG_IR} b.c"),
    "clang -Xlinker a.c b.c": (Stop.PROGRAM, ["b.c"], None, f"clang {CLANG_IR} b.c"),
    "clang -shared -fPIC -flto a.c -o a.so": (Stop.PROGRAM, ["a.c"], "a.so", f"clang -fPIC {CLANG_IR} a.c"),
    "clang -MMD -c a.c -o o/b.o": (
        Stop.OBJECT,
        ["a.c"],
        "o/b.o",
        f"clang -MMD -MF o/b.d -MT o/b.o {CLANG_IR} a.c",
    ),
    "clang -MD -MF x.d -MT y -c a.c": (
        Stop.OBJECT,
        ["a.c"],
        None,
        f"clang -MD -MF x.d -MT y {CLANG_IR} a.c",
    ),
    "zig cc -target aarch64-linux-musl a.c": (
        Stop.PROGRAM,
        ["a.c"],
        None,
        f"zig cc -target aarch64-linux-musl {CLANG_IR} a.c",
    ),
    "flang-new-19 -O3 a.f90 b.F90 -o p": (
        Stop.PROGRAM,
        ["a.f90", "b.F90"],
        "p",
        f"flang-new-19 -O3 {FLANG_IR} a.f90",
    ),
}


def words(text: str) -> list[str]:
    return text.split()


@looped("command", COMMANDS)
def test_a_command_is_taken_apart(command: str) -> None:
    stop, sources, output, compiling = COMMANDS[command]
    found = Invocation.read(command.split())
    assert (found.stop, [source.path for source in found.sources], found.output) == (stop, sources, output)
    if sources:
        assert found.emitting(found.sources[0], TEXT) == compiling.split()


def test_objects_stand_where_sources_stood() -> None:
    command, linked = (
        "clang++ -O2 -x c++ a.inc -x none b.o c.cc -MD -lm -o p",
        "clang++ -O2 t/a.o b.o t/c.o -lm -o p",
    )
    assert Invocation.read(command.split()).linking([Path("t/a.o"), Path("t/c.o")]) == linked.split()


@pytest.mark.parametrize(
    ("command", "output"), [("clang -c s/a.c", "a.o"), ("clang -S s/a.c", "a.s"), ("clang -c a.c -o b", "b")]
)
def test_outputs_that_no_word_names(command: str, output: str) -> None:
    found = Invocation.read(command.split())
    assert found.output_of(found.sources[0]) == output


INSTRUMENTED = (
    *("-fsanitize=address", "-fsanitize=undefined,thread", "-fprofile-generate", "--coverage", "-pg"),
    *("-fprofile-instr-use=x", "-fcoverage-mapping", "-mcmodel=large", "-fxray-instrument"),
)


@pytest.mark.parametrize("option", INSTRUMENTED)
def test_options_whose_passes_would_not_run(option: str) -> None:
    assert Invocation.read(["clang", option, "a.c"]).not_driven == option


@pytest.mark.parametrize(
    "option", ["-fsanitize=undefined", "-fno-sanitize=all", "-mcmodel=small", "-fstack-protector", "-p"]
)
def test_options_that_the_front_end_does(option: str) -> None:
    assert Invocation.read(["clang", option, "a.c"]).not_driven is None


def test_a_language_in_one_word() -> None:
    assert Invocation.read(["clang", "-xc++", "a.inc"]).sources == (SourceFile("a.inc", "c++"),)


def test_words_of_response_files(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("-O2 'a b.c' -c", encoding="utf-8")
    found = Invocation.read(["clang", f"@{tmp_path / 'words'}"])
    assert found.stop is Stop.OBJECT
    assert [source.path for source in found.sources] == ["a b.c"]


def test_zig_of_the_wheel() -> None:
    row, program, options = split_program(["python", "-m", "ziglang", "c++", "a.cpp"])
    assert (row.name, program, options) == ("zig", (sys.executable, "-m", "ziglang", "c++"), ("a.cpp",))


@pytest.mark.parametrize("command", [[], ["icx", "a.c"], ["zig", "build"], ["clangd"], ["python", "a.py"]])
def test_other_programs_are_refused(command: list[str]) -> None:
    with pytest.raises(CompilerUnknown, match="clang"):
        Invocation.read(command)


#: Compilers of GCC: what takes their place for files with loops.
GCC = {"gcc": "clang", "x86_64-linux-gnu-g++-12": "clang++", "/usr/bin/gfortran": "flang", "cc": "clang"}


@looped("program", GCC)
def test_gcc_has_a_recipe(program: str) -> None:
    with pytest.raises(CompilerWithoutIr, match=rf"tilewright cc -- {re.escape(GCC[program])} "):
        Invocation.read([program, "a.c"])


def test_commands_that_finish_ir() -> None:
    found = Invocation.read(words("clang -O2 -I inc -MMD -MF x.d -x c a.inc -o b.o -c"))
    ended = "-Wno-unused-command-line-argument -Wno-override-module -c -o b.o unit.ll"
    assert found.finishing("unit.ll", "b.o") == words(f"clang -O2 -I inc {ended}")
    assert found.finishing("a.inc", "b.o", "c") == words("clang -O2 -I inc -c -o b.o -x c a.inc")
    flang = Invocation.read(words("flang -O2 a.f90 -S"))
    assert flang.finishing("a.f90", "a.s") == words("flang -O2 -S -o a.s a.f90")


@pytest.mark.parametrize("option", ["-save-temps=obj", "-fstack-usage"])
def test_options_that_need_the_source(option: str) -> None:
    assert Invocation.read(["clang", "-O2", option, "a.c"]).from_source == option
    assert Invocation.read(["clang", "-O2", "a.c"]).from_source is None


def test_response_files_that_cannot_be_read(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(f"-O2 @{second}")
    second.write_text(f"-g @{first}")
    found = Invocation.read(["clang", f"@{first}", "a.c"])  # which the compiler refuses
    assert [word.text[0] for word in found.words] == ["-O2", "-g", f"@{first}", "a.c"]
    for content in (b"'open", b"\xff", b" " * (16 << 20) + b"a"):
        first.write_bytes(content)
        with pytest.raises(InputNotReadable, match="first"):
            Invocation.read(["clang", f"@{first}", "a.c"])
