"""Loop nests in C, drawn at random: products of every form, and nests that only look like them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from recognise.calls import evaluated
from recognise.random_finished import finished
from recognise.random_forms import blocked, rows, triangle, windows
from recognise.random_statements import statements

#: Element types of A and B, of C and of sums: names in comments and in C. Sums of unsigned integers may wrap.
TYPES = {
    "u32": ("u32", "u32", "uint32_t", "uint32_t"),
    "u64": ("u64", "u64", "uint64_t", "uint64_t"),
    "i32": ("i32", "i32", "int32_t", "int32_t"),
    "i64": ("i64", "i64", "int64_t", "int64_t"),
    "i8": ("i8", "i32", "int8_t", "int32_t"),
    "u8": ("u8", "i32", "uint8_t", "int32_t"),
    "i16": ("i16", "i32", "int16_t", "int32_t"),
    "f32": ("f32", "f32", "float", "float"),
    "f64": ("f64", "f64", "double", "double"),
    "wide": ("f32", "f64", "float", "double"),
}
#: No size that drivers draw is larger.
LARGEST = 64
#: Operands, and the roles of the loops whose indices stand in them.
ROLES = {"c": "mnb", "a": "mkb", "b": "nkb"}
#: Strides may be larger than what they step over by so much, and operands begin so far into their arrays.
SLACK = 7
#: Elements behind what a nest reaches: squares of indices that wrap at 64 are not largest with their index.
BEHIND = 70


@dataclass(frozen=True)
class Level:
    """One loop: index = start, start + step, ... below `bound`; `reach` is above every index."""

    index: str
    role: str
    bound: str
    start: int
    step: int
    reach: int
    style: str
    kind: str

    @property
    def head(self) -> str:
        """The loop's first line."""
        i, step = self.index, self.step
        up = f"{i} += {step}" if step > 1 else f"{i}++"
        match self.style:
            case "down":
                return f"for ({self.kind} {i} = {self.bound} - 1; {i} >= {self.start}; {i} -= {step})"
            case "at most":
                return f"for ({self.kind} {i} = {self.start}; {i} <= {self.bound} - 1; {up})"
            case _:
                return f"for ({self.kind} {i} = {self.start}; {i} < {self.bound}; {up})"


@dataclass(frozen=True)
class Nest:
    """A function: loops, outermost first, where elements stand, what is summed and how.

    Attributes
    ----------
    subscripts : of C, A and B, as C expressions.
    strides : numbers that the function is given, which subscripts name.
    restricted : no array overlaps C, and the program says so.
    form : "memory", "scalar", "zero", "beta": how sums are kept and where C begins.
    """

    name: str
    types: str
    levels: tuple[Level, ...]
    subscripts: dict[str, str]
    strides: dict[str, int]
    form: str
    factor: str
    sign: str
    mistake: str
    restricted: bool

    def length(self, operand: str) -> int:
        """Elements that an operand's array has: behind the largest subscript that any index could make."""
        values = {level.index: level.reach - 1 for level in self.levels} | self.strides
        return evaluated(self.subscripts[operand].replace("/", "//"), values) + BEHIND

    @property
    def text(self) -> str:
        """The function, and the comment that says how it is called."""
        element, result, c_element, c_result = TYPES[self.types]
        arrays = {"c": (result, c_result), "a": (element, c_element), "b": (element, c_element)}
        scalar = {"u32": "i32", "u64": "i64", "i32": "i32", "i64": "i64", "f32": "f32", "f64": "f64"}[result]
        alone = " alone" if self.restricted else ""
        arguments = [f"{kind} {name}[{self.length(name)}]{alone}" for name, (kind, _) in arrays.items()]
        arguments += ["int m", "int n", "int k"]
        arguments += [f"int {name}={value}" for name, value in self.strides.items()]
        arguments += [f"{scalar} alpha=3", f"{scalar} beta=2"]
        restrict = "restrict " if self.restricted else ""
        parameters = [f"{kind} *{restrict}{name}" for name, (_, kind) in arrays.items()]
        parameters += [f"int {name}" for name in ("m", "n", "k", *self.strides)]
        parameters += [f"{c_result} alpha", f"{c_result} beta"]
        comment = f"// {self.name}({', '.join(arguments)}) any\n"
        body = "\n".join(f"    {line}" for line in self._body(c_result))
        note = f"/* {self.mistake} */\n" if self.mistake else ""
        return f"{note}{comment}void {self.name}({', '.join(parameters)}) {{\n{body}\n}}\n"

    def _body(self, result: str) -> Iterator[str]:
        c, a, b = (f"{name}[{self.subscripts[name]}]" for name in "cab")
        factors = [f"({result}){a}", f"({result}){b}"]
        term = " * ".join([*factors, self.factor] if self.factor else factors)
        depth = next(
            (place for place, level in enumerate(self.levels) if level.role == "k"), len(self.levels)
        )
        before = {"zero": f"{c} = 0;", "beta": f"{c} *= beta;"}.get(self.form)
        if self.form == "memory":
            yield from self._nested(self.levels, [f"{c} {self.sign}= {term};"])
            return
        inner = self.levels[depth:]
        if self.form == "scalar":
            statements = [
                f"{result} sum = 0;",
                *self._nested(inner, [f"sum {self.sign}= {term};"]),
                f"{c} += sum;",
            ]
        else:
            statements = [before or "", *self._nested(inner, [f"{c} {self.sign}= {term};"])]
        yield from self._nested(self.levels[:depth], statements)

    @staticmethod
    def _nested(levels: tuple[Level, ...], statements: list[str]) -> Iterator[str]:
        for level in levels:
            yield f"{level.head} {{"
        yield from statements
        yield from "}" * len(levels)


