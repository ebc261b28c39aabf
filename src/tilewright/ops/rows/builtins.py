"""Public functions of rows and elements as builtins, whose repeated calls run in machine code.

A function prepares a request; it is executed here and recorded for machine code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, cast

from tilewright.calls.afterwards import afterwards
from tilewright.calls.fastcall import native_entry_possible
from tilewright.llvm.builtin import Builtin
from tilewright.ops.rows.native_entry import NativeFunctions
from tilewright.preparing import Section
from tilewright.threads.pool import limited

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.ops.rows.kernel import Prepared
    from tilewright.ops.rows.stats import PreparedStats

P = ParamSpec("P")


class Request(NamedTuple):
    """A prepared call of a function.

    Attributes
    ----------
    prepare : validates the arguments and returns the work to do.
    threads : maximum number of threads of the call.
    """

    prepare: Callable[[], Prepared | PreparedStats]
    threads: int | None


_remembering = Section()
_native: list[NativeFunctions] = []  # the one entry of this process, once made


def served(ask: Callable[P, Request]) -> Callable[P, NDArray[Any]]:
    """The builtin that executes the requests a function prepares.

    The first call of a kind runs in Python, later ones in machine code. It has the function's name, its
    documentation and its signature, and pickles by its name.
    """
    signature = inspect.signature(ask).replace(return_annotation=inspect.Signature.empty)
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    name = ask.__name__

    @wraps(ask)
    def carried_out(*arguments: P.args, **named: P.kwargs) -> Any:

        request = ask(*arguments, **named)
        if request.threads is not None:
            with limited(request.threads):
                return request.prepare().run()
        prepared = request.prepare()
        result: Any = prepared.run()
        if prepared.repeatable is not None:
            with afterwards(name):
                _remember(builtin, arguments, named, cast("Prepared", prepared))
        return result

    carried_out.__qualname__ = f"{name}.__self__"  # what the builtin under this name has as its self
    text = f"{name}{signature.replace(parameters=plain)}\n--\n\n{inspect.cleandoc(ask.__doc__ or '')}\n"
    builtin = Builtin(carried_out, name, ask.__module__, text)
    return builtin.function


def _remember(builtin: Builtin, arguments: tuple[Any, ...], named: dict[str, Any], done: Prepared) -> None:
    """Lets machine code serve calls like this one, where the interpreter has such an entry."""
    with _remembering as first:
        if not first:
            return
        if not _native:
            if not native_entry_possible():
                return
            _native.append(NativeFunctions())
        _native[0].add(builtin, arguments, named, done)
