"""Repeated calls: Python makes one and it is taken down as a recipe, which machine code finds and runs."""
