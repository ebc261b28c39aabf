"""JAX, which only this package imports, and the version of its foreign function interface."""

from __future__ import annotations

import re
from pathlib import Path

from tilewright.errors import JaxInterfaceUnknown, JaxMissing
from tilewright.jax.frame import MAJOR

try:
    import jax
    import jax.extend
    import jax.ffi
    import jax.numpy as jnp
    import jaxlib
    from jax.interpreters import ad, batching, mlir
except ImportError as error:
    raise JaxMissing(reason=str(error)) from error

__all__ = ["ad", "batching", "check_interface", "jax", "jnp", "mlir"]

_MAJOR = re.compile(r"#define XLA_FFI_API_MAJOR (\d+)")


def check_interface() -> None:
    """Refuses a jaxlib whose headers declare another major version of the interface.

    The handler itself checks what XLA passes to it; here the error is raised by the import.

    Raises
    ------
    JaxInterfaceUnknown
    """
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    text = header.read_text(encoding="utf-8") if header.exists() else ""
    declared = _MAJOR.search(text)
    if declared is not None and int(declared[1]) != MAJOR:
        raise JaxInterfaceUnknown(required=MAJOR, jaxlib=jaxlib.__version__, found=declared[1])
