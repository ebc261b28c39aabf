"""Triangles and blocked loops in C, drawn at random; some have a mistake that makes them something else."""

from __future__ import annotations

from random import Random

#: Element types, with their names in C, whose sums are exact or wrap.
TYPES = {"u32": "uint32_t", "i64": "int64_t", "f32": "float", "f64": "double"}


def triangle(random: Random, name: str) -> str:
    """C += A·Aᵀ, or A·Bᵀ + B·Aᵀ, of one triangle of C; loops in any order."""
    kind = random.choice(list(TYPES))
    first, second = random.choice([("i", "j"), ("j", "i")])
    inner = random.choice(
        [
            f"{second} = 0; {second} <= {first}; {second}++",
            f"{second} = {first}; {second} < m; {second}++",
            f"{second} = m - 1; {second} >= {first}; {second}--",
            f"{second} = 0; {second} < {first} + 1; ++{second}",
        ]
    )
    mistake = random.choice(["", "", "", "strict", "shifted", "offset"])
    if mistake == "strict":
        inner = f"{second} = 0; {second} < {first}; {second}++"
    loops = [f"for (int {first} = 0; {first} < m; {first}++)", f"for (int {inner})"]
    depth = "for (int p = 0; p < k; p++)"
    columns = random.choice([True, False])
    a, b = ((f"{x}[p * m + {{}}]" if columns else f"{x}[{{}} * k + p]") for x in "ab")
    term = random.choice([f"{a.format('i')} * {a.format('j')}", f"{a.format('j')} * {a.format('i')}"])
    if random.random() < 1 / 2:
        other = random.choice([("j", "i"), ("j", "i"), ("i", "j")])
        term = f"{a.format('i')} * {b.format('j')} + {b.format(other[1])} * {a.format(other[0])}"
    if mistake == "shifted":
        term = term.replace(a.format("j"), b.format("j"))
    c = random.choice(["c[i * m + j]", "c[j * m + i]"])
    if mistake == "offset":
        c = c.replace("]", " + i]")
    statements, factor = random.choice(["+=", "-="]), random.choice(["", "", "alpha * "])
    body = f"{c} {statements} {factor}({term});"
    form = random.choice(["memory", "first", "scalar", "beta"])
    match form:
        case "memory":
            place = random.randrange(3)
            nest = [*loops[:place], depth, *loops[place:], body]
        case "first":
            nest = [*loops, f"{{ {c} = 0; {depth} {body} }}"]
        case "beta":
            nest = [*loops, f"{{ {c} *= beta; {depth} {body} }}"]
        case _:
            nest = [
                *loops,
                f"{{ {TYPES[kind]} sum = 0; {depth} sum += {term}; {c} {statements} {factor}sum; }}",
            ]
    return _function(name, kind, ("m*m+m", "m*k", "m*k"), nest, mistake)


def blocked(random: Random, name: str) -> str:
    """Six loops: blocks of three sizes in some order, the loops in them in another."""
    kind = random.choice(list(TYPES))
    sizes = {index: random.choice([1, 3, 8, 16]) for index in "ijp"}
    mistake = random.choice(["", "", "", "lost", "longer"])
    outer, inner = [], []
    for index, bound in (("i", "m"), ("j", "n"), ("p", "k")):
        size = sizes[index]
        outer.append(f"for (int {index}o = 0; {index}o < {bound}; {index}o += {size})")
        last = f"{index}o + {size}"
        if mistake == "lost" and index == "j":
            last = f"{index}o + {size} - 1"
        if mistake == "longer" and index == "p":
            last = f"{index}o + {size} + 1"
        smaller = random.choice(
            [f"({last} < {bound} ? {last} : {bound})", f"(({bound}) < {last} ? {bound} : {last})"]
        )
        inner.append(f"for (int {index} = {index}o; {index} < {smaller}; {index}++)")
    random.shuffle(outer)
    random.shuffle(inner)
    c, a, b = "c[i * n + j]", "a[p * m + i]", "b[p * n + j]"
    nest = [*outer, *inner, f"{c} += {a} * {b};"]
    if random.random() < 1 / 3 and mistake != "longer":
        plain = {"m": "i", "n": "j", "k": "p"}
        kept = [head for head in outer if "po" in head]
        rest = [
            f"for (int {index} = 0; {index} < {bound}; {index}++)"
            for bound, index in plain.items()
            if bound != "k"
        ]
        depth = [head for head in inner if "int p " in head]
        nest = [*kept, *rest, *depth, f"{c} += {a} * {b};"]
    return _function(name, kind, ("m*n", "k*m", "k*n"), nest, mistake)


