"""Dependencies of LLVM features: those that calling conventions need, and those that imply others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilewright.errors import FeatureNeeded

#: What calls need of a CPU, by architecture: floating-point arguments travel in vector registers, pointers
#: have 64 bits, the thread pool exchanges words of 8 bytes. A sign says on or off.
#: System V ABI, AMD64 supplement, 3.2.3; AAPCS64 (IHI 0055) 6; ELFv2 ABI for Power, 2.2; RISC-V ELF psABI,
#: lp64d; LoongArch ELF psABI, lp64d; s390x ELF ABI, 1.2; MIPSpro N64 ABI; SPARC Compliance Definition 2.4.
CALLING: dict[str, tuple[str, ...]] = {
    "x86_64": ("+64bit", "+64bit-mode", "+sse", "+sse2", "+cx8", "-soft-float", "-32bit-mode", "-16bit-mode"),
    "aarch64": ("+fp-armv8", "+neon"),
    "powerpc64le": ("+64bit", "+64bit-support", "+hard-float", "+fpu"),
    "riscv64": ("+64bit", "+f", "+d", "+zicsr", "-32bit", "-e"),
    "loongarch64": ("+64bit", "+32s", "+f", "+d", "-32bit"),
    "s390x": ("-soft-float",),
    "mips64el": ("+gp64", "+fp64", "-soft-float", "-single-float", "-mips16"),
    "sparcv9": ("-soft-float",),
}

#: What a feature is built on directly: turned off, that takes it along (LLVM's *.td files).
BUILT_ON: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "sse3": ("sse2",),
        "ssse3": ("sse3",),
        "sse4.1": ("ssse3",),
        "sse4.2": ("sse4.1",),
        "avx": ("sse4.2",),
        "avx2": ("avx",),
        "f16c": ("avx",),
        "fma": ("avx",),
        "avxvnni": ("avx2",),
        "avx512f": ("avx2", "f16c", "fma"),
        "avx512bw": ("avx512f",),
        "avx512dq": ("avx512f",),
        "avx512vl": ("avx512f",),
        "avx512vnni": ("avx512f",),
        "avx512bf16": ("avx512bw",),
        "amx-bf16": ("amx-tile",),
        "amx-fp16": ("amx-tile",),
        "amx-int8": ("amx-tile",),
    },
    "aarch64": {
        "dotprod": ("neon",),
        "i8mm": ("neon",),
        "bf16": ("neon",),
        "fullfp16": ("fp-armv8",),
        "fp16fml": ("fullfp16",),
        "sve": ("fullfp16",),
        "sve2": ("sve",),
        "sme": ("bf16", "fullfp16"),
        "sme-f64f64": ("sme",),
    },
    "powerpc64le": {
        "vsx": ("altivec",),
        "power8-altivec": ("altivec",),
        "power8-vector": ("vsx", "power8-altivec"),
        "isa-v30-instructions": ("isa-v207-instructions",),
        "power9-altivec": ("isa-v30-instructions", "power8-altivec"),
        "power9-vector": ("power9-altivec", "power8-vector"),
        "mma": ("power8-vector", "power9-altivec", "paired-vector-memops"),
    },
    "riscv64": {
        "m": ("zmmul",),
        "zve32x": ("zvl32b",),
        "zve32f": ("zve32x",),
        "zve64x": ("zve32x", "zvl64b"),
        "zvl64b": ("zvl32b",),
        "zvl128b": ("zvl64b",),
        "zve64f": ("zve32f", "zve64x"),
        "zve64d": ("zve64f",),
        "v": ("zve64d", "zvl128b"),
    },
}


def check_calling(triple: str, arch: str, entries: Iterable[str]) -> None:
    """Refuses signed features without which functions cannot be called as the platform's compilers do.

    Raises
    ------
    FeatureNeeded

    Examples
    --------
    >>> check_calling("x86_64-linux-gnu", "x86_64", ["-avx512f"])
    """
    needed = {entry[1:]: entry for entry in CALLING.get(arch, ())}
    states = {entry[1:]: entry for entry in entries}  # of several mentions the last counts
    for name, entry in states.items():
        if name in needed and needed[name] != entry:
            raise FeatureNeeded(found=entry, triple=triple, needed=", ".join(needed.values()))


def expanded(arch: str, entries: Iterable[str]) -> Iterator[str]:
    """Signed features, each with what LLVM changes along with it.

    >>> list(expanded("x86_64", ["-amx-tile", "+fma"]))[:5]
    ['-amx-tile', '-amx-bf16', '-amx-fp16', '-amx-int8', '+sse2']
    """
    for entry in entries:
        if entry.startswith("-"):
            yield from (f"-{name}" for name in (entry[1:], *_built_on_it(arch, entry[1:])))
        else:
            yield from (f"+{name}" for name in (*_bases(arch, entry[1:]), entry[1:]))


def _built_on_it(arch: str, feature: str) -> tuple[str, ...]:
    """The features that LLVM disables along with one."""
    return tuple(name for name in BUILT_ON.get(arch, {}) if feature in _bases(arch, name))


def _bases(arch: str, feature: str) -> tuple[str, ...]:
    """The features that one implies, directly and indirectly, the lowest first."""
    below = BUILT_ON.get(arch, {}).get(feature, ())
    found = [name for one in below for name in (*_bases(arch, one), one)]
    return tuple(dict.fromkeys(found))
