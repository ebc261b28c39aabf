"""The native entry of `einsum`: machine code that does again what an earlier call decided.

It knows a call by its subscripts object and by type, shape and strides of each operand (`recipes.py`), and
hands everything else, every error included, to the Python function.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

from tilewright.calls.fastcall import (
    ALIGNED,
    API_EMPTY,
    API_NEW_FROM_DESCR,
    API_SCALAR,
    API_SET_BASE,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    ARRAY_SHAPE,
    ARRAY_STRIDES,
    GIL_THRESHOLD,
    OBJECT_TYPE,
    TUPLE_ITEM,
    TUPLE_SIZE,
    WRITEABLE,
    TeamRequest,
    numpy_api,
    python_symbols,
)
from tilewright.calls.recipe_lookup import RecipeEntry
from tilewright.calls.recipes import (
    MOST_AXES,
    MOST_OPERANDS,
    MOST_STEPS,
    MOST_WORDS,
    NUMBERS,
    Action,
    EinsumCall,
    Made,
    Recipe,
    RecipeStep,
    RecipeTable,
    View,
)
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.builtin import Builtin
from tilewright.llvm.control import Block
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int32, int64, null
from tilewright.machine.host import host_machine
from tilewright.ops.matmul.public import matmul

_MODULE = _NAME = "tw_einsum"

#: The widest element, and what it is aligned to.
MOST_BYTES = 16

#: Interned, so that callers pass these very objects.
_OPTIMIZE, _AUTO = sys.intern("optimize"), sys.intern("auto")


class _EinsumEntry(RecipeEntry):
    """Emits `einsum(subscripts, *operands, out=None, optimize="auto")`."""

    def __init__(self, module: Module, name: str) -> None:
        super().__init__(module, name)
        self.increment = module.declare("tw_incref", VOID, (POINTER,))
        self.decrement = module.declare("tw_decref", VOID, (POINTER,))

    # --- the call ----------------------------------------------------------------------------------

    def known(self) -> tuple[Value, Value]:
        """The recipe of the call, and `out`, which is null where there is none."""
        f = self.f
        nargs = f.arguments["nargs"]
        self.require(f.icmp(">=", nargs, 2))
        self.require(f.icmp("<=", nargs, 1 + MOST_OPERANDS))
        out, optimize = self._keywords()
        words = f.alloca(INT64, MOST_WORDS, 16)
        start = self.put([words, int64(0)], [f.ptrtoint(self.argument(0)), optimize])
        with f.carried_loop(int64(1), nargs, int64(1), start, "operand") as (number, state, advance):
            array = f.load(POINTER, f.at(f.arguments["args"], f.mul(number, 8)), 8)
            advance(self._array(array, ALIGNED, state))
        with f.once_if(f.icmp("!=", out, null()), advance.results) as (state, changed):
            changed(self._array(out, ALIGNED | WRITEABLE, state))
        return self.find(self.module.external("tw_recipes"), words, changed.results), out

    def _keywords(self) -> tuple[Value, Value]:
        """`out`, and the object that `optimize` is; nothing in place of None and of "auto"."""
        f, module = self.f, self.module
        names = f.arguments["kwnames"]
        out, optimize = (f.alloca(POINTER, 1, 8) for _ in range(2))
        for slot in (out, optimize):
            f.store(null(), slot, 8)
        with f.when(f.icmp("!=", names, null())):
            count = self.field(names, TUPLE_SIZE, INT64)
            with f.loop(int64(0), count, int64(1), "keyword") as number:
                name = f.load(POINTER, f.at(f.at(names, TUPLE_ITEM), f.mul(number, 8)), 8)
                at = f.add(f.arguments["nargs"], number)
                value = f.load(POINTER, f.at(f.arguments["args"], f.mul(at, 8)), 8)
                known = []
                for slot, word, nothing in ((out, "out", "tw_none"), (optimize, "optimize", "tw_str_auto")):
                    this = f.icmp("==", name, module.external(f"tw_str_{word}"))
                    absent = f.icmp("==", value, module.external(nothing))
                    found = f.select(absent, null(), value)
                    f.store(f.select(this, found, f.load(POINTER, slot, 8)), slot, 8)
                    known.append(this)
                self.require(f.or_(*known))
        return f.load(POINTER, out, 8), f.ptrtoint(f.load(POINTER, optimize, 8))

    def _array(self, array: Value, flags: int, state: Sequence[Value]) -> list[Value]:
        """Puts the words of a plain array behind those before."""
        f = self.f
        self.require(f.icmp("==", self.field(array, OBJECT_TYPE), self.module.external("tw_ndarray")))
        found = f.and_(self.field(array, ARRAY_FLAGS, INT32), int32(flags))
        self.require(f.icmp("==", found, int32(flags)))
        axes = f.sext(self.field(array, ARRAY_NDIM, INT32), INT64)
        self.require(f.icmp("<=", axes, MOST_AXES))
        start = self.put(state, (f.ptrtoint(self.field(array, ARRAY_DTYPE)), axes))
        return self.put_axes(array, axes, start)

    def require_disjoint(self, out: Value, recipe: Value) -> None:
        """Goes on if `out` is not there, or shares no memory with an operand."""
        f = self.f
        with f.when(f.icmp("!=", out, null())):
            size = self.word(recipe, Recipe.itemsize)
            low, high = self._reach(out, size)
            with f.loop(int64(1), f.arguments["nargs"], int64(1), "operand") as number:
                array = f.load(POINTER, f.at(f.arguments["args"], f.mul(number, 8)), 8)
                first, behind = self._reach(array, size)
                self.require(f.or_(f.icmp("<=", high, first), f.icmp("<=", behind, low)))

    def _reach(self, array: Value, size: Value) -> list[Value]:
        """First byte and the byte behind the last one of an array."""
        f = self.f
        start = f.ptrtoint(self.field(array, ARRAY_DATA))
        axes = f.sext(self.field(array, ARRAY_NDIM, INT32), INT64)
        shape, strides = self.field(array, ARRAY_SHAPE), self.field(array, ARRAY_STRIDES)
        ends = [start, f.add(start, size)]
        with f.carried_loop(int64(0), axes, int64(1), ends, "axis") as (axis, (low, high), advance):
            length, step = (f.load(INT64, f.at(base, f.mul(axis, 8)), 8) for base in (shape, strides))
            reach = f.mul(f.sub(length, 1), step)
            advance([f.add(low, f.minimum(reach, int64(0))), f.add(high, f.maximum(reach, int64(0)))])
        return advance.results

    # --- arrays ------------------------------------------------------------------------------------

    def word(self, base: Value, field: Any) -> Value:
        """An integer of a record."""
        return self.field(base, field.offset, INT64)

    def seen(self, array: Value, view: Value, failed: Block) -> Value:
        """A new reference to a view of an array; goes to a block where there is no memory for it."""
        f, module = self.f, self.module
        kinds = (POINTER, POINTER, INT32, POINTER, POINTER, POINTER, INT32, POINTER)
        new = module.declare("tw_new_array", POINTER, kinds)
        set_base = module.declare("tw_set_base", INT32, (POINTER, POINTER))
        dtype = self.field(array, ARRAY_DTYPE)
        f.call(self.increment, [dtype])  # the new array takes over a reference, and one to the array
        data = f.at(self.field(array, ARRAY_DATA), self.word(view, View.offset))
        shape, strides = (f.at(view, part.offset) for part in (View.shape, View.strides))
        flags = f.and_(self.field(array, ARRAY_FLAGS, INT32), int32(WRITEABLE))
        axes = f.trunc(self.word(view, View.axes), INT32)
        kind = module.external("tw_ndarray")
        made = f.call(new, [kind, dtype, axes, shape, strides, data, flags, null()])
        self.go_on(made, failed)
        f.call(self.increment, [array])
        f.call(set_base, [made, array])
        return made

    def go_on(self, made: Value, failed: Block) -> None:
        """Goes on if there is an object, else to a block."""
        following = self.f.new_block("made")
        self.f.jump_if(self.f.icmp("==", made, null()), failed, following)
        self.f.place(following)


class _RecipeSteps:
    """The steps of a recipe, one after the other; `place` is that of the step that is done."""

    def __init__(self, entry: _EinsumEntry, recipe: Value, out: Value) -> None:
        self.entry, self.f, self.out = entry, entry.f, out
        self.uses = entry.f.at(recipe, Recipe.uses.offset)
        f = entry.f
        self.work = entry.word(recipe, Recipe.work)
        self.wish = entry.find_team(self.work)
        self.count = entry.word(recipe, Recipe.count)
        self.steps = f.inttoptr(entry.word(recipe, Recipe.steps))
        self.operands = f.sub(f.arguments["nargs"], 1)
        self.values = f.alloca(POINTER, MOST_OPERANDS + MOST_STEPS, 16)
        self.number, self.made, self.factors = (
            f.alloca(INT64, 1, 8),
            f.alloca(POINTER, 1, 8),
            f.alloca(POINTER, 3, 8),
        )
        self.failed, self.done = f.new_block("failed"), f.new_block("done")
        with f.loop(int64(0), self.operands, int64(1), "value") as index:
            at = f.mul(index, 8)
            f.store(f.load(POINTER, f.at(f.at(f.arguments["args"], 8), at), 8), f.at(self.values, at), 8)
        f.store(int64(0), self.number, 8)

    def run(self) -> Value:
        """A new reference to the last result, or null; those of other steps are given up."""
        f = self.f
        self._use(1)
        begin, following, ended = (f.new_block(name) for name in ("step", "following", "ended"))
        f.jump(begin)
        f.place(begin)
        f.store(null(), self.made, 8)
        number = f.load(INT64, self.number, 8)
        self._step(f.at(self.steps, f.mul(number, ctypes.sizeof(RecipeStep))))
        f.jump(self.done)
        f.place(self.failed)
        f.store(null(), self.made, 8)
        f.jump(self.done)
        f.place(self.done)
        number, made = f.load(INT64, self.number, 8), f.load(POINTER, self.made, 8)
        f.store(made, self._value(f.add(self.operands, number)), 8)
        number = f.add(number, 1)
        f.store(number, self.number, 8)
        more = f.and_(f.icmp("<", number, self.count), f.icmp("!=", made, null()))
        f.jump_if(more, following, ended)
        f.place(following)
        f.jump(begin)
        f.place(ended)
        with f.loop(int64(0), f.sub(number, 1), int64(1), "unused") as index:
            f.call(self.entry.decrement, [f.load(POINTER, self._value(f.add(self.operands, index)), 8)])
        self._use(-1)
        return made

    def _use(self, difference: int) -> None:
        """Counts a call that follows the recipe, or that has ended."""
        f = self.f
        f.store(f.add(f.load(INT64, self.uses, 8), difference), self.uses, 8)

    def _value(self, index: Value) -> Value:
        return self.f.at(self.values, self.f.mul(index, 8))

    def _array(self, view: Value) -> Value:
        """The array that a view is of."""
        return self.f.load(POINTER, self._value(self.entry.word(view, View.array)), 8)

    def _step(self, step: Value) -> None:
        """One step, into `made`."""
        entry, f = self.entry, self.f
        action = entry.word(step, RecipeStep.action)
        view = f.at(step, RecipeStep.views.offset)
        with f.branch(f.icmp("==", action, int(Action.KERNEL))) as (kernel, others):
            with kernel:
                self._kernel(step)
            with others, f.branch(f.icmp("==", action, int(Action.PRODUCT))) as (product, only_view):
                with product:
                    self._product(step)
                with only_view:
                    f.store(entry.seen(self._array(view), view, self.failed), self.made, 8)

    # --- products ------------------------------------------------------------------------------------

    def _product(self, step: Value) -> None:
        """A view of the product of views of two arrays, or `out`, which receives it."""
        entry, f, module = self.entry, self.f, self.entry.module
        result, into_out = (
            f.at(step, RecipeStep.result.offset),
            f.icmp("!=", entry.word(step, RecipeStep.into_out), 0),
        )
        for number in range(3):
            f.store(null(), f.at(self.factors, 8 * number), 8)
        given_up, whole = f.new_block("given_up"), f.new_block("whole")
        for number in range(2):
            view = f.at(step, RecipeStep.views.offset + number * ctypes.sizeof(View))
            self._factor(number, self._array(view), view, given_up)
        with f.when(into_out):
            self._factor(2, self.out, result, given_up)
        vectorcall = module.declare("tw_vectorcall", POINTER, (POINTER, POINTER, INT64, POINTER))
        count = f.select(into_out, int64(3), int64(2))
        product = f.call(vectorcall, [module.external("tw_matmul"), self.factors, count, null()])
        f.store(product, self.made, 8)
        f.jump(given_up)
        f.place(given_up)
        for number in range(3):
            f.call(entry.decrement, [f.load(POINTER, f.at(self.factors, 8 * number), 8)])
        product = f.load(POINTER, self.made, 8)
        entry.go_on(product, self.failed)
        with f.branch(into_out) as (given, new):
            with given:
                f.call(entry.decrement, [product])
                f.call(entry.increment, [self.out])
                f.store(self.out, self.made, 8)
            with new, f.when(f.icmp(">=", entry.word(result, View.axes), 0)):
                self._cut(product, result)
        f.jump(whole)
        f.place(whole)

    def _factor(self, number: int, array: Value, view: Value, failed: Block) -> None:
        """A new reference to a view of an array, or to itself, as an argument of the product."""
        f, slot = self.f, self.f.at(self.factors, 8 * number)
        with f.branch(f.icmp(">=", self.entry.word(view, View.axes), 0)) as (another, itself):
            with another:
                f.store(self.entry.seen(array, view, failed), slot, 8)
            with itself:
                f.call(self.entry.increment, [array])
                f.store(array, slot, 8)

    def _cut(self, product: Value, result: Value) -> None:
        """A view of the product in its place."""
        f = self.f
        unseen, seen = f.new_block("unseen"), f.new_block("seen")
        view = self.entry.seen(product, result, unseen)
        f.store(view, self.made, 8)
        f.call(self.entry.decrement, [product])
        f.jump(seen)
        f.place(unseen)
        f.call(self.entry.decrement, [product])
        f.jump(self.failed)
        f.place(seen)

    # --- kernels -------------------------------------------------------------------------------------

    def _kernel(self, step: Value) -> None:
        """The result of a kernel: an array, `out`, or a scalar read from the stack."""
        entry, f, module = self.entry, self.f, self.entry.module
        result, dtype = f.at(step, RecipeStep.result.offset), entry.field(step, RecipeStep.dtype.offset)
        scalar = f.icmp("!=", entry.word(step, RecipeStep.scalar), 0)
        place = f.alloca(POINTER, 1, 8)
        buffer = f.alloca(INT64, MOST_BYTES // 8, MOST_BYTES)
        with f.branch(f.icmp("!=", entry.word(step, RecipeStep.into_out), 0)) as (given, new):
            with given:
                f.call(entry.increment, [self.out])
                f.store(self.out, self.made, 8)
                f.store(entry.field(self.out, ARRAY_DATA), place, 8)
            with new, f.branch(scalar) as (number, array):
                with number:
                    f.store(buffer, place, 8)
                with array:
                    axes = f.trunc(entry.word(result, View.axes), INT32)
                    made = self._new(axes, f.at(result, View.shape.offset), dtype)
                    f.store(made, self.made, 8)
                    f.store(entry.field(made, ARRAY_DATA), place, 8)
        data, work = f.load(POINTER, place, 8), entry.word(step, RecipeStep.work)
        # Of several steps, the largest alone takes a team.
        wanted = f.and_(self.wish.wanted, f.icmp("==", work, self.work))
        wish = TeamRequest(self.wish.state, wanted, self.wish.threads, self.wish.long)
        with entry.without_gil(f.icmp(">", work, int64(GIL_THRESHOLD))), entry.team(wish) as team:
            self._call(step, data, team)
        cancelled = f.new_block("cancelled")
        entry.raise_cancelled(to=cancelled)
        with f.when(scalar):
            new_scalar = module.declare("tw_scalar", POINTER, (POINTER,) * 3)
            f.store(f.call(new_scalar, [data, dtype, null()]), self.made, 8)
        whole = f.new_block("whole")
        f.jump(whole)
        f.place(cancelled)
        f.call(entry.decrement, [f.load(POINTER, self.made, 8)])
        f.jump(self.failed)
        f.place(whole)

    def _new(self, axes: Value, shape: Value, dtype: Value) -> Value:
        """A new, uninitialised array."""
        entry, f = self.entry, self.f
        f.call(entry.increment, [dtype])  # PyArray_Empty takes over a reference
        empty = entry.module.declare("tw_empty", POINTER, (INT32, POINTER, POINTER, INT32))
        made = f.call(empty, [axes, shape, dtype, int32(0)])
        entry.go_on(made, self.failed)
        return made

    def _call(self, step: Value, data: Value, team: Value) -> None:
        """Calls the kernel of a step, on one array or two."""
        entry, f = self.entry, self.f
        code = Callee(VOID, entry.field(step, RecipeStep.code.offset).text)
        numbers = [
            entry.field(step, RecipeStep.numbers.offset + 8 * number, INT64) for number in range(NUMBERS)
        ]
        views = [f.at(step, RecipeStep.views.offset + number * ctypes.sizeof(View)) for number in range(2)]
        factors = [entry.field(self._array(view), ARRAY_DATA) for view in views]
        with f.branch(f.icmp("==", entry.word(step, RecipeStep.factors), 1)) as (one, two):
            with one:
                f.call(code, [factors[0], data, *numbers, team])
            with two:
                f.call(code, [*factors, data, *numbers, team])


def _emit() -> str:
    """The module: the recipe of the call, then its steps."""
    machine = host_machine()
    module = Module(_MODULE, machine.triple, data_layout(machine))
    entry = _EinsumEntry(module, _NAME)
    recipe, out = entry.known()
    entry.require_disjoint(out, recipe)
    entry.finish(_RecipeSteps(entry, recipe, out).run())
    return str(module)


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
            "tw_str_optimize": id(_OPTIMIZE),
            "tw_str_auto": id(_AUTO),
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
        builtin.install(self._code.address(_NAME), self)

    def add(self, call: EinsumCall, steps: Sequence[Made]) -> None:
        """Makes the steps of a call reachable from the entry."""
        self.table.add(call, steps)
