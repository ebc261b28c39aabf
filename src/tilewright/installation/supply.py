"""The Python side of the loops: makes what machine code asks for, in the middle of a product of NumPy's.

Machine code cannot hand on an exception from there. What a signal handler raised is raised again as soon as
the product is finished; a type for which no kernel can be had stays with NumPy.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from typing import Any

import numpy as np

from tilewright.calls.batch import make_loop
from tilewright.calls.kernels import kernel_for
from tilewright.compiler.scratch import scratch_pool
from tilewright.errors import TilewrightError
from tilewright.installation.requests import SupplyRequest
from tilewright.installation.rows import LETTERS, LoopRow, LoopTable
from tilewright.llvm.quick import quick_code
from tilewright.ops.batch_reduce.kernel import BatchReduceKernel
from tilewright.ops.gemm.exact_sizes import SECOND_SLOT, shape_of, slot_number
from tilewright.ops.gemm.kernel import matmul_kernel
from tilewright.ops.gemm.operands import product_types
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.product_code import row_of
from tilewright.ops.gemm.small_products import MOST_KERNELS, ExactSizeKey
from tilewright.preparing import preparing
from tilewright.spec.problem import Layout
from tilewright.threads.pool import thread_pool
from tilewright.threads.scratch import ScratchPool

logger = logging.getLogger("tilewright.install")

#: What compilers, imports and the system raise; anything else comes from a signal handler.
_FAILURES = (TilewrightError, RuntimeError, MemoryError, ImportError, OSError)


class Supplier:
    """Answers the requests of loops.

    Parameters
    ----------
    table : that of the loops.
    pool : their scratch.

    Attributes
    ----------
    exact_kernels : the kernels of exact sizes that loops find.
    """

    def __init__(self, table: LoopTable, pool: ScratchPool) -> None:
        self._table, self._pool = table, pool
        self._begin = ctypes.addressof(table) + LoopTable.rows.offset
        self.kept: list[object] = []  # what machine code points to
        self._busy = threading.local()
        self.exact_kernels: dict[ExactSizeKey, BatchReduceKernel] = {}

    def answer(self, request: int, address: int) -> None:
        """Answers one request, for the row at an address. Called by machine code, in any thread."""
        if getattr(self._busy, "with_one", False):  # a product inside of the work for another one
            return
        self._busy.with_one = True
        row = self._table.rows[(address - self._begin) // ctypes.sizeof(LoopRow)]
        letter = LETTERS[(address - self._begin) // ctypes.sizeof(LoopRow)]
        try:
            self._made(SupplyRequest(request), row, letter)
        except _FAILURES as error:
            if isinstance(error, TimeoutError):
                self._raise_again(error)
            elif request == SupplyRequest.KERNEL:
                row.refused = 1
                logger.warning("NumPy keeps products of %s: %s", np.dtype(letter), error)
        except BaseException as error:  # raised by a signal handler
            self._raise_again(error)
        finally:
            self._busy.with_one = False

    def _made(self, request: SupplyRequest, row: LoopRow, letter: str) -> None:
        match request:
            case SupplyRequest.KERNEL:
                self.connect(row, letter)
            case SupplyRequest.SCRATCH:
                self._pool.supply()
            case SupplyRequest.WORKERS:
                pool = thread_pool()
                pool.supply(pool.size)
            case SupplyRequest.EXACT_SIZES:
                self.publish()

    def connect(self, row: LoopRow, letter: str) -> None:
        """Compiles the kernel of a type and puts it into the row."""
        if row.code:
            return
        dtype = np.dtype(letter)
        types = product_types(dtype, dtype, dtype)
        with preparing:
            layouts: dict[str, Any] = dict.fromkeys("abc", Layout.STRIDED)
            kernel_for(Gemm(dtype=types.a, b_dtype=types.b, out_dtype=types.c, **layouts))
            kernel = matmul_kernel(types)
            if kernel.pool is not scratch_pool():
                row.refused = 1
                return
            quick_code.finish()  # nothing here counts calls of quick code
            make_loop(types.acc)
            make_loop(None)  # for batches of kernels of exact sizes
            made = row_of(kernel, (dtype,) * 3)
            self.kept += [kernel, dtype]
            for name in ("acc", "number", "exact", "ahead", "turns", "scratch_step", "scratch_parts"):
                setattr(row, name, getattr(made, name))
            row.code = made.code  # last: who finds it calls the kernel

    def publish(self) -> None:
        """Compiles the kernel of exact sizes that is wanted, and puts it where loops look for it."""
        key, self._table.wanted = self._table.wanted, 0
        with preparing:
            slot = slot_number(key)
            if self._table.exact[slot].key not in (0, key):
                slot ^= SECOND_SLOT
            entry = self._table.exact[slot]
            if not key or entry.key or len(self.exact_kernels) == MOST_KERNELS:
                return
            kernel = BatchReduceKernel.compiled(shape_of(key).problem())
            self.exact_kernels[shape_of(key)] = kernel
            entry.code = kernel.address
            entry.key = key  # last: who finds it calls the kernel

    def _raise_again(self, error: BaseException) -> None:
        """Leaves an exception to machine code, which has Python raise it when the product is finished.

        Handlers run in the main thread, where pending calls run too.
        """
        if threading.current_thread() is not threading.main_thread() or self._table.raised:
            logger.warning("raised in the middle of a product, and lost: %r", error)
            return
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(error))
        self._table.raised = id(error)
