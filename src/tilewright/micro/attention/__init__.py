"""Register blocks of attention."""
