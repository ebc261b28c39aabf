"""A Python function as a builtin that can get machine code later.

The builtin starts out with CPython's own ``PyObject_Vectorcall`` as its code and the Python function
as its ``self``, which makes it that function. `Builtin.install` puts another address into the method
definition, where CPython looks at every call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

#: cpython/methodobject.h, METH_FASTCALL | METH_KEYWORDS: (self, args, nargs, kwnames).
METH_FASTCALL_KEYWORDS = 0x80 | 0x02


class MethodDefinition(ctypes.Structure):
    """PyMethodDef; must outlive the builtins made of it."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def address_of(function: Any) -> int:
    """The address of a C function."""
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


def define_method(name: str, code: int, doc: str) -> MethodDefinition:
    """The definition of a builtin over machine code ``PyObject *f(self, args, nargs, kwnames)``."""
    return MethodDefinition(name.encode(), code, METH_FASTCALL_KEYWORDS, doc.encode())


def make_builtin(definition: MethodDefinition, owner: Any, module: str) -> Callable[..., Any]:
    """A builtin whose `self` is `owner`; it pickles as that attribute of the owner that has its name."""
    make = ctypes.pythonapi.PyCMethod_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
    made: Callable[..., Any] = make(ctypes.addressof(definition), owner, module, None)
    return made


def make_method(definition: MethodDefinition, owner: type) -> Any:
    """A method descriptor for a class: its machine code gets the object as `self`."""
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.py_object, ctypes.c_void_p)
    return make(owner, ctypes.addressof(definition))


class Builtin:
    """A builtin function over a Python function, ready to get machine code.

    Attributes
    ----------
    function : the callable; pickles, has a signature and a docstring.
    owners : of the machine code that it has had; see `install`.
    """

    def __init__(self, fallback: Callable[..., Any], name: str, module: str, doc: str) -> None:
        self.fallback = fallback
        self.owners: list[object] = []
        self._definition = define_method(name, address_of(ctypes.pythonapi.PyObject_Vectorcall), doc)
        self.function = make_builtin(self._definition, fallback, module)
        # A builtin with a self pickles as getattr(self, name).
        setattr(fallback, name, self.function)

    def install(self, code: int, owner: object) -> None:
        """Replaces the code; calls in progress end in the old one.

        Parameters
        ----------
        owner : what owns the code and everything that the code points to; it lives as long as the builtin.
        """
        self.owners.append(owner)
        self._definition.code = code

    def replace(self, former: int | None, code: int, owner: object) -> None:
        """Replaces the code if it is still the former one."""
        if self._definition.code == former:
            self.install(code, owner)
