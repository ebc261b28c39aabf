"""Cache of validated calls of attention's gradients, keyed by shapes and strides."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.compiler.kernel import Kernel
from tilewright.ops.attention.backward_cut import BACKWARD_FIELDS
from tilewright.ops.attention.backward_kernel import BackwardCall
from tilewright.ops.attention.call import call_key
from tilewright.ops.attention.kernel import Launch
from tilewright.ops.attention.operands import Keywords

#: Plans that are kept; shapes of more calls than this hardly recur.
_MOST_PLANS = 512


class BackwardPlan(NamedTuple):
    """A validated call without its array addresses, and the conditions that these must satisfy.

    Attributes
    ----------
    kernel, launch, items : the kernel and its arguments.
    alignment : required alignment of the operands' addresses, in bytes.
    shapes, dtype : those of newly allocated gradients.
    state : elements of delta.
    """

    kernel: Kernel
    launch: Launch
    items: Array
    alignment: int
    shapes: tuple[tuple[int, ...], ...]
    dtype: np.dtype[Any]
    state: int


class Operands(NamedTuple):
    """The caller's operands: q, k, v, the result, its gradient, lse, and optionally mask and slopes."""

    q: Any
    k: Any
    v: Any
    out: Any
    dout: Any
    lse: Any
    mask: Any
    slopes: Any

    @property
    def given(self) -> list[Any]:
        """The operands that were passed, in the order of the kernel's arguments."""
        return [array for array in self if array is not None]


_plans: dict[tuple[Any, ...], BackwardPlan] = {}


def backward_key(operands: Operands, keywords: Keywords) -> tuple[Any, ...] | None:
    """Key of a plan; None for calls whose operands plans do not support."""
    key = call_key(operands.q, operands.k, operands.v, None, keywords, "backward")
    if key is None:
        return None
    places: list[Any] = []
    for array in operands[3:6]:
        if type(array) is not np.ndarray:
            return None
        places += (array.shape, array.strides, array.dtype)
    return (*key, *places)


def keep_plan(key: tuple[Any, ...], operands: Operands, call: BackwardCall, kernel: Kernel) -> None:
    """Keeps a call whose operands were taken as they are, and whose gradients have their shapes."""
    taken = Operands(call.q, call.k, call.v, call.out, call.dout, call.lse, call.mask, call.slopes)
    if [data_address(array) for array in operands.given] != [data_address(array) for array in taken.given]:
        return
    if (call.items[:, BACKWARD_FIELDS.index("keys")] < call.k.shape[2]).any():
        return  # gradients of keys that a mask leaves out stay as they are allocated
    if any(gradient.shape != array.shape for gradient, array in zip(call[5:8], taken[:3], strict=True)):
        return
    shapes = tuple(array.shape for array in operands[:3])
    alignment = max(array.itemsize for array in taken.given)
    plan = BackwardPlan(
        *(kernel, call.launch(kernel), call.items, alignment, shapes, call.q.dtype, call.delta.size)
    )
    if len(_plans) >= _MOST_PLANS:
        _plans.clear()
    with contextlib.suppress(TypeError):  # something that has no hash, such as a list as window
        _plans[key] = plan


def run_plan(key: tuple[Any, ...], operands: Operands) -> tuple[Array, Array, Array] | None:
    """The call, where a plan is known and these operands allow it; None where it has to be checked."""
    try:
        plan = _plans.get(key)
    except TypeError:  # no hash
        return None
    if plan is None:
        return None
    places = [data_address(array) for array in operands.given]
    together = 0
    for place in places:
        together |= place
    if together & (plan.alignment - 1):
        return None
    dq, dk, dv = (np.empty(shape, plan.dtype) for shape in plan.shapes)
    delta = np.empty(plan.state, np.float32)
    written = (data_address(array) for array in (dq, dk, dv, plan.items))
    addresses = [*places[:5], *written, places[5], data_address(delta), *places[6:]]
    plan.launch.start(plan.kernel, addresses)
    return dq, dk, dv
