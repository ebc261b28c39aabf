"""Replay: machine code that repeats prepared calls, one entry for all public functions.

The entry forms the key of a call (`call_key.py`), finds its recipe (`recipe.py`) and does what that says. A
call without a recipe goes to the Python function, which checks it, makes it and leaves a recipe.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.call_key import WORDS_AT_ONCE, KeyReader, KeyState, KnownKinds
from tilewright.calls.fastcall import (
    API_COPY_INTO,
    API_EMPTY,
    API_FROM_ANY,
    API_NEW_FROM_DESCR,
    API_SCALAR,
    API_SET_BASE,
    GIL_THRESHOLD,
    FastFunction,
    TeamRequest,
    error_state,
    python_symbols,
)
from tilewright.calls.layout import ARRAY_DATA, LAYOUT, TUPLE_ITEM, TUPLE_SIZE, numpy_api
from tilewright.calls.lists import Operands, emit_fallback
from tilewright.calls.recipe import (
    ALIGNMENT,
    BASES,
    HEADER_BYTES,
    MOST_RESULTS,
    MOST_SCRATCH,
    MOST_STEP_WORDS,
    MOST_VIEWS,
    PROBES,
    SLOT_BITS,
    STACK_BYTES,
    ArrayField,
    Base,
    Field,
    RecipeTable,
    StepField,
)
from tilewright.calls.recording import flattened
from tilewright.calls.torch_functions import TENSOR_HANDLE, TorchFunctions, torch_types
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.builtin import Builtin, address_of
from tilewright.llvm.control import Block
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.quick import EntryCode, quick_code
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import (
    INT32,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    int32,
    int64,
    named_type,
    null,
)
from tilewright.machine.host import host_machine
from tilewright.threads.pool_memory import State

_MODULE, _METHOD_MODULE = "tw_replay", "tw_method"
_ENTRY, _READ = "tw_repeat", "tw_read"

#: Arguments of a method, its object among them, that are passed on from the stack; of more, from the heap.
_STACK_ARGUMENTS = 64


class _Entry(FastFunction):
    """Emits the entry; see `_emit` for the order of its parts."""

    def __init__(self, module: Module, reader: KeyReader) -> None:
        super().__init__(module, _ENTRY)
        self.reader = reader
        f = self.f
        self.state = f.alloca(INT64, ctypes.sizeof(KeyState) // 8, 16)
        self.bases = f.alloca(INT64, BASES, 16)
        self.made = f.alloca(POINTER, MOST_RESULTS, 16)
        self.slots: list[Value] = []
        self.blocks: list[Value] = []
        self.increment = module.declare("tw_incref", VOID, (POINTER,))
        self.decrement = module.declare("tw_decref", VOID, (POINTER,))

    def python(self) -> Callee:
        """What makes calls without a recipe: Python, after lists of numbers have become arrays."""
        return emit_fallback(self.module)

    def word(self, record: Value, field: IntEnum) -> Value:
        """An integer of a recipe, a step or an array."""
        return self.field(record, 8 * field, INT64)

    def pointer(self, record: Value, field: IntEnum) -> Value:
        """An address in a recipe, a step or an array."""
        return self.field(record, 8 * field)

    def of_state(self, name: str) -> Value:
        """An integer of the state of the key."""
        return self.field(self.state, getattr(KeyState, name).offset, INT64)

    def base(self, number: Value | int) -> Value:
        """The place of a base's address."""
        offset = 8 * number if isinstance(number, int) else self.f.mul(number, 8)
        return self.f.at(self.bases, offset)

    def find(self) -> Value:
        """The recipe of the call; if there is none, the call falls back to Python."""
        f = self.f
        f.store(int64(0), f.at(self.state, KeyState.held.offset), 8)
        self.require_no_recording()
        count = f.call(self.reader.read.callee, [*f.arguments.values(), self.state])
        self.require(f.icmp("!=", count, 0))
        mixed = self.of_state("mixed")
        slot = f.and_(f.ashr(mixed, int64(64 - SLOT_BITS)), int64((1 << SLOT_BITS) - 1))
        first = f.at(self.module.external("tw_recipes"), f.mul(slot, 8))
        at = f.alloca(POINTER, 1, 8)
        f.store(first, at, 8)
        last = f.at(first, 8 * PROBES)
        key = f.at(self.state, KeyState.key.offset)
        labels = ("look", "known", "alike", "another", "found")
        look, known, alike, another, found = map(f.new_block, labels)
        f.jump(look)
        f.place(look)
        recipe = f.load(POINTER, f.load(POINTER, at, 8), 8)
        f.jump_if(f.icmp("==", recipe, null()), self.fallback, known)
        f.place(known)
        theirs = f.at(recipe, HEADER_BYTES)
        f.jump_if(f.icmp("==", count, self.word(recipe, Field.WORDS)), alike, another)
        f.place(alike)
        step, same = int64(WORDS_AT_ONCE), f.splat(int64(0), WORDS_AT_ONCE)
        with f.carried_loop(int64(0), count, step, [same], "word") as (number, (bits,), advance):
            pair = [f.load(same.type, f.at(base, f.mul(number, 8)), 8) for base in (key, theirs)]
            advance([f.or_(bits, f.xor(*pair))])
        bits = f.bitcast(advance.results[0], named_type(f"i{64 * WORDS_AT_ONCE}"))
        f.jump_if(f.icmp("==", bits, 0), found, another)
        f.place(another)
        following = f.at(f.load(POINTER, at, 8), 8)
        f.store(following, at, 8)
        f.jump_if(f.icmp("==", following, last), self.fallback, look)
        f.place(found)
        recipe = f.load(POINTER, f.load(POINTER, at, 8), 8)
        limit = self.word(recipe, Field.LIMIT)
        self.require(f.or_(f.icmp("==", limit, 0), f.icmp("<", self.word(recipe, Field.HITS), limit)))
        self.body = f.at(f.at(recipe, HEADER_BYTES), f.mul(count, 8))
        return recipe

    def find_all_scratch(self, recipe: Value) -> None:
        """A slot with a block for each table of scratch that the recipe has; else falls back to Python."""
        f = self.f
        for number in range(MOST_SCRATCH):
            empty, slot = f.alloca(POINTER, 1, 8), f.alloca(POINTER, 1, 8)
            f.store(null(), empty, 8)
            f.store(empty, slot, 8)
            table = self.field(recipe, 8 * (Field.SCRATCH + number))
            with f.when(f.icmp("!=", table, null())):
                f.store(self.find_scratch(table), slot, 8)
            self.slots.append(f.load(POINTER, slot, 8))

    def take_scratch(self) -> None:
        """Takes the blocks of the slots; no code of Python runs between this and the search for them."""
        f = self.f
        for number, slot in enumerate(self.slots):
            self.blocks.append(f.load(POINTER, slot, 8))
            f.store(null(), slot, 8)
            f.store(f.ptrtoint(self.blocks[-1]), self.base(Base.SCRATCH + number), 8)

    def give_back(self, recipe: Value) -> None:
        """Returns the blocks; the call does not use the recipe any more."""
        for slot, block in zip(self.slots, self.blocks, strict=True):
            self.f.store(block, slot, 8)
        self.count_use(recipe, -1)
        self.drop_views()

    def drop_views(self) -> None:
        """Gives up the arrays made of operands of other libraries."""
        f, views = self.f, self.f.at(self.state, KeyState.views.offset)
        with f.loop(int64(0), self.of_state("held"), int64(1), "view") as number:
            f.call(self.decrement, [f.load(POINTER, f.at(views, f.mul(number, 8)), 8)])

    def finish(self, result: Value) -> None:
        """Return the result; after that, emit the fallback, a call of `self` with the same arguments."""
        f = self.f
        f.ret(result)
        f.place(self.fallback)
        self.drop_views()
        f.ret(f.call(self.python(), list(f.arguments.values())))

    def wish(self, recipe: Value) -> TeamRequest:
        """The team of the recipe's longest step, of as many threads as the call allows."""
        f = self.f
        wish = self.find_team(self.word(recipe, Field.WORK))
        limit = self.word(recipe, Field.THREADS)
        threads = f.select(f.icmp("==", limit, 0), wish.threads, limit)
        started = f.load_acquire(INT64, f.at(wish.state, State.started.offset))
        ready = f.icmp("<=", threads, f.add(started, 1))
        self.require(f.or_(ready, f.not_(wish.wanted)))
        return wish._replace(threads=threads)

    def count_use(self, recipe: Value, difference: int) -> None:
        """Counts the calls that follow a recipe; the GIL is held."""
        f, at = self.f, self.f.at(recipe, 8 * Field.USES)
        f.store(f.add(f.load(INT64, at, 8), difference), at, 8)

    def set_arguments(self) -> None:
        """The bases of numbers, and of the arrays among the arguments."""
        f = self.f
        f.store(int64(0), self.base(int(Base.NUMBER)), 8)
        starts = f.at(self.state, KeyState.starts.offset)
        with f.loop(int64(0), self.of_state("arrays"), int64(1), "array") as number:
            start = f.load(INT64, f.at(starts, f.mul(number, 8)), 8)
            f.store(start, self.base(f.add(number, int(Base.ARGUMENT))), 8)

    @contextmanager
    def results(self, recipe: Value) -> Iterator[tuple[Value, Value, Value]]:
        """A loop over the results: the record of each, its base, and the place of its object."""
        f = self.f
        count = self.word(recipe, Field.RESULTS)
        with f.carried_loop(int64(0), count, int64(1), [self.body], "result") as (number, (record,), advance):
            yield record, self.word(record, ArrayField.BASE), f.at(self.made, f.mul(number, 8))
            axes = self.word(record, ArrayField.AXES)
            advance([f.at(record, f.add(f.mul(axes, 16), 8 * ArrayField.LENGTHS))])
        self.first_step = advance.results[0]

    def new(self, record: Value, data: Value, failed: Block) -> Value:
        """An array of NumPy over memory of its own or, if `data` is not null, over that."""
        f, module = self.f, self.module
        dtype = self.pointer(record, ArrayField.DTYPE)
        f.call(self.increment, [dtype])  # PyArray_NewFromDescr takes over a reference
        types = (POINTER, POINTER, INT32, POINTER, POINTER, POINTER, INT32, POINTER)
        new = module.declare("tw_new_array", POINTER, types)
        axes = self.word(record, ArrayField.AXES)
        lengths = f.at(record, 8 * ArrayField.LENGTHS)
        strides = f.at(lengths, f.mul(axes, 8))
        flags = f.trunc(self.word(record, ArrayField.FLAGS), INT32)
        kind, few = module.external("tw_ndarray"), f.trunc(axes, INT32)
        made = f.call(new, [kind, dtype, few, lengths, strides, data, flags, null()])
        following = f.new_block("new")
        f.jump_if(f.icmp("==", made, null()), failed, following)
        f.place(following)
        return made

    def torch(self, name: str, kind: Type, *arguments: Value) -> Value:
        """A call of one of PyTorch's functions."""
        code = self.field(self.module.external("tw_torch"), getattr(TorchFunctions, name).offset)
        return self.f.call(Callee(kind, code.text), list(arguments))

    def tensor(self, record: Value, failed: Block, viewed: Value | None = None) -> Value:
        """A tensor of PyTorch with memory of its own, or a view of another one."""
        f = self.f
        handle, axes = f.alloca(POINTER, 1, 8), self.word(record, ArrayField.AXES)
        lengths = f.at(record, 8 * ArrayField.LENGTHS)
        layout = [axes, lengths, f.at(lengths, f.mul(axes, 8))]
        if viewed is None:
            number = f.trunc(f.sub(self.word(record, ArrayField.DTYPE), 1), INT32)
            status = self.torch("empty", INT32, *layout, number, int32(0), int32(0), handle)
        else:
            offset = self.word(record, ArrayField.OFFSET)
            status = self.torch("view", INT32, f.at(viewed, TENSOR_HANDLE), *layout, offset, handle)
        with f.when(f.icmp("!=", status, 0)):
            f.call(self.module.declare("tw_no_memory", POINTER, ()), [])
            f.jump(failed)
        owned = f.load(POINTER, handle, 8)
        made = self.torch("wrap", POINTER, owned)
        self.torch("delete", INT32, owned)
        following = f.new_block("tensor")
        f.jump_if(f.icmp("==", made, null()), failed, following)
        f.place(following)
        return made

    def make_results(self, recipe: Value) -> None:
        """New references to the results, into `made`; numbers are made at the end."""
        f = self.f
        for place in range(MOST_RESULTS):
            f.store(null(), f.at(self.made, 8 * place), 8)
        failed, done = f.new_block("failed"), f.new_block("results_made")
        tensors = f.icmp("==", self.word(recipe, Field.MAKER), 1)
        with (
            self.results(recipe) as (record, base, slot),
            f.branch(f.icmp("<", base, int(Base.RESULT))) as (given, another),
        ):
            with given:
                at = f.at(self.state, KeyState.objects.offset - 8 * Base.ARGUMENT)
                array = f.load(POINTER, f.at(at, f.mul(base, 8)), 8)
                whole = f.icmp("==", self.pointer(record, ArrayField.DTYPE), null())
                with f.branch(whole) as (itself, part):
                    with itself:
                        f.store(array, slot, 8)
                        f.call(self.increment, [array])
                    with part, f.branch(tensors) as (tensor, plain):
                        with tensor:
                            f.store(self.tensor(record, failed, array), slot, 8)
                        with plain:
                            f.call(self.increment, [array])
                            data = f.at(self.field(array, ARRAY_DATA), self.word(record, ArrayField.OFFSET))
                            f.store(self.new(record, data, failed), slot, 8)
                with f.when(f.not_(f.or_(whole, tensors))):
                    own = self.module.declare("tw_set_base", INT32, (POINTER, POINTER))
                    # It takes over the reference, also where it fails.
                    status = f.call(own, [f.load(POINTER, slot, 8), array])
                    owned = f.new_block("owned")
                    f.jump_if(f.icmp("==", status, int32(0)), owned, failed)
                    f.place(owned)
            with (
                another,
                f.when(f.icmp("!=", base, int(Base.TEMPORARY))),
                f.branch(tensors) as (tensor, plain),
            ):
                with tensor:
                    made = self.tensor(record, failed)
                    f.store(made, slot, 8)
                    self.torch("data", INT32, f.at(made, TENSOR_HANDLE), self.base(base))
                with plain:
                    made = self.new(record, null(), failed)
                    f.store(made, slot, 8)
                    f.store(self.field(made, ARRAY_DATA, INT64), self.base(base), 8)
        f.jump(done)
        f.place(failed)
        self.drop_results(recipe)
        f.ret(null())
        f.place(done)

    def drop_results(self, recipe: Value) -> None:
        """Gives up the results of a call that failed."""
        f = self.f
        for number in range(MOST_RESULTS):
            made = f.load(POINTER, f.at(self.made, 8 * number), 8)
            with f.when(f.icmp("!=", made, null())):
                f.call(self.decrement, [made])
        self.give_back(recipe)

    def take_memory(self, recipe: Value) -> Value:
        """Memory of temporary arrays; returns the block to free, or null where they are on the stack."""
        f, module = self.f, self.module
        stack = f.alloca(INT64, STACK_BYTES // 8, ALIGNMENT)
        needed = self.word(recipe, Field.TEMPORARY_BYTES)
        block = f.alloca(POINTER, 1, 8)
        f.store(null(), block, 8)
        f.store(f.ptrtoint(stack), self.base(int(Base.TEMPORARY)), 8)
        with f.when(f.icmp(">", needed, STACK_BYTES)):
            allocate = module.declare("tw_allocate", POINTER, (INT64,))
            found = f.call(allocate, [f.add(needed, ALIGNMENT)])
            with f.when(f.icmp("==", found, null())):
                self.drop_results(recipe)
                f.ret(f.call(module.declare("tw_no_memory", POINTER, ()), []))
            f.store(found, block, 8)
            start = f.and_(f.add(f.ptrtoint(found), ALIGNMENT - 1), int64(-ALIGNMENT))
            f.store(start, self.base(int(Base.TEMPORARY)), 8)
        return block

    def run(self, recipe: Value, wish: TeamRequest, cancelled: Block, declined: Block) -> None:
        """All steps, one after the other.

        To the block `cancelled` after an exception of a signal handler, to `declined` after a check that says
        so.
        """
        f = self.f
        words = f.alloca(INT64, MOST_STEP_WORDS, 16)
        largest = self.word(recipe, Field.WORK)
        count, first = self.word(recipe, Field.STEPS), [self.first_step]
        with f.carried_loop(int64(0), count, int64(1), first, "step") as (_, (step,), advance):
            thunk = self.pointer(step, StepField.THUNK)
            with f.branch(f.icmp("==", thunk, null())) as (other, call):
                with other:
                    self.numpy(step, cancelled)
                with call:
                    work = self.word(step, StepField.WORK)
                    # Of several steps, the largest alone takes a team.
                    takes = f.icmp("!=", self.word(step, StepField.TAKES_TEAM), 0)
                    wanted = f.and_(f.and_(wish.wanted, takes), f.icmp("==", work, largest))
                    long_running = f.icmp(">", work, int64(GIL_THRESHOLD))
                    with self.without_gil(long_running), self.team(wish._replace(wanted=wanted)) as team:
                        f.store(f.ptrtoint(team), self.base(int(Base.TEAM)), 8)
                        self.fill(step, words)
                        f.call(Callee(VOID, thunk.text), [self.pointer(step, StepField.CODE), words])
                    self.raise_cancelled(to=cancelled)
                    with f.when(f.icmp("!=", self.word(step, StepField.IS_CHECK), 0)):
                        status = f.load(INT64, f.inttoptr(f.load(INT64, words, 8)), 8)
                        following = f.new_block("agreed")
                        f.jump_if(f.icmp("==", status, 0), following, declined)
                        f.place(following)
            advance([f.at(step, self.word(step, StepField.BYTES))])

    def fill(self, step: Value, words: Value) -> None:
        """The words of a step, with the addresses that they start from."""
        f = self.f
        given = f.at(step, 8 * StepField.ARGUMENTS)
        with f.loop(int64(0), self.word(step, StepField.COUNT), int64(1), "argument") as number:
            pair = f.at(given, f.mul(number, 16))
            base = f.load(INT64, self.base(f.load(INT64, pair, 8)), 8)
            f.store(f.add(base, f.load(INT64, f.at(pair, 8), 8)), f.at(words, f.mul(number, 8)), 8)

    def numpy(self, step: Value, failed: Block) -> None:
        """A function of NumPy, or a copy, on arrays made for it; to the block `failed` after an error."""
        f, module = self.f, self.module
        arrays = f.alloca(POINTER, MOST_VIEWS, 16)
        for place in range(MOST_VIEWS):
            f.store(null(), f.at(arrays, 8 * place), 8)
        outcome = f.alloca(INT64, 1, 8)
        f.store(int64(0), outcome, 8)
        give_up, done = f.new_block("give_up"), f.new_block("numpy_done")
        count, first = self.word(step, StepField.COUNT), [f.at(step, 8 * StepField.ARGUMENTS)]
        with f.carried_loop(int64(0), count, int64(1), first, "view") as (number, (view,), advance):
            base, slot = self.word(view, ArrayField.BASE), f.at(arrays, f.mul(number, 8))
            with f.branch(f.icmp("<", base, 0)) as (plain, viewed):
                with plain:
                    given = self.pointer(view, ArrayField.DTYPE)
                    f.call(self.increment, [given])
                    f.store(given, slot, 8)
                with viewed:
                    start = f.load(INT64, self.base(base), 8)
                    data = f.inttoptr(f.add(start, self.word(view, ArrayField.OFFSET)))
                    f.store(self.new(view, data, give_up), slot, 8)
            axes = self.word(view, ArrayField.AXES)
            advance([f.at(view, f.add(f.mul(axes, 16), 8 * ArrayField.LENGTHS))])
        function = self.pointer(step, StepField.CODE)
        token = f.alloca(POINTER, 1, 8)
        f.store(null(), token, 8)
        quiet = f.icmp("!=", self.word(step, StepField.IS_QUIET), 0)
        states = [module.external(name) for name in ("tw_error_state", "tw_quiet")]
        with f.when(quiet):
            enter = module.declare("tw_set_context", POINTER, (POINTER, POINTER))
            found = f.call(enter, states)
            f.store(found, token, 8)
            following = f.new_block("quiet")
            f.jump_if(f.icmp("==", found, null()), give_up, following)
            f.place(following)
        with f.branch(f.icmp("==", function, null())) as (copy, call):
            with copy:
                into = module.declare("tw_copy_into", INT32, (POINTER, POINTER))
                pair = [f.load(POINTER, f.at(arrays, 8 * place), 8) for place in range(2)]
                status = f.call(into, pair)
                f.store(f.zext(f.icmp("==", status, int32(0)), INT64), outcome, 8)
            with call:
                vectorcall = module.declare("tw_vectorcall", POINTER, (POINTER, POINTER, INT64, POINTER))
                names, named = self.pointer(step, StepField.NAMES), f.alloca(INT64, 1, 8)
                f.store(int64(0), named, 8)
                with f.when(f.icmp("!=", names, null())):
                    f.store(self.field(names, TUPLE_SIZE, INT64), named, 8)
                positional = f.sub(count, f.load(INT64, named, 8))
                found = f.call(vectorcall, [function, arrays, positional, names])
                with f.when(f.icmp("!=", found, null())):
                    f.call(self.decrement, [found])
                    f.store(int64(1), outcome, 8)
        with f.when(quiet):
            before = f.load(POINTER, token, 8)
            f.call(module.declare("tw_reset_context", INT32, (POINTER, POINTER)), [states[0], before])
            f.call(self.decrement, [before])
        f.jump(give_up)
        f.place(give_up)
        for place in range(MOST_VIEWS):
            array = f.load(POINTER, f.at(arrays, 8 * place), 8)
            with f.when(f.icmp("!=", array, null())):
                f.call(self.decrement, [array])
        f.jump_if(f.icmp("!=", f.load(INT64, outcome, 8), 0), done, failed)
        f.place(done)

    def free_memory(self, block: Value) -> None:
        """Frees what `take_memory` returned."""
        f = self.f
        memory = f.load(POINTER, block, 8)
        with f.when(f.icmp("!=", memory, null())):
            f.call(self.module.declare("tw_free", VOID, (POINTER,)), [memory])

    def returned(self, recipe: Value, block: Value) -> Value:
        """What the call returns: its result, or a tuple of several; null after an error."""
        f, module = self.f, self.module
        scalar = module.declare("tw_scalar", POINTER, (POINTER,) * 3)
        count = self.word(recipe, Field.RESULTS)
        failed = f.new_block("not_returned")
        with (
            self.results(recipe) as (record, base, place),
            f.when(f.icmp("==", base, int(Base.TEMPORARY))),
        ):
            start = f.load(INT64, self.base(base), 8)
            data = f.inttoptr(f.add(start, self.word(record, ArrayField.OFFSET)))
            made = f.call(scalar, [data, self.pointer(record, ArrayField.DTYPE), null()])
            f.store(made, place, 8)
            following = f.new_block("number_made")
            f.jump_if(f.icmp("==", made, null()), failed, following)
            f.place(following)
        maker = self.pointer(recipe, Field.MAKER)
        with (
            f.when(f.icmp(">", f.ptrtoint(maker), 1)),
            self.results(recipe) as (_, base, place),
            f.when(f.icmp(">=", base, int(Base.RESULT))),
        ):
            vectorcall = module.declare("tw_vectorcall", POINTER, (POINTER, POINTER, INT64, POINTER))
            made = f.call(vectorcall, [maker, place, int64(1), null()])
            following = f.new_block("handed_over")
            f.jump_if(f.icmp("==", made, null()), failed, following)
            f.place(following)
            f.call(self.decrement, [f.load(POINTER, place, 8)])
            f.store(made, place, 8)
        slot = f.alloca(POINTER, 1, 8)
        f.store(f.load(POINTER, self.made, 8), slot, 8)
        with f.when(f.icmp("!=", self.word(recipe, Field.IS_TUPLE), 0)):
            made = f.call(module.declare("tw_new_tuple", POINTER, (INT64,)), [count])
            following = f.new_block("tuple_made")
            f.jump_if(f.icmp("==", made, null()), failed, following)
            f.place(following)
            with f.loop(int64(0), count, int64(1), "item") as number:
                at = f.mul(number, 8)
                f.store(f.load(POINTER, f.at(self.made, at), 8), f.at(f.at(made, TUPLE_ITEM), at), 8)
            f.store(made, slot, 8)
        done = f.new_block("returned")
        f.jump(done)
        f.place(failed)
        self.free_memory(block)
        self.drop_results(recipe)
        f.ret(null())
        f.place(done)
        return f.load(POINTER, slot, 8)


def _emit(*, quick: bool) -> str:
    """The module: the key of the call, its recipe, memory, steps and results."""
    machine = host_machine()
    module = Module(_MODULE, machine.triple, data_layout(machine))
    entry = _Entry(module, KeyReader(module))
    f = entry.f
    recipe = entry.find()
    if quick:
        entry.count_quick_call()
    entry.find_all_scratch(recipe)
    wish = entry.wish(recipe)
    entry.take_scratch()
    entry.count_use(recipe, 1)
    entry.set_arguments()
    entry.make_results(recipe)
    block = entry.take_memory(recipe)
    cancelled, declined, done = (f.new_block(name) for name in ("cancelled", "declined", "done"))
    entry.run(recipe, wish, cancelled, declined)
    f.jump(done)
    f.place(declined)  # nothing but temporary arrays and results has changed
    entry.free_memory(block)
    entry.drop_results(recipe)
    f.jump(entry.fallback)
    f.place(cancelled)
    entry.free_memory(block)
    entry.drop_results(recipe)
    f.ret(null())
    f.place(done)
    found = entry.returned(recipe, block)
    entry.free_memory(block)
    hits = f.at(recipe, 8 * Field.HITS)
    f.store(f.add(f.load(INT64, hits, 8), 1), hits, 8)
    entry.give_back(recipe)
    entry.finish(found)
    return str(module)


def _emit_method() -> str:
    """The module of a method: a call of the entry with the object in front of the arguments."""
    machine = host_machine()
    module = Module(_METHOD_MODULE, machine.triple, data_layout(machine))
    arguments = [("self", POINTER), ("args", POINTER), ("nargs", INT64), ("kwnames", POINTER)]
    f = module.define(_METHOD_MODULE, POINTER, arguments, exported=True)
    owner, args, nargs, kwnames = f.arguments.values()
    count, place = f.alloca(INT64, 1, 8), f.alloca(POINTER, 1, 8)
    f.store(nargs, count, 8)
    with f.when(f.icmp("!=", kwnames, null())):
        f.store(f.add(nargs, f.load(INT64, f.at(kwnames, TUPLE_SIZE), 8)), count, 8)
    total = f.load(INT64, count, 8)
    many = f.icmp(">=", total, _STACK_ARGUMENTS)
    f.store(f.alloca(POINTER, _STACK_ARGUMENTS, 8), place, 8)
    with f.when(many):
        size = f.mul(f.add(total, 1), 8)
        f.store(f.call(module.declare("tw_allocate", POINTER, (INT64,)), [size]), place, 8)
    whole = f.load(POINTER, place, 8)
    with f.when(f.icmp("==", whole, null())):
        f.ret(f.call(module.declare("tw_no_memory", POINTER, ()), []))
    f.store(owner, whole, 8)
    following = f.at(whole, 8)
    with f.loop(int64(0), total, int64(1), "argument") as number:
        at = f.mul(number, 8)
        f.store(f.load(POINTER, f.at(args, at), 8), f.at(following, at), 8)
    entry = Callee(POINTER, f.load(POINTER, module.external("tw_others"), 8).text)
    found = f.call(entry, [module.external("tw_function"), whole, f.add(nargs, 1), kwnames])
    with f.when(many):
        f.call(module.declare("tw_free", VOID, (POINTER,)), [whole])
    f.ret(found)
    return str(module)


class Key(NamedTuple):
    """The words of a call's key, their hash, and the objects whose addresses are among them."""

    words: bytes
    mixed: int
    kept: tuple[Any, ...]


class Replay:
    """The entry of this process, its recipes, and the functions that have it.

    Parameters
    ----------
    others : receives the address of the entry, for machine code.
    """

    def __init__(self, others: ctypes.c_void_p) -> None:
        self._others = others
        self._builtins: list[Builtin] = []
        self.table, self.kinds, self.operands = RecipeTable(), KnownKinds(), Operands()
        api = ctypes.pythonapi
        imports = {
            **python_symbols(),
            "tw_recipes": self.table.address,
            "tw_kinds": ctypes.addressof(self.kinds.table),
            "tw_torch": ctypes.addressof(torch_types.table),
            "tw_operands": ctypes.addressof(self.operands),
            **{f"tw_{kind.__name__}": id(kind) for kind in (float, bool, int, str, tuple, list)},
            **{f"tw_dtype_{kind.__name__}": id(np.dtype(kind)) for kind in (float, int)},
            "tw_as_integer": address_of(api.PyLong_AsLongLongAndOverflow),
            "tw_as_text": address_of(api.PyUnicode_AsUTF8AndSize),
            "tw_clear_error": address_of(api.PyErr_Clear),
            "tw_new_tuple": address_of(api.PyTuple_New),
            "tw_allocate": address_of(api.PyMem_RawMalloc),
            "tw_free": address_of(api.PyMem_RawFree),
            "tw_no_memory": address_of(api.PyErr_NoMemory),
            "tw_new_array": numpy_api(API_NEW_FROM_DESCR),
            "tw_set_base": numpy_api(API_SET_BASE),
            "tw_copy_into": numpy_api(API_COPY_INTO),
            "tw_empty": numpy_api(API_EMPTY),
            "tw_scalar": numpy_api(API_SCALAR),
            "tw_from_any": numpy_api(API_FROM_ANY),
            "tw_set_context": address_of(api.PyContextVar_Set),
            "tw_reset_context": address_of(api.PyContextVar_Reset),
            **{f"tw_{name}": id(thing) for name, thing in error_state().items()},
        }
        machine = host_machine()
        self._code = EntryCode(
            f"{_MODULE} {LAYOUT}", machine, _emit, (_ENTRY, _READ), imports, installed=self._install
        )
        self._install()
        quick_code.then(self.table.clear)  # recipes have addresses of kernels

    def _install(self) -> None:
        # With the GIL, since it reads Python's objects.
        kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        self._read = ctypes.PYFUNCTYPE(ctypes.c_int64, *kinds)(self._code.address(_READ))
        former, self._others.value = self._others.value, self.address
        for builtin in self._builtins:
            builtin.replace(former, self.address, self)

    def connect(self, builtin: Builtin) -> None:
        """Makes the entry the machine code of a builtin."""
        builtin.install(self.address, self)
        self._builtins.append(builtin)

    @property
    def address(self) -> int:
        """Where the entry starts."""
        return self._code.address(_ENTRY)

    def method(self, function: Any) -> Linked:
        """Machine code of a method of the objects that are the first arguments of a Python function."""
        api = ctypes.pythonapi
        imports = {
            "tw_others": ctypes.addressof(self._others),
            "tw_function": id(function),
            "tw_allocate": address_of(api.PyMem_RawMalloc),
            "tw_free": address_of(api.PyMem_RawFree),
            "tw_no_memory": address_of(api.PyErr_NoMemory),
        }
        machine, what = host_machine(), f"{_METHOD_MODULE} {LAYOUT}"
        code = cached_object(what, machine, lambda: emit_object(_emit_method(), _METHOD_MODULE, machine))
        return Linked(code, (_METHOD_MODULE,), imports)

    def key(self, owner: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Key | None:
        """The key of a call; None where its arguments have none."""
        values, names = (*arguments, *named.values()), tuple(named)
        kept = self.kinds.learn(flattened(values))
        state = KeyState()
        start = ctypes.addressof(state)
        found = self._read(
            id(owner), id(values) + TUPLE_ITEM, len(arguments), id(names) if names else None, start
        )
        for number in range(state.held):
            ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(state.views[number]))
        if found == 0:
            return None
        words = ctypes.string_at(start + KeyState.key.offset, 8 * found)
        return Key(words, state.mixed, (owner, names, *kept))
