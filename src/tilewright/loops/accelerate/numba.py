"""Support for Numba: products are replaced in the LLVM IR of compiled functions.

Numba's compiler extension point gives a function its own code library, which replaces products before Numba
optimises the module. Other Numba functions are unaffected.
"""

from __future__ import annotations

import re
import string
import sys
from importlib import import_module
from typing import Any, NamedTuple

from tilewright.loops.opt.records import ProductOptions, Remark
from tilewright.loops.opt.rewrite import rewrite
from tilewright.machine.host import host_machine
from tilewright.preparing import importing, preparing

#: The attribute of a recompiled function that holds its remarks.
REMARKS = "__tilewright_remarks__"
#: The subscripts of an operand in a remark.
_SUBSCRIPTS = re.compile(r"\[([a-z0-9,]*)\]")


class NumbaNest(NamedTuple):
    """The outcome for one loop nest of a Numba function: see `NestReport`."""

    line: int
    subscripts: str
    text: str


def is_numba_function(function: object) -> bool:
    """Whether an object was returned by `numba.njit`; does not import Numba."""
    registry = sys.modules.get("numba.core.registry")
    return registry is not None and isinstance(function, registry.CPUDispatcher)


def recompiled(function: Any) -> Any:
    """The same function with products replaced by kernels.

    It keeps the options of the given one, except the disk cache, which would mix both kinds of code. Declared
    signatures are compiled immediately, others when called.
    """
    remarks: list[Remark] = []
    made = type(function)(
        function.py_func,
        locals=function.locals,
        targetoptions=dict(function.targetoptions),
        pipeline_class=_compiler(remarks),
    )
    setattr(made, REMARKS, remarks)
    if not function._can_compile:  # noqa: SLF001 (False where signatures were declared)
        for signature in function.nopython_signatures:
            made.compile(signature)
        made.disable_compile()
    return made


def nests_of(function: Any) -> list[NumbaNest]:
    """The outcome for each nest of a recompiled function, over all compiled signatures."""
    first = function.py_func.__code__.co_firstlineno
    found = dict.fromkeys(_nest(remark, first) for remark in getattr(function, REMARKS))
    return sorted(found, key=lambda nest: nest.line)


def _nest(remark: Remark, first: int) -> NumbaNest:
    text = remark.text
    line = remark.where.line or first
    if not remark.replaced:
        return NumbaNest(line, "", text)
    operands = _SUBSCRIPTS.findall(text.partition(", ")[0])
    c, a, b = (operand.split(",") for operand in (operands[0], *operands[-2:]))
    names = dict.fromkeys([*c, *a, *b])
    free = iter(letter for letter in string.ascii_letters if letter not in names)
    letters = {name: name if len(name) == 1 else next(free) for name in names}
    parts = ("".join(letters[name] for name in part) for part in (a, b, c))
    return NumbaNest(line, "{},{}->{}".format(*parts), text)


def _compiler(remarks: list[Remark]) -> Any:
    """A Numba compiler class for one function; it appends to `remarks`."""
    with importing:
        codegen: Any = import_module("numba.core.codegen")
        compiler: Any = import_module("numba.core.compiler")

    class ProductLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
        """Code library of one function, with products replaced by kernels."""

        _final_module: Any

        def _optimize_final_module(self) -> None:
            module, target = self._final_module, self._codegen._tm  # noqa: SLF001 (Numba has no other way)
            with preparing:
                found = rewrite(module, target, ProductOptions(target=host_machine()))
                remarks.extend(found.remarks)
                if found.module is not None:
                    found.module.name = module.name
                    self._final_module = found.module
                super()._optimize_final_module()
                if found.module is not None:
                    found.splicer.link_kernels(self._final_module)

    class ProductCompiler(compiler.CompilerBase):  # type: ignore[misc]
        """Numba's standard pipeline with a `ProductLibrary`."""

        def define_pipelines(self) -> list[Any]:
            state = self.state
            state.library = ProductLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            return [compiler.DefaultPassBuilder.define_nopython_pipeline(state)]

    return ProductCompiler
