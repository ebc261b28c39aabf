"""Weights of models: files, and the layouts of quantised weights."""
