"""The table of operations: for each overload of ATen the calls of a `Graph` that it becomes."""
