"""Functions of pairs of elements: sums, products, gates."""
