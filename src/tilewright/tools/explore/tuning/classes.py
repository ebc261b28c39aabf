"""Classes of shapes for `tilewright tune`: constants of the models that decide about them, and what is tried.

A class is a row: the constants, a few values around the models' choice, and shapes on both sides of where
that choice changes the loops. A value whose loops are the model's own is not tried, so that a class costs
nothing where a constant does not matter, as for the types of some instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import NamedTuple

from tilewright.cached import cached_property
from tilewright.compiler.pipeline import run_stages
from tilewright.errors import InvalidChoice, UnsupportedDtype, shown
from tilewright.machine.findings import Finding
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.machine.tuning import TunedConstant, Tuning
from tilewright.macro.blocking import Blocking, choose_blocking, register_candidates, register_tiles
from tilewright.macro.cost import STREAMED_ROWS, InPlaceLimits, in_place_limits
from tilewright.macro.tuned import TUNABLE_BLOCKS, TUNABLE_LIMITS, tuned_blocking, tuned_limits
from tilewright.ops.gemm.problem import Gemm
from tilewright.records import dataclass
from tilewright.spec.problem import Layout, ProductTypes
from tilewright.tools.explore.cases import Case

#: Other register tiles that are tried.
OTHER_TILES = 3
#: Shapes of a recorded program that a class measures: those that take most of its time.
MOST_RECORDED = 8
#: A call of a measured shape takes no more than this at the peak of a core of 3 GHz; rows are left out.
MOST_CALL_SECONDS, NOMINAL_HZ = 0.1, 3e9

#: Constants and their values.
Values = Mapping[str, int]


class Shape(NamedTuple):
    """The sizes of a product, and its transposed operands in BLAS's letters; `trans` as in `parse_sizes`."""

    m: int
    n: int
    k: int
    trans: str = "n"

    @property
    def label(self) -> str:
        """The sizes, and what is transposed.

        >>> Shape(8, 16, 4).label, Shape(8, 16, 4, "b").label
        ('8x16x4', '8x16x4 b')
        """
        return f"{self.m}x{self.n}x{self.k}" + ("" if self.trans == "n" else f" {self.trans}")

    def case(self, types: ProductTypes) -> Case:
        """The product of some types, to be measured."""
        a, b = (Layout.COL if name in self.trans else Layout.ROW for name in "ab")
        gemm = Gemm(self.m, self.n, self.k, types.a, a=a, b=b, b_dtype=types.b, out_dtype=types.c)
        return Case(gemm)


def any_sizes(types: ProductTypes) -> Gemm:
    """The problem behind `matmul`: any sizes, any strides."""
    strided = Layout.STRIDED
    return Gemm(dtype=types.a, b_dtype=types.b, out_dtype=types.c, a=strided, b=strided, c=strided)


def types_named(name: str) -> ProductTypes:
    """The element types of `ProductTypes.name`.

    Raises
    ------
    UnsupportedDtype : there are no such types.

    >>> types_named("u8i8i32").name, types_named("i8i32").b.name
    ('u8i8i32', 'i8')
    """
    words = re.findall(r"[a-z]+[0-9]+", name)
    match words:
        case [one]:
            return ProductTypes.parse(one)
        case [one, c]:
            return ProductTypes.parse(one, one, c)
        case [a, b, c]:
            return ProductTypes.parse(a, b, c)
        case _:
            raise UnsupportedDtype(dtype=shown(name), supported="names such as f32, i8i32, u8i8i32")


@dataclass(frozen=True)
class Situation:
    """A machine with what was found so far, and the types of a product."""

    machine: Machine
    types: ProductTypes

    @property
    def instruction(self) -> TileFma:
        """The multiply instruction."""
        return self.machine.isa.tile(self.types.a, self.types.b)

    @cached_property
    def blocking(self) -> Blocking:
        """Register tile and cache blocks."""
        model = choose_blocking(self.machine, self.instruction)
        return tuned_blocking(self.machine, self.types, self.instruction, model)

    @cached_property
    def limits(self) -> InPlaceLimits:
        """Limits of operands in place."""
        tile = self.blocking
        found = in_place_limits(self.machine, self.instruction, tile.mr, tile.nr, self.types)
        return tuned_limits(self.machine, self.types, found, tile.mr)

    def value(self, name: str) -> int:
        """The value of a constant."""
        found: int = getattr(self.blocking if name in TUNABLE_BLOCKS else self.limits, name)
        return found

    def values(self, names: Sequence[str]) -> dict[str, int]:
        """The values of some constants."""
        return {name: self.value(name) for name in names}

    def without(self, names: Sequence[str]) -> Situation:
        """The same with the models' choice of some constants."""
        return self._with({}, names)

    def replaced(self, values: Values) -> Situation:
        """The same with other values of constants, in place of those it has now."""
        return self._with({name: TunedConstant(name, self.value(name), new) for name, new in values.items()})

    def _with(self, constants: Mapping[str, TunedConstant], dropped: Sequence[str] = ()) -> Situation:
        name = self.types.name
        tuning = self.machine.tuning(name)
        kept = {one.name: one for one in (tuning.constants if tuning else ()) if one.name not in dropped}
        kept |= constants
        others = tuple(one for one in self.machine.tunings if one.types != name)
        mine = (Tuning(name, tuple(kept[one] for one in sorted(kept))),) if kept else ()
        tunings = tuple(sorted((*others, *mine), key=lambda one: one.types))
        return Situation(replace(self.machine, tunings=tunings), self.types)

    def loops(self) -> object:
        """What the models make of a product of any sizes: equal where kernels are."""
        found = run_stages(any_sizes(self.types), self.machine, until="nest")
        return found.blocking, found.program.body, found.program.buffers


