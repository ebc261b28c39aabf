"""The loops of this process: linked once, put into NumPy's functions and taken out again."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tilewright.calls.batch import loop_table
from tilewright.calls.interpreter import symbols
from tilewright.calls.layout import LAYOUT, OBJECT_TYPE
from tilewright.calls.object_code import ObjectCode
from tilewright.compiler.scratch import scratch_pool
from tilewright.installation.error_code import RAISE, rule_name
from tilewright.installation.loop_code import emit_loops, stub_name, stub_names
from tilewright.installation.rows import LETTERS, PRODUCTS, ErrorRule, LoopRow, new_table
from tilewright.installation.supply import Supplier
from tilewright.installation.thresholds import least_work, shapes_of
from tilewright.installation.ufuncs import replace_loop, take_errors_address
from tilewright.llvm.build import Module
from tilewright.llvm.builtin import address_of
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT32, POINTER, int32, null
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.preparing import once
from tilewright.threads.lifetime import outlive
from tilewright.threads.pool import thread_pool
from tilewright.threads.scratch import ScratchPool

_LATER = "tw_raise_later"

#: Types whose kernels are made at once, since most programs use them.
_AT_ONCE = "fd"


def _emit_later(machine: Machine) -> str:
    """``int raise_later(exception)``, a pending call: raises, and gives up the reference."""
    module = Module(_LATER, machine.triple, data_layout(machine))
    f = ObjectCode(module, _LATER, INT32, [("exception", POINTER)], exported=True)
    exception = f.arguments["exception"]
    kind = f.pointer(exception, OBJECT_TYPE)
    f.python("incref", kind)
    f.python("restore_error", kind, exception, null())
    f.ret(int32(-1))
    return str(module)


class Loops:
    """All loops, with what they point to; lives until the process ends, since calls may be in progress.

    Attributes
    ----------
    table : the memory that the loops read.
    installed : whether they are in NumPy's functions.
    """

    def __init__(self) -> None:
        machine = host_machine()
        self.table, self.installed = new_table(), False
        self._covered: set[tuple[str, int]] = set()  # loops that were below somebody else's
        # Blocks of their own: those of other machine code are taken while it holds the GIL.
        self._pool = ScratchPool(scratch_pool().size)
        self._pool.supply()
        self.table.scratch_bytes = self._pool.size
        self._later = _linked(_LATER, _emit_later, machine, (_LATER,), symbols())
        self.supplier = Supplier(self.table, self._pool)
        self._ask = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(self.supplier.answer)
        imports = {
            "tw_table": ctypes.addressof(self.table),
            "tw_scratch": self._pool.table_address,
            "tw_loops": ctypes.addressof(loop_table()),
            "tw_pool": thread_pool().address,
            "tw_ask": address_of(self._ask),
            "tw_raise_later": self._later.address(_LATER),
            "tw_add_pending_call": address_of(ctypes.pythonapi.Py_AddPendingCall),
            "tw_take_errors": take_errors_address(),
        }
        rules = [rule_name(size) for size in (2, 4, 8)]
        self._code = _linked("tw_loops", emit_loops, machine, (*stub_names(), *rules, RAISE), imports)
        self.table.raise_errors = self._code.address(RAISE)
        for letter, row in zip(LETTERS, self.table.rows, strict=True):
            dtype = np.dtype(letter)
            if row.rule == ErrorRule.FLOATS:
                row.errors = self._code.address(rule_name(dtype.itemsize // row.parts))
            self.limit(row, letter)
        outlive(self)

    def limit(self, row: LoopRow, letter: str) -> None:
        """Sets what a row leaves to NumPy."""
        for number, product in enumerate(PRODUCTS):
            row.least[number] = least_work(product, letter)
        for name, limit in shapes_of(letter)._asdict().items():
            setattr(row, name, limit)

    def install(self) -> None:
        """Puts the loops into NumPy's functions."""
        if self.installed:
            return
        for letter, row in zip(LETTERS, self.table.rows, strict=True):
            if letter in _AT_ONCE:
                self.supplier.connect(row, letter)
        self.table.enabled = 1
        for number, product in enumerate(PRODUCTS):
            ufunc: Any = getattr(np, product.name, None)  # NumPy 2.1 lacks two of them
            for letter, row in zip(LETTERS, self.table.rows, strict=True):
                if ufunc is not None:
                    self._put(ufunc, letter, row, number)
        self.installed = True

    def _put(self, ufunc: np.ufunc, letter: str, row: Any, number: int) -> None:
        ours = self._code.address(stub_name(PRODUCTS[number], letter))
        if not row.old[number]:
            # NumPy writes the old loop to where ours reads it before ours can be called.
            place = ctypes.addressof(row) + LoopRow.old.offset + 8 * number
            replace_loop(ufunc, letter, ours, place)
            return
        before = replace_loop(ufunc, letter, ours)
        if before in (ours, row.old[number]):
            return
        if (letter, number) in self._covered:  # it may call ours, which must not call it
            replace_loop(ufunc, letter, before)
        else:
            row.old[number] = before

    def uninstall(self) -> None:
        """Puts the former loops back; where another package has replaced ours since, ours call the former."""
        if not self.installed:
            return
        self.installed = False
        self.table.enabled = 0
        for number, product in enumerate(PRODUCTS):
            ufunc: Any = getattr(np, product.name, None)
            for letter, row in zip(LETTERS, self.table.rows, strict=True):
                ours = self._code.address(stub_name(product, letter))
                if ufunc is None or not row.old[number]:
                    continue
                before = replace_loop(ufunc, letter, row.old[number])
                if before != ours:  # somebody else's, which may call ours
                    replace_loop(ufunc, letter, before)
                    self._covered.add((letter, number))


def _linked(name: str, emit: Any, machine: Machine, exports: Any, imports: dict[str, int]) -> Linked:
    def compiled() -> bytes:
        return emit_object(emit(machine), name, machine)

    return Linked(cached_object(f"{name} {LAYOUT}", machine, compiled), exports, imports)


@once
def loops() -> Loops:
    """The loops of this process."""
    return Loops()
