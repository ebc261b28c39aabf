"""Value trees: what a nest in LLVM IR computes from elements of memory and stores."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Set
from dataclasses import replace

from tilewright.loops.llvm.control_flow import NaturalLoop
from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.symbols import SsaValue
from tilewright.loops.llvm.tidy import same
from tilewright.loops.llvm.trip_counts import TripCounts
from tilewright.loops.nests.nest import (
    Access,
    Cell,
    Conversion,
    InvariantScalar,
    Load,
    MemoryObject,
    Minus,
    Number,
    Quotient,
    Read,
    Refusal,
    Select,
    SquareRoot,
    Sum,
    Times,
    Unreadable,
    Value,
    Where,
)
from tilewright.loops.nests.polynomial import Symbol
from tilewright.spec.dtype import I8, U8, find_llvm_type

_UNSIGNED = {I8: U8}
_DECIMAL = re.compile(r"-?\d+(?:\.\d*(?:e[+-]?\d+)?)?$")
_HEXADECIMAL = re.compile(r"(f?)0x([HR]?)([0-9A-Fa-f]+)$")
_FUSED = re.compile(r"@llvm\.(?:fmuladd|fma)\.\w+$")
_EXTREME = re.compile(r"@llvm\.(max|min)num\.f(?:32|64)$")
_ROOT = re.compile(r"@llvm\.sqrt\.f(?:32|64)$")
#: Instructions of one tree, at most: far more than a product needs, and still fast.
LARGEST_TREE = 64


class NotANest(Exception):
    """A loop cannot be read as a nest; the refusal says why. It is never raised outside of this package."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


def number_of(kind: str, text: str) -> float | int | None:
    """The value of a constant as LLVM prints it.

    Source: LLVM Language Reference, "Simple Constants".

    >>> number_of("float", "5.000000e-01"), number_of("half", "0xH3C00")
    (0.5, 1.0)
    """
    if text == "zeroinitializer":
        return 0
    if _DECIMAL.match(text):
        dtype = find_llvm_type(kind)
        return int(text) if dtype is None or dtype.is_integer else float(text)
    found = _HEXADECIMAL.match(text)
    if found is None:
        return None
    bits = int(found[3], 16)
    match found[2], kind:
        case "H", _:
            return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])
        case "R", _:
            return float(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])
        case "", "float" | "double":
            return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
        case _:
            return None