@dataclass(frozen=True)
class ShapeClass:
    """A class of shapes and the constants that decide about it.

    Attributes
    ----------
    name : in reports and files.
    meaning : what the constants decide.
    constants : that are tuned, together.
    candidates : values of them around the current ones.
    shapes : that are measured.
    covers : whether a shape of a program belongs to the class.
    """

    name: str
    meaning: str
    constants: tuple[str, ...]
    candidates: Callable[[Situation], Sequence[Values]]
    shapes: Callable[[Situation], Sequence[Shape]]
    covers: Callable[[Situation, Shape], bool]

    def __post_init__(self) -> None:
        for name in self.constants:
            if name not in TUNABLE_BLOCKS + TUNABLE_LIMITS:
                allowed = ", ".join(TUNABLE_BLOCKS + TUNABLE_LIMITS)
                raise InvalidChoice(name="tuned constant", found=shown(name), allowed=allowed)

    def variants(self, model: Situation) -> tuple[Situation, ...]:
        """The situations that are tried: those whose loops differ from the model's and from each other's."""
        seen, found = [model.loops()], []
        for values in self.candidates(model):
            situation = model.replaced(values)
            loops = situation.loops()
            if loops not in seen:
                seen.append(loops)
                found.append(situation)
        return tuple(found)

    def measured_shapes(self, model: Situation, recorded: Mapping[Shape, float] | None) -> tuple[Shape, ...]:
        """The shapes of a class, or those of a program in it that took most of its time."""
        if recorded is None:
            found = [_bounded(shape, model) for shape in self.shapes(model)]
        else:
            mine = [shape for shape in recorded if self.covers(model, shape)]
            found = sorted(mine, key=lambda shape: -recorded[shape])[:MOST_RECORDED]
        return tuple(dict.fromkeys(found))

    def is_done(self, finding: Finding | None, model: Situation, shapes: Sequence[Shape]) -> bool:
        """Whether the models still choose what was measured, and on these shapes."""
        return (
            finding is not None
            and dict(finding.model) == model.values(self.constants)
            and finding.shapes == tuple(shape.label for shape in shapes)
        )


def _bounded(shape: Shape, situation: Situation) -> Shape:
    """A shape with so few rows that a call of it is short."""
    one, isa = situation.instruction, situation.machine.isa
    seconds_a_row = shape.n * shape.k / (one.products * isa.rate(one) * NOMINAL_HZ)
    return shape._replace(m=max(1, min(shape.m, int(MOST_CALL_SECONDS / seconds_a_row))))


# --- values around the current one -----------------------------------------------------------------------


def _scaled(name: str, *factors: Fraction | int, unit: str = "") -> Callable[[Situation], Sequence[Values]]:
    """Multiples of the current value of a constant, of which each is a multiple of another constant."""

    def candidates(now: Situation) -> Sequence[Values]:
        step = now.value(unit) if unit else 1
        value = now.value(name)
        found = dict.fromkeys(max(step, round(value * factor / step) * step) for factor in factors)
        return [{name: one} for one in found if one != value]

    return candidates


def _strips(now: Situation) -> Sequence[Values]:
    """One to four register tiles."""
    mr = now.blocking.mr
    return [{"strip": tiles * mr} for tiles in range(1, 5) if tiles * mr != now.limits.strip]


def _tiles(now: Situation) -> Sequence[Values]:
    """The register tiles that load least for each multiply-add, as the models rank them, but the current one.

    Those that hide latency and feed the multiply unit come first.
    """
    isa, one, current = now.machine.isa, now.instruction, (now.blocking.mr, now.blocking.nr)
    found: dict[tuple[int, int], None] = {}
    for tiles in (register_tiles(isa, one), register_candidates(isa, one)):
        ranked = sorted(tiles, key=lambda tile: (-tile.cmr, tile.loads_per_depth))
        found |= dict.fromkeys((tile.mr, tile.nr) for tile in ranked if tile.nr > one.n or len(tiles) == 1)
    return [{"mr": mr, "nr": nr} for mr, nr in found if (mr, nr) != current][:OTHER_TILES]


# --- shapes ------------------------------------------------------------------------------------------------


def _fixed(*shapes: Shape) -> Callable[[Situation], Sequence[Shape]]:
    return lambda _now: shapes


def _side(elements: int, share: float = 1.0) -> int:
    """The side of a square of some elements, times a share."""
    return max(1, int(isqrt(elements) * share))


