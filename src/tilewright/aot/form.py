"""Output form of a library."""

from __future__ import annotations

from enum import Enum


class LibraryForm(Enum):
    """One static archive, one shared library, or an object file for each kernel and target."""

    ARCHIVE = "archive"
    SHARED = "shared"
    OBJECTS = "objects"
