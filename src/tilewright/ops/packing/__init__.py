"""Packing: matrices copied into the tiled layout of a machine."""
