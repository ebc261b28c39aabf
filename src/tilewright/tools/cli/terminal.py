"""What commands share: the console, tables, files that the user names."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.errors import OutputNotWritable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


def console() -> Console:
    """The terminal; where output goes to a file, lines are not cut to 80 columns."""
    from rich.console import Console

    return Console() if is_terminal() else Console(width=160)


def is_terminal() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()


def json_text(content: object) -> str:
    """What --json prints or writes."""
    return json.dumps(content, indent=2) + "\n"


def print_json(content: object) -> None:
    """Print JSON on standard output, without colours whatever it is."""
    sys.stdout.write(json_text(content))


def write(path: Path, content: str | bytes) -> None:
    """Write a file that the user named; the failure is an error of ours."""
    try:
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise OutputNotWritable(path=str(path), reason=error.strerror or str(error)) from error


def write_array(path: Path, array: Any) -> None:
    """Write an array as a .npy file; of a type that NumPy has no code for, as float32."""
    import numpy as np

    stored = array.astype(np.float32) if array.dtype.kind == "V" else array
    try:
        path.parent.mkdir(exist_ok=True)
        np.save(path, stored, allow_pickle=False)
    except OSError as error:
        raise OutputNotWritable(path=str(path), reason=error.strerror or str(error)) from error


def check_writable(path: Path) -> None:
    """Refuse, before minutes of measuring, a file in a folder that does not exist."""
    if not path.parent.is_dir():
        raise OutputNotWritable(path=str(path), reason=f"{path.parent} is not a folder")


def print_table(
    console: Console, title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> None:
    """Print rows as plain text in a table."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
