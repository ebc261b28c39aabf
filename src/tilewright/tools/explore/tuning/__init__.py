"""`tilewright tune`: which constants are tried on which products, and how the faster ones are chosen."""
