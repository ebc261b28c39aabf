"""What several commands share: the form of help texts, and options."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.core import TyperGroup

#: Help texts are plain text: rich's markup, Typer's default, would take `[/KV_HEADS]` for a closing tag.
MARKUP = None


Dtype = Annotated[
    str, typer.Option(help="Element type of A and B, such as f32, bf16, i8, c64; of each, such as u8i8.")
]
OutDtype = Annotated[str | None, typer.Option(help="Element type of C; by default the wider of A's and B's.")]


Precision = Annotated[
    str,
    typer.Option(help="Element type of float32 weights: f32, bf16, i8-weights, i4-weights or i8-dynamic."),
]
ModelInputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input", help="NAME=FILE.npy, or FILE.npy for the next input without one; repeat it for each input."
    ),
]


def group(help: str | None = None, cls: type[TyperGroup] | None = None) -> typer.Typer:  # noqa: A002 - as Typer calls it
    """A group of commands, or the holder of one command that is no group."""
    return typer.Typer(
        cls=cls, help=help, no_args_is_help=help is not None, rich_markup_mode=MARKUP, add_completion=False
    )
