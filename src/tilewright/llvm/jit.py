"""Links object code into this process and frees it again when its last owner goes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from tilewright.llvm.target import initialize

_numbers = itertools.count()
#: Held while the JIT links.
linking = threading.Lock()


def llvm_lock() -> Any:
    """What llvmlite holds during each call of LLVM."""
    return llvm.ffi.lib._lock  # noqa: SLF001


@lru_cache(maxsize=1)
def _lljit() -> Any:
    """The process's one JIT; it links finished objects, so it needs no CPU of its own."""
    initialize()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        reloc="pic",
        codemodel="default",
        jit=True,
    )
    # RuntimeDyld maps each section where it finds room, and aborts the process where two that refer to each
    # other are 2 GiB apart, as beside large arrays (docs/decisions/023-jit-link.md).
    return llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=False)


class Linked:
    """Object code at its place in memory; the code is freed with this object.

    Examples
    --------
    >>> code = Linked(object_code, exports=("gemm",), imports={})  # doctest: +SKIP
    >>> code.address("gemm")  # doctest: +SKIP
    """

    def __init__(self, object_code: bytes, exports: Sequence[str], imports: Mapping[str, int]) -> None:
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(object_code)
        for name in exports:
            builder.export_symbol(name)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        with linking:
            self._tracker: Any = builder.link(_lljit(), f"tilewright.{next(_numbers)}")

    def address(self, name: str) -> int:
        """Where an exported function starts."""
        return int(self._tracker[name])
