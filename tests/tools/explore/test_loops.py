"""Innermost loops in assembly text of each architecture: where they are, what and how often they multiply."""

from __future__ import annotations

import pytest

from tilewright.machine.catalog import CATALOG
from tilewright.tools.explore.loops import DIALECTS, AssemblyLoop, innermost_loops

X86 = """
kernel:
.LBB0_1:                                # outer
	movq	%rdx, %rax
.LBB0_2:                                # inner, two depths
	vmovups	(%rsi), %zmm2           # a comment; with %zmm0
	vfmadd231ps	(%rdi){1to16}, %zmm2, %zmm0
	vfmadd231ps	%zmm2, %zmm3, %zmm1
	vmovups	64(%rsi), %zmm2
	vfmadd231ps	4(%rdi){1to16}, %zmm2, %zmm0
	vfmadd132ps	%zmm2, %zmm1, %zmm3
	vmovaps	%zmm3, %zmm1
	vmovups	%zmm4, 64(%rsp)
	decq	%rax
	jne	.LBB0_2
	jmp	.LBB0_1
.LBB0_3:
	jne	.LBB0_4
.LBB0_4:
	retq
second:
	je	.LBB0_1
.LBB1_1:
	decq	%rax
	jne	.LBB1_1
	retq
"""

SSE = """
kernel:
.LBB0_1:
	movaps	%xmm3, %xmm4
	mulps	%xmm5, %xmm4
	addps	%xmm4, %xmm0
	movaps	%xmm0, 16(%rsp)
	mulps	%xmm6, %xmm3
	addps	%xmm0, %xmm3
	movaps	%xmm3, %xmm0
	mulss	%xmm8, %xmm9
	jl	.LBB0_1
	retq
"""

AVX = """
kernel:
.LBB0_1:
	vmulps	(%rsi), %ymm4, %ymm5
	vaddps	%ymm5, %ymm0, %ymm0
	vmovups	%ymm0, (%rdi)
	vmulps	32(%rsi), %ymm4, %ymm5
	vaddps	%ymm5, %ymm1, %ymm0     # the old sum is not read
	vmovaps	%ymm0, %ymm1
	jl	.LBB0_1
	retq
"""

AMX = """
kernel:
.LBB0_1:
	tileloadd	(%rsi,%rdx), %tmm4
	tileloadd	(%rdi,%rdx), %tmm5
	tdpbf16ps	%tmm5, %tmm4, %tmm0
	tdpbf16ps	%tmm5, %tmm6, %tmm1
	vdpbf16ps	%zmm2, %zmm3, %zmm0
	jne	.LBB0_1
	retq
"""

ARM = """
kernel:                                 // @kernel
	cbz	x10, .LBB0_2
.LBB0_1:                                // =>This Inner Loop Header: Depth=1
	ldp	q24, q25, [x0]
	ldr	s28, [x1], #4
	fmla	v0.4s, v24.4s, v28.s[0]
	fmla	v1.4s, v25.4s, v28.s[0]
	str	q1, [sp, #16]           // 16-byte Folded Spill
	fadd	v25.4s, v25.4s, v1.4s
	ldp	q24, q25, [x0, #32]
	fmla	v0.4s, v24.4s, v28.s[1]
	fmla	v1.4s, v25.4s, v28.s[1]
	sdot	v2.4s, v24.16b, v28.4b[0]
	smmla	v3.4s, v24.16b, v25.16b
	bfmmla	v4.4s, v24.8h, v25.8h
	fmadd	s9, s10, s11, s9
	fmul	s9, s10, s11
	cbnz	x10, .LBB0_1
.LBB0_2:
	ret
"""

MACOS = """
_kernel:                                ; @kernel
LBB0_1:                                 ; =>This Inner Loop Header: Depth=1
	ldp	q24, q25, [x0]
	fmla.4s	v0, v24, v28[0]         ; a comment
	fmla.4s	v1, v25, v28[0]
	b.lt	LBB0_1
	ret
"""

SME = """
kernel:
.LBB0_1:
	ld1w	{ z0.s }, p0/z, [x0]
	fmopa	za0.s, p0/m, p0/m, z0.s, z1.s
	fmopa	za1.s, p0/m, p0/m, z0.s, z2.s
	fmopa	za0.s, p0/m, p0/m, z3.s, z1.s
	b.ne	.LBB0_1
	ret
"""

POWER = """
kernel:
.Lfunc_gep0:
	mtctr 4
.LBB0_2:                                # =>This Inner Loop Header: Depth=1
	lxvwsx 44, 23, 0
	lxv 45, 0(3)
	xvmaddasp 0, 44, 45
	xvmaddasp 1, 44, 45
	addi 0, 0, 4                    # other registers of these numbers
	addi 1, 1, 4
	lxvx 44, 5, 1
	xvmaddasp 0, 44, 45
	xvmaddmsp 44, 45, 1
	stxv 0, -16(1)
	xsmaddasp 9, 10, 11
	bdnz .LBB0_2
	blr
"""

