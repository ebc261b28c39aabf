"""Specification files of kernel libraries: TOML to problems with C names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from tilewright.compiler.operation import Problem, kernel_name
from tilewright.errors import InvalidChoice, InvalidSpec, SpecUnreadable, TilewrightError, shown
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.einsum.contraction_call import einsum_contraction
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.unary.problem import Unary
from tilewright.reading import read_input
from tilewright.records import dataclass
from tilewright.spec.operations import OPS

#: Problem records whose keyword arguments are the keys of a kernel table.
_RECORDS: dict[str, Callable[..., Problem]] = {"gemm": Gemm, "brgemm": BatchReduceGemm, "unary": Unary}


def _contraction(
    subscripts: str,
    sizes: Mapping[str, int],
    dtype: str = "f32",
    out_dtype: str | None = None,
    main: str | None = None,
    first: str = "zero",
    last: str | None = None,
) -> Problem:
    """A contraction of row-major operands, from subscripts and the length of each label."""
    terms = subscripts.replace(" ", "").partition("->")[0].split(",")
    for label in "".join(terms):
        if label not in sizes:
            raise InvalidChoice(
                name="sizes", found=shown(sizes), allowed=f"a length for each label, as {label}"
            )
    shapes = [tuple(sizes[label] for label in term) for term in terms]
    words: dict[str, Any] = {"main": main, "first": first, "last": last}
    return einsum_contraction(subscripts, *shapes, dtype=dtype, out_dtype=out_dtype, **words)


def problem_names() -> tuple[str, ...]:
    """The problems of a specification: every operation, in the order of `tilewright emit --help`."""
    return tuple(OPS.names)


def _builder(word: str) -> Callable[..., Problem]:
    """What makes a problem of an operation from the keys of a kernel table."""
    if word == "contraction":
        return _contraction
    found: Callable[..., Problem] = _RECORDS.get(word) or OPS[word].build
    return found


#: Keys of a kernel that are not its problem's.
_OWN_KEYS = ("problem", "name")
#: Top-level keys.
_TOP_KEYS = ("library", "prefix", "kernel")
#: Largest specification file, in bytes.
_MOST_BYTES = 16 << 20
#: Name of a library without a name.
DEFAULT_LIBRARY = "tilewright"


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


#: Reserved words of C11 and C++20 that match the pattern of names.
_RESERVED = _words(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class co_await",
    "co_return co_yield compl concept const const_cast consteval constexpr constinit continue",
    "decltype default delete do double dynamic_cast else enum explicit export extern false float for",
    "friend goto if inline int long main mutable namespace new noexcept not not_eq nullptr operator",
    "or or_eq private protected public register reinterpret_cast requires restrict return short",
    "signed sizeof static static_assert static_cast struct switch template this thread_local throw",
    "true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor",
    "xor_eq",
    # Functions that the resolver calls and defines.
    "abort getauxval syscall write choice choose choose_or_abort cpuid cpuid_word message targets xgetbv",
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class LibraryKernel:
    """One kernel: its C name and its problem."""

    name: str
    problem: Problem

    @property
    def type_name(self) -> str:
        """Name of the function's type in the header."""
        return f"{self.name}_function"

    @property
    def scratch_macro(self) -> str:
        """Name of the scratch size macro in the header."""
        return f"{self.name.upper()}_SCRATCH_BYTES"


@dataclass(frozen=True)
class Spec:
    """A library's name and its kernels."""

    library: str
    entries: tuple[LibraryKernel, ...]


