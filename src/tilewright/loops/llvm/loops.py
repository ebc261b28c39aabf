"""Candidate nests of a function in LLVM IR: each loop may be the outermost one of a nest."""

from __future__ import annotations

from tilewright.loops.llvm.control_flow import Flow, NaturalLoop
from tilewright.loops.llvm.module import FunctionDefinition, ParsedModule
from tilewright.loops.llvm.nest import Reader
from tilewright.loops.llvm.reroll.rerolled import copied_regions
from tilewright.loops.llvm.symbols import Candidate
from tilewright.loops.llvm.values import NotANest
from tilewright.loops.nests.nest import Refusal, Where
from tilewright.records import dataclass


@dataclass(frozen=True, eq=False)
class Root:
    """A loop that may be the outermost one of a nest.

    Attributes
    ----------
    module, flow, loop : its location.
    inner : the loops directly inside it.
    """

    module: ParsedModule
    flow: Flow
    loop: NaturalLoop

    @property
    def inner(self) -> tuple[Root, ...]:
        """The loops directly inside it."""
        return tuple(Root(self.module, self.flow, child) for child in self.loop.children)

    @property
    def where(self) -> Where:
        """Its source location: that of the latch's branch, which has the line of `for`."""
        return self.module.where(
            self.flow.function, self.flow.function.blocks[self.loop.latches[0]].terminator
        )

    @property
    def may_have_copies(self) -> bool:
        """Whether some blocks look like copies of a loop: if none do, reading with `rerolls` adds nothing."""
        return any(
            True
            for loop in self.loop.walk()
            for label in loop.blocks
            if self.flow.innermost(label) is loop
            for _ in copied_regions(self.flow, label, loop)
        )

    def read(self, *, reassociates: bool = False, rerolls: bool = False) -> Candidate | Refusal:
        """Read the nest that begins with it.

        Parameters
        ----------
        reassociates : sums and products of floats may be reordered and fused even if no flag allows it.
        rerolls : copies of a loop that an optimiser has made are read as one loop.
        """
        try:
            return self._read(reassociates=reassociates, rerolls=rerolls)
        except NotANest as failure:
            return failure.refusal

    def _read(self, *, reassociates: bool, rerolls: bool) -> Candidate:
        reader = Reader(self.module, self.flow, self.loop, reassociates=reassociates, rerolls=rerolls)
        try:
            return reader.read()
        except NotANest as failure:
            if not reader.copies_refused:
                raise
            refusal = failure.refusal
            reason = f"{refusal.reason}, and in copies of a loop {reader.copies_refused[0]}"
            raise NotANest(Refusal(refusal.where, reason)) from failure


def nests(function: FunctionDefinition, module: ParsedModule) -> tuple[Root, ...]:
    """The outermost loops of a function, in the order of its text.

    Examples
    --------
    >>> from tilewright.loops.llvm.module import read_module
    >>> module = read_module('''
    ... define void @clear(ptr %p, i64 %n) {
    ... entry:
    ...   br label %loop
    ...
    ... loop:
    ...   %i = phi i64 [ 0, %entry ], [ %next, %loop ]
    ...   %q = getelementptr inbounds float, ptr %p, i64 %i
    ...   store float 0.000000e+00, ptr %q, align 4
    ...   %next = add nuw nsw i64 %i, 1
    ...   %more = icmp slt i64 %next, %n
    ...   br i1 %more, label %loop, label %exit
    ...
    ... exit:
    ...   ret void
    ... }
    ... ''')
    >>> found = nests(module.functions["clear"], module)[0].read()
    >>> str(found.nest.extent), found.nest.extent.least, str(found.nest.body[0].target.offset)
    ('%n:i64', 1, '4*i.loop')
    """
    flow = Flow(function)
    return tuple(Root(module, flow, loop) for loop in flow.loops)
