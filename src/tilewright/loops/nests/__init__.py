"""Language-independent loop nests, and recognition of the matrix product that a nest computes."""
