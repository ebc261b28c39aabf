"""Parser of clang, flang and zig command lines: sources, linker arguments, and the last compilation stage."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePath

from tilewright_cc.compilers import NOT_DRIVEN, CompilerDriver, split_program

#: Longest response file that is read, in bytes.
_MOST_RESPONSE_BYTES = 16 << 20


class Stop(Enum):
    """The last stage of a command."""

    PROGRAM = "a program or a shared library"
    OBJECT = "objects"
    ASSEMBLY = "assembly"
    BITCODE = "LLVM bitcode"
    IR = "LLVM IR"
    OTHER = "nothing that is optimised"

    @property
    def suffix(self) -> str:
        """Suffix of each source's output."""
        return {Stop.ASSEMBLY: ".s", Stop.BITCODE: ".bc", Stop.IR: ".ll"}.get(self, ".o")

    @property
    def options(self) -> tuple[str, ...]:
        """Options that make a compiler stop there, for one source."""
        options = {Stop.ASSEMBLY: ("-S",), Stop.BITCODE: ("-emit-llvm", "-c"), Stop.IR: ("-emit-llvm", "-S")}
        return options.get(self, ("-c",))


class ArgumentKind(Enum):
    """Purpose of a command-line argument."""

    SOURCE = "compiled"
    LINKED = "for the linker alone"
    LANGUAGE = "-x: what the sources behind it are"
    STAGE = "where to stop"
    OUTPUT = "the file to write"
    DEPENDENCIES = "the file of dependencies, and what stands in it"
    OPTION = "for the compiler, and for the linker too"


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Options whose value is the next argument, except those below.
_WITH_VALUE = _words_of("""
    -I -D -U -include -imacros -isystem -iquote -idirafter -iprefix -iwithprefix -iwithprefixbefore -isysroot
    --sysroot -cxx-isystem -Xclang -Xflang -Xpreprocessor -Xassembler -mllvm -mmlir -target --target -arch -J
    -module-dir -fintrinsic-modules-path -B -resource-dir -working-directory --param -include-pch -ivfsoverlay
    -dumpdir
""")
_LINKED_WITH_VALUE = _words_of("""
    -l -L -Xlinker -T -u -z -e -rpath -framework -install_name -soname -F -compatibility_version
""")
_LINKED = _words_of("""
    -shared -static -static-pie -rdynamic -s -nostdlib -nodefaultlibs -nostartfiles -dynamiclib -bundle -pie
    -no-pie -static-libgcc -static-libstdc++ -dynamic
""")
_LINKED_PREFIXES = ("-l", "-L", "-Wl,", "-fuse-ld=", "-flto")
_LINKED_SUFFIXES = (".o", ".a", ".so", ".dylib", ".obj", ".lib", ".dll", ".tbd", ".s", ".S", ".res")
_STAGES = {"-c": Stop.OBJECT, "-S": Stop.ASSEMBLY}
_NO_CODE = _words_of("""
    -E -M -MM -fsyntax-only --version -dumpversion -dumpmachine -### --help --precompile
""")
_DEPENDENCY_FILES = ("-MF", "-MT", "-MQ")
_DEPENDENCIES = ("-MD", "-MMD", "-MP")
#: Options that keep or measure what happens between a source and its code.
_FROM_SOURCE = ("-save-temps", "--save-temps", "-ftime-report", "-fstack-usage", "-include-pch")
#: Options of a source say nothing about LLVM IR, which its compiler would warn of.
_FOR_IR = ("-Wno-unused-command-line-argument", "-Wno-override-module")


@dataclass(frozen=True)
class Word:
    """One option with its value, or one file."""

    part: ArgumentKind
    text: tuple[str, ...]


@dataclass(frozen=True)
class SourceFile:
    """One file to compile, and the language that -x names for it."""

    path: str
    language: str | None


