"""What llvm-mca, LLVM's model of a CPU's pipeline, says of the loops over depth."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.errors import ModelFailed, NoInnerLoop, ToolMissing
from tilewright.machine.machine import Machine
from tilewright.records import dataclass
from tilewright.tools.explore.loops import AssemblyLoop, innermost_loops

if TYPE_CHECKING:
    from rich.table import Table

    from tilewright.compiler.kernel import Kernel

#: Versions of LLVM whose llvm-mca is looked for: 19 is the first of Debian's that models every server core
#: of the catalogue; those behind the newest are for tools to come.
OLDEST_VERSION = 19
VERSIONS = range(OLDEST_VERSION, OLDEST_VERSION + 20)

#: Turns of a loop that are simulated: the 12 cycles around the first and the last become a thousandth.
ITERATIONS = 1000

#: Seconds for all loops of one kernel; 30 of them take one.
TIMEOUT = 120


@dataclass(frozen=True)
class Tool:
    """An llvm-mca: where it stands and its version."""

    path: str
    version: int


@dataclass(frozen=True)
class LoopEstimate:
    """One loop over depth, as llvm-mca models it.

    Attributes
    ----------
    function, label : where the loop stands in the assembly.
    depths : depth steps in one turn.
    instructions, multiplies, loads, stores : instructions in one turn, and those that multiply vectors,
        read or write memory.
    spills : of those that read or write, the ones on the stack.
    cycles : of one turn, in the long run.
    bound : cycles of one turn if nothing but the multiply instructions took any.

    Examples
    --------
    >>> loop = LoopEstimate("kernel", ".LBB0_1", 2, 70, 48, 14, 0, 0, cycles=12.5, bound=12.0)
    >>> loop.cycles_per_depth, loop.bound_per_depth, loop.share
    (6.25, 6.0, 0.96)
    """

    function: str
    label: str
    depths: int
    instructions: int
    multiplies: int
    loads: int
    stores: int
    spills: int
    cycles: float
    bound: float

    @property
    def cycles_per_depth(self) -> float:
        """Cycles of one depth step."""
        return self.cycles / self.depths

    @property
    def bound_per_depth(self) -> float:
        """Multiply instructions of one depth step over those that the CPU issues in a cycle."""
        return self.bound / self.depths

    @property
    def share(self) -> float:
        """Of what the multiply units can do."""
        return self.bound / self.cycles


@dataclass(frozen=True)
class KernelEstimate:
    """The loops of one kernel on one CPU.

    Attributes
    ----------
    kernel, cpu : the kernel's name, and the CPU whose model was used, as llvm-mca calls it.
    tool : the llvm-mca.
    loops : the innermost loops that multiply vectors, in the order of the assembly.
    """

    kernel: str
    cpu: str
    tool: Tool
    loops: tuple[LoopEstimate, ...]


def find_tool() -> Tool:
    """The newest llvm-mca on the PATH, by the version that it reports.

    Raises
    ------
    ToolMissing : if there is none, or only older ones than `OLDEST_VERSION`.
    """
    names = ["llvm-mca", *(f"llvm-mca-{version}" for version in VERSIONS)]
    paths = {path for path in map(shutil.which, names) if path is not None}
    tools = [Tool(path, _version(path)) for path in sorted(paths)]
    newest = max(tools, key=lambda tool: tool.version, default=None)
    if newest is None or newest.version < OLDEST_VERSION:
        raise ToolMissing(
            purpose="--mca",
            tool=f"llvm-mca of LLVM {OLDEST_VERSION} or newer",
            package=f"llvm-{OLDEST_VERSION}",
        )
    return newest


def _version(path: str) -> int:
    """The major version of LLVM that a tool belongs to; 0 where it does not say."""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=TIMEOUT)
    found = re.search(r"LLVM version (\d+)", done.stdout)
    return int(found[1]) if found else 0


def estimate_kernel(kernel: Kernel) -> KernelEstimate:
    """Simulates the innermost loops that multiply, each alone and endless, operands in the first cache.

    The bound is the same CPU's: its multiply instructions without anything else, operands in registers.

    Raises
    ------
    ToolMissing : llvm-mca is not installed.
    NoInnerLoop : the kernel is straight code.
    ModelFailed : llvm-mca has no model of the CPU.

    Examples
    --------
    >>> import tilewright as tw
    >>> kernel = tw.compile(tw.BatchReduceGemm(16, 6, 64), "neoverse-v2")
    >>> estimate_kernel(kernel).loops[0].multiplies  # doctest: +SKIP
    24

    Source: llvm-mca's command guide, https://llvm.org/docs/CommandGuide/llvm-mca.html.
    """
    tool = find_tool()
    loops = [loop for loop in innermost_loops(kernel.assembly, kernel.machine.triple) if loop.multiplies]
    if not loops:
        raise NoInnerLoop(kernel=kernel.name)
    report = _simulate(tool, kernel.machine, regions(loops))
    return KernelEstimate(
        kernel.name, report["TargetInfo"]["CPUName"], tool, tuple(read_report(report, loops))
    )


def estimate_loops(tool: Tool, machine: Machine, loops: Sequence[AssemblyLoop]) -> Iterator[LoopEstimate]:
    """Simulates some loops, as `estimate_kernel` does."""
    return read_report(_simulate(tool, machine, regions(loops)), loops)


def timeline_of(tool: Tool, machine: Machine, loop: AssemblyLoop, turns: int) -> tuple[dict[str, Any], ...]:
    """The first turns of a loop: for each instruction its text and the cycles of its life.

    These are `dispatched`, `ready`, `issued`, `executed` and `retired`, from 0, as llvm-mca's timeline has
    them; `turn` and `at` are the turn and the place of the instruction in it.
    """
    targets = {name for line in loop.instructions for name in _LOCAL_LABEL.findall(line)}
    text = "\n".join([*(f"{name}:" for name in sorted(targets)), *loop.instructions]) + "\n"
    options = (
        "-timeline",
        f"-timeline-max-iterations={turns}",
        "-timeline-max-cycles=10000",
        f"-iterations={turns}",
    )
    report = _simulate(tool, machine, text, options)
    (region,) = report["CodeRegions"]
    names = ("dispatched", "ready", "issued", "executed", "retired")
    found = []
    for number, entry in enumerate(region["TimelineView"]["TimelineInfo"][: turns * len(loop.instructions)]):
        turn, at = divmod(number, len(loop.instructions))
        cycles = {name: entry[f"Cycle{name.capitalize()}"] for name in names}
        found.append({"turn": turn, "at": at, "text": " ".join(loop.instructions[at].split()), **cycles})
    return tuple(found)


def regions(loops: Sequence[AssemblyLoop]) -> str:
    """The text for llvm-mca: of every loop two regions, its instructions and its multiplies alone.

    Targets of jumps stand before them all: Mach-O has no local labels that are not defined.
    """
    targets = {name for loop in loops for line in loop.instructions for name in _LOCAL_LABEL.findall(line)}
    parts = [f"{name}:" for name in sorted(targets)]
    for loop in loops:
        for lines in (loop.instructions, map(_in_registers, loop.multiplies)):
            parts += ["# LLVM-MCA-BEGIN", *lines, "# LLVM-MCA-END"]
    return "\n".join(parts) + "\n"


_LOCAL_LABEL = re.compile(r"(?<![\w.$])\.?L\w+")

#: The operand in memory of an x86 instruction, broadcast or not, and the register behind it.
_X86_MEMORY = re.compile(r"[-\w]*\([^)]*\)(\{1to\d+\})?(?=.*, (%\w+))")


def _in_registers(line: str) -> str:
    """A multiply instruction that loads nothing: the operand in memory becomes the result's register.

    >>> _in_registers("vfmadd231ps 64(%rdi,%rax,4){1to16}, %zmm1, %zmm2")
    'vfmadd231ps %zmm2, %zmm1, %zmm2'
    """
    return _X86_MEMORY.sub(r"\2", line)


def _simulate(
    tool: Tool, machine: Machine, text: str, options: Sequence[str] = (f"-iterations={ITERATIONS}",)
) -> dict[str, Any]:
    """llvm-mca's report on a text, as JSON."""
    command = [
        tool.path,
        "-json",
        f"-mtriple={machine.triple}",
        f"-mcpu={machine.cpu}",
        f"-mattr={machine.features}",
        *options,
    ]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    unknown = "is not a recognized processor" in done.stderr  # a warning: it would go on with another CPU
    if done.returncode != 0 or unknown:
        reason = done.stderr.strip().splitlines()
        raise ModelFailed(
            cpu=machine.cpu,
            triple=machine.triple,
            version=tool.version,
            reason=reason[0].rstrip(".") if reason else f"exit status {done.returncode}",
        )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def read_report(report: dict[str, Any], loops: Sequence[AssemblyLoop]) -> Iterator[LoopEstimate]:
    """What llvm-mca's JSON says of each loop; `regions` gave it two for each."""
    found = report["CodeRegions"]
    for loop, whole, multiplies in zip(loops, found[::2], found[1::2], strict=True):
        summary = whole["SummaryView"]
        kinds = whole["InstructionInfoView"]["InstructionList"]
        memory = [kind["mayLoad"] or kind["mayStore"] for kind in kinds]
        on_stack = set(loop.on_stack)
        spills = sum(
            moves and line in on_stack for line, moves in zip(loop.instructions, memory, strict=True)
        )
        yield LoopEstimate(
            function=loop.function,
            label=loop.label,
            depths=loop.depths,
            instructions=len(loop.instructions),
            multiplies=len(loop.multiplies),
            loads=sum(kind["mayLoad"] for kind in kinds),
            stores=sum(kind["mayStore"] for kind in kinds),
            spills=spills,
            cycles=summary["TotalCycles"] / summary["Iterations"],
            bound=multiplies["SummaryView"]["BlockRThroughput"],
        )


def estimate_table(estimate: KernelEstimate) -> Table:
    """One line per loop; counts are of one turn, cycles of one depth step."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=f"{estimate.kernel} on {estimate.cpu}",
        caption=f"llvm-mca {estimate.tool.version}, operands in the first cache; bound: the multiplies alone",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,  # ten columns in a terminal of 80
        padding=(0, 1, 0, 0),
    )
    table.add_column("loop", overflow="fold")
    columns = (
        "depths",
        "instr.",
        "multi-\nplies",
        "loads",
        "stores",
        "on\nstack",
        "cycles\na depth",
        "bound",
    )
    for name in (*columns, "share"):
        table.add_column(name, justify="right")
    for loop in estimate.loops:
        counts = (loop.depths, loop.instructions, loop.multiplies, loop.loads, loop.stores, loop.spills)
        table.add_row(
            loop.label if loop.function == estimate.kernel else f"{loop.function} {loop.label}",
            *map(str, counts),
            f"{loop.cycles_per_depth:.2f}",
            f"{loop.bound_per_depth:.2f}",
            f"{loop.share:.1%}",
        )
    return table
