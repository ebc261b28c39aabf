"""`dataclass` as the standard library has it, for a package that makes hundreds of classes at every start.

The library compiles up to six functions of each class from text. Here `__init__` alone is compiled, and the
others are closures over the names of the fields: comparing takes 1.4 times as long, making an object less
than half. That takes a third off the time from `import tilewright` to the first result of a saved MiniLM
(docs/decisions/054-records.md).
"""

from __future__ import annotations

import abc
import dataclasses
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

_MISSING = dataclasses.MISSING


@dataclasses.dataclass(frozen=True)
class _Frozen:
    """Has what the library notes about frozen classes and about fields."""

    one: int


@dataclasses.dataclass
class _Changeable:
    """Has what the library notes about other classes."""


#: What the library keeps of a class's options, by whether it is frozen: it mixes them in no hierarchy.
_OPTIONS = {True: _Frozen.__dataclass_params__, False: _Changeable.__dataclass_params__}  # type: ignore[attr-defined]
_field_kind = attrgetter("_field_type")
#: How the library marks that a field is one, and neither a class variable nor only an argument.
_KIND = _field_kind(_Frozen.__dataclass_fields__["one"])


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(("ClassVar", "typing.ClassVar"))
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _fields_of(cls: type) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a class and of those it inherits from, by name, in their order."""
    found: dict[str, dataclasses.Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited = base.__dict__.get("__dataclass_fields__", {})  # the library's have class variables too
        found |= {name: one for name, one in inherited.items() if _field_kind(one) is _KIND}
    for name, annotation in cls.__annotations__.items():
        if _is_class_variable(annotation):
            continue
        default = cls.__dict__.get(name, _MISSING)
        one = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
        if type(one.default).__hash__ is None:
            raise ValueError(f"field {name}: {type(one.default).__name__} needs a default_factory")
        one.name, one.type = name, annotation
        mark: Any = one
        mark._field_type, mark.kw_only = _KIND, False  # noqa: SLF001
        if one.default is not _MISSING:
            setattr(cls, name, one.default)
        elif isinstance(default, dataclasses.Field):
            delattr(cls, name)
        found[name] = one
    return found


def _init_of(cls: type, fields: list[dataclasses.Field[Any]], *, frozen: bool) -> Any:
    """`__init__`, compiled."""
    parameters, lines, names = ["self"], [], {"put": object.__setattr__, "MISSING": _MISSING}
    for one in fields:
        name, value = one.name, one.name
        if one.default_factory is not _MISSING:
            names[f"make_{name}"], default = one.default_factory, "MISSING"
            value = f"make_{name}() if {name} is MISSING else {name}" if one.init else f"make_{name}()"
        else:
            names[f"default_{name}"], default = one.default, f"default_{name}"
        if one.init:
            has_default = one.default is not _MISSING or one.default_factory is not _MISSING
            parameters.append(f"{name}={default}" if has_default else name)
        elif one.default_factory is _MISSING:
            continue  # the class has the default, if there is one
        lines.append(f"put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n {body}", names)  # noqa: S102 - as the library does
    made: Any = names["__init__"]
    made.__annotations__ = {one.name: one.type for one in fields if one.init} | {"return": None}
    return made


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives the values of attributes."""
    if len(names) == 1:
        only = attrgetter(names[0])
        return lambda record: (only(record),)
    return attrgetter(*names) if names else lambda _: ()


def _comparison(cls: type, fields: list[dataclasses.Field[Any]], *, frozen: bool) -> dict[str, Any]:
    """`__eq__` and `__hash__`."""
    compared = _getter([one.name for one in fields if one.compare])
    hashed = _getter([one.name for one in fields if (one.compare if one.hash is None else one.hash)])

    def equal(self: Any, other: Any) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(hashed(self))

    found: dict[str, Any] = {"__eq__": equal}
    given = cls.__dict__.get("__hash__", _MISSING)
    if given is _MISSING or (given is None and "__eq__" in cls.__dict__):
        found["__hash__"] = hash_of if frozen else None
    return found


def _refusals(cls: Any, fields: list[dataclasses.Field[Any]]) -> dict[str, Any]:
    """`__setattr__` and `__delattr__` of a frozen class."""
    names = frozenset(one.name for one in fields)

    def set_attribute(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": set_attribute, "__delattr__": delete_attribute}


def _text(fields: list[dataclasses.Field[Any]]) -> Any:
    """`__repr__`."""
    names = [one.name for one in fields if one.repr]

    def text(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return text


def _check_bases(cls: type, *, frozen: bool) -> None:
    """The library's rule: all classes of a hierarchy are frozen, or none."""
    for base in cls.__mro__[1:]:
        if "__dataclass_params__" in base.__dict__ and base.__dict__["__dataclass_params__"].frozen != frozen:
            words = ("frozen", "other") if frozen else ("other", "frozen")
            raise TypeError(f"{words[0]} {cls.__name__} cannot inherit from {words[1]} {base.__name__}")


def _record(cls: Any, *, frozen: bool, eq: bool, init: bool, text: bool) -> Any:
    """The class with its functions; those that it defines itself stay."""
    _check_bases(cls, frozen=frozen)
    by_name = _fields_of(cls)
    fields = list(by_name.values())
    functions: dict[str, Any] = {"__match_args__": tuple(one.name for one in fields if one.init)}

    def replaced(self: Any, /, **changes: Any) -> Any:
        return dataclasses.replace(self, **changes)

    functions["__replace__"] = replaced  # for `copy.replace` of Python 3.13
    if init:
        functions["__init__"] = _init_of(cls, fields, frozen=frozen)
    if text:
        functions["__repr__"] = _text(fields)
    if eq:
        functions |= _comparison(cls, fields, frozen=frozen)
    if frozen:
        functions |= _refusals(cls, fields)
    cls.__dataclass_fields__, cls.__dataclass_params__ = by_name, _OPTIONS[frozen]
    for name, value in functions.items():
        if name in cls.__dict__ and not (name == "__hash__" and cls.__dict__[name] is None):
            continue
        if callable(value):
            value.__name__, value.__module__ = name, cls.__module__
            value.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, value)
    abc.update_abstractmethods(cls)
    return cls


if TYPE_CHECKING or sys.version_info >= (3, 14):  # the library's insides were tried up to 3.13
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - exported
else:

    def dataclass(
        cls: Any = None,
        /,
        *,
        frozen: bool = False,
        eq: bool = True,
        init: bool = True,
        repr: bool = True,  # noqa: A002 - the library's name
        **others: bool,
    ) -> Any:
        """`dataclasses.dataclass`; options beside `frozen`, `eq`, `init` and `repr` are left to it.

        >>> @dataclass(frozen=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(1), Point(1) == Point(1, 0), hash(Point(2)) == hash(Point(2))
        (Point(x=1, y=0), True, True)
        """
        if cls is None:
            return lambda made: dataclass(made, frozen=frozen, eq=eq, init=init, repr=repr, **others)
        if others:
            return dataclasses.dataclass(cls, frozen=frozen, eq=eq, init=init, repr=repr, **others)
        return _record(cls, frozen=frozen, eq=eq, init=init, text=repr)
