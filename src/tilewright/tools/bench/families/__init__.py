"""The operations of every family, by name. A new family is a file here and a line in `OPERATIONS`."""

from __future__ import annotations

from tilewright.tools.bench.families import calls, einsum, kernels, linear, loops, models, rows

#: Every operation that is no plain product and no attention.
OPERATIONS = {
    operation.name: operation
    for family in (einsum, linear, rows, models, loops, kernels, calls)
    for operation in family.OPERATIONS
}
