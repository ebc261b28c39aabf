"""The child process of `optimise`: reads a module, optimises it, and writes the result."""

from __future__ import annotations

import gc
import json
import os
import pickle
import re
import sys
import threading
from dataclasses import asdict
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from tilewright.errors import NotAModule, TargetNotOfModule, TilewrightError
from tilewright.llvm.backends import initialize, initialize_assembler
from tilewright.llvm.canonical import drop_unused, optimise_beside, optimise_module
from tilewright.llvm.generation import generation
from tilewright.llvm.matrix import PREFIX, lower_matrices
from tilewright.loops.nests.nest import Where
from tilewright.loops.opt.records import Optimised, OutputFormat, ProductOptions, Remark
from tilewright.loops.opt.rewrite import rewrite
from tilewright.machine.arch import triple_arch
from tilewright.preparing import preparing
from tilewright.records import dataclass

#: Magic numbers of LLVM bitcode: plain, and in Apple's wrapper.
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")

#: Code generation level, that of -O3.
_CODE_LEVEL = 3

#: Bytes of a source from which its -O3 is begun before the search has ended: 0.1 s of it, as text.
AHEAD_BYTES = 1 << 16

#: Recursion limit of Python: longer chains of values are refused before the C stack overflows.
RECURSION = 5_000


@dataclass(frozen=True)
class Work:
    """A request to the child."""

    source: bytes
    name: str
    form: OutputFormat
    options: ProductOptions
    dump: bool = False


def optimise_here(work: Work) -> Optimised:
    """Process a request in this process, which ends if LLVM aborts.

    Raises
    ------
    NotAModule : the source is not valid LLVM IR.
    """
    ahead = _Ahead.of(work)
    module = read_module_of(work)
    target = target_machine_of(module, work)
    found = rewrite(module, target, work.options)
    if found.module is None and ahead is not None:
        return _answered(ahead.finished(), ahead.target, work, found.remarks)
    finished = module if found.module is None else found.module
    dumps = (("shaped", found.shaped), ("spliced", str(finished))) if work.dump else ()
    if _has_matrices(finished):
        # What is left of matrix intrinsics: code generation would abort.
        lower_matrices(finished, target)
    optimise_module(finished, target)
    if found.module is not None:
        # After optimisation: kernels keep the form in which they are tested.
        found.splicer.link_kernels(finished)
        drop_unused(finished, target)
    return _answered(finished, target, work, found.remarks, dumps)


def _has_matrices(module: Any) -> bool:
    return any(f"@{one.name}".startswith(PREFIX) for one in module.functions)


def _answered(
    module: Any,
    target: Any,
    work: Work,
    remarks: tuple[Remark, ...],
    dumps: tuple[tuple[str, str], ...] = (),
) -> Optimised:
    with preparing:
        return Optimised(_written(module, target, work.form), remarks, dumps)


class _Ahead(NamedTuple):
    """LLVM's -O3 of a module on a thread, while its loops are searched: most modules have no products.

    The work is in vain where a product is found. The process ends then whether or not the thread has.
    """

    module: Any
    target: Any
    thread: threading.Thread

    @classmethod
    def of(cls, work: Work) -> _Ahead | None:
        """Starts it for a long module, if there is a core for it."""
        if generation.threads < 2 or work.dump or len(work.source) < AHEAD_BYTES:
            return None
        module = read_module_of(work, llvm.create_context())
        if _has_matrices(module):
            return None
        target = target_machine_of(module, work)
        return cls(module, target, optimise_beside(module, target))

    def finished(self) -> Any:
        """The module, when it has been optimised."""
        self.thread.join()
        return self.module


def read_module_of(work: Work, context: Any = None) -> Any:
    """LLVM's module of the source, verified; a module without a target is compiled for this machine."""
    initialize()
    initialize_assembler()
    try:
        if work.source.startswith(_BITCODE):
            module = llvm.parse_bitcode(work.source, context)
        else:
            module = llvm.parse_assembly(work.source.decode(), context)
        module.verify()
    except (RuntimeError, UnicodeDecodeError) as error:
        raise _not_a_module(work, error) from error
    if not module.triple:
        module.triple = llvm.get_default_triple()
    return module


#: Prefix of LLVM's diagnostics: "<string>:12:3: error: expected type".
_COMPLAINT = re.compile(r"<string>:(\d+):\d+: error: (.*)")


def _not_a_module(work: Work, error: Exception) -> NotAModule:
    found = _COMPLAINT.search(str(error))
    reason = f"line {found[1]}: {found[2]}" if found else " ".join(str(error).split())
    return NotAModule(name=work.name, version=llvm.llvm_version_info[0], reason=reason)


def target_machine_of(module: Any, work: Work) -> Any:
    """The target machine for the module's triple; its CPU applies to functions without a target CPU."""
    try:
        target = llvm.Target.from_triple(module.triple)
    except RuntimeError as error:
        raise _not_a_module(work, error) from error
    machine = work.options.target
    if machine is not None and machine.arch != triple_arch(module.triple):
        raise TargetNotOfModule(found=machine.name, arch=machine.arch, name=work.name, triple=module.triple)
    code = target.create_target_machine(
        cpu=machine.cpu if machine else "",
        features=machine.features if machine else "",
        opt=_CODE_LEVEL,
        reloc="pic",
        codemodel="default",
    )
    if not module.data_layout:
        module.data_layout = str(code.target_data)
    return code


def _written(module: Any, target: Any, form: OutputFormat) -> bytes:
    match form:
        case OutputFormat.LL:
            return str(module).encode()
        case OutputFormat.BITCODE:
            return bytes(module.as_bitcode())
        case OutputFormat.OBJECT:
            return bytes(target.emit_object(module))
        case OutputFormat.ASSEMBLY:
            return str(target.emit_assembly(module)).encode()


# Protocol of the processes: the request is pickled, since it comes from the parent; the answer is JSON


def answer(optimised: Optimised) -> bytes:
    """A line of JSON, followed by the content."""
    fields = {"remarks": [asdict(remark) for remark in optimised.remarks], "dumps": optimised.dumps}
    return json.dumps(fields).encode() + b"\n" + optimised.content


def read_answer(text: bytes) -> Optimised:
    """Parse the output of `answer_to`."""
    head, _, content = text.partition(b"\n")
    fields = json.loads(head)
    if "error" in fields:
        from tilewright import errors

        kind: type[TilewrightError] = getattr(errors, fields["error"])
        raise kind(**fields["fields"])
    remarks = tuple(
        Remark(Where(**one["where"]), replaced=one["replaced"], text=one["text"]) for one in fields["remarks"]
    )
    return Optimised(content, remarks, tuple((name, text) for name, text in fields["dumps"]))


def answer_to(work: Work) -> bytes:
    """The answer to a request, or the error that it raises, in a process that ends soon."""
    sys.setrecursionlimit(RECURSION)
    gc.disable()  # records by the hundred thousand and no cycles among them
    try:
        return answer(optimise_here(work))
    except TilewrightError as error:
        fields = {"error": type(error).__name__, "fields": error.fields}
        return json.dumps(fields, default=str).encode() + b"\n"


def main() -> None:
    """Entry point of the child: request from standard input, answer to standard output."""
    work: Work = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the parent
    sys.stdout.buffer.write(answer_to(work))
    sys.stdout.buffer.flush()
    os._exit(0)  # a thread may be inside of LLVM
