"""Random contractions and their operands: any order, execution, strides and primitive."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np
from support import Array, filled

from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.memory import reach, stride_of
from tilewright.ops.contraction.problem import Contraction
from tilewright.spec.dtype import DTYPES
from tilewright.spec.roles import DimensionRole

#: Lengths of loops, and of primitive dimensions: around vectors and register tiles of several rows. Of many
#: dimensions the first few are taken.
LOOPS = (1, 2, 3)
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 23, 33, 48, 65)
PRODUCTS = ("gemm", "brgemm", "packed_gemm")
FUNCTIONS = ("identity", "relu", "square", "negate")
FIRST = ("none", "zero", "bias")
LAST = (None, None, "relu", "clamp:-6:9", "relu,clamp:0:20")


class Case(NamedTuple):
    """A contraction, the sizes that a call gives, and the values of its operands by name."""

    problem: Contraction
    sizes: tuple[int, ...]
    values: dict[str, Array]

    @property
    def known(self) -> Contraction:
        """With all of its sizes."""
        return self.problem.sized(self.sizes)

    def steps(self, name: str) -> tuple[int, ...]:
        """Byte strides of an operand."""
        size = self.problem.element_of(name).size
        return tuple(stride_of(one, name) * size for one in self.problem.having(name))

    def placed(self, name: str) -> Array:
        """An operand in memory that ends with its outermost elements; between them stands nothing (NaN)."""
        low, high = reach(self.known.having(name), name)
        values = self.values[name]
        block = np.full(high - low + 1, _nothing(values.dtype), values.dtype)
        view: Array = np.ndarray(values.shape, values.dtype, block, -low * block.itemsize, self.steps(name))
        view[...] = values
        return view

    def expected(self) -> Array:
        """What out is to hold."""
        arrays = {name: self.placed(name) for name in self.problem.names}
        found = self.known.reference(arrays["in0"], arrays.get("in1"), arrays["out"], arrays.get("bias"))
        return found.astype(self.problem.out_dtype.numpy)


def _nothing(dtype: np.dtype[Any]) -> Any:
    return 99 if dtype.kind in "iu" else np.nan


def of_values(problem: Contraction, sizes: tuple[int, ...] = (), seed: int = 0) -> Case:
    """A contraction on small integers, sums of which are exact."""
    values = {}
    for number, name in enumerate(problem.names):
        shape = tuple(one.size or 0 for one in problem.sized(sizes).having(name))
        values[name] = filled(shape, problem.element_of(name).numpy, seed + number)
    return Case(problem, sizes, values)


def random_case(
    random: Random, *, dtypes: tuple[str, ...] = ("f32",), lengths: tuple[int, ...] = LENGTHS
) -> Case:
    """A contraction of up to eight dimensions."""
    unary = random.random() < 0.25
    main = random.choice(FUNCTIONS if unary else PRODUCTS)
    dtype = random.choice([one for one in dtypes if _has(main, one)])
    inner = _primitive(random, main)
    kinds = ["c"] if unary else ["c", "m", "n", "k"]
    outer = [random.choice(kinds) for _ in range(random.randrange(4))]
    types = [*outer, *inner]
    sizes = [
        *(random.choice(LOOPS) for _ in outer),
        *(random.choice(lengths if len(inner) < 4 else lengths[:5]) for _ in inner),
    ]
    executions = [
        random.choice(("sequential", "parallel")) if kind != "k" else "sequential" for kind in outer
    ]
    executions += ["primitive"] * len(inner)
    first, last = ("none", None) if unary else (random.choice(FIRST), random.choice(LAST))
    if DTYPES[dtype].real != DTYPES[dtype]:
        last = None
    strides = {name: _strides(random, types, sizes, name) for name in ("in0", "in1", "out", "bias")}
    if unary:
        strides["in1"] = [0] * len(types)
    opened = [random.random() < 0.2 for _ in types]
    dimensions = [
        Dimension(
            *(types[at], executions[at], None if opened[at] else sizes[at]),
            in0=strides["in0"][at],
            in1=strides["in1"][at],
            out=strides["out"][at],
            bias=strides["bias"][at],
        )
        for at in range(len(types))
    ]
    # Sums that a loop would round go to an out of their own type.
    batch_outside = inner.count("k") > 1 and any(opened)
    wide = main == "packed_gemm" or "k" in outer or batch_outside
    out = {"bf16": "f32", "f16": "f32", "i8": "i32"}.get(dtype) if wide else None
    problem = Contraction(
        *(dimensions, dtype),
        out_dtype=None if unary else out,
        main=main,
        first=first,
        last=None if out is None and DTYPES[dtype].is_integer else last,
    )
    given = tuple(size for size, is_open in zip(sizes, opened, strict=True) if is_open)
    return of_values(problem, given, random.randrange(1000))


def _has(main: str, dtype: str) -> bool:
    """Whether a primitive has kernels of an element type."""
    if main == "packed_gemm":
        return dtype in ("f32", "f64", "bf16", "f16")
    return main not in ("relu", "square", "negate") or dtype in ("f32", "f64", "bf16", "f16")


def _primitive(random: Random, main: str) -> list[str]:
    """The types of the primitive dimensions."""
    if main in FUNCTIONS:
        return ["c"] * random.randrange(3)
    if main == "packed_gemm":
        found = random.choices("cmnk", k=random.randrange(1, 6))
    else:
        found = [kind for kind in "mnk" if random.random() < 0.9]
        found += ["k"] * (main == "brgemm" and "k" in found and random.random() < 0.8)
    random.shuffle(found)
    return found


def _strides(random: Random, types: list[str], sizes: list[int], name: str) -> list[int]:
    """Strides of an operand whose dimensions stand in any order, some with gaps, some reversed.

    A bias may repeat along a dimension.
    """
    wanted = "out" if name == "bias" else name
    found = [0] * len(types)
    having = [at for at, kind in enumerate(types) if wanted in DimensionRole(kind).operands]
    random.shuffle(having)
    step = random.choice((1, 1, 1, 2))
    for at in having:
        if name == "bias" and random.random() < 0.3:
            continue
        found[at] = step * random.choice((1, 1, 1, 1, -1))
        step = step * sizes[at] + random.choice((0, 0, 0, 1, 3))
    return found
