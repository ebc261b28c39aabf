"""Matrices in tiles that are not this host's, whatever these are."""

from __future__ import annotations

from support import Array

import tilewright as tw

#: Machines whose tiles differ from each other's: any host has other tiles than one of them.
_TARGETS = ("emulate:pwr10", "emulate:sapphirerapids")


def foreign_packed(matrix: Array) -> tw.PackedMatrix:
    """A matrix packed as B for a machine with other tiles than this host: equal ones are accepted."""
    own = tw.pack(matrix)
    packed = [tw.pack(matrix, target=target) for target in _TARGETS]
    return next(other for other in packed if other.form.panels != own.form.panels)
