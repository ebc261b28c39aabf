"""`python -m tilewright_cc OPTIONS -- COMMAND`: the same as `tilewright cc`."""

from tilewright_cc.launch import compiler_main

if __name__ == "__main__":
    compiler_main()
