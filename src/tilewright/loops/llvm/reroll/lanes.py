"""Values of vectors and scalars along one path through copies of a loop body, lane by lane."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set

from tilewright.loops.llvm.evolution import Evolution
from tilewright.loops.llvm.facts import bits_of
from tilewright.loops.llvm.instruction import Instruction, InstructionOperand
from tilewright.loops.llvm.reroll.indices import IndexLanes, constants_of, lanes_of, scattered
from tilewright.loops.llvm.reroll.summands import NotOneLoop
from tilewright.loops.llvm.symbols import SsaValue
from tilewright.loops.llvm.text import split_commas, split_type
from tilewright.loops.llvm.trip_counts import TripCounts
from tilewright.loops.llvm.values import Values, number_of
from tilewright.loops.nests.nest import (
    Access,
    Conversion,
    InvariantScalar,
    Load,
    Minus,
    Number,
    Sum,
    Times,
    Unreadable,
    Value,
)
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.spec.dtype import find_llvm_type

Lanes = tuple[Value, ...]

_FUSED = re.compile(r"@llvm\.(?:fmuladd|fma)\.")
_REDUCED = re.compile(r"@llvm\.vector\.reduce\.(f?add)\.")


class LaneValues:
    """Values along one path. Names are looked up when they are asked for, and kept.

    Parameters
    ----------
    counts, values : of the nest.
    inside : names that blocks of the region define.
    loops : headers of its loops.
    found : evolutions of integers so far; those of phis are entered by the caller.
    indices : names of vectors that addresses are computed from.

    Attributes
    ----------
    lanes : values so far; those of phis are entered by the caller.
    """

    def __init__(
        self,
        counts: TripCounts,
        values: Values,
        inside: frozenset[str],
        loops: Set[str],
        found: dict[str, Evolution | None],
        indices: frozenset[str],
    ) -> None:
        self.counts, self.values, self.inside, self.loops, self.found = counts, values, inside, loops, found
        self.function = counts.function
        self.lanes: dict[str, Lanes] = {}
        self.indices = IndexLanes(counts, indices, found)
        self._readers: Mapping[str, Callable[[Instruction], Lanes]] = {
            **dict.fromkeys(("fadd", "fsub", "add", "sub"), self._sum),
            **dict.fromkeys(("fmul", "mul"), self._product),
            **dict.fromkeys(("fpext", "fptrunc", "sext", "trunc", "sitofp"), self._conversion),
            "fneg": self._negation,
            "load": self._load,
            "freeze": self._frozen,
            "call": self._call,
            "insertelement": self._inserted,
            "extractelement": self._extracted,
            "shufflevector": self._shuffled,
        }

    # Integers and addresses

    def integer(self, kind: str, text: str) -> Polynomial:
        """An integer or an address; one that is no polynomial is a symbol of its own."""
        loop = self.counts.home(text)
        evolution = self.counts.of(kind, text, loop or self.counts.root)
        if evolution is not None and evolution.single is not None:
            return evolution.single
        if text[:1] != "%":
            raise NotOneLoop(f"computes with {text}")
        return self.opaque(kind, text)

    def opaque(self, kind: str, text: str) -> Polynomial:
        """An integer as a symbol of its own: it is the same wherever the path is."""
        bits, home = bits_of(kind), self.counts.home(text)
        if home is not None and home.header in self.loops:
            raise NotOneLoop("computes addresses that are not affine in its indices")
        if bits is None:
            raise NotOneLoop(f"computes addresses with {kind}")
        value = Polynomial.of(SsaValue.of(text, kind))
        self.found[text] = Evolution((value,), bits)
        return value

    def element(self, instruction: Instruction, kind: str, pointer: str, lane: int = 0) -> Access:
        """The element that one lane of a load or store accesses."""
        dtype = find_llvm_type(kind)
        if dtype is None:
            raise NotOneLoop(f"touches memory as {kind}")
        loop = self.counts.home(pointer)
        place = self.counts.address(pointer, loop or self.counts.root)
        if place is None:
            raise NotOneLoop("touches memory at an address that is not affine in its indices")
        base, offset = place
        return Access(
            self.values.memory(base), offset + lane * dtype.size, dtype, self.values.where(instruction)
        )

    def elements(self, instruction: Instruction, kind: str, pointers: InstructionOperand) -> list[Access]:
        """The element at each address of a vector."""
        home = self.counts.home(instruction.result or pointers.text)
        return [self.element(instruction, kind, pointer) for pointer in self.indices.of(*pointers, home)]

    # Elements

    def of(self, kind: str, text: str) -> Lanes:
        """The lanes of an operand."""
        count, element = lanes_of(kind)
        if text[:1] != "%":
            return self._constant(count, element, text)
        known = self.lanes.get(text)
        if known is not None:
            return known
        instruction = self.function.definitions.get(text)
        if count == 1 and text not in self.inside:
            return (InvariantScalar(SsaValue.of(text, kind), find_llvm_type(kind)),)
        reader = self._readers.get(instruction.opcode) if instruction is not None else None
        if instruction is None or reader is None:
            word = instruction.opcode if instruction is not None else text
            found: Lanes = (
                Unreadable(f"computes {word} in copies of a loop", self.values.where(instruction)),
            ) * count
        else:
            found = reader(instruction)
        if len(found) != count:
            raise NotOneLoop("changes the length of vectors")
        self.lanes[text] = found
        return found

    def _constant(self, count: int, element: str, text: str) -> Lanes:
        if text in ("poison", "undef"):
            return (Unreadable("uses a value that has none", self.values.where(None)),) * count
        found: list[Value] = []
        for value in constants_of(count, text):
            number = number_of(element, value)
            if number is not None:
                found.append(Number(number))
            else:
                found.append(Unreadable(f"computes with {value}", self.values.where(None)))
        return tuple(found)

    def _operands(self, instruction: Instruction, count: int = 2) -> list[Lanes]:
        return [self.of(*operand) for operand in instruction.operands[:count]]

    def _free(self, instruction: Instruction) -> bool:
        _, element = lanes_of(instruction.kind)
        return self.values.may_reassociate(element, instruction)

    def _sum(self, instruction: Instruction) -> Lanes:
        left, right = self._operands(instruction)
        free = self._free(instruction)
        if instruction.opcode in ("sub", "fsub"):
            right = tuple(map(Minus, right))
        return tuple(Sum(one, other, free) for one, other in zip(left, right, strict=True))

    def _product(self, instruction: Instruction) -> Lanes:
        left, right = self._operands(instruction)
        contracts = self.values.may_contract(instruction)
        return tuple(Times(one, other, contracts) for one, other in zip(left, right, strict=True))

    def _negation(self, instruction: Instruction) -> Lanes:
        return tuple(map(Minus, self.of(*instruction.operands[0])))

    def _conversion(self, instruction: Instruction) -> Lanes:
        _, element = lanes_of(instruction.kind)
        dtype = find_llvm_type(element)
        if dtype is None:
            raise NotOneLoop(f"computes in {element}")
        return tuple(Conversion(one, dtype) for one in self.of(*instruction.operands[0]))

    def _frozen(self, instruction: Instruction) -> Lanes:
        return self.of(*instruction.operands[0])

    def _load(self, instruction: Instruction) -> Lanes:
        if instruction.result not in self.inside:
            raise NotOneLoop("reads vectors in front of a loop")
        count, element = lanes_of(instruction.kind)
        pointer = instruction.operands[0].text
        return tuple(Load(self.element(instruction, element, pointer, lane)) for lane in range(count))

    def _call(self, instruction: Instruction) -> Lanes:
        if _FUSED.match(instruction.callee):
            left, right, addend = self._operands(instruction, 3)
            free = self._free(instruction)
            return tuple(
                Sum(Times(one, other, contracts=True), more, free)
                for one, other, more in zip(left, right, addend, strict=True)
            )
        gathered = scattered(instruction)
        if gathered is not None:
            if instruction.result not in self.inside:
                raise NotOneLoop("reads vectors in front of a loop")
            _, element = lanes_of(instruction.kind)
            return tuple(map(Load, self.elements(instruction, element, gathered.pointers)))
        reduced = _REDUCED.match(instruction.callee)
        if reduced is None:
            raise NotOneLoop(f"calls {instruction.callee}")
        free = self._free(instruction)
        *start, vector = self._operands(instruction, 2)
        total: Value = start[0][0] if start else Number(0)
        for lane in vector:
            total = Sum(total, lane, free)
        return (total,)

    def _place(self, operand: InstructionOperand, count: int) -> int:
        if not operand.text.isdigit() or int(operand.text) >= count:
            raise NotOneLoop("takes elements of vectors at places that are no constants")
        return int(operand.text)

    def _inserted(self, instruction: Instruction) -> Lanes:
        vector, (element,) = self._operands(instruction)
        place = self._place(instruction.operands[2], len(vector))
        return (*vector[:place], element, *vector[place + 1 :])

    def _extracted(self, instruction: Instruction) -> Lanes:
        vector = self.of(*instruction.operands[0])
        return (vector[self._place(instruction.operands[1], len(vector))],)

    def _shuffled(self, instruction: Instruction) -> Lanes:
        left, right = self._operands(instruction)
        kind, mask = split_type(split_commas(instruction.text)[-1])
        count, _ = lanes_of(kind)
        both, found = (*left, *right), []
        for lane in self._constant(count, "i32", mask):
            match lane:
                case Number(int() as place) if place < len(both):
                    found.append(both[place])
                case _:
                    found.append(Unreadable("uses a value that has none", self.values.where(instruction)))
        return tuple(found)
