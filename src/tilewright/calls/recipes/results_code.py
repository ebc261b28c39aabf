"""Machine code that makes the results of a repeated call, and the arrays that NumPy's functions are given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.calls.layout import ARRAY_DATA, SERIAL_SLOT, TUPLE_ITEM, TUPLE_SIZE
from tilewright.calls.object_code import ObjectCode
from tilewright.calls.recipes.call_key import ArrayFound, array_found
from tilewright.calls.recipes.recipe import MOST_RESULTS, MOST_VIEWS, ArrayField, Base, Field, StepField
from tilewright.calls.recipes.tensor_code import data_of_tensor, new_tensor
from tilewright.llvm.control import Block
from tilewright.llvm.values import INT32, INT64, POINTER, Value, int64, null


def _new_array(f: ObjectCode, record: Value, failed: Block, data: Value) -> Value:
    """An array over some memory, or in memory of its own if that is null."""
    axes, dtype = f.word(record, ArrayField.AXES), f.pointer(record, ArrayField.DTYPE)
    lengths = f.at(record, 8 * ArrayField.LENGTHS)
    flags = f.trunc(f.word(record, ArrayField.FLAGS), INT32)
    made = f.new_array(axes, lengths, dtype, f.item(lengths, axes), data, flags)
    f.leave_if(f.is_null(made), failed)
    return made


def _following(f: ObjectCode, record: Value) -> Value:
    """The array behind another one."""
    return f.at(record, f.add(f.mul(f.word(record, ArrayField.AXES), 16), 8 * ArrayField.LENGTHS))


def _place_in(f: ObjectCode, record: Value, bases: Value, base: Value) -> Value:
    """The address of an array's first element."""
    start = f.word(f.item(bases, base))
    return f.inttoptr(f.add(start, f.word(record, ArrayField.OFFSET)))


class ResultsCode:
    """The results of a call.

    Parameters
    ----------
    body : the first record of the recipe.
    bases, state : the addresses that steps start from, and the arguments of the call.
    """

    def __init__(self, f: ObjectCode, recipe: Value, body: Value, bases: Value, state: Value) -> None:
        self._f, self._recipe, self._body, self._bases, self._state = f, recipe, body, bases, state
        self._made = f.alloca(POINTER, MOST_RESULTS, 16)

    @contextmanager
    def _each(self) -> Iterator[tuple[Value, Value, Value]]:
        """A loop over the results: the record of each, its base, and the place of its object."""
        f, count = self._f, self._f.word(self._recipe, Field.RESULTS)
        with f.carried_loop(int64(0), count, int64(1), [self._body], "result") as (
            number,
            (record,),
            advance,
        ):
            yield record, f.word(record, ArrayField.BASE), f.item(self._made, number)
            advance([_following(f, record)])
        self._end = advance.results[0]

    def make(self, failed: Block) -> Value:
        """New references to the results; numbers are made at the end. Returns what is behind the records."""
        f = self._f
        with f.loop(int64(0), f.word(self._recipe, Field.RESULTS), int64(1), "result") as number:
            f.put(f.item(self._made, number), 0, null())
        tensors = f.icmp("==", f.word(self._recipe, Field.MAKER), 1)
        with (
            self._each() as (record, base, slot),
            f.branch(f.icmp("<", base, int(Base.RESULT))) as (given, another),
        ):
            with given:
                self._of_argument(record, base, slot, tensors, failed)
            with (
                another,
                f.when(f.icmp("!=", base, int(Base.TEMPORARY))),
                f.branch(tensors) as (tensor, plain),
            ):
                with tensor:
                    made = new_tensor(f, record, failed)
                    f.put(slot, 0, made)
                    data_of_tensor(f, made, f.item(self._bases, base))
                with plain:
                    made = _new_array(f, record, failed, null())
                    f.put(slot, 0, made)
                    f.put(f.item(self._bases, base), 0, f.word(made, ARRAY_DATA))
        return self._end

    def _of_argument(self, record: Value, base: Value, slot: Value, tensors: Value, failed: Block) -> None:
        """A result that is an argument, or a view of one."""
        f = self._f
        number = f.sub(base, int(Base.ARGUMENT))
        array = f.pointer(array_found(f, self._state, number), ArrayFound.object)
        with f.branch(f.is_null(f.pointer(record, ArrayField.DTYPE))) as (whole, part):
            with whole:
                f.python("incref", array)
                f.put(slot, 0, array)
            with part, f.branch(tensors) as (tensor, plain):
                with tensor:
                    f.put(slot, 0, new_tensor(f, record, failed, array))
                with plain:
                    data = f.at(f.pointer(array, ARRAY_DATA), f.word(record, ArrayField.OFFSET))
                    made = _new_array(f, record, failed, data)
                    f.put(slot, 0, made)
                    f.python("incref", array)  # taken over, also where that fails
                    f.leave_if(f.icmp("!=", f.python("set_base", made, array), 0), failed)

    def drop(self) -> None:
        """Gives up the results of a call that failed."""
        f = self._f
        with f.loop(int64(0), f.word(self._recipe, Field.RESULTS), int64(1), "result") as number:
            made = f.pointer(f.item(self._made, number))
            with f.when(f.not_(f.is_null(made))):
                f.python("decref", made)

    def returned(self, failed: Block) -> Value:
        """What the call returns: its result, or what holds several."""
        f = self._f
        with self._each() as (record, base, slot), f.when(f.icmp("==", base, int(Base.TEMPORARY))):
            data = _place_in(f, record, self._bases, base)
            made = f.python("scalar", data, f.pointer(record, ArrayField.DTYPE), null())
            f.leave_if(f.is_null(made), failed)
            f.put(slot, 0, made)
        maker = f.pointer(self._recipe, Field.MAKER)
        with (
            f.when(f.icmp(">", f.ptrtoint(maker), 1)),
            self._each() as (_, base, slot),
            f.when(f.icmp(">=", base, int(Base.RESULT))),
        ):
            made = f.python("vectorcall", maker, slot, int64(1), null())
            f.leave_if(f.is_null(made), failed)
            f.python("decref", f.pointer(slot))
            f.put(slot, 0, made)
        holder = f.pointer(self._recipe, Field.HOLDER)
        with f.once_if(f.not_(f.is_null(holder)), [f.pointer(self._made)]) as (_, together):
            count, is_tuple = f.word(self._recipe, Field.RESULTS), f.icmp("==", holder, f.symbol("tuple"))
            with f.once_if(is_tuple, [null()]) as (_, of_items):
                of_items([f.python("new_tuple", count)])
            with f.once_if(f.not_(is_tuple), of_items.results) as (_, of_slots):
                of_slots([f.python("new_object", holder, int64(0))])
            made = of_slots.results[0]
            f.leave_if(f.is_null(made), failed)
            items = f.at(made, f.select(is_tuple, int64(TUPLE_ITEM), int64(SERIAL_SLOT)))
            with f.loop(int64(0), count, int64(1), "item") as number:
                f.put(f.item(items, number), 0, f.pointer(f.item(self._made, number)))
            together([made])
        return together.results[0]


