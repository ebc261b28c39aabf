"""Cache of validated attention calls, keyed by shapes and strides."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.compiler.kernel import Kernel
from tilewright.ops.attention.kernel import Launch
from tilewright.ops.attention.prepared import PreparedAttention, log_sum_exp

#: Capacity of the cache; shapes of more calls than this rarely recur. A plan takes 1-2 kB.
_MOST_PLANS = 512


class Plan(NamedTuple):
    """A validated call without its array addresses, and the conditions that these must satisfy.

    Attributes
    ----------
    kernel, launch, items : the kernel and its arguments.
    items_address : address of the items.
    alignment : required alignment of the operands' addresses, in bytes.
    result, dtype : shape and type of a new result.
    state : shape of row_max and row_sum in one array.
    state_type : type of these.
    state_shape : of lse.
    """

    kernel: Kernel
    launch: Launch
    items: Array
    items_address: int
    alignment: int
    result: tuple[int, ...]
    dtype: np.dtype[Any]
    state: tuple[int, ...]
    state_type: np.dtype[Any]
    state_shape: tuple[int, ...]


_plans: dict[tuple[Any, ...], Plan] = {}


def plan_key(
    q: Any, k: Any, v: Any, others: tuple[Any, ...], options: tuple[Any, ...]
) -> tuple[Any, ...] | None:
    """Key of a plan; None if an operand is not a plain array.

    Parameters
    ----------
    others : `out`, mask, slopes and sinks, or None for each.
    options : the other arguments.
    """
    if not (type(q) is type(k) is type(v) is np.ndarray):
        return None
    places = [q.shape, q.strides, q.dtype, k.shape, k.strides, k.dtype, v.shape, v.strides, v.dtype]
    for array in others:
        if array is None:
            places.append(None)
        elif type(array) is np.ndarray:
            places += (array.shape, array.strides, array.dtype)
        else:
            return None
    return (*places, *options)


def keep_plan(
    key: tuple[Any, ...], operands: tuple[Array, ...], prepared: PreparedAttention, kernel: Kernel
) -> None:
    """Keeps a call whose operands were taken as they are."""
    call = prepared.call
    optional = (array for array in (call.mask, call.slopes, call.sinks) if array is not None)
    taken = (call.q, call.k, call.v, *optional)
    if prepared.given is not None and prepared.given is not prepared.target:
        return
    if [data_address(array) for array in operands] != [data_address(array) for array in taken]:
        return
    plan = Plan(
        *(kernel, call.launch(kernel), call.items, data_address(call.items)),
        max(array.itemsize for array in taken),
        prepared.target.shape,
        prepared.target.dtype,
        (2, *call.row_max.shape),
        call.row_max.dtype,
        prepared.state_shape,
    )
    if len(_plans) >= _MOST_PLANS:
        _plans.clear()
    with contextlib.suppress(TypeError):  # something that has no hash, such as a list as window
        _plans[key] = plan


def run_plan(
    key: tuple[Any, ...], operands: tuple[Array, ...], out: Array | None, *, return_lse: bool
) -> Array | tuple[Array, Array] | None:
    """Run a call by its cached plan, if one exists and the operands satisfy it; otherwise return None.

    Parameters
    ----------
    operands : q, k, v, then mask, slopes and sinks as far as passed.
    """
    try:
        plan = _plans.get(key)
    except TypeError:  # no hash
        return None
    if plan is None:
        return None
    places = [data_address(array) for array in operands]
    together = 0
    for place in places:
        together |= place
    if together & (plan.alignment - 1):
        return None
    if out is None:
        target = np.empty(plan.result, plan.dtype)
    else:
        shares = any(np.may_share_memory(out, array) for array in operands)
        if shares or not out.flags.behaved:
            return None
        target = out
    state = np.empty(plan.state, plan.state_type)
    at = data_address(state)
    addresses = [
        *places[:3],
        data_address(target),
        plan.items_address,
        at,
        at + (state.nbytes >> 1),
        *places[3:],
    ]
    plan.launch.start(plan.kernel, addresses)
    if not return_lse:
        return target
    return target, log_sum_exp(state[0], state[1]).reshape(plan.state_shape)
