"""Data and functions of machine code that becomes a part of a program or library."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.llvm.build import Callee, Module
from tilewright.llvm.values import POINTER, Type, Value
from tilewright.threads.system_code import FieldAccess


class ProgramCode:
    """Emits data, functions for other modules, and calls of the program's libraries.

    Attributes
    ----------
    module : where it is emitted.
    owner : prefix of the functions that other modules call.
    """

    module: Module
    owner: str

    def data(self, name: str, definition: str, linkage: str = "internal global") -> Value:
        """A global variable."""
        self.module.declarations.setdefault(name, f"@{name} = {linkage} {definition}")
        return Value(POINTER, f"@{name}")

    def word(self, name: str) -> Value:
        """A 64-bit word that begins as 0."""
        return self.data(name, "i64 0, align 8")

    def text(self, name: str, text: str) -> Value:
        """A null-terminated string."""
        escaped = "".join(f"\\{byte:02X}" for byte in text.encode() + b"\0")
        return self.data(name, f'[{len(text.encode()) + 1} x i8] c"{escaped}"', "private constant")

    def entry(self, name: str, result: Type, arguments: Sequence[tuple[str, Type]]) -> FieldAccess:
        """A function for other modules of the program or library, which does not export it."""
        f = self.module.define(f"{self.owner}_{name}", result, arguments, exported=True)
        return FieldAccess(f)

    def c_function(self, name: str, result: Type, *arguments: Type) -> Callee:
        """A function of the C library."""
        return self.module.declare(name, result, arguments)

    def weak_function(self, name: str, result: Type, *arguments: Type) -> Callee:
        """A function that the process may have or not; its address is null if not."""
        kinds = ", ".join(kind.text for kind in arguments)
        self.module.declarations.setdefault(name, f"declare extern_weak {result.text} @{name}({kinds})")
        return Callee(result, f"@{name}")

    def run_at(self, time: str, function: Callee) -> None:
        """Have a function called when the program or library is loaded ("init"), or at its end ("fini").

        LLVM would place ``llvm.global_ctors`` and ``llvm.global_dtors`` into sections that not all linkers
        know. Linkers keep these sections. With ``llvm.used`` in place of ``llvm.compiler.used`` a target
        machine would remember the variable's address: a later module's at the same one got a section of
        its own.
        """
        name = f"at_{time}"
        self.data(name, f'ptr {function.text}, section ".{time}_array", align 8', linkage="internal constant")
        self.data(
            "llvm.compiler.used",
            f'[1 x ptr] [ptr @{name}], section "llvm.metadata"',
            linkage="appending global",
        )
