"""Chains of linear layers declared: their cut, nest, rewrites, kernel names and C parameters."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.compiler.operation import LAYOUT_WORDS, Compilation, Op
from tilewright.ir.fuse import fuse_consumer, fuse_pack, fuse_unpack
from tilewright.macro.blocking import choose_blocking
from tilewright.ops.chain.call import LinearChainKernel
from tilewright.ops.chain.nest import build_chain
from tilewright.ops.chain.problem import LinearChain
from tilewright.spec.arguments import unchecked
from tilewright.spec.epilogue import THEN


def _stem(problem: LinearChain) -> str:
    steps = THEN.join("none" if op is None else op.value for op in problem.activations)
    sizes, bias = "x".join(map(str, problem.sizes)), "_bias" * problem.bias
    return f"chain_{problem.dtype}_{sizes}{bias}_with_{steps}_end"


def _meaning(state: Compilation, name: str) -> str:
    problem: LinearChain = state.problem
    if name == "m":
        return "rows of x and y"
    if name.startswith("rs_"):
        return f"from one of the rows of {name[3:]} to the next"
    operand = next(operand for operand in problem.operands if operand.name == name)
    shapes = {"x": f"x: m x {problem.sizes[0]}", "y": f"y: m x {problem.sizes[-1]}"}
    shape = shapes.get(name, f"{operand.rows} x {operand.columns}")
    return f"{shape} of {state.program.buffer(name).dtype}, {LAYOUT_WORDS[operand.layout]}"


def _of(
    sizes: Sequence[int], activations: Sequence[str] = (), dtype: str = "f32", bias: bool = True
) -> LinearChain:
    """Write the code for a chain of linear layers, fused into one kernel.

    Parameters
    ----------
    sizes : input size, then the output size of each layer, such as 1024,4096,1024.
    activations : one activation per layer, such as gelu,none.
    dtype : f32, f64, bf16 or f16.
    bias : each layer has a bias.
    """
    return LinearChain(sizes, [unchecked(word) for word in activations], unchecked(dtype), bias=bias)


def _strategy(state: Compilation) -> str:
    problem: LinearChain = state.problem
    layers = len(problem.layers)
    return f"{layers} layers on a block of rows, panels between them; steps on each tile in L1"


CHAIN = Op(
    problem=LinearChain,
    cut=lambda problem, machine: choose_blocking(machine, machine.isa.tile(problem.dtype)),
    nest=build_chain,
    stem=_stem,
    kernel=LinearChainKernel,
    formula=lambda _: "y = the linear layers of x, one after the other: each step(x * weight + bias).",
    meaning=_meaning,
    arguments=_of,
    form="tile",
    rewrites=(("fuse_unpack", fuse_unpack), ("fuse_pack", fuse_pack), ("fuse_consumer", fuse_consumer)),
    strategy=_strategy,
)
