"""Contractions whose operands are located by tables of offsets."""
