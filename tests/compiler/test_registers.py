"""Registers counted in assembly text."""

from __future__ import annotations

from shares import looped
from uncompiled import uncompiled

import tilewright as tw
from tilewright.compiler.registers import RegisterUse, count_registers

REGISTERS: dict[str, tuple[str, RegisterUse]] = {
    "nothing": ("\tmovq\t%rax, %rbx\n\tretq\n", RegisterUse(0, 0)),
    "three": ("\tvfmadd231ps\t%zmm1, %zmm2, %zmm31", RegisterUse(3, 0)),
    "one by two names": ("\tvmovaps\t%xmm1, %xmm2\n\tvaddps\t%zmm1, %zmm2, %zmm1", RegisterUse(2, 0)),
    "a masked load": ("\tvmovups\t(%rdi), %zmm17 {%k1} {z}", RegisterUse(1, 0)),
    "an element": ("\tvfmadd231ss\t(%rdi), %xmm3, %xmm4", RegisterUse(2, 0)),
    "spilled": ("\tvmovups\t%zmm1, 64(%rsp)        # 64-byte Spill", RegisterUse(1, 1)),
    "spilled below": ("\tmovaps\t%xmm9, -24(%rsp)\n\tmovaps\t-24(%rsp), %xmm9", RegisterUse(1, 1)),
    "spilled at the top": ("\tvmovupd\t%ymm3, (%rsp)\n\tvmovupd\t%ymm4, 32(%rsp)", RegisterUse(2, 2)),
    "reloaded only": ("\tvmovups\t64(%rsp), %zmm1", RegisterUse(1, 0)),
    "integers on the stack": ("\tmovq\t%rax, 8(%rsp)", RegisterUse(0, 0)),
    "stored elsewhere": ("\tvmovups\t%zmm1, 64(%rdi)", RegisterUse(1, 0)),
    "by element": ("\tfmla\tv0.4s, v9.4s, v12.s[0]", RegisterUse(3, 0)),
    "by element of two": ("\tfmla\tv0.2d, v9.2d, v12.d[1]", RegisterUse(3, 0)),
    "a pair": ("\tldp\tq8, q9, [x0]\n\tfmla\tv8.4s, v9.4s, v8.4s", RegisterUse(2, 0)),
    "a scalar": ("\tldr\ts12, [x1]", RegisterUse(1, 0)),
    "a splat": ("\tld1r\t{ v12.4s }, [x17], x16", RegisterUse(1, 0)),
    "as macOS writes it": ("\tfmla.4s\tv0, v9, v12[1]", RegisterUse(3, 0)),
    "spilled on Arm": ("\tstr\tq7, [sp, #16]\n\tldr\tq7, [sp, #16]", RegisterUse(1, 1)),
    "a spilled pair": ("\tstp\tq7, q6, [sp, #-32]!", RegisterUse(2, 1)),
    "saved for the caller": ("\tstp\td9, d8, [sp, #32]\n\tldp\td9, d8, [sp, #32]", RegisterUse(2, 0)),
    "integers on Arm": ("\tstp\tx29, x30, [sp, #-16]!\n\tmov\tx8, x0", RegisterUse(0, 0)),
}


@looped("name", REGISTERS)
def test_count_registers(name: str) -> None:
    text, expected = REGISTERS[name]
    assert count_registers(text) == expected


def test_registers_of_a_kernel() -> None:
    """Breuer, tnzr.compile, §7.2: 24 accumulators, 4 vectors of A, four depths of a column of B at a time."""
    assert uncompiled(tw.BatchReduceGemm(16, 6, 64), "neoverse-v2").registers == RegisterUse(32, 0)
    assert uncompiled(tw.BatchReduceGemm(16, 6, 64), "apple-m1").registers.used >= 29
