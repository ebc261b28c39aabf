"""Calls with arrays: operands checked and converted, prepared calls, native entries."""
