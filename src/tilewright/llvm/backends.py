"""LLVM's back ends, registered once per process."""

from __future__ import annotations

import llvmlite.binding as llvm

from tilewright.preparing import once


@once
def initialize() -> None:
    """Registers every LLVM target and its assembly printer, once per process."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@once
def initialize_assembler() -> None:
    """Registers the assembly parser of this host, which modules with inline assembly need.

    llvmlite has no parser of other targets; LLVM aborts on inline assembly for these.
    """
    llvm.initialize_native_asmparser()
