"""Errors about packed matrices and their files."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class PackedDtype(TilewrightError, TypeError):
    """The dtype of an operand is not the one that the packed matrix was packed for."""

    message = (
        "an operand has dtype {found}, but {packed} was packed for {required}; "
        "convert the operand with .astype, or pack the matrix in the operand's dtype"
    )


class PackedRole(TilewrightError, ValueError):
    """A packed matrix is used on the wrong side of a product."""

    message = (
        "a matrix packed with role={found!r} is on the other side of the product; pack it with "
        "role={required!r}"
    )


class ForeignPacked(TilewrightError, ValueError):
    """The tiles of a packed matrix are not those that the kernel reads."""

    message = (
        "{packed} has {found}, but kernels of ISA row {row} read {required}; repack it on this machine with "
        "tilewright.pack(tilewright.unpack(packed)), or load it with repack=True"
    )


class NotPacked(TilewrightError, TypeError):
    """An argument is not a packed matrix."""

    message = "{name} is {found}, must be a PackedMatrix (tilewright.pack makes one)"


class PackedFileNotFound(TilewrightError, OSError):
    """The file of a packed matrix is missing or unreadable."""

    message = "cannot read the packed matrix {path}: {reason}"


class PackedNotWritable(TilewrightError, OSError):
    """The file of a packed matrix cannot be written."""

    message = "cannot write the packed matrix {path}: {reason}; choose another file"


class PackedFileTruncated(TilewrightError, ValueError):
    """The file of a packed matrix is truncated."""

    message = (
        "{path} is truncated: it has {found} bytes, must have {required}; copy it again, or pack and save "
        "again"
    )


class PackedFileDamaged(TilewrightError, ValueError):
    """A file is not a packed matrix, or is corrupt."""

    message = "{path} is not a packed matrix, or is corrupt: {reason}; copy it again, or pack and save again"


class PackedVersion(TilewrightError, ValueError):
    """The file of a packed matrix has an unsupported format version."""

    message = (
        "{path} is a packed matrix in format {found}, this version of tilewright reads {required}; "
        "pack and save it again"
    )