@dataclass(frozen=True)
class Invocation:
    """A parsed command.

    Attributes
    ----------
    compiler : its row.
    program : the words before the options.
    words : the options and files, in order.

    Examples
    --------
    >>> found = Invocation.read(["clang", "-O2", "-c", "a.c", "-o", "b.o"])
    >>> found.stop.name, found.output, [source.path for source in found.sources]
    ('OBJECT', 'b.o', ['a.c'])
    """

    compiler: CompilerDriver
    program: tuple[str, ...]
    words: tuple[Word, ...]

    @classmethod
    def read(cls, command: Sequence[str]) -> Invocation:
        """Parse a command.

        Raises
        ------
        CompilerUnknown, CompilerWithoutIr : the program is not a supported compiler.
        """
        compiler, program, options = split_program(command)
        return cls(compiler, program, tuple(_words(compiler, list(_expanded(options)))))

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The source files to compile, in order."""
        language, found = None, []
        for word in self.words:
            if word.part is ArgumentKind.LANGUAGE:
                named = word.text[-1] if len(word.text) > 1 else word.text[0].removeprefix("-x")
                language = None if named == "none" else named
            elif word.part is ArgumentKind.SOURCE:
                found.append(SourceFile(word.text[0], language))
        return tuple(found)

    @property
    def output(self) -> str | None:
        """The argument of -o."""
        named = [word.text for word in self.words if word.part is ArgumentKind.OUTPUT]
        return (named[-1][-1] if len(named[-1]) > 1 else named[-1][0][2:]) if named else None

    @property
    def not_driven(self) -> str | None:
        """An option that generated code could not honour, if there is one."""
        texts = (text for word in self.words for text in word.text)
        return next((text for text in texts if NOT_DRIVEN.fullmatch(text)), None)

    @property
    def stop(self) -> Stop:
        """The last stage of the command."""
        texts = [word.text[0] for word in self.words]
        if any(text in _NO_CODE for text in texts):
            return Stop.OTHER
        stages = [_STAGES[text] for text in texts if text in _STAGES]
        if "-emit-llvm" in texts:
            return Stop.IR if Stop.ASSEMBLY in stages else Stop.BITCODE
        return stages[-1] if stages else Stop.PROGRAM

    def output_of(self, source: SourceFile) -> str:
        """The output file of a source if the command does not link."""
        return self.output or PurePath(source.path).with_suffix(self.stop.suffix).name

    def emitting(self, source: SourceFile, output: Path, form: str = "-S") -> list[str]:
        """The command that writes a source's unoptimised LLVM IR; form is -S for text, -c for bitcode."""
        words = [*self._options, *self._dependencies(source)]
        language = [] if source.language is None else ["-x", source.language]
        ir = [*self.compiler.ir, "-emit-llvm", form, "-o", str(output)]
        return [*self.program, *words, *ir, *language, source.path]

    def assembling(self, text: Path, bitcode: Path) -> list[str]:
        """The command that writes text as bitcode, which other versions of LLVM read more often."""
        ir = self.compiler.ir if self.compiler.finishes_ir else ()
        return [*self.program, *ir, "-w", "-emit-llvm", "-c", "-o", str(bitcode), str(text)]

    def finishing(self, path: str, output: str, language: str | None = None) -> list[str]:
        """The command that compiles a source, or its LLVM IR, as if alone; without file of dependencies."""
        words = [word for word in self._options if word not in _DEPENDENCIES]
        if language is None and path.endswith(".ll") and self.compiler.finishes_ir:
            words += _FOR_IR
        asked = [] if language is None else ["-x", language]
        return [*self.program, *words, *self.stop.options, "-o", output, *asked, path]

    @property
    def from_source(self) -> str | None:
        """An option by which code has to be made of the source itself, if there is one."""
        texts = (word.text[0] for word in self.words)
        return next((text for text in texts if text.startswith(_FROM_SOURCE)), None)

    def reports(self, option: str, name: str) -> bool:
        """Whether the last option such as -Rpass=REGEX asks for the remarks of a pass."""
        given = [
            word.text[0].partition("=")[2] for word in self.words if word.text[0].startswith(f"{option}=")
        ]
        try:
            return bool(given) and re.search(given[-1], name) is not None
        except re.error:
            return False  # the compiler says so

    def record_of(self, output: str) -> str | None:
        """The file of the optimisation record that is asked for, as clang names it."""
        texts = [word.text[0] for word in self.words]
        named = [text.partition("=")[2] for text in texts if text.startswith("-foptimization-record-file=")]
        asked = any(
            text in ("-fsave-optimization-record", "-fsave-optimization-record=yaml") for text in texts
        )
        return named[-1] if named else str(PurePath(output).with_suffix(".opt.yaml")) if asked else None

    @property
    def _options(self) -> list[str]:
        return [text for word in self.words if word.part is ArgumentKind.OPTION for text in word.text]

    def _dependencies(self, source: SourceFile) -> list[str]:
        """Options for the requested dependency file and its target.

        Their defaults follow from the name of the output, which here is a temporary file.
        """
        asked = [word.text[0] for word in self.words if word.text[0] in _DEPENDENCIES[:2]]
        if not asked:
            return []
        given = [word for word in self.words if word.part is ArgumentKind.DEPENDENCIES]
        made = self.output_of(source) if self.stop is not Stop.PROGRAM else PurePath(source.path).stem + ".o"
        found = [text for word in given for text in word.text]
        if not any(word.text[0].startswith("-MF") for word in given):
            found += ["-MF", str(PurePath(made).with_suffix(".d"))]
        if not any(word.text[0].startswith(("-MT", "-MQ")) for word in given):
            found += ["-MT", made]
        return found

    def linking(self, objects: Sequence[Path]) -> list[str]:
        """The command with sources replaced by objects, in order."""
        waiting = iter(objects)
        words: list[str] = []
        for word in self.words:
            match word.part:
                case ArgumentKind.SOURCE:
                    words.append(str(next(waiting)))
                case ArgumentKind.LANGUAGE | ArgumentKind.DEPENDENCIES:
                    continue
                case _:
                    if word.text[0] not in _DEPENDENCIES:
                        words += word.text
        return [*self.program, *words]

    @property
    def is_whole_program(self) -> bool:
        """Whether units are to be optimised together at the link."""
        asked = [word.text[0] for word in self.words if word.text[0].startswith(("-flto", "-fno-lto"))]
        return bool(asked) and asked[-1] != "-fno-lto" and self.compiler.finishes_ir

    @property
    def archives(self) -> list[str]:
        """The archives that the command names by their paths."""
        words = [word.text[0] for word in self.words if word.part is ArgumentKind.LINKED]
        return [text for text in words if text.endswith(".a") and not text.startswith("-")]

    def linking_merged(
        self, merged: Path | None, modules: AbstractSet[str], archives: Mapping[str, str]
    ) -> list[str]:
        """The link with one object in the place of all sources and of the objects that were merged.

        Parameters
        ----------
        archives : those that hold no bitcode, or a copy that holds none, by the path in the command.
        """
        words = [] if merged is None else [str(merged)]
        # The linker needs a plug-in of LLVM for -flto, and the option only if archives may hold bitcode.
        plugin = any(path not in archives for path in self.archives)
        for word in self.words:
            match word.part:
                case ArgumentKind.SOURCE | ArgumentKind.LANGUAGE | ArgumentKind.DEPENDENCIES:
                    continue
                case _ if word.text[0] in modules or word.text[0] in _DEPENDENCIES:
                    continue
                case _ if word.text[0].startswith("-flto") and not plugin:
                    continue
                case ArgumentKind.LINKED if word.text[0] in archives:
                    words.append(archives[word.text[0]])
                case _:
                    words += word.text
        return [*self.program, *words]


