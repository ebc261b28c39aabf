"""The signature of a register tile's functions: its parameters, declared once in one order.

A tile whose sizes are known at run time only has a function that takes any rows and columns, and one for each
height, which that function calls. Lowering passes operands by name, `dispatch.py` declares and reads them by
name, and only this file knows their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from tilewright.llvm.values import INT64, POINTER, Type, Value
from tilewright.micro.tiles.epilogue import StepAccess, steps_name


class EntryPoint(Enum):
    """The functions of a tile: the one for any rows and columns, and those for one height."""

    ANY_SIZE = "any size"
    ONE_HEIGHT = "one height"


class StoredWeights(NamedTuple):
    """What a tile reads of a packed weight.

    panels : B is stored as the words of a weight, in panels. scales : groups of depths have scales.
    zeros : groups have zero points too.
    """

    panels: bool = False
    scales: bool = False
    zeros: bool = False


class TileStrides(NamedTuple):
    """Strides in elements that are known and the same in all calls of a tile; None for others.

    a_lane : from row to row of A. a_depth, b_depth : from one step of the depth to the next.
    c_column : from column to column of C.
    """

    a_lane: int | None = None
    a_depth: int | None = None
    b_depth: int | None = None
    c_column: int | None = None


class TileSignature(NamedTuple):
    """The features of a tile's functions, from which their parameters follow.

    Attributes
    ----------
    strides : strides that all calls agree on: their addresses are constants, which compile sooner.
    pairs : elements of C are pairs of numbers: two columns of the tile are adjacent whatever the stride.
    carries : sums are kept outside of C between depth blocks.
    weights : what is read of packed weights.
    prefetch_bytes : size of an element of what is prefetched in place of C; 0 where C is.
    finish : steps on whole tiles, in registers.
    padded : A and B have all rows and columns of the tile; those that C lacks repeat the last ones.
    fetches : a parameter says whether tiles prefetch rows of B, which they do where they are the first to
        read them.
    apart : tiles of whole height do not ask: there are others that always prefetch.
    far : these others.
    copies : tiles write what they read of B, as a panel; they have whole height and always prefetch.
    repeats : a parameter says which row is the last one of a partial height: it may be the one before,
        computed and stored twice, so that tiles of even heights compute odd numbers of rows.
    """

    strides: TileStrides = TileStrides()
    pairs: bool = False
    carries: bool = False
    weights: StoredWeights = StoredWeights()
    prefetch_bytes: int = 0
    finish: tuple[StepAccess, ...] = ()
    padded: bool = False
    fetches: bool = False
    apart: bool = False
    far: bool = False
    copies: bool = False
    repeats: bool = False

    @property
    def suffix(self) -> str:
        """What names of functions with these features end with."""
        strides = "".join(f"_{name}{step}" for name, step in zip("labc", self.strides, strict=True) if step)
        weights = "_scaled" * self.weights.scales + "_zeros" * self.weights.zeros
        fetched = f"_fetch{self.prefetch_bytes}" if self.prefetch_bytes else ""
        marks = f"{'_pairs' * self.pairs}{'_carry' * self.carries}{weights}{fetched}{'_padded' * self.padded}"
        read = f"{'_first_read' * self.fetches}{'_apart' * self.apart}{'_far' * self.far}"
        return f"{strides}{marks}{read}{'_copies' * self.copies}{steps_name(self.finish)}"

    @property
    def step_operands(self) -> list[int]:
        """The numbers of the steps that have an operand."""
        return [number for number, given in enumerate(self.finish) if given.reach]

    def parameters(self, entry: EntryPoint, element: Type) -> list[tuple[str, Type]]:
        """Names and LLVM types of one function's parameters, given the type of alpha and beta."""
        return [(one.name, one.type or element) for one in self._present(entry)]

    def arguments(self, entry: EntryPoint, operands: Mapping[str, Value]) -> list[Value]:
        """The arguments of a call, in order, from operands by name."""
        return [operands[one.name] for one in self._present(entry)]

    def _present(self, entry: EntryPoint) -> Iterator[_Parameter]:
        yield from (one for one in _PARAMETERS if one.only in (None, entry) and one.present(self))
        for number in self.step_operands:
            yield _Parameter(f"step{number}", POINTER)
            yield _Parameter(f"step{number}_row", INT64)


def _always(_: TileSignature) -> bool:
    return True


class _Parameter(NamedTuple):
    """A parameter: its LLVM type (None for that of the sums), the features and functions that have it."""

    name: str
    type: Type | None
    present: Callable[[TileSignature], bool] = _always
    only: EntryPoint | None = None


def _carries(signature: TileSignature) -> bool:
    return signature.carries


def _scales(signature: TileSignature) -> bool:
    return signature.weights.scales


def _prefetches(signature: TileSignature) -> bool:
    return bool(signature.prefetch_bytes)


#: Every parameter, in order; pointers and row strides of the operands of steps follow.
_PARAMETERS = (
    _Parameter("rows", INT64, only=EntryPoint.ANY_SIZE),
    _Parameter("columns", INT64),
    _Parameter("depth", INT64),
    _Parameter("a", POINTER),
    _Parameter("a_lane", INT64),
    _Parameter("a_depth", INT64),
    _Parameter("b", POINTER),
    _Parameter("b_depth", INT64),
    _Parameter("c", POINTER),
    _Parameter("c_row", INT64),
    _Parameter("c_column", INT64, only=EntryPoint.ANY_SIZE),
    _Parameter("alpha", None),
    _Parameter("beta", None),
    _Parameter("sums", POINTER, _carries),
    _Parameter("sums_row", INT64, _carries),
    _Parameter("first", INT64, _carries),
    _Parameter("last", INT64, _carries),
    _Parameter("scale", POINTER, _scales),
    _Parameter("scale_step", INT64, _scales),
    _Parameter("group", INT64, _scales),
    _Parameter("zero", POINTER, lambda signature: signature.weights.zeros),
    _Parameter("ahead", POINTER, _prefetches),
    _Parameter("ahead_row", INT64, _prefetches),
    _Parameter("first_read", INT64, lambda signature: signature.fetches),
    _Parameter("copied", POINTER, lambda signature: signature.copies),
    _Parameter("left", INT64, lambda signature: signature.padded, EntryPoint.ONE_HEIGHT),
    _Parameter("last_row", INT64, lambda signature: signature.repeats, EntryPoint.ONE_HEIGHT),
)
