"""PyTorch: a backend of `torch.compile`, operators with gradients, and modules with packed weights."""

from tilewright.errors import TorchMissing

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise TorchMissing(reason=str(error)) from error

from tilewright.torch.backend import register as _register
from tilewright.torch.dynamo import teach_dynamo as _teach_dynamo
from tilewright.torch.explain import explain
from tilewright.torch.modules import optimize, restore
from tilewright.torch.operators import attention, linear, matmul
from tilewright.torch.scaled_dot_product import register_scaled_dot_product as _register_scaled_dot_product

__all__ = ["attention", "explain", "linear", "matmul", "optimize", "restore"]

_register()
_teach_dynamo()
_register_scaled_dot_product()
