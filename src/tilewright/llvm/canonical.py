"""LLVM's own passes around the search for loops: what comes before it, and what finishes a module."""

from __future__ import annotations

import threading
from typing import Any

import llvmlite.binding as llvm

from tilewright.llvm.generation import without_lock
from tilewright.preparing import preparing

#: Local variables become values, arithmetic and branches take their usual form, loops get a block in front
#: of them, one back edge and blocks of their own behind them, and test their condition at the end; `lcssa`
#: gives what leaves a loop a phi. More rounds of these find no more products (decision 034).
_SHAPING = ("sroa", "instruction_combine", "simplify_cfg", "loop_simplify", "loop_rotate", "lcssa")

#: That of `clang -O2`: what -O3 adds are more copies of code.
_INLINING_LEVEL = 2


def shape_loops(module: Any, target_machine: Any) -> None:
    """Gives every loop of a module one of few shapes; nothing is inlined, copied or vectorised.

    Before: local variables in memory, tests at the top of loops. After: values in phis, tests at the end.
    """
    with preparing:
        manager = llvm.create_new_module_pass_manager()
        for name in _SHAPING:
            getattr(manager, f"add_{name}_pass")()
        manager.run(module, _builder(target_machine, _INLINING_LEVEL, vectors=False))


def inline_calls(module: Any, target_machine: Any) -> None:
    """LLVM's -O2, calls inlined, but without vectors and copies of loop bodies: loops stay loops."""
    with preparing:
        builder = _builder(target_machine, _INLINING_LEVEL, vectors=False)
        builder.getModulePassManager().run(module, builder)
    shape_loops(module, target_machine)


def optimise_module(module: Any, target_machine: Any) -> None:
    """LLVM's -O3."""
    with preparing:
        builder = _builder(target_machine, 3, vectors=True)
        builder.getModulePassManager().run(module, builder)


def optimise_beside(module: Any, target_machine: Any) -> threading.Thread:
    """LLVM's -O3 on a thread, which is started; its caller uses neither before it has joined that.

    The module has a context of its own, and the thread calls LLVM without llvmlite's lock, as threads of
    `llvm/generation.py` do. A process that ends before the thread must end without LLVM's own finalisation.
    """
    with preparing:
        builder = _builder(target_machine, 3, vectors=True)
        manager = builder.getModulePassManager()
    run = without_lock("LLVMPY_RunNewModulePassManager")

    def work(_alive: Any = target_machine) -> None:
        run(manager, module, builder)

    thread = threading.Thread(target=work, name="tilewright-o3", daemon=True)
    thread.start()
    return thread


def drop_unused(module: Any, target_machine: Any) -> None:
    """Removes functions that nothing outside the module sees and nothing in it uses."""
    with preparing:
        manager = llvm.create_new_module_pass_manager()
        manager.add_global_dead_code_eliminate_pass()
        manager.run(module, _builder(target_machine, 0, vectors=False))


def _builder(target_machine: Any, speed_level: int, *, vectors: bool) -> Any:
    options = llvm.create_pipeline_tuning_options(speed_level=speed_level)
    options.loop_vectorization = vectors
    options.slp_vectorization = vectors
    options.loop_interleaving = vectors
    options.loop_unrolling = vectors
    return llvm.create_pass_builder(target_machine, options)
