"""The names of the package's loggers, which `docs/reference/logging.md` lists.

All of them are below `tilewright`: a level or a handler that is set there holds for every one. The package
adds no handler, so that messages of level WARNING reach standard error unless a program says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Logger: what it reports.
LOGGERS: Mapping[str, str] = {
    "tilewright.cache": "the object cache and other private files: entries made again, directories not used",
    "tilewright.calls": "what calls do beside their kernel: copies of operands, calls left to NumPy",
    "tilewright.dask": "objects from other workers, and workers that do not answer",
    "tilewright.graph": "statistics that a compiled graph does without",
    "tilewright.install": "products that NumPy keeps after `tilewright.install`",
    "tilewright.jax": "problems in programs of JAX that go through Python",
    "tilewright.loops": "loops under `tilewright.accelerate` that run as written",
    "tilewright.machine": "measurements and tuned constants that are not used",
    "tilewright.registered": "operations and machines of other packages that are registered twice",
    "tilewright.threads": "threads that could not be started",
    "tilewright.torch": "operations that stay with PyTorch, weights that are no longer packed",
}
