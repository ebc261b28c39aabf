"""Vectors of integers and of addresses: each lane is read as the scalar that it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tilewright.loops.llvm.control_flow import NaturalLoop
from tilewright.loops.llvm.evolution import Evolution
from tilewright.loops.llvm.facts import bits_of
from tilewright.loops.llvm.instruction import Instruction, InstructionOperand
from tilewright.loops.llvm.reroll.summands import NotOneLoop
from tilewright.loops.llvm.text import split_commas, split_type
from tilewright.loops.llvm.trip_counts import TripCounts

_VECTOR = re.compile(r"<(\d+) x (.*)>$")
_GATHER = re.compile(r"@llvm\.masked\.(gather|scatter)\.")
#: Lanes of one vector, at most: more make no sense on any machine.
_MOST_LANES = 64
#: Instructions on vectors that compute each lane as a scalar instruction does.
_BY_LANES = frozenset(("add", "sub", "mul", "shl", "or", "sext", "zext", "trunc", "getelementptr", "freeze"))
#: Instructions that addresses are computed by.
_ON_THE_WAY = _BY_LANES | {"phi", "insertelement", "extractelement", "shufflevector"}
#: A lane without a value that is known; nothing that uses it is understood.
_NO_VALUE = "poison"


def lanes_of(kind: str) -> tuple[int, str]:
    """The number of lanes of a type, and the type of one; scalars have one lane.

    >>> lanes_of("<4 x float>"), lanes_of("double")
    ((4, 'float'), (1, 'double'))
    """
    if kind.startswith("<vscale"):
        raise NotOneLoop("computes with vectors whose length is known at run time only")
    found = _VECTOR.match(kind)
    if found is None:
        return 1, kind
    if int(found[1]) > _MOST_LANES:
        raise NotOneLoop(f"computes with vectors of {found[1]} elements")
    return int(found[1]), found[2]


def constants_of(count: int, text: str) -> list[str]:
    """The lanes of a constant.

    >>> constants_of(2, "splat (i64 3)"), constants_of(2, "<i32 1, i32 poison>"), constants_of(1, "7")
    (['3', '3'], ['1', 'poison'], ['7'])
    """
    if text.startswith("splat ("):
        return [split_type(text[len("splat (") : -1])[1]] * count
    if text.startswith("<"):
        return [split_type(part)[1] for part in split_commas(text[1:-1])]
    return [text] * count


class ScatteredLanes(NamedTuple):
    """The operands of a gather or a scatter of all lanes: addresses, and what is stored there."""

    pointers: InstructionOperand
    stored: InstructionOperand | None


def scattered(instruction: Instruction) -> ScatteredLanes | None:
    """What `llvm.masked.gather` or `llvm.masked.scatter` accesses; None for other calls.

    One whose mask is not constant, or leaves out lanes, is refused: nothing here knows which lanes it has.
    """
    found = _GATHER.match(instruction.callee)
    if found is None:
        return None
    reads = found[1] == "gather"
    operands = instruction.operands
    pointers, mask = (operands[0], operands[-2]) if reads else (operands[1], operands[-1])
    count, _ = lanes_of(pointers.kind)
    if set(constants_of(count, mask.text)) != {"true"}:
        raise NotOneLoop("accesses elements under a mask")
    return ScatteredLanes(pointers, None if reads else operands[0])


class IndexPhi(NamedTuple):
    """A phi of an integer, or one lane of a phi of a vector of indices."""

    name: str
    kind: str
    phi: Instruction
    lane: int | None

    def text(self, label: str, indices: IndexLanes, at: NaturalLoop | None) -> str:
        """Its value where control comes from a block; `at` is the loop around the phi."""
        text = next(pair.text for pair in self.phi.incoming if pair.label == label)
        return text if self.lane is None else indices.of(self.phi.kind, text, at)[self.lane]


class IndexLanes:
    """Lanes of vectors along one path, each as the text of a scalar operand.

    A lane that an instruction computes gets a name that no value of a program has, and its evolution by the
    rule of the scalar instruction.

    Parameters
    ----------
    counts : of the nest.
    names : values that `indices_in` finds.
    found : evolutions of integers so far, by name.
    """

    def __init__(self, counts: TripCounts, names: frozenset[str], found: dict[str, Evolution | None]) -> None:
        self.names = names
        self._counts, self._found = counts, found
        self._lanes: dict[str, tuple[str, ...]] = {}

    def of(self, kind: str, text: str, at: NaturalLoop | None) -> tuple[str, ...]:
        """The lanes of an operand that is used in a loop."""
        count, element = lanes_of(kind)
        if bits_of(element) is None:
            raise NotOneLoop(f"computes addresses with {kind}")
        if text[:1] != "%":
            zero = "null" if element == "ptr" else "0"
            return tuple(zero if one == "zeroinitializer" else one for one in constants_of(count, text))
        home = self._counts.home(text)
        if home is not None and (at is None or at.header not in home.blocks):
            raise NotOneLoop("uses vectors of indices behind their loop")
        known = self._lanes.get(text)
        if known is None:
            definition = self._counts.function.definitions.get(text)
            known = self._computed(definition) if definition is not None else ()
            if len(known) != count:
                raise NotOneLoop("computes addresses that are not affine in its indices")
            self._lanes[text] = known
        return known

    def phis(self, phi: Instruction) -> list[IndexPhi]:
        """The lanes of a phi, whose evolutions the caller enters."""
        count, element = lanes_of(phi.kind)
        found = [IndexPhi(_lane_name(phi.result, lane), element, phi, lane) for lane in range(count)]
        self._lanes[phi.result] = tuple(one.name for one in found)
        return found

    def follow(self, instructions: Iterable[Instruction]) -> None:
        """Enter the evolutions of scalars that a block takes out of vectors of indices."""
        for one in instructions:
            if one.opcode != "extractelement" or one.result not in self.names:
                continue
            (kind, vector), (_, place) = one.operands
            home = self._counts.home(one.result)
            lanes = self.of(kind, vector, home)
            text = lanes[_place(place, len(lanes))]
            self._found[one.result] = self._counts.of(one.kind, text, home)

    def forget(self, name: str) -> None:
        """Drop the lanes of a value, which is another one from here on."""
        for lane in range(len(self._lanes.pop(name, ()))):
            self._found.pop(_lane_name(name, lane), None)

    def _computed(self, instruction: Instruction) -> tuple[str, ...]:
        home = self._counts.home(instruction.result)
        match instruction:
            case Instruction(opcode="insertelement", operands=((kind, vector), (_, element), (_, place))):
                lanes = self.of(kind, vector, home)
                number = _place(place, len(lanes))
                return (*lanes[:number], element, *lanes[number + 1 :])
            case Instruction(opcode="shufflevector", operands=(left, right)):
                both = (*self.of(*left, home), *self.of(*right, home))
                mask_kind, mask = split_type(split_commas(instruction.text)[-1])
                places = constants_of(lanes_of(mask_kind)[0], mask)
                numbers = ["0" if one == "zeroinitializer" else one for one in places]
                return tuple(
                    both[int(one)] if one.isdigit() and int(one) < len(both) else _NO_VALUE for one in numbers
                )
            case Instruction(opcode=opcode) if opcode in _BY_LANES:
                return self._by_lanes(instruction, home)
            case _:
                raise NotOneLoop("computes addresses that are not affine in its indices")

    def _by_lanes(self, instruction: Instruction, home: NaturalLoop | None) -> tuple[str, ...]:
        """An instruction on vectors as one on scalars for each lane."""
        count, element = lanes_of(instruction.kind)
        columns = [self._column(operand, count, home) for operand in instruction.operands]
        names = []
        for lane, operands in enumerate(zip(*columns, strict=True)):
            name = _lane_name(instruction.result, lane)
            scalar = Instruction(
                name,
                instruction.opcode,
                instruction.text,
                instruction.line,
                element,
                operands,
                instruction.flags,
                element=instruction.element,
            )
            found = self._counts.rules[scalar.opcode](self._counts, scalar, home)
            exact = found is not None and (home is not None or found.signed or element == "ptr")
            known = exact and found is not None and found.single is not None
            if known:
                self._found[name] = found
            names.append(name if known else _NO_VALUE)
        return tuple(names)

    def _column(
        self, operand: InstructionOperand, count: int, home: NaturalLoop | None
    ) -> Sequence[InstructionOperand]:
        """An operand for each lane; subscripts that are scalars are the same for all."""
        if not operand.kind.startswith("<"):
            return [operand] * count
        _, element = lanes_of(operand.kind)
        return [InstructionOperand(element, text) for text in self.of(*operand, home)]


def _lane_name(name: str, lane: int) -> str:
    return f"{name} lane {lane}"


def _place(text: str, count: int) -> int:
    if not text.isdigit() or int(text) >= count:
        raise NotOneLoop("takes elements of vectors at places that are no constants")
    return int(text)


def indices_in(instructions: Sequence[Instruction]) -> frozenset[str]:
    """Vectors that addresses are computed from, addresses included, and scalars taken out of them."""
    definitions = {one.result: one for one in instructions if one.result}
    left = [one.result for one in instructions if one.opcode == "getelementptr"]
    found: set[str] = set()
    seen: set[str] = set()
    while left:
        name = left.pop()
        one = definitions.get(name)
        if one is None or name in seen or one.opcode not in _ON_THE_WAY:
            continue
        seen.add(name)
        left += _texts(one)
        if one.kind.startswith("<") or one.opcode == "extractelement":
            found.add(name)
    return frozenset(found)


def _texts(instruction: Instruction) -> Iterator[str]:
    yield from (operand.text for operand in instruction.operands)
    yield from (pair.text for pair in instruction.incoming)
