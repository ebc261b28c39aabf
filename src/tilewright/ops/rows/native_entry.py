"""The native entry of functions of rows and elements: machine code that replays prepared calls.

It matches a call by its arguments (`recipes.py`), takes the arrays' addresses, and hands everything
else, every error included, to the Python function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.calls.fastcall import (
    ALIGNED,
    API_EMPTY,
    API_RETURN,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    GIL_THRESHOLD,
    OBJECT_TYPE,
    TUPLE_ITEM,
    TUPLE_SIZE,
    WRITEABLE,
    numpy_api,
    python_symbols,
)
from tilewright.calls.recipe_lookup import RecipeEntry
from tilewright.calls.recipes import MOST_AXES, RecipeTable
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.builtin import Builtin
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, element_type, int32, int64, null
from tilewright.machine.host import host_machine
from tilewright.ops.rows.kernel import Prepared
from tilewright.ops.rows.recipes import (
    FORMS,
    IS_ARRAY,
    IS_FLOAT,
    MOST_ARGUMENTS,
    MOST_BESIDE,
    MOST_WORDS,
    NAMED,
    Form,
    RowRecipe,
    add_recipe,
)
from tilewright.spec.dtype import F32, F64

_MODULE = _NAME = "tw_function"

#: cpython/floatobject.h, PyFloatObject.ob_fval.
FLOAT_VALUE = 16


class _Entry(RecipeEntry):
    """Emits one function that serves all builtins; its `self` identifies the one called."""

    def known(self) -> Value:
        """The recipe of the call."""
        f = self.f
        self_, args, nargs, kwnames = f.arguments.values()
        named = f.alloca(INT64, 1, 8)
        f.store(int64(0), named, 8)
        with f.when(f.icmp("!=", kwnames, null())):
            f.store(self.field(kwnames, TUPLE_SIZE, INT64), named, 8)
        names = f.load(INT64, named, 8)
        total = f.add(nargs, names)
        self.require(f.icmp("<=", total, MOST_ARGUMENTS))
        words = f.alloca(INT64, MOST_WORDS, 16)
        marked = f.add(total, f.mul(names, NAMED))
        state = self.put([words, int64(0)], [f.ptrtoint(self_), marked])
        with f.carried_loop(int64(0), names, int64(1), state, "name") as (number, now, advance):
            word = f.load(INT64, f.at(f.at(kwnames, TUPLE_ITEM), f.mul(number, 8)), 8)
            advance(self.put(now, [word]))
        state = advance.results
        itself, nothing = f.alloca(POINTER, 1, 8), f.alloca(INT32, 2, 8)
        with f.carried_loop(int64(0), total, int64(1), state, "argument") as (number, now, advance):
            value = f.load(POINTER, f.at(args, f.mul(number, 8)), 8)
            f.store(value, itself, 8)
            f.store(int32(ALIGNED), nothing, 4)
            f.store(int32(0), f.at(nothing, 4), 4)
            kind = self.field(value, OBJECT_TYPE)
            is_array = f.icmp("==", kind, self.module.external("tw_ndarray"))
            is_float = f.icmp("==", kind, self.module.external("tw_float"))

            # Fields of an array; for other objects, harmless constant locations are read instead.
            flags = f.select(is_array, f.at(value, ARRAY_FLAGS), nothing)
            self.require(f.icmp("!=", f.and_(f.load(INT32, flags, 4), int32(ALIGNED)), 0))
            axes = f.load(INT32, f.select(is_array, f.at(value, ARRAY_NDIM), f.at(nothing, 4)), 4)
            self.require(f.icmp("<=", axes, MOST_AXES))
            word = f.select(is_float, f.at(value, FLOAT_VALUE), itself)
            word = f.load(INT64, f.select(is_array, f.at(value, ARRAY_DTYPE), word), 8)
            mark = f.select(is_float, int64(IS_FLOAT), int64(0))
            mark = f.select(is_array, int64(IS_ARRAY), mark)
            axes = f.sext(axes, INT64)
            advance(self.put_axes(value, axes, self.put(now, [word, f.add(axes, mark)])))
        return self.find(self.module.external("tw_recipes"), words, advance.results)

    def word(self, recipe: Value, name: str, index: int = 0) -> Value:
        """An integer of a recipe."""
        return self.field(recipe, getattr(RowRecipe, name).offset + 8 * index, INT64)

    def array(self, place: Value) -> Value:
        """The argument at a position; the first one if the position is -1."""
        f = self.f
        at = f.mul(f.maximum(place, int64(0)), 8)
        return f.load(POINTER, f.at(f.arguments["args"], at), 8)

    def extent_of(self, recipe: Value, data: Value, number: int) -> tuple[Value, Value]:
        """First byte of an array and that behind its last one."""
        start = self.f.ptrtoint(data)
        low, high = (self.f.add(start, self.word(recipe, "reach", 2 * number + end)) for end in (0, 1))
        return low, high

    def result(self, recipe: Value, x: Value, beside: Sequence[Value]) -> Value:
        """A new reference to `out`, where no operand loses by it, or to a new array."""
        f = self.f
        place = self.word(recipe, "out")
        slot = f.alloca(POINTER, 1, 8)
        with f.branch(f.icmp(">=", place, 0)) as (reuse, create):
            with reuse:
                out = self.array(place)
                flags = f.and_(self.field(out, ARRAY_FLAGS, INT32), int32(WRITEABLE))
                self.require(f.icmp("!=", flags, 0))
                data, x_data = self.field(out, ARRAY_DATA), self.field(x, ARRAY_DATA)
                low, high = self.extent_of(recipe, data, 1)
                first, behind = self.extent_of(recipe, x_data, 0)
                itself = f.and_(f.icmp("==", data, x_data), f.icmp("!=", self.word(recipe, "same"), 0))
                apart = f.or_(f.icmp("<=", high, first), f.icmp("<=", behind, low))
                self.require(f.or_(itself, apart))
                for number, array in enumerate(beside):
                    first, behind = self.extent_of(recipe, self.field(array, ARRAY_DATA), 2 + number)
                    none = f.icmp("<", self.word(recipe, "beside", number), 0)
                    apart = f.or_(f.icmp("<=", high, first), f.icmp("<=", behind, low))
                    self.require(f.or_(none, apart))
                f.call(self.module.declare("tw_incref", VOID, (POINTER,)), [out])
                f.store(out, slot, 8)
            with create:
                axes, shape = (
                    self.field(recipe, RowRecipe.axes.offset, INT32),
                    f.at(recipe, RowRecipe.shape.offset),
                )
                dtype = self.field(recipe, RowRecipe.dtype.offset)
                f.store(self.new_array(axes, shape, dtype), slot, 8)
        return f.load(POINTER, slot, 8)

    def call(self, recipe: Value, arrays: Sequence[Value], scratch: Value, team: Value) -> None:
        """Calls the kernel in its form."""
        f = self.f
        code = Callee(VOID, self.field(recipe, RowRecipe.code.offset).text)
        pointers = [self.field(array, ARRAY_DATA) for array in arrays]
        sizes = [self.word(recipe, "sizes", number) for number in range(RowRecipe.sizes.size // 8)]
        double = f.load(element_type(F64), f.at(recipe, RowRecipe.eps.offset), F64.size)
        eps = {F64.name: double, F32.name: f.emit(element_type(F32), f"fptrunc {double.typed} to float")}
        found = self.word(recipe, "form")

        def call(form: Form) -> None:
            scalars = [] if form.eps is None else [eps[form.eps]]
            rest = [scratch] if form.scratch else []
            f.call(code, [*pointers[: 2 + form.beside], *sizes, *scalars, *rest, team])

        for number, form in enumerate(FORMS):
            with f.when(f.icmp("==", found, number)):
                call(form)

    def count_use(self, recipe: Value, difference: int) -> None:
        """Counts the calls that follow a recipe; the GIL is held."""
        f, at = self.f, self.f.at(recipe, RowRecipe.uses.offset)
        f.store(f.add(f.load(INT64, at, 8), difference), at, 8)


def _emit() -> str:
    """The module: the recipe of the call, where its arrays are, and the kernel."""
    machine = host_machine()
    module = Module(_MODULE, machine.triple, data_layout(machine))
    entry = _Entry(module, _NAME)
    f = entry.f
    recipe = entry.known()
    x = entry.array(entry.word(recipe, "x"))
    beside = [entry.array(entry.word(recipe, "beside", number)) for number in range(MOST_BESIDE)]
    result = entry.result(recipe, x, beside)
    work = entry.word(recipe, "work")
    wish = entry.find_team(work, unused=result)
    empty, slot = f.alloca(POINTER, 1, 8), f.alloca(POINTER, 1, 8)
    f.store(null(), empty, 8)
    f.store(empty, slot, 8)
    table = entry.field(recipe, RowRecipe.scratch.offset)
    with f.when(f.icmp("!=", table, null())):
        f.store(entry.find_scratch(table, unused=result), slot, 8)
    long_running = f.icmp(">", work, int64(GIL_THRESHOLD))
    scalar = f.icmp("!=", entry.word(recipe, "scalar"), 0)
    entry.count_use(recipe, 1)
    with (
        entry.taken(f.load(POINTER, slot, 8)) as scratch,
        entry.without_gil(long_running),
        entry.team(wish) as team,
    ):
        entry.call(recipe, [x, result, *beside], scratch, team)
    entry.count_use(recipe, -1)
    entry.raise_cancelled(unused=result)
    with f.when(scalar):
        f.ret(f.call(module.declare("tw_return", POINTER, (POINTER,)), [result]))
    entry.finish(result)
    return str(module)


class NativeFunctions:
    """The machinery of the native entry: its recipes and its code."""

    def __init__(self) -> None:
        self.table = RecipeTable()
        imports = {
            **python_symbols(),
            "tw_recipes": self.table.address,
            "tw_float": id(float),
            "tw_empty": numpy_api(API_EMPTY),
            "tw_return": numpy_api(API_RETURN),
        }
        machine = host_machine()
        code = cached_object(_MODULE, machine, lambda: emit_object(_emit(), _MODULE, machine))
        self._code = Linked(code, (_NAME,), imports)
        self._served: set[Builtin] = set()

    def add(
        self, builtin: Builtin, arguments: Sequence[Any], named: Mapping[str, Any], done: Prepared
    ) -> None:
        """Makes a call reachable from the entry, which the function gets, and scratch for it."""
        if builtin not in self._served:
            builtin.install(self._code.address(_NAME), self)
            self._served.add(builtin)
        if done.call is not None and done.call.kernel.pool is not None:
            done.call.kernel.pool.supply()
        add_recipe(self.table, builtin.fallback, arguments, named, done)
