"""Optional work after a finished result: failures are logged and the result is still returned."""

from __future__ import annotations

import logging

logger = logging.getLogger("tilewright.calls")


class afterwards:  # noqa: N801 - a context like those of contextlib
    """Context for preparing repeated calls after a result is complete, or `out` has been written.

    Errors are logged, including MemoryError. KeyboardInterrupt is raised.

    >>> with afterwards("matmul"):
    ...     raise MemoryError
    """

    __slots__ = ("_function",)

    def __init__(self, function: str) -> None:
        self._function = function

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        logger.warning(
            "%s: the next such call will be prepared again: %s: %s",
            self._function,
            type(error).__name__,
            error,
        )
        return True
