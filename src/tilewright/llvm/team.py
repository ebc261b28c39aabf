"""Tasks of a parallel loop: the threads that share a call, and how its function hands them work.

A caller passes a pointer to a team, or null where it is alone::

    struct tw_team {
      void (*run)(struct tw_team *team, void (*body)(void *env, int64_t thread, int64_t task),
                  void *env, int64_t tasks);
      int64_t threads;
    };

`run` calls the body for every task 0 .. tasks-1, in any order, and returns when all have been done. `thread`
is at least 0 and less than `threads`, and differs between bodies that run at the same time.

Long tasks call `run` with no body and no tasks now and then, and with the address of a word that is 0. A team
that was cancelled sets the word, and the task ends; other teams have nothing to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.control import Block
from tilewright.llvm.values import INT1, INT64, POINTER, VOID, Type, Value, int64, null

#: Bytes of the fields of `struct tw_team`.
RUN_OFFSET, THREADS_OFFSET = 0, 8

#: The parameters of a body and of `run`.
BODY_ARGUMENTS = (("env", POINTER), ("thread", INT64), ("task", INT64))
RUN_ARGUMENTS = (("team", POINTER), ("body", POINTER), ("env", POINTER), ("tasks", INT64))

_WORD_BYTES = 8
_ALONE = "run_alone"

#: Values in a line that the body of a function reads or writes.
_NAMES = re.compile(r"%[\w.]+")


class Team(NamedTuple):
    """The team of a call, as values of the function that was called."""

    pointer: Value
    threads: Value

    @classmethod
    def of(cls, f: Function, given: Value) -> Team:
        """The team behind a pointer; where it is null, one thread that does every task itself."""
        alone = f.alloca(INT64, 2, _WORD_BYTES)
        f.store(Value(POINTER, _alone(f.module).text), f.at(alone, RUN_OFFSET), _WORD_BYTES)
        f.store(int64(1), f.at(alone, THREADS_OFFSET), _WORD_BYTES)
        pointer = f.select(f.icmp("==", given, null()), alone, given)
        return cls(pointer, f.load(INT64, f.at(pointer, THREADS_OFFSET), _WORD_BYTES))

    def run(self, f: Function, body: Callee, environment: Value, tasks: Value) -> None:
        """Does `tasks` tasks; every one has been done when the call returns."""
        run = f.load(POINTER, f.at(self.pointer, RUN_OFFSET), _WORD_BYTES)
        f.call(Callee(VOID, run.text), [self.pointer, Value(POINTER, body.text), environment, tasks])

    @staticmethod
    def end_if_cancelled(f: Function, pointer: Value) -> None:
        """A checkpoint of a long task: leaves the function if the team was cancelled."""
        stop = f.alloca(INT64, 1, _WORD_BYTES)
        f.store(int64(0), stop, _WORD_BYTES)
        run = f.load(POINTER, f.at(pointer, RUN_OFFSET), _WORD_BYTES)
        f.call(Callee(VOID, run.text), [pointer, null(), stop, int64(0)])
        with f.when(f.icmp("!=", f.load(INT64, stop, _WORD_BYTES), 0)):
            f.ret()


def _alone(module: Module) -> Callee:
    """`run` of a caller without a team: one task after the other."""
    known = module.find(_ALONE)
    if known is not None:
        return known
    f = module.define(_ALONE, VOID, RUN_ARGUMENTS)
    g = f.arguments
    with f.loop(int64(0), g["tasks"], int64(1), "next") as task:
        f.call(Callee(VOID, g["body"].text), [g["env"], int64(0), task])
    f.ret()
    return f.callee


class _Arguments:
    """The arguments of a function that bodies of its tasks read: stored once, where the function begins.

    An argument that lived through the function's loops would take a register there, and LLVM long to find
    one for dozens. And a function with many paths, each with tasks, would store them for all of these.
    """

    def __init__(self, f: Function) -> None:
        self._numbers = {value: number for number, value in enumerate(f.arguments.values())}
        self._stored: set[Value] = set()
        self.place = f.alloca(INT64, len(self._numbers), _WORD_BYTES)

    def keep(self, f: Function, value: Value) -> int | None:
        """Stores a value where the function begins; its offset, or None if it is no argument."""
        number = self._numbers.get(value)
        if number is None:
            return None
        offset = number * _WORD_BYTES
        if value not in self._stored:
            self._stored.add(value)
            here, f.block = f.block, Block("first")
            _store_word(f, value, f.at(self.place, offset))
            f.blocks[0].lines[:0] = f.block.lines
            f.block = here
        return offset


def _store_word(f: Function, value: Value, place: Value) -> None:
    f.store(f.zext(value, INT64) if value.type == INT1 else value, place, _WORD_BYTES)


class Environment:
    """Values of one function that the body of its tasks needs, in the frame of that function.

    Before: ``values = {"m": %m, "n": %n, "one": 1}``. After: in the body, ``{"m": a load, "n": a load,
    "one": 1}``; what is known at compile time stays known. What the body does not read is not kept, and
    arguments are kept once for all bodies: the first word of an environment is their address.
    """

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values
        self._held: dict[str, Value] = {}

    def inside(self, body: Function) -> dict[str, Value]:
        """The values, in a body that begins here; `keep` writes their loads."""
        found = dict(self._values)
        for name, value in self._values.items():
            if value.known is None:
                kind: Type = INT64 if value.type == INT1 else value.type
                held = self._held[name] = Value(kind, body.new_name())
                found[name] = body.icmp("!=", held, 0) if value.type == INT1 else held
        return found

    def keep(self, f: Function, body: Function) -> Value:
        """Stores what a finished body reads, in the frame of its caller; the address that it is given."""
        read = {name for block in body.blocks for line in block.lines for name in _NAMES.findall(line)}
        kept = [name for name, held in self._held.items() if held.text in read]
        arguments = f.kept_arguments
        if not isinstance(arguments, _Arguments):
            arguments = f.kept_arguments = _Arguments(f)
        place = f.alloca(INT64, 1 + len(kept), _WORD_BYTES)
        given, base = body.arguments["env"], Value(POINTER, body.new_name())
        loads, shared, words = list[str](), list[str](), 1
        for name in kept:
            value, held = self._values[name], self._held[name]
            offset = arguments.keep(f, value)
            if offset is not None:
                shared += _load_word(body, held, base, offset)
                continue
            offset, words = words * _WORD_BYTES, words + 1
            _store_word(f, value, f.at(place, offset))
            loads += _load_word(body, held, given, offset)
        if shared:
            f.store(arguments.place, place, _WORD_BYTES)
            shared = [*_load_word(body, base, given, 0), *shared]
        body.blocks[0].lines[:0] = [*loads, *shared]
        return place


def _load_word(body: Function, held: Value, base: Value, offset: int) -> list[str]:
    """The lines that load a word of an environment under a name that the body has for it."""
    address, lines = base.text, []
    if offset:
        address = body.new_name()
        lines.append(f"{address} = getelementptr i8, {base.typed}, i64 {offset}")
    return [*lines, f"{held.text} = load {held.type.text}, ptr {address}, align {_WORD_BYTES}"]
