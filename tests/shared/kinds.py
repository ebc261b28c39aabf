"""Machines of the catalogue that differ in the code that is generated for them."""

from __future__ import annotations

from collections.abc import Iterable

from _pytest.mark.structures import ParameterSet
from tiers import first_of

from tilewright.machine.catalog import find_machine
from tilewright.spec.dtype import BF16, F32


def kind_of(name: str) -> tuple[object, ...]:
    """Architecture, row, lengths of vectors and of streaming ones, and the units that multiply."""
    machine = find_machine(name)
    isa = machine.isa
    units = (isa.tile(F32).instruction, isa.tile(BF16).instruction)
    return machine.arch, isa.name, machine.function_bits, machine.streaming_bits, *units


def each_kind(names: Iterable[str]) -> list[ParameterSet]:
    """Names of machines; in `make test` the first of each kind."""
    return first_of(names, kind_of)
