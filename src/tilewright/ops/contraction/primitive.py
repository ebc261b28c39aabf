"""The main primitives of contractions: their forms, and what each is cut to and lowered to."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from tilewright.ir.expressions import Constant, Expression, Name
from tilewright.ir.nodes import Buffer, Statement
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking
from tilewright.macro.bounds import CutBounds, blocking_bounds
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.main import Main
from tilewright.ops.contraction.problem import Contraction, check_loops
from tilewright.preparing import Places
from tilewright.spec.roles import DimensionRole


class PrimitiveForm(Enum):
    """How a main primitive is lowered.

    TILES: straight register tiles, sizes hardcoded. NEST: the loops of a GEMM, for sizes given at run time or
    so large that tiles alone would not stay in the caches. TABLES: the five loops over tables of offsets.
    FUNCTION: a function of single elements.
    """

    TILES = "tiles"
    NEST = "nest"
    TABLES = "tables"
    FUNCTION = "function"

    @classmethod
    def of(cls, problem: Contraction) -> PrimitiveForm:
        """That of a contraction.

        >>> PrimitiveForm.of(Contraction([Dimension("m", "primitive", in0=1, out=1)], main="gemm"))
        <PrimitiveForm.NEST: 'nest'>
        """
        if problem.is_unary:
            return cls.FUNCTION
        if problem.main is Main.PACKED_GEMM and problem.primitive:
            return cls.TABLES
        return cls.TILES if problem.hardcoded else cls.NEST


class DimensionLoop(NamedTuple):
    """A dimension and its name in tile IR."""

    axis: str
    dimension: Dimension

    @property
    def extent(self) -> Expression:
        """Its length: a number, or a size given at run time."""
        size = self.dimension.size
        return Name(f"{self.axis}_size") if size is None else Constant(size)


def named(problem: Contraction) -> tuple[DimensionLoop, ...]:
    """The dimensions with their names: type and place.

    >>> named(Contraction([Dimension("c", "primitive", in0=1, out=1)], main="relu"))[0].axis
    'c_0'
    """
    return tuple(
        DimensionLoop(f"{dimension.type.value}_{place}", dimension)
        for place, dimension in enumerate(problem.dimensions)
    )


def split(problem: Contraction) -> tuple[tuple[DimensionLoop, ...], tuple[DimensionLoop, ...]]:
    """The dimensions that run as loops, and those of the primitive.

    The batch of a brgemm is a loop too where tiles can't sum it in registers: its C then stays in the cache.
    """
    found = named(problem)
    loops = len(problem.loops)
    inner = found[loops:]
    if PrimitiveForm.of(problem) is PrimitiveForm.NEST and problem.batch is not None:
        first = next(one for one in inner if one.dimension.type is DimensionRole.K)
        return (*found[:loops], first), tuple(one for one in inner if one is not first)
    return found[:loops], inner


class PrimitiveIR(NamedTuple):
    """A primitive as tile IR.

    Attributes
    ----------
    statements : on operands that begin with the first element of the block.
    buffers : further ones: scratch, and arguments with tables.
    sizes : further arguments beside the sizes of dimensions.
    """

    statements: tuple[Statement, ...]
    buffers: tuple[Buffer, ...] = ()
    sizes: tuple[str, ...] = ()


class PrimitiveContext(NamedTuple):
    """How the loops around a primitive use it.

    Attributes
    ----------
    adds : it adds to what out holds; else out is replaced.
    steps : the last touch is applied before sums are stored.
    led : the block is all of the operands.
    """

    adds: bool
    steps: bool
    led: bool


class PrimitiveLowering(NamedTuple):
    """One form of a primitive: how it is cut on a machine, and its statements."""

    choose: Callable[[Contraction, Machine], Any]
    lay: Callable[[Contraction, Any, Machine, PrimitiveContext], PrimitiveIR]


#: Of each `PrimitiveForm`, imported when a contraction has it: a form needs the nests of other operations.
FORMS = Places()
FORMS.add("tiles", "tilewright.ops.contraction.products:TILES")
FORMS.add("nest", "tilewright.ops.contraction.products:NEST")
FORMS.add("tables", "tilewright.ops.contraction.tables.primitive:TABLES_PRIMITIVE")
FORMS.add("function", "tilewright.ops.contraction.function:FUNCTION")


def form_of(problem: Contraction) -> PrimitiveLowering:
    """The form of the primitive of a contraction."""
    found: PrimitiveLowering = FORMS[PrimitiveForm.of(problem).value]
    return found


def choose_contraction(problem: Contraction, machine: Machine) -> Any:
    """The cut of the primitive: register tiles, cache blocks, or blocks of lines.

    Raises
    ------
    ContractionPrimitive : if loops would round sums.
    """
    if not problem.is_unary:
        check_loops(problem)
    return form_of(problem).choose(problem, machine)


def bounds_of_contraction(problem: Contraction, machine: Machine, cut: Any) -> CutBounds | None:
    """The rules that fixed the blocks of a primitive; None of tiles that cover known sizes."""
    if not isinstance(cut, Blocking):
        return None
    acc = problem.types.acc  # to which the panels of tables are widened
    tables = PrimitiveForm.of(problem) is PrimitiveForm.TABLES
    types = (acc, acc) if tables else (problem.dtype, problem.in1_dtype)
    return blocking_bounds(machine, machine.isa.tile(*types), cut)


def takes_steps(problem: Contraction) -> bool:
    """Whether a primitive can apply the last touch before it stores."""
    return PrimitiveForm.of(problem) in (PrimitiveForm.TILES, PrimitiveForm.NEST)
