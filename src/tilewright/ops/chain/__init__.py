"""Chains of linear layers compiled as one kernel."""
