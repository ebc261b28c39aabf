"""The function that is being written: its program and machine, and the values all of its statements share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tilewright.compiler.lowering.interface import has_tasks, makes_tasks, scalar_type, scratch_layout
from tilewright.ir.expressions import Expression
from tilewright.ir.nodes import Execution, If, Loop, Primitive, Program, Space, Statement, TileMatmul
from tilewright.llvm.build import Function
from tilewright.llvm.team import Team
from tilewright.llvm.values import Value, int64, memory_type
from tilewright.machine.machine import Machine
from tilewright.micro.budget import Budget
from tilewright.spec.dtype import DType

#: Buffers in the frame start on a cache line.
LOCAL_ALIGNMENT = 64


class Frame(NamedTuple):
    """One function: that of the program, or the body of its tasks.

    Attributes
    ----------
    f : the function, at its current position.
    scalars : the scalar parameters of the program.
    pointers : the first element of every buffer.
    team : the threads that share the call; None without parallel loops.
    budget : the budget of long-running work; None if there is none.
    runs_tasks : the function runs tasks, some of them in its own thread.
    uniform_strides : all register tiles of the program have the same strides of A, B and columns of C.
    quotients : those that a block has, by its label, dividend and divisor.
    numbers : numbers of statements, for marks on the lines that are written for each; None without marks.
    """

    program: Program
    machine: Machine
    f: Function
    scalars: Mapping[str, Value]
    pointers: Mapping[str, Value]
    team: Team | None
    budget: Value | None
    runs_tasks: bool
    uniform_strides: bool
    quotients: dict[tuple[str, Value, Value], Value]
    numbers: Iterator[int] | None = None

    @classmethod
    def of_program(cls, program: Program, machine: Machine, f: Function) -> Frame:
        """The function of a whole program, whose arguments are those of `signature`."""
        g = f.arguments
        scalars = {name: g[name] for name in program.scalars}
        pointers = {buffer.name: g[buffer.name] for buffer in program.arguments}
        team = Team.of(f, g["team"]) if has_tasks(program) else None
        if program.scratch:
            pointers |= _scratch(program, f, g["scratch"], int64(0))
        pointers |= _locals(program, f)
        budget, uniform = _budget(f, team, program.body), len(set(_tile_strides(program.body))) == 1
        return cls(program, machine, f, scalars, pointers, team, budget, team is not None, uniform, {})

    def of_task(self, body: Function, given: Mapping[str, Value], statements: tuple[Statement, ...]) -> Frame:
        """The body of tasks, from the values of this frame as the body has them: see `captured`."""
        pointers = with_prefix("pointer", given)
        if self.program.scratch:
            pointers |= _scratch(self.program, body, given["scratch"], body.arguments["thread"])
        pointers |= _locals(self.program, body)
        team = Team(given["team"], given["threads"])
        budget = _budget(body, team, statements)
        scalars = with_prefix("scalar", given)
        runs_tasks = any(map(makes_tasks, statements))
        own = self._replace(f=body, scalars=scalars, pointers=pointers, team=team, budget=budget)
        return own._replace(runs_tasks=runs_tasks, quotients={})

    def captured(self) -> dict[str, Value]:
        """The values of this frame that the body of a task may read, by kind and name."""
        values = {f"scalar {name}": value for name, value in self.scalars.items()}
        arguments = [buffer.name for buffer in self.program.arguments]
        values |= {f"pointer {name}": self.pointers[name] for name in arguments}
        if self.program.scratch:
            values["scratch"] = self.f.arguments["scratch"]
        return values

    @property
    def scalar_type(self) -> DType:
        """The type of the program's scalars."""
        return scalar_type(self.program)

    def dtype(self, buffer: str) -> DType:
        """The element type of a buffer."""
        return self.program.buffer(buffer).dtype


def with_prefix(kind: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """The captured values of one kind, by name."""
    start = f"{kind} "
    return {name.removeprefix(start): value for name, value in values.items() if name.startswith(start)}


def _scratch(program: Program, f: Function, scratch: Value, thread: Value) -> dict[str, Value]:
    """Pointers to the scratch buffers of one thread."""
    layout = scratch_layout(program)
    own = f.at(scratch, f.mul(thread, layout.thread_bytes))
    return {
        buffer.name: f.at(scratch if buffer.space is Space.SHARED else own, layout.offsets[buffer.name])
        for buffer in program.scratch
    }


def _locals(program: Program, f: Function) -> dict[str, Value]:
    """Buffers on the stack of the function."""
    found = {}
    for buffer in program.buffers:
        if buffer.space is Space.LOCAL:
            assert buffer.size is not None
            cells = buffer.size // buffer.dtype.held
            found[buffer.name] = f.alloca(memory_type(buffer.dtype), cells, LOCAL_ALIGNMENT)
    return found


def _budget(f: Function, team: Team | None, body: tuple[Statement, ...]) -> Value | None:
    """The budget of a function; None if it has no long-running work."""
    return None if team is None or not any(map(_is_long, body)) else Budget.begin(f, team.pointer).place


def _is_long(statement: Statement) -> bool:
    """Whether a statement spends from the budget of its function; tasks have their own."""
    match statement:
        case Primitive(long=long):
            return long
        case Loop(execution=Execution.PARALLEL):
            return False
        case Loop(body=body):
            return any(map(_is_long, body))
        case If(then=then, otherwise=otherwise):
            return any(map(_is_long, (*then, *otherwise)))
        case _:
            return False


def _tile_strides(body: tuple[Statement, ...]) -> Iterator[tuple[Expression, ...]]:
    """For each register tile in a body, the strides of A and B and the distance between columns of C."""
    for statement in body:
        match statement:
            case TileMatmul(a=a, b=b, c=c):
                yield *a.strides, *b.strides, c.strides[1]
            case Loop(body=inner):
                yield from _tile_strides(inner)
            case If(then=then, otherwise=otherwise):
                yield from _tile_strides((*then, *otherwise))
