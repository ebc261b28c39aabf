"""Records behave as the standard library's dataclasses."""

from __future__ import annotations

import builtins
import copy
import dataclasses
import inspect
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import tilewright
from tilewright.cached import cached_property
from tilewright.records import dataclass

Made = dict[str, Any]


def classes_of(make: Any) -> Made:
    """The same classes, decorated by one of both."""

    @make(frozen=True)
    class Plain:
        a: int
        b: str = "b"
        kind: ClassVar[str] = "plain"

        @cached_property
        def twice(self) -> int:
            return 2 * self.a

    @make(frozen=True)
    class Derived(Plain):
        """With a field of its own, and another default for one that it inherits."""

        c: tuple[int, ...] = ()
        b: str = "other"

    @make(frozen=True)
    class Checked:
        a: int
        seen: int = field(default=0, init=False)
        hidden: list[int] = field(default_factory=list, repr=False, compare=False)
        unhashed: float = field(default=1.0, hash=False)

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError(self.a)
            object.__setattr__(self, "seen", self.a + 1)

    @make()
    class Changeable:
        values: dict[str, int] = field(default_factory=dict)
        size: int = 0

    @make(frozen=True, eq=False)
    class Identity:
        array: Any

    @make(frozen=True, init=False)
    class Own:
        a: int

        def __init__(self, text: str) -> None:
            object.__setattr__(self, "a", int(text))

        def __repr__(self) -> str:
            return f"<{self.a}>"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.a % 10 == other.a % 10

        def __hash__(self) -> int:
            return self.a % 10

    @make(frozen=True, order=True)
    class Ordered:
        a: int
        b: int = 0

    @make(frozen=True)
    class Empty:
        pass

    return {one.__name__: one for one in locals().values() if isinstance(one, type)}


OURS, THEIRS = classes_of(dataclass), classes_of(dataclasses.dataclass)

MAKERS: dict[str, Callable[[Made], Any]] = {
    "plain": lambda k: k["Plain"](1),
    "by name": lambda k: k["Plain"](b="x", a=3),
    "derived": lambda k: k["Derived"](1, c=(2,)),
    "checked": lambda k: k["Checked"](4),
    "given": lambda k: k["Checked"](4, [1], unhashed=2.0),
    "changeable": lambda k: k["Changeable"]({"x": 1}),
    "default factory": lambda k: k["Changeable"](),
    "own": lambda k: k["Own"]("12"),
    "ordered": lambda k: k["Ordered"](1, 2),
    "empty": lambda k: k["Empty"](),
}


@pytest.mark.parametrize("name", MAKERS)
def test_objects_look_the_same(name: str) -> None:
    ours, theirs = MAKERS[name](OURS), MAKERS[name](THEIRS)
    assert repr(ours) == repr(theirs)
    assert asdict(ours) == asdict(theirs)
    assert vars(ours) == vars(theirs)
    assert type(ours).__match_args__ == type(theirs).__match_args__
    assert [one.name for one in fields(ours)] == [one.name for one in fields(theirs)]
    assert signature(ours) == signature(theirs).replace("<factory>", str(dataclasses.MISSING))
    assert copy.copy(ours) == ours
    assert (type(ours).__hash__ is None) == (type(theirs).__hash__ is None)


def signature(record: Any) -> str:
    return str(inspect.signature(type(record)))


@pytest.mark.parametrize("name", MAKERS)
def test_equality_and_hashes(name: str) -> None:
    one, same = MAKERS[name](OURS), MAKERS[name](OURS)
    assert one == same
    assert one != MAKERS["plain" if name != "plain" else "derived"](OURS)
    if type(one).__hash__ is None:
        with pytest.raises(TypeError):
            hash(one)
    else:
        assert hash(one) == hash(same) == hash(MAKERS[name](THEIRS))


