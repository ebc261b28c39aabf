"""Transposes a block of vectors in registers by log2 rounds of two-operand shuffles.

Every round pairs the vectors whose numbers differ in one bit and exchanges between them the lanes that
differ in that bit. Three forms of exchange leave different orders, and each is one instruction somewhere:

- interleaving inside 128 bits: ZIP1/ZIP2 on Arm, UNPCKL/UNPCKH on x86, VMRGH/VMRGL and XXPERMDI on POWER;
- dealing whole 128-bit parts, even ones then odd ones: VPERM2F128, VSHUFF64X2;
- swapping blocks in place: TRN1/TRN2 on Arm, one or two blends and shuffles on x86.

A square takes the first below 128 bits and the second above. Where the block is not square, what must end
up adjacent decides. In which order the results come out is found by following numbered elements.

Scalable vectors longer than 128 bits interleave across their whole length (ZIP1/ZIP2 of SVE), and have no
instruction for parts of 128 bits: a square takes the perfect shuffle, which interleaves single lanes in every
round (H. S. Stone, Parallel processing with the perfect shuffle, IEEE Trans. Computers C-20, 1971).
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple, TypeAlias

from tilewright.llvm.build import Function
from tilewright.llvm.values import Type, Value

#: The part of a vector register inside which every instruction set interleaves.
PART_BITS = 128

Lanes: TypeAlias = tuple[int, ...]
#: The element in one lane while elements are traced: (number of the input vector, its lane).
Element: TypeAlias = tuple[int, int]


class Round(NamedTuple):
    """One round: vectors i and i + distance (where bit `distance` of i is 0) give `low` and `high`."""

    distance: int
    low: Lanes
    high: Lanes


class ShuffleNetwork(NamedTuple):
    """How p vectors of q lanes come from q vectors of p lanes.

    joined : for each vector the rounds start with, the inputs it is put together from.
    rounds : the exchanges.
    results : for each result, the vector after the rounds and the lane it starts at.
    """

    joined: tuple[Lanes, ...]
    rounds: tuple[Round, ...]
    results: tuple[tuple[int, int], ...]


def _interleaved(lanes: int, distance: int, part: int) -> tuple[list[int], list[int]]:
    """Groups of `distance` lanes of both vectors in turn, inside each part."""
    low: list[int] = []
    high: list[int] = []
    for start in range(0, lanes, part):
        groups = [range(first, first + distance) for first in range(start, start + part, distance)]
        mixed = [side + lane for group in groups for side in (0, lanes) for lane in group]
        low += mixed[:part]
        high += mixed[part:]
    return low, high


def _dealt(lanes: int, distance: int) -> tuple[list[int], list[int]]:
    """The even blocks of both vectors, and the odd ones."""
    blocks = [range(first, first + distance) for first in range(0, lanes, distance)]
    low, high = (
        [side + lane for side in (0, lanes) for block in blocks[odd::2] for lane in block] for odd in (0, 1)
    )
    return low, high


def _swapped(lanes: int, distance: int) -> tuple[list[int], list[int]]:
    """Block by block, from one vector and from the other."""
    blocks = [range(first, first + distance) for first in range(0, lanes, distance)]
    low, high = (
        [
            side + lane
            for even in range(0, len(blocks), 2)
            for side in (0, lanes)
            for lane in blocks[even + odd]
        ]
        for odd in (0, 1)
    )
    return low, high


def _exchange(
    lanes: int, distance: int, square: int, part: int, *, wide: bool
) -> tuple[list[int], list[int]]:
    """The form for a distance; `square` is the smaller side of the block, `wide`: the rows are fewer."""
    if not wide and distance < part:
        return _interleaved(lanes, distance, part)
    if lanes == square:
        return _dealt(lanes, part)
    return _swapped(lanes, distance)


def _follow(vectors: list[list[Element]], found: Round) -> list[list[Element]]:
    """The content of the vectors after a round."""
    following = list(vectors)
    for index, vector in enumerate(vectors):
        if not index & found.distance:
            both = vector + vectors[index + found.distance]
            following[index] = [both[lane] for lane in found.low]
            following[index + found.distance] = [both[lane] for lane in found.high]
    return following


def _held(joined: tuple[Lanes, ...], lanes: int) -> list[list[Element]]:
    """The elements of the vectors that the rounds start with."""
    return [[(vector, lane) for vector in group for lane in range(lanes)] for group in joined]


def _places(held: list[list[Element]], lanes: int, count: int) -> tuple[tuple[int, int], ...]:
    """For each result, the vector after the rounds and the lane it starts at."""
    results = []
    for lane in range(lanes):
        (index,) = (number for number, content in enumerate(held) if (0, lane) in content)
        start = held[index].index((0, lane))
        assert held[index][start : start + count] == [(vector, lane) for vector in range(count)]
        results.append((index, start))
    return tuple(results)


@cache
def network(lanes: int, count: int, part: int) -> ShuffleNetwork:
    """The shuffles that transpose `count` vectors of `lanes` lanes; both are powers of two.

    Parameters
    ----------
    part : lanes in 128 bits.

    Examples
    --------
    >>> network(4, 4, 4).rounds[0]
    Round(distance=1, low=(0, 4, 1, 5), high=(2, 6, 3, 7))
    >>> network(4, 4, 4).results
    ((0, 0), (2, 0), (1, 0), (3, 0))
    """
    square, length = min(lanes, count), max(lanes, count)
    part = max(1, min(part, length))
    # With fewer lanes than vectors, vectors i and i + `lanes` are concatenated first.
    joined = tuple(tuple(range(first, count, square)) for first in range(square))
    held = _held(joined, lanes)
    rounds: list[Round] = []
    distance = 1
    while distance < square:
        low, high = _exchange(length, distance, square, part, wide=lanes < count)
        rounds.append(Round(distance, tuple(low), tuple(high)))
        held = _follow(held, rounds[-1])
        distance *= 2
    return ShuffleNetwork(joined, tuple(rounds), _places(held, lanes, count))


@cache
def perfect_shuffle(lanes: int, whole: int) -> ShuffleNetwork:
    """The shuffles that transpose a square of `lanes` lanes by interleaving vectors of `whole` lanes.

    Adjacent vectors are joined until they are as long. A round puts one bit of a vector's number below the
    bits of the lane, whose uppermost takes its place.

    >>> perfect_shuffle(4, 4).rounds[0]
    Round(distance=2, low=(0, 4, 1, 5), high=(2, 6, 3, 7))
    >>> perfect_shuffle(4, 8).results
    ((0, 0), (0, 4), (1, 0), (1, 4))
    """
    together = whole // lanes
    joined = tuple(tuple(range(first, first + together)) for first in range(0, lanes, together))
    low, high = _interleaved(whole, 1, whole)
    bits, held = len(joined).bit_length() - 1, _held(joined, lanes)
    rounds: list[Round] = []
    for number in range(lanes.bit_length() - 1):
        rounds.append(Round(1 << (-1 - number) % bits, tuple(low), tuple(high)))
        held = _follow(held, rounds[-1])
    return ShuffleNetwork(joined, tuple(rounds), _places(held, lanes, lanes))


def _bits(kind: Type) -> int:
    """Bits of one element of a vector type, by the end of its name in intrinsics: v4f32."""
    found = re.search(r"(\d+)$", kind.suffix)
    assert found is not None
    return int(found[1])


def transpose(f: Function, vectors: list[Value], words: int = 1) -> list[Value]:
    """The rows of a block given by its columns: q vectors of p lanes become p vectors of q lanes.

    Parameters
    ----------
    vectors : the columns; p and q are powers of two.
    words : adjacent lanes that make one element (2 for elements of 128 bits in vectors of 64-bit lanes).
    """
    kind = vectors[0].type
    lanes, count = kind.lanes // words, len(vectors)

    def spread(chosen: Lanes) -> list[int]:
        return [lane * words + word for lane in chosen for word in range(words)]

    whole = f.module.vector_bits // _bits(kind)
    if f.module.vector_bits > PART_BITS and lanes == count and words == 1 and lanes <= whole < lanes * count:
        plan = perfect_shuffle(lanes, whole)
    else:
        plan = network(lanes, count, PART_BITS // (_bits(kind) * words))
    held = [f.concatenate([vectors[number] for number in group]) for group in plan.joined]
    for distance, low, high in plan.rounds:
        following = list(held)
        for index, vector in enumerate(held):
            if not index & distance:
                other = held[index + distance]
                following[index] = f.shuffle(vector, other, spread(low))
                following[index + distance] = f.shuffle(vector, other, spread(high))
        held = following
    if held[0].type.lanes == count * words:
        return [held[index] for index, _ in plan.results]
    cut = [spread(tuple(range(start, start + count))) for _, start in plan.results]
    pairs = zip(plan.results, cut, strict=True)
    return [f.shuffle(held[index], held[index], chosen) for (index, _), chosen in pairs]


def interleave(f: Function, runs: list[Value]) -> Value:
    """Lane by lane the elements of several vectors, a power of two of them."""
    while len(runs) > 1:
        half = len(runs) // 2
        lanes = runs[0].type.lanes
        order = [lane // 2 + lane % 2 * lanes for lane in range(2 * lanes)]
        runs = [f.shuffle(runs[i], runs[i + half], order) for i in range(half)]
    return runs[0]
