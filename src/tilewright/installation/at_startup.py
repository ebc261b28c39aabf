"""Runs `tilewright.install` after the first import of NumPy; executed by path when Python starts.

It imports nothing of the package until then: most programs that inherit TILEWRIGHT_INSTALL=1, as pip and
compilers' scripts, never import NumPy, and start as fast as before. Whatever goes wrong is one line on
standard error; the program runs on, with NumPy's own products.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

#: Modules after which to install: the package itself imports NumPy while it is not complete.
_AFTER = ("tilewright", "numpy")


class InstallAfterImport:
    """Import hook that installs after NumPy, or the package, has been executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification of a watched module from the other finders; None for every other module."""
        if fullname not in _AFTER:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is None or spec.loader is None:
            return spec
        if fullname == "numpy" and "tilewright" in sys.modules:
            return spec  # the package is being imported, and comes first
        execute = spec.loader.exec_module

        def execute_and_install(module: ModuleType) -> None:
            execute(module)
            self.install(module)

        spec.loader.exec_module = execute_and_install  # type: ignore[method-assign]  # of this loader alone
        return spec

    def install(self, module: ModuleType) -> None:
        """Installs, and is no hook any more."""
        if self not in sys.meta_path:
            return
        sys.meta_path.remove(self)
        try:
            package = module if module.__name__ == "tilewright" else __import__("tilewright")
            package.install()
        except Exception as error:
            sys.stderr.write(f"tilewright: NumPy's products stay as they are: {error}\n")


if __name__ == "tilewright_at_startup":
    sys.meta_path.insert(0, InstallAfterImport())
