"""Machine code of the handler: a C function that XLA calls with a frame of buffers and attributes.

``XLA_FFI_Error *tw_xla_call(XLA_FFI_CallFrame *frame)`` finds the program of the problem in a table by the
key among the attributes, and runs its steps on the buffers, without Python and without the GIL. Python is
called for a problem that the table does not have yet, for more scratch or threads, and where the steps of a
problem need NumPy (`handler.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from tilewright.calls.recipes.recipe import ALIGNMENT, BASES, MOST_SCRATCH, MOST_STEP_WORDS, Base, StepField
from tilewright.calls.recipes.step_code import StepCode, TeamRequest
from tilewright.jax.frame import (
    ERROR_CREATE_BYTES,
    MAJOR,
    METADATA,
    Api,
    ApiVersion,
    ArrayAttribute,
    Attributes,
    AttributeType,
    Buffers,
    CallFrame,
    ErrorCode,
    ErrorCreate,
    ExecutionStage,
    Extension,
    Metadata,
    TextAttribute,
    XlaBuffer,
)
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int32, int64, null
from tilewright.machine.machine import Machine
from tilewright.threads.pool import WAKE_WORK
from tilewright.threads.pool_memory import PoolState, TeamMemory

HANDLER = "tw_xla_call"

#: Slots of a table of scratch blocks: no more calls can run at once.
SCRATCH_SLOTS = 256
#: Bytes of a `fenv_t` of a C library, at most; 32 in glibc for x86-64.
_ENVIRONMENT_BYTES = 512


class ProgramField(IntEnum):
    """Words of a program in memory. Its steps are behind them, laid out as those of recipes.

    `ARGUMENTS` and `RESULTS` count buffers. A program that runs in `PYTHON` has no steps. After `LIMIT`
    calls, unless 0, Python prepares the problem again, and may know a faster kernel then; `HITS` counts them.
    """

    KEY = 0  # two words
    ARGUMENTS = 2
    RESULTS = 3
    PYTHON = 4
    HITS = 5
    LIMIT = 6
    WORK = 7
    TEMPORARY_BYTES = 8
    STEPS = 9
    SCRATCH = 10  # addresses of tables
    FIRST_STEP = SCRATCH + MOST_SCRATCH


class TableField(IntEnum):
    """Words of a table of programs: the number of slots, a power of two, less one; then the slots."""

    MASK = 0
    SLOTS = 1


class Message(IntEnum):
    """Texts of errors that machine code reports by itself."""

    VERSION = 0
    ATTRIBUTES = 1
    BUFFERS = 2
    MEMORY = 3


MESSAGES = {
    Message.VERSION: f"Tilewright knows version {MAJOR} of XLA's foreign function interface only",
    Message.ATTRIBUTES: "Tilewright's handler needs the attributes 'key' and 'problem'",
    Message.BUFFERS: "Tilewright's handler got another number of buffers than its problem has",
    Message.MEMORY: "Tilewright's handler found no memory for intermediate results",
}


class _HandlerCode(StepCode):
    """Emits the handler; see `_emit` for the order of its parts."""

    def __init__(self, module: Module) -> None:
        super().__init__(module, HANDLER, POINTER, [("frame", POINTER)], exported=True)
        self.frame = self.arguments["frame"]
        self.api = self.pointer(self.frame, CallFrame.api)
        self.bases = self.alloca(INT64, BASES, 16)
        self.scratch = self.alloca(POINTER, MOST_SCRATCH, 8)
        self.memory = self.alloca(POINTER, 1, 8)
        self.failed, self.fault = self.new_block("failed"), self.alloca(POINTER, 1, 8)

    def small(self, base: Value, field: Any, value: int | None = None) -> Value:
        """An integer of 32 bits in a field, which is written if a value is given."""
        place = self.at(base, field.offset)
        if value is not None:
            self.store(int32(value), place, 4)
            return int32(value)
        return self.load(INT32, place, 4)

    # --- errors ------------------------------------------------------------------------------

    def error(self, code: ErrorCode, message: Value) -> Value:
        """A new error of XLA, which takes a copy of the text."""
        given = self.alloca(INT64, ctypes.sizeof(ErrorCreate) // 8, 8)
        self.put(given, ErrorCreate.struct_size, int64(ERROR_CREATE_BYTES))
        self.put(given, ErrorCreate.extension_start, null())
        self.put(given, ErrorCreate.message, message)
        self.small(given, ErrorCreate.errc, code)
        create = self.pointer(self.api, Api.error_create)
        return self.call(Callee(POINTER, create.text), [given])

    def refuse_if(self, condition: Value, code: ErrorCode, message: Message) -> None:
        """Returns an error if the condition holds."""
        with self.when(condition):
            self.ret(self.error(code, self.symbol(f"message_{int(message)}")))

    def report(self, message: Value) -> None:
        """Returns an error with Python's text, unless that is null."""
        with self.when(self.not_(self.is_null(message))):
            self.ret(self.error(ErrorCode.INTERNAL, message))

    # --- what XLA passes -----------------------------------------------------------------------

    def answer_metadata(self) -> None:
        """Returns the version to XLA where it asks for that, and refuses an unknown one.

        It is XLA's own if its major part is known: structures of older minor versions are prefixes.
        """
        theirs = self.at(self.api, Api.api_version.offset)
        major = self.small(theirs, ApiVersion.major_version)
        minor = self.small(theirs, ApiVersion.minor_version)
        known = self.icmp("==", major, int32(MAJOR))
        extension = self.pointer(self.frame, CallFrame.extension_start)
        with self.when(self.not_(self.is_null(extension))):
            asked = self.icmp("==", self.small(extension, Extension.type), int32(METADATA))
            with self.when(asked):
                metadata = self.pointer(extension, Extension.metadata)
                ours = self.at(metadata, Metadata.api_version.offset)
                self.small(ours, ApiVersion.major_version, MAJOR)
                answer = self.select(known, minor, int32(0))
                self.store(answer, self.at(ours, ApiVersion.minor_version.offset), 4)
                self.small(metadata, Metadata.traits, 0)
                self.ret(null())
        self.refuse_if(self.not_(known), ErrorCode.UNIMPLEMENTED, Message.VERSION)
        execute = self.icmp("==", self.small(self.frame, CallFrame.stage), int32(ExecutionStage.EXECUTE))
        with self.when(self.not_(execute)):
            self.ret(null())

    def read_attributes(self) -> tuple[Value, Value]:
        """The places of the attributes "key", an array of two words, and "problem", a text."""
        given = self.at(self.frame, CallFrame.attrs.offset)
        count = self.word(given, Attributes.size)
        self.refuse_if(self.icmp("!=", count, 2), ErrorCode.INVALID_ARGUMENT, Message.ATTRIBUTES)
        types, items = self.pointer(given, Attributes.types), self.pointer(given, Attributes.items)
        kinds = [self.load(INT32, self.at(types, 4 * place), 4) for place in range(2)]
        array = self.icmp("==", kinds[0], int32(AttributeType.ARRAY))
        both = self.and_(array, self.icmp("==", kinds[1], int32(AttributeType.STRING)))
        self.refuse_if(self.not_(both), ErrorCode.INVALID_ARGUMENT, Message.ATTRIBUTES)
        key = self.pointer(items)
        sized = self.icmp("==", self.word(key, ArrayAttribute.size), 2)
        self.refuse_if(self.not_(sized), ErrorCode.INVALID_ARGUMENT, Message.ATTRIBUTES)
        return self.pointer(key, ArrayAttribute.data), self.pointer(items, 8)

    def put_buffers(self, program: Value) -> tuple[Value, Value]:
        """Writes the addresses of the buffers into the bases; returns the places of both lists.

        Steps address results as arguments behind the others, or as new arrays in the order of the results.
        """
        lists = []
        ends = (ProgramField.ARGUMENTS, ProgramField.RESULTS)
        for field, expected in zip((CallFrame.args, CallFrame.rets), ends, strict=True):
            given = self.at(self.frame, field.offset)
            differs = self.icmp("!=", self.word(given, Buffers.size), self.word(program, expected))
            self.refuse_if(differs, ErrorCode.INTERNAL, Message.BUFFERS)
            lists.append(self.pointer(given, Buffers.items))
        self.put(self.bases, Base.NUMBER, int64(0))
        count = self.word(program, ProgramField.ARGUMENTS)
        with self.loop(int64(0), count, int64(1), "argument") as number:
            buffer = self.pointer(self.item(lists[0], number))
            self.put(self.item(self.bases, number, Base.ARGUMENT), 0, self.word(buffer, XlaBuffer.data))
        behind = self.item(self.bases, count, Base.ARGUMENT)
        with self.loop(int64(0), self.word(program, ProgramField.RESULTS), int64(1), "result") as number:
            start = self.word(self.pointer(self.item(lists[1], number)), XlaBuffer.data)
            self.put(self.item(behind, number), 0, start)
            self.put(self.item(self.bases, number, Base.RESULT), 0, start)
        return lists[0], lists[1]

    # --- the program ---------------------------------------------------------------------------

    def find(self, key: Value, text: Value) -> Value:
        """The program of a key, which Python prepares if the table has none."""
        first, second = self.word(key), self.word(key, 8)
        table = self.inttoptr(self.load_acquire(INT64, self.symbol("programs")))
        mask = self.word(table, TableField.MASK)
        place, found = self.alloca(INT64, 1, 8), self.alloca(POINTER, 1, 8)
        self.put(place, 0, self.and_(first, mask))
        look, compare, another, absent, done = map(
            self.new_block, ("look", "compare", "another", "absent", "done")
        )
        self.jump(look)
        self.place(look)
        slot = self.item(table, self.word(place), TableField.SLOTS)
        program = self.inttoptr(self.load_acquire(INT64, slot))
        self.put(found, 0, program)
        self.jump_if(self.is_null(program), absent, compare)
        self.place(compare)
        same = [
            self.icmp("==", word, self.word(program, 8 * number))
            for number, word in enumerate((first, second))
        ]
        self.jump_if(self.and_(*same), done, another)
        self.place(another)
        self.put(place, 0, self.and_(self.add(self.word(place), 1), mask))
        self.jump(look)
        self.place(absent)
        self.put(found, 0, self.prepare(text))
        self.jump(done)
        self.place(done)
        return self.pointer(found)

    def prepare(self, text: Value) -> Value:
        """The program that Python makes of the text of a problem."""
        place = self.alloca(POINTER, 1, 8)
        self.put(place, 0, null())
        data, size = self.pointer(text, TextAttribute.data), self.word(text, TextAttribute.size)
        self.report(self.callback("prepare", POINTER, data, size, place))
        return self.pointer(place)

    def callback(self, name: str, result: Any, *arguments: Value) -> Value:
        """A call of one of the functions of `handler.py`."""
        kinds = [value.type for value in arguments]
        return self.call(self.module.declare(f"tw_{name}", result, kinds), list(arguments))

    def count(self, program: Value, text: Value) -> None:
        """Counts the call; at the limit, later calls find a program that is prepared again."""
        limit = self.word(program, ProgramField.LIMIT)
        with self.when(self.icmp("!=", limit, 0)):
            before = self.atomic_add(self.at(program, 8 * ProgramField.HITS), 1)
            with self.when(self.icmp("==", before, limit)):
                self.prepare(text)

    # --- memory and threads ---------------------------------------------------------------------

    def take_scratch(self, program: Value) -> None:
        """A block of each table of scratch of the program, in `scratch` and in the bases."""
        for number in range(MOST_SCRATCH):
            kept = self.at(self.scratch, 8 * number)
            self.put(kept, 0, null())
        for number in range(MOST_SCRATCH):
            kept = self.at(self.scratch, 8 * number)
            table = self.pointer(program, 8 * (ProgramField.SCRATCH + number))
            with self.when(self.not_(self.is_null(table))):
                self.take_block(table, kept)
                self.put(self.bases, 8 * (Base.SCRATCH + number), self.word(kept))

    def take_block(self, table: Value, kept: Value) -> None:
        """Takes a block out of any slot, or one that Python maps."""
        searched, taken = self.new_block("searched"), self.new_block("taken")
        with self.loop(int64(0), int64(SCRATCH_SLOTS), int64(1), "slot") as number:
            slot = self.item(table, number)
            with self.when(self.icmp("!=", self.word(slot), 0)):
                block = self.xchg(slot, int64(0))
                self.put(kept, 0, block)
                self.leave_if(self.icmp("!=", block, 0), taken)
        self.jump(searched)
        self.place(searched)
        self.fail_with(self.callback("scratch", POINTER, table, kept))
        self.jump(taken)
        self.place(taken)

    def give_back_scratch(self, program: Value) -> None:
        """Puts the blocks into empty slots; there are as many slots as blocks at most."""
        for number in range(MOST_SCRATCH):
            block = self.word(self.scratch, 8 * number)
            table = self.pointer(program, 8 * (ProgramField.SCRATCH + number))
            done = self.new_block("given_back")
            self.leave_if(self.icmp("==", block, 0), done)
            with self.loop(int64(0), int64(SCRATCH_SLOTS), int64(1), "slot") as place:
                slot = self.item(table, place)
                with self.when(self.icmp("==", self.word(slot), 0)):
                    self.leave_if(self.cmpxchg(slot, int64(0), block), done)
            self.jump(done)
            self.place(done)

    def fail_with(self, message: Value) -> None:
        """Gives back what the call has taken and returns an error, unless the message is null."""
        self.put(self.fault, 0, message)
        self.leave_if(self.not_(self.is_null(message)), self.failed)

    def take_memory(self, program: Value) -> None:
        """Memory of intermediate results, in `memory` and in the bases."""
        needed = self.word(program, ProgramField.TEMPORARY_BYTES)
        self.put(self.memory, 0, null())
        with self.when(self.icmp("!=", needed, 0)):
            block = self.callback("allocate", POINTER, self.add(needed, ALIGNMENT))
            self.put(self.memory, 0, block)
            missing = self.is_null(block)
            text = self.symbol(f"message_{int(Message.MEMORY)}")
            self.fail_with(self.select(missing, text, null()))
            start = self.and_(self.add(self.ptrtoint(block), ALIGNMENT - 1), int64(-ALIGNMENT))
            self.put(self.bases, Base.TEMPORARY, start)

    def give_back(self, program: Value) -> None:
        """Returns memory and scratch."""
        self.callback("free", VOID, self.pointer(self.memory))
        self.give_back_scratch(program)

    def threads(self, program: Value) -> TeamRequest:
        """The team of the longest step; Python starts threads that `set_num_threads` has added."""
        work, state = self.word(program, ProgramField.WORK), self.symbol("pool")
        size = self.load_acquire(INT64, self.at(state, PoolState.size.offset))
        wanted = self.takes_team(work, size)
        started = self.load_acquire(INT64, self.at(state, PoolState.started.offset))
        opened = self.load_acquire(INT64, self.at(state, PoolState.open.offset))
        absent = self.or_(self.icmp("<", started, self.sub(size, 1)), self.icmp("==", opened, 0))
        with self.when(self.and_(wanted, absent)):
            self.callback("supply", VOID, size)
        return TeamRequest(state, wanted, size, self.icmp(">", work, WAKE_WORK))

    @contextmanager
    def default_environment(self) -> Iterator[None]:
        """Numbers are rounded and kept as outside of XLA, which flushes subnormal ones to zero.

        Workers have the default environment: results must not depend on which thread computes them.
        """
        kept = self.alloca(INT64, _ENVIRONMENT_BYTES // 8, 16)
        self.call(self.module.declare("tw_fegetenv", INT32, [POINTER]), [kept])
        self.call(self.module.declare("tw_fesetenv", INT32, [POINTER]), [self.symbol("default_environment")])
        yield
        self.call(self.module.declare("tw_fesetenv", INT32, [POINTER]), [kept])

    def run(self, program: Value, request: TeamRequest) -> None:
        """All steps, one after the other."""
        words = self.alloca(INT64, MOST_STEP_WORDS, 16)
        steps = self.word(program, ProgramField.STEPS)
        first = [self.at(program, 8 * ProgramField.FIRST_STEP)]
        with self.carried_loop(int64(0), steps, int64(1), first, "step") as (_, (step,), advance):
            work = self.word(step, StepField.WORK)
            takes = self.icmp("!=", self.word(step, StepField.TAKES_TEAM), 0)
            wanted = self.and_(self.and_(request.wanted, takes), self.takes_team(work, request.threads))
            own = request._replace(wanted=wanted, long=self.icmp(">", work, WAKE_WORK))
            with self.team(own) as team:
                with self.when(wanted):
                    # XLA's callers do not return to Python between tasks: signals wait until they do.
                    self.put(team, TeamMemory.polls, int64(0))
                self.put(self.bases, Base.TEAM, self.ptrtoint(team))
                self.fill(step, words, self.bases)
                thunk = self.pointer(step, StepField.THUNK)
                self.call(Callee(VOID, thunk.text), [self.pointer(step, StepField.CODE), words])
            advance([self.at(step, self.word(step, StepField.BYTES))])


def emit_handler(machine: Machine) -> str:
    """The module with the handler."""
    module = Module(HANDLER, machine.triple, data_layout(machine))
    f = _HandlerCode(module)
    f.answer_metadata()
    key, text = f.read_attributes()
    program = f.find(key, text)
    f.count(program, text)
    arguments, results = f.put_buffers(program)
    with f.when(f.icmp("!=", f.word(program, ProgramField.PYTHON), 0)):
        f.report(f.callback("python_call", POINTER, program, arguments, results))
        f.ret(null())
    request = f.threads(program)
    f.put(f.memory, 0, null())
    f.take_scratch(program)
    f.take_memory(program)
    with f.default_environment():
        f.run(program, request)
    f.give_back(program)
    f.ret(null())
    f.place(f.failed)
    f.give_back(program)
    f.ret(f.error(ErrorCode.RESOURCE_EXHAUSTED, f.pointer(f.fault)))
    return str(module)
