"""Machine code that looks up a prepared call: the key words of a call, and its recipe."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.calls.fastcall import ARRAY_SHAPE, ARRAY_STRIDES, FastFunction
from tilewright.calls.recipes import HASH, MIX_BITS, PROBES, SLOT_BITS
from tilewright.llvm.values import INT64, POINTER, Value, int64, null

#: Offsets of the number of key words, and of the words, in a recipe.
WORDS, KEY = 0, 8


class RecipeEntry(FastFunction):
    """A builtin that executes prepared recipes.

    Key words are written to the stack; the state holds the next address and the hash of the words so far, as
    in `recipes.slot_of`.
    """

    def put(self, state: Sequence[Value], words: Sequence[Value]) -> list[Value]:
        """Append words to the key."""
        f = self.f
        at, mixed = state
        for word in words:
            f.store(word, at, 8)
            product = f.mul(f.xor(mixed, word), int64(HASH))
            mixed = f.xor(product, f.udiv(product, int64(1 << MIX_BITS)))
            at = f.at(at, 8)
        return [at, mixed]

    def put_axes(self, array: Value, axes: Value, state: Sequence[Value]) -> list[Value]:
        """Append the shape and strides of an array to the key."""
        f = self.f
        with f.carried_loop(int64(0), axes, int64(1), state, "axis") as (axis, now, advance):
            at = f.mul(axis, 8)
            bases = (self.field(array, ARRAY_SHAPE), self.field(array, ARRAY_STRIDES))
            advance(self.put(now, [f.load(INT64, f.at(base, at), 8) for base in bases]))
        return advance.results

    def find(self, table: Value, words: Value, state: Sequence[Value]) -> Value:
        """The recipe of the key; if there is none, the call falls back to Python."""
        f = self.f
        end, mixed = state
        count = f.ashr(f.sub(f.ptrtoint(end), f.ptrtoint(words)), int64(3))
        slot = f.and_(f.ashr(mixed, int64(64 - SLOT_BITS)), int64((1 << SLOT_BITS) - 1))
        at = f.alloca(POINTER, 1, 8)
        first = f.at(table, f.mul(slot, 8))
        last = f.at(first, 8 * PROBES)
        f.store(first, at, 8)
        look, known, another, found = (f.new_block(name) for name in ("look", "known", "another", "found"))
        f.jump(look)
        f.place(look)
        recipe = f.load(POINTER, f.load(POINTER, at, 8), 8)
        f.jump_if(f.icmp("==", recipe, null()), self.fallback, known)
        f.place(known)
        differ = f.xor(count, self.field(recipe, WORDS, INT64))
        with f.carried_loop(int64(0), count, int64(1), [differ], "word") as (number, (bits,), advance):
            pair = [f.load(INT64, f.at(base, f.mul(number, 8)), 8) for base in (words, f.at(recipe, KEY))]
            advance([f.or_(bits, f.xor(*pair))])
        f.jump_if(f.icmp("==", advance.results[0], 0), found, another)
        f.place(another)
        following = f.at(f.load(POINTER, at, 8), 8)
        f.store(following, at, 8)
        f.jump_if(f.icmp("==", following, last), self.fallback, look)
        f.place(found)
        return f.load(POINTER, f.load(POINTER, at, 8), 8)
