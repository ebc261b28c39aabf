"""The public products of arrays of any kind."""
