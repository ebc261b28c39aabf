"""Runs kernels on the caller's arrays: scratch, checks, the native entry."""
