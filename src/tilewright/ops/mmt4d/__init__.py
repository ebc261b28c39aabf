"""mmt4d: products of matrices in tiles."""
