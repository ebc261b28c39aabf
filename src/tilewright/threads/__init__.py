"""Thread pool, per-thread scratch memory, fork safety and process exit."""
