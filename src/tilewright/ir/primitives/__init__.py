"""Primitives: statements of tile IR whose fields are windows, integers, scalars and choices.

A primitive is one record: its fields, the rules they keep, its meaning in NumPy, and the name of its emission
in `micro`. Text, parser, verifier, interpreter and lowering follow from it; a new one is a class in this
package and an entry of `PRIMITIVES` in `registry.py`.
"""