class Values:
    """Builds value trees from instructions.

    Parameters
    ----------
    counts : the evolutions of the nest.
    reassociates : sums may be reordered even if no flag says so.
    """

    def __init__(self, counts: TripCounts, *, reassociates: bool) -> None:
        self.counts = counts
        self.function = counts.function
        self._reassociates = reassociates
        #: Variables by the phi at the loop header that carries them, and by their final value.
        self.cells: dict[str, Cell] = {}
        self.finals: dict[str, Cell] = {}
        #: Each load in a tree, and the loop that uses it.
        self.used: list[tuple[Instruction, NaturalLoop]] = []
        #: Stores so far, with value and loop, and the number of stores before each load.
        self._stores: list[tuple[Access, str, NaturalLoop]] = []
        self._loaded: dict[str, int] = {}
        #: Remaining size of the tree, and number of loads whose elements were overwritten.
        self._left = 0
        self._stale = 0
        self._trees: dict[str, Callable[[Instruction, NaturalLoop], Value]] = {
            **dict.fromkeys(("fadd", "fsub", "add", "sub"), self._sum),
            **dict.fromkeys(("fmul", "mul"), self._product),
            **dict.fromkeys(("fpext", "fptrunc", "sext", "zext", "trunc", "sitofp"), self._conversion),
            "fdiv": self._quotient,
            "select": self._choice,
            "shl": self._shift,
            "fneg": self._negation,
            "load": self._load,
            "phi": self._phi,
            "freeze": self._frozen,
            "call": self._call,
        }

    def where(self, instruction: Instruction | None) -> Where:
        """Source location of an instruction."""
        return self.counts.module.where(self.function, instruction)

    def access(self, instruction: Instruction, kind: str, pointer: str, at: NaturalLoop) -> Access:
        """The element that a load or store accesses; refused if its address is not a polynomial."""
        place, dtype = self.counts.address(pointer, at), find_llvm_type(kind)
        if dtype is None:
            raise NotANest(Refusal(self.where(instruction), f"touches memory as {kind}"))
        if place is None:
            verb = "writes" if instruction.opcode == "store" else "reads"
            raise NotANest(
                Refusal(
                    self.where(instruction), f"{verb} memory at an address that is not affine in its indices"
                )
            )
        base, offset = place
        return Access(self.memory(base), offset, dtype, self.where(instruction))

    @staticmethod
    def memory(base: Symbol) -> MemoryObject:
        """The memory object of a base address."""
        return MemoryObject(base, getattr(base, "text", "") or base.name)

    def note_load(self, instruction: Instruction) -> None:
        """Record a load."""
        self._loaded[instruction.result] = len(self._stores)

    def note_store(self, target: Access, text: str, at: NaturalLoop) -> None:
        """Record a store of a value."""
        self._stores.append((target, text, at))

    def of(self, kind: str, text: str, at: NaturalLoop) -> Value:
        """The value tree of an operand in a loop."""
        self._left, self._stale = LARGEST_TREE, 0
        return self._of(kind, text, at)

    def ways(self, phi: Instruction, labels: Set[str], at: NaturalLoop) -> tuple[Value, Value] | None:
        """The value of a phi for some predecessors and for the others; None if several values remain."""
        one = {pair.text for pair in phi.incoming if pair.label in labels}
        other = {pair.text for pair in phi.incoming if pair.label not in labels}
        if len(one) != 1 or len(other) != 1:
            return None
        return self.of(phi.kind, one.pop(), at), self.of(phi.kind, other.pop(), at)

    def _of(self, kind: str, text: str, at: NaturalLoop) -> Value:
        self._left -= 1
        number = number_of(kind, text)
        if number is not None:
            return Number(number)
        instruction = self.function.definitions.get(text)
        home = self.counts.home(text)
        if self._left < 0:
            return Unreadable("computes an element from too many others", self.where(instruction))
        if home is None:
            if text[:1] != "%":
                return Unreadable(f"computes with {text}", self.where(None))
            return InvariantScalar(SsaValue.of(text, kind), find_llvm_type(kind))
        assert instruction is not None
        if text in self.cells and at.header in home.blocks:
            return Read(self.cells[text])
        if at.header not in home.blocks:
            return self._behind(instruction, at)
        tree = self._trees.get(instruction.opcode)
        if tree is None:
            return Unreadable(
                _WORDS.get(instruction.opcode, f"computes {instruction.opcode}"), self.where(instruction)
            )
        stale = self._stale
        value = tree(instruction, at)
        if self._stale > stale:
            held = self._held(text, at)
            if held is not None:
                self._stale = stale
                return Load(held)
        return value

    def _held(self, text: str, at: NaturalLoop) -> Access | None:
        """The element that a loop has stored a value to and not changed since."""
        for place, (target, stored, loop) in enumerate(self._stores):
            if stored == text and loop is at and not self._is_written(target, place + 1):
                return target
        return None

    def _is_written(self, access: Access, since: int) -> bool:
        """Whether an element was stored after the given number of stores."""
        return any(same(access, target) for target, _, _ in self._stores[since:])

    def _behind(self, instruction: Instruction, at: NaturalLoop) -> Value:
        """A value of a loop that has finished."""
        if instruction.result in self.finals:
            return Read(self.finals[instruction.result])
        if instruction.opcode == "phi" and len(instruction.incoming) == 1:
            return self._of(instruction.kind, instruction.incoming[0].text, at)
        return Unreadable("uses a value of the last iteration of an inner loop", self.where(instruction))

    # One function for each form of instruction

    def _load(self, instruction: Instruction, at: NaturalLoop) -> Value:
        home = self.counts.home(instruction.result)
        assert home is not None
        access = self.access(instruction, instruction.kind, instruction.operands[0].text, home)
        self.used.append((instruction, at))
        if self._is_written(access, self._loaded.get(instruction.result, 0)):
            self._stale += 1
            return Unreadable("uses an element that it has overwritten since", self.where(instruction))
        return Load(access)

    def _phi(self, instruction: Instruction, at: NaturalLoop) -> Value:
        label = self.function.homes[instruction.result]
        left = self.counts.incoming_values(instruction)
        if label in self.counts.indices or len(left) != 1:
            reason = "computes with its indices" if label in self.counts.indices else "chooses between values"
            return Unreadable(reason, self.where(instruction))
        return self._of(instruction.kind, left.pop(), at)

    def _sum(self, instruction: Instruction, at: NaturalLoop) -> Value:
        left, right = (self._of(*operand, at) for operand in instruction.operands)
        if instruction.opcode in ("sub", "fsub"):
            right = Minus(right)
        return Sum(left, right, self._free(instruction))

    def _product(self, instruction: Instruction, at: NaturalLoop) -> Value:
        left, right = (self._of(*operand, at) for operand in instruction.operands)
        return Times(left, right, self.may_contract(instruction))

    def _shift(self, instruction: Instruction, at: NaturalLoop) -> Value:
        amount = number_of(*instruction.operands[1])
        if not isinstance(amount, int):
            return Unreadable("shifts by a variable", self.where(instruction))
        return Times(self._of(*instruction.operands[0], at), Number(1 << amount), contracts=True)

    def _negation(self, instruction: Instruction, at: NaturalLoop) -> Value:
        return Minus(self._of(*instruction.operands[0], at))

    def _conversion(self, instruction: Instruction, at: NaturalLoop) -> Value:
        value, dtype = self._of(*instruction.operands[0], at), find_llvm_type(instruction.kind)
        if dtype is None:
            return Unreadable(f"computes in {instruction.kind}", self.where(instruction))
        if instruction.opcode == "zext":
            if not isinstance(value, Load) or value.access.dtype not in _UNSIGNED:
                return Unreadable(f"widens unsigned {instruction.operands[0].kind}", self.where(instruction))
            value = Load(replace(value.access, dtype=_UNSIGNED[value.access.dtype]))
        return Conversion(value, dtype)

    def _frozen(self, instruction: Instruction, at: NaturalLoop) -> Value:
        return self._of(*instruction.operands[0], at)

    def _quotient(self, instruction: Instruction, at: NaturalLoop) -> Value:
        left, right = (self._of(*operand, at) for operand in instruction.operands)
        return Quotient(left, right, self.where(instruction))

    def _choice(self, instruction: Instruction, at: NaturalLoop) -> Value:
        """A select between two floats that a comparison of floats decides."""
        test = self.function.definitions.get(instruction.operands[0].text)
        if test is None or test.opcode != "fcmp" or instruction.operands[1].kind not in ("float", "double"):
            return Unreadable("chooses between values", self.where(instruction))
        operands = (*test.operands, *instruction.operands[1:])
        left, right, then, otherwise = (self._of(*operand, at) for operand in operands)
        free = _is_free(test) or _is_free(instruction)
        return Select(test.predicate, left, right, then, otherwise, self.where(instruction), free)

    def _extreme(self, instruction: Instruction, relation: str, at: NaturalLoop) -> Value:
        """The larger or the smaller one of two floats; the other one where one is NaN.

        A comparison with NaN fails, and so chooses a number that is not NaN on the right.
        """
        left, right = (self._of(*operand, at) for operand in instruction.operands)
        if isinstance(left, Number):
            left, right = right, left
        number = isinstance(right, Number) and right.value == right.value
        if not (number or _is_free(instruction)):
            return Unreadable(f"calls {instruction.callee}", self.where(instruction))
        return Select(relation, left, right, left, right, self.where(instruction), _is_free(instruction))

    def _call(self, instruction: Instruction, at: NaturalLoop) -> Value:
        if _ROOT.match(instruction.callee):
            return SquareRoot(self._of(*instruction.operands[0], at), self.where(instruction))
        extreme = _EXTREME.match(instruction.callee)
        if extreme is not None:
            return self._extreme(instruction, "ogt" if extreme[1] == "max" else "olt", at)
        if not _FUSED.match(instruction.callee):
            return Unreadable(f"calls {instruction.callee}", self.where(instruction))
        left, right, addend = (self._of(*operand, at) for operand in instruction.operands)
        return Sum(Times(left, right, contracts=True), addend, self._free(instruction))

    def _free(self, instruction: Instruction) -> bool:
        return self.may_reassociate(instruction.kind, instruction)

    def may_reassociate(self, kind: str, instruction: Instruction) -> bool:
        """Whether the sums of an instruction, of numbers of a type, may be reordered."""
        return kind.startswith("i") or self._reassociates or "reassoc" in instruction.flags

    def may_contract(self, instruction: Instruction) -> bool:
        """Whether a product may stay unrounded in a sum."""
        return instruction.opcode == "mul" or self._reassociates or "contract" in instruction.flags


def _is_free(instruction: Instruction) -> bool:
    """Whether results for NaN do not count, nor do the signs of zeros."""
    return {"nnan", "nsz"} <= instruction.flags


_WORDS = {
    **dict.fromkeys(("sdiv", "udiv"), "divides"),
    **dict.fromkeys(("frem", "srem", "urem"), "computes remainders"),
    "uitofp": "converts unsigned integers to floating point",
}
