"""Files by which pkg-config and CMake find a library; they work wherever they are, beside it."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.records import dataclass


@dataclass(frozen=True)
class Package:
    """A library in a folder, as build systems see it.

    Attributes
    ----------
    name : of the library, without "lib".
    description : in a sentence.
    version : of the package that made it.
    forms : suffixes of its files, "so" or "a"; the first is preferred.
    needs : system libraries that a static one needs.
    """

    name: str
    description: str
    version: str
    forms: Sequence[str]
    needs: Sequence[str] = ()


def package_files(package: Package) -> dict[str, str]:
    """The files by name, to be written beside the library and its header.

    >>> sorted(package_files(Package("fast", "Kernels.", "1.0", ("a",))))
    ['fast.pc', 'fastConfig.cmake', 'fastConfigVersion.cmake']
    """
    return {
        f"{package.name}.pc": pkg_config(package),
        f"{package.name}Config.cmake": cmake_config(package),
        f"{package.name}ConfigVersion.cmake": cmake_version(package),
    }


def pkg_config(package: Package) -> str:
    """The file of pkg-config. Source: pc(5)."""
    needs = " ".join(f"-l{name}" for name in package.needs)
    lines = (
        "libdir=${pcfiledir}",
        "includedir=${pcfiledir}",
        "",
        f"Name: {package.name}",
        f"Description: {package.description}",
        f"Version: {package.version}",
        f"Libs: -L${{libdir}} -l{package.name}",
        *([f"Libs.private: {needs}"] if needs else []),
        "Cflags: -I${includedir}",
        "",
    )
    return "\n".join(lines)


def cmake_config(package: Package) -> str:
    """The package file of CMake: the target `name::name`. Source: cmake-packages(7)."""
    shared = package.forms[0] == "so"
    kind, file = ("SHARED", "so") if shared else ("STATIC", "a")
    needs = ";".join(package.needs)
    lines = [
        f"if(NOT TARGET {package.name}::{package.name})",
        f"  add_library({package.name}::{package.name} {kind} IMPORTED)",
        f"  set_target_properties({package.name}::{package.name} PROPERTIES",
        f'    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/lib{package.name}.{file}"',
        *([f'    IMPORTED_SONAME "lib{package.name}.so"'] if shared else []),
        *([f'    INTERFACE_LINK_LIBRARIES "{needs}"'] if needs and not shared else []),
        '    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}")',
        "endif()",
        "",
    ]
    return "\n".join(lines)


def cmake_version(package: Package) -> str:
    """The version file of CMake: any version up to this one will do."""
    return (
        f'set(PACKAGE_VERSION "{package.version}")\n'
        "if(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n"
        "  set(PACKAGE_VERSION_COMPATIBLE TRUE)\n"
        "  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n"
        "    set(PACKAGE_VERSION_EXACT TRUE)\n"
        "  endif()\n"
        "endif()\n"
    )
