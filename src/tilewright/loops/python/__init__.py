"""Reader of Python functions: `for` statements as loop nests."""
