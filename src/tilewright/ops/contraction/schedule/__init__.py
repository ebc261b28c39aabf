"""Passes that find a schedule of a contraction: each takes one and gives one that means the same."""