def _squares_near_in_place(now: Situation) -> Sequence[Shape]:
    sides = (_side(now.limits.in_place_b, share) for share in (0.55, 0.75, 0.95, 1.2, 1.6))
    return [Shape(side, side, side) for side in sides]


def _tall_near_in_place(now: Situation) -> Sequence[Shape]:
    side = _side(now.limits.in_place_b, 0.7)
    return [Shape(int(now.limits.in_place_a / side * share), side, side) for share in (0.6, 0.9, 1.5, 3.0)]


def _few_rows(now: Situation) -> Sequence[Shape]:
    third = max(1, now.limits.few_rows // 3)
    # Their rows are a multiple of half a way of L1 apart, where other limits do not decide.
    return [Shape(third * count, 1536, 1000) for count in (1, 2, 3, 4, 6, 9)]


def _few_columns(now: Situation) -> Sequence[Shape]:
    quarter = max(1, now.limits.few_columns // 4)
    return [Shape(1000, quarter * count, 1000) for count in (1, 2, 3, 4, 6, 8)]


def _thin(now: Situation) -> Sequence[Shape]:
    sides = [_side(now.limits.far_b, share) for share in (0.6, 0.85, 1.2, 1.7)]
    rows = sorted({min(2, STREAMED_ROWS), STREAMED_ROWS})
    return [Shape(m, side, side) for m in rows for side in sides]


def _wide(now: Situation) -> Sequence[Shape]:
    nc = now.blocking.nc
    return [Shape(96, 2 * nc, 512), Shape(256, 3 * nc, 256), Shape(512, 3 * nc // 2, 384)]


def _is_large(now: Situation, shape: Shape) -> bool:
    """Whether B is packed."""
    return shape.m > now.limits.few_rows and shape.n * shape.k > now.limits.in_place_b


_half, _third, _quarter = Fraction(1, 2), Fraction(4, 3), Fraction(1, 4)

#: In the order in which they are measured: the models choose the later constants for the tile.
CLASSES: tuple[ShapeClass, ...] = (
    ShapeClass(
        "tile",
        "rows and columns of a register tile",
        ("mr", "nr"),
        _tiles,
        _fixed(Shape(256, 256, 256), Shape(500, 500, 500), Shape(700, 800, 600), Shape(96, 1000, 1000)),
        _is_large,
    ),
    ShapeClass(
        "large",
        "rows of A in place that meet all panels of B",
        ("strip",),
        _strips,
        _fixed(
            *(Shape(600, 700, 600), Shape(1200, 900, 500)),
            *(Shape(4096, 64, 256), Shape(2048, 2048, 64), Shape(200, 300, 3000)),
        ),
        _is_large,
    ),
    ShapeClass(
        "wide",
        "columns of B that are packed before they are used",
        ("nc",),
        _scaled("nc", _quarter, _half, 2, unit="nr"),  # more would crowd out cores that are idle now
        _wide,
        lambda now, shape: shape.n > now.blocking.nc // 2 and _is_large(now, shape),
    ),
    ShapeClass(
        "conflicts",
        "rows of A that are packed where its lines evict each other",
        ("mc",),
        _scaled("mc", _half, 2, 4, unit="mr"),
        _fixed(Shape(1024, 256, 512, "a"), Shape(2048, 256, 384, "a"), Shape(1024, 384, 1024, "a")),
        lambda now, shape: "a" in shape.trans and _is_large(now, shape),
    ),
    ShapeClass(
        "small",
        "elements of B up to which it stays in place",
        ("in_place_b",),
        _scaled("in_place_b", _quarter, _half, 2, 4),
        _squares_near_in_place,
        lambda now, shape: (
            shape.m > now.limits.few_rows
            and shape.m * max(shape.n, shape.k) <= now.limits.in_place_a
            and now.limits.in_place_b <= 8 * shape.n * shape.k <= 64 * now.limits.in_place_b
        ),
    ),
    ShapeClass(
        "tall",
        "elements of A up to which a small B stays in place",
        ("in_place_a",),
        _scaled("in_place_a", _half, 2, 4),
        _tall_near_in_place,
        lambda now, shape: (
            shape.n * shape.k <= now.limits.in_place_b
            and 4 * shape.m * max(shape.n, shape.k) >= now.limits.in_place_a
        ),
    ),
    ShapeClass(
        "few rows",
        "rows up to which B stays in place",
        ("few_rows",),
        _scaled("few_rows", _half, _third, 2, 3),
        _few_rows,
        lambda now, shape: STREAMED_ROWS < shape.m <= 4 * now.limits.few_rows,
    ),
    ShapeClass(
        "few columns",
        "columns up to which both stay in place",
        ("few_columns",),
        _scaled("few_columns", _half, 2, 4),
        _few_columns,
        lambda now, shape: 1 < shape.n <= 2 * now.limits.few_columns,
    ),
    ShapeClass(
        "thin",
        "elements of B from which few rows add its rows to sums in cache",
        ("far_b",),
        _scaled("far_b", _quarter, _half, 2, 4),
        _thin,
        lambda now, shape: (
            1 < shape.m <= STREAMED_ROWS
            and now.limits.far_b <= 8 * shape.n * shape.k <= 64 * now.limits.far_b
        ),
    ),
)
