"""HTML that notebooks show of objects: tables of facts and folded texts, without scripts or style sheets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Lines of a text that a notebook shows, and so keeps in its file.
SHOWN_LINES = 500

#: What `html.escape` replaces: that module's tables of all characters would take 2 ms of every first call.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})

#: Colours come from the page, so that light and dark themes both fit; lines are grey on either.
_LINE = "1px solid rgba(128, 128, 128, 0.4)"
_TABLE = "border-collapse: collapse; color: inherit; background: transparent"
_CELL = f"padding: 2px 12px 2px 0; text-align: left; border-bottom: {_LINE}; white-space: pre-wrap"
_TEXT = f"max-height: 30em; overflow: auto; padding: 4px; border: {_LINE}; color: inherit"


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def facts_table(facts: Iterable[tuple[str, str]]) -> str:
    """A table of names and values.

    >>> "</th><td" in facts_table([("flops", "12")])
    True
    """
    name_cell, value_cell = f'<th scope="row" style="{_CELL}">', f'<td style="{_CELL}">'
    rows = "".join(
        f"<tr>{name_cell}{_escaped(name)}</th>{value_cell}{_escaped(value)}</td></tr>"
        for name, value in facts
    )
    return f'<table style="{_TABLE}">{rows}</table>'


def columns_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a line of titles.

    >>> columns_table(("size",), [("<3",)]).count("&lt;3")
    1
    """
    head = "".join(f'<th scope="col" style="{_CELL}">{_escaped(title)}</th>' for title in columns)
    cell = f'<td style="{_CELL}">'
    lines = ("".join(f"{cell}{_escaped(one)}</td>" for one in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="{_TABLE}"><tr>{head}</tr>{body}</table>'


def folded(title: str, text: str, rest: str) -> str:
    """A text behind its title: the first lines of a long one, and `rest`, which says where all of it is."""
    lines = text.splitlines()
    summary = f"{title}, {len(lines)} lines"
    if len(lines) > SHOWN_LINES:
        summary += f", the first {SHOWN_LINES}; {rest}"
    shown = _escaped("\n".join(lines[:SHOWN_LINES]))
    return f'<details><summary>{_escaped(summary)}</summary><pre style="{_TEXT}">{shown}</pre></details>'


def entry(head: str, *parts: str) -> str:
    """The whole of what is shown: a line of code and the parts below it."""
    return f"<div><code>{_escaped(head)}</code>{''.join(parts)}</div>"
