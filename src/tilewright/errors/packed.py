"""Errors about packed matrices and their files."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class PackedDtype(TilewrightError, TypeError):
    """An operand beside a packed matrix is of a type that the matrix was not packed for."""

    message = (
        "an operand of dtype {found} meets {packed}, which was packed for {required}; "
        "convert the operand with .astype, or pack the matrix in the operand's dtype"
    )


class PackedRole(TilewrightError, ValueError):
    """A packed matrix stands on the other side of a product."""

    message = (
        "a matrix packed in the role of {found} stands where {required} stands; "
        "pack it with role={required!r}"
    )


class ForeignPacked(TilewrightError, ValueError):
    """A packed matrix is in other tiles than a kernel takes."""

    message = (
        "{packed} has {found}, kernels of the row {row} take {required}; pack it on this machine, "
        "tilewright.pack(tilewright.unpack(packed)), or load it with repack=True"
    )


class NotPacked(TilewrightError, TypeError):
    """Something else where a packed matrix is required."""

    message = "{name} is {found}, must be a PackedMatrix (tilewright.pack makes one)"


class PackedFileNotFound(TilewrightError, OSError):
    """A file of a packed matrix is not there or cannot be read."""

    message = "cannot read the packed matrix {path}: {reason}"


class PackedNotWritable(TilewrightError, OSError):
    """A file of a packed matrix cannot be written."""

    message = "cannot write the packed matrix {path}: {reason}; choose another file"


class PackedFileTruncated(TilewrightError, ValueError):
    """A file of a packed matrix ends too early."""

    message = (
        "{path} has {found} bytes, a whole packed matrix {required}; copy it again, or pack and save again"
    )


class PackedFileDamaged(TilewrightError, ValueError):
    """A file is no packed matrix, or was altered."""

    message = "{path} is no intact packed matrix: {reason}; copy it again, or pack and save again"


class PackedVersion(TilewrightError, ValueError):
    """A file of a packed matrix in another format."""

    message = (
        "{path} is a packed matrix in format {found}, this version of tilewright reads {required}; "
        "pack and save it again"
    )
