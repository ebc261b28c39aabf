"""Machines without a catalogue row: "triple:cpu:+features", with the caches of a typical core.

A feature of Arm's may name a length of vectors, as RISC-V's do: "+sve256" is SVE at 256 bits, and its row;
"+sme512" is SME at a streaming length of 512. Without one, the length is that of the CPU where all parts of
its name have one length, and otherwise unknown.
"""

from __future__ import annotations

import re

from tilewright.errors import InvalidTarget, shown
from tilewright.machine.arch import GRANULE_BITS, find_arch, triple_arch
from tilewright.machine.cache import Cache
from tilewright.machine.feature_rules import check_calling
from tilewright.machine.isa_rows import ISAS, SVE, best_isa
from tilewright.machine.machine import Machine
from tilewright.records import dataclass

#: Lengths of vectors: SVE (the technical reference manuals of Arm; A64FX Microarchitecture Manual) and SME
#: (`machdep.cpu.sme_max_svl_b` of macOS).
_VECTOR_BITS = {
    "a64fx": 512,
    "neoverse-v1": 256,
    "neoverse-n2": 128,
    "neoverse-n3": 128,
    "neoverse-v2": 128,
    "neoverse-v3": 128,
}
_STREAMING_BITS = {"apple-m4": 512}

_LENGTH = re.compile(r"\+(sve|sme)([1-9]\d+)")
#: How long vectors are at most (DDI 0487, ZCR_ELx.LEN).
_LONGEST_BITS = 2048


@dataclass(frozen=True)
class TargetName:
    """The parts of "triple:cpu:+feature,-feature"; features is empty where none are given.

    Attributes
    ----------
    triple, cpu, features : as LLVM takes them.
    vector_bits, streaming_bits : the lengths given by features; 0 if none is.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int = 0
    streaming_bits: int = 0

    @classmethod
    def parse(cls, text: str) -> TargetName:
        """The parts of a target; `InvalidTarget` says what is missing.

        >>> TargetName.parse("aarch64-linux-gnu:neoverse-n2:+sve")
        TargetName(triple='aarch64-linux-gnu', cpu='neoverse-n2', features='+sve')
        """
        parts = text.split(":")
        if not 2 <= len(parts) <= 3:
            raise InvalidTarget(found=shown(text), reason=f"it has {len(parts)} parts between colons")
        triple, cpu, features = (part.strip() for part in (*parts, "")[:3])
        for what, part in (("triple", triple), ("CPU", cpu)):
            if not re.fullmatch(r"[\w.+-]+", part):
                raise InvalidTarget(found=shown(text), reason=f"{part!r} is not the name of a {what}")
        entries = [entry.strip() for entry in features.split(",") if entry.strip()]
        for entry in entries:
            if not re.fullmatch(r"[+-][\w.+-]+", entry):
                raise InvalidTarget(found=shown(text), reason=f"{entry!r} is not a feature with a sign")
        check_calling(triple, triple_arch(triple), entries)
        lengths = {"sve": 0, "sme": 0}
        for number, entry in enumerate(entries):
            length = _LENGTH.fullmatch(entry)
            if length is not None:
                feature, bits = length[1], int(length[2])
                if bits % GRANULE_BITS or bits > _LONGEST_BITS:
                    reason = f"{bits} is not a length of vectors: a multiple of {GRANULE_BITS}"
                    raise InvalidTarget(found=shown(text), reason=f"{reason} up to {_LONGEST_BITS}")
                entries[number], lengths[feature] = f"+{feature}", bits
        return cls(triple, cpu, ",".join(entries), lengths["sve"], lengths["sme"])

    @property
    def text(self) -> str:
        """The name as text.

        >>> TargetName.parse("aarch64-linux-gnu:neoverse-v1:+sve256").text
        'aarch64-linux-gnu:neoverse-v1:+sve256'
        """
        features = self.features
        for name, bits in (("sve", self.vector_bits), ("sme", self.streaming_bits)):
            if bits:
                features = re.sub(rf"\+{name}(?![\w-])", f"+{name}{bits}", features)
        return ":".join(part for part in (self.triple, self.cpu, features) if part)

    @property
    def arch(self) -> str:
        """The architecture, in the spelling of `Isa.arch`."""
        return triple_arch(self.triple)

    @property
    def questions(self) -> tuple[str, ...]:
        """The features that rows of this architecture and their instructions require."""
        rows = [isa for isa in ISAS if isa.arch == self.arch]
        named = {feature for isa in rows for feature in isa.features}
        return tuple(sorted(named | {tile.feature for isa in rows for tile in isa.tiles if tile.feature}))

    def machine(self, has: frozenset[str]) -> Machine:
        """The machine of a CPU that has these features: the best row, one core, caches by assumption.

        >>> TargetName.parse("riscv64-linux-gnu:sifive-u74").machine(frozenset()).isa.name
        'generic128'
        """
        l1, l2, l3 = (Cache(kib << 10, ways, line) for kib, ways, line in find_arch(self.arch).caches_kib)
        given = [entry for entry in self.features.split(",") if entry and entry[1:] not in has]
        vector_bits = self.vector_bits or _VECTOR_BITS.get(self.cpu, 0)
        asked = self.vector_bits and "sve" in has
        return Machine(
            name=self.text,
            isa=SVE if asked else best_isa(self.arch, has, vector_bits),
            triple=self.triple,
            cpu=self.cpu,
            features=",".join([*(f"+{name}" for name in sorted(has)), *given]),
            l1=l1,
            l2=l2,
            l3=l3,
            cores=1,
            vector_bits=vector_bits,
            streaming_bits=self.streaming_bits or _STREAMING_BITS.get(self.cpu, 0),
        )
