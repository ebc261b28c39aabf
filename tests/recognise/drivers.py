"""Calls of functions of a compiled source: operands filled, every byte of them compared."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import permutations
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
from support import Array, GuardedMemory

from recognise.calls import Call, Number, Pointer, evaluated

DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f32x": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
}
NUMBERS: dict[str, Any] = {
    "int": ctypes.c_int32,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}
#: What m, n and k are: large and uneven, rows of vectors, small, none, less than none.
SIZES = (
    *((33, 47, 29), (40, 64, 48)),
    *((1, 5, 7), (5, 1, 1)),
    *((0, 4, 3), (3, 4, 0), (3, 0, 4), (-2, 5, 5), (5, 5, -1)),
)
#: Fillings: sums of up to 100 products of them are exact, in eight bits of fraction too where the type has no
#: more, and no signed integer overflows. Products of "f32x" need float64.
_REACH = {"f16": 2, "bf16": 1, "f32x": 1 << 20}


def drawn(call: Call, chosen_sizes: Iterable[tuple[int, int, int]] = SIZES) -> Iterator[dict[str, int]]:
    """Sizes to call a function with."""
    for chosen in chosen_sizes:
        sizes = dict(zip("mnk", chosen, strict=True))
        free = {number.name: sizes[number.name] for number in call.sizes}
        if all(number.least is None or free[number.name] >= number.least for number in call.sizes):
            yield free
        if not call.sizes:
            return


def some_sizes(random: Random) -> list[tuple[int, int, int]]:
    """Large sizes, two that are often wrong, and two that nobody has thought of."""
    any_size = [tuple(random.randrange(49) for _ in range(3)) for _ in range(2)]
    return [random.choice(SIZES[:2]), *random.sample(SIZES[2:], 2), *any_size]  # type: ignore[list-item]


class Operands:
    """The memory of one call, filled the same each time it is made.

    Parameters
    ----------
    call, sizes : the function, and what is drawn.
    guarded : each array ends where a page follows that may not be touched.
    touching : two arrays, the second of which begins where the first one ends, less so many elements.
    nearer : rows behind pointers begin so many elements earlier than where the row before them ends.
    """

    def __init__(
        self,
        call: Call,
        sizes: Mapping[str, int],
        *,
        guarded: bool = False,
        touching: tuple[str, str, int] | None = None,
        nearer: int = 0,
    ) -> None:
        self.call, self._nearer = call, nearer
        self.numbers = dict(sizes)
        for part in call.arguments:
            if isinstance(part, Number) and part.value is not None and part.dtype[0] == "i":
                self.numbers[part.name] = evaluated(part.value, self.numbers)
        pointers = [part for part in call.arguments if isinstance(part, Pointer)]
        self.arrays = {part.name: self._filled(part) for part in pointers}
        self._memory: list[Any] = []
        if guarded:
            self.arrays = {name: self._beside_guard(array) for name, array in self.arrays.items()}
        if touching is not None:
            self._overlap(touching[:2], touching[2])

    def _filled(self, part: Pointer) -> Array:
        count = max(0, evaluated(part.length, self.numbers))
        if part.value is not None:
            return np.full(count, part.value, DTYPES[part.dtype])
        values = _numbers(f"{self.call.function} {part.name}", part.dtype, count).copy()
        if part.dtype[0] in "fb" and "set" in self.call.found and part is self.call.arguments[0]:
            values[...] = np.nan  # what the function must not read
        return values

    def _beside_guard(self, array: Array) -> Array:
        memory = GuardedMemory(max(array.nbytes, 1))
        self._memory.append(memory)
        if not array.size:
            return array
        return memory.place(array, array.strides, at_end=True)

    def _overlap(self, names: tuple[str, str], elements: int) -> None:
        first, second = (self.arrays[name] for name in names)
        memory = np.zeros(first.size + second.size, first.dtype)
        memory[: first.size] = first
        start = first.size - elements
        memory[start : start + second.size] = second
        shared = memory[: first.size], memory[start : start + second.size]
        self.arrays.update(zip(names, shared, strict=True))

    def run(self, library: ctypes.CDLL) -> dict[str, Array]:
        """The arrays after a call."""
        for part in self.call.arguments:
            if isinstance(part, Pointer) and part.is_global:
                self._copy_in(library, part)
        function = getattr(library, self.call.function)
        function.restype = None
        function(
            *(self._passed(part) for part in self.call.arguments if not getattr(part, "is_global", False))
        )
        return {name: self._after(library, name).copy() for name in self.arrays}

    def _passed(self, part: Pointer | Number) -> Any:
        if isinstance(part, Pointer):
            array = self.arrays[part.name]
            return ctypes.c_void_p(self._table(part, array).ctypes.data if part.rows else array.ctypes.data)
        kind = NUMBERS[part.dtype]
        value = self.numbers[part.name] if part.name in self.numbers else float(part.value or 0)
        number = kind(value)
        if not part.by_reference:
            return number
        self._memory.append(number)
        return ctypes.byref(number)

    def _table(self, part: Pointer, array: Array) -> Array:
        """Pointers to the rows of an array, which are in no order; behind them there is none."""
        count = max(0, evaluated(part.rows, self.numbers))
        pitch = (array.size // count - self._nearer if count else 0) * array.itemsize
        places = np.random.default_rng(count).permutation(count) if count > 2 else np.arange(count)
        table = np.append(array.ctypes.data + places * pitch, 8).astype(np.uint64)
        self._memory.append(table)
        return table

    def _global(self, library: ctypes.CDLL, name: str) -> Array:
        array = self.arrays[name]
        found = (ctypes.c_uint8 * array.nbytes).in_dll(library, name)
        return np.ctypeslib.as_array(found).view(array.dtype)

    def _copy_in(self, library: ctypes.CDLL, part: Pointer) -> None:
        self._global(library, part.name)[...] = self.arrays[part.name]

    def _after(self, library: ctypes.CDLL, name: str) -> Array:
        globals_ = {part.name for part in self.call.arguments if isinstance(part, Pointer) and part.is_global}
        return self._global(library, name) if name in globals_ else self.arrays[name]


@lru_cache(maxsize=64)
def _numbers(name: str, kind: str, count: int) -> Array:
    """What an array of a name holds before a call."""
    random, dtype = np.random.default_rng(zlib.crc32(name.encode())), DTYPES[kind]
    if kind[0] == "u" and kind != "u8":
        found: Array = random.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), count, dtype)
        return found
    reach = _REACH.get(kind, 4)
    return random.integers(0 if kind[0] == "u" else -reach, reach + 1, count).astype(dtype)


def differences(
    call: Call, original: ctypes.CDLL, replaced: ctypes.CDLL, random: Random | None = None
) -> list[str]:
    """Where a function of two libraries does not compute the same, each call in words.

    Parameters
    ----------
    random : draws some sizes, and which arrays overlap; without it, all sizes, and the first two arrays.
    """
    found = []
    for sizes in drawn(call, SIZES if random is None else some_sizes(random)):
        expected = Operands(call, sizes).run(original)
        results = Operands(call, sizes, guarded=True).run(replaced)
        found += [f"{call.function} {sizes}: {name}" for name in _unequal(expected, results)]
        if any(isinstance(part, Pointer) and part.rows for part in call.arguments):
            expected = Operands(call, sizes, nearer=1).run(original)
            results = Operands(call, sizes, nearer=1).run(replaced)
            found += [f"{call.function} {sizes}, close rows: {name}" for name in _unequal(expected, results)]
        for touching in _overlaps(call, sizes, random):
            expected = Operands(call, sizes, touching=touching).run(original)
            results = Operands(call, sizes, touching=touching).run(replaced)
            first, second, elements = touching
            found += [
                f"{call.function} {sizes}, {elements} elements of {first} and {second} are the same: {name}"
                for name in _unequal(expected, results)
            ]
    return found


def _overlaps(call: Call, sizes: Mapping[str, int], random: Random | None) -> Iterator[tuple[str, str, int]]:
    """Arrays that overlap in further calls, and how many elements they share: none, one, all."""
    pointers = [part for part in call.arguments if isinstance(part, Pointer)]
    pairs = (
        [
            (one, other)
            for one, other in (permutations(pointers, 2) if random is not None else [pointers[:2]])
            if one.dtype == other.dtype and not any(part.alone or part.is_global for part in (one, other))
        ]
        if len(pointers) > 1
        else []
    )
    if not pairs or "set" in call.found:
        return
    one, other = pairs[0] if random is None else random.choice(pairs)
    made = Operands(call, sizes)
    count = min(made.arrays[part.name].size for part in (one, other))
    if count < 1:
        return
    shared = [0, 1]
    if one.dtype[0] == "u" and count > 1:  # sums of sums leave the range in which floats are exact
        shared.append(count - 1)
        if random is not None:
            shared += [random.randrange(count), count]
    elif random is not None and {one.name, other.name} == {"c", "r"}:  # sums of one element each
        shared.append(count)
    for elements in shared if random is None else random.sample(shared, min(2, len(shared))):
        yield one.name, other.name, elements


def _unequal(expected: Mapping[str, Array], found: Mapping[str, Array]) -> list[str]:
    return [
        name
        for name, array in expected.items()
        if not np.array_equal(array.astype(np.float64), found[name].astype(np.float64), equal_nan=True)
        or (array.dtype.kind in "iu" and not np.array_equal(array, found[name]))
    ]
