"""PyTorch: a backend of `torch.compile`, operators with gradients, and modules with packed weights."""

from tilewright.errors import TorchMissing

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise TorchMissing(reason=str(error)) from error

from tilewright.torch.backend import register as _register
from tilewright.torch.backend import tilewright as backend

__all__ = ["backend"]

_register()
