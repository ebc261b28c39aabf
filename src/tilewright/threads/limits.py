"""`threadpoolctl` support: it lists and limits the pool once both packages are imported, in either order.

Importing threadpoolctl takes 8 ms, so this package does not import it; it registers when another one does.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tilewright.preparing import importing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_WATCHED = "threadpoolctl"


def register_pool() -> None:
    """Register the pool with threadpoolctl, now or when that is imported."""
    loaded = sys.modules.get(_WATCHED)
    if loaded is None:
        sys.meta_path.insert(0, _Watcher())
    else:
        _register(loaded)


class _Watcher:
    """Import hook that registers the pool after threadpoolctl was executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of threadpoolctl from the other finders; None for every other module."""
        if fullname != _WATCHED:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            _register(module)

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]  # of this loader alone
        return spec


def _register(threadpoolctl: ModuleType) -> None:
    """Add the controller; versions of threadpoolctl before 3.2 do not support that."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Watcher)]
    if not hasattr(threadpoolctl, "register"):
        return

    class TilewrightController(threadpoolctl.LibController):  # type: ignore[misc,name-defined]
        """The thread pool, identified by the library that its code is compiled with."""

        user_api = "tilewright"
        internal_api = "tilewright"
        filename_prefixes = ("libllvmlite", "llvmlite")

        def get_num_threads(self) -> int:
            """Default number of threads of a call."""
            with importing:
                from tilewright.threads.pool import get_num_threads

            return get_num_threads()

        def set_num_threads(self, num_threads: int) -> None:
            """Set the number of threads of later calls, in all threads of the application."""
            with importing:
                from tilewright.threads.pool import set_num_threads

            set_num_threads(num_threads)

        def get_version(self) -> str | None:
            """The version of this package."""
            package = sys.modules.get("tilewright")
            return getattr(package, "__version__", None)

    threadpoolctl.register(TilewrightController)
