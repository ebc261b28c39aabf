"""What remarks say was found in a function, in the words of the comments above functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.loops.opt.records import Remark

_OPERAND = re.compile(r"(?P<name>(?:at)?\([^\[]*?\)|[%@]?[\w.$>-]+|\[[^\]]*\])\[(?P<letters>[\w,]*)\]")


def found_in(remarks: Sequence[Remark], function: str) -> str:
    """The products in a function, in the order of its text; "" where none was found."""
    own = [remark for remark in remarks if remark.where.function == function]
    products = [text for remark in own if remark.replaced for text in remark.text.split("; then ")]
    return ", ".join(map(_shortened, products))


def reasons(remarks: Sequence[Remark], function: str) -> str:
    """Why nests of a function stay as they are."""
    own = [remark for remark in remarks if remark.where.function == function and not remark.replaced]
    return "; ".join(remark.text for remark in own) or "no nest was looked at"


def _shortened(text: str) -> str:
    """C[m,n] += A[k,m]*B[k,n], m=... -> mk,kn->mn, whatever the order in memory."""
    left, sign, right = re.split(r" (\+?=) ", text, maxsplit=1)
    names = [(found["name"], found["letters"]) for found in _OPERAND.finditer(right)]
    result = _OPERAND.fullmatch(left)
    assert result is not None, text
    own = (result["name"], result["letters"])
    factors = [letters for name, letters in names if (name, letters) != own]
    keeps = sign == "+=" or own in names
    pairs = [
        f"{_ordered(a, 'bmnk')},{_ordered(b, 'bknm')}"
        for a, b in zip(factors[::2], factors[1::2], strict=True)
    ]
    words = [
        f"{'+'.join(pairs)}->{_ordered(own[1], 'bmnk')}",
        *([] if keeps else ["set"]),
        *(["triangle"] if "triangle" in text else []),
        *_steps(text),
    ]
    return " ".join(words)


def _steps(text: str) -> list[str]:
    """``then + bias, relu, f32`` -> ``then + relu``."""
    _, then, rest = text.partition(", then ")
    return ["then", *(word.partition(" ")[0] for word in rest.split(", ")[:-1])] if then else []


def _ordered(letters: str, order: str) -> str:
    """Subscripts in an order of roles, without their numbers."""
    return "".join(sorted(re.sub(r"[\d,]", "", letters), key=order.index))
