"""The files of the library: static and shared, its header, and what build systems read."""

from __future__ import annotations

from pathlib import Path

from tilewright.aot.archive import archive
from tilewright.aot.blas.build import BlasLibrary
from tilewright.aot.blas.header import blas_header
from tilewright.aot.blas.types import PREFIX
from tilewright.aot.form import LibraryForm
from tilewright.aot.link import shared_library
from tilewright.aot.packages import Package, package_files

#: What a static library needs of the system: threads and `dlsym`, where these are libraries of their own.
SYSTEM_LIBRARIES = ("pthread", "dl")


def blas_files(
    library: BlasLibrary, forms: tuple[LibraryForm, ...], version: str, behind: Path | None = None
) -> dict[str, str | bytes]:
    """Contents of the files by name.

    Parameters
    ----------
    forms : of the library; the first is the one that build systems are told.
    version : of this package.
    behind : another BLAS that the shared library loads, for the names that this one does not have.

    Raises
    ------
    NoLinker, LinkFailed
    """
    files: dict[str, str | bytes] = {f"{PREFIX}.h": blas_header(library.variants)}
    suffixes = []
    for form in forms:
        match form:
            case LibraryForm.ARCHIVE:
                files[f"lib{PREFIX}.a"] = archive(library.members)
                suffixes.append("a")
            case LibraryForm.SHARED:
                name, arch = f"lib{PREFIX}.so", library.variants.detection.arch
                files[name] = shared_library(library.members, library.exports, name, arch, behind)
                suffixes.append("so")
            case LibraryForm.OBJECTS:
                files |= {member.name: member.content for member in library.members}
    if suffixes:
        description = "Level-3 BLAS compiled ahead of time by tilewright"
        files |= package_files(Package(PREFIX, description, version, suffixes, SYSTEM_LIBRARIES))
    return files
