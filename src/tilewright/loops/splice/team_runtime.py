"""Machine code that opens and closes the teams of replaced nests, shared by the files of a program.

Every object file has a copy; the linker keeps one for each program or shared library. Names contain a digest
of the code, so that files compiled by another version of this package use functions of their own.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from tilewright.errors import NoResolver, ThreadsNotOnTarget
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.float_mode import read_float_mode, write_float_mode
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int32, int64, null
from tilewright.loops.splice.threads import TeamFunctions, ThreadSource
from tilewright.machine.feature_bits import DETECTIONS, detection_of
from tilewright.machine.machine import Machine
from tilewright.records import dataclass
from tilewright.threads.pool import OPENMP_WORK
from tilewright.threads.pool_memory import FROM_ABOVE, FROM_BELOW, MOST_TASKS, TeamMemory
from tilewright.threads.program_code import ProgramCode
from tilewright.threads.program_pool import MOST_THREADS, ProgramPool
from tilewright.threads.system_code import FieldAccess

#: Prefix of the shared functions, before the digest is known.
_OWNER = "tilewright_threads"
_ENTRY = re.compile(rf"^define (?=\S+ @{_OWNER})", re.MULTILINE)
_DEFINITION = re.compile(r"^(define .*) \{$", re.MULTILINE)
_DATA = re.compile(
    r"^(@(?!llvm\.)\S+ = (?:internal|private) .*?)((?:, section \S+)?(?:, align \d+)?)$", re.MULTILINE
)


@dataclass(frozen=True)
class TeamRuntime:
    """The functions that a module's products open and close teams by, and the text that defines them."""

    functions: TeamFunctions
    text: str


def team_runtime(source: ThreadSource, machine: Machine) -> TeamRuntime | None:
    """The functions for products on a machine; None if they run on one thread.

    Raises
    ------
    ThreadsNotOnTarget : for another system than Linux, or an architecture that libraries are not made for.
    """
    if source is ThreadSource.OFF:
        return None
    try:
        cpu = detection_of(machine).baseline
    except NoResolver as error:
        known = ", ".join(detection.arch for detection in DETECTIONS)
        raise ThreadsNotOnTarget(found=source.value, triple=machine.triple, known=known) from error
    baseline = replace(machine, cpu=cpu, features="")
    module = (OwnTeams if source is ThreadSource.OWN else OpenMpTeams)(baseline).module
    module.attributes += f' "target-cpu"="{cpu}"'  # files for several CPUs share the code
    code = str(module).split("\n", len(module.header))[-1]
    name = f"{_OWNER}_{hashlib.sha256(code.encode()).hexdigest()[:12]}"
    text = "\n".join([*module.header, _shared(code)]).replace(_OWNER, name)
    return TeamRuntime(TeamFunctions(f"{name}_team_open", f"{name}_team_close"), text)


def _shared(text: str) -> str:
    """Definitions as one group, with their data, of which the linker keeps one copy.

    Before: ``define ptr @name(...) nounwind {``. After: ``define linkonce_odr hidden ptr @name(...) nounwind
    comdat($group) {``.
    """
    group = f"comdat(${_OWNER}_team_open)"
    text = _ENTRY.sub("define linkonce_odr hidden ", text)
    text = _DEFINITION.sub(rf"\1 {group} {{", text)
    text = _DATA.sub(rf"\1, {group}\2", text)
    return f"${_OWNER}_team_open = comdat any\n{text}"


def _refuse_parallel_regions(code: ProgramCode, f: Function, *, needed: bool) -> None:
    """Return null inside a parallel region of OpenMP, and where there is no OpenMP if that is needed.

    A region of one thread counts: the program asked for that thread alone.
    """
    level = code.weak_function("omp_get_level", INT32)
    known = f.icmp("!=", Value(POINTER, level.text), null())
    if needed:
        with f.when(f.not_(known)):
            f.ret(null())
        inside = f.call(level, [])
    else:
        with f.once_if(known, [int32(0)]) as (_, advance):
            advance([f.call(level, [])])
        inside = advance.results[0]
    with f.when(f.icmp("!=", inside, 0)):
        f.ret(null())


class OwnTeams(ProgramPool):
    """Emits a pool of threads that starts with the first large product."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, _OWNER)

    def emit_refusals(self, f: Function) -> None:
        """None inside a parallel region of the program's OpenMP, if it has one."""
        _refuse_parallel_regions(self, f, needed=False)


