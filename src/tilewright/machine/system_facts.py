"""CPU facts from the operating system that LLVM does not query: features and vector lengths."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping

from tilewright.machine.feature_bits import DETECTIONS, AuxiliaryWord

#: Linux, include/uapi/linux/prctl.h; Documentation/arch/arm64/sve.rst and sme.rst: the length in bytes is in
#: the lower bits of the answer, which is negative where there are no such vectors.
_SVE_GET_VL, _SME_GET_VL, _VL_LEN_MASK = 51, 64, 0xFFFF

#: macOS: `sysctl hw.optional.arm`, "Determining Instruction Set Characteristics" of Apple's documentation.
_SYSCTL_FEATURES: Mapping[str, str] = {
    "fullfp16": "hw.optional.arm.FEAT_FP16",
    "fp16fml": "hw.optional.arm.FEAT_FHM",
    "dotprod": "hw.optional.arm.FEAT_DotProd",
    "bf16": "hw.optional.arm.FEAT_BF16",
    "i8mm": "hw.optional.arm.FEAT_I8MM",
    "sme": "hw.optional.arm.FEAT_SME",
    "sme2": "hw.optional.arm.FEAT_SME2",
    "sme-f64f64": "hw.optional.arm.SME_F64F64",
}
_SYSCTL_STREAMING_BYTES = "hw.optional.arm.sme_max_svl_b"


def linux_features(arch: str, auxiliary: Callable[[int], int]) -> dict[str, bool]:
    """Features that show in the auxiliary vector: LLVM 22 reads few of Arm's, and none of POWER's.

    Parameters
    ----------
    arch : as `Isa.arch`.
    auxiliary : getauxval(3).

    Examples
    --------
    >>> linux_features("aarch64", {16: 1 << 20, 26: 0}.__getitem__)["dotprod"]
    True
    """
    rows = [row for detection in DETECTIONS if detection.arch == arch for row in detection.rows]
    return {
        row.feature: auxiliary(row.word.entry) & row.mask == row.mask
        for row in rows
        if isinstance(row.word, AuxiliaryWord)
    }


def macos_features(sysctl: Callable[[str], int | None]) -> dict[str, bool]:
    """Features of an Arm CPU under macOS; the CPU lacks features whose names the system does not know."""
    return {feature: bool(sysctl(name)) for feature, name in _SYSCTL_FEATURES.items()}


def vector_lengths(sysctl: Callable[[str], int | None]) -> tuple[int, int]:
    """Bits of this thread's scalable and streaming vectors; 0 where it has none.

    Threads inherit the lengths of the one that starts them; a program changes them by prctl, before it calls
    what was compiled for them.
    """
    if sys.platform == "darwin":
        return 0, 8 * (sysctl(_SYSCTL_STREAMING_BYTES) or 0)
    if sys.platform != "linux":
        return 0, 0
    prctl = ctypes.CDLL(None).prctl
    found = [int(prctl(option, 0, 0, 0, 0)) for option in (_SVE_GET_VL, _SME_GET_VL)]
    first, second = (8 * (answer & _VL_LEN_MASK) if answer > 0 else 0 for answer in found)
    return first, second


def auxiliary_value(entry: int) -> int:
    """getauxval(3)."""
    ask = ctypes.CDLL(None).getauxval
    ask.argtypes, ask.restype = [ctypes.c_ulong], ctypes.c_ulong
    return int(ask(entry))
