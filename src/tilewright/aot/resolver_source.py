"""The resolver of a library as C source: what `aot/resolver.py` emits, to be read and changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.aot.build import ExportedFunction, KernelLibrary
from tilewright.aot.resolver import (
    ARCH_PRCTL,
    NOT_ASKED,
    NOTHING_FITS,
    REQUEST_PERMISSION,
    TILE_DATA,
    no_variant_message,
)
from tilewright.aot.variants import Variant
from tilewright.machine.feature_bits import (
    OSXSAVE,
    TILE_GRANT,
    XCR0,
    AuxiliaryWord,
    Condition,
    CpuidWord,
    FeatureBit,
    Register,
    Saved,
    StateWord,
    TileGrantWord,
    Word,
    words_of,
)

_CPUID_WORD = """\
/* A register of CPUID; 0 above the highest leaf or subleaf, where CPUID is undefined. */
static uint64_t cpuid_word(uint32_t leaf, uint32_t subleaf, int which)
{
    uint32_t registers[4];
    __cpuid(leaf & 0x80000000u, registers[0], registers[1], registers[2], registers[3]);
    if (registers[0] < leaf)
        return 0;
    if (subleaf != 0) {
        __cpuid_count(leaf, 0, registers[0], registers[1], registers[2], registers[3]);
        if (registers[0] < subleaf)
            return 0;
    }
    __cpuid_count(leaf, subleaf, registers[0], registers[1], registers[2], registers[3]);
    return registers[which];
}
"""

_SAVED_STATE = f"""\
/* XCR0: the registers that the operating system saves; 0 where it has not enabled XGETBV (OSXSAVE). */
static uint64_t saved_state(void)
{{
    uint32_t low, high;
    if (!(cpuid_word(1, 0, {int(Register.ECX)}) & {OSXSAVE:#x}u))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low | (uint64_t)high << 32;
}}
"""

_TILE_GRANT = f"""\
/* 1 if the operating system lets this process use AMX tiles (ARCH_REQ_XCOMP_PERM of XTILEDATA). */
static uint64_t ask_for_tiles(uint64_t saved)
{{
    if ((saved & {int(Saved.TILES):#x}) != {int(Saved.TILES):#x})
        return 0;
    return syscall({ARCH_PRCTL}L, {REQUEST_PERMISSION:#x}L, {TILE_DATA}L) == 0;
}}
"""


def resolver_source(library: KernelLibrary) -> str:
    """The source, for compilers that know GCC's extensions."""
    variants = library.variants.ordered
    words = words_of([variant.conditions for variant in variants])
    lines = [
        f"/* The resolver of {library.name}: which kernels this CPU takes.",
        f" * Compile it with the program to replace the one that {library.name}.h speaks of. */",
        f'#include "{library.name}.h"',
        "",
        *_includes(words),
        "",
        *_readers(words),
        *_choice(variants, words),
        *_functions(library),
    ]
    return "\n".join(lines)


def _includes(words: Sequence[Word]) -> Iterator[str]:
    """What the words and the message need."""
    kinds = {type(word) for word in words}
    if kinds & {CpuidWord, StateWord}:
        yield "#include <cpuid.h>"
    yield "#include <stdio.h>"
    yield "#include <stdlib.h>"
    if AuxiliaryWord in kinds:
        yield "#include <sys/auxv.h>"
    if TileGrantWord in kinds:
        yield ""
        yield "long syscall(long number, ...);  /* unistd.h, which declares it with _DEFAULT_SOURCE only */"


def _readers(words: Sequence[Word]) -> Iterator[str]:
    """The functions that read words, those that are needed."""
    kinds = {type(word) for word in words}
    if kinds & {CpuidWord, StateWord}:
        yield _CPUID_WORD
    if StateWord in kinds:
        yield _SAVED_STATE
    if TileGrantWord in kinds:
        yield _TILE_GRANT


def _read(word: Word) -> str:
    """The expression that reads a word."""
    match word:
        case CpuidWord(leaf, subleaf, register):
            return f"cpuid_word({leaf:#x}, {subleaf}, {int(register)})"
        case AuxiliaryWord(entry):
            return f"getauxval({entry})"
        case StateWord():
            return "saved_state()"
        case TileGrantWord():
            return f"ask_for_tiles({XCR0.label})"


def _choice(variants: Sequence[Variant], words: Sequence[Word]) -> Iterator[str]:
    """The function that compares, and what is made of its answer."""
    yield f"/* The number of the target, {NOTHING_FITS} if none fits; {NOT_ASKED} until the first call. */"
    yield f"static int choice = {NOT_ASKED};"
    yield ""
    yield "static int choose(void)"
    yield "{"
    for word in words:
        yield f"    const uint64_t {word.label} = {_read(word)};"
    for number, variant in enumerate(variants):
        yield f"    /* {variant.target} */"
        yield from _test(variant, f"return {number};")
    if all(variant.conditions for variant in variants):
        yield f"    return {NOTHING_FITS};"
    yield "}"
    yield ""


def _test(variant: Variant, then: str) -> Iterator[str]:
    """An if over the conditions of a variant, the features beside each."""
    if not variant.conditions:
        yield f"    {then}"
        return
    last = len(variant.conditions) - 1
    for number, condition in enumerate(variant.conditions):
        begin = "    if (" if number == 0 else "        "
        end = ")" if number == last else " &&"
        label, mask = condition.word.label, f"{condition.mask:#x}u"
        yield f"{begin}({label} & {mask}) == {mask}{end}  /* {_features(variant.features, condition)} */"
    yield f"        {then}"


def _features(rows: Sequence[FeatureBit], condition: Condition) -> str:
    """What a condition looks for, in words."""
    if condition.word == XCR0:
        saved = [
            name for name, state in Saved.__members__.items() if state and condition.mask & state == state
        ]
        return f"the system saves {' '.join(saved)}"
    if condition.word == TILE_GRANT:
        return "and lets the process use them"
    return " ".join(row.feature for row in rows if row.word == condition.word)


def _functions(library: KernelLibrary) -> Iterator[str]:
    """The kept choice, the name of the target, and the functions that jump."""
    message = no_variant_message(library.name, [variant.target for variant in library.variants.ordered])
    yield "/* Threads that meet here compute and store the same number. */"
    yield "static int kept_choice(void)"
    yield "{"
    yield "    int kept = __atomic_load_n(&choice, __ATOMIC_RELAXED);"
    yield f"    if (kept == {NOT_ASKED}) {{"
    yield "        kept = choose();"
    yield "        __atomic_store_n(&choice, kept, __ATOMIC_RELAXED);"
    yield "    }"
    yield "    return kept;"
    yield "}"
    yield ""
    yield "static int choose_or_abort(void)"
    yield "{"
    yield "    const int chosen = kept_choice();"
    yield "    if (chosen < 0) {"
    yield f'        fputs("{message}\\n", stderr);'
    yield "        abort();"
    yield "    }"
    yield "    return chosen;"
    yield "}"
    yield ""
    names = ", ".join(f'"{variant.target}"' for variant in library.variants.ordered)
    yield f"const char *{library.name}_variant(void)"
    yield "{"
    yield f"    static const char *const targets[] = {{{names}}};"
    yield "    const int chosen = kept_choice();"
    yield "    return chosen < 0 ? NULL : targets[chosen];"
    yield "}"
    yield ""
    for function in library.functions:
        yield from _dispatch(function)


def _dispatch(function: ExportedFunction) -> Iterator[str]:
    """A function that jumps through a pointer, filled by its first call."""
    parameters = function.parameters
    declared = ", ".join(parameter.declaration for parameter in parameters)
    names = ", ".join(parameter.name for parameter in parameters)
    variants = ", ".join(kernel.symbol for kernel in function.kernels)
    yield f"void {function.name}({declared})"
    yield "{"
    yield f"    static {function.entry.type_name} *const variants[] = {{{variants}}};"
    yield f"    static {function.entry.type_name} *found;"
    yield f"    {function.entry.type_name} *kernel = __atomic_load_n(&found, __ATOMIC_RELAXED);"
    yield "    if (kernel == NULL) {"
    yield "        kernel = variants[choose_or_abort()];"
    yield "        __atomic_store_n(&found, kernel, __ATOMIC_RELAXED);"
    yield "    }"
    yield f"    kernel({names});"
    yield "}"
    yield ""
