"""The files of a kernel library: static, shared or object files, the header, files for build systems."""

from __future__ import annotations

from tilewright.aot.archive import Member, archive
from tilewright.aot.build import KernelLibrary
from tilewright.aot.form import LibraryForm
from tilewright.aot.header import library_header
from tilewright.aot.link import shared_library
from tilewright.aot.packages import Package, package_files

_DESCRIPTION = "Kernels compiled ahead of time by tilewright"


def library_files(library: KernelLibrary, form: LibraryForm, version: str) -> dict[str, str | bytes]:
    """Contents of the files of a library by name: `lib<name>.a`, `.so` or object files, and `<name>.h`.

    Raises
    ------
    NoLinker, LinkFailed : of a shared library.
    """
    files: dict[str, str | bytes] = {f"{library.name}.h": library_header(library, form)}
    members = library_members(library)
    match form:
        case LibraryForm.ARCHIVE:
            files[f"lib{library.name}.a"] = archive(members)
            files |= package_files(Package(library.name, _DESCRIPTION, version, ("a",)))
        case LibraryForm.SHARED:
            name, arch = f"lib{library.name}.so", library.variants.detection.arch
            files[name] = shared_library(members, _exports(library), name, arch)
            files |= package_files(Package(library.name, _DESCRIPTION, version, ("so",)))
        case LibraryForm.OBJECTS:
            files |= {member.name: member.content for member in members}
    return files


def _exports(library: KernelLibrary) -> tuple[str, ...]:
    """What the header declares: the functions, and each variant under its own name."""
    kernels = (kernel.symbol for function in library.functions for kernel in function.kernels)
    return (*library.exports, *kernels)


def library_members(library: KernelLibrary) -> tuple[Member, ...]:
    """The object files: the resolver, then each kernel for each target."""
    kernels = (kernel for function in library.functions for kernel in function.kernels)
    return (
        Member(f"{library.name}_resolver.o", library.resolver, library.exports),
        *(Member(f"{kernel.symbol}.o", kernel.object_code, (kernel.symbol,)) for kernel in kernels),
    )
