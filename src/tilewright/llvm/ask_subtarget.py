"""The child process of `subtarget.py`: triple, CPU, features and names in; JSON out. LLVM may abort it.

Nothing of the package is imported here. LLVM's C interface has no question "has this CPU this feature?", but
its inliner asks it: a function is inlined into another only if the caller has every feature of the
callee. The callee here is for the same CPU with one feature more, so it goes away exactly where that
is not one more (llvm/include/llvm/CodeGen/BasicTTIImpl.h, areInlineCompatible).
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import llvmlite.binding as llvm


def ask(triple: str, cpu: str, features: str, *names: str) -> dict[str, Any]:
    """The bits of an address, and which of the names are features of the CPU."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    if cpu == "help":
        return {}
    lines = ["@x = external global i64"]
    for number, name in enumerate(names):
        more = ",".join(filter(None, (features, f"+{name}")))
        lines += [
            f'define internal i64 @callee{number}() "target-cpu"="{cpu}" "target-features"="{more}" {{',
            "%x = load volatile i64, ptr @x\nret i64 %x\n}",
            f'define i64 @caller{number}() "target-cpu"="{cpu}" "target-features"="{features}" {{',
            f"%x = call i64 @callee{number}()\nret i64 %x\n}}",
        ]
    header = f'target triple = "{triple}"\ntarget datalayout = "{target.target_data}"\n'
    module = llvm.parse_assembly(header + "\n".join(lines))
    # A function with vectors: what has no 64-bit code generator ends here, not in the caller's process.
    kind = "<4 x float>"
    code = f"define {kind} @f({kind} %x, ptr %p) {{\nstore {kind} %x, ptr %p\nret {kind} %x\n}}"
    target.emit_object(llvm.parse_assembly(header + code))
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    called = set(re.findall(r"call .*@callee(\d+)\(", str(module)))
    has = [name for number, name in enumerate(names) if str(number) not in called]
    pointer = re.search(r"(?:^|-)p(?:0)?:(\d+)", str(target.target_data))
    return {"pointer_bits": int(pointer[1]) if pointer else 64, "has": has}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(ask(*sys.argv[1:])))
