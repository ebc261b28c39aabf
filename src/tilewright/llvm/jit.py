"""Links object code into this process and frees it again when its last owner goes.

An address does not keep its code alive: whoever stores one also stores the `Linked` that it points into.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm

from tilewright.llvm.backends import initialize
from tilewright.preparing import once, preparing
from tilewright.recorder import current

_numbers = itertools.count()


@once
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
        with preparing:
            self._tracker: Any = builder.link(_lljit(), f"tilewright.{next(_numbers)}")

    def address(self, name: str) -> int:
        """Where an exported function starts."""
        return int(self._tracker[name])

    def function(self, name: str, arguments: Sequence[Any], result: Any = None) -> NativeFunction:
        """An exported function for Python, which runs without the GIL and keeps the code alive.

        Parameters
        ----------
        arguments, result : types of ctypes.
        """
        return NativeFunction(self, self.address(name), tuple(arguments), result)


class CodeAddress(ctypes.c_void_p):
    """The type of those arguments of a `NativeFunction` that are machine code; the caller keeps it alive."""


class NativeFunction:
    """A function of machine code, called through ctypes; a recording is told of each call.

    Attributes
    ----------
    code : what owns the machine code; None where it stays.
    address : where it starts.
    kinds : types of ctypes of its arguments.
    thunk : how recipes call the function, as `calls/recipes/thunks.py` knows it; None until one does.
    unrecorded : the function for callers that report what it does themselves.
    """

    __slots__ = ("address", "code", "kinds", "thunk", "unrecorded")

    def __init__(self, code: Linked | None, address: int, kinds: tuple[Any, ...], result: Any) -> None:
        self.code, self.address, self.kinds = code, address, kinds
        self.thunk: Any = None
        self.unrecorded: Any = ctypes.CFUNCTYPE(result, *kinds)(address)

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function."""
        recorder = current.recorder
        if recorder is not None:
            recorder.called(self, arguments)
            if recorder.dry:
                return None
        return self.unrecorded(*arguments)