def test_what_is_not_compared() -> None:
    for kind in (OURS, THEIRS):
        checked = kind["Checked"]
        assert checked(1, [1]) == checked(1, [2])
        assert checked(1, unhashed=2.0) != checked(1)
        assert hash(checked(1, unhashed=2.0)) == hash(checked(1))
        assert kind["Own"]("2") == kind["Own"]("12")
        assert kind["Identity"](np.ones(3)) != kind["Identity"](np.ones(3))
        assert kind["Ordered"](1, 2) < kind["Ordered"](2)
        nan = float("nan")
        assert kind["Plain"](nan) == kind["Plain"](nan)


@pytest.mark.parametrize("kind", [OURS, THEIRS])
def test_frozen_objects_do_not_change(kind: Made) -> None:
    plain = kind["Plain"](1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
        plain.a = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
        del plain.a
    with pytest.raises(FrozenInstanceError):
        plain.other = 2
    assert plain.twice == 2
    assert replace(plain, a=5).twice == 10
    if sys.version_info >= (3, 13):
        assert copy.replace(plain, a=5).twice == 10
    with pytest.raises(ValueError, match="-1"):
        replace(kind["Checked"](1), a=-1)

    more: Any = type("More", (kind["Plain"],), {})(1)
    more.extra = 3
    with pytest.raises(FrozenInstanceError):
        more.a = 2
    del more.extra


@pytest.mark.parametrize("make", [dataclass, dataclasses.dataclass])
def test_frozen_and_other_classes_do_not_mix(make: Any) -> None:
    for kind in (OURS, THEIRS):
        with pytest.raises(TypeError, match="frozen"):
            make(type("Child", (kind["Plain"],), {}))
        with pytest.raises(TypeError, match="frozen"):
            make(frozen=True)(type("Child", (kind["Changeable"],), {}))
        own = {"__annotations__": {"d": "int"}, "d": 0}
        child = make(frozen=True)(type("Child", (kind["Plain"],), own))
        assert repr(child(1, "x", 2)) == "Child(a=1, b='x', d=2)"


@pytest.mark.parametrize("make", [dataclass, dataclasses.dataclass])
def test_mistakes_in_classes(make: Any) -> None:
    with pytest.raises(ValueError, match="default_factory"):
        make(type("Bad", (), {"__annotations__": {"a": "list"}, "a": []}))
    with pytest.raises((TypeError, SyntaxError), match="default"):
        make(type("Bad", (), {"__annotations__": {"a": "int", "b": "int"}, "a": 1}))
    with pytest.raises(TypeError):
        make(frozen=True)(type("One", (), {"__annotations__": {"a": "int"}}))()


@dataclass(frozen=True)
class Pickled:
    """At module level, where pickle finds it."""

    a: int
    b: tuple[int, ...] = (1,)


def test_pickles_and_patterns() -> None:
    one = Pickled(3)
    assert pickle.loads(pickle.dumps(one)) == one
    match one:
        case Pickled(a, (b,)):
            assert (a, b) == (3, 1)
        case _:
            pytest.fail("no match")


def test_all_records_are_made_here() -> None:
    folder = Path(tilewright.__file__).parent
    makes = re.compile(r"from dataclasses import .*\bdataclass\b|^import dataclasses", re.MULTILINE)
    paths = [path for path in folder.rglob("*.py") if makes.search(path.read_text(encoding="utf-8"))]
    assert {path.relative_to(folder).as_posix() for path in paths} <= {
        "records.py",
        "compiler/repr_html.py",
        "spec/constructor.py",
    }


def test_one_function_of_a_class_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    run = builtins.exec

    def watched(text: str, names: Made) -> None:
        compiled.append(text)
        run(text, names)

    monkeypatch.setattr("tilewright.records.exec", watched, raising=False)
    classes_of(dataclass)
    own = sys.version_info < (3, 14)  # newer interpreters have the library's
    assert len(compiled) == (6 if own else 0)  # not those of Own, and of Ordered, which the library makes
