"""Link modules of a program into one, so that calls between them can be followed."""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.binding as llvm

from tilewright.errors import NotAModule
from tilewright.preparing import preparing


def link_modules(first: bytes, others: Sequence[bytes], name: str) -> bytes:
    """Bitcode of several modules as one.

    Parameters
    ----------
    first, others : their bitcode.
    name : of the program, for messages.

    Raises
    ------
    NotAModule : one of them is not valid, or two define the same symbol.
    """
    try:
        with preparing:
            module = llvm.parse_bitcode(first)
            for other in others:
                module.link_in(llvm.parse_bitcode(other))
            return bytes(module.as_bitcode())
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise NotAModule(name=name, version=llvm.llvm_version_info[0], reason=reason) from error
