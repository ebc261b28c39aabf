"""What several commands share: the form of help texts, and options."""

from __future__ import annotations

from typing import Annotated, get_args

import typer
from typer.core import TyperGroup

from tilewright.machine.catalog import targets
from tilewright.spec.dtype import DTYPES
from tilewright.typing import GraphPrecision

#: Help texts are plain text: rich's markup, Typer's default, would take `[/KV_HEADS]` for a closing tag.
MARKUP = None


def complete_dtype(incomplete: str) -> list[str]:
    """Names of element types that begin so, for shells."""
    return [name for name in DTYPES if name.startswith(incomplete)]


def complete_target(incomplete: str) -> list[str]:
    """Names of targets that begin so; of a list of targets, completions of the last one."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in ("host", *targets()) if name.startswith(last)]


Dtype = Annotated[
    str,
    typer.Option(
        help="Element type of A and B, such as f32, bf16, i8, c64; of each, such as u8i8.",
        autocompletion=complete_dtype,
    ),
]
OutDtype = Annotated[
    str | None,
    typer.Option(
        help="Element type of C; by default the wider of A's and B's.", autocompletion=complete_dtype
    ),
]


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Precision = Annotated[
    str,
    typer.Option(
        help="Element type of float32 weights: f32, bf16, i8-weights, i4-weights or i8-dynamic.",
        autocompletion=lambda incomplete: [
            one for one in get_args(GraphPrecision) if one.startswith(incomplete)
        ],
    ),
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
