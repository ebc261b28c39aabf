"""Compilers of other people, driven so that loops of programs are replaced on the way: `tilewright cc`."""