def rows(random: Random, name: str) -> str:
    """C += A·B where some operands are rows behind pointers; loops in any order."""
    kind = random.choice(list(TYPES))
    sizes = {"i": "m", "j": "n", "p": "k"}
    subscripts = {
        operand: random.sample(pair, 2) for operand, pair in (("c", "ij"), ("a", "ip"), ("b", "pj"))
    }
    behind = random.choice(["c", "a", "b", "ab", "ca", "cb", "cab", "cab", "cab"])
    mistake = random.choice(["", "", "", "both", "own", "hole", "other"])
    arguments, parameters, elements = [], [], {}
    for operand, (outer, inner) in subscripts.items():
        first, step, column = (
            random.choice([0, 0, 1, 3]),
            random.choice([1, 1, 1, 2]),
            random.choice([0, 0, 2]),
        )
        row = f"{outer} * {step} + {first}"
        if mistake == "both" and operand == behind[-1]:
            row = f"{outer} + {inner}"
        count, width = "2*m+2*n+2*k+3", "9*m+9*n+9*k+2"
        if operand in behind:
            arguments.append(f"{kind} *{operand}[{count}][{width}]")
            parameters.append(f"{TYPES[kind]} **{operand}")
            elements[operand] = f"{operand}[{row}][{inner} + {column}]"
        else:
            arguments.append(f"{kind} {operand}[({count})*({width})]")
            parameters.append(f"{TYPES[kind]} *{operand}")
            elements[operand] = f"{operand}[({row}) * (9 * m + 9 * n + 9 * k + 2) + {inner} + {column}]"
    factor = {"own": " * c[0][0]" if "c" in behind else " * c[0]", "hole": " * (i != 3)"}.get(mistake, "")
    if mistake in ("own", "other"):
        kind, arguments, parameters = (
            "u32",
            *(
                [text.replace(word, new) for text in texts]
                for texts, word, new in ((arguments, kind, "u32"), (parameters, TYPES[kind], TYPES["u32"]))
            ),
        )
    if mistake == "other":
        elements["a"] = elements["a"].replace("i", "j", 1)
    loops = [f"for (int {index} = 0; {index} < {bound}; {index}++)" for index, bound in sizes.items()]
    form = random.choice(["memory", "memory", "zero", "scalar"])
    term = f"{random.choice(['', '', 'alpha * '])}{elements['a']} * {elements['b']}{factor}"
    outside, depth = random.sample(loops[:2], 2), loops[2]
    if form == "memory":
        nest = [*random.sample(loops, 3), f"{elements['c']} {random.choice(['+=', '-='])} {term};"]
    elif form == "zero":
        nest = [*outside, f"{{ {elements['c']} = 0; {depth} {elements['c']} += {term}; }}"]
    else:
        nest = [*outside, f"{{ {TYPES[kind]} sum = 0; {depth} sum += {term}; {elements['c']} = sum; }}"]
    scalar = kind.replace("u", "i")
    comment = f"// {name}({', '.join(arguments)}, int m, int n, int k, {scalar} alpha=3) any"
    head = f"void {name}({', '.join(parameters)}, int m, int n, int k, {TYPES[kind]} alpha)"
    note = f"/* {mistake} */\n" if mistake else ""
    return f"{note}{comment}\n{head} {{\n    " + "\n    ".join(nest) + "\n}\n"


def windows(random: Random, name: str) -> str:
    """Convolutions: two dimensions of the input that slide, channels and a batch, or some of these."""
    kind = random.choice(list(TYPES))
    stride, spread = random.choice([1, 1, 2]), random.choice([1, 1, 2])
    counts = {"i": "7", "j": "n", "d": "3", "e": random.choice(["1", "3", "5"]), "c": "6", "o": "m", "b": "2"}
    roles = ["i", "j", "d", "e", *random.choice(["co", "co", "cob", "c", "o", ""])]
    height, width = f"{7 * stride + 2 * spread}", f"({stride} * n + {4 * spread})"

    def places(*axes: tuple[str, str, str]) -> str:
        """The offset of an element by rows: index, its expression, and the length of the axis."""
        text = "0"
        for index, place, length in axes:
            if all(one in roles for one in index):
                text = f"({text}) * {length} + {place}"
        return text

    y = places(("b", "b", "2"), ("o", "o", "m"), ("i", "i", "7"), ("j", "j", "n"))
    rows, columns = f"{stride} * i + {spread} * d", f"{stride} * j + {spread} * e"
    x = places(("b", "b", "2"), ("c", "c", "6"), ("i", rows, height), ("j", columns, width))
    w = places(("o", "o", "m"), ("c", "c", "6"), ("d", "d", "3"), ("e", "e", counts["e"]))
    if "o" not in roles and random.random() < 1 / 2:
        w = f"({w}) + c" if "c" in roles else w
    sizes = f"{kind} y[2*m*7*n+1], {kind} x[12*{height}*{width}+1], {kind} w[m*18*{counts['e']}+18*5+7]"
    heads = [f"for (int {index} = 0; {index} < {counts[index]}; {index}++)" for index in roles]
    shuffled = random.sample(heads, len(heads))
    nest = [*shuffled, f"y[{y}] {random.choice(['+=', '-='])} x[{x}] * w[{w}];"]
    element = TYPES[kind]
    comment = f"// {name}({sizes}, int m>=1, int n>=1) any"
    head = f"void {name}({element} *y, {element} *x, {element} *w, int m, int n)"
    return f"{comment}\n{head} {{\n    " + "\n    ".join(nest) + "\n}\n"


def _function(name: str, kind: str, lengths: tuple[str, str, str], nest: list[str], mistake: str) -> str:
    sizes = [f"{kind} {operand}[{length}]" for operand, length in zip("cab", lengths, strict=True)]
    scalar = kind.replace("u", "i")
    comment = f"// {name}({', '.join(sizes)}, int m, int n, int k, {scalar} alpha=3, {scalar} beta=2) any"
    element = TYPES[kind]
    head = f"void {name}({element} *c, {element} *a, {element} *b, int m, int n, int k, "
    note = f"/* {mistake} */\n" if mistake else ""
    return f"{note}{comment}\n{head}{element} alpha, {element} beta) {{\n    " + "\n    ".join(nest) + "\n}\n"
