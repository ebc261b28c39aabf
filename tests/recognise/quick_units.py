"""Units compiled in the process of the test, their machine code without optimisation: in half the time."""

from __future__ import annotations

from dataclasses import dataclass
from unittest import mock

from tilewright.llvm.target import QUICK_LEVEL
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt import work
from tilewright.loops.opt.records import OutputFormat


@dataclass
class QuickUnits(UnitCompiler):
    """Replaces nests and optimises as `UnitCompiler`; only code generation is LLVM's -O0.

    A process that LLVM aborts is a test that fails, as one whose child LLVM aborts.
    """

    def code(self, bitcode: bytes, form: OutputFormat, name: str) -> bytes:
        """As `UnitCompiler.code`."""
        with mock.patch.object(work, "_CODE_LEVEL", QUICK_LEVEL):
            done = work.optimise_here(work.Work(bitcode, name, form, self.options))
        self.remarks += done.remarks
        return done.content
