"""Evolution rules: one function for each instruction that computes integers or addresses."""

from __future__ import annotations

import re

from tilewright.loops.llvm.control_flow import NaturalLoop
from tilewright.loops.llvm.evolution import Evolution, Evolutions, Rule, Unknown
from tilewright.loops.llvm.facts import bits_of
from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.symbols import IntegerOperation, Reloaded, Rows, names_rows
from tilewright.loops.nests.polynomial import Polynomial

_EXTREME = re.compile(r"@llvm\.([su])(min|max)\.i\d+$")
#: Overflow-checking arithmetic: signedness and operation.
OVERFLOW = re.compile(r"@llvm\.([su])(add|sub|mul)\.with\.overflow\.i\d+$")
_FIRST_FIELD = re.compile(r", 0$")


def _operands(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> list[Evolution]:
    """Evolutions of the operands; empty if one of them is not a polynomial."""
    values = [evolutions.of(kind, text, at) for kind, text in instruction.operands]
    found = [value for value in values if value is not None]
    return found if len(found) == len(values) else []


def _flagged(
    instruction: Instruction, bounds: tuple[Polynomial, ...], left: Evolution, right: Evolution
) -> Evolution | None:
    """A result, exact if flags exclude wrapping."""
    joined = "disjoint" in instruction.flags
    signed = left.signed and right.signed and (joined or "nsw" in instruction.flags)
    unsigned = left.unsigned and right.unsigned and (joined or "nuw" in instruction.flags)
    if len(bounds) > 1 and not (signed or unsigned):
        return None
    return Evolution(bounds, left.bits, signed, unsigned)


def _sum(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """`add`, `sub`, and `or` of operands without common bits."""
    match _operands(evolutions, instruction, at):
        case [left, right] if instruction.opcode != "or" or "disjoint" in instruction.flags:
            pass
        case _:
            return None
    if instruction.opcode == "sub":
        if right.single is None:
            return None
        right = Evolution((-right.single,), right.bits, right.signed, right.unsigned)
    if left.single is None:
        left, right = right, left
    if left.single is None:
        return None
    offset = left.single
    return _flagged(instruction, tuple(offset + bound for bound in right.bounds), left, right)


def _product(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """`mul`, and `shl` by a constant."""
    match _operands(evolutions, instruction, at):
        case [left, right]:
            pass
        case _:
            return None
    if instruction.opcode == "shl":
        amount = right.single.constant if right.single is not None else None
        if amount is None or not 0 <= amount < right.bits:
            return None
        right = Evolution((Polynomial.of(1 << amount),), right.bits, signed=True, unsigned=True)
    if left.single is None:
        left, right = right, left
    if left.single is None:
        return None
    factor = left.single
    if right.single is None and (factor.constant is None or factor.constant < 0):
        return None
    return _flagged(instruction, tuple(factor * bound for bound in right.bounds), left, right)


def _not(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """`xor` with -1."""
    match _operands(evolutions, instruction, at):
        case [Evolution(single=Polynomial() as value, bits=bits, signed=signed), Evolution(single=mask)] if (
            mask == Polynomial.of(-1)
        ):
            return Evolution((-value - 1,), bits, signed)
        case _:
            return None


#: Width of common size types: unsigned values of it may be assumed positive, with a run-time check if needed.
_SIZE_BITS = 32


def _widened(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """`sext` and `zext`, exact by flags or by a condition; before the nest only sizes get a condition."""
    bits = bits_of(instruction.kind)
    match _operands(evolutions, instruction, at):
        case [value] if bits is not None and value.bits > 1:
            pass
        case _:
            return None
    signed = instruction.opcode == "sext"
    known = value.signed and "nneg" in instruction.flags
    if not known and at is None and not (value.signed if signed else value.unsigned):
        low = -(1 << value.bits - 1) if signed else 0
        known = all(
            evolutions.facts.proves(bound - low)
            and evolutions.facts.proves(low + (1 << value.bits) - 1 - bound)
            for bound in value.bounds
        )
        if not known and (signed or value.bits < _SIZE_BITS or not evolutions.exact(value, signed=False)):
            return None
        known = True
    if not known and not evolutions.exact(value, signed=signed):
        return None
    positive = not signed or value.unsigned or all(evolutions.facts.proves(bound) for bound in value.bounds)
    return Evolution(value.bounds, bits, signed=True, unsigned=positive)


def _narrowed(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """`trunc`: the same polynomial, modulo a smaller power of two."""
    bits = bits_of(instruction.kind)
    match _operands(evolutions, instruction, at):
        case [value] if bits is not None and bits > 1:
            pass
        case _:
            return None
    facts = evolutions.facts

    def within(low: int) -> bool:
        return all(
            facts.proves(bound - low) and facts.proves(low + (1 << bits) - 1 - bound)
            for bound in value.bounds
        )

    exact = value.signed or value.unsigned
    signed = (value.signed and "nsw" in instruction.flags) or (exact and within(-(1 << bits - 1)))
    unsigned = (value.unsigned and "nuw" in instruction.flags) or (exact and within(0))
    if len(value.bounds) > 1 and not (signed or unsigned):
        return None
    return Evolution(value.bounds, bits, signed, unsigned)


def _sign_of_low_bits(
    evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None
) -> Evolution | None:
    """`ashr` of a `shl` by at least as much: sign-extended low bits, times a power of two."""
    shifted = evolutions.function.definitions.get(instruction.operands[0].text)
    amount = instruction.operands[1].text
    if shifted is None or shifted.opcode != "shl" or not amount.isdigit():
        return _quotient(evolutions, instruction, at)
    up = shifted.operands[1].text
    value = evolutions.of(*shifted.operands[0], evolutions.home(shifted.result))
    if value is None or value.single is None or at is None or not up.isdigit() or int(up) < int(amount):
        return None
    low = -(1 << value.bits - int(up) - 1)
    if not evolutions.require(value.single, low, -low):
        return None
    found = value.single * (1 << int(up) - int(amount))
    return Evolution((found,), value.bits, signed=True, unsigned=evolutions.facts.proves(found))


def _quotient(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """Divisions by a positive constant: of its multiples, or of loop-invariant values, rounded down."""
    match _operands(evolutions, instruction, at):
        case [
            Evolution(single=Polynomial() as value) as dividend,
            Evolution(single=Polynomial(constant=int() as divisor)),
        ]:
            pass
        case _:
            return None
    if instruction.opcode in ("lshr", "ashr"):
        divisor = 1 << divisor
    bits = bits_of(instruction.kind)
    if at is None or divisor <= 0 or bits is None:
        return None
    signed = instruction.opcode in ("sdiv", "ashr")
    if not evolutions.exact(dividend, signed=signed):
        return None
    if all(factor % divisor == 0 for _, factor in value.terms):
        terms = tuple((monomial, factor // divisor) for monomial, factor in value.terms)
        return Evolution((Polynomial(terms),), bits, signed=True, unsigned=not signed)
    if value.indices or not evolutions.require(value, 0):
        return None
    found = evolutions.computed(IntegerOperation.QUOTIENT, value, Polynomial.of(divisor))
    return Evolution((found,), bits, signed=True, unsigned=True) if found is not None else None


def _masked(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """`and` with a mask that keeps all bits the operand may have."""
    match _operands(evolutions, instruction, at):
        case [
            Evolution(single=Polynomial() as value, bits=bits),
            Evolution(single=Polynomial(constant=int() as mask)),
        ] if at is not None and mask > 0 and not mask & (mask + 1):
            kept = evolutions.require(value, 0, mask + 1)
            return Evolution((value,), bits, signed=True, unsigned=True) if kept else None
        case _:
            return None


def _same(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """`freeze`."""
    values = _operands(evolutions, instruction, at)
    return values[0] if values else None


def _number_of_address(
    evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None
) -> Evolution | None:
    """`ptrtoint`: sizes of containers are differences of addresses."""
    values = _operands(evolutions, instruction, at)
    if any(value.single is None or names_rows(value.single) for value in values):
        return None
    return values[0] if values and bits_of(instruction.kind) == values[0].bits else None


def _getelementptr(
    evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None
) -> Evolution | None:
    """A pointer plus subscripts times element sizes."""
    (kind, text), *subscripts = instruction.operands
    start = evolutions.of(kind, text, at)
    if start is None or start.single is None or kind != "ptr":
        return None
    offset, element, layout = start.single, instruction.element, evolutions.layout
    for place, (type_, subscript) in enumerate(subscripts):
        inner = layout.element(element) if place else element
        if inner is None:
            field = layout.field(element, int(subscript)) if subscript.isdigit() else None
            if field is None:
                return None
            offset, element = offset + field[0], field[1]
            continue
        size, value = layout.size(inner), evolutions.of(type_, subscript, at)
        if size is None or value is None or value.single is None:
            return None
        if value.bits < start.bits and not (
            value.signed or (at is not None and evolutions.exact(value, signed=True))
        ):
            return None
        offset, element = offset + value.single * size, inner
    return Evolution((offset,), start.bits)


def _load(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """A load from a loop-invariant address, which is moved in front of the nest; pointers to rows."""
    if at is None or instruction.flags & {"volatile", "atomic"}:
        return None
    place = evolutions.address(instruction.operands[0].text, at)
    bits = bits_of(instruction.kind)
    if place is None or bits is None or bits not in (8, 16, 32, 64):
        return None
    if any(isinstance(symbol, Unknown) for symbol in place[1].symbols):
        return None
    if place[1].indices or isinstance(place[0], Rows):
        return evolutions.row(*place, instruction)
    symbol = Reloaded.of(*place, instruction.kind)
    evolutions.reloads.setdefault(symbol, []).append(instruction)
    return Evolution((Polynomial.of(symbol),), bits, signed=instruction.kind != "ptr")


def _phi(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """A phi at a loop header: start and step. Elsewhere: the only incoming value that remains."""
    label = evolutions.function.homes[instruction.result]
    if at is None:
        return None
    if label != at.header:
        left = evolutions.incoming_values(instruction)
        if len(left) > 1:
            evolutions.settle(label, at)
            left = evolutions.incoming_values(instruction)
        return evolutions.of(instruction.kind, left.pop(), at) if len(left) == 1 else None
    entering = [pair.text for pair in instruction.incoming if pair.label not in at.blocks]
    latching = [pair.text for pair in instruction.incoming if pair.label in at.blocks]
    if len(entering) != 1 or len(latching) != 1:
        return None
    start = evolutions.of(instruction.kind, entering[0], evolutions.parents[at.header])
    if start is None or start.single is None:
        return None
    unknown = Unknown(f"phi {instruction.result}")
    evolutions.pending[instruction.result] = Evolution(
        (Polynomial.of(unknown),), start.bits, signed=True, unsigned=True
    )
    try:
        next_one = evolutions.of(instruction.kind, latching[0], at)
    finally:
        del evolutions.pending[instruction.result]
    if next_one is None or next_one.single is None:
        return None
    index = evolutions.indices[at.header]
    step = next_one.single - unknown
    if unknown not in next_one.single.symbols:
        return _behind(evolutions, start, next_one.single, at)
    if unknown in step.symbols or index in step.symbols:
        return None
    signed, unsigned = start.signed and next_one.signed, start.unsigned and next_one.unsigned
    return Evolution((start.single + step * index,), start.bits, signed, unsigned)


def _behind(
    evolutions: Evolutions, start: Evolution, latest: Polynomial, at: NaturalLoop
) -> Evolution | None:
    """A phi that holds the value of another one in the previous iteration."""
    index = evolutions.indices[at.header]
    value = latest.substitute({index: Polynomial.of(index) - 1})
    assert start.single is not None
    if value.substitute({index: 0}) == start.single:
        return Evolution((value,), start.bits)
    extent = evolutions.extents.get(at.header)
    if index not in latest.symbols and extent is not None and extent.constant == 2:
        return Evolution((start.single + (latest - start.single) * index,), start.bits)
    return None


def _select(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """`select` as minimum or maximum of the numbers compared."""
    condition, first, second = instruction.operands
    comparison = evolutions.function.definitions.get(condition.text)
    taken, other = evolutions.of(*first, at), evolutions.of(*second, at)
    if comparison is None or comparison.opcode != "icmp" or taken is None or other is None:
        return None
    home = evolutions.home(comparison.result)
    match _operands(evolutions, comparison, home), comparison.predicate[:1], comparison.predicate[1:2]:
        case [left, right], "s" | "u" as kind, "l" | "g" as less:
            pass
        case _:
            return None
    straight = left.bounds == taken.bounds and right.bounds == other.bounds
    crossed = left.bounds == other.bounds and right.bounds == taken.bounds
    if not straight and not crossed:
        return (
            other if at is not None and _is_positive(evolutions, comparison.predicate, left, right) else None
        )
    smallest = (less == "l") == straight
    return _extreme(evolutions, left, right, at, signed=kind == "s", smallest=smallest)


def _is_positive(evolutions: Evolutions, predicate: str, left: Evolution, right: Evolution) -> bool:
    """Whether ``left < 0`` tests a non-negative number, with a run-time check if that is not proved.

    Languages with negative subscripts, such as Numba's Python, emit this test.
    """
    if predicate != "slt" or right.single != Polynomial() or left.single is None:
        return False
    exact = evolutions.exact(left, signed=True)
    return exact and (evolutions.facts.proves(left.single) or evolutions.require(left.single, 0))


def _extreme(
    evolutions: Evolutions,
    left: Evolution,
    right: Evolution,
    at: NaturalLoop | None,
    *,
    signed: bool,
    smallest: bool,
) -> Evolution | None:
    """The minimum or maximum of two numbers."""
    facts = evolutions.facts
    for value in (left, right):
        known = value.signed if signed else value.unsigned
        if at is None and not known and not (value.signed and all(map(facts.proves, value.bounds))):
            return None
        if at is not None and not evolutions.exact(value, signed=signed):
            return None
    if smallest:
        bounds = tuple(dict.fromkeys((*left.bounds, *right.bounds)))
        needed = tuple(
            bound
            for bound in bounds
            if not any(
                other != bound and facts.proves(bound - other) and not facts.proves(other - bound)
                for other in bounds
            )
        )
        return Evolution(needed, left.bits, signed, not signed)
    if left.single is None or right.single is None:
        return None
    if facts.proves(left.single - right.single):
        return left
    if facts.proves(right.single - left.single):
        return right
    if left.single.indices or right.single.indices:
        return None
    found = evolutions.computed(IntegerOperation.MAXIMUM, left.single, right.single)
    return None if found is None else Evolution((found,), left.bits, signed, not signed)


def _call(evolutions: Evolutions, instruction: Instruction, at: NaturalLoop | None) -> Evolution | None:
    """`llvm.smin`, `llvm.smax`, `llvm.umin`, `llvm.umax`."""
    found = _EXTREME.match(instruction.callee)
    match _operands(evolutions, instruction, at) if found else []:
        case [left, right] if found:
            return _extreme(evolutions, left, right, at, signed=found[1] == "s", smallest=found[2] == "min")
        case _:
            return None


def _checked(evolutions: Evolutions, instruction: Instruction, _: NaturalLoop | None) -> Evolution | None:
    """The result of `llvm.sadd.with.overflow` and its variants."""
    call = evolutions.function.definitions.get(instruction.operands[0].text)
    found = OVERFLOW.match(call.callee) if call is not None else None
    if call is None or found is None or not _FIRST_FIELD.search(instruction.text):
        return None
    arithmetic = Instruction(call.result, found[2], call.text, call.line, instruction.kind, call.operands)
    return RULES[found[2]](evolutions, arithmetic, evolutions.home(call.result))


RULES: dict[str, Rule] = {
    **dict.fromkeys(("add", "sub", "or"), _sum),
    **dict.fromkeys(("mul", "shl"), _product),
    **dict.fromkeys(("sext", "zext"), _widened),
    **dict.fromkeys(("udiv", "sdiv", "lshr"), _quotient),
    "trunc": _narrowed,
    "xor": _not,
    "ashr": _sign_of_low_bits,
    "and": _masked,
    "freeze": _same,
    "ptrtoint": _number_of_address,
    "getelementptr": _getelementptr,
    "load": _load,
    "phi": _phi,
    "select": _select,
    "call": _call,
    "extractvalue": _checked,
}
