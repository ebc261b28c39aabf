"""Products with work on each element behind the sum in C, drawn at random; some read or write more."""

from __future__ import annotations

from random import Random

#: Element types of A, of B, of sums and of C, with their names in C.
TYPES = {
    "f32": "float",
    "f64": "double",
    "f16": "_Float16",
    "i8": "int8_t",
    "u8": "uint8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
}
KINDS = (
    *(("f32",) * 4, ("f32",) * 4, ("f32",) * 4, ("f32",) * 4, ("f64",) * 4, ("f64",) * 4, ("f64",) * 4),
    *(("i32",) * 4, ("i64",) * 4, ("u32",) * 4, ("u64",) * 4),
    *(("i8", "i8", "i32", "i32"), ("u8", "i8", "i32", "i32"), ("i16", "i16", "i32", "i32")),
    *(("f16", "f16", "f32", "f32"), ("f32", "f32", "f64", "f64"), ("i32", "i32", "i64", "i64")),
    *(("f32", "f32", "f64", "f32"), ("f32", "f32", "f32", "f64"), ("i8", "i8", "i32", "f32")),
    *(("f16", "f16", "f32", "f16"), ("i32", "i32", "i32", "i64"), ("u32", "u32", "u32", "u64")),
)
LOOPS = {
    index: f"for (int {index} = 0; {index} < {bound}; {index}++)"
    for index, bound in zip("ijp", "mnk", strict=True)
}


def finished(random: Random, name: str) -> str:
    """C = step(step(A·B)): bias, scale, residual, bounds, in the loops of the sum or behind them."""
    of_a, of_b, of_sum, of_c = random.choice(KINDS)
    mistake = random.choice([*[""] * 6, "fewer", "neighbour", "partial", "operand", "second"])
    if mistake == "partial":  # factors of partial sums grow beyond any range
        of_a = of_b = of_sum = of_c = "u32"
    c = random.choice(["c[i * n + j]", "c[i * n + j]", "c[j * m + i]"])
    term = f"({TYPES[of_sum]}){random.choice(['a[i * k + p]', 'a[p * m + i]'])} * "
    term += random.choice(["b[p * n + j]", "b[j * k + p]"])
    steps = [_step(random, c, of_c) for _ in range(random.choice([1, 1, 2, 3]))]
    body = _with_mistake(random, mistake, c, steps)
    # Sums in another type than C's stay in a variable.
    forms = ["variable"] if of_sum != of_c else [*["variable"] * 3, "zero", "bias", "keep"]
    form = random.choice(forms)
    if form == "variable" and not mistake and random.random() < 3 / 4:
        # Steps on the variable, which is stored at the end.
        start = random.choice(["0", "0", "v[j]", "w[i]"])
        work, sign = " ".join(body).replace(c, "s"), random.choice(["=", "=", "+="])
        added = f"{TYPES[of_sum]} s = {start}; {LOOPS['p']} s += {term}; {work} {c} {sign} s;"
        body = []
    elif form == "variable":
        sign = random.choice(["=", "=", "+="])
        added = f"{TYPES[of_sum]} s = 0; {LOOPS['p']} s += {term}; {c} {sign} s;"
    else:
        start = {"zero": f"{c} = 0; ", "bias": f"{c} = v[j]; ", "keep": ""}[form]
        added = f"{start}{LOOPS['p']} {c} += {term};"
    if mistake == "partial" and form != "variable":
        added, body = added.replace(f"{LOOPS['p']} ", f"{LOOPS['p']} {{ ") + f" {' '.join(body)} }}", []
    nest = _placed(random, added, body, fewer=mistake == "fewer")
    arrays = (("c", of_c), ("a", of_a), ("b", of_b), ("r", of_c), ("v", of_c), ("w", of_c))
    sizes = {"c": "m*n", "a": "m*k", "b": "k*n", "r": "m*n", "v": "n", "w": "m"}
    restrict, alone = random.choice([("", ""), ("", ""), ("restrict ", " alone")])
    taken = ", ".join(f"{kind} {one}[{sizes[one]}]{alone}" for one, kind in arrays)
    pointers = ", ".join(f"{TYPES[kind]} *{restrict}{one}" for one, kind in arrays)
    note = f"/* {mistake} */\n" if mistake else ""
    return (
        f"{note}// {name}({taken}, int m, int n, int k, int f=2) any\n"
        f"void {name}({pointers}, int m, int n, int k, int f) {{\n    " + "\n    ".join(nest) + "\n}\n"
    )


def _step(random: Random, c: str, kind: str) -> str:
    """A statement on one element of C."""
    number = random.choice([0, 0, 3, 50])
    other = random.choice(["r[i * n + j]", "r[i * n + j]", "r[j * m + i]"])
    signed = kind[0] != "u"
    match random.randrange(9 if signed else 6):
        case 0:
            return f"{c} += v[j];"
        case 1:
            return f"{c} {random.choice(['+=', '-='])} w[i];"
        case 2:
            return f"{c} += {other};"
        case 3:
            return f"{c} *= {random.choice(['2', f'({TYPES[kind]})f', 'v[j]'])};"
        case 4:
            return f"{c} = {c} < {number + 9} ? {c} : {number + 9};"
        case 5:
            return f"if ({c} < {number + 1}) {c} = {number + 1};"
        case 6:
            return f"{c} = {c} > 0 ? {c} : 0;"
        case 7:
            return f"if ({c} < 0) {c} = 0;"
        case _:
            return f"{c} = {c} < -{number} ? -{number} : {c} > {number + 6} ? {number + 6} : {c};"


def _with_mistake(random: Random, mistake: str, c: str, steps: list[str]) -> list[str]:
    """Steps of which one reads another element of C, or writes an operand or a second array."""
    match mistake:
        case "neighbour":
            other = random.choice(["c[(i * n + j) / 2]", "c[m * n - 1 - i * n - j]", "c[i * n]", "c[j]"])
            return [*steps, f"{c} = {other} < 5 ? {c} : 1;"]
        case "operand":
            return [*steps, f"{random.choice(['v[j]', 'w[i]', 'r[i * n + j]'])} = {c};"]
        case "second":
            return [*steps, f"r[i * n + j] = {c} + 1;", random.choice(steps)]
        case _:
            return steps


def _placed(random: Random, added: str, steps: list[str], *, fewer: bool) -> list[str]:
    """The sum and its steps: in the same loops, in those of a row, or in loops behind those of the sum."""
    outer, inner = random.sample("ij", 2)
    shorter = LOOPS[inner].replace("= 0", "= 1") if fewer else LOOPS[inner]
    where = random.choice(["row", "behind", "each", *([] if fewer else ["element"])]) if steps else "element"
    work = " ".join(steps)
    match where:
        case "element":
            return [f"{LOOPS[outer]} {LOOPS[inner]} {{ {added} {work} }}"]
        case "row":
            return [
                f"{LOOPS[outer]} {{",
                f"    {LOOPS[inner]} {{ {added} }}",
                f"    {shorter} {{ {work} }}",
                "}",
            ]
        case "behind":
            behind = random.choice([f"{LOOPS[outer]} {shorter}", f"{shorter} {LOOPS[outer]}"])
            return [f"{LOOPS[outer]} {LOOPS[inner]} {{ {added} }}", f"{behind} {{ {work} }}"]
        case _:
            loops = [f"{LOOPS[outer]} {shorter} {{ {step} }}" for step in steps]
            return [f"{LOOPS[outer]} {LOOPS[inner]} {{ {added} }}", *loops]
