"""Where it runs: instruction-set rows, named CPUs and this host, as tables."""
