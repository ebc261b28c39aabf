"""Deprecated names: how one is declared, and the warning of its users (`docs/reference/versions.md`)."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from tilewright.errors import DeprecatedName


class Deprecated(NamedTuple):
    """A public name or option that is going away.

    Attributes
    ----------
    name : as users write it, such as "tilewright.old" or "matmul: the option old".
    replacement : what to use instead; of a name in a table of names, the public name that it stands for.
    since, removed : the version that warns first, and the first one without the name.
    """

    name: str
    replacement: str
    since: str
    removed: str

    def warn(self, levels: int = 1) -> None:
        """Warn of the line so many calls above the caller of this method.

        >>> with warnings.catch_warnings(record=True) as given:
        ...     warnings.simplefilter("always")
        ...     Deprecated("tilewright.mm", "tilewright.matmul", "1.2", "2.0").warn(0)
        >>> str(given[0].message).partition(";")[2]
        ' use tilewright.matmul'
        """
        text = DeprecatedName.message.format(**self._asdict())
        warnings.warn(text, DeprecatedName, stacklevel=levels + 2)
