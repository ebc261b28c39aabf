"""Models: graphs of operations that are compiled and run as one call."""
