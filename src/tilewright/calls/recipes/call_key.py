"""The key of a call: what machine code reads of its arguments, as words.

Two calls of a function have the same key where Python would do the same: the same types, element types,
shapes, strides, flags and relative positions of arrays, the same numbers, words and options. The contents of
arrays are not part of it. The machine code here forms the key of every call; Python asks it for the key of a
call that it has recorded, so the rules are written once.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from tilewright.calls.kinds import KeyKind, KindRow, Kinds
from tilewright.calls.layout import (
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
    OBJECT_TYPE,
    SCALAR_VALUE,
    SERIAL_SLOT,
    TUPLE_ITEM,
    TUPLE_SIZE,
    WRITEABLE,
)
from tilewright.calls.object_code import CALL_ARGUMENTS, ObjectCode
from tilewright.calls.recipes.recipe import FACTOR_STEP, HASH, MOST_ARRAYS, MOST_AXES, MOST_WORDS
from tilewright.calls.recipes.tensor_code import AXES_BIT, FLAGS_BIT, KIND_BIT, AxesRead, read_tensor
from tilewright.llvm.build import Module
from tilewright.llvm.values import INT8, INT16, INT32, INT64, POINTER, Value, int64, null

#: Words of an argument other than an array, a text or a sequence: those of a number of NumPy.
MOST_WORDS_OF_OBJECT = 4
#: Bits of an array's number in a word that says how far two arrays are apart.
NUMBER_BITS = 8

assert MOST_ARRAYS <= 1 << NUMBER_BITS


class ArrayFound(ctypes.Structure):
    """An array or a tensor among the arguments, its first element, and the bounds of its memory."""

    _fields_ = (
        ("object", ctypes.c_void_p),
        ("start", ctypes.c_int64),
        ("low", ctypes.c_int64),
        ("high", ctypes.c_int64),
    )


class KeyState(ctypes.Structure):
    """A key under construction, and the arrays found in the arguments.

    Attributes
    ----------
    arrays, found : how many arrays there are, and each one.
    held, views : arrays made of other operands; the call owns a reference to each.
    """

    _fields_ = (
        ("words", ctypes.c_int64),
        ("mixed", ctypes.c_int64),
        ("arrays", ctypes.c_int64),
        ("held", ctypes.c_int64),
        ("found", ArrayFound * MOST_ARRAYS),
        ("key", ctypes.c_int64 * MOST_WORDS),
        ("views", ctypes.c_void_p * MOST_ARRAYS),
    )


def array_found(f: ObjectCode, state: Value, number: Value) -> Value:
    """Emits the place of what a state knows of an array; its fields are those of `ArrayFound`."""
    return f.at(f.at(state, KeyState.found.offset), f.mul(number, ctypes.sizeof(ArrayFound)))


class _Key(NamedTuple):
    """The fields of `KeyState` that every argument changes, in registers."""

    words: Value
    mixed: Value
    arrays: Value


def _first(kind: KeyKind) -> Value:
    """The first word of an argument, without an address."""
    return int64(kind << KIND_BIT)


class KeyCode(ObjectCode):
    """A function that adds to a key, and returns 0 for what a key cannot have."""

    def give_up_if(self, condition: Value) -> None:
        """Returns 0 if the condition holds."""
        self.return_if(condition, int64(0))

    # --- words -------------------------------------------------------------------------------

    def factor(self, count: Value) -> Value:
        """What the word behind `count` others is multiplied by in the hash; an odd number."""
        return self.add(self.mul(count, int64(FACTOR_STEP)), int64(HASH))

    def add_words(self, state: Value, *words: Value) -> None:
        """Appends words, of which the last one is hashed; the caller has checked that there is room."""
        count = self.word(state, KeyState.words)
        end = self.item(state, count, KeyState.key)
        for place, word in enumerate(words):
            self.put(end, 8 * place, word)
        mixed = self.add(self.word(state, KeyState.mixed), self.mul(words[-1], self.factor(count)))
        self.save(state, words=self.add(count, len(words)), mixed=mixed)

    def save(self, state: Value, **fields: Value) -> None:
        """Writes fields of the state."""
        for name, value in fields.items():
            self.put(state, getattr(KeyState, name), value)

    def check_room(self, state: Value, words: Value | int) -> None:
        """Gives up if this many words do not fit."""
        after = self.add(self.word(state, KeyState.words), words)
        self.give_up_if(self.icmp(">", after, MOST_WORDS))

    # --- arrays ------------------------------------------------------------------------------

    def read_array(self, array: Value) -> AxesRead:
        """What is read of an array of NumPy."""
        axes = self.sext(self.load(INT32, self.at(array, ARRAY_NDIM), 4), INT64)
        flags = self.zext(self.load(INT32, self.at(array, ARRAY_FLAGS), 4), INT64)
        flags = self.shl(self.and_(flags, int64(ALIGNED | WRITEABLE)), int64(FLAGS_BIT))
        dtype = self.pointer(array, ARRAY_DTYPE)
        word = self.add(self.ptrtoint(dtype), self.add(flags, _first(KeyKind.ARRAY)))
        start, size = self.word(array, ARRAY_DATA), self.word(dtype, DTYPE_SIZE)
        return AxesRead(
            *(word, axes, start, size), self.pointer(array, ARRAY_SHAPE), self.pointer(array, ARRAY_STRIDES)
        )

    def array_of_exporter(self, value: Value, function: Value, state: Value) -> Value:
        """The array that a function makes of an argument, which the call owns."""
        slot, held = self.alloca(POINTER, 1, 8), self.word(state, KeyState.held)
        self.give_up_if(self.icmp(">=", held, MOST_ARRAYS))
        self.put(slot, 0, value)
        array = self.python("vectorcall", function, slot, int64(1), null())
        with self.when(self.is_null(array)):
            self.python("clear_error")
            self.ret(int64(0))
        self.put(self.item(state, held, KeyState.views), 0, array)
        self.save(state, held=self.add(held, 1))
        self.give_up_if(self.not_(self.is_of(array, "ndarray")))
        return array

    def put_axes(self, value: Value, state: Value, key: _Key, given: AxesRead) -> _Key:
        """Element type, number of axes, flags, lengths and strides; the array joins those of the call."""
        count, number, axes = key.words, key.arrays, given.axes
        after = self.add(self.add(count, 1), self.mul(axes, 2))
        fits = self.and_(self.icmp("<", number, MOST_ARRAYS), self.icmp("<=", axes, MOST_AXES))
        self.give_up_if(self.not_(self.and_(fits, self.icmp("<=", after, MOST_WORDS))))
        end = self.item(state, count, KeyState.key)
        word = self.add(given.word, self.shl(axes, int64(AXES_BIT)))
        self.put(end, 0, word)
        factor = self.factor(count)
        carried = [given.start, given.start, self.add(key.mixed, self.mul(word, factor)), factor]
        with self.carried_loop(int64(0), axes, int64(1), carried, "axis") as (axis, found, advance):
            low, high, mixed, factor = found
            length, step = (self.word(self.item(base, axis)) for base in (given.shape, given.strides))
            place = self.at(end, self.mul(axis, 16))
            self.put(place, 8, length)
            self.put(place, 16, step)
            reach = self.mul(self.sub(length, 1), step if given.unit is None else self.mul(step, given.unit))
            below, above = self.minimum(reach, int64(0)), self.maximum(reach, int64(0))
            factor = self.add(factor, FACTOR_STEP)
            both = self.add(length, self.shl(step, int64(32)))
            mixed = self.add(mixed, self.mul(both, factor))
            advance([self.add(low, below), self.add(high, above), mixed, factor])
        low, high, mixed, _ = advance.results
        facts = {"object": value, "start": given.start, "low": low, "high": self.add(high, given.size)}
        to = array_found(self, state, number)
        for name, fact in facts.items():
            self.put(to, getattr(ArrayFound, name), fact)
        return _Key(after, mixed, self.add(number, 1))

    def put_alone(self, value: Value, state: Value, axes: AxesRead) -> None:
        """Puts an array or a tensor, and returns 1."""
        key = _Key(*(self.word(state, getattr(KeyState, name)) for name in _Key._fields))
        self.save(state, **self.put_axes(value, state, key, axes)._asdict())
        self.ret(int64(1))

    def put_relations(self, state: Value) -> None:
        """A word for each two arrays that meet in memory: which these are, and how far they are apart.

        An array below or above all before it meets none of them: memory that is allocated piece by piece is
        mostly in such an order, so that many arrays do not take the square of their number.
        """

        def bounds(number: Value) -> tuple[Value, Value, Value]:
            found = array_found(self, state, number)
            first, second, third = (
                self.word(found, field) for field in (ArrayFound.start, ArrayFound.low, ArrayFound.high)
            )
            return first, second, third

        count, (_, *span) = self.word(state, KeyState.arrays), bounds(int64(0))
        with self.carried_loop(int64(1), count, int64(1), span, "array") as (number, (least, most), advance):
            start, low, high = bounds(number)
            among = self.and_(self.icmp("<", low, most), self.icmp("<", least, high))
            with self.when(among), self.loop(int64(0), number, int64(1), "other") as other:
                begin, below, above = bounds(other)
                meet = self.and_(self.icmp("<", low, above), self.icmp("<", below, high))
                with self.when(meet):
                    word = self.sub(start, begin)
                    for one in (number, other):
                        word = self.add(self.shl(word, int64(NUMBER_BITS)), one)
                    self.check_room(state, 1)
                    self.add_words(state, word)
            advance([self.minimum(least, low), self.maximum(most, high)])

    # --- other arguments ---------------------------------------------------------------------

    def put_integer(self, value: Value, state: Value) -> None:
        """An integer of 64 bits."""
        overflow = self.alloca(INT32, 1, 4)
        number = self.python("as_integer", value, overflow)
        self.give_up_if(self.icmp("!=", self.load(INT32, overflow, 4), 0))
        self.add_words(state, _first(KeyKind.INTEGER), number)
        self.ret(int64(1))

    def put_text(self, value: Value, state: Value) -> None:
        """The bytes of a text, eight in a word."""
        length = self.alloca(INT64, 1, 8)
        text = self.python("as_text", value, length)
        with self.when(self.is_null(text)):
            self.python("clear_error")
            self.ret(int64(0))
        size = self.word(length)
        self.give_up_if(self.icmp(">", size, 8 * MOST_WORDS))
        whole = self.ashr(size, int64(3))
        self.check_room(state, self.add(whole, 3))
        self.add_words(state, _first(KeyKind.TEXT), size)
        with self.loop(int64(0), whole, int64(1), "word") as number:
            self.add_words(state, self.load(INT64, self.item(text, number), 1))
        first = self.mul(whole, 8)
        with self.carried_loop(first, size, int64(1), [int64(0)], "rest") as (place, (rest,), advance):
            byte = self.zext(self.load(INT8, self.at(text, place), 1), INT64)
            advance([self.add(self.mul(rest, 256), byte)])
        self.add_words(state, advance.results[0])
        self.ret(int64(1))

    def put_items(self, items: Value, size: Value, state: Value) -> None:
        """Objects one after the other, each as an argument; returns 1."""
        with self.loop(int64(0), size, int64(1), "item") as number:
            item = self.pointer(self.item(items, number))
            self.give_up_if(self.is_null(item))
            self.give_up_if(self.icmp("==", self.call(self.callee, [item, state]), 0))
        self.ret(int64(1))

    def put_sequence(self, value: Value, state: Value, kind: KeyKind, items: Value) -> None:
        """A tuple or a list."""
        size = self.word(value, TUPLE_SIZE)
        self.give_up_if(self.icmp(">", size, MOST_WORDS))
        self.add_words(state, _first(kind), size)
        self.put_items(items, size, state)

    def put_known(self, value: Value, kind: Value, state: Value) -> None:
        """An object of a type in the table of kinds."""
        table = self.symbol("kinds")
        with self.loop(int64(0), self.word(table), int64(1), "kind") as number:
            row = self.at(self.at(table, Kinds.rows.offset), self.mul(number, ctypes.sizeof(KindRow)))
            with self.when(self.icmp("==", self.pointer(row, KindRow.type), kind)):
                how, size = self.word(row, KindRow.kind), self.word(row, KindRow.size)
                self.put_of_kind(value, kind, state, how, size)

    def put_of_kind(self, value: Value, kind: Value, state: Value, how: Value, size: Value) -> None:
        """An object as its row says."""
        first = self.shl(how, int64(KIND_BIT))
        typed = self.add(self.ptrtoint(kind), first)
        with self.when(self.icmp("==", how, KeyKind.TENSOR)):
            self.put_alone(value, state, read_tensor(self, value))
        with self.when(self.icmp("==", how, KeyKind.EXPORTED)):
            array = self.array_of_exporter(value, self.inttoptr(size), state)
            self.add_words(state, typed)
            self.put_alone(value, state, self.read_array(array))
        with self.when(self.icmp("==", how, KeyKind.GROUP)):
            self.add_words(state, typed)
            self.put_items(self.at(value, SERIAL_SLOT), size, state)
        with self.when(self.icmp("==", how, KeyKind.IDENTITY)):
            self.add_words(state, self.add(self.ptrtoint(value), first))
            self.ret(int64(1))
        with self.when(self.icmp("==", how, KeyKind.SERIAL)):
            serial = self.word(value, SERIAL_SLOT)
            self.give_up_if(self.icmp("==", serial, 0))
            self.add_words(state, self.add(serial, first))
            self.ret(int64(1))
        self.add_words(state, first, self.ptrtoint(kind))
        at = self.at(value, SCALAR_VALUE)
        for bytes_, part in ((1, INT8), (2, INT16), (4, INT32)):
            with self.when(self.icmp("==", size, bytes_)):
                self.add_words(state, self.zext(self.load(part, at, bytes_), INT64))
                self.ret(int64(1))
        with self.when(self.icmp("==", size, 16)):
            self.add_words(state, self.word(at, 8))
        self.add_words(state, self.word(at))
        self.ret(int64(1))


def emit_put(module: Module) -> KeyCode:
    """``i64 tw_put(object, state)``: adds an argument; 0 if a key cannot have it."""
    f = KeyCode(module, "tw_put", INT64, [("object", POINTER), ("state", POINTER)])
    value, state = f.arguments.values()
    with f.when(f.is_of(value, "ndarray")):
        f.put_alone(value, state, f.read_array(value))
    f.check_room(state, MOST_WORDS_OF_OBJECT)
    with f.when(f.is_of(value, "float")):
        f.add_words(state, _first(KeyKind.FLOAT), f.word(value, FLOAT_VALUE))
        f.ret(int64(1))
    with f.when(f.or_(f.icmp("==", value, f.symbol("none")), f.is_of(value, "bool"))):
        f.add_words(state, f.add(f.ptrtoint(value), _first(KeyKind.IDENTITY)))
        f.ret(int64(1))
    with f.when(f.is_of(value, "int")):
        f.put_integer(value, state)
    with f.when(f.is_of(value, "str")):
        f.put_text(value, state)
    with f.when(f.is_of(value, "tuple")):
        f.put_sequence(value, state, KeyKind.TUPLE, f.at(value, TUPLE_ITEM))
    with f.when(f.is_of(value, "list")):
        f.put_sequence(value, state, KeyKind.LIST, f.pointer(value, LIST_ITEMS))
    f.put_known(value, f.pointer(value, OBJECT_TYPE), state)
    f.ret(int64(0))
    return f


def emit_read(module: Module) -> KeyCode:
    """``i64 tw_read(self, args, nargs, kwnames, state)``: the key of a call; returns its words, or 0."""
    put = emit_put(module)
    f = KeyCode(module, "tw_read", INT64, [*CALL_ARGUMENTS, ("state", POINTER)], exported=True)
    owner, args, nargs, kwnames, state = f.arguments.values()
    total = f.all_arguments()
    names = f.sub(total, nargs)
    f.give_up_if(f.icmp(">", total, MOST_WORDS // 4))
    function, begin = f.ptrtoint(owner), f.at(state, KeyState.key.offset)
    f.put(begin, 0, function)
    f.put(begin, 8, f.add(f.mul(names, MOST_WORDS), total))
    with f.loop(int64(0), names, int64(1), "name") as number:
        f.put(f.item(begin, number, 16), 0, f.word(f.item(kwnames, number, TUPLE_ITEM)))
    key = [f.add(names, 2), f.mul(function, int64(HASH)), int64(0)]
    with f.carried_loop(int64(0), total, int64(1), key, "argument") as (number, before, advance):
        value = f.pointer(f.item(args, number))
        array = f.is_of(value, "ndarray")
        with f.once_if(array, before) as (given, plain):
            plain(f.put_axes(value, state, _Key(*given), f.read_array(value)))
        with f.once_if(f.not_(array), plain.results) as (given, other):
            f.save(state, **_Key(*given)._asdict())
            f.give_up_if(f.icmp("==", f.call(put.callee, [value, state]), 0))
            other([f.word(state, getattr(KeyState, name)) for name in _Key._fields])
        advance(other.results)
    f.save(state, **_Key(*advance.results)._asdict())
    f.put_relations(state)
    f.ret(f.word(state, KeyState.words))
    return f
