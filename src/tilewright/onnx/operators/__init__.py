"""Operators of models, one file for each kind."""
