"""Syntax of LLVM IR text: lists, types and names."""

from __future__ import annotations

import re

#: A local or global name without its sigil: plain, or in quotes if it has other characters.
NAME = r'(?:"[^"]*"|[-\w$.]+)'

_OPEN, _CLOSE = "([{<", ")]}>"


def split_commas(text: str) -> list[str]:
    """The items of a list, splitting at commas outside of brackets and quotes.

    >>> split_commas("<2 x i8> <i8 1, i8 2>, ptr %p")
    ['<2 x i8> <i8 1, i8 2>', 'ptr %p']
    """
    if not any(bracket in text for bracket in '([{<"'):
        return text.split(", ") if text else []
    parts, depth, start, quoted = [], 0, 0, False
    for place, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    parts.append(text[start:].strip())
    return parts


def closing(text: str, at: int) -> int:
    """The index after the bracket that matches the one at `at`.

    >>> closing("f(x, (y)) #1", 1)
    9
    """
    depth, quoted = 0, False
    for place in range(at, len(text)):
        character = text[place]
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
            if not depth:
                return place + 1
    return len(text)


_SIMPLE_TYPE = re.compile(rf"%{NAME}|[\w.]+")


def split_type(text: str) -> tuple[str, str]:
    """The type that a text begins with, and the rest of the text.

    >>> split_type("[4 x { i32, ptr }] %x")
    ('[4 x { i32, ptr }]', '%x')
    >>> split_type("ptr addrspace(3) %x")
    ('ptr addrspace(3)', '%x')
    """
    if text[:1] in _OPEN[1:]:
        end = closing(text, 0)
    else:
        simple = _SIMPLE_TYPE.match(text)
        end = simple.end() if simple else 0
        if text.startswith("(", end):  # target("name", 1)
            end = closing(text, end)
    if text.startswith(" addrspace(", end):
        end = closing(text, end + len(" addrspace"))
    if text.startswith(" (", end):  # the type of a function
        end = closing(text, end + 1)
    return text[:end], text[end:].lstrip()
