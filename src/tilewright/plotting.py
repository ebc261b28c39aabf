"""Pictures of the package: their colour, and whether one can be drawn."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from tilewright.errors import InvalidChoice, PackageMissing, shown

#: Okabe and Ito's blue.
OUR_COLOUR = "#0072B2"
#: File name endings that are drawn.
FORMATS = (".png", ".svg", ".pdf")


def check_plot_path(path: Path) -> None:
    """Refuse, before anything is measured, a plot that could not be drawn afterwards.

    Raises
    ------
    InvalidChoice : the file name has another ending than `FORMATS`.
    PackageMissing : matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise InvalidChoice(
            name="ending of the plot's file name", found=shown(path.name), allowed=", ".join(FORMATS)
        )
    if find_spec("matplotlib") is None:
        raise PackageMissing(purpose="drawing a plot", package="matplotlib", install="tilewright[bench]")
