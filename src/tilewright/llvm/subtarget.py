"""What LLVM knows of a CPU: asked in a child process, because LLVM prints complaints and aborts on some."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

import llvmlite.binding as llvm

from tilewright.errors import InvalidTarget, UnknownCpu, UnknownFeature, UnknownTriple, shown
from tilewright.llvm.backends import initialize

#: The child needs 0.2 s; this long only on a machine that hangs.
TIMEOUT_S = 120

#: Nearest names that a message lists.
_NEAREST = 5

#: Words that make LLVM print its lists in place of naming something.
_HELP = ("help", "cpuhelp", "cpuHelp")

_QUESTION = Path(__file__).with_name("ask_subtarget.py")

_TRIPLE = re.compile(r"\w[\w.+]*(?:-[\w.+]*)*")


@lru_cache(maxsize=64)
def cpu_features(triple: str, cpu: str, features: str, names: tuple[str, ...]) -> frozenset[str]:
    """Which features a CPU has, those that others imply included.

    Parameters
    ----------
    triple, cpu, features : as LLVM takes them; features is a comma list with signs, or empty.
    names : the features asked about; names that LLVM does not know are not among the answer.

    Raises
    ------
    UnknownTriple, UnknownCpu, UnknownFeature : LLVM does not know the name; the nearest are listed.
    InvalidTarget : LLVM knows the names but cannot generate 64-bit code for them.

    Examples
    --------
    >>> sorted(cpu_features("x86_64-linux-gnu", "haswell", "", ("avx2", "avx512f", "fma")))
    ['avx2', 'fma']
    """
    _check_triple(triple)
    if cpu in _HELP:
        raise _unknown_cpu(triple, cpu)
    named = _names(features)
    for feature in named:
        if feature in _HELP:
            raise _unknown_feature(triple, feature)
    done = _ask(triple, cpu, features, *names)
    complaints = done.stderr.splitlines()
    if any(line.startswith(f"'{cpu}' is not a recognized processor") for line in complaints):
        raise _unknown_cpu(triple, cpu)
    for feature in named:
        if any(
            line.startswith(f"'{feature}' is not a recognized feature", 1) for line in _unsigned(complaints)
        ):
            raise _unknown_feature(triple, feature)
    if done.returncode:
        raise InvalidTarget(found=shown(_spelled(triple, cpu, features)), reason=_last_words(complaints))
    answer = json.loads(done.stdout)
    if answer["pointer_bits"] != 64:
        reason = f"its addresses have {answer['pointer_bits']} bits, kernels need 64"
        raise InvalidTarget(found=shown(_spelled(triple, cpu, features)), reason=reason)
    return frozenset(answer["has"])


def known_features(triple: str) -> frozenset[str]:
    """Every feature that LLVM knows of an architecture.

    >>> "avx2" in known_features("x86_64-linux-gnu")
    True
    """
    _check_triple(triple)
    return frozenset(_known_names(triple)[1])


def _unsigned(complaints: list[str]) -> Iterator[str]:
    """Complaints about features without the sign that LLVM repeats: "'+foo' is" -> "''foo' is"."""
    return (f"'{line[:1]}{line[2:]}" for line in complaints if line[1:2] in ("+", "-"))


def _names(features: str) -> tuple[str, ...]:
    return tuple(entry[1:] for entry in features.split(",") if entry)


def _spelled(triple: str, cpu: str, features: str) -> str:
    return ":".join(part for part in (triple, cpu, features) if part)


def _check_triple(triple: str) -> None:
    initialize()
    if not _TRIPLE.fullmatch(triple):
        raise UnknownTriple(found=shown(triple), reason="not a triple such as aarch64-linux-gnu")
    try:
        llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise UnknownTriple(found=shown(triple), reason=str(error)) from error


def _ask(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", str(_QUESTION), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = f"LLVM could not be asked about it: {error}"
        raise InvalidTarget(found=shown(_spelled(*words[:3])), reason=reason) from error


def _last_words(complaints: list[str]) -> str:
    """The reason in what an aborted process left: LLVM's fatal error, or its last line."""
    for line in complaints:
        if "LLVM ERROR: " in line:
            return f"LLVM cannot generate code: {line.partition('LLVM ERROR: ')[2]}"
    return f"LLVM cannot generate code: {complaints[-1] if complaints else 'it ended without a word'}"


@lru_cache(maxsize=8)
def _known_names(triple: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The CPUs and the features of an architecture: the lists that LLVM prints for "help"."""
    cpus, _, features = _ask(triple, "help", "").stderr.partition("Available features")
    listed = re.compile(r"^  (\S+)\s+- ", re.MULTILINE)
    return tuple(listed.findall(cpus)), tuple(listed.findall(features))


def _nearest(name: str, known: tuple[str, ...]) -> str:
    return ", ".join(get_close_matches(name, known, n=_NEAREST, cutoff=0.0))


def _unknown_cpu(triple: str, cpu: str) -> UnknownCpu:
    return UnknownCpu(found=shown(cpu), triple=triple, nearest=_nearest(cpu, _known_names(triple)[0]))


def _unknown_feature(triple: str, feature: str) -> UnknownFeature:
    known = _known_names(triple)[1]
    return UnknownFeature(found=shown(feature), triple=triple, nearest=_nearest(feature, known))
