"""Quantised weights."""
