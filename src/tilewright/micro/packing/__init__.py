"""Packing and unpacking of micro-panels."""
