"""Loops of programs, found and replaced: sources in four languages, compiled, run before and behind.

`sources/` has the programs; above each function stands how it is called and what is to be found in it, which
`calls.py` reads. `toolchains.py` makes libraries of them, `drivers.py` calls their functions.
`random_nests.py` and `random_forms.py` draw programs, which `fuzz.py` runs for as long as one likes;
`stored.py` keeps LLVM IR in `ir/`.
"""
