"""Native entries: machine code of builtins that serves a call, or gives it up to a fallback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tilewright.calls.interpreter import symbols
from tilewright.calls.layout import TUPLE_SIZE
from tilewright.calls.object_code import CALL_ARGUMENTS
from tilewright.calls.recipes.step_code import StepCode, TeamRequest
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.control import Block
from tilewright.llvm.quick import QUICK_UNIT_BITS, QUICK_WORK, QuickState
from tilewright.llvm.values import INT64, POINTER, Type, Value, int64, null
from tilewright.recorder import recordings
from tilewright.threads.pool import WAKE_WORK, thread_pool
from tilewright.threads.pool_memory import PoolState, TeamMemory
from tilewright.threads.scratch import ScratchTable

#: Products of fewer multiply-adds keep the GIL: releasing and reacquiring it costs about 100 ns, and they
#: take less than 5 us.
GIL_THRESHOLD = 1 << 18


def entry_symbols() -> dict[str, int]:
    """The addresses that every entry may import."""
    return {**symbols(), "tw_pool": thread_pool().address, "tw_recordings": id(recordings) + TUPLE_SIZE}


class Entry(StepCode):
    """Machine code that serves a call, or gives it up.

    Attributes
    ----------
    fallback : the block that calls go to which this code does not serve.
    """

    def __init__(
        self,
        module: Module,
        name: str,
        result: Type,
        arguments: Sequence[tuple[str, Type]],
        *,
        exported: bool = False,
    ) -> None:
        super().__init__(module, name, result, arguments, exported=exported)
        self.fallback = self.new_block("fallback")

    def require(self, condition: Value) -> None:
        """Goes on if the condition holds, else gives up the call."""
        self.go_on_if(condition, self.fallback)


class CallEntry(Entry):
    """``PyObject *f(self, args, nargs, kwnames)`` under construction."""

    def __init__(self, module: Module, name: str) -> None:
        super().__init__(module, name, POINTER, CALL_ARGUMENTS, exported=True)
        self._held: list[tuple[Block, Value, Block]] = []

    def hold(self, reference: Value) -> None:
        """From here on, a call that is given up drops this reference first."""
        block = self.new_block("dropped")
        self._held.append((block, reference, self.fallback))
        self.fallback = block

    def require_no_recording(self) -> None:
        """Goes on unless a recording is in progress."""
        self.require(self.icmp("==", self.word(self.symbol("recordings")), 0))

    def quick_code_in_use(self) -> Value:
        """Whether the call may run quick code."""
        return self.icmp("!=", self.word(self.symbol("quick_state"), QuickState.in_use), 0)

    def count_quick_call(self) -> None:
        """Counts a call down while quick code is in use; the last one goes through Python, which ends it."""
        with self.when(self.quick_code_in_use()):
            state = self.symbol("quick_state")
            left = self.sub(self.word(state, QuickState.left), 1)
            self.put(state, QuickState.left, left)
            self.require(self.icmp(">", left, 0))

    def spend_quick(self, work: Value) -> None:
        """Counts a call's multiply-adds down while quick code is in use; gives up calls of too many."""
        with self.when(self.quick_code_in_use()):
            self.require(self.icmp("<=", work, QUICK_WORK))
            state = self.symbol("quick_state")
            left = self.sub(self.word(state, QuickState.left), self.ashr(work, int64(QUICK_UNIT_BITS)))
            self.put(state, QuickState.left, left)

    # --- scratch, GIL and team ---------------------------------------------------------------

    def find_scratch(self, table: Value) -> Value:
        """The first slot of a scratch table that holds a block; without one, counts and gives up the call.

        The GIL must be held between this search and taking the block.
        """
        count = self.word(table, ScratchTable.count)
        with self.carried_loop(int64(0), count, int64(1), [null()], "slot") as (index, (known,), advance):
            slot = self.item(table, self.sub(self.sub(count, 1), index), ScratchTable.slots)
            advance([self.select(self.icmp("!=", self.word(slot), 0), slot, known)])
        slot = advance.results[0]
        with self.when(self.is_null(slot)):
            self.put(table, ScratchTable.wanted, self.add(self.word(table, ScratchTable.wanted), 1))
        self.require(self.not_(self.is_null(slot)))
        return slot

    @contextmanager
    def taken(self, slot: Value) -> Iterator[Value]:
        """Takes the block of a slot, which stays empty until the block is returned."""
        block = self.pointer(slot)
        self.put(slot, 0, null())
        yield block
        self.put(slot, 0, block)

    @contextmanager
    def without_gil(self, condition: Value) -> Iterator[None]:
        """Releases the GIL in this block if the condition holds."""
        thread = self.alloca(POINTER, 1, 8)
        with self.when(condition):
            self.put(thread, 0, self.python("save_thread"))
        yield
        with self.when(condition):
            self.python("restore_thread", self.pointer(thread))

    def find_team(self, work: Value, limit: Value) -> TeamRequest:
        """Whether a call with this many multiply-adds uses a team; without its workers, it is given up.

        Parameters
        ----------
        limit : the most threads of the call; 0 for as many as the pool has.
        """
        state = self.symbol("pool")
        size, started, opened = (
            self.load_acquire(INT64, self.at(state, field.offset))
            for field in (PoolState.size, PoolState.started, PoolState.open)
        )
        size = self.select(self.icmp("==", limit, 0), size, limit)
        wanted = self.takes_team(work, size)
        there = self.and_(self.icmp(">=", started, self.sub(size, 1)), self.icmp("!=", opened, 0))
        self.require(self.or_(self.not_(wanted), there))
        return TeamRequest(state, wanted, size, self.icmp(">", work, WAKE_WORK))

    def raise_cancelled(self, cancelled: Block) -> None:
        """Sets the exception that a signal handler raised while a team ran, and goes to a block."""
        for wanted, memory in self.teams:
            with self.when(wanted), self.when(self.icmp("!=", self.word(memory, TeamMemory.cancelled), 0)):
                parts = (self.pointer(memory, TeamMemory.exception.offset + 8 * part) for part in range(3))
                self.python("restore_error", *parts)
                self.jump(cancelled)
        self.teams.clear()

    def others(self) -> Callee:
        """The function that calls which are given up go to, with the same arguments."""
        raise NotImplementedError

    def finish(self) -> None:
        """Emits the fallback, behind all other code: it drops held references and calls `others`."""
        for block, reference, following in reversed(self._held):
            self.place(block)
            self.python("decref", reference)
            self.jump(following)
            self.fallback = following
        self.place(self.fallback)
        self.ret(self.call(self.others(), list(self.arguments.values())))
