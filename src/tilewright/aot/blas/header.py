"""The C header of the library: enumerations of CBLAS, prototypes of every standard name."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.aot.blas.entries import WIDTHS, Width
from tilewright.aot.blas.low_precision import prototypes as low_precision_prototypes
from tilewright.aot.blas.routines import FLAGS, ROLES, ROUTINES, ArgumentRole, Routine
from tilewright.aot.blas.types import PREFIX, TYPES, BlasType
from tilewright.aot.variants import Variants
from tilewright.llvm.values import INT32

#: What cblas.h of other implementations declares under the same names.
_ENUMERATIONS = (
    "enum CBLAS_LAYOUT {CblasRowMajor = 101, CblasColMajor = 102};",
    "enum CBLAS_TRANSPOSE {CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113};",
    "enum CBLAS_UPLO {CblasUpper = 121, CblasLower = 122};",
    "enum CBLAS_DIAG {CblasNonUnit = 131, CblasUnit = 132};",
    "enum CBLAS_SIDE {CblasLeft = 141, CblasRight = 142};",
)
_OFFSETS = "enum CBLAS_OFFSET {CblasRowOffset = 171, CblasColOffset = 172, CblasFixOffset = 173};"
_REAL = {"s": "float", "d": "double", "c": "float", "z": "double", "b": "float"}


def blas_header(variants: Variants) -> str:
    """The header, for C99 and C++; after another cblas.h it repeats none of its enumerations."""
    lines = [
        f"/* {PREFIX}: level-3 BLAS by tilewright, for Linux on {variants.detection.arch}.",
        " *",
        " * The first call selects one of these targets, best first:",
        *(f" *   {variant.target}" for variant in variants.ordered),
        " * Names that end with 64_ take integers of 64 bits. */",
        f"#ifndef {PREFIX.upper()}_H",
        f"#define {PREFIX.upper()}_H",
        "",
        "#include <stdint.h>",
        "",
        "#if !defined(CBLAS_H) && !defined(__MKL_CBLAS_H__)",
        "#define CBLAS_H",
        *_ENUMERATIONS,
        "#endif",
        "#ifndef __MKL_CBLAS_H__",
        _OFFSETS,
        "#endif",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "/* The target that this CPU takes; null if none. Threads of a call. */",
        f"const char *{PREFIX}_variant(void);",
        f"void {PREFIX}_set_num_threads(int count);",
        f"int {PREFIX}_get_num_threads(void);",
        "",
    ]
    for routine in ROUTINES:
        for letter in routine.types:
            for width in WIDTHS:
                lines += [_fortran(routine, letter, width), _c(routine, TYPES[letter], width)]
        lines.append("")
    lines += [*low_precision_prototypes(), "", "#ifdef __cplusplus", "}", "#endif", ""]
    return "\n".join([*lines, f"#endif /* {PREFIX.upper()}_H */", ""])


def integer_name(width: Width) -> str:
    """The C type of an integer of an interface."""
    return "int" if width.type is INT32 else "int64_t"


def _fortran(routine: Routine, letter: str, width: Width) -> str:
    integer = integer_name(width)
    kinds = {
        ArgumentRole.FLAG: "const char",
        ArgumentRole.SCALAR: "const void",
        ArgumentRole.MATRIX: "const void",
        ArgumentRole.SIZE: f"const {integer}",
        ArgumentRole.LEADING: f"const {integer}",
        ArgumentRole.STRIDE: f"const {integer}",
    }
    written = routine.written
    declared = ", ".join(
        f"{'void' if one == written else kinds[ROLES[one]]} *{one}" for one in routine.arguments
    )
    return f"void {width.fortran(TYPES[letter].title(routine.name))}({declared});"


def _c(routine: Routine, kind: BlasType, width: Width) -> str:
    declared = ", ".join(["enum CBLAS_LAYOUT layout", *_c_arguments(routine, kind, width)])
    return f"void {width.c(f'cblas_{kind.title(routine.name)}')}({declared});"


def _c_arguments(routine: Routine, kind: BlasType, width: Width) -> Iterator[str]:
    real = _REAL[kind.letter]
    factor = "uint16_t" if kind.operands else "void" if kind.is_complex else real
    result = "void" if kind.is_complex else real
    for one in routine.arguments:
        match ROLES[one]:
            case ArgumentRole.FLAG:
                yield f"enum {FLAGS[one].type} {one}"
            case ArgumentRole.SCALAR if kind.is_complex and one not in routine.real:
                yield f"const void *{one}"
            case ArgumentRole.SCALAR:
                yield f"{real} {one}"
            case ArgumentRole.MATRIX:
                yield f"{result} *{one}" if one == routine.written else f"const {factor} *{one}"
            case _:
                yield f"{integer_name(width)} {one}"
