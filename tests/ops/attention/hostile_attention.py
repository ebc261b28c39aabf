"""Calls attention with hostile integers; a program, as a defect ends it by a signal.

    python hostile_attention.py {values|threads}

values: offsets, lengths, tables, windows and query offsets of every integer type, valid or not. Each call
returns or raises an error of this package; the program checks by itself that accepted values are valid.
threads: another thread overwrites the integers while calls run.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from support import Array, filled

import tilewright as tw
from tilewright.errors import TilewrightError

CALLS = 800
SECONDS = 0.7
#: For how many more it waits for the first call that returns, where other processes have the processors.
PATIENCE = 60
MOST = 2**63 - 1
INTEGERS = (
    0,
    0,
    1,
    2,
    3,
    4,
    5,
    8,
    9,
    30,
    -1,
    -2,
    MOST,
    MOST - 1,
    -MOST - 1,
    -MOST + 7,
    2**62,
    -(2**62),
    2**32,
)
TYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i8", ">u4")

ROWS, PAGE, PAGES, HEADS = 8, 2, 6, 2
Q, K, V = (filled((HEADS, ROWS, 8), seed=seed) for seed in range(3))
BATCH_Q, BATCH_K, BATCH_V = (np.stack([array, array]) for array in (Q, K, V))
CACHE = filled((PAGES, HEADS, PAGE, 8), seed=3)


# --- hostile values ---------------------------------------------------------------------------------


class Draw:
    """Random arguments: containers of integers of many types."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def one(self, values: tuple[Any, ...]) -> Any:
        return values[self.random.integers(len(values))]

    def contained(self, values: Any) -> Any:
        """The values as a list, a tuple, or an array of some type, strided or not."""
        form = self.random.integers(8)
        if form < 2:
            return values if form else tuple(values)
        if form == 2:
            return np.array(values, object)
        if form == 3:
            return np.array(values, np.float64)
        array = np.array(values, object).astype(">u8" if np.min(values, initial=0) >= 0 else ">i8")
        array = array.astype(self.one(TYPES))
        return np.repeat(array, 2, axis=0)[::2] if form == 4 else array

    def offsets(self, sequences: int) -> list[int]:
        if self.random.integers(4) == 0:
            cuts: list[int] = np.sort(self.random.integers(0, ROWS + 1, sequences)).tolist()
            return [0, *cuts]
        return [self.one((0, 0, 0, 1, -1)), *(self.one(INTEGERS) for _ in range(sequences))]

    def lengths(self, count: int) -> list[int]:
        return [self.one((0, 1, 5, 8, *INTEGERS)) for _ in range(count)]

    def table(self, batch: int) -> list[list[int]]:
        return [[self.one((0, 1, 5, *INTEGERS)) for _ in range(4)] for _ in range(batch)]


def integers(value: Any) -> list[Any] | None:
    """What a container holds, if these are integers."""
    array = np.asarray(value)
    found: list[Any] = array.tolist()
    return found if array.dtype.kind in "iu" else None


def valid_offsets(value: Any) -> bool:
    found = integers(value)
    if found is None or found[0] != 0 or found[-1] > ROWS:
        return False
    return all(first <= last for first, last in itertools.pairwise(found))


def valid_lengths(value: Any, most: int) -> bool:
    found = integers(value)
    return found is not None and all(0 <= length <= most for length in found)