def draw(random: Random, name: str) -> Nest:
    """One function; a third of them have a mistake that makes another function of a product."""
    roles = ["m", "k", *random.choice(["n", "n", "n", ""])]
    roles += random.choices("mnkb", k=random.choice([0, 0, 0, 1, 1, 2]))
    form = random.choice(["memory", "memory", "scalar", "zero", "beta"])
    random.shuffle(roles)
    if form != "memory":
        roles.sort(key=lambda role: role == "k")
    levels = tuple(_level(random, role, place, roles) for place, role in enumerate(roles))
    strides: dict[str, int] = {}
    subscripts = {}
    for operand, within in ROLES.items():
        chosen = [level for level in levels if level.role in within]
        subscripts[operand] = _subscript(random, chosen, strides)
    nest = Nest(
        name,
        random.choice(list(TYPES)),
        levels,
        subscripts,
        strides,
        form,
        random.choice(["", "", "", "alpha", "2"]),
        random.choice("+++-"),
        "",
        random.random() < 1 / 3,
    )
    return random.choice(MISTAKES)(random, nest) if random.random() < 1 / 3 else nest


def _level(random: Random, role: str, place: int, roles: list[str]) -> Level:
    first = role != "b" and roles.index(role) == place
    drawn = first and random.random() < 2 / 3
    count = LARGEST if drawn else random.choice([16, 33, 48] if first else [2, 3, 5])
    bound = role if drawn else str(count)
    start = random.choice([0, 0, 0, 1, 2])
    style = random.choice(["below", "below", "below", "at most", "down"])
    kind = random.choice(["int", "int", "long"])
    if not drawn and style == "below":
        kind = random.choice([kind, "unsigned", "unsigned long"])
    return Level(f"i{place}", role, bound, start, random.choice([1, 1, 1, 2, 3]), count, style, kind)


def _subscript(random: Random, levels: list[Level], strides: dict[str, int]) -> str:
    """A subscript in which every index has a stride of its own."""
    shuffled = random.sample(levels, len(levels))
    offset = random.choice([0, 0, random.randrange(SLACK)])
    terms, stride = [str(offset)] if offset else [], random.choice([1, 1, 1, 2])
    for level in shuffled:
        text = str(stride)
        if stride > 1 and random.random() < 1 / 2:
            text = f"s{len(strides)}"
            strides[text] = stride
        terms.append(level.index if stride == 1 else f"{level.index} * {text}")
        stride = stride * level.reach + random.choice([0, 0, random.randrange(SLACK)])
    random.shuffle(terms)
    return " + ".join(terms) or "0"


