"""The command line, the benchmark and the reports."""
