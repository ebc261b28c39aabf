"""Nodes of graphs: one class for each kind, with its shapes, its meaning in NumPy and how it runs."""