# Mistakes


def _unsigned(nest: Nest, **changed: object) -> Nest:
    """A nest that reads what it writes: its sums may leave any range."""
    return replace(nest, types="u32", **changed)  # type: ignore[arg-type]


def _other_index(random: Random, nest: Nest) -> Nest:
    operand = random.choice("cab")
    # Sums are stored outside the loops over depth, where those have no index.
    known = [level for level in nest.levels if operand != "c" or nest.form == "memory" or level.role != "k"]
    old, new = random.choice(nest.levels).index, random.choice(known).index
    text = nest.subscripts[operand].replace(old, new)
    return _unsigned(
        nest, subscripts=nest.subscripts | {operand: text}, mistake=f"{old} is {new} in {operand}"
    )


def _triangle(random: Random, nest: Nest) -> Nest:
    inner = random.randrange(1, len(nest.levels))
    outer = random.choice(nest.levels[:inner]).index
    levels = list(nest.levels)
    # One less than an index of 0 is -1, not the largest number without a sign.
    last = outer if levels[inner].style == "below" else f"(long){outer}"
    bound = random.choice([last, f"{last} + 1", f"({last} < 9 ? {last} : 9)"])
    levels[inner] = replace(levels[inner], bound=bound, reach=LARGEST)
    return replace(nest, levels=tuple(levels), mistake=f"a triangle of {outer}")


def _product_of_indices(random: Random, nest: Nest) -> Nest:
    operand, index = random.choice("ab"), random.choice(nest.levels).index
    text = f"{nest.subscripts[operand]} + {index} * {index} % 64"
    return replace(nest, subscripts=nest.subscripts | {operand: text}, mistake=f"{operand} at a square")


def _shared_memory(random: Random, nest: Nest) -> Nest:
    factor = f"c[{nest.subscripts['c']} + {random.randrange(3)}]"
    return _unsigned(nest, factor=factor, mistake="C is a factor too")


def _condition(random: Random, nest: Nest) -> Nest:
    index = random.choice(nest.levels).index
    return replace(nest, factor=f"({index} != 3)", mistake=f"a hole at {index}")


def _element_of_c(random: Random, nest: Nest) -> Nest:
    levels = {level.index: level for level in nest.levels if level.role != "k"}
    index = random.choice(list(levels))
    text = nest.subscripts["c"].replace(index, f"({index} / 2)")
    return _unsigned(nest, subscripts=nest.subscripts | {"c": text}, mistake=f"C at half of {index}")


def _stride_too_small(random: Random, nest: Nest) -> Nest:
    if not nest.strides:
        return nest
    name = random.choice(list(nest.strides))
    return _unsigned(nest, strides=nest.strides | {name: random.randrange(5)}, mistake=f"{name} is too small")


MISTAKES: tuple[Callable[[Random, Nest], Nest], ...] = (
    _other_index,
    _triangle,
    _product_of_indices,
    _shared_memory,
    _condition,
    _element_of_c,
    _stride_too_small,
)


#: Forms of functions, whose names begin with the form's.
FAMILIES: dict[str, Callable[[Random, str], str]] = {
    "product": lambda random, name: draw(random, name).text,
    "triangle": triangle,
    "blocked": blocked,
    "rows": rows,
    "windows": windows,
    "statements": statements,
    "finished": finished,
}
#: How often each form is drawn.
WEIGHTS = (6, 1, 1, 2, 2, 3, 4)


def source(seed: int, count: int, weights: tuple[int, ...] = WEIGHTS) -> str:
    """A C file of so many functions."""
    random = Random(seed)
    head = "/* Drawn by random_nests.py. */\n\n#include <stdint.h>\n\n"
    drawn = (random.choices(list(FAMILIES), weights=weights)[0] for _ in range(count))
    return head + "\n".join(FAMILIES[name](random, f"{name}{number}") for number, name in enumerate(drawn))
