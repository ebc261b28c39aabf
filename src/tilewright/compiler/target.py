"""Targets: which machine a name stands for."""

from __future__ import annotations

from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.preparing import importing
from tilewright.spec.arguments import check_text

#: Before the name of a target: its kernels, on this host (`micro.emulate`).
_EMULATE = "emulate:"


def resolve_target(target: str | Machine | None) -> Machine:
    """The machine of a target: None or "host", a catalogue name, "triple:cpu:+features", or a record.

    Raises
    ------
    UnknownTarget : a name that no row has; the message lists the names, most similar first.
    InvalidTarget, UnknownTriple, UnknownCpu, UnknownFeature : a triple, CPU or feature that LLVM does
        not know or cannot compile for.
    """
    if isinstance(target, Machine):
        return target
    name = "host" if target is None else check_text(target, "target")
    if name == "host":
        return host_machine()
    if name.startswith(_EMULATE):
        return resolve_target(name.removeprefix(_EMULATE)).emulated_on(host_machine())
    if ":" in name:
        return _custom_machine(name)
    with importing:
        from tilewright.machine.catalog import find_machine  # the table is only for cross-compilation

    return find_machine(name)


def _custom_machine(target: str) -> Machine:
    """The machine of "triple:cpu:+features"; what the CPU has is LLVM's knowledge."""
    with importing:
        from tilewright.llvm.subtarget import cpu_features
        from tilewright.machine.custom import TargetName

    name, host = TargetName.parse(target), host_machine()
    questions = set(name.questions)
    if name.arch == host.arch:  # whether the kernel runs here depends on every feature it may use
        questions |= {entry[1:] for entry in host.features.split(",") if entry}
    return name.machine(cpu_features(name.triple, name.cpu, name.features, tuple(sorted(questions))))
