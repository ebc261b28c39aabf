"""Target machines: tables of instruction-set rows and named CPUs, and detection of this host."""
