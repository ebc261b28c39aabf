"""What a Python function reports of its call, so that machine code can repeat it.

The recording of the call in progress (`recipes/recording.py`) sees which machine code runs, and nothing that
NumPy does to arrays. So a function calls `repeatable` where it has done nothing else, or has reported it: new
arrays, constants, calls of NumPy. Without a recording in this thread that costs the look at one attribute.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.recorder import current


def repeatable() -> None:
    """Declare that the call in progress has done nothing to arrays that a recording has not seen."""
    recorder = current.recorder
    if recorder is not None:
        recorder.vouched = True


def restartable() -> None:
    """Declare that what the call in progress writes may be written again, so that any step may be a check."""
    recorder = current.recorder
    if recorder is not None:
        recorder.restartable = True


def not_repeatable(reason: str) -> None:
    """Declare that machine code cannot repeat the call in progress."""
    recorder = current.recorder
    if recorder is not None:
        recorder.refuse(reason)


def repeated_elsewhere(function: Any) -> None:
    """Declare that machine code of its own repeats the call in progress, if that is one of this function."""
    recorder = current.recorder
    if recorder is not None and recorder.function is function:
        recorder.elsewhere = True
        recorder.refuse("machine code of its own repeats it")


def keep(holder: Any) -> None:
    """Keep an object alive as long as machine code may repeat the call in progress."""
    recorder = current.recorder
    if recorder is not None:
        recorder.keep(holder)


def numpy_call(function: Any, *arguments: Any, quiet: bool = False, **named: Any) -> None:
    """Call a function of NumPy that only reads and writes arrays among its arguments; seen by a recording.

    Parameters
    ----------
    arguments, named : arrays, or objects that follow from the types, shapes and options of the call.
    quiet : whether it neither warns nor raises, whatever `numpy.errstate` says.
    """
    recorder = current.recorder
    if recorder is not None:
        recorder.numpy(function, (*arguments, *named.values()), tuple(named), quiet=quiet)
        if recorder.dry:
            return
    if quiet:
        with np.errstate(all="ignore"):
            function(*arguments, **named)
    else:
        function(*arguments, **named)


def constant(array: Array) -> Array:
    """An array whose contents follow from the types, shapes and options of the call in progress."""
    recorder = current.recorder
    if recorder is not None:
        recorder.constant(array, data_address(array), max(array.nbytes, 1))
    return array


def new_array(shape: tuple[int, ...], dtype: Any) -> Array:
    """`numpy.empty`, known to a recording."""
    array = np.empty(shape, dtype)
    recorder = current.recorder
    if recorder is not None:
        recorder.made(array)
    return array


def new_like(array: Array, dtype: Any = None) -> Array:
    """`numpy.empty_like` for a plain array, known to a recording."""
    if array.flags.c_contiguous:
        found = np.empty(array.shape, array.dtype if dtype is None else dtype)
    else:
        found = np.empty_like(array, dtype=dtype, subok=False)
    recorder = current.recorder
    if recorder is not None:
        recorder.made(found)
    return found


def element(array: Array) -> Array:
    """``array[()]``: an array without axes as a NumPy scalar, known to a recording; others as they are."""
    found: Array = array[()]
    recorder = current.recorder
    if recorder is not None and type(array) is np.ndarray and array.ndim == 0:
        recorder.scalar(found, array)
    return found
