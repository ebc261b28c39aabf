"""Functions compiled by Numba: their LLVM IR goes through the search of `tilewright opt` on its way to code.

Numba's extension point for compilers gives a function a code library of its own; what that does differently
is to look for products before Numba optimises the module. Nothing of Numba's is replaced for other functions.
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

#: The attribute of a recompiled function that holds what was said of its loops.
REMARKS = "__tilewright_remarks__"
#: What Numba calls the data, and the shape, of an array argument in LLVM IR; and other arguments.
_DATA = re.compile(r"%arg\.(\w+?)\.4\b")
_SHAPE = re.compile(r"%arg\.(\w+?)\.5\.(\d+)")
_VALUE = re.compile(r"%arg\.(\w+)")
#: The subscripts of one operand in the text of a product.
_SUBSCRIPTS = re.compile(r"\[([a-z0-9,]*)\]")


class NumbaNest(NamedTuple):
    """What became of one loop nest of a function that Numba compiled: see `NestReport`."""

    line: int
    subscripts: str
    text: str


def is_numba_function(function: object) -> bool:
    """Whether something is what `numba.njit` returns, without an import of Numba."""
    registry = sys.modules.get("numba.core.registry")
    return registry is not None and isinstance(function, registry.CPUDispatcher)


def recompiled(function: Any) -> Any:
    """The same function, of whose code products are kernels.

    It has the options of the given one, but for its cache on disk, which would hold code of both kinds. The
    signatures that were declared are compiled at once, others when they are called.
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
    """What became of the nests of a recompiled function, in all the signatures that it has code for."""
    first = function.py_func.__code__.co_firstlineno
    found = dict.fromkeys(_nest(remark, first) for remark in getattr(function, REMARKS))
    return sorted(found, key=lambda nest: nest.line)


def _nest(remark: Remark, first: int) -> NumbaNest:
    text = _SHAPE.sub(r"\1.shape[\2]", _DATA.sub(r"\1", remark.text))
    text = _VALUE.sub(r"\1", text)
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
    """A class that Numba compiles one function with; it appends what became of loops."""
    with importing:
        codegen: Any = import_module("numba.core.codegen")
        compiler: Any = import_module("numba.core.compiler")

    class ProductLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
        """The code of one function, of which products are kernels."""

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
        """Numba's own passes, with a library that looks for products."""

        def define_pipelines(self) -> list[Any]:
            state = self.state
            state.library = ProductLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            return [compiler.DefaultPassBuilder.define_nopython_pipeline(state)]

    return ProductCompiler