def valid_table(table: Any, lengths: Any) -> bool:
    found = integers(table)
    if found is None or not valid_lengths(lengths, PAGE * len(found[0])):
        return False
    used = (row[: -(-length // PAGE)] for row, length in zip(found, integers(lengths) or [], strict=True))
    return all(0 <= page < PAGES for row in used for page in row)


def call(draw: Draw) -> tuple[Callable[[], Any], bool]:
    """A call, and whether its integers are valid."""
    kind = draw.random.integers(4)
    causal = bool(draw.random.integers(2))
    if kind == 0:
        sequences = int(draw.random.integers(1, 4))
        first, second = (draw.contained(draw.offsets(sequences)) for _ in range(2))
        given: dict[str, Any] = {"cu_seqlens_q": first, "cu_seqlens_k": second, "causal": causal}
        valid = valid_offsets(first) and valid_offsets(second)
        operands = (Q, K, V)
    elif kind == 1:
        first, second = (draw.contained(draw.lengths(2)) for _ in range(2))
        given = {"q_lengths": first, "kv_lengths": second, "causal": causal}
        valid = valid_lengths(first, ROWS) and valid_lengths(second, ROWS)
        operands = (BATCH_Q, BATCH_K, BATCH_V)
    elif kind == 2:
        table, lengths = draw.contained(draw.table(2)), draw.contained(draw.lengths(2))
        given = {"block_table": table, "kv_lengths": lengths, "causal": causal}
        valid = valid_table(table, lengths)
        queries = BATCH_Q[:, :, : draw.one((1, ROWS))]
        return lambda: tw.attention(queries, CACHE, CACHE, **given), valid
    else:
        window = tuple(draw.one((None, 0, 3, *INTEGERS)) for _ in range(2))
        given = {"window": window, "causal": causal}
        valid = all(side is None or side >= 0 for side in window)
        if draw.random.integers(2):
            given["kv_lengths"] = draw.lengths(2)
            valid = valid and valid_lengths(given["kv_lengths"], ROWS)
        if draw.random.integers(2):
            given["q_offset"] = draw.one((draw.lengths(2), draw.contained(draw.lengths(2)), *INTEGERS))
            found = integers(given["q_offset"])
            valid = (
                valid and found is not None and all(abs(place) <= 2**60 for place in np.ravel(found).tolist())
            )
        operands = (BATCH_Q, BATCH_K, BATCH_V)
    function = draw.random.integers(3)
    if function == 0:
        return lambda: tw.attention(*operands, **given), valid
    if function == 1:
        return lambda: tw.attention_partial(*operands, **given), valid
    gradient, lse = np.ones_like(operands[0]), np.zeros(operands[0].shape[:-1], np.float32)
    return lambda: tw.attention_backward(gradient, *operands, gradient, lse, **given), valid


def values() -> None:
    accepted = 0
    for seed in range(CALLS):
        run, valid = call(Draw(seed))
        try:
            run()
        except TilewrightError as error:
            if valid:
                raise SystemExit(f"call {seed} is valid and was refused: {error}") from error
        else:
            accepted += 1
            if not valid:
                raise SystemExit(f"call {seed} is invalid and was accepted")
    sys.stdout.write(f"{CALLS} calls, {accepted} accepted\n")


# --- another thread -----------------------------------------------------------------------------


def flip(array: Array, good: Array, bad: Array, stop: threading.Event) -> None:
    """Writes good and bad values in turns."""
    while not stop.is_set():
        array[...] = bad
        array[...] = good


def race(array: Array, bad: Any, run: Callable[[], Any]) -> int:
    """How many calls return while another thread overwrites the integers they are given."""
    good, stop, done = array.copy(), threading.Event(), 0
    other = threading.Thread(target=flip, args=(array, good, np.broadcast_to(bad, array.shape), stop))
    other.start()
    try:
        end = time.monotonic() + SECONDS
        while (now := time.monotonic()) < end or (not done and now < end + PATIENCE):
            try:
                run()
                done += 1
            except TilewrightError:
                pass
    finally:
        stop.set()
        other.join()
    return done


def threads() -> None:
    sys.setswitchinterval(1e-6)
    random = np.random.default_rng(0)
    queries = random.standard_normal((2, HEADS, 1, 8)).astype(np.float32)
    cache = random.standard_normal((64, HEADS, 16, 8)).astype(np.float32)
    table = np.arange(128, dtype=np.int64).reshape(2, 64) % 64
    lengths = np.full(2, 1024, np.int64)
    full = np.stack([cache[0]] * 2)
    some = np.full(2, 5, np.int64)
    offsets = np.array([0, 3, 8], np.int64)
    gradient, lse = np.ones_like(Q), np.zeros(Q.shape[:-1], np.float32)
    paged: dict[str, Any] = {"block_table": table, "kv_lengths": lengths}
    packed: dict[str, Any] = {"cu_seqlens_q": offsets, "cu_seqlens_k": offsets}
    races = (
        (table, 2**40, lambda: tw.attention(queries, cache, cache, **paged)),
        (lengths, 2**40, lambda: tw.attention(queries, cache, cache, **paged)),
        (some, 2**40, lambda: tw.attention(queries, full, full, kv_lengths=some)),
        (some, 2**40, lambda: tw.attention_partial(full, full, full, q_lengths=some)),
        (offsets, 2**40, lambda: tw.attention(Q, K, V, **packed)),
        (offsets, [0, MOST, -2], lambda: tw.attention_backward(gradient, Q, K, V, gradient, lse, **packed)),
    )
    for array, bad, run in races:
        run()  # compiled, and planned where calls are
        if not race(array, bad, run):
            raise SystemExit("no call returned")
    sys.stdout.write(f"{len(races)} races\n")


if __name__ == "__main__":
    {"values": values, "threads": threads}[sys.argv[1]]()
