"""einops: `einops.einsum` of NumPy's arrays on Tilewright, between `enable` and `disable`."""

from tilewright.einops.backend import disable, enable, enabled

__all__ = ["disable", "enable", "enabled"]
