"""Register tiles: unrolling, edges, epilogues."""
