"""From a problem record to a kernel: stages, lowering, the kernel, its names and headers."""
