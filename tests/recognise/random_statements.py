"""Nests of several statements in C, drawn at random, not all of which can be taken apart."""

from __future__ import annotations

from random import Random

#: Types whose sums wrap around: statements may feed each other without end.
TYPES = {"u32": "uint32_t", "u64": "uint64_t"}
#: Pitch of matrices, above every index that a call makes; elements of every array.
PITCH = 70
LENGTH = 75 * PITCH


def statements(random: Random, name: str) -> str:
    """A loop over rows with two to four statements on vectors and matrices, most of them sums of products."""
    kind = random.choice(list(TYPES))
    arrays = [*"cd", *random.sample(["a", "b", "t", "x", "y"], 5)]
    if random.random() < 1 / 2:
        random.shuffle(arrays)
    body = [_statement(random, arrays, TYPES[kind]) for _ in range(random.choice([1, 2, 2, 3, 4]))]
    text = "\n".join(f"        {line}" for line in body)
    head = random.choice(["for (int i = 0; i < m; i++)", "for (int i = 0; i < n; i++)"])
    if random.random() < 1 / 4:
        head = "for (int i = m - 1; i >= 0; i--)"
    alone = random.random() < 1 / 3
    word, restrict = (" alone", "restrict ") if alone else ("", "")
    taken = ", ".join(f"{kind} {one}[{LENGTH}]{word}" for one in arrays)
    pointers = ", ".join(f"{TYPES[kind]} *{restrict}{one}" for one in arrays)
    return (
        f"// {name}({taken}, int m, int n, int k) any\n"
        f"void {name}({pointers}, int m, int n, int k) {{\n    {head} {{\n{text}\n    }}\n}}\n"
    )


def _loop(random: Random, index: str) -> str:
    """A loop over a rectangle, or over what is left or right of the diagonal."""
    ranges = [f"0; {index} < n", f"0; {index} < k", f"0; {index} < m", f"0; {index} < i", f"0; {index} <= i"]
    ranges += [f"i; {index} < m", f"i + 1; {index} < m", f"i + 1; {index} < n"]
    weights = (4, 3, 2, 1, 1, 1, 1, 1)
    return f"for (int {index} = {random.choices(ranges, weights)[0]}; {index}++)"


def _matrix(random: Random, name: str, row: str, column: str) -> str:
    if random.random() < 1 / 4:
        row, column = column, row
    shift = random.choice(["", "", "", "", "", " + 1", f" + {PITCH}"])
    return f"{name}[{row} * {PITCH} + {column}{shift}]"


def _vector(random: Random, name: str, index: str) -> str:
    return f"{name}[{index}{random.choice(['', '', '', '', ' + 1'])}]"


def _statement(random: Random, arrays: list[str], kind: str) -> str:
    """One statement of the loop over i, with loops of its own."""
    matrices = [one for one in arrays if one in "abcd"]
    vectors = [one for one in arrays if one in "txy"]
    factor = random.choice(["", "", "3 * "])
    sign = random.choice(["+=", "+=", "+=", "-=", "="])
    one, other, third = (random.choice(matrices) for _ in range(3))
    u, v, w = (random.choice(vectors) for _ in range(3))
    j, p = _loop(random, "j"), _loop(random, "p")
    match random.randrange(8):
        case 0:
            return f"{_vector(random, u, 'i')} {sign} {random.choice(['0', '7', _vector(random, v, 'i')])};"
        case 1:
            return f"{j} {u}[i] += {factor}{_matrix(random, one, 'i', 'j')} * {_vector(random, v, 'j')};"
        case 2:
            return f"{j} {u}[j] += {factor}{_matrix(random, one, 'i', 'j')} * {_vector(random, v, 'i')};"
        case 3:
            first, second = (_matrix(random, x, *at) for x, at in ((one, ("i", "j")), (other, ("i", "j"))))
            return (
                f"{j} {{ {u}[j] {sign} {first} * {_vector(random, v, 'i')};"
                f" {w}[i] += {second} * {_vector(random, random.choice(vectors), 'j')}; }}"
            )
        case 4:
            return f"{j} {_matrix(random, one, 'i', 'j')} {sign} {factor}{_matrix(random, other, 'i', 'j')};"
        case 5:
            a, b = _matrix(random, other, "i", "p"), _matrix(random, third, "p", "j")
            return f"{j} {p} {_matrix(random, one, 'i', 'j')} += {factor}{a} * {b};"
        case 6:
            c = _matrix(random, one, "i", "j")
            a, b = _matrix(random, other, "i", "p"), _matrix(random, third, "p", "j")
            mirrored = f" {one}[j * {PITCH} + i] = {c};" if random.random() < 1 / 2 else ""
            start = random.choice(["0", f"{u}[j]", f"{u}[i] * {v}[j]"])
            return f"{j} {{ {c} {sign} {start}; {p} {c} += {factor}{a} * {b};{mirrored} }}"
        case _:
            a, b = _matrix(random, other, "i", "p"), _matrix(random, third, "p", "j")
            added = random.choice(["", f" + {u}[j]", f" + {_matrix(random, other, 'i', 'j')} * {v}[j]"])
            return (
                f"{j} {{ {kind} s = 0; {p} s += {a} * {b};"
                f" {_matrix(random, one, 'i', 'j')} {sign} {factor}s{added}; }}"
            )
