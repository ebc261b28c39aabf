"""The native entry of `einsum`: machine code that does again what an earlier call decided.

It knows a call by its subscripts object and by type, shape and strides of each operand (`recipes.py`), and
hands everything else, every error included, to the Python function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from tilewright.llvm.build import Callee, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int32, int64, null
from tilewright.machine.host import host_machine
from tilewright.runtime.builtin import Builtin
from tilewright.runtime.cache import cached_object
from tilewright.runtime.fastcall import (
    ALIGNED,
    API_EMPTY,
    API_NEW_FROM_DESCR,
    API_SCALAR,
    API_SET_BASE,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    GIL_THRESHOLD,
    OBJECT_TYPE,
    WRITEABLE,
    numpy_api,
    python_symbols,
)
from tilewright.runtime.matmul_front import matmul
from tilewright.runtime.operands import Array
from tilewright.runtime.recipe_entry import RecipeEntry
from tilewright.runtime.recipes import (
    MOST_AXES,
    MOST_OPERANDS,
    MOST_WORDS,
    NUMBERS,
    Action,
    Made,
    Recipe,
    RecipeTable,
    View,
)

_MODULE = _NAME = "tw_einsum"

#: The widest element, and what it is aligned to.
MOST_BYTES = 16


class _Entry(RecipeEntry):
    """Emits `einsum(subscripts, a)` and `einsum(subscripts, a, b)`."""

    def known(self) -> Value:
        """The recipe of the call."""
        f = self.f
        nargs = f.arguments["nargs"]
        self.require(f.compare("==", f.arguments["kwnames"], null()))
        self.require(f.compare(">=", nargs, 2))
        self.require(f.compare("<=", nargs, 1 + MOST_OPERANDS))
        words = f.stack(INT64, MOST_WORDS, 16)
        start = self.put([words, int64(0)], [f.as_integer(self.argument(0))])
        with f.carried_loop(int64(1), nargs, int64(1), start, "operand") as (number, state, advance):
            array = f.load(POINTER, f.at(f.arguments["args"], f.mul(number, 8)), 8)
            self.require(f.compare("==", self.field(array, OBJECT_TYPE), self.module.external("tw_ndarray")))
            flags = f.both(self.field(array, ARRAY_FLAGS, INT32), int32(ALIGNED))
            self.require(f.compare("!=", flags, 0))
            axes = f.extend(self.field(array, ARRAY_NDIM, INT32), INT64)
            self.require(f.compare("<=", axes, MOST_AXES))
            dtype = f.as_integer(self.field(array, ARRAY_DTYPE))
            advance(self.put_axes(array, axes, self.put(state, (dtype, axes))))
        return self.find(self.module.external("tw_recipes"), words, advance.results)

    def word(self, base: Value, field: Any) -> Value:
        """An integer of a recipe or of a view."""
        return self.field(base, field.offset, INT64)

    def operand(self, view: Value) -> Value:
        """The operand that a view is of."""
        number = self.word(view, View.operand)
        at = self.f.mul(self.f.add(number, 1), 8)
        return self.f.load(POINTER, self.f.at(self.f.arguments["args"], at), 8)

    def seen(self, array: Value, view: Value) -> Value:
        """A new reference to a view of an array; a call without memory for it ends with NumPy's error."""
        f, module = self.f, self.module
        increment = module.declare("tw_incref", VOID, (POINTER,))
        new = module.declare(
            "tw_new_array", POINTER, (POINTER, POINTER, INT32, POINTER, POINTER, POINTER, INT32, POINTER)
        )
        set_base = module.declare("tw_set_base", INT32, (POINTER, POINTER))
        dtype = self.field(array, ARRAY_DTYPE)
        f.call(increment, [dtype])  # the new array takes over a reference, and one to the array
        data = f.at(self.field(array, ARRAY_DATA), self.word(view, View.offset))
        shape, strides = (f.at(view, part.offset) for part in (View.shape, View.strides))
        flags = f.both(self.field(array, ARRAY_FLAGS, INT32), int32(WRITEABLE))
        axes = f.truncate(self.word(view, View.axes), INT32)
        kind = module.external("tw_ndarray")
        made = f.call(new, [kind, dtype, axes, shape, strides, data, flags, null()])
        with f.when(f.compare("==", made, null())):
            f.ret(null())
        f.call(increment, [array])
        f.call(set_base, [made, array])
        return made

    def seen_if(self, condition: Value, array: Value, view: Value) -> Value:
        """A new reference: to a view where the condition holds, else to the array itself."""
        f = self.f
        slot = f.stack(POINTER, 1, 8)
        with f.branch(condition) as (another, itself):
            with another:
                f.store(self.seen(array, view), slot, 8)
            with itself:
                f.call(self.module.declare("tw_incref", VOID, (POINTER,)), [array])
                f.store(array, slot, 8)
        return f.load(POINTER, slot, 8)


