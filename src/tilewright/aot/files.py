"""The files of a kernel library: a static archive or object files, and the C header."""

from __future__ import annotations

from tilewright.aot.archive import Member, archive
from tilewright.aot.build import KernelLibrary
from tilewright.aot.form import LibraryForm
from tilewright.aot.header import library_header


def library_files(library: KernelLibrary, form: LibraryForm) -> dict[str, str | bytes]:
    """Contents of the files of a library by name: `lib<name>.a` or object files, and `<name>.h`."""
    files: dict[str, str | bytes] = {f"{library.name}.h": library_header(library, form)}
    members = library_members(library)
    match form:
        case LibraryForm.ARCHIVE:
            files[f"lib{library.name}.a"] = archive(members)
        case LibraryForm.OBJECTS:
            files |= {member.name: member.content for member in members}
    return files


def library_members(library: KernelLibrary) -> tuple[Member, ...]:
    """The object files: the resolver, then each kernel for each target."""
    kernels = (kernel for function in library.functions for kernel in function.kernels)
    return (
        Member(f"{library.name}_resolver.o", library.resolver, library.exports),
        *(Member(f"{kernel.symbol}.o", kernel.object_code, (kernel.symbol,)) for kernel in kernels),
    )
