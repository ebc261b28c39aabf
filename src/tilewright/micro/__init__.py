"""One register tile: the target-dependent kernels that the loop nests call."""
