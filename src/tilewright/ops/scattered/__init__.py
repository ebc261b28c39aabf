"""Products of operands addressed through tables."""
