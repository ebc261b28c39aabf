"""Optional work after a finished result: failures are logged and the result is still returned."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("tilewright")


@contextmanager
def afterwards(function: str) -> Iterator[None]:
    """Context for preparing repeated calls after a result is complete, or `out` has been written.

    Errors are logged, including MemoryError. KeyboardInterrupt is raised.

    >>> with afterwards("matmul"):
    ...     raise MemoryError
    """
    try:
        yield
    except Exception as error:
        logger.warning(
            "%s: the next such call will be prepared again: %s: %s", function, type(error).__name__, error
        )
