"""How complex numbers are stored in panels."""

from __future__ import annotations

from enum import Enum


class Parts(Enum):
    """How the elements of a source are stored in a panel.

    WHOLE: each is one element of the panel. The others turn products of complex numbers into real ones
    (the 1m method, Van Zee, SIAM J. Sci. Comput. 42(5), 2020): with twice the depth and twice the columns,
    C += A·B on the adjacent parts of C.

    SPLIT: of A: real part, then imaginary part, as two depths. ROTATED: of B: as two depths, one of (real,
    imaginary), one of (-imaginary, real), each as two lanes.
    """

    WHOLE = "whole"
    SPLIT = "split"
    ROTATED = "rotated"

    @property
    def spread(self) -> tuple[int, int]:
        """Lanes and depths of the panel for one element of the source."""
        return {"whole": (1, 1), "split": (1, 2), "rotated": (2, 2)}[self.value]
