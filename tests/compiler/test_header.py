"""C headers of kernels: one word for word, every form through a C and a C++ compiler, and a call from C."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from uncompiled import uncompiled

import tilewright as tw
from tilewright.compiler.operation import Problem
from tilewright.ir.text import print_program
from tilewright.spec.dtype import DTYPES, DType, Kind
from tilewright.spec.weights import Weights

GOLDEN = """\
/* C = alpha * A * B + beta * C; beta 0 does not read C, alpha 0 neither A nor B.
 * Compiled for neoverse-v2 (aarch64-unknown-linux-gnu, neoverse-v2).
 * C overlaps neither A nor B; strides and leading dimensions are in elements. */
#ifndef GEMM_F64_64XNXK_RCS_TILING_NEON_H
#define GEMM_F64_64XNXK_RCS_TILING_NEON_H

#include <stdint.h>

/* The threads that share a call. run calls body once for every task 0 .. tasks-1, in any order, and
 * returns when all have been done. thread is 0 .. threads-1 and differs between bodies that run at the
 * same time. Long tasks call run with no body and 0 tasks, which has nothing to do; it may set the
 * int64_t at env to end the task early. */
#ifndef TILEWRIGHT_TEAM
#define TILEWRIGHT_TEAM
struct tw_team {
    void (*run)(struct tw_team *team, void (*body)(void *env, int64_t thread, int64_t task),
                void *env, int64_t tasks);
    int64_t threads;
};
#endif

#ifdef __cplusplus
extern "C" {
#endif

void gemm_f64_64xnxk_rcs_tiling_neon(
    const double *a,        /* A: 64 x k, row-major */
    const double *b,        /* B: k x n, column-major */
    double *c,              /* C: 64 x n, any strides */
    int64_t m,              /* rows of A and rows of C; not read, it is 64 */
    int64_t n,              /* columns of B and columns of C */
    int64_t k,              /* columns of A and rows of B */
    int64_t rs_a,           /* from one of the rows of A to the next */
    int64_t cs_a,           /* from one of the columns of A to the next; not read */
    int64_t rs_b,           /* from one of the rows of B to the next; not read */
    int64_t cs_b,           /* from one of the columns of B to the next */
    int64_t rs_c,           /* from one of the rows of C to the next */
    int64_t cs_c,           /* from one of the columns of C to the next */
    double alpha,           /* factor of A * B */
    double beta,            /* factor of C */
    void *scratch,          /* SCRATCH */
    struct tw_team *team);  /* the threads that share the call; null for one */

#ifdef __cplusplus
}
#endif

