"""Eleven plain shapes of a product in three orders of the loops, as C and as Fortran."""

from __future__ import annotations

from itertools import product

from tilewright.records import dataclass

ORDERS = ("ijk", "ikj", "jki")
#: Loops of C and Fortran by the letter of their index.
_C_LOOP = {
    "i": "for ({0} i = 0; i < m; ++i)",
    "j": "for ({0} j = 0; j < n; ++j)",
    "k": "for ({0} p = 0; p < k; ++p)",
}
_FORTRAN_LOOP = {"i": "do i = 1, m", "j": "do j = 1, n", "k": "do p = 1, k"}


@dataclass(frozen=True)
class PlainNest:
    """One shape.

    Attributes
    ----------
    element : C type of elements.
    c, a, b : subscripts in C, of arrays passed as pointers to their first element.
    update : the statement, in which C, A, B stand for elements.
    before : a statement over the elements of C in a nest of its own, inside of the same function.
    index : C type of indices and sizes.
    restrict : whether C promises that arrays do not overlap.
    fortran : the same in Fortran, from declarations to subscripts; "" if C alone has it.
    """

    name: str
    element: str = "float"
    c: str = "c[i * n + j]"
    a: str = "a[i * k + p]"
    b: str = "b[p * n + j]"
    update: str = "C += A * B;"
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
    PlainNest("restrict", "double", restrict=True),
    PlainNest("long_indices", index="long"),
    PlainNest("unsigned_indices", index="unsigned long"),
    PlainNest("transposed_a", "double", a="a[p * m + i]"),
    PlainNest("transposed_b", b="b[j * k + p]"),
    PlainNest("column_major", c="c[j * m + i]", a="a[p * m + i]", b="b[j * k + p]"),
    PlainNest("alpha", "double", update="C += alpha * A * B;"),
    PlainNest("fixed", fixed=96),
)


def c_source(nest: PlainNest, order: str) -> str:
    """A function ``void NAME(c, a, b, m, n, k, alpha)`` of one shape in one order."""
    restrict = " restrict" if nest.restrict else ""
    statement = nest.update.replace("A", nest.a).replace("B", nest.b).replace("C", nest.c)
    loops = " ".join(_C_LOOP[letter].format(nest.index) for letter in order)
    sizes = (
        f"enum {{ m = {nest.fixed}, n = {nest.fixed}, k = {nest.fixed} }}; (void)m_; (void)n_; (void)k_;"
        if nest.fixed
        else f"{nest.index} m = m_, n = n_, k = k_;"
    )
    types = ", ".join(f"{nest.index} {name}_" for name in "mnk")
    return (
        f"void {nest.name}_{order}({nest.element} *{restrict} c, const {nest.element} *{restrict} a, "
        f"const {nest.element} *{restrict} b, {types}, {nest.element} alpha) {{\n"
        f"    {sizes}\n    {loops}\n        {statement}\n}}\n"
    )


_FORTRAN_TYPES = {"float": "real(4)", "double": "real(8)", "int": "integer(4)"}


def fortran_source(nest: PlainNest, order: str) -> str:
    """The same shape as a subroutine of C's interface, matrices in columns."""
    kind = _FORTRAN_TYPES[nest.element]
    index = "integer(4)" if nest.index == "int" else "integer(8)"
    transposed_a, transposed_b = "p * m" in nest.a, "j * k" in nest.b
    row_major = not (transposed_a and transposed_b)
    sizes = [f"m = {nest.fixed}, n = {nest.fixed}, k = {nest.fixed}"] if nest.fixed else []
    shapes = {
        "c": ("m", "n"),
        "a": ("k", "m") if transposed_a and row_major else ("m", "k"),
        "b": ("n", "k") if transposed_b and row_major else ("k", "n"),
    }
    element = {
        "C": "c(i, j)",
        "A": f"a({', '.join('p' if one == 'k' else 'i' for one in shapes['a'])})",
        "B": f"b({', '.join('p' if one == 'k' else 'j' for one in shapes['b'])})",
    }
    scaled = "alpha * " if "alpha" in nest.update else ""
    lines = [
        f"subroutine {nest.name}_{order}(c, a, b, m_, n_, k_, alpha) bind(c)",
        f"  {index}, value :: m_, n_, k_",
        f"  {kind}, value :: alpha",
    ]
    names = {"m": "m_", "n": "n_", "k": "k_"} if not nest.fixed else dict.fromkeys("mnk", str(nest.fixed))
    lines += [f"  {kind} :: {name}({names[shape[0]]}, {names[shape[1]]})" for name, shape in shapes.items()]
    del sizes
    lines += [f"  {index} :: i, j, p"]
    lines += ["  " + _FORTRAN_LOOP[letter].replace(letter if letter != "k" else "k", letter) for letter in ()]
    for letter in order:
        loop = {"i": ("i", "m"), "j": ("j", "n"), "k": ("p", "k")}[letter]
        lines.append(f"  do {loop[0]} = 1, {names[loop[1]]}")
    lines.append(f"    {element['C']} = {element['C']} + {scaled}{element['A']} * {element['B']}")
    lines += ["  end do"] * 3
    lines.append("end subroutine")
    return "\n".join(lines) + "\n"


def all_c() -> str:
    """Every shape in every order, as one C file."""
    return "\n".join(c_source(nest, order) for nest, order in product(PLAIN_NESTS, ORDERS))


def all_fortran() -> str:
    """Every shape in every order, as one Fortran file."""
    return "\n".join(fortran_source(nest, order) for nest, order in product(PLAIN_NESTS, ORDERS))
