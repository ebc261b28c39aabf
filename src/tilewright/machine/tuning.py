"""Constants of the models that measurements on this host replaced: the records that a machine has.

`tilewright tune` finds them (`tools/explore/tuning/`), `machine/tuning_file.py` keeps them, `macro/tuned.py`
applies them. Only constants are tuned that leave the order of every sum as it is. See
docs/decisions/049-tuning.md. A process whose host is not tuned imports nothing else of this.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

from tilewright.errors import InvalidSize
from tilewright.preparing import Late, importing
from tilewright.records import dataclass
from tilewright.settings import Settings

#: Constants are positive and no larger: elements of an operand.
MOST_CONSTANT = 1 << 48

_WORD = re.compile(r"[a-z][a-z0-9_ ]{0,63}", re.ASCII)
#: Reads the tunings in a file.
_load = Late("tilewright.machine.tuning_file:load_tunings")


@dataclass(frozen=True)
class TunedConstant:
    """One constant of the models and its replacement.

    Attributes
    ----------
    name : a field of `Blocking` or `InPlaceLimits`.
    model : the value that the models chose when this was measured; where they choose another one, as a later
        version may, nothing is replaced.
    value : what replaces it.
    """

    name: str
    model: int
    value: int

    def __post_init__(self) -> None:
        if not _WORD.fullmatch(self.name):
            raise InvalidSize(name="name of a tuned constant", found=self.name, required="a field's name")
        for which in ("model", "value"):
            found = getattr(self, which)
            if isinstance(found, bool) or not isinstance(found, int) or not 0 < found <= MOST_CONSTANT:
                required = f"an integer from 1 to {MOST_CONSTANT}"
                raise InvalidSize(name=f"{which} of {self.name}", found=found, required=required)


@dataclass(frozen=True)
class Tuning:
    """The replaced constants for products of some types.

    Attributes
    ----------
    types : name of the element types (`ProductTypes.name`).
    constants : ordered by name, each name once.
    """

    types: str
    constants: tuple[TunedConstant, ...]

    def __post_init__(self) -> None:
        names = [constant.name for constant in self.constants]
        if names != sorted(set(names)):
            required = "different names in order"
            raise InvalidSize(name="constants of a tuning", found=", ".join(names), required=required)

    def value(self, name: str, model: int) -> int:
        """What replaces the model's choice of a constant: that choice where nothing was found for it.

        >>> tuning = Tuning("f32", (TunedConstant("strip", 6, 12),))
        >>> tuning.value("strip", 6), tuning.value("strip", 8), tuning.value("mc", 60)
        (12, 8, 60)
        """
        for constant in self.constants:
            if constant.name == name and constant.model == model:
                return constant.value
        return model


def default_tuning_directory() -> Path:
    """Where tuned constants are kept unless TILEWRIGHT_TUNING names a file.

    It is the user's data directory, since the results of minutes should outlive a cache.
    """
    with importing:
        from platformdirs import user_data_path

    return user_data_path("tilewright") / "tuning"


def tuning_path(settings: Settings, kind: str) -> Path | None:
    """The file of a kind of CPU under some settings; None where they turn tuning off."""
    if settings.tuning is None:
        return default_tuning_directory() / f"{hashlib.sha256(kind.encode()).hexdigest()[:32]}.json"
    return Path(settings.tuning) if settings.tuning else None


@cache
def kept_tunings(settings: Settings, kind: str) -> tuple[Tuning, ...]:
    """What was kept for a kind of CPU when this process first asked."""
    path = tuning_path(settings, kind)
    try:
        if path is None or not path.stat():
            return ()
    except OSError:  # there is none, or it is out of reach
        return ()
    found: tuple[Tuning, ...] = _load(settings, kind)
    return found
