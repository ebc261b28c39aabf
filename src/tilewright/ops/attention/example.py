"""An example call of attention: one head of some queries and keys, all of their elements adjacent."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.compiler.example import OPEN_SIZE, Example, View
from tilewright.compiler.kernel import Kernel

#: Entries of a sequence in the table `items`: queries, keys, and the first and last key of query 0.
_QUERIES, _KEYS, _LOW, _HIGH, _ENTRIES = 8, 9, 10, 11, 16
#: Operands with a row for each key.
_OF_KEYS = ("k", "v", "dk", "dv")
#: Queries that are drawn for few queries against many keys.
_FEW = 4


def attention_example(kernel: Kernel, wanted: Mapping[str, int]) -> Example:
    """One head; with bounds, every query sees the keys up to its own place.

    Examples
    --------
    >>> import tilewright as tw
    >>> attention_example(tw.compile(tw.Attention(64), "znver4"), {"keys": 96}).views["k"].rows
    96
    """
    problem, program = kernel.problem, kernel.nest
    decode = "splits" in program.sizes
    queries = wanted.get("queries", _FEW if decode else OPEN_SIZE)
    keys = wanted.get("keys", OPEN_SIZE)
    d, dv = problem.head_dim, problem.value_dim
    items = [0] * _ENTRIES
    items[_QUERIES], items[_KEYS] = queries, keys
    items[_LOW], items[_HIGH] = -max(queries, keys), keys - queries + 1 if problem.bounded else keys + queries
    widths = {"q": d, "k": d, "v": dv, "o": dv, "mask": keys, "dq": d, "dk": d, "dv": dv}
    widths |= {"out": dv, "dout": dv}
    rows = {name: keys if name in _OF_KEYS else queries for name in widths}
    sizes = {"queries": queries, "keys": keys, "page": keys, "state_head": queries}
    for name, width in widths.items():
        sizes |= {f"{name}_row": width, f"{name}_col": 1, f"{name}_head": width * rows[name]}
    if decode:
        sizes["splits"] = -(-keys // kernel.blocking.split)
    shape = {"queries": queries, "keys": keys, "head size": d, "value size": dv}
    arguments = [buffer.name for buffer in program.arguments]
    views = {
        name: View(
            rows[name],
            width,
            width,
            1,
            ("keys" if name in _OF_KEYS else "queries", "keys" if name == "mask" else "head"),
        )
        for name, width in widths.items()
        if name in arguments
    }
    known = {name: sizes.get(name, 1) for name in program.sizes}
    return Example(shape, known, {"items": tuple(items)}, views)
