"""Every system that the whole benchmark compares with: what it needs, and why it is left out."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec

from tilewright.errors import InvalidChoice, PackageMissing, ToolMissing, shown
from tilewright.records import dataclass

#: Compilers by the languages that they are asked for; the first that is found is taken.
C_COMPILERS = ("cc", "gcc", "clang")
CXX_COMPILERS = ("c++", "g++", "clang++")
CLANGS = ("clang", "clang-22", "clang-21", "clang-20", "clang-19", "clang-18")


@dataclass(frozen=True)
class Peer:
    """One system, by the name that rows have.

    Attributes
    ----------
    name : in files and on the command line.
    title : in tables and charts.
    packages : of Python, each of which it needs.
    tools : programs of which it needs one.
    header : a header that its C compiler must find.
    debian : the package of that program or header.
    """

    name: str
    title: str
    packages: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    header: str = ""
    debian: str = ""

    def check(self) -> None:
        """Refuse a system that is not here.

        Raises
        ------
        PackageMissing, ToolMissing
        """
        purpose = f"measuring {self.title}"
        for package in self.packages:
            if not is_installed(package):
                raise PackageMissing(purpose=purpose, package=package, install="tilewright[peers]")
        if self.tools and first_tool(self.tools) is None:
            raise ToolMissing(purpose=purpose, tool=" or ".join(self.tools), package=self.debian)
        if self.header and not has_header(self.header):
            raise ToolMissing(purpose=purpose, tool=self.header, package=self.debian)


def is_installed(package: str) -> bool:
    """Whether a package, or one inside a package, can be imported."""
    outer = package.partition(".")[0]
    return find_spec(outer) is not None and find_spec(package) is not None


def first_tool(tools: tuple[str, ...]) -> str | None:
    """The path of the first program that is found, or None."""
    return next(filter(None, map(shutil.which, tools)), None)


@cache
def has_header(name: str) -> bool:
    """Whether the C compiler finds a header."""
    compiler = first_tool(C_COMPILERS)
    if compiler is None:
        return False
    command = [compiler, "-E", "-x", "c", "-", "-o", os.devnull]
    done = subprocess.run(command, input=f"#include <{name}>".encode(), capture_output=True, check=False)
    return done.returncode == 0


#: Every peer. "tilewright" is not one.
PEERS = (
    Peer("numpy", "NumPy", ("numpy",)),
    Peer("numpy-best", "NumPy, best setting", ("numpy",)),
    Peer("scipy", "SciPy", ("scipy",)),
    Peer("torch", "PyTorch", ("torch",)),
    Peer("inductor", "Inductor", ("torch",), CXX_COMPILERS, debian="g++"),
    Peer("jax", "JAX", ("jax",)),
    Peer("onnxruntime", "ONNX Runtime", ("onnxruntime", "onnx")),
    Peer("numba", "Numba", ("numba",)),
    Peer("libxsmm", "LIBXSMM", (), C_COMPILERS, "libxsmm.h", "libxsmm-dev"),
    Peer("iree", "IREE", ("iree.compiler", "iree.runtime")),
    Peer("clang", "clang -O3", (), CLANGS, debian="clang"),
    Peer("gcc", "gcc -O3", (), ("gcc",), debian="gcc"),
)


def find_peer(name: str) -> Peer:
    """The peer of a name.

    >>> find_peer("jax").title
    'JAX'
    """
    for peer in PEERS:
        if peer.name == name:
            return peer
    raise InvalidChoice(name="peer", found=shown(name), allowed=", ".join(peer.name for peer in PEERS))


def title_of(system: str) -> str:
    """The name of a system in tables and charts.

    >>> title_of("tilewright"), title_of("onnxruntime")
    ('Tilewright', 'ONNX Runtime')
    """
    return {peer.name: peer.title for peer in PEERS}.get(system, "Tilewright")