def _expanded(options: Sequence[str], outer: frozenset[Path] = frozenset()) -> Iterator[str]:
    """Options with response files, @FILE, expanded.

    A file that includes itself is left for the compiler to reject.

    Raises
    ------
    InputNotReadable
    """
    for option in options:
        path = Path(os.path.realpath(option[1:])) if option.startswith("@") else None
        if path is not None and path.is_file() and path not in outer:
            yield from _expanded(_response(path), outer | {path})
        else:
            yield option


def _response(path: Path) -> list[str]:
    """The arguments in a response file."""
    try:
        with path.open("rb") as stream:
            content = stream.read(_MOST_RESPONSE_BYTES + 1)
        if len(content) > _MOST_RESPONSE_BYTES:
            raise ValueError(f"it has more than {_MOST_RESPONSE_BYTES} bytes")
        return shlex.split(content.decode("utf-8"))
    except (OSError, ValueError) as error:
        from tilewright.errors import InputNotReadable

        reason = getattr(error, "strerror", None) or str(error)
        raise InputNotReadable(path=str(path), reason=reason) from error


def _words(compiler: CompilerDriver, options: Sequence[str]) -> Iterator[Word]:
    rest = iter(options)
    named_language = False
    for word in rest:
        part, values = _part(word, compiler, named_language)
        text = (word, *(value for _, value in zip(range(values), rest, strict=False)))
        if part is ArgumentKind.LANGUAGE:
            named_language = text[-1] not in ("none", "-xnone")
        yield Word(part, text)


def _part(word: str, compiler: CompilerDriver, named_language: bool) -> tuple[ArgumentKind, int]:
    """The kind of an argument, and the number of values after it."""
    if not word.startswith("-") or word == "-":
        if word.endswith(compiler.suffixes) or (named_language and not word.endswith(_LINKED_SUFFIXES)):
            return ArgumentKind.SOURCE, 0
        return ArgumentKind.LINKED, 0
    match word:
        case "-o":
            return ArgumentKind.OUTPUT, 1
        case "-x":
            return ArgumentKind.LANGUAGE, 1
        case "-c" | "-S" | "-emit-llvm":
            return ArgumentKind.STAGE, 0
    if word in _DEPENDENCY_FILES:
        return ArgumentKind.DEPENDENCIES, 1
    if word.startswith(_DEPENDENCY_FILES):
        return ArgumentKind.DEPENDENCIES, 0
    if word in _LINKED_WITH_VALUE:
        return ArgumentKind.LINKED, 1
    if word in _LINKED or word.startswith(_LINKED_PREFIXES):
        return ArgumentKind.LINKED, 0
    if word in _WITH_VALUE:
        return ArgumentKind.OPTION, 1
    if word.startswith("-x"):
        return ArgumentKind.LANGUAGE, 0
    if word.startswith("-o"):
        return ArgumentKind.OUTPUT, 0
    return ArgumentKind.OPTION, 0