MMA = """
kernel:
.LBB0_1:
	lxvp 34, 0(3)
	xvf32gerpp 0, 34, 36
	xvf32gerpp 1, 34, 37
	pmxvf32gerpp 0, 35, 36, 15, 15
	bdnz .LBB0_1
	blr
"""

RISCV = """
kernel:
.LBB0_8:                                # =>This Inner Loop Header: Depth=1
	vle32.v	v7, (a3)
	flw	fa2, 0(s4)
	vfmacc.vf	v8, fa2, v7
	vfmacc.vf	v9, fa2, v7
	vle32.v	v6, (a4)
	vfmacc.vf	v8, fa5, v6
	vfmadd.vf	v6, fa5, v9
	vs1r.v	v6, (a0)
	addi	s4, s4, 4
	bne	s4, s3, .LBB0_8
	j	.LBB0_9
.LBB0_9:
	ret
"""

#: Text, triple; of its only loop that multiplies: multiplies, depths, accesses to the stack, instructions.
TEXTS = {
    "x86": (X86, "x86_64-linux", (4, 2, 1, 10)),
    "sse": (SSE, "x86_64-linux", (2, 2, 1, 9)),
    "avx": (AVX, "x86_64-linux", (2, 1, 0, 7)),
    "amx": (AMX, "x86_64-linux", (3, 1, 0, 6)),
    "arm": (ARM, "aarch64-linux", (7, 2, 1, 15)),
    "macos": (MACOS, "arm64-apple-macosx11.0.0", (2, 1, 0, 4)),
    "sme": (SME, "aarch64-linux", (3, 2, 0, 5)),
    "power": (POWER, "powerpc64le-linux", (4, 2, 1, 12)),
    "mma": (MMA, "powerpc64le-linux", (3, 2, 0, 5)),
    "riscv": (RISCV, "riscv64-linux", (4, 2, 1, 10)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_loops(name: str) -> None:
    text, triple, expected = TEXTS[name]
    (loop,) = [loop for loop in innermost_loops(text, triple) if loop.multiplies]
    assert loop.function == "kernel"
    found = (len(loop.multiplies), loop.depths, len(loop.on_stack), len(loop.instructions))
    assert found == expected


def test_loops_of_several_functions() -> None:
    """The outer loop is none, and a jump into another function is none."""
    first, second = innermost_loops(X86, "x86_64-linux")
    assert (first.label, first.instructions[0]) == (".LBB0_2", "vmovups\t(%rsi), %zmm2")
    assert (second.function, second.label) == ("second", ".LBB1_1")
    assert second.instructions == ("decq\t%rax", "jne\t.LBB1_1")
    assert second.multiplies == []


TWO_WAYS_BACK = """
kernel:
	jmp	.LBB0_4
.LBB0_1:
	addps	%xmm1, %xmm0
	jle	.LBB0_1
	jmp	.LBB0_3
.LBB0_2:
	mulps	%xmm1, %xmm0
.LBB0_3:
	jne	.LBB0_2
	retq
.LBB0_4:
	movq	%rax, %rbx
	jmp	.LBB0_1
"""


def test_blocks_in_any_order() -> None:
    """A block placed behind a loop that leads to it is not of the loop; a loop may be entered at its end."""
    first, second = innermost_loops(TWO_WAYS_BACK, "x86_64-linux")
    assert first.instructions == ("addps\t%xmm1, %xmm0", "jle\t.LBB0_1")
    assert second.instructions == ("mulps\t%xmm1, %xmm0", "jne\t.LBB0_2")


OUTER_WITHOUT_A_LABEL_OF_ITS_OWN = """
kernel:
.LBB0_1:
	mulps	%xmm1, %xmm0
	jl	.LBB0_1
	addps	%xmm1, %xmm0
	jmp	.LBB0_1
"""


def test_two_jumps_to_one_label_are_one_loop() -> None:
    (loop,) = innermost_loops(OUTER_WITHOUT_A_LABEL_OF_ITS_OWN, "x86_64-linux")
    assert len(loop.instructions) == 4


def test_straight_code_has_no_loop() -> None:
    assert innermost_loops("kernel:\n\tjl\t.LBB0_1\n.LBB0_1:\n\tretq\n", "x86_64-linux") == []


def test_counts_and_matching() -> None:
    (loop,) = innermost_loops(MACOS, "arm64-apple-macosx11.0.0")
    assert isinstance(loop, AssemblyLoop)
    assert loop.counts == {"ldp": 1, "fmla": 2, "b": 1}
    assert loop.matching(r"v1\b") == ["fmla.4s\tv1, v25, v28[0]"]


def test_every_machine_has_a_dialect() -> None:
    assert {entry.machine.arch for entry in CATALOG} == set(DIALECTS)
