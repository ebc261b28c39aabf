"""A machine and a row of instructions of another package: an Arm core, and Neon with 30 registers."""

from __future__ import annotations

from dataclasses import replace

from tilewright.machine.catalog import CatalogEntry, find_machine
from tilewright.machine.isa_rows import NEON

TOY_ROW = replace(NEON, name="toy-row", vector_registers=30)
TOY_CORE = CatalogEntry(replace(find_machine("neoverse-n1"), name="toy-core"), "made up, for an example")
