"""Errors of Dask arrays and plans."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class NotDaskArray(TilewrightError, TypeError):
    """An operand is another collection of Dask than an array."""

    message = (
        "{name} is of type {kind}, must be a dask.array or an array; convert it with "
        "x.to_dask_array(lengths=True) or dask.array.from_delayed"
    )


class UnknownChunks(TilewrightError, ValueError):
    """The sizes of some chunks are not known before the array is computed."""

    message = (
        "{name} has chunks of unknown sizes along axis {axis}; call {name}.compute_chunk_sizes(), "
        "or to_dask_array(lengths=True) where it is made"
    )


class ChunkType(TilewrightError, TypeError):
    """The chunks of a Dask array are no plain NumPy arrays."""

    message = (
        "the chunks of {name} are of type {kind}, must be plain numpy.ndarray; convert them with "
        "{name}.map_blocks({remedy})"
    )


class InvalidPlan(TilewrightError, ValueError):
    """A plan belongs to another product."""

    message = "plan is {found}, must be a plan of {required}; make it with tilewright.dask.plan(a, b)"


class PlanMemory(TilewrightError, ValueError):
    """No plan fits the memory of a worker."""

    message = (
        "no plan of {m} x {n} x {k} on {workers} workers fits {limit} bytes for each worker: the one that "
        "takes least needs {least}; use more workers, or more memory for each"
    )


class EmbedOutput(TilewrightError, ValueError):
    """A graph cannot be mapped over chunks of rows."""

    message = "the graph cannot be mapped over chunks: {reason}"
