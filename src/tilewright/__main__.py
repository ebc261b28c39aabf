"""`python -m tilewright`: the command line."""

from tilewright.tools.cli import main

if __name__ == "__main__":
    main()
