"""Eleven plain shapes of a product in three orders of the loops, as C and as Fortran."""

from __future__ import annotations

from dataclasses import dataclass

ORDERS = ("ijk", "ikj", "jki")
#: Index, size and operand dimensions by the letter of a loop.
_LOOPS = {"i": ("i", "m"), "j": ("j", "n"), "k": ("p", "k")}
_FORTRAN_TYPES = {"float": "real(4)", "double": "real(8)", "int": "integer(4)"}


@dataclass(frozen=True)
class PlainNest:
    """One shape of C += A*B.

    Attributes
    ----------
    element : C type of elements.
    transposed : the operands that are stored by columns; of Fortran's, by rows.
    scaled : whether the product is multiplied by a number.
    index : C type of indices and sizes.
    restrict : whether C promises that operands do not overlap.
    fixed : all three sizes where they are a constant, else 0.
    """

    name: str
    element: str = "float"
    transposed: str = ""
    scaled: bool = False
    index: str = "int"
    restrict: bool = False
    fixed: int = 0

    @property
    def dtype(self) -> str:
        """The name of its type in NumPy."""
        return {"float": "float32", "double": "float64", "int": "int32"}[self.element]


PLAIN_NESTS = (
    PlainNest("f32"),
    PlainNest("f64", "double"),
    PlainNest("i32", "int"),
    PlainNest("restricted", "double", restrict=True),
    PlainNest("long_indices", index="long"),
    PlainNest("unsigned_indices", index="unsigned long"),
    PlainNest("transposed_a", "double", transposed="a"),
    PlainNest("transposed_b", transposed="b"),
    PlainNest("by_columns", transposed="abc"),
    PlainNest("scaled", "double", scaled=True),
    PlainNest("fixed", fixed=96),
)
#: Loops over the rows and columns of each operand.
_DIMENSIONS = {"c": "ij", "a": "ik", "b": "kj"}


def c_source(nest: PlainNest, order: str) -> str:
    """A function ``void NAME_ORDER(c, a, b, m, n, k, alpha)``."""

    def element(name: str) -> str:
        (row, rows), (column, columns) = (_LOOPS[letter] for letter in _DIMENSIONS[name])
        by_columns = name in nest.transposed
        return f"{name}[{column} * {rows} + {row}]" if by_columns else f"{name}[{row} * {columns} + {column}]"

    sizes = f"{nest.index} m = m_, n = n_, k = k_;"
    if nest.fixed:
        sizes = f"enum {{ m = {nest.fixed}, n = {nest.fixed}, k = {nest.fixed} }};"
    loops = " ".join(
        "for ({0} {1} = 0; {1} < {2}; ++{1})".format(nest.index, *_LOOPS[letter]) for letter in order
    )
    restrict = " restrict" if nest.restrict else ""
    operands = [
        f"{kind}{nest.element} *{restrict} {name}"
        for kind, name in (("", "c"), ("const ", "a"), ("const ", "b"))
    ]
    given = ", ".join([*operands, *(f"{nest.index} {name}_" for name in "mnk"), f"{nest.element} alpha"])
    factor = "alpha * " if nest.scaled else ""
    return (
        f"void {nest.name}_{order}({given}) {{\n    {sizes}\n    {loops}\n"
        f"        {element('c')} += {factor}{element('a')} * {element('b')};\n}}\n"
    )


def fortran_source(nest: PlainNest, order: str) -> str:
    """The same as a subroutine with C's interface; what is by rows in C is by columns here."""
    kind = _FORTRAN_TYPES[nest.element]
    index = "integer(4)" if nest.index == "int" else "integer(8)"
    size = {name: str(nest.fixed) if nest.fixed else f"{name}_" for name in "mnk"}

    def dimensions(name: str) -> str:
        letters = _DIMENSIONS[name][:: -1 if name in nest.transposed else 1]
        return ", ".join(size[_LOOPS[letter][1]] for letter in letters)

    def element(name: str) -> str:
        letters = _DIMENSIONS[name][:: -1 if name in nest.transposed else 1]
        return f"{name}({', '.join(_LOOPS[letter][0] for letter in letters)})"

    factor = "alpha * " if nest.scaled else ""
    lines = [
        f"subroutine {nest.name}_{order}(c, a, b, m_, n_, k_, alpha) bind(c)",
        f"  {index}, value :: m_, n_, k_",
        f"  {kind}, value :: alpha",
        *(f"  {kind} :: {name}({dimensions(name)})" for name in "cab"),
        f"  {index} :: i, j, p",
        *(f"  do {_LOOPS[letter][0]} = 1, {size[_LOOPS[letter][1]]}" for letter in order),
        f"    {element('c')} = {element('c')} + {factor}{element('a')} * {element('b')}",
        *["  end do"] * 3,
        "end subroutine",
    ]
    return "\n".join(lines) + "\n"
