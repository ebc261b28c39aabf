"""A BLAS written as machine code: level-3 routines under their standard names."""
