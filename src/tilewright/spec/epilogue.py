"""Epilogues: what is done to finished sums of a product before the store, with its meaning in NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

import numpy as np

from tilewright.errors import InvalidChoice, StepDtype, shown
from tilewright.records import dataclass
from tilewright.spec.arguments import as_text, check_items, parse_choice, real_number
from tilewright.spec.dtype import C64, C128, DTYPES, F32, F64, DType, Kind, integer_range, parse_dtype
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.spec.records import set_fields
from tilewright.typing import ActivationName

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The functions that are activations; each has a value at 0, so that padding raises no flag.
ACTIVATIONS: tuple[UnaryOp, ...] = tuple(map(UnaryOp, get_args(ActivationName)))

#: Between the steps of an epilogue in the name of a kernel.
THEN = "_then_"


class Along(Enum):
    """What a vector has one element for: each column of C, each row, or (a scalar) all of C."""

    COLUMN = "column"
    ROW = "row"
    ALL = "all"

    @property
    def transposed(self) -> Along:
        """The same of the transposed C."""
        return {Along.COLUMN: Along.ROW, Along.ROW: Along.COLUMN}.get(self, self)

    def shape(self, m: int, n: int) -> tuple[int, int]:
        """The shape that broadcasts over an m×n matrix."""
        return {"column": (1, n), "row": (m, 1), "all": (1, 1)}[self.value]


def _float_of(dtype: DType) -> DType:
    """The floats in which sums of a type go on: f32 for integers of 32 bits, f64 for longer ones."""
    if not dtype.is_integer:
        return dtype
    return F64 if dtype.bits > F32.bits else F32


def _find_type(dtype: DType | str | None) -> DType | None:
    return None if dtype is None else parse_dtype(dtype)


# --- steps ----------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class Bias:
    """value + bias: a vector with one element for each column of C, or for each row.

    Parameters
    ----------
    along : "column" or "row".
    dtype : element type of the vector; by default that of the value it is added to.
    """

    along: Along
    dtype: DType | None

    def __init__(self, along: Along | str = Along.COLUMN, dtype: DType | str | None = None) -> None:
        allowed = (Along.COLUMN, Along.ROW)
        set_fields(self, along=parse_choice(Along, along, "along of bias", allowed), dtype=_find_type(dtype))

    def __str__(self) -> str:
        return _spelled("bias", self.along, Along.COLUMN, self.dtype)


@dataclass(frozen=True, init=False)
class Scale:
    """value · scale, in floats: one scalar, or a vector with one element for each column of C, or each row.

    Parameters
    ----------
    along : "all", "column" or "row".
    dtype : element type of the scales, a float; by default that of the value they multiply: f32 of sums in
        32-bit integers, f64 of longer ones.
    """

    along: Along
    dtype: DType | None

    def __init__(self, along: Along | str = Along.ALL, dtype: DType | str | None = None) -> None:
        set_fields(self, along=parse_choice(Along, along, "along of scale"), dtype=_find_type(dtype))

    def __str__(self) -> str:
        return _spelled("scale", self.along, Along.ALL, self.dtype)


@dataclass(frozen=True, init=False)
class Residual:
    """value + residual: a matrix of C's shape and layout (row-major beside a packed C) with its own strides.

    Parameters
    ----------
    dtype : its element type; by default that of C.
    """

    dtype: DType | None

    def __init__(self, dtype: DType | str | None = None) -> None:
        set_fields(self, dtype=_find_type(dtype))

    def __str__(self) -> str:
        return "residual" if self.dtype is None else f"residual:{self.dtype}"


@dataclass(frozen=True, init=False)
class Activation:
    """f(value): one of `ACTIVATIONS`. Of integers ReLU alone."""

    op: UnaryOp

    def __init__(self, op: UnaryOp | str) -> None:
        set_fields(self, op=parse_choice(UnaryOp, op, "activation", ACTIVATIONS))

    @property
    def light(self) -> bool:
        """Whether it is one operation of the hardware."""
        return self.op.single

    def __str__(self) -> str:
        return str(self.op.value)


@dataclass(frozen=True, init=False)
class Clamp:
    """min(max(value, low), high); NaN stays NaN. Bounds may be infinite; of integers they are integers."""

    low: float
    high: float

    def __init__(self, low: float, high: float) -> None:
        set_fields(self, low=real_number(low, "low of a clamp"), high=real_number(high, "high of a clamp"))
        if not self.low <= self.high:
            raise InvalidChoice(
                name="clamp",
                found=f"{self.low}:{self.high}",
                allowed="numbers, the first not above the second",
            )

    def __str__(self) -> str:
        return f"clamp:{_number(self.low)}:{_number(self.high)}"


@dataclass(frozen=True)
class Saturate:
    """The value as an integer of C's type, of 8 or 16 bits: rounded to nearest, ties to even, and bounded.

    NaN becomes 0. The last step; without it, integers wrap around and floats are stored in floats alone.
    """

    def __str__(self) -> str:
        return "saturate"


Step: TypeAlias = Bias | Scale | Residual | Activation | Clamp | Saturate

#: Steps with an operand of their own, by the name of the operand.
_OPERANDS: dict[str, type[Bias] | type[Scale] | type[Residual]] = {
    "bias": Bias,
    "scale": Scale,
    "residual": Residual,
}


def _spelled(word: str, along: Along, usual: Along, dtype: DType | None) -> str:
    parts = [word, *([] if along is usual else [along.value]), *([] if dtype is None else [dtype.name])]
    return ":".join(parts)


def _number(value: float) -> str:
    """The shortest text of a number.

    >>> _number(6.0), _number(-0.5), _number(float("inf"))
    ('6', '-0.5', 'inf')
    """
    return repr(value).removesuffix(".0").replace("e+", "e")


def parse_step(text: str) -> Step:
    """One step from its text.

    Raises
    ------
    InvalidChoice, UnsupportedDtype

    >>> parse_step("scale:column"), parse_step("clamp:0:6")
    (Scale(along=<Along.COLUMN: 'column'>, dtype=None), Clamp(low=0.0, high=6.0))
    """
    word, *rest = text.strip().split(":")
    match word:
        case "bias" | "scale":
            along = [part for part in rest if part in {member.value for member in Along}]
            types = [part for part in rest if part in DTYPES]
            if rest == [*along, *types] and len(along) <= 1 and len(types) <= 1:
                options = {**({"along": along[0]} if along else {}), **({"dtype": types[0]} if types else {})}
                return Bias(**options) if word == "bias" else Scale(**options)
        case "residual" if len(rest) <= 1:
            return Residual(*rest)
        case "clamp" if len(rest) == 2:
            try:
                low, high = map(float, rest)
            except ValueError:
                pass
            else:
                return Clamp(low, high)
        case "saturate" if not rest:
            return Saturate()
        case _ if not rest and any(word == op.value for op in ACTIVATIONS):
            return Activation(word)
    words = ", ".join(op.value for op in ACTIVATIONS)
    allowed = (
        f"{words}, bias[:column|row][:dtype], scale[:all|column|row][:dtype], residual[:dtype], "
        "clamp:LOW:HIGH, saturate"
    )
    raise InvalidChoice(name="step of an epilogue", found=shown(text), allowed=allowed)


# --- the sequence ---------------------------------------------------------------------------------


class TypedStep(NamedTuple):
    """A step of a problem whose types are known.

    Attributes
    ----------
    step : what is done; of operands without a type given, with it.
    dtype : what it computes in: the value is converted before, if that has another type.
    operand : the name of its operand, or None.
    """

    step: Step
    dtype: DType
    operand: str | None

    @property
    def element(self) -> DType:
        """The element type of its operand."""
        assert isinstance(self.step, (Bias, Scale, Residual))
        assert self.step.dtype is not None
        return self.step.dtype


@dataclass(frozen=True, init=False)
class Epilogue:
    """A sequence of steps between the sums of a product, alpha·A·B + beta·C, and the one store of C.

    Steps compute in the type of the sums. Sums of integers become floats (32 bits: f32, longer: f64) at the
    first step that needs them: a scale, or an operand of floats. At the end the value is converted once to C.

    Parameters
    ----------
    steps : in their order. Operands are named after their steps, further ones of a kind "bias_2", ...

    Raises
    ------
    InvalidChoice : if a step follows `Saturate`.

    Examples
    --------
    >>> str(Epilogue([Bias(), Activation("gelu")]))
    'bias,gelu'
    >>> Epilogue.parse("scale:column,bias,clamp:0:6").steps[-1]
    Clamp(low=0.0, high=6.0)
    """

    steps: tuple[Step, ...]

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        found = check_items(steps, "epilogue", "a sequence of steps, or text such as 'bias,gelu'")
        set_fields(self, steps=found)
        for step in found:
            if not isinstance(step, Step):
                known = ", ".join(kind.__name__ for kind in Step.__args__)
                raise InvalidChoice(name="step of an epilogue", found=shown(step), allowed=known)
        if any(isinstance(step, Saturate) for step in self.steps[:-1]):
            raise InvalidChoice(name="epilogue", found=shown(str(self)), allowed="saturate as the last step")

    def __repr__(self) -> str:
        return f"Epilogue.parse({str(self)!r})"

    @classmethod
    def parse(cls, value: Epilogue | str | Iterable[Step] | None) -> Epilogue:
        """The epilogue of a record, of text such as "bias,gelu", of steps, or (None) without any.

        Raises
        ------
        InvalidChoice, UnsupportedDtype
        """
        match value:
            case Epilogue():
                return value
            case None:
                return cls()
            case str():
                text = as_text(value) or ""
                return cls(parse_step(part) for part in text.split(",")) if text.strip() else cls()
            case _:
                return cls(value)

    def __str__(self) -> str:
        return ",".join(map(str, self.steps))

    def __bool__(self) -> bool:
        return bool(self.steps)

    @property
    def saturates(self) -> bool:
        """Whether the last step rounds and bounds the value to an integer C."""
        return bool(self.steps) and isinstance(self.steps[-1], Saturate)

    @property
    def identifier(self) -> str:
        """As a part of kernel names.

        >>> Epilogue.parse("bias:row,clamp:-0.5:6").identifier
        'bias_row_then_clamp_m0p5_6'
        """
        return str(self).translate(str.maketrans(":-.", "_mp")).replace(",", THEN)

    def transposed(self) -> Epilogue:
        """The epilogue of the transposed product: rows and columns change places."""
        return Epilogue(
            replace_along(step, step.along.transposed) if isinstance(step, (Bias, Scale)) else step
            for step in self.steps
        )

    def typed(self, acc: DType, c: DType | None) -> tuple[TypedStep, ...]:
        """Each step with the type it computes in, and the type of its operand.

        Parameters
        ----------
        acc : of the sums; complex where they are.
        c : of C; None where it is not chosen yet.

        Raises
        ------
        StepDtype : if a step has no meaning on its type.
        """
        return tuple(self._typed(acc, c))

    def _typed(self, current: DType, c: DType | None) -> Iterator[TypedStep]:
        seen: dict[str, int] = {}
        for step in self.steps:
            operand = next((name for name, kind in _OPERANDS.items() if isinstance(step, kind)), None)
            typed, current = _typed_step(step, current, c)
            if operand is not None:
                seen[operand] = seen.get(operand, 0) + 1
                operand += f"_{seen[operand]}" if seen[operand] > 1 else ""
            yield TypedStep(typed, current, operand)

    def result(self, acc: DType, c: DType | None = None) -> DType:
        """The type of the value after the last step.

        >>> from tilewright.spec.dtype import I32
        >>> Epilogue.parse("scale:column,bias").result(I32).name
        'f32'
        """
        steps = self.typed(acc, c)
        return steps[-1].dtype if steps else acc

    def reference(
        self, values: NDArray[Any], operands: Sequence[NDArray[Any]], acc: DType, c: DType
    ) -> NDArray[Any]:
        """The meaning of the epilogue on exact sums, in float64, complex128 or 64-bit integers.

        Parameters
        ----------
        values : (m, n).
        operands : one for each step that has one, in their order, each of a shape that broadcasts.
        acc, c : types of the sums and of C.
        """
        given = iter(operands)
        current = acc
        for step, dtype, name in self.typed(acc, c):
            if current.is_integer:
                values = values.astype(current.numpy).astype(np.int64)  # wrapped around
            if current.is_integer and not dtype.is_integer and not isinstance(step, Saturate):
                values = values.astype(np.float64)
            operand = None if name is None else np.asarray(next(given))
            values = apply_step(step, values, operand, c)
            current = dtype
        return values


def replace_along(step: Bias | Scale, along: Along) -> Bias | Scale:
    """A step whose vector lies along another axis."""
    return type(step)(along, step.dtype)


def _typed_step(step: Step, current: DType, c: DType | None) -> tuple[Step, DType]:
    """A step with the type of its operand, and the type it computes in, given the type of the value."""

    def refuse(reason: str) -> StepDtype:
        return StepDtype(step=step, dtype=current, reason=reason)

    is_complex = current.kind is Kind.COMPLEX
    match step:
        case Bias(dtype=given) | Residual(dtype=given):
            usual = c if isinstance(step, Residual) and c is not None else current
            operand = given or usual
            if current.is_integer and not operand.is_integer:
                current = _float_of(current)
            if not current.holds(operand):
                raise refuse(f"an operand of {operand} does not widen to it")
            return replace_dtype(step, operand), current
        case Scale(dtype=given):
            if is_complex:
                raise refuse("complex products are scaled by alpha")
            current = _float_of(current)
            operand = given or current
            if not current.holds(operand):
                raise refuse(f"scales of {operand} do not widen to {current}")
            return replace_dtype(step, operand), current
        case Activation(op):
            if is_complex or (current.is_integer and op is not UnaryOp.RELU):
                raise refuse("activations are functions of floats; a scale makes floats of integer sums")
            return step, current
        case Clamp(low, high):
            if is_complex:
                raise refuse("complex numbers have no order")
            if current.is_integer and any(math.isfinite(x) and not x.is_integer() for x in (low, high)):
                raise refuse("its bounds are not integers")
            return step, current
        case Saturate():
            if is_complex:
                raise refuse("complex numbers are not rounded to integers")
            if c is None or not c.is_integer or c.bits > 16:
                raise refuse(f"C is {c}, not an integer of 8 or 16 bits")
            return step, current


def replace_dtype(step: Bias | Scale | Residual, dtype: DType) -> Step:
    """A step whose operand has a type."""
    if isinstance(step, Residual):
        return Residual(dtype)
    return type(step)(step.along, dtype)


def apply_step(step: Step, values: NDArray[Any], operand: NDArray[Any] | None, c: DType) -> NDArray[Any]:
    """The meaning of one step on float64, complex128 or 64-bit integers; operands broadcast."""
    with np.errstate(all="ignore"):
        match step:
            case Bias() | Residual():
                assert operand is not None
                return np.asarray(values + operand.astype(values.dtype))
            case Scale():
                assert operand is not None
                return np.asarray(values * operand.astype(values.dtype))
            case Activation(op):
                return np.maximum(values, 0) if values.dtype.kind == "i" else meaning(op, values)
            case Clamp(low, high):
                return _clamped(values, low, high)
            case Saturate():
                least, most = integer_range(c)
                if values.dtype.kind != "i":
                    values = np.nan_to_num(np.rint(values), posinf=most + 1.0, neginf=least - 1.0)
                return np.asarray(np.clip(values, least, most).astype(np.int64))


def _clamped(values: NDArray[Any], low: float, high: float) -> NDArray[Any]:
    if values.dtype.kind == "i":
        least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        low = int(low) if math.isfinite(low) else least
        high = int(high) if math.isfinite(high) else most
    bounded: NDArray[Any] = np.where(values < low, low, np.where(values > high, high, values))
    return bounded


def widened(acc: DType, *, is_complex: bool) -> DType:
    """The type that an epilogue sees sums in: of complex products, pairs of them."""
    return {F32: C64, F64: C128}[acc] if is_complex else acc
