"""Kernels on CPUs that this machine is not, under qemu.

`emulators.py` has a row for each architecture, `kernels.py` compiles, `gemm_cases.py`, `type_cases.py` and
`unary_cases.py` say what is run, on operands of `elements.py`; `case_file.py` writes it to the file that
`harness.c` reads and checks on the other side.
A machine that joins the catalogue is run if a row of `EMULATORS` names its architecture.
"""
