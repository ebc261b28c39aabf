"""Calls with arrays: operand checks and conversion, prepared calls, native entries."""
