"""Control flow of a function under construction: blocks, loops that carry registers, branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from tilewright.llvm.values import INT1, INT64, Type, Value


class Block:
    """A basic block: a label and its lines; phi lines are completed when their loop ends."""

    __slots__ = ("label", "lines", "terminated")

    def __init__(self, label: str) -> None:
        self.label = label
        self.lines: list[str] = []
        self.terminated = False


class Phi:
    """A phi under construction: reserves its line, and is a value at once."""

    __slots__ = ("block", "incoming", "line", "mark", "value")

    def __init__(self, block: Block, value: Value, mark: str = "") -> None:
        self.block, self.value, self.line, self.mark = block, value, len(block.lines), mark
        self.incoming: list[str] = []
        block.lines.append("")

    def add(self, value: Value, origin: Block) -> None:
        """The value where control comes from a block."""
        self.incoming.append(f"[{value.text}, %{origin.label}]")
        joined = ", ".join(self.incoming)
        self.block.lines[self.line] = f"{self.value.text} = phi {self.value.type.text} {joined}{self.mark}"


class Advance:
    """Collects the next values of a carried loop, then holds its results."""

    def __init__(self) -> None:
        self.values: tuple[Value, ...] = ()
        self.results: list[Value] = []

    def __call__(self, values: Sequence[Value]) -> None:
        """Sets what the next iteration starts with."""
        self.values = tuple(values)


class ControlFlow:
    """The blocks of one function; instructions go to the end of the current one.

    Attributes
    ----------
    mark : the end of each line: nothing, or a comment that says what the instruction was written for.
    """

    def __init__(self) -> None:
        self.mark = ""
        self._count = 0
        self.blocks: list[Block] = []
        self.block = self.new_block("entry")
        self.blocks.append(self.block)

    # --- instructions and blocks --------------------------------------------------------------

    def new_name(self) -> str:
        """A name that no other value or block of the function has."""
        self._count += 1
        return f"%.{self._count}"

    def emit(self, kind: Type, text: str) -> Value:
        """Appends ``%new = text``."""
        name = self.new_name()
        self.block.lines.append(f"{name} = {text}{self.mark}")
        return Value(kind, name)

    def effect(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.block.lines.append(text + self.mark)

    def new_block(self, label: str) -> Block:
        """A block with a unique label, not yet placed."""
        self._count += 1
        return Block(f"{label}.{self._count}")

    def place(self, block: Block) -> None:
        """Puts a block at the end of the function and goes on in it."""
        self.blocks.append(block)
        self.block = block

    def jump(self, target: Block) -> None:
        """Ends the block by going to another."""
        self.effect(f"br label %{target.label}")
        self.block.terminated = True

    def jump_if(self, condition: Value, then: Block, otherwise: Block) -> None:
        """Ends the block by going to one of two."""
        self.effect(f"br i1 {condition.text}, label %{then.label}, label %{otherwise.label}")
        self.block.terminated = True

    # --- loops and branches -------------------------------------------------------------------

    @contextmanager
    def loop(self, begin: Value, end: Value, step: Value, name: str = "i") -> Iterator[Value]:
        """for i = begin; i < end; i += step, tested before the first iteration."""
        with self.carried_loop(begin, end, step, (), name) as (index, _, advance):
            yield index
            advance(())

    @contextmanager
    def carried_loop(
        self, begin: Value, end: Value, step: Value, initial: Sequence[Value], name: str = "i"
    ) -> Iterator[tuple[Value, tuple[Value, ...], Advance]]:
        """A loop that carries values in registers.

        Yields (index, carried values, advance); the body calls ``advance(next values)`` once, last.
        After the block the final values are in ``advance.results``.
        """
        advance = Advance()
        with self.carried_walk(begin, end, initial, name) as (index, carried, following):
            yield index, carried, advance
            following((self.emit(INT64, f"add {index.typed}, {step.text}"), *advance.values))
        advance.results += following.results

    @contextmanager
    def walk(self, begin: Value, end: Value, name: str = "at") -> Iterator[tuple[Value, Advance]]:
        """A loop whose steps differ, tested before the first; the body calls ``advance([next])`` once."""
        with self.carried_walk(begin, end, (), name) as (index, _, advance):
            yield index, advance

    @contextmanager
    def carried_walk(
        self, begin: Value, end: Value, initial: Sequence[Value], name: str = "at"
    ) -> Iterator[tuple[Value, tuple[Value, ...], Advance]]:
        """A loop whose steps differ and that carries values in registers.

        Yields (index, carried values, advance); the body calls ``advance([next index, *next values])`` once,
        last. After the block the final values are in ``advance.results``.
        """
        body, done = self.new_block(f"{name}.body"), self.new_block(f"{name}.done")
        before = self.block
        self.jump_if(self._below(begin, end), body, done)
        self.place(body)
        index = self._phi(INT64)
        index.add(begin, before)
        carried = [self._phi(value.type) for value in initial]
        advance = Advance()
        yield index.value, tuple(phi.value for phi in carried), advance
        following, *values = advance.values
        latch = self.block
        index.add(following, latch)
        self.jump_if(self._below(following, end), body, done)
        self.place(done)
        for phi, start, value in zip(carried, initial, values, strict=True):
            phi.add(start, before)
            phi.add(value, latch)
            result = self._phi(start.type)
            result.add(start, before)
            result.add(value, latch)
            advance.results.append(result.value)

    @contextmanager
    def once_if(
        self, condition: Value, initial: Sequence[Value]
    ) -> Iterator[tuple[tuple[Value, ...], Advance]]:
        """A block that changes values in registers, run only if the condition holds.

        Yields (values, advance); the block calls ``advance(changed values)`` once, last. Afterwards
        ``advance.results`` holds the changed values or the initial ones.
        """
        then, join = self.new_block("once"), self.new_block("join")
        before = self.block
        self.jump_if(condition, then, join)
        self.place(then)
        advance = Advance()
        yield tuple(initial), advance
        after = self.block
        self.jump(join)
        self.place(join)
        for start, value in zip(initial, advance.values, strict=True):
            phi = self._phi(start.type)
            phi.add(start, before)
            phi.add(value, after)
            advance.results.append(phi.value)

    def _phi(self, kind: Type) -> Phi:
        return Phi(self.block, Value(kind, self.new_name()), self.mark)

    @contextmanager
    def branch(
        self, condition: Value
    ) -> Iterator[tuple[AbstractContextManager[None], AbstractContextManager[None]]]:
        """``with f.branch(c) as (then, otherwise): with then: ...; with otherwise: ...``."""
        then, otherwise, join = self.new_block("then"), self.new_block("else"), self.new_block("join")
        self.jump_if(condition, then, otherwise)

        @contextmanager
        def inside(block: Block) -> Iterator[None]:
            self.place(block)
            yield
            if not self.block.terminated:
                self.jump(join)

        yield inside(then), inside(otherwise)
        self.place(join)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Runs the block if the condition holds."""
        then, join = self.new_block("then"), self.new_block("join")
        self.jump_if(condition, then, join)
        self.place(then)
        yield
        if not self.block.terminated:
            self.jump(join)
        self.place(join)

    def _below(self, left: Value, right: Value) -> Value:
        return self.emit(INT1, f"icmp slt {left.typed}, {right.text}")
