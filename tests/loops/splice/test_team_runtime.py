"""Code of threads that becomes a part of a program leaves no trace in what is compiled after it."""

from __future__ import annotations

from tilewright.llvm.target import emit_object
from tilewright.loops.splice.team_runtime import team_runtime
from tilewright.loops.splice.threads import ThreadSource
from tilewright.machine.catalog import find_machine

#: Tables, each of which LLVM would place into a section of its own if a variable that another module named in
#: ``llvm.used`` had been at its address.
TABLES = "declare void @f()\n" + "".join(
    f"@table{index} = internal constant [2 x ptr] [ptr @f, ptr @read{index}]\n"
    f"define ptr @read{index}(i64 %at) {{\n"
    f"  %place = getelementptr ptr, ptr @table{index}, i64 %at\n"
    "  %found = load ptr, ptr %place\n"
    "  ret ptr %found\n}\n"
    for index in range(60)
)


def test_later_modules_have_the_same_bytes() -> None:
    """Seen once in a library's resolver: docs/decisions/063-llvm-used.md."""
    machine = find_machine("haswell")
    runtime = team_runtime(ThreadSource.OWN, machine)
    assert runtime is not None
    assert "compiler.used" in runtime.text
    before, later = emit_object(TABLES, "tables", machine), set()
    for _ in range(12):
        emit_object(runtime.text, "threads", machine)
        later.add(emit_object(TABLES, "tables", machine))
    assert later == {before}
