"""All rows by overload."""

from __future__ import annotations

from typing import Any

from tilewright.torch.rows.elements import ELEMENT_ROWS
from tilewright.torch.rows.products import PRODUCT_ROWS
from tilewright.torch.rows.row import Row
from tilewright.torch.rows.shapes import SHAPE_ROWS

ROWS: dict[Any, Row] = {**ELEMENT_ROWS, **SHAPE_ROWS, **PRODUCT_ROWS}

#: Operations with a row that PyTorch would take apart otherwise.
KEPT = frozenset(overload for overload in ROWS if overload.namespace == "aten")
