"""Vector registers that an assembly text uses, and values it passes through the stack."""

from __future__ import annotations

import re
from typing import NamedTuple


class RegisterUse(NamedTuple):
    """Vector registers in an assembly text, and vectors stored on the stack.

    These are spilled registers and the totals of chains of sums, one store for a vector and 256 depths.
    """

    used: int
    spilled: int


_VECTOR_REGISTER = re.compile(r"%[xyz]mm(\d+)|(?<![\w%$.])[vqds](\d+)\b")
_STACK_STORE = re.compile(r"%[xyz]mm\d+, -?\d*\(%rsp\)|\bst[rp]\s+q\d+.*\[sp")


def count_registers(assembly: str) -> RegisterUse:
    r"""Distinct vector registers that an assembly names, and vector stores to its stack frame.

    >>> count_registers("\tvfmadd231ps %zmm1, %zmm2, %zmm31\n\tvmovups %zmm1, 64(%rsp)")
    RegisterUse(used=3, spilled=1)
    """
    found = {number for match in _VECTOR_REGISTER.finditer(assembly) for number in match.groups() if number}
    return RegisterUse(len(found), len(_STACK_STORE.findall(assembly)))