def run_numpy(f: ObjectCode, step: Value, bases: Value, failed: Block) -> None:
    """A function of NumPy, or a copy, on arrays made for it; to the block `failed` after an error."""
    arrays, outcome = f.alloca(POINTER, MOST_VIEWS, 16), f.alloca(INT64, 1, 8)
    for place in range(MOST_VIEWS):
        f.put(arrays, 8 * place, null())
    f.put(outcome, 0, int64(0))
    done = f.new_block("numpy_done")
    count, first = f.word(step, StepField.COUNT), [f.at(step, 8 * StepField.ARGUMENTS)]
    with f.carried_loop(int64(0), count, int64(1), first, "view") as (number, (view,), advance):
        base, slot = f.word(view, ArrayField.BASE), f.item(arrays, number)
        with f.branch(f.icmp("<", base, 0)) as (plain, viewed):
            with plain:
                given = f.pointer(view, ArrayField.DTYPE)
                f.python("incref", given)
                f.put(slot, 0, given)
            with viewed:
                f.put(slot, 0, _new_array(f, view, done, _place_in(f, view, bases, base)))
        advance([_following(f, view)])
    quiet = f.icmp("!=", f.word(step, StepField.IS_QUIET), 0)
    with f.once_if(quiet, [null()]) as (_, entered):
        token = f.python("set_context", f.symbol("error_state"), f.symbol("quiet"))
        f.leave_if(f.is_null(token), done)
        entered([token])
    function = f.pointer(step, StepField.CODE)
    with f.branch(f.is_null(function)) as (copy, call):
        with copy:
            status = f.python("copy_into", *(f.pointer(arrays, 8 * place) for place in range(2)))
            f.put(outcome, 0, f.zext(f.icmp("==", status, 0), INT64))
        with call:
            names = f.pointer(step, StepField.NAMES)
            with f.once_if(f.not_(f.is_null(names)), [count]) as (_, positional):
                positional([f.sub(count, f.word(names, TUPLE_SIZE))])
            found = f.python("vectorcall", function, arrays, positional.results[0], names)
            with f.when(f.not_(f.is_null(found))):
                f.python("decref", found)
                f.put(outcome, 0, int64(1))
    with f.when(quiet):
        token = entered.results[0]
        f.python("reset_context", f.symbol("error_state"), token)
        f.python("decref", token)
    f.jump(done)
    f.place(done)
    for place in range(MOST_VIEWS):
        array = f.pointer(arrays, 8 * place)
        with f.when(f.not_(f.is_null(array))):
            f.python("decref", array)
    f.leave_if(f.icmp("==", f.word(outcome), 0), failed)
