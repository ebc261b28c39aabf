"""A toy operation in one folder: its problem, and its record."""
