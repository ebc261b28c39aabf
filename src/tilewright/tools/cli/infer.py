"""`tilewright infer`: run an ONNX model on arrays of files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import tilewright as tw
from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import AsJson, ModelInputs, Precision, group
from tilewright.tools.explore.model_inputs import read_inputs

app = group()


@app.command()
def infer(
    model: Annotated[Path, typer.Argument(help="An ONNX model.")],
    inputs: ModelInputs = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder in which NAME.npy is written for each output.")
    ] = None,
    precision: Precision = "f32",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads, at most.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run an ONNX model on arrays of .npy files.

    Without --output, prints the type, shape and range of each result.
    """
    prepared = tw.onnx.prepare(model, precision=precision)
    arrays = read_inputs(inputs or [], prepared.inputs)
    if output is not None:
        terminal.check_writable(output)
    results = dict(zip(prepared.outputs, prepared.run(arrays, threads=threads), strict=True))
    if output is not None:
        for name, array in results.items():
            terminal.write_array(output / f"{name.replace('/', '_')}.npy", array)
        return
    if as_json:
        terminal.print_json(list(map(_described, results, results.values())))
        return
    lines = [(name, str(array.dtype), str(array.shape), *_range(array)) for name, array in results.items()]
    columns = ("output", "type", "shape", "least", "largest", "mean")
    terminal.print_table(terminal.console(), str(model), columns, lines)


def _described(name: str, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> dict[str, object]:
    """One result as JSON values; of an array without elements, or with NaN, there is no range."""
    numbers = [float(text) if text and math.isfinite(float(text)) else None for text in _range(array)]
    found: dict[str, object] = dict(zip(("least", "largest", "mean"), numbers, strict=True))
    return {"output": name, "type": str(array.dtype), "shape": array.shape, **found}


def _range(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> tuple[str, str, str]:
    """The least and the largest element and the mean, as text."""
    if not array.size:
        return "", "", ""
    values = array.astype(np.float64)
    return f"{values.min():.6g}", f"{values.max():.6g}", f"{values.mean():.6g}"
