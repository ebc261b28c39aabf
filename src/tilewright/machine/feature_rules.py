"""Dependencies of LLVM features: those that calling conventions need, and those that imply others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilewright.errors import FeatureNeeded
from tilewright.machine.arch import find_arch


def check_calling(triple: str, arch: str, entries: Iterable[str]) -> None:
    """Refuses signed features without which functions cannot be called as the platform's compilers do.

    Raises
    ------
    FeatureNeeded

    Examples
    --------
    >>> check_calling("x86_64-linux-gnu", "x86_64", ["-avx512f"])
    """
    needed = {entry[1:]: entry for entry in find_arch(arch).calling}
    states = {entry[1:]: entry for entry in entries}  # of several mentions the last counts
    for name, entry in states.items():
        if name in needed and needed[name] != entry:
            raise FeatureNeeded(found=entry, triple=triple, needed=", ".join(needed.values()))


def expanded(arch: str, entries: Iterable[str]) -> Iterator[str]:
    """Signed features, each with what LLVM changes along with it.

    >>> list(expanded("x86_64", ["-amx-tile", "+fma"]))[:5]
    ['-amx-tile', '-amx-bf16', '-amx-fp16', '-amx-int8', '+sse2']
    """
    for entry in entries:
        if entry.startswith("-"):
            yield from (f"-{name}" for name in (entry[1:], *_built_on_it(arch, entry[1:])))
        else:
            yield from (f"+{name}" for name in (*_bases(arch, entry[1:]), entry[1:]))


def _built_on_it(arch: str, feature: str) -> tuple[str, ...]:
    """The features that LLVM disables along with one."""
    return tuple(name for name in find_arch(arch).built_on if feature in _bases(arch, name))


def _bases(arch: str, feature: str) -> tuple[str, ...]:
    """The features that one implies, directly and indirectly, the lowest first."""
    below = find_arch(arch).built_on.get(feature, ())
    found = [name for one in below for name in (*_bases(arch, one), one)]
    return tuple(dict.fromkeys(found))
