"""Work that follows a finished result: a failure is logged and the result returned."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("tilewright")


@contextmanager
def afterwards(function: str) -> Iterator[None]:
    """Preparation of repeated calls, behind a result that the caller must get, or an `out` that has changed.

    Errors are logged, MemoryError included. KeyboardInterrupt is raised.

    >>> with afterwards("matmul"):
    ...     raise MemoryError
    """
    try:
        yield
    except Exception as error:
        logger.warning(
            "%s: the next such call will be prepared again: %s: %s", function, type(error).__name__, error
        )
