"""Loop nests of any language, and the matrix product that a nest computes."""
