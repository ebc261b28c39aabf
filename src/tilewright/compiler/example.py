"""The record of an example call, without arrays: the sizes, strides and tables that a program reads."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.records import dataclass

#: The length of an axis that is given at run time: several cache blocks of a product, drawn in seconds.
OPEN_SIZE = 512


@dataclass(frozen=True)
class View:
    """How the elements of a buffer are drawn: as a matrix, one cell for each element.

    Attributes
    ----------
    rows, columns : of the matrix.
    row_stride, column_stride : elements from one row, or column, to the next.
    axes : the names of rows and columns.
    """

    rows: int
    columns: int
    row_stride: int
    column_stride: int
    axes: tuple[str, str] = ("rows", "columns")


@dataclass(frozen=True)
class Example:
    """One call of a program.

    Attributes
    ----------
    shape : the lengths of the problem's axes, as they are shown.
    sizes : a value for each run-time size of the program.
    tables : the content of buffers of offsets, lengths and pages.
    views : how argument buffers are drawn; those that are missing are drawn as memory.
    moved : bytes that the call moves, where these are not all that views show.
    """

    shape: Mapping[str, int]
    sizes: Mapping[str, int]
    tables: Mapping[str, tuple[int, ...]]
    views: Mapping[str, View]
    moved: int | None = None
