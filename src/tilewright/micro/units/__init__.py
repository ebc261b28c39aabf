"""Multiply units: one file per kind of instruction."""
