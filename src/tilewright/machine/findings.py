"""What `tilewright tune` found: the records, their JSON form, and the tunings in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from math import isfinite
from typing import Any, TypeVar

from tilewright.errors import InvalidSize
from tilewright.machine.tuning import TunedConstant, Tuning
from tilewright.records import dataclass

#: Changes with the meaning of constants and classes, so that files of other versions are left alone.
TUNING_VERSION = 1
#: What a file begins with.
_FORMAT = "tilewright tuning"
#: Types of products, classes of each, constants of each class, and shapes in a file, at most.
MOST_TYPES, MOST_CLASSES, MOST_CONSTANTS, MOST_SHAPES = 64, 32, 16, 64

_WORD = re.compile(r"[a-z][a-z0-9_ ]{0,63}", re.ASCII)
_SHAPE = re.compile(r"[0-9a-z* ]{1,64}", re.ASCII)

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """What the measurements of one class of shapes found.

    Attributes
    ----------
    shape_class : its name.
    model : the models' choice of each constant of the class.
    chosen : what replaces it; the same where nothing was faster.
    gain, low, high : speed over that of the model's choice, median and confidence interval; 1 if that stays.
    noise : the same ratio of two measurements of one kernel; a smaller gain would not have counted.
    rounds : that decided.
    seconds : the class took.
    shapes : that were measured.
    """

    shape_class: str
    model: Mapping[str, int]
    chosen: Mapping[str, int]
    gain: float
    low: float
    high: float
    noise: float
    rounds: int
    seconds: float
    shapes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not _WORD.fullmatch(self.shape_class) or not self.model or list(self.model) != list(self.chosen):
            raise InvalidSize(
                name="class of shapes", found=self.shape_class, required="one with the same constants twice"
            )
        if len(self.model) > MOST_CONSTANTS or not 0 < len(self.shapes) <= MOST_SHAPES:
            raise InvalidSize(name="constants or shapes of a class", found="too many", required="a few")
        if not all(_SHAPE.fullmatch(shape) for shape in self.shapes):
            raise InvalidSize(name="shapes of a class", found="other text", required="sizes such as 8x8x8")
        for name in ("gain", "low", "high", "noise", "seconds"):
            found = getattr(self, name)
            if isinstance(found, bool) or not isinstance(found, (int, float)) or not isfinite(found):
                raise InvalidSize(name=name, found=found, required="a finite number")
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 0:
            raise InvalidSize(name="rounds", found=self.rounds, required="an integer from 0 up")
        self.constants  # noqa: B018 - each checks itself

    @property
    def constants(self) -> tuple[TunedConstant, ...]:
        """Every constant of the class."""
        return tuple(TunedConstant(name, self.model[name], self.chosen[name]) for name in self.model)

    @property
    def replaces(self) -> bool:
        """Whether the model's choice is replaced."""
        return dict(self.model) != dict(self.chosen)


#: What is known of each type of products, by the name of the type; the latest finding of a class counts.
Findings = Mapping[str, tuple[Finding, ...]]


def tunings_of(findings: Findings) -> tuple[Tuning, ...]:
    """What machines read of some findings: the constants that are replaced, and nothing of times.

    A class that is measured again with the same result leaves the keys of kernels as they are.
    """
    found = []
    for types in sorted(findings):
        constants = {
            constant.name: constant
            for finding in findings[types]
            if finding.replaces
            for constant in finding.constants
        }
        if constants:
            found.append(Tuning(types, tuple(constants[name] for name in sorted(constants))))
    return tuple(found)


def merged(findings: Findings, types: str, finding: Finding) -> dict[str, tuple[Finding, ...]]:
    """The findings with another one, in place of that of its class."""
    others = tuple(one for one in findings.get(types, ()) if one.shape_class != finding.shape_class)
    return {**findings, types: (*others, finding)}


def encode_findings(kind: str, findings: Findings) -> str:
    """The text of a file: findings for one kind of CPU."""
    content = {types: [asdict(finding) for finding in classes] for types, classes in findings.items()}
    record = {"format": _FORMAT, "version": TUNING_VERSION, "kind": kind, "findings": content}
    return json.dumps(record, indent=1) + "\n"


def decode_findings(content: bytes, kind: str) -> Findings:
    """The findings in the text of a file.

    Raises
    ------
    ValueError : the text is none of ours, of another version or of another kind of CPU; the message says so.

    >>> decode_findings(b"{}", "a cpu")
    Traceback (most recent call last):
    ...
    ValueError: it is not a file of tuned constants
    """
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not a file of tuned constants") from error
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise ValueError("it is not a file of tuned constants")
    if record.get("version") != TUNING_VERSION:
        raise ValueError(f"its version is {str(record.get('version'))[:20]}, not {TUNING_VERSION}")
    if record.get("kind") != kind:
        raise ValueError(f"it is for another kind of CPU: {str(record.get('kind'))[:200]}")
    try:
        found = record["findings"]
        if len(found) > MOST_TYPES:
            raise ValueError("more types than are kept")
        return {types: _classes(types, classes) for types, classes in found.items()}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"it is damaged ({error})") from error


def _classes(types: str, classes: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """The findings of one type, each class once."""
    names = {field.name for field in fields(Finding)}
    if not _WORD.fullmatch(types):
        raise ValueError("a type without a name")
    found = []
    for entry in classes:
        if set(entry) != names:
            raise ValueError("other fields than a finding has")
        shapes = tuple(map(_text, entry["shapes"]))
        model, chosen = (dict(_mapping(entry[name])) for name in ("model", "chosen"))
        name = _text(entry["shape_class"])
        found.append(
            Finding(**{**entry, "shape_class": name, "model": model, "chosen": chosen, "shapes": shapes})
        )
    if len(found) > MOST_CLASSES or len({one.shape_class for one in found}) < len(found):
        raise ValueError("a class twice, or too many")
    return tuple(found)


def _required(kind: type[T]) -> Callable[[Any], T]:
    def check(value: Any) -> T:
        if not isinstance(value, kind):
            raise TypeError(f"no {kind.__name__}")
        return value

    return check


_text, _mapping = _required(str), _required(dict)
