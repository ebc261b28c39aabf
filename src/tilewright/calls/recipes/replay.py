"""Replay: machine code that repeats prepared calls, one entry for all public functions.

The entry forms the key of a call (`call_key.py`), finds its recipe (`recipe.py`) and does what that says. A
call without a recipe goes to the Python function, which checks it, makes it and leaves a recipe.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from tilewright.calls.fastcall import GIL_THRESHOLD, CallEntry, entry_symbols
from tilewright.calls.kinds import KnownKinds
from tilewright.calls.layout import LAYOUT, TUPLE_ITEM
from tilewright.calls.lists import Operands, emit_fallback
from tilewright.calls.object_code import CALL_ARGUMENTS, ObjectCode
from tilewright.calls.recipes.call_key import ArrayFound, KeyState, array_found, emit_read
from tilewright.calls.recipes.recipe import (
    ALIGNMENT,
    BASES,
    HEADER_BYTES,
    MOST_SCRATCH,
    MOST_STEP_WORDS,
    PROBES,
    SLOT_BITS,
    STACK_BYTES,
    Base,
    Field,
    RecipeTable,
    StepField,
)
from tilewright.calls.recipes.recording import flattened
from tilewright.calls.recipes.results_code import ResultsCode, run_numpy
from tilewright.calls.recipes.step_code import TeamRequest
from tilewright.calls.torch_functions import torch_types
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.builtin import Builtin
from tilewright.llvm.control import Block
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.quick import EntryCode, quick_code
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64, null
from tilewright.machine.host import host_machine
from tilewright.threads.pool import WAKE_WORK

_MODULE, _METHOD_MODULE = "tw_replay", "tw_method"
_ENTRY, _READ = "tw_repeat", "tw_read"

#: Arguments of a method, its object among them, that are passed on from the stack; of more, from the heap.
_STACK_ARGUMENTS = 64


class _Replay(CallEntry):
    """Emits the entry; see `_emit` for the order of its parts."""

    def __init__(self, module: Module) -> None:
        self._read, self._others = emit_read(module).callee, emit_fallback(module)
        super().__init__(module, _ENTRY)
        self.state = self.alloca(INT64, ctypes.sizeof(KeyState) // 8, 16)
        self.bases = self.alloca(INT64, BASES, 16)
        self.slots: list[Value] = []
        self.scratch: list[Value] = []

    def others(self) -> Callee:
        """What makes calls without a recipe: Python, after lists of numbers have become arrays."""
        self.drop_views()
        return self._others

    def find(self) -> Value:
        """The recipe of the call; if there is none, the call is given up."""
        self.put(self.state, KeyState.held, int64(0))
        self.require_no_recording()
        count = self.call(self._read, [*self.arguments.values(), self.state])
        self.require(self.icmp("!=", count, 0))
        mixed = self.word(self.state, KeyState.mixed)
        slot = self.and_(self.ashr(mixed, int64(64 - SLOT_BITS)), int64((1 << SLOT_BITS) - 1))
        first = self.item(self.symbol("recipes"), slot)
        at = self.alloca(POINTER, 1, 8)
        self.put(at, 0, first)
        key = self.at(self.state, KeyState.key.offset)
        look, another, found = map(self.new_block, ("look", "another", "found"))
        self.jump(look)
        self.place(look)
        recipe = self.pointer(self.pointer(at))
        self.require(self.not_(self.is_null(recipe)))
        self.go_on_if(self.icmp("==", count, self.word(recipe, Field.WORDS)), another)
        theirs = self.at(recipe, HEADER_BYTES)
        # One by one: words that were just written singly are slow to load as a vector.
        with self.carried_loop(int64(0), count, int64(1), [int64(0)], "word") as (number, (bits,), advance):
            pair = [self.word(self.item(base, number)) for base in (key, theirs)]
            advance([self.or_(bits, self.xor(*pair))])
        self.jump_if(self.icmp("==", advance.results[0], 0), found, another)
        self.place(another)
        following = self.at(self.pointer(at), 8)
        self.put(at, 0, following)
        self.jump_if(self.icmp("==", following, self.at(first, 8 * PROBES)), self.fallback, look)
        self.place(found)
        recipe = self.pointer(self.pointer(at))
        limit = self.word(recipe, Field.LIMIT)
        self.require(
            self.or_(self.icmp("==", limit, 0), self.icmp("<", self.word(recipe, Field.HITS), limit))
        )
        self.body = self.item(recipe, count, HEADER_BYTES)
        return recipe

    # --- what a call takes and gives back ----------------------------------------------------

    def find_all_scratch(self, recipe: Value) -> None:
        """A slot with a block for each table of scratch that the recipe has; else the call is given up."""
        empty = self.alloca(POINTER, MOST_SCRATCH, 8)
        for number in range(MOST_SCRATCH):
            slot, table = self.at(empty, 8 * number), self.pointer(recipe, 8 * (Field.SCRATCH + number))
            self.put(slot, 0, null())
            with self.once_if(self.not_(self.is_null(table)), [slot]) as (_, found):
                found([self.find_scratch(table)])
            self.slots.append(found.results[0])

    def find_threads(self, recipe: Value) -> TeamRequest:
        """The team of the recipe's longest step, of as many threads as the call allows."""
        return self.find_team(self.word(recipe, Field.WORK), self.word(recipe, Field.THREADS))

    def count_use(self, recipe: Value, difference: int) -> None:
        """Counts the calls that follow a recipe; the GIL is held."""
        self.put(recipe, Field.USES, self.add(self.word(recipe, Field.USES), difference))

    def take(self, recipe: Value) -> None:
        """Takes the blocks of the slots; no code of Python runs between this and the search for them."""
        self.count_use(recipe, 1)
        for number, slot in enumerate(self.slots):
            self.scratch.append(self.pointer(slot))
            self.put(slot, 0, null())
            self.put(self.bases, 8 * (Base.SCRATCH + number), self.ptrtoint(self.scratch[-1]))
        self.put(self.bases, Base.NUMBER, int64(0))
        arrays = self.word(self.state, KeyState.arrays)
        with self.loop(int64(0), arrays, int64(1), "array") as array:
            start = self.word(array_found(self, self.state, array), ArrayFound.start)
            self.put(self.item(self.bases, array, Base.ARGUMENT), 0, start)

    def give_back(self, recipe: Value) -> None:
        """Returns the blocks; the call does not use the recipe any more."""
        for slot, block in zip(self.slots, self.scratch, strict=True):
            self.put(slot, 0, block)
        self.count_use(recipe, -1)

    def drop_views(self) -> None:
        """Gives up the arrays made of operands of other libraries."""
        with self.loop(int64(0), self.word(self.state, KeyState.held), int64(1), "view") as number:
            self.python("decref", self.pointer(self.item(self.state, number, KeyState.views)))

    def take_memory(self, recipe: Value, failed: Block) -> Value:
        """Memory of temporary arrays; returns the block to free, or null where they are on the stack."""
        needed = self.word(recipe, Field.TEMPORARY_BYTES)
        stack = self.ptrtoint(self.alloca(INT64, STACK_BYTES // 8, ALIGNMENT))
        with self.once_if(self.icmp(">", needed, STACK_BYTES), [null(), stack]) as (_, allocated):
            found = self.python("allocate", self.add(needed, ALIGNMENT))
            start = self.and_(self.add(self.ptrtoint(found), ALIGNMENT - 1), int64(-ALIGNMENT))
            with self.when(self.is_null(found)):
                self.python("no_memory")
                self.jump(failed)
            allocated([found, start])
        block, start = allocated.results
        self.put(self.bases, Base.TEMPORARY, start)
        return block

    def free_memory(self, block: Value) -> None:
        """Frees what `take_memory` returned."""
        with self.when(self.not_(self.is_null(block))):
            self.python("free", block)

    # --- steps -------------------------------------------------------------------------------

    def run(
        self, recipe: Value, first_step: Value, wish: TeamRequest, failed: Block, declined: Block
    ) -> None:
        """All steps, one after the other.

        To the block `failed` after an exception, to `declined` after a check that says so.
        """
        words = self.alloca(INT64, MOST_STEP_WORDS, 16)
        count, first = self.word(recipe, Field.STEPS), [first_step]
        with self.carried_loop(int64(0), count, int64(1), first, "step") as (_, (step,), advance):
            thunk = self.pointer(step, StepField.THUNK)
            with self.branch(self.is_null(thunk)) as (other, call):
                with other:
                    run_numpy(self, step, self.bases, failed)
                with call:
                    work = self.word(step, StepField.WORK)
                    takes = self.icmp("!=", self.word(step, StepField.TAKES_TEAM), 0)
                    # The largest step has decided whether the workers are there.
                    wanted = self.and_(self.and_(wish.wanted, takes), self.takes_team(work, wish.threads))
                    own = wish._replace(wanted=wanted, long=self.icmp(">", work, WAKE_WORK))
                    long_running = self.icmp(">", work, int64(GIL_THRESHOLD))
                    with self.without_gil(long_running), self.team(own) as team:
                        self.put(self.bases, Base.TEAM, self.ptrtoint(team))
                        self.fill(step, words, self.bases)
                        code = self.pointer(step, StepField.CODE)
                        self.call(Callee(VOID, thunk.text), [code, words])
                    self.raise_cancelled(failed)
                    with self.when(self.icmp("!=", self.word(step, StepField.IS_CHECK), 0)):
                        status = self.word(self.pointer(words))
                        self.leave_if(self.icmp("!=", status, 0), declined)
            advance([self.at(step, self.word(step, StepField.BYTES))])


def _emit() -> str:
    """The module: the key of the call, its recipe, memory, steps and results."""
    machine = host_machine()
    module = Module(_MODULE, machine.triple, data_layout(machine))
    f = _Replay(module)
    recipe = f.find()
    f.count_quick_call()
    f.find_all_scratch(recipe)
    wish = f.find_threads(recipe)
    f.take(recipe)
    failed, failed_later, declined = map(f.new_block, ("failed", "failed_later", "declined"))
    results = ResultsCode(f, recipe, f.body, f.bases, f.state)
    first_step = results.make(failed)
    block = f.take_memory(recipe, failed)
    f.run(recipe, first_step, wish, failed_later, declined)
    found = results.returned(failed_later)
    f.free_memory(block)
    f.put(recipe, Field.HITS, f.add(f.word(recipe, Field.HITS), 1))
    f.give_back(recipe)
    f.drop_views()
    f.ret(found)
    f.place(declined)  # nothing but temporary arrays and results has changed
    f.free_memory(block)
    results.drop()
    f.give_back(recipe)
    f.jump(f.fallback)
    f.place(failed_later)
    f.free_memory(block)
    f.jump(failed)
    f.place(failed)
    results.drop()
    f.give_back(recipe)
    f.drop_views()
    f.ret(null())
    f.finish()
    return str(module)


def _emit_method() -> str:
    """The module of a method: a call of the entry with the object in front of the arguments."""
    machine = host_machine()
    module = Module(_METHOD_MODULE, machine.triple, data_layout(machine))
    f = ObjectCode(module, _METHOD_MODULE, POINTER, CALL_ARGUMENTS, exported=True)
    owner, args, nargs, kwnames = f.arguments.values()
    total, stack = f.all_arguments(), f.alloca(POINTER, _STACK_ARGUMENTS, 8)
    many = f.icmp(">=", total, _STACK_ARGUMENTS)
    with f.once_if(many, [stack]) as (_, allocated):
        allocated([f.python("allocate", f.mul(f.add(total, 1), 8))])
    whole = allocated.results[0]
    with f.when(f.is_null(whole)):
        f.ret(f.python("no_memory"))
    f.put(whole, 0, owner)
    with f.loop(int64(0), total, int64(1), "argument") as number:
        f.put(f.item(whole, number, 8), 0, f.pointer(f.item(args, number)))
    entry = Callee(POINTER, f.pointer(f.symbol("others")).text)
    found = f.call(entry, [f.symbol("function"), whole, f.add(nargs, 1), kwnames])
    with f.when(many):
        f.python("free", whole)
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
        imports = {
            **entry_symbols(),
            "tw_recipes": self.table.address,
            "tw_kinds": ctypes.addressof(self.kinds.table),
            "tw_torch": ctypes.addressof(torch_types.table),
            "tw_operands": ctypes.addressof(self.operands),
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
        others = ctypes.addressof(self._others)
        imports = {**entry_symbols(), "tw_others": others, "tw_function": id(function)}
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
