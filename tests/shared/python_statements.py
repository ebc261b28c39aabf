"""Nests of several statements written at random: loops, subscripts, sums in variables, conditions."""

from __future__ import annotations

import random
from textwrap import indent

#: Ranges of a loop, with names that are filled in: an outer variable, or a size if there is none.
HEADERS = (
    *("range({size})",) * 6,
    *("range({outer})", "range({outer} + 1)", "range({outer}, {size})", "range({outer} + 1, {size})") * 2,
    "range({size} - 1, -1, -1)",
    "reversed(range({size}))",
    "range(1, {size})",
    "range(0, {size}, 2)",
    "range({outer} - 1, -1, -1)",
    "range({size} - {outer})",
    "range(q, {size})",
)
#: Subscripts of an axis.
SUBSCRIPTS = (
    *("{name}",) * 18,
    "{name} + 1",
    "{name} - 1",
    "q",
    "0",
    "n - 1 - {name}",
    "2 * {name}",
    "{name} + p",
)
#: Values of an element that is neither accumulated nor a plain product.
VALUES = (
    "{one} + {other}",
    "{one} - {other}",
    "alpha * {one}",
    "max({one}, {other})",
    "min({one}, 2)",
    "abs({one})",
    "{one} / {other}",
    "{one} / 4",
    "np.maximum({one}, beta)",
    "{one} if {one} > {other} else {other}",
    "-{one}",
    "{one} ** 2",
    "0",
    "beta",
    "{one}",
)
#: Products that are summed.
PRODUCTS = (
    "{one} * {other}",
    "{one} * {other}",
    "alpha * {one} * {other}",
    "{one} * {one}",
    "-{one} * {other}",
)
#: What is made of a sum.
BEHIND = ("{to} = s", "{to} += s", "{to} = max(s, 0)", "{to} = s / 3", "{to} = {to} - s")
#: Conditions around statements.
CONDITIONS = (
    "beta == 0",
    "{name} <= {other}",
    "{name} != {other}",
    "{name} < q",
    "{one} > 0",
    "not p",
    "{name} == q",
)


class StatementWriter:
    """Writes one nest.

    Parameters
    ----------
    rng : draws the forms.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names: list[str] = []
        self.axes = {"A": 2, "B": 2, "C": 2, "D": rng.choice((1, 2))}

    def nest(self) -> str:
        """The text of a nest of two or three loops, at least one statement of which is a product."""
        return self.loop("ijk", self.rng.choice((2, 3, 3)))

    def loop(self, free: str, depth: int) -> str:
        """A loop with statements and further loops in its body."""
        rng = self.rng
        name, size = free[0], rng.choice("nnnml")
        outer = rng.choice(self.names) if self.names else "q"
        header = rng.choice(HEADERS if self.names else HEADERS[:6]).format(size=size, outer=outer)
        self.names.append(name)
        body = [self.statement() for _ in range(rng.choice((0, 0, 1)))]
        if depth > 1:
            body += [self.loop(free[1:], depth - 1) for _ in range(rng.choice((1, 1, 2)))]
            if rng.random() < 0.25:
                body = [self.summed(free[1]), *body]
        else:
            body.append(self.product())
        for _ in range(rng.choice((0, 0, 0, 1))):
            body.append(self.statement())
        if rng.random() < 0.12:
            place = rng.randrange(len(body))
            body[place] = f"if {self.condition()}:\n{indent(body[place], '    ')}"
        self.names.pop()
        return f"for {name} in {header}:\n{indent(chr(10).join(body), '    ')}"

    def element(self) -> str:
        """An element of an array of one or two axes."""
        array = self.rng.choice("ABCD")
        axes = [
            self.rng.choice(SUBSCRIPTS).format(name=self.rng.choice(self.names))
            for _ in range(self.axes[array])
        ]
        return f"{array}[{', '.join(axes)}]"

    def value(self, forms: tuple[str, ...]) -> str:
        """A value of two elements."""
        return self.rng.choice(forms).format(one=self.element(), other=self.element())

    def statement(self) -> str:
        """An assignment to an element, of a value or from another element."""
        sign = self.rng.choice(("=", "=", "+=", "-=", "*=", "/="))
        return f"{self.element()} {sign} {self.value(VALUES)}"

    def product(self) -> str:
        """An element that products are added to."""
        return f"{self.element()} {self.rng.choice(('+=', '+=', '-=', '='))} {self.value(PRODUCTS)}"

    def summed(self, name: str) -> str:
        """A sum in a variable, and what is made of it."""
        outer = self.rng.choice(self.names)
        header = self.rng.choice(HEADERS).format(size=self.rng.choice("nml"), outer=outer)
        start = self.rng.choice(("0", "0", "0.0", self.element()))
        self.names.append(name)
        added = self.value(PRODUCTS)
        self.names.pop()
        behind = self.rng.choice(BEHIND).format(to=self.element())
        return f"s = {start}\nfor {name} in {header}:\n    s += {added}\n{behind}"

    def condition(self) -> str:
        """A condition on parameters, loop variables or elements."""
        pair = [self.rng.choice([*self.names, "q"]) for _ in range(2)]
        return self.rng.choice(CONDITIONS).format(name=pair[0], other=pair[1], one=self.element())
