"""Packed matrices: a weight copied once into the tiles of a machine, with its metadata."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilewright.errors import ForeignPacked, InvalidOperand, InvalidSequence, shown
from tilewright.macro.packing import PanelForm
from tilewright.notebook import entry, facts_table
from tilewright.recorder import Numbered
from tilewright.records import dataclass
from tilewright.spec.arguments import check_sizes
from tilewright.spec.dtype import DType
from tilewright.spec.operations import PACKED_METHODS
from tilewright.spec.problem import Role
from tilewright.spec.weights import Weights

Array: TypeAlias = NDArray[Any]

#: Panels start on a page, so that no vector of them crosses a cache line.
PANEL_ALIGNMENT = 4096

_NOTHING: Mapping[str, Array] = MappingProxyType({})


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialised C-contiguous array that starts on a page."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    block = np.empty(size + PANEL_ALIGNMENT, np.uint8)
    start = -block.__array_interface__["data"][0] % PANEL_ALIGNMENT
    return block[start : start + size].view(dtype).reshape(shape)


@dataclass(frozen=True)
class PackedForm:
    """The storage format of a packed matrix.

    Attributes
    ----------
    role : the operand it is, A or B.
    dtype : element type of the matrix that was packed, as NumPy promotion sees it.
    other : element type of the operand it is multiplied with.
    panels : tile sizes and the element type in memory.
    row : the instruction-set row the tiles belong to; empty where the caller chose them.
    weights : the quantised format of a weight, with or without scales; None: elements are the instruction's
        own operands.
    """

    role: Role
    dtype: DType
    other: DType
    panels: PanelForm
    row: str
    weights: Weights | None = None

    def tiles_shape(self, shape: tuple[int, int]) -> tuple[int, int, int, int]:
        """The shape of the tiles of a matrix: of integers in words, bytes."""
        lanes, depth = self.role.lanes_and_depth(shape)
        if self.weights is not None and self.weights.elements.scaled:
            depth = self.weights.words(depth) * self.panels.kr
        return self.panels.shape(lanes, depth)

    def vector_shapes(self, shape: tuple[int, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays stored with the tiles, by name: [N1, groups, N0]."""
        if self.weights is None:
            return {}
        panels, _, lanes, _ = self.tiles_shape(shape)
        return dict.fromkeys(self.weights.vectors, (panels, self.weights.groups(shape[0]), lanes))


