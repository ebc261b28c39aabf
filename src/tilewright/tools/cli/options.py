"""What several commands share: the form of help texts, and options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperGroup
from typer.models import ArgumentInfo, OptionInfo

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
        "--input",
        metavar="[NAME=]FILE.npy",
        help="An input by its name, or the next one without a file; repeat it for each input.",
    ),
]


def with_options(name: str, record: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that takes a record as one parameter, whose fields become options in its place.

    Parameters
    ----------
    name : of the parameter.
    record : a dataclass whose fields have defaults and are annotated as parameters of commands are.
    """
    hints = get_type_hints(record, include_extras=True)
    options = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(record)
    ]

    def expand(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**given: Any) -> None:
            made = record(**{option.name: given.pop(option.name) for option in options})
            command(**given, **{name: made})

        own = signature(command, eval_str=True)
        parameters: list[Parameter] = []
        for one in own.parameters.values():
            parameters += options if one.name == name else [one.replace(kind=Parameter.KEYWORD_ONLY)]
        call.__annotations__ = {one.name: one.annotation for one in parameters}
        call.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return call

    return expand


#: The word for a value in help texts, by the type of the parameter.
_METAVARS = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}


def with_metavars(app: typer.Typer) -> typer.Typer:
    """An app whose help has one word for each kind of value: N, NUMBER, PATH or TEXT.

    Typer's own words change from version to version: "INTEGER RANGE", "<int range>".
    """
    callbacks = [one.callback for one in app.registered_commands]
    if app.registered_callback is not None:
        callbacks.append(app.registered_callback.callback)
    for callback in filter(None, callbacks):
        callback.__annotations__ = get_type_hints(callback, include_extras=True)  # which texts are not
        for name, hint in callback.__annotations__.items():
            for info in getattr(hint, "__metadata__", ()):
                if isinstance(info, ArgumentInfo) and info.metavar is None:
                    info.metavar = name.upper()
                elif isinstance(info, OptionInfo) and info.metavar is None:
                    info.metavar = _metavar(hint.__origin__)
    return app


def _metavar(kind: Any) -> str | None:
    """The word for values of a type, which may be optional or in a list; none for flags."""
    inner = [_metavar(one) for one in get_args(kind)]
    return _METAVARS.get(kind) or next(filter(None, inner), None)


def group(help: str | None = None, cls: type[TyperGroup] | None = None) -> typer.Typer:  # noqa: A002 - as Typer calls it
    """A group of commands, or the holder of one command that is no group."""
    return typer.Typer(
        cls=cls, help=help, no_args_is_help=help is not None, rich_markup_mode=MARKUP, add_completion=False
    )
