"""Squares of words, transposed in registers by one function of a module."""

from __future__ import annotations

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Type, Value, vector_of
from tilewright.micro.packing.transpose import transpose

#: Bytes of one 64-bit offset.
OFFSET_BYTES = 8

#: The widest integer that vectors of every instruction set have as a lane.
WORD_BITS = 64


#: to, to_step, from, lanes: see `square_function`.
SQUARE_ARGUMENTS = [("to", POINTER), ("to_step", INT64), ("from", POINTER), ("lanes", POINTER)]


def square_function(module: Module, bits: int, width: int) -> Callee:
    """square(to, to_step, from, lanes): `width` depths of `width` lanes, transposed in registers.

    Elements are words of some bits. Lane l starts lanes[l] bytes after `from`; depth p is stored at `to` + p
    · to_step bytes. One function serves all transpositions of squares: its shuffles are the longest
    straight-line code of a module.
    """
    name = f"square_{bits}_{width}"
    known = module.find(name)
    if known is not None:
        return known
    f = module.define(name, VOID, SQUARE_ARGUMENTS)
    for p, column in enumerate(transposed_square(f, bits, width)):
        f.store(column, f.at(f.arguments["to"], f.mul(f.arguments["to_step"], p)), 1)
    f.ret()
    return f.callee


def transposed_square(f: Function, bits: int, width: int) -> list[Value]:
    """The depths of a square of words, read lane by lane."""
    words = max(1, bits // WORD_BITS)
    lane_bits = bits // words
    kind = vector_of(Type(f"i{lane_bits}", f"i{lane_bits}"), width * words)
    rows = []
    for lane in range(width):
        offset = f.load(INT64, f.at(f.arguments["lanes"], lane * OFFSET_BYTES), OFFSET_BYTES)
        rows.append(f.load(kind, f.at(f.arguments["from"], offset), 1))
    return transpose(f, rows, words)
