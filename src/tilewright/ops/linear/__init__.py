"""Linear layers: products with packed and quantised weights."""
