"""Attention on this machine: what is measured, by which systems, and how it is shown."""
