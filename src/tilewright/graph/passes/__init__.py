"""Passes over networks: each a pure function, whose docstring shows a network before and after."""