def _emit() -> str:
    """The module: the recipe of the call, and what each action does."""
    machine = host_machine()
    module = Module(_MODULE, machine.triple, data_layout(machine))
    entry = _Entry(module, _NAME)
    f = entry.f
    recipe = entry.known()
    action = entry.word(recipe, Recipe.action)
    with f.when(f.compare("==", action, int(Action.VIEW))):
        view = f.at(recipe, Recipe.views.offset)
        f.ret(entry.seen(entry.operand(view), view))
    with f.when(f.compare("==", action, int(Action.KERNEL))):
        f.ret(_computed(entry, recipe))
    entry.finish(_multiplied(entry, recipe))
    return str(module)


def _multiplied(entry: _Entry, recipe: Value) -> Value:
    """A new reference to a view of the product of views of the operands."""
    f, module = entry.f, entry.module
    decrement = module.declare("tw_decref", VOID, (POINTER,))
    factors = f.stack(POINTER, MOST_OPERANDS, 16)
    for number in range(MOST_OPERANDS):
        view = f.at(recipe, Recipe.views.offset + number * ctypes.sizeof(View))
        other = f.compare(">=", entry.word(view, View.axes), 0)
        f.store(entry.seen_if(other, entry.operand(view), view), f.at(factors, 8 * number), 8)
    vectorcall = module.declare("tw_vectorcall", POINTER, (POINTER, POINTER, INT64, POINTER))
    product = f.call(vectorcall, [module.external("tw_matmul"), factors, int64(MOST_OPERANDS), null()])
    for number in range(MOST_OPERANDS):
        f.call(decrement, [f.load(POINTER, f.at(factors, 8 * number), 8)])
    result = f.at(recipe, Recipe.result.offset)
    with f.when(f.both(f.compare("!=", product, null()), f.compare(">=", entry.word(result, View.axes), 0))):
        view = entry.seen(product, result)
        f.call(decrement, [product])
        f.ret(view)
    return product


def _computed(entry: _Entry, recipe: Value) -> Value:
    """A new reference to what a kernel makes: an array, or a scalar from a place on the stack."""
    f, module = entry.f, entry.module
    work = entry.word(recipe, Recipe.work)
    wish = entry.find_team(work)
    shape = f.at(recipe, Recipe.result.offset + View.shape.offset)
    axes = f.truncate(entry.word(f.at(recipe, Recipe.result.offset), View.axes), INT32)
    dtype = entry.field(recipe, Recipe.dtype.offset)
    array, place = f.stack(POINTER, 1, 8), f.stack(POINTER, 1, 8)
    scalar = f.compare("==", axes, 0)
    with f.branch(scalar) as (alone, several):
        with alone:
            f.store(null(), array, 8)
            f.store(f.stack(INT64, MOST_BYTES // 8, MOST_BYTES), place, 8)
        with several:
            made = entry.new_array(axes, shape, dtype)
            f.store(made, array, 8)
            f.store(entry.field(made, ARRAY_DATA), place, 8)
    result, data = f.load(POINTER, array, 8), f.load(POINTER, place, 8)
    long_running = f.compare(">", work, int64(GIL_THRESHOLD))
    with entry.without_gil(long_running), entry.team(wish) as team:
        _call(entry, recipe, data, team)
    entry.raise_cancelled(unused=result)
    with f.when(scalar):
        new = module.declare("tw_scalar", POINTER, (POINTER,) * 3)
        f.ret(f.call(new, [data, dtype, null()]))
    return result


def _call(entry: _Entry, recipe: Value, data: Value, team: Value) -> None:
    """Calls the kernel of a recipe, on one operand or two."""
    f = entry.f
    code = Callee(VOID, entry.field(recipe, Recipe.code.offset).text)
    numbers = [entry.field(recipe, Recipe.numbers.offset + 8 * number, INT64) for number in range(NUMBERS)]
    factors = [
        entry.field(
            entry.operand(f.at(recipe, Recipe.views.offset + number * ctypes.sizeof(View))), ARRAY_DATA
        )
        for number in range(MOST_OPERANDS)
    ]
    with f.branch(f.compare("==", entry.word(recipe, Recipe.factors), 1)) as (one, two):
        with one:
            f.call(code, [factors[0], data, *numbers, team])
        with two:
            f.call(code, [*factors, data, *numbers, team])


class NativeEinsum:
    """The machinery of one native `einsum`: its recipes and the entry code.

    Parameters
    ----------
    builtin : the function to give machine code.
    """

    def __init__(self, builtin: Builtin) -> None:
        self.table = RecipeTable()
        imports = {
            **python_symbols(),
            "tw_recipes": self.table.address,
            "tw_matmul": id(matmul),
            "tw_new_array": numpy_api(API_NEW_FROM_DESCR),
            "tw_set_base": numpy_api(API_SET_BASE),
            "tw_empty": numpy_api(API_EMPTY),
            "tw_scalar": numpy_api(API_SCALAR),
        }
        machine = host_machine()
        code = cached_object(_MODULE, machine, lambda: emit_object(_emit(), _MODULE, machine))
        self._code = Linked(code, (_NAME,), imports)
        builtin.install(self._code.address(_NAME))

    def add(self, subscripts: str, operands: Sequence[Array], made: Made) -> None:
        """Makes a recipe reachable from the entry."""
        self.table.add(subscripts, operands, made)
