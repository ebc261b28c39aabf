"""Parser of clang, flang and zig command lines: sources, linker arguments, and the last compilation stage."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path, PurePath

from tilewright.errors import InputNotReadable
from tilewright.loops.driving.compilers import NOT_DRIVEN, CompilerDriver, split_program
from tilewright.loops.opt.records import OutputFormat
from tilewright.reading import read_input
from tilewright.records import dataclass

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
    def form(self) -> OutputFormat:
        """Output format of each source's code."""
        forms = {
            Stop.ASSEMBLY: OutputFormat.ASSEMBLY,
            Stop.BITCODE: OutputFormat.BITCODE,
            Stop.IR: OutputFormat.LL,
        }
        return forms.get(self, OutputFormat.OBJECT)


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
        CompilerUnknown : the program is not a supported compiler.
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
        return self.output or PurePath(source.path).with_suffix(self.stop.form.value).name

    def compiling(self, source: SourceFile, bitcode: Path) -> list[str]:
        """The command that writes a source's unoptimised LLVM IR to a file."""
        words = [text for word in self.words if word.part is ArgumentKind.OPTION for text in word.text]
        words += self._dependencies(source)
        language = [] if source.language is None else ["-x", source.language]
        ir = [*self.compiler.ir, "-emit-llvm", "-c", "-o", str(bitcode)]
        return [*self.program, *words, *ir, *language, source.path]

    def _dependencies(self, source: SourceFile) -> list[str]:
        """Options for the requested dependency file and its target.

        Their defaults follow from the name of the output, which here is a temporary file.
        """
        asked = [word.text[0] for word in self.words if word.text[0] in ("-MD", "-MMD")]
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
                    if word.text[0] not in ("-MD", "-MMD", "-MP"):
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
        return shlex.split(read_input(path, _MOST_RESPONSE_BYTES).decode("utf-8"))
    except (OSError, ValueError) as error:
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
