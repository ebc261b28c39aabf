"""Errors about what language models need besides products: positions, tables, indices, sampling."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class InvalidIndices(TilewrightError, TypeError):
    """An array of indices or positions is not one of integers."""

    message = "{name} has dtype {found}, must be of integers"


class IndexPastEnd(TilewrightError, IndexError):
    """An index or a position is not a row of its table."""

    message = "{name}{place} is {found}, must be at least 0 and less than {limit}, the number of rows"


class EmbeddingTable(TilewrightError, ValueError):
    """The table of an embedding is not a matrix."""

    speaker = "embedding"
    message = "table has shape {found}, must be (rows, d)"


class InvalidLogits(TilewrightError, ValueError):
    """A row of logits that is no distribution."""

    speaker = "sample"
    message = "logits: row {row} {reason}; must be finite numbers, or -inf for tokens that are excluded"


class InvalidGenerator(TilewrightError, TypeError):
    """The source of random numbers is not one of NumPy's generators."""

    speaker = "sample"
    message = "generator is {found}, must be a numpy.random.Generator; make one by numpy.random.default_rng"


class RotaryAxes(TilewrightError, ValueError):
    """The operand of a rotary embedding has too few or too many axes."""

    speaker = "rotary"
    message = "x has shape {found}; must have 2 to 4 axes, in layout {layout!r} {axes}"


class RotaryTables(TilewrightError, ValueError):
    """Tables of cosines and sines that do not fit each other or the heads."""

    speaker = "rotary"
    message = "{name} has shape {found}; must be {required}"


class RotaryPositions(TilewrightError, ValueError):
    """Positions that do not fit the sequences."""

    speaker = "rotary"
    message = "positions have shape {found}, which does not broadcast to {required}: {axes}"
