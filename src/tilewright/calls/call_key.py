"""The key of a call: what machine code reads of its arguments, as words.

Two calls of a function have the same key where Python would do the same: the same types, element types,
shapes, strides, flags and relative positions of arrays, the same numbers, words and options. The contents of
arrays are not part of it. The machine code here forms the key of every call; Python asks it for the key of a
call that it has recorded, so the rules are written once.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.exchange import Library, exporter_of
from tilewright.calls.layout import (
    ADDRESS_BITS,
    ALIGNED,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    ARRAY_SHAPE,
    ARRAY_STRIDES,
    DTYPE_SIZE,
    FLOAT_VALUE,
    LIST_ITEMS,
    NUMBERS,
    OBJECT_TYPE,
    SCALAR_VALUE,
    SERIAL_SLOT,
    TUPLE_ITEM,
    TUPLE_SIZE,
    WRITEABLE,
)
from tilewright.calls.recipe import FACTOR_STEP, HASH, MOST_ARRAYS, MOST_AXES, MOST_WORDS
from tilewright.calls.torch_functions import (
    MOST_TORCH_TYPES,
    TENSOR_HANDLE,
    TorchFunctions,
    torch_types,
)
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT8, INT16, INT32, INT64, POINTER, VOID, Type, Value, int64, null
from tilewright.recorder import Grouped, Numbered

#: Kinds of types that a call may have arguments of, besides arrays and Python's own.
MOST_KINDS = 64


class Kind(IntEnum):
    """What a key has of an argument; in the word beside its value."""

    IDENTITY = 1  # the object itself: None, True, a type, a dtype, a member of an enumeration
    FLOAT = 2
    INTEGER = 3
    TEXT = 4
    TUPLE = 5
    LIST = 6
    NUMBER = 7  # of NumPy, or a complex number, of up to 16 bytes
    SERIAL = 8  # the number of an object, see `Numbered`, by its identity
    ARRAY = 9
    TENSOR = 10  # of PyTorch
    EXPORTED = 11  # its class; what is made of it by a call of a function follows, see `KnownKinds.learn`
    GROUP = 12  # its class; what its slots hold follows, see `Grouped`


#: Where the first word of an argument has its kind, and that of an array its number of axes and flags, above
#: an address.
KIND_BIT, AXES_BIT, FLAGS_BIT = ADDRESS_BITS, ADDRESS_BITS + 4, ADDRESS_BITS
#: Words of a key are compared by so many at a time; zeros fill up the last ones.
WORDS_AT_ONCE = 4
#: Words of an argument other than an array, a text or a sequence: those of a number of NumPy.
MOST_WORDS_OF_OBJECT = 4
#: Bits of an array's number in a word that says how far two arrays are apart.
NUMBER_BITS = 4

assert MOST_ARRAYS < 1 << NUMBER_BITS


class KindRow(ctypes.Structure):
    """A type of arguments: how many bytes of a number it has, or the function that makes an array of it."""

    _fields_ = (("type", ctypes.c_void_p), ("kind", ctypes.c_int64), ("size", ctypes.c_int64))


class Kinds(ctypes.Structure):
    """The types that keys know; a row is complete before it is counted."""

    _fields_ = (("count", ctypes.c_int64), ("rows", KindRow * MOST_KINDS))


class KeyState(ctypes.Structure):
    """A key under construction, and the arrays found in the arguments.

    Attributes
    ----------
    objects, starts, lows, highs : each array or tensor, its first element, and the bounds of its memory.
    held, views : arrays made of other operands; the call owns a reference to each.
    """

    _fields_ = (
        ("words", ctypes.c_int64),
        ("mixed", ctypes.c_int64),
        ("arrays", ctypes.c_int64),
        ("held", ctypes.c_int64),
        ("views", ctypes.c_void_p * MOST_ARRAYS),
        ("objects", ctypes.c_void_p * MOST_ARRAYS),
        ("starts", ctypes.c_int64 * MOST_ARRAYS),
        ("lows", ctypes.c_int64 * MOST_ARRAYS),
        ("highs", ctypes.c_int64 * MOST_ARRAYS),
        ("key", ctypes.c_int64 * (MOST_WORDS + WORDS_AT_ONCE)),
    )


def serial_readable(value: Numbered) -> bool:
    """Whether the number of an object is where machine code reads it."""
    held = ctypes.c_void_p.from_address(id(value) + SERIAL_SLOT).value
    return held == id(value._serial)  # noqa: SLF001  (the slot is there for this module)


def group_readable(value: Grouped) -> bool:
    """Whether the parts of an object are where machine code reads them."""
    parts = value.parts()
    held = (ctypes.c_void_p * len(parts)).from_address(id(value) + SERIAL_SLOT)
    return list(held) == list(map(id, parts))


#: Types that need no row.
_PLAIN = frozenset((np.ndarray, float, bool, int, str, type(None)))


class KnownKinds:
    """The table of `Kinds` of this process."""

    def __init__(self) -> None:
        self.table = Kinds()
        self._types: list[type] = []
        for scalar in (np.float64, np.float32, np.int64, np.int32):
            self._add(scalar, Kind.NUMBER, np.dtype(scalar).itemsize)
        self._add(complex, Kind.NUMBER, np.dtype(complex).itemsize)
        self._add(type(...), Kind.IDENTITY)

    def _add(self, kind: type, row: Kind, size: int = 0) -> None:
        count = self.table.count
        if count < MOST_KINDS and kind not in self._types:
            self._types.append(kind)
            self.table.rows[count] = KindRow(id(kind), row, size)
            self.table.count = count + 1

    def learn(self, values: Iterable[Any]) -> list[Any]:
        """Adds the types of arguments that keys can identify; returns the objects that must stay alive.

        Parameters
        ----------
        values : no tuples and lists, but what is in them.
        """
        kept: list[Any] = []
        for value in values:
            kind = type(value)
            if kind in _PLAIN:
                continue
            if isinstance(value, Numbered):
                if serial_readable(value):
                    self._add(kind, Kind.SERIAL)
                    kept.append(value._serial)  # noqa: SLF001  (its address is in the key)
            elif isinstance(value, Grouped):
                if group_readable(value):
                    self._add(kind, Kind.GROUP, len(value.parts()))
            elif isinstance(value, (np.bool_, np.number)) and value.dtype.char in NUMBERS:
                self._add(kind, Kind.NUMBER, value.dtype.itemsize)
            elif isinstance(value, (np.dtype, type, enum.Enum)):
                self._add(kind, Kind.IDENTITY)
                kept.append(value)
            elif kind not in self._types:
                self._learn_exporter(kind, value)
        return kept

    def _learn_exporter(self, kind: type, value: Any) -> None:
        exporter = exporter_of(value)
        if exporter is None or not exporter.known:
            return
        if exporter.library is Library.NONE:
            self._add(kind, Kind.IDENTITY)
        elif exporter.library is not Library.TORCH:
            self._add(kind, Kind.EXPORTED, id(exporter.view))
        elif torch_types.connect():
            self._add(kind, Kind.TENSOR)


class KeyReader:
    """Emits the functions that form keys in a module.

    Attributes
    ----------
    put : ``i64 tw_put(object, state)``: adds an argument; 0 if a key cannot have it.
    read : ``i64 tw_read(owner, args, nargs, kwnames, state)``: the key of a call; returns its words.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.put = self._emit_put()
        self.read = self._emit_read()

    def _words(self, f: Function, state: Value, *words: Value) -> None:
        """Appends words, of which the last one is hashed; the caller has checked that there is room."""
        count = _field(f, state, "words")
        end = self._end(f, state, count)
        for place, word in enumerate(words):
            f.store(word, f.at(end, 8 * place), 8)
        mixed = f.add(_field(f, state, "mixed"), f.mul(words[-1], self._factor(f, count)))
        self._save(f, state, words=f.add(count, len(words)), mixed=mixed)

    def _end(self, f: Function, state: Value, count: Value) -> Value:
        """The end of the key of `count` words."""
        return f.at(f.at(state, KeyState.key.offset), f.mul(count, 8))

    def _factor(self, f: Function, count: Value) -> Value:
        """What the word behind `count` others is multiplied by in the hash; an odd number."""
        return f.add(f.mul(count, int64(FACTOR_STEP)), int64(HASH))

    def _save(self, f: Function, state: Value, **fields: Value) -> None:
        """Writes fields of the state."""
        for name, value in fields.items():
            f.store(value, f.at(state, getattr(KeyState, name).offset), 8)

    def _room(self, f: Function, state: Value, words: Value | int) -> None:
        """Returns 0 from the function if this many words do not fit."""
        after = f.add(_field(f, state, "words"), words)
        with f.when(f.icmp(">", after, MOST_WORDS)):
            f.ret(int64(0))

    def _emit_put(self) -> Function:
        f = self.module.define("tw_put", INT64, [("object", POINTER), ("state", POINTER)])
        value, state = f.arguments.values()
        module = self.module
        kind = f.load(POINTER, f.at(value, OBJECT_TYPE), 8)
        with f.when(f.icmp("==", kind, module.external("tw_ndarray"))):
            self._put_alone(f, value, state, self._array(f, value))
        self._room(f, state, MOST_WORDS_OF_OBJECT)
        with f.when(f.icmp("==", kind, module.external("tw_float"))):
            self._words(f, state, _first(Kind.FLOAT), f.load(INT64, f.at(value, FLOAT_VALUE), 8))
            f.ret(int64(1))
        itself = f.or_(
            f.icmp("==", value, module.external("tw_none")), f.icmp("==", kind, module.external("tw_bool"))
        )
        with f.when(itself):
            self._words(f, state, f.add(f.ptrtoint(value), _first(Kind.IDENTITY)))
            f.ret(int64(1))
        with f.when(f.icmp("==", kind, module.external("tw_int"))):
            self._put_integer(f, value, state)
        with f.when(f.icmp("==", kind, module.external("tw_str"))):
            self._put_text(f, value, state)
        for name, which, items in (("tw_tuple", Kind.TUPLE, None), ("tw_list", Kind.LIST, LIST_ITEMS)):
            with f.when(f.icmp("==", kind, module.external(name))):
                self._put_items(f, value, state, which, items)
        self._put_known(f, value, kind, state)
        f.ret(int64(0))
        return f

    def _put_alone(self, f: Function, value: Value, state: Value, axes: _Axes) -> None:
        """Puts an array or a tensor, and returns 1 from the function."""
        key = _Key(*(_field(f, state, name) for name in _Key._fields))
        self._save(f, state, **self._put_axes(f, value, state, key, axes)._asdict())
        f.ret(int64(1))

    def _array(self, f: Function, array: Value) -> _Axes:
        """What is read of an array of NumPy."""
        axes = f.sext(f.load(INT32, f.at(array, ARRAY_NDIM), 4), INT64)
        flags = f.zext(f.load(INT32, f.at(array, ARRAY_FLAGS), 4), INT64)
        flags = f.shl(f.and_(flags, int64(ALIGNED | WRITEABLE)), int64(FLAGS_BIT))
        dtype = f.load(POINTER, f.at(array, ARRAY_DTYPE), 8)
        word = f.add(f.ptrtoint(dtype), f.add(flags, _first(Kind.ARRAY)))
        start, size = (
            f.load(INT64, f.at(base, at), 8) for base, at in ((array, ARRAY_DATA), (dtype, DTYPE_SIZE))
        )
        shape, strides = (f.load(POINTER, f.at(array, at), 8) for at in (ARRAY_SHAPE, ARRAY_STRIDES))
        return _Axes(word, axes, start, size, shape, strides)

    def _put_axes(self, f: Function, value: Value, state: Value, key: _Key, given: _Axes) -> _Key:
        """Element type, number of axes, flags, lengths and strides; the array joins those of the call."""
        count, number, axes = key.words, key.arrays, given.axes
        after = f.add(f.add(count, 1), f.mul(axes, 2))
        fits = f.and_(f.icmp("<", number, MOST_ARRAYS), f.icmp("<=", axes, MOST_AXES))
        with f.when(f.not_(f.and_(fits, f.icmp("<=", after, MOST_WORDS)))):
            f.ret(int64(0))
        end = self._end(f, state, count)
        word = f.add(given.word, f.shl(axes, int64(AXES_BIT)))
        f.store(word, end, 8)
        factor = self._factor(f, count)
        carried = [given.start, given.start, f.add(key.mixed, f.mul(word, factor)), factor]
        with f.carried_loop(int64(0), axes, int64(1), carried, "axis") as (axis, found, advance):
            low, high, mixed, factor = found
            at = f.mul(axis, 8)
            length, step = (f.load(INT64, f.at(base, at), 8) for base in (given.shape, given.strides))
            place = f.at(end, f.mul(axis, 16))
            f.store(length, f.at(place, 8), 8)
            f.store(step, f.at(place, 16), 8)
            reach = f.mul(f.sub(length, 1), step if given.unit is None else f.mul(step, given.unit))
            below, above = f.minimum(reach, int64(0)), f.maximum(reach, int64(0))
            factor = f.add(factor, FACTOR_STEP)
            both = f.add(length, f.shl(step, int64(32)))
            mixed = f.add(mixed, f.mul(both, factor))
            advance([f.add(low, below), f.add(high, above), mixed, factor])
        low, high, mixed, _ = advance.results
        high = f.add(high, given.size)
        for name, one in (("objects", value), ("starts", given.start), ("lows", low), ("highs", high)):
            f.store(one, self._of_array(f, state, name, number), 8)
        return _Key(after, mixed, f.add(number, 1))

    def _of_array(self, f: Function, state: Value, name: str, number: Value) -> Value:
        """The place of what is known of an array."""
        return f.at(f.at(state, getattr(KeyState, name).offset), f.mul(number, 8))

    def _put_relations(self, f: Function, state: Value) -> None:
        """A word for each two arrays that meet in memory: which these are, and how far they are apart."""

        def of(name: str, number: Value) -> Value:
            return f.load(INT64, self._of_array(f, state, name, number), 8)

        with f.loop(int64(1), _field(f, state, "arrays"), int64(1), "array") as number:
            low, high = of("lows", number), of("highs", number)
            with f.loop(int64(0), number, int64(1), "other") as other:
                meet = f.and_(f.icmp("<", low, of("highs", other)), f.icmp("<", of("lows", other), high))
                with f.when(meet):
                    word = f.sub(of("starts", number), of("starts", other))
                    for one in (number, other):
                        word = f.add(f.shl(word, int64(NUMBER_BITS)), one)
                    self._room(f, state, 1)
                    self._words(f, state, word)

    def _tensor(self, f: Function, value: Value) -> _Axes:
        """What is read of a tensor of PyTorch, by the C functions of `TorchFunctions`.

        Python makes the call where PyTorch records operations of the tensor, or its elements are not in
        memory as those of an array are.
        """
        table, handle = self.module.external("tw_torch"), f.at(value, TENSOR_HANDLE)
        places = {name: f.alloca(INT64, 1, 8) for name in ("axes", "shape", "strides", "dtype", "data")}
        f.store(int64(0), places["dtype"], 8)

        def given(condition: Value) -> None:
            with f.when(f.not_(condition)):
                f.ret(int64(0))

        def fact(name: str) -> Value:
            return f.load(INT64, f.at(table, getattr(TorchFunctions, name).offset), 8)

        def call(name: str, kind: Type, *arguments: Value) -> Value:
            code = f.load(POINTER, f.at(table, getattr(TorchFunctions, name).offset), 8)
            return f.call(Callee(kind, code.text), list(arguments))

        tensor = f.load(POINTER, handle, 8)
        keys = f.load(INT64, f.at(tensor, fact("keys")), 8)
        given(f.or_(f.icmp("==", keys, fact("plain_keys")), f.icmp("==", keys, fact("inference_keys"))))
        tangent = f.load(INT64, call("tangent", POINTER, tensor, int64(0), handle), 8)
        given(f.icmp("==", tangent, fact("no_tensor")))
        recorded = f.icmp("!=", call("requires_grad", INT8, tensor), 0)
        with f.when(recorded):
            given(f.icmp("==", call("grad_mode", INT8), 0))
        for name, place in places.items():
            given(f.icmp("==", call(name, INT32, handle, place), 0))
        axes, dtype, start = (f.load(INT64, places[name], 8) for name in ("axes", "dtype", "data"))
        shape, strides = (f.load(POINTER, places[name], 8) for name in ("shape", "strides"))
        sizes = f.at(table, TorchFunctions.sizes.offset)
        size = f.load(INT64, f.at(sizes, f.mul(f.and_(dtype, int64(MOST_TORCH_TYPES - 1)), 8)), 8)
        given(f.icmp("!=", size, 0))
        given(f.icmp("==", f.and_(start, f.sub(f.minimum(size, int64(8)), 1)), 0))
        word = f.add(dtype, int64(((ALIGNED | WRITEABLE) << FLAGS_BIT) + (Kind.TENSOR << KIND_BIT)))
        return _Axes(word, axes, start, size, shape, strides, size)

    def _exported(self, f: Function, value: Value, function: Value, state: Value) -> _Axes:
        """What is read of the array that a function makes of an argument."""
        module, slot = self.module, f.alloca(POINTER, 1, 8)
        held = _field(f, state, "held")
        with f.when(f.icmp(">=", held, MOST_ARRAYS)):
            f.ret(int64(0))
        f.store(value, slot, 8)
        vectorcall = module.declare("tw_vectorcall", POINTER, (POINTER, POINTER, INT64, POINTER))
        array = f.call(vectorcall, [function, slot, int64(1), null()])
        with f.when(f.icmp("==", array, null())):
            f.call(module.declare("tw_clear_error", VOID, ()), [])
            f.ret(int64(0))
        f.store(array, f.at(f.at(state, KeyState.views.offset), f.mul(held, 8)), 8)
        f.store(f.add(held, 1), f.at(state, KeyState.held.offset), 8)
        with f.when(
            f.icmp("!=", f.load(POINTER, f.at(array, OBJECT_TYPE), 8), module.external("tw_ndarray"))
        ):
            f.ret(int64(0))
        return self._array(f, array)

    def _put_integer(self, f: Function, value: Value, state: Value) -> None:
        overflow = f.alloca(INT32, 1, 4)
        read = self.module.declare("tw_as_integer", INT64, (POINTER, POINTER))
        number = f.call(read, [value, overflow])
        with f.when(f.icmp("!=", f.load(INT32, overflow, 4), 0)):
            f.ret(int64(0))
        self._words(f, state, _first(Kind.INTEGER), number)
        f.ret(int64(1))

    def _put_text(self, f: Function, value: Value, state: Value) -> None:
        """The bytes of a text, eight in a word."""
        length = f.alloca(INT64, 1, 8)
        read = self.module.declare("tw_as_text", POINTER, (POINTER, POINTER))
        text = f.call(read, [value, length])
        clear = self.module.declare("tw_clear_error", VOID, ())
        with f.when(f.icmp("==", text, null())):
            f.call(clear, [])
            f.ret(int64(0))
        size = f.load(INT64, length, 8)
        with f.when(f.icmp(">", size, 8 * MOST_WORDS)):
            f.ret(int64(0))
        whole = f.ashr(size, int64(3))
        self._room(f, state, f.add(whole, 3))
        self._words(f, state, _first(Kind.TEXT), size)
        with f.loop(int64(0), whole, int64(1), "word") as number:
            self._words(f, state, f.load(INT64, f.at(text, f.mul(number, 8)), 1))
        with f.carried_loop(f.mul(whole, 8), size, int64(1), [int64(0)], "rest") as (place, (rest,), advance):
            byte = f.zext(f.load(INT8, f.at(text, place), 1), INT64)
            advance([f.add(f.mul(rest, 256), byte)])
        self._words(f, state, advance.results[0])
        f.ret(int64(1))

    def _put_items(self, f: Function, value: Value, state: Value, kind: Kind, items_at: int | None) -> None:
        """The items of a tuple or a list, each as an argument."""
        size = f.load(INT64, f.at(value, TUPLE_SIZE), 8)
        with f.when(f.icmp(">", size, MOST_WORDS)):
            f.ret(int64(0))
        self._words(f, state, _first(kind), size)
        items = f.at(value, TUPLE_ITEM) if items_at is None else f.load(POINTER, f.at(value, items_at), 8)
        with f.loop(int64(0), size, int64(1), "item") as number:
            item = f.load(POINTER, f.at(items, f.mul(number, 8)), 8)
            put = f.call(f.callee, [item, state])
            with f.when(f.icmp("==", put, 0)):
                f.ret(int64(0))
        f.ret(int64(1))

    def _put_known(self, f: Function, value: Value, kind: Value, state: Value) -> None:
        """An object of a type in the table of kinds."""
        table = self.module.external("tw_kinds")
        count = f.load(INT64, table, 8)
        rows = f.at(table, Kinds.rows.offset)
        with f.loop(int64(0), count, int64(1), "kind") as number:
            row = f.at(rows, f.mul(number, ctypes.sizeof(KindRow)))
            with f.when(f.icmp("==", f.load(POINTER, row, 8), kind)):
                how = f.load(INT64, f.at(row, KindRow.kind.offset), 8)
                size = f.load(INT64, f.at(row, KindRow.size.offset), 8)
                first = f.shl(how, int64(KIND_BIT))
                with f.when(f.icmp("==", how, Kind.TENSOR)):
                    self._put_alone(f, value, state, self._tensor(f, value))
                with f.when(f.icmp("==", how, Kind.EXPORTED)):
                    axes = self._exported(f, value, f.inttoptr(size), state)
                    self._words(f, state, f.add(f.ptrtoint(kind), first))
                    self._put_alone(f, value, state, axes)
                with f.when(f.icmp("==", how, Kind.GROUP)):
                    self._words(f, state, f.add(f.ptrtoint(kind), first))
                    slots = f.at(value, SERIAL_SLOT)
                    with f.loop(int64(0), size, int64(1), "slot") as place:
                        item = f.load(POINTER, f.at(slots, f.mul(place, 8)), 8)
                        with f.when(f.icmp("==", item, null())):
                            f.ret(int64(0))
                        with f.when(f.icmp("==", f.call(f.callee, [item, state]), 0)):
                            f.ret(int64(0))
                    f.ret(int64(1))
                for which, slot in ((Kind.SERIAL, SERIAL_SLOT), (Kind.IDENTITY, None)):
                    with f.when(f.icmp("==", how, which)):
                        word = f.ptrtoint(value) if slot is None else f.load(INT64, f.at(value, slot), 8)
                        with f.when(f.icmp("==", word, 0)):
                            f.ret(int64(0))
                        self._words(f, state, f.add(word, first))
                        f.ret(int64(1))
                self._words(f, state, first, f.ptrtoint(kind))
                at = f.at(value, SCALAR_VALUE)
                for bytes_, part in ((1, INT8), (2, INT16), (4, INT32)):
                    with f.when(f.icmp("==", size, bytes_)):
                        self._words(f, state, f.zext(f.load(part, at, bytes_), INT64))
                        f.ret(int64(1))
                with f.when(f.icmp("==", size, 16)):
                    self._words(f, state, f.load(INT64, f.at(at, 8), 8))
                self._words(f, state, f.load(INT64, at, 8))
                f.ret(int64(1))

    def _emit_read(self) -> Function:
        arguments = [
            ("owner", POINTER),
            ("args", POINTER),
            ("nargs", INT64),
            ("kwnames", POINTER),
            ("state", POINTER),
        ]
        f = self.module.define("tw_read", INT64, arguments, exported=True)
        owner, args, nargs, kwnames, state = f.arguments.values()
        named = f.alloca(INT64, 1, 8)
        f.store(int64(0), named, 8)
        self._save(f, state, held=int64(0))
        with f.when(f.icmp("!=", kwnames, null())):
            f.store(f.load(INT64, f.at(kwnames, TUPLE_SIZE), 8), named, 8)
        names = f.load(INT64, named, 8)
        total = f.add(nargs, names)
        with f.when(f.icmp(">", total, MOST_WORDS // 4)):
            f.ret(int64(0))
        function = f.ptrtoint(owner)
        begin = self._end(f, state, int64(0))
        for place, word in enumerate((function, f.add(f.mul(names, MOST_WORDS), total))):
            f.store(word, f.at(begin, 8 * place), 8)
        with f.loop(int64(0), names, int64(1), "name") as number:
            at = f.mul(number, 8)
            f.store(f.load(INT64, f.at(f.at(kwnames, TUPLE_ITEM), at), 8), f.at(f.at(begin, 16), at), 8)
        key = [f.add(names, 2), f.mul(function, int64(HASH)), int64(0)]
        with f.carried_loop(int64(0), total, int64(1), key, "argument") as (number, before, advance):
            value = f.load(POINTER, f.at(args, f.mul(number, 8)), 8)
            kind = f.load(POINTER, f.at(value, OBJECT_TYPE), 8)
            array = f.icmp("==", kind, self.module.external("tw_ndarray"))
            with f.once_if(array, before) as (given, plain):
                plain(self._put_axes(f, value, state, _Key(*given), self._array(f, value)))
            with f.once_if(f.not_(array), plain.results) as (given, other):
                self._save(f, state, **_Key(*given)._asdict())
                with f.when(f.icmp("==", f.call(self.put.callee, [value, state]), 0)):
                    f.ret(int64(0))
                other([_field(f, state, name) for name in _Key._fields])
            advance(other.results)
        self._save(f, state, **_Key(*advance.results)._asdict())
        self._put_relations(f, state)
        count = _field(f, state, "words")
        end = self._end(f, state, count)
        for place in range(WORDS_AT_ONCE - 1):
            f.store(int64(0), f.at(end, 8 * place), 8)
        f.ret(f.and_(f.add(count, WORDS_AT_ONCE - 1), int64(-WORDS_AT_ONCE)))
        return f


class _Key(NamedTuple):
    """The fields of `KeyState` that every argument changes, in registers."""

    words: Value
    mixed: Value
    arrays: Value


class _Axes(NamedTuple):
    """What is read of an array or a tensor.

    Attributes
    ----------
    word : its kind, flags and element type.
    axes, shape, strides : how many lengths and strides there are, and where.
    start, size : the first element, and bytes of one.
    unit : how many bytes the unit of a stride has; None for one.
    """

    word: Value
    axes: Value
    start: Value
    size: Value
    shape: Value
    strides: Value
    unit: Value | None = None


def _first(kind: Kind) -> Value:
    """The first word of an argument, without an address."""
    return int64(kind << KIND_BIT)


def _field(f: Function, state: Value, name: str) -> Value:
    return f.load(INT64, f.at(state, getattr(KeyState, name).offset), 8)