class OpenMpTeams(ProgramCode):
    """Emits teams of the program's OpenMP threads: one parallel region for each parallel loop of a kernel.

    GNU's entry points are called, which LLVM's and Intel's runtimes have, too.
    """

    def __init__(self, machine: Machine) -> None:
        self.module, self.owner = (
            Module("tilewright_team_openmp", machine.triple, data_layout(machine)),
            _OWNER,
        )
        self.process = self.word("process")
        self.emit_load()
        self.emit_open(self.emit_run(self.emit_share()))
        f = self.entry("team_close", VOID, [("team", POINTER)]).f
        f.ret()

    def emit_load(self) -> None:
        """``load()``: keeps the number of the process that loads the program or library."""
        f = self.module.define("load", VOID, [])
        f.store(f.sext(f.call(self.c_function("getpid", INT32), []), INT64), self.process, 8)
        f.ret()
        self.run_at("init", f.callee)

    def emit_share(self) -> Callee:
        """``share(team)``: one thread's share of a region; the first one takes tasks in ascending order."""
        w = FieldAccess(self.module.define("share", VOID, [("team", POINTER)]))
        f, team = w.f, w.f.arguments["team"]
        thread = f.sext(f.call(self.weak_function("omp_get_thread_num", INT32), []), INT64)
        body, env = (w.get(team, TeamMemory, name, POINTER) for name in ("body", "env"))
        tasks, mode = w.get(team, TeamMemory, "tasks"), w.get(team, TeamMemory, "float_mode")
        before = read_float_mode(f)
        write_float_mode(f, mode, before)
        first = f.icmp("==", thread, 0)
        step = f.select(first, int64(FROM_BELOW), int64(FROM_ABOVE))
        with w.forever("tasks") as (_, done):
            word = f.atomic_add(w.place(team, TeamMemory, "next"), step)
            below = w.bits(word, FROM_ABOVE - 1)
            above = f.ashr(word, int64(FROM_ABOVE.bit_length() - 1))
            w.branch_if(f.icmp(">=", f.add(below, above), tasks), done)
            task = f.select(first, below, f.sub(f.sub(tasks, 1), above))
            f.call(Callee(VOID, body.text), [env, thread, task])
        write_float_mode(f, before, mode)
        f.ret()
        return f.callee

    def emit_run(self, share: Callee) -> Callee:
        """``run(team, body, env, tasks)``: runs every task once; those that tasks create, on their thread."""
        job = [("team", POINTER), ("body", POINTER), ("env", POINTER), ("tasks", INT64)]
        w = FieldAccess(self.module.define("run", VOID, job))
        f, (team, body, env, tasks) = w.f, w.f.arguments.values()
        with f.when(f.icmp("==", body, null())):
            f.ret()
        threads = f.minimum(w.get(team, TeamMemory, "threads"), tasks)
        alone = f.or_(f.icmp("<=", threads, 1), f.icmp(">", tasks, MOST_TASKS))
        with f.when(f.or_(alone, f.icmp("!=", w.get(team, TeamMemory, "running"), 0))):
            with f.loop(int64(0), tasks, int64(1), "task") as task:
                f.call(Callee(VOID, body.text), [env, int64(0), task])
            f.ret()
        for name, value in (("running", 1), ("body", body), ("env", env), ("tasks", tasks), ("next", 0)):
            w.put(value, team, TeamMemory, name)
        region = self.weak_function("GOMP_parallel", VOID, POINTER, POINTER, INT32, INT32)
        f.call(region, [Value(POINTER, share.text), team, f.trunc(threads, INT32), int32(0)])
        w.put(0, team, TeamMemory, "running")
        f.ret()
        return f.callee

    def emit_open(self, run: Callee) -> None:
        """``team_open(memory, work)``: a team for a call of so many multiply-adds; null for one thread."""
        w = self.entry("team_open", POINTER, [("memory", POINTER), ("work", INT64)])
        f, team = w.f, w.f.arguments["memory"]
        with f.when(f.icmp("<=", f.arguments["work"], OPENMP_WORK)):
            f.ret(null())
        _refuse_parallel_regions(self, f, needed=True)
        # GNU's runtime waits forever for threads that were left behind in the parent.
        llvm = self.weak_function("__kmpc_fork_call", VOID, POINTER, INT32, POINTER)
        here = f.sext(f.call(self.c_function("getpid", INT32), []), INT64)
        child = f.icmp("!=", here, f.load(INT64, self.process, 8))
        with f.when(f.and_(child, f.icmp("==", Value(POINTER, llvm.text), null()))):
            f.ret(null())
        threads = f.sext(f.call(self.weak_function("omp_get_max_threads", INT32), []), INT64)
        with f.when(f.icmp("<=", threads, 1)):
            f.ret(null())
        values = {
            "run": Value(POINTER, run.text),
            "threads": f.minimum(threads, int64(MOST_THREADS)),
            "running": int64(0),
            "float_mode": read_float_mode(f),
        }
        for name, value in values.items():
            w.put(value, team, TeamMemory, name)
        f.ret(team)
