"""Embeddings: rows of a table by their indices."""
