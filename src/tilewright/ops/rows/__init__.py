"""Functions of rows: softmax, norms, reductions."""
