"""Python functions read as loop nests."""
