"""Loops that an optimiser has unrolled or vectorised, read as the scalar loops that they compute."""
