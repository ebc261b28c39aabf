"""The object cache: machine code in the store of this package, keyed by everything that shapes it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

from tilewright.machine.machine import Machine
from tilewright.preparing import importing
from tilewright.store import object_cache


@cache
def generator_version() -> str:
    """Digest of this package's sources and of LLVM's version."""
    with importing:
        import llvmlite
        import llvmlite.binding as llvm

    root = Path(__file__).resolve().parent.parent
    salt = repr((llvmlite.__version__, llvm.llvm_version_info))
    store, key = object_cache(), states_digest(root, salt)
    known = None if store is None or key is None else store.load(key)
    if known is not None:
        return known.decode()
    found = sources_digest(root, salt)
    if store is not None and key is not None:
        store.store(key, found.encode())
    return found


def states_digest(root: Path, salt: str) -> bytes | None:
    """Digest of place, size and times of every source file below a folder; None if there is none.

    The system itself sets the time of the last change of a file's state, so that no two contents share a
    digest. It takes a sixth of the time of reading the files, whose digest the cache has under it.
    """
    digest, count = hashlib.sha256(salt.encode()), 0
    for entry in _sources(os.fspath(root)):
        state = entry.stat()
        times = f"{state.st_mtime_ns} {state.st_ctime_ns}"
        digest.update(f"{entry.path}\0{state.st_ino} {state.st_size} {times}\0".encode())
        count += 1
    return digest.digest() if count else None


def _sources(folder: str) -> Iterator[os.DirEntry[str]]:
    """The source files below a folder in a fixed order, those of `__pycache__` left out."""
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=attrgetter("name"))
    for entry in ordered:
        if entry.name.endswith((".py", ".pyc")):
            yield entry
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _sources(entry.path)


def sources_digest(root: Path, salt: str) -> str:
    """Digest of every source file below a folder, names included.

    All of them: dimensions and orders of loops come from front ends too, and a list of what generates code
    would one day lack a folder. It takes 1.3 times as long as the digest of the back end's folders did. Where
    there are no files, as in an archive, no two processes have the same digest.

    >>> sources_digest(Path(os.devnull), "") == sources_digest(Path(os.devnull), "")
    False
    """
    digest, count, place = hashlib.sha256(salt.encode()), 0, os.fspath(root)
    for entry in _sources(place):
        with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123 - paths of pathlib take as long as reading
            content = file.read()
        digest.update(f"{entry.path[len(place) :]}\0{len(content)}\0".encode())
        digest.update(content)
        count += 1
    if not count:
        digest.update(os.urandom(32))
    return digest.hexdigest()


@cache
def _version_of(package: str) -> str:
    """Digest of the sources of another package."""
    spec = find_spec(package)
    places = [] if spec is None else [*(spec.submodule_search_locations or ())]
    return ",".join(sources_digest(Path(place), package) for place in places) or os.urandom(16).hex()


def outside_version(problem: object) -> str:
    """What stands for the generator of a problem that another package defines; "" for those of this one.

    >>> from tilewright.ops.gemm.problem import Gemm
    >>> outside_version(Gemm()), outside_version(Path())[:9]
    ('', ' pathlib ')
    """
    package = type(problem).__module__.partition(".")[0]
    return "" if package == __name__.partition(".")[0] else f" {package} {_version_of(package)}"


def key_of(what: str, machine: Machine) -> bytes:
    """The digest of everything that shapes an object: generator, LLVM, machine, problem.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> len(key_of("gemm", find_machine("znver5")))
    32
    """
    parts = (generator_version(), machine.triple, machine.cpu, machine.features, machine.full_text, what)
    return hashlib.sha256("\0".join(parts).encode()).digest()


class ObjectExchange:
    """What this process uses of the object cache, and who else may have what the cache lacks.

    One of the few states of a process. Workers of a cluster hand objects to each other by it.

    Attributes
    ----------
    names : what shaped each object that was loaded or stored, by key.
    sources : asked in turn, with name and key, before an object is compiled; None: it has no such object.
    """

    def __init__(self) -> None:
        self.names: dict[bytes, str] = {}
        self.sources: list[Callable[[str, bytes], bytes | None]] = []

    def ask(self, what: str, key: bytes) -> bytes | None:
        """An object from elsewhere."""
        found = (source(what, key) for source in self.sources)
        return next((one for one in found if one is not None), None)


exchange = ObjectExchange()


def stored_object(what: str, machine: Machine) -> bytes | None:
    """The object of `what` on a machine, if the cache has it."""
    store = object_cache()
    if store is None:
        return None
    key = key_of(what, machine)
    found = store.load(key)
    if found is not None:
        exchange.names[key] = what
    return found


def cached_object(what: str, machine: Machine, compile_it: Callable[[], bytes]) -> bytes:
    """The object of `what` on a machine, from the cache or compiled and stored.

    `what` names everything beside generator, LLVM and machine that shapes the object.
    """
    store = object_cache()
    if store is None:
        return compile_it()
    key = key_of(what, machine)
    found = store.load(key)
    if found is None:
        found = exchange.ask(what, key)
        if found is None:
            found = compile_it()
        store.store(key, found)
    exchange.names[key] = what
    return found