#endif /* GEMM_F64_64XNXK_RCS_TILING_NEON_H */
"""

PROBLEMS: tuple[Problem, ...] = (
    tw.Gemm(),
    tw.Gemm(dtype="f64", strategy="tiling", a="col", c="strided"),
    tw.Gemm(64, 32, 16, b="col"),
    tw.BatchReduceGemm(8, 4, 3),
    tw.BatchReduceGemm(8, 4, 3, 5, "f64", a="row", b="row", c="row", beta=0),
    tw.BatchReduceGemm(8, 4, 3, 2, batch="address"),
    tw.Unary("relu"),
    tw.Unary("zero", 4, 8, "c128", b="row"),
    tw.Unary("identity", dtype="i16", a="strided", b="strided"),
    tw.Gemm(b="packed"),
    tw.Packing("b", "bf16"),
    tw.Mmt4d(8, 16, 2, "i8", m1=3),
    tw.LinearChain((8, 16, 4), ("relu", None)),
    tw.Attention(16, bounded=True, mask="u8", softcap=True),
    tw.Attention(16, kv_dtype="i8", key_scales=True, value_scales=True, paged=True, sinks=True),
    tw.Attention(16, schedule="decode"),
    tw.AttentionBackward(16),
    tw.Syr2k(dtype="f64", a="col", lower=False),
    tw.Syrk(8, dtype="i8", out_dtype="i32"),
    tw.Trmm(n=8, dtype="f64", side="right", unit=True),
)
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=str)


def test_golden() -> None:
    kernel = uncompiled(tw.Gemm(64, dtype="f64", b="col", c="strided", strategy="tiling"), "neoverse-v2")
    more = kernel.scratch_bytes_for(2) - kernel.scratch_bytes
    meaning = (
        f"{kernel.scratch_bytes} bytes on a multiple of 4096, {more} more for each thread of a team but one"
    )
    assert kernel.header == GOLDEN.replace("SCRATCH", meaning)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (PROBLEMS[0], "bytes on a multiple of 4096, "),
        (PROBLEMS[4], "C = sum of A[i] * B[i], i from 0 to 4."),
        (PROBLEMS[3], "C = C + sum of A[i]"),
        (PROBLEMS[4], "const double *a, /* the first of 5 A: 8 x 3, row-major */"),
        (PROBLEMS[5], "const float *const *b, /* 2 pointers to B: 3 x 4, column-major */"),
        (PROBLEMS[7], "const void *a, /* not read, may be null */"),
        (PROBLEMS[13], "int64_t v_col, /* 1: columns of v are adjacent */"),
        (PROBLEMS[13], "Results overlap no operand; offsets and strides are in elements."),
        (PROBLEMS[14], "int64_t v_col, /* of v, from one column to the next */"),
        (
            PROBLEMS[15],
            "    float *partials, /* space for batch * kv_heads * group * queries * splits * ",
        ),
        (PROBLEMS[15], "int64_t splits, /* runs of 2048 keys that the longest sequence has, at least 1 */"),
        (PROBLEMS[15], "int64_t k_col, /* not read: columns of k are adjacent */"),
        (PROBLEMS[16], "    float *dq, /*"),
        (PROBLEMS[17], "C = alpha * (A * B^T + B * A^T) + beta * C, its upper triangle; beta 0"),
        (PROBLEMS[17], "const double *a, /* A: n x k, column-major */"),
        (PROBLEMS[17], "int64_t n, /* rows of A and rows of B and rows of C */"),
        (PROBLEMS[18], "C = alpha * A * A^T + beta * C, its lower triangle"),
        (PROBLEMS[18], "int32_t *c, /* C: 8 x 8, row-major */"),
        (PROBLEMS[18], "int32_t alpha, /* factor of what is added to C */"),
        (PROBLEMS[18], "int64_t cs_a, /* from one of the columns of A to the next; not read */"),
        (PROBLEMS[19], "C = alpha * B * T, T the lower triangle of A with ones on its diagonal; alpha 0"),
        (PROBLEMS[19], "const double *a, /* A: 8 x 8, row-major */"),
        (PROBLEMS[19], "const double *b, /* B: m x 8, row-major */"),
        (PROBLEMS[19], "double alpha, /* factor of the product */"),
        (PROBLEMS[8], "const int16_t *a, /* A: m x n, any strides */"),
    ],
)
def test_words(problem: Problem, words: str) -> None:
    assert words in re.sub(r",\s+/", ", /", uncompiled(problem).header)


@each_problem
def test_what_is_called_unread_is_not_read(problem: Problem) -> None:
    """A size that the comment calls unread is not in the tile IR, and one that is in it is read."""
    kernel = uncompiled(problem)
    body, header = print_program(kernel.nest).split("argument", maxsplit=1)[1], kernel.header
    for name in kernel.nest.sizes:
        (meaning,) = re.findall(rf"int64_t {name}\W.*?/\* (.*) \*/", header)
        if "not read" in meaning:
            assert not re.search(rf"\b{name}\b", body), name
        elif not isinstance(problem, tw.BatchReduceGemm):  # there one tile may never reach the next row
            assert re.search(rf"\b{name}\b", body), name


def compiler(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


@each_problem
def test_compilers_take_it(problem: Problem, tmp_path: Path) -> None:
    (tmp_path / "kernel.h").write_text(uncompiled(problem).header, encoding="utf-8")
    twice = '#include "kernel.h"\n#include "kernel.h"\nint x;\n'
    for name, options, suffix in (("cc", ("-std=c99", "-pedantic"), "c"), ("c++", (), "cpp")):
        source = tmp_path / f"twice.{suffix}"
        source.write_text(twice, encoding="utf-8")
        command = [compiler(name), *options, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)]
        subprocess.run(command, check=True)


CALL = """
#include "kernel.h"
#include <stdio.h>
int main(void)
{
    float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 0, 1, 1}, c[] = {10, 20, 30, 40};
    brgemm_f32_2x2x3x1_rrr_ISA(a, b, c, 3, 2, 2, 0, 0);
    printf("%g %g %g %g", c[0], c[1], c[2], c[3]);
    return 0;
}
"""


def test_a_call_from_c(tmp_path: Path) -> None:
    kernel = tw.compile(tw.BatchReduceGemm(2, 2, 3, a="row", b="row", c="row"))
    assert kernel.symbol.endswith(tw.machine().isa.name)
    (tmp_path / "kernel.h").write_text(kernel.header, encoding="utf-8")
    (tmp_path / "kernel.o").write_bytes(kernel.object_code)
    main = tmp_path / "main.c"
    main.write_text(CALL.replace("ISA", tw.machine().isa.name), encoding="utf-8")
    program = tmp_path / "main"
    subprocess.run([compiler("cc"), str(main), str(tmp_path / "kernel.o"), "-o", str(program)], check=True)
    # [1 2 3; 4 5 6] times [1 0; 2 0; 1 1] is [8 3; 20 6]
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert done.stdout == "18 23 50 46"


def test_every_element_type_has_a_spelling() -> None:
    words = {"f64": "double", "f32": "float", "c64": "void", "c128": "void"}
    words |= {"i8": "int8_t", "u8": "uint8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t"}
    assert {name: DTYPES[name].c_name for name in words} == words
    assert DType("f16", 16, Kind.FLOAT, "float16").c_name == "void"


def test_a_kernel_of_weights_declares_its_vectors() -> None:
    header = tw.compile(tw.Gemm(weights=Weights.parse("i4g64z"), epilogue="bias")).header
    for parameter in ("const float *scales", "const float *zeros", "const float *bias", "float alpha"):
        assert parameter in header