def read_spec(path: Path) -> Spec:
    """Read a specification file.

    Raises
    ------
    SpecUnreadable : the file does not exist or is not TOML.
    InvalidSpec : as `parse_spec`.
    """
    try:
        text = read_input(path, _MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise SpecUnreadable(path=str(path), reason=reason) from error
    return parse_spec(text, str(path))


def parse_spec(text: str, path: str = "spec") -> Spec:
    r"""Parse a specification in TOML.

    Parameters
    ----------
    text : `[[kernel]]` tables, each with `problem` (the name of an operation, as `tilewright emit` has it),
        its options (`m = 64`, `dtype = "f32"`, ...; omitted sizes are given at run time) and optionally
        `name`, the C name. Before the tables, `library` is the name of its files and of
        `<library>_variant`, and `prefix` is what the names of all functions begin with.
    path : its name in messages.

    Raises
    ------
    SpecUnreadable : it is not TOML.
    InvalidSpec : an invalid key or value; the message names the kernel, the key and what is allowed.

    Examples
    --------
    >>> parse_spec('[[kernel]]\nproblem = "unary"\nop = "relu"').entries[0].name
    'unary_relu_f32_mxn_cc'
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecUnreadable(path=path, reason=f"it is not TOML: {error}") from error
    for key in values:
        if key not in _TOP_KEYS:
            reason = (
                f"key {key!r} is unknown, allowed: {', '.join(_TOP_KEYS)} (kernels begin with [[kernel]])"
            )
            raise InvalidSpec(path=path, where="in front of the kernels", reason=reason)
    library = _checked_name(
        values.get("library", DEFAULT_LIBRARY), "library", path, "in front of the kernels"
    )
    prefix = values.get("prefix", "")
    if prefix != "":
        prefix = _checked_name(prefix, "prefix", path, "in front of the kernels")
    kernels = values.get("kernel", [])
    if not isinstance(kernels, list) or not kernels or not all(isinstance(one, dict) for one in kernels):
        reason = "there are no kernels; each begins with a line [[kernel]]"
        raise InvalidSpec(path=path, where="at its end", reason=reason)
    entries = tuple(
        _entry(kernel, path, f"kernel {number}", prefix) for number, kernel in enumerate(kernels, 1)
    )
    _check_distinct(library, entries, path)
    return Spec(library, entries)


def _check_distinct(library: str, entries: Sequence[LibraryKernel], path: str) -> None:
    """Check that all names declared in the header are distinct."""
    owners = dict.fromkeys((f"{library}_variant", f"{library.upper()}_H"), "the library")
    for number, entry in enumerate(entries, 1):
        for declared in (entry.name, entry.type_name, entry.scratch_macro):
            if declared in owners:
                reason = f"name is {entry.name!r}: {declared} is {owners[declared]}'s; choose another name"
                raise InvalidSpec(path=path, where=f"kernel {number}", reason=reason)
        owners |= dict.fromkeys((entry.name, entry.type_name, entry.scratch_macro), f"kernel {number}")


def _entry(kernel: Mapping[str, Any], path: str, where: str, prefix: str) -> LibraryKernel:
    """Parse one `[[kernel]]` table; the problem record validates the values."""
    word = kernel.get("problem")
    if not isinstance(word, str) or word not in problem_names():
        found = "missing" if word is None else repr(word)
        reason = f"problem is {found}, must be one of: {', '.join(problem_names())}"
        raise InvalidSpec(path=path, where=where, reason=reason)
    record = _builder(word)
    arguments = {key: _value_of(value) for key, value in kernel.items() if key not in _OWN_KEYS}
    for reason in _mistakes(record, word, arguments):
        raise InvalidSpec(path=path, where=where, reason=reason)
    try:
        problem = record(**arguments)
    except TilewrightError as error:
        raise InvalidSpec(path=path, where=where, reason=str(error)) from error
    name = _checked_name(kernel.get("name", default_name(problem)), "name", path, where)
    return LibraryKernel(f"{prefix}{name}", problem)


def _value_of(value: object) -> object:
    """The value of an option; in a list, "none" stands for None, as in the options of `tilewright emit`."""
    return [None if one == "none" else one for one in value] if isinstance(value, list) else value


def _types_of(annotation: str) -> tuple[type, ...]:
    """The types of TOML that an option may have: lists and tables where it is a sequence or a mapping."""
    for word, kind in (("Sequence", list), ("Mapping", dict)):
        if word in annotation:
            return (kind,)
    return (bool, int, str)


def _mistakes(record: Callable[..., Problem], word: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Unknown and missing keys, and values of invalid types."""
    allowed = signature(record).parameters
    for key, value in arguments.items():
        if key not in allowed:
            yield f"key {key!r} is unknown, allowed for {word}: {', '.join((*_OWN_KEYS, *allowed))}"
        elif isinstance(value, bool) and "bool" not in str(allowed[key].annotation):
            yield f"{key} is {str(value).lower()}, must be a number or a word in quotes"
        elif not isinstance(value, _types_of(str(allowed[key].annotation))):
            yield f"{key} is {value!r}, must be an integer or a word in quotes"
    for key, parameter in allowed.items():
        if parameter.default is Parameter.empty and key not in arguments:
            yield f"key {key!r} is missing, {word} needs it"


def default_name(problem: Problem) -> str:
    """Default name of a kernel, derived from its problem.

    >>> default_name(Gemm(64, 64, 64))
    'gemm_f32_64x64x64_rrr_auto'
    """
    return kernel_name(problem, "").rstrip("_")


def _checked_name(value: object, key: str, path: str, where: str) -> str:
    """A valid C and C++ identifier, short enough for the names derived from it."""
    if isinstance(value, str) and _NAME.fullmatch(value) and "__" not in value and value not in _RESERVED:
        return value
    reason = (
        f"{key} is {value!r}, must be a C name: letters, digits and single underscores, the first a letter, "
        "and no word that C, C++ or the resolver has its own use for"
    )
    raise InvalidSpec(path=path, where=where, reason=reason)