@dataclass(frozen=True, eq=False, repr=False)
class PackedMatrix(Numbered):
    """A matrix in the tiles of a machine, packed once and multiplied often; immutable.

    Made by `tilewright.pack` and `PackedMatrix.load`; `tilewright.matmul` and `tilewright.linear` take it in
    place of an array and skip packing. Pickles.

    Attributes
    ----------
    form : what the bytes mean.
    shape : of the matrix: (k, n) in the role of B, (m, k) of A.
    data4d : the tiles, read-only: [N1, K1, N0, K0] of B, [M1, K1, M0, K0] of A. Where the machine multiplies
        integers of 4 bits, two depths are in each byte of the last axis, the first in the low half.
    vectors : further read-only arrays by name, such as scales.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> packed = tw.pack(np.ones((3, 5), np.float32))
    >>> packed.shape, packed.dtype
    ((3, 5), dtype('float32'))
    """

    form: PackedForm
    shape: tuple[int, int]
    data4d: Array
    vectors: Mapping[str, Array] = field(default_factory=lambda: _NOTHING)

    #: NumPy must leave ``array @ packed`` to this class.
    __array_priority__ = 1000.0
    __array_ufunc__ = None

    #: Routes of products with it, by types of the other operand and of the result; computed on first use.
    routes: dict[Any, Any] = field(default_factory=dict, init=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.form, PackedForm):
            raise InvalidOperand(name="form", reason=f"found {shown(self.form)}, must be a PackedForm")
        sizes = check_sizes(self.shape, "shape", "the two sizes of a matrix")
        if len(sizes) != 2 or type(self.shape) is not tuple:
            raise InvalidSequence(name="shape", found=shown(self.shape), required="a tuple of two sizes")
        rows, columns = sizes
        shapes = {
            "data4d": self.form.tiles_shape((rows, columns)),
            **self.form.vector_shapes((rows, columns)),
        }
        arrays = {"data4d": self.data4d, **(self.vectors if isinstance(self.vectors, Mapping) else {})}
        if arrays.keys() != shapes.keys() or not isinstance(self.vectors, Mapping):
            words = " and ".join(sorted(shapes.keys() - {"data4d"})) or "none"
            raise InvalidOperand(name="vectors", reason=f"found {shown(self.vectors)}, must be {words}")
        for name, shape in shapes.items():
            dtype = self.form.panels.storage.cell.numpy if name == "data4d" else np.dtype(np.float32)
            array = arrays[name]
            if not isinstance(array, np.ndarray):
                raise InvalidOperand(name=name, reason=f"found {shown(array)}, not a numpy.ndarray")
            if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
                found = f"{array.dtype} of shape {array.shape}"
                raise InvalidOperand(
                    name=name, reason=f"found {found}, must be {dtype} of {shape}, contiguous"
                )
        for array in (self.data4d, *self.vectors.values()):
            array.flags.writeable = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type of the matrix that was packed."""
        return self.form.dtype.numpy

    @property
    def ndim(self) -> int:
        """Two."""
        return 2

    @property
    def tiles(self) -> tuple[int, int]:
        """Lanes and adjacent depths of one tile: (N0, K0) of B, (M0, K0) of A."""
        return self.form.panels.lanes, self.form.panels.kr

    @property
    def role(self) -> str:
        """The operand of a product that it is: "a" or "b"."""
        return str(self.form.role.value)

    @property
    def machine_row(self) -> str:
        """The instruction-set row of the tiles; empty where the caller chose them."""
        return self.form.row

    @property
    def nbytes(self) -> int:
        """Bytes of the tiles, padding included, and of the vectors stored with them."""
        return self.data4d.nbytes + sum(vector.nbytes for vector in self.vectors.values())

    def memory(self) -> Iterator[tuple[int, int]]:
        """Address and bytes of the tiles and of each vector."""
        for array in (self.data4d, *self.vectors.values()):
            yield array.__array_interface__["data"][0], array.nbytes

    def owned(self) -> list[object]:
        """What products with it have made once."""
        return list(self.routes.values())

    def __repr__(self) -> str:
        rows, columns = self.shape
        weights = self.form.weights
        stored = self.form.panels.storage if weights is None else weights.name
        kind = f"{self.form.dtype}" if stored == self.form.dtype else f"{self.form.dtype} as {stored}"
        lanes, kr = self.tiles
        where = f" for {self.form.row}" if self.form.row else ""
        return (
            f"PackedMatrix({rows}x{columns} {kind}, role {self.role}, tiles {lanes}x{kr}{where}, "
            f"{self.nbytes:,} bytes)"
        )

    def _repr_html_(self) -> str:
        """What notebooks show: what is stored, and how much that saves."""
        form, weights = self.form, self.form.weights
        plain = self.shape[0] * self.shape[1] * form.dtype.bits // 8
        facts = [
            ("shape", f"{self.shape[0]} x {self.shape[1]} of {form.dtype}, role {form.role}"),
            ("elements", str(form.panels.storage if weights is None else weights.name)),
            ("tiles", f"{' x '.join(map(str, self.data4d.shape))}{f' for {form.row}' if form.row else ''}"),
            (
                "beside",
                ", ".join(f"{name} {array.shape}" for name, array in self.vectors.items()) or "nothing",
            ),
            ("bytes", f"{self.nbytes:,}, {self.nbytes / max(plain, 1):.0%} of the matrix as it was"),
        ]
        return entry(repr(self), facts_table(facts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedMatrix):
            return NotImplemented
        alike = (self.form, self.shape, set(self.vectors)) == (other.form, other.shape, set(other.vectors))
        return alike and all(
            mine.tobytes() == theirs.tobytes()
            for mine, theirs in (
                (self.data4d, other.data4d),
                *((self.vectors[name], other.vectors[name]) for name in self.vectors),
            )
        )

    def __hash__(self) -> int:
        return hash((self.form, self.shape, self.data4d[:1, :1].tobytes()))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a PackedMatrix becomes an array by unpacking, which copies")
        array: Array = PACKED_METHODS["unpack"](self)
        return array if dtype is None else array.astype(dtype, copy=False)

    def __rmatmul__(self, left: Any) -> Array:
        product: Array = PACKED_METHODS["matmul"](left, self)
        return product

    def __matmul__(self, right: Any) -> Array:
        product: Array = PACKED_METHODS["matmul"](self, right)
        return product

    def __copy__(self) -> Self:
        return self

    def copy(self) -> PackedMatrix:
        """A copy of the matrix in its own memory, which no longer depends on a mapped file."""
        data = aligned_empty(self.data4d.shape, self.data4d.dtype)
        data[...] = self.data4d
        return PackedMatrix(
            self.form,
            self.shape,
            data,
            MappingProxyType({name: v.copy() for name, v in self.vectors.items()}),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.form, self.shape, self.data4d, dict(self.vectors))

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """What Dask names tasks by."""
        vectors = (self.vectors[name] for name in sorted(self.vectors))
        return type(self).__name__, repr(self.form), self.shape, self.data4d, *vectors

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the matrix into a file that `load` reads and can map into memory; replaces it at once.

        Raises
        ------
        PackedNotWritable : if the file cannot be written; what was there is unchanged.
        """
        PACKED_METHODS["save"](self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = True, repack: bool = False
    ) -> PackedMatrix:
        """The matrix of a file that `save` wrote.

        Parameters
        ----------
        path : the file.
        mmap : map the tiles into memory, shared between processes, instead of reading them.
        verify : compare the checksum of the tiles, which reads them all.
        repack : unpack and pack again a matrix in tiles of another machine.

        Raises
        ------
        PackedFileNotFound : no such file, or one that cannot be read.
        PackedFileTruncated : it ends too early.
        PackedFileDamaged : it is no such file, or was altered.
        PackedVersion : written in another format.
        ForeignPacked : its tiles are another machine's, and `repack` is false.
        """
        loaded: PackedMatrix = PACKED_METHODS["load"](path, mapped=mmap, verify=verify, repack=repack)
        return loaded


def _restored(
    form: PackedForm, shape: tuple[int, int], data: Array, vectors: dict[str, Array]
) -> PackedMatrix:
    """A pickled matrix; panels start on a page again."""
    panels = aligned_empty(data.shape, data.dtype)
    panels[...] = data
    return PackedMatrix(form, shape, panels, MappingProxyType(vectors))


def foreign_tiles(packed: PackedMatrix, required: PanelForm, row: str) -> ForeignPacked:
    """The error of a matrix in other tiles than kernels of an ISA row read."""
    stored = packed.form.panels
    return ForeignPacked(
        packed=repr(packed),
        found=f"tiles {stored.lanes}x{stored.kr} of {stored.storage}",
        required=f"{required.lanes}x{required.kr} of {required.storage}",
        row=row,
    )
