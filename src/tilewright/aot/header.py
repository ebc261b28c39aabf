"""The C header of a library: its functions, their variants, and how it is linked."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.aot.build import ExportedFunction, KernelLibrary
from tilewright.aot.form import LibraryForm
from tilewright.aot.variants import Variant
from tilewright.compiler.c_header import TEAM, formula, overlap, prototype
from tilewright.compiler.interface import SCRATCH_ALIGNMENT
from tilewright.compiler.lowering.interface import has_tasks


def library_header(library: KernelLibrary, form: LibraryForm) -> str:
    """The header, for C99 and C++."""
    guard = f"{library.name.upper()}_H"
    lines = [
        *_introduction(library, form),
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
        *(TEAM if any(has_tasks(function.kernels[0].nest) for function in library.functions) else ()),
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "/* What scratch must be a multiple of. */",
        "#ifndef TILEWRIGHT_SCRATCH_ALIGNMENT",
        f"#define TILEWRIGHT_SCRATCH_ALIGNMENT {SCRATCH_ALIGNMENT}",
        "#endif",
        "",
        "/* The target whose kernels this CPU takes; a null pointer if none fits it. */",
        f"const char *{library.name}_variant(void);",
        "",
    ]
    for function in library.functions:
        lines += _declarations(function, library.variants.ordered)
    lines += ["#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""]
    return "\n".join(lines)


def _introduction(library: KernelLibrary, form: LibraryForm) -> Iterator[str]:
    name, arch = library.name, library.variants.detection.arch
    yield f"/* {name}: kernels compiled ahead of time by tilewright, for Linux on {arch}."
    yield " *"
    yield " * The first call finds out which of these targets CPU and operating system fit, best first:"
    for variant in library.variants.ordered:
        yield f" *   {variant.target}"
        yield from _wrapped(_needs(variant), prefix=" *     ")
    yield f" * Where none fits, {name}_variant() is null, and a function writes a message and calls abort()."
    yield " * Every variant can also be called by its own name, which checks nothing."
    yield " *"
    if form is LibraryForm.ARCHIVE:
        yield f" * lib{name}.a holds every variant, and the resolver, which runs on any {arch} CPU:"
        yield f" *   cc program.c lib{name}.a */"
    elif form is LibraryForm.SHARED:
        yield f" * lib{name}.so holds every variant, and the resolver, which runs on any {arch} CPU:"
        yield f" *   cc program.c -L. -l{name} */"
    else:
        yield " * There is one object for each function and target;"
        yield f" * {name}_resolver.o is the resolver, which runs on any {arch} CPU:"
        yield " *   cc program.c *.o */"


def _needs(variant: Variant) -> str:
    """CPU features that a variant requires."""
    return " ".join(row.feature for row in variant.features) or f"any {variant.machine.arch} CPU"


def _wrapped(text: str, prefix: str, width: int = 100) -> Iterator[str]:
    """Wrap a text into lines."""
    line = prefix
    for word in text.split():
        if line != prefix and len(line) + len(word) > width:
            yield line.rstrip()
            line = prefix
        line += f"{word} "
    yield line.rstrip()


def _declarations(function: ExportedFunction, variants: tuple[Variant, ...]) -> Iterator[str]:
    """Declaration of a function, its scratch sizes, its type and its variants."""
    kernel = function.kernels[0]
    yield f"/* {formula(kernel.problem)}"
    yield f" * {overlap(kernel.problem)} */"
    if function.scratch_bytes:
        yield f"#define {function.entry.scratch_macro} {function.scratch_bytes}"
        if has_tasks(kernel.nest):
            yield f"#define {function.entry.scratch_macro}_PER_THREAD {function.thread_bytes}"
    yield from prototype(function.name, function.parameters)
    yield f"typedef {c_function_type(function)};"
    for variant, one in zip(variants, function.kernels, strict=True):
        yield f"{function.entry.type_name} {one.symbol};  /* {variant.target} */"
    yield ""


def c_function_type(function: ExportedFunction) -> str:
    """The type of a function, as its typedef spells it."""
    declared = ", ".join(parameter.declaration for parameter in function.parameters)
    return f"void {function.entry.type_name}({declared})"
