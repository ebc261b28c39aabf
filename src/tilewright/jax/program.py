"""Programs: the steps of a problem in memory, as the handler runs them.

A problem is recorded without being computed: Python makes the call on arrays that nobody reads or writes, and
each function of machine code that it would run becomes a step (`calls/recipes/recording.py`). So errors are
those of the public function, and the kernels and blocking are those that it chooses.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright.calls.operands import Array
from tilewright.calls.recipes.recipe import ArrayField, Base, Field, MadeRecipe, StepField
from tilewright.calls.recipes.recording import Recording
from tilewright.calls.repeated import in_python
from tilewright.jax.handler_code import ProgramField
from tilewright.jax.problem import Call, Problem
from tilewright.llvm.quick import quick_code

logger = logging.getLogger("tilewright.jax")

#: The functions that problems call, and their Python halves, whose kernels a recording sees.
FUNCTIONS: dict[str, Call] = {
    "einsum": tw.einsum,
    "attention": tw.attention,
    "attention_backward": tw.attention_backward,
}


class _Refused(Exception):
    """A call that cannot be recorded."""


class DryRecording(Recording):
    """A recording of a call that is not computed; it ends where it is refused."""

    dry = True

    def refuse(self, reason: str) -> None:
        """Ends the recording, and the call."""
        super().refuse(reason)
        raise _Refused(reason)


class Program:
    """A problem that is ready to run.

    Attributes
    ----------
    problem : what it computes.
    reason : why its calls go through Python; empty where they do not.
    scratch_bytes : the sizes of the scratch blocks of a call.
    """

    def __init__(self, problem: Problem, made: MadeRecipe | None, reason: str) -> None:
        self.problem, self.reason = problem, reason
        self._kept = made
        pools = () if made is None else [one for one in made.kept if _is_pool(made, one)]
        self.scratch_bytes = tuple(pool.size for pool in pools)
        words = [0] * ProgramField.FIRST_STEP
        words[ProgramField.KEY : ProgramField.KEY + 2] = problem.key
        words[ProgramField.ARGUMENTS] = len(problem.operands)
        words[ProgramField.RESULTS] = len(problem.results)
        words[ProgramField.PYTHON] = int(made is None)
        if made is not None:
            for to, field in _HEADER:
                words[to] = made.header[field]
            words += _steps(made)
        self.words = array("q", words)

    @property
    def address(self) -> int:
        """Where the handler reads it."""
        return self.words.buffer_info()[0]

    def set_scratch(self, tables: Sequence[int]) -> None:
        """Writes the addresses of the tables of scratch blocks of its sizes."""
        for number, table in enumerate(tables):
            self.words[ProgramField.SCRATCH + number] = table

    def call_in_python(self, operands: Sequence[int], results: Sequence[int]) -> None:
        """Computes the problem on buffers at addresses through Python."""
        problem = self.problem
        inputs, outputs = (
            [one.at(address) for one, address in zip(types, addresses, strict=True)]
            for types, addresses in ((problem.operands, operands), (problem.results, results))
        )
        found = problem.call(FUNCTIONS, inputs, outputs)
        for value, target in zip(found, outputs, strict=True):
            if value is not target:
                target[...] = value


#: Words of a program, and where they are in the header of a recipe.
_HEADER = (
    (ProgramField.LIMIT, Field.LIMIT),
    (ProgramField.WORK, Field.WORK),
    (ProgramField.TEMPORARY_BYTES, Field.TEMPORARY_BYTES),
    (ProgramField.STEPS, Field.STEPS),
)


def _is_pool(made: MadeRecipe, value: Any) -> bool:
    """Whether an object that a recipe keeps is a pool of scratch that it uses."""
    address = getattr(value, "table_address", None)
    return address is not None and address in made.header[Field.SCRATCH :]


def _result_words(body: Sequence[int], count: int) -> list[Sequence[int]]:
    """The descriptions of the results in front of the steps of a recipe."""
    found, at = [], 0
    for _ in range(count):
        end = at + ArrayField.LENGTHS + 2 * body[at + ArrayField.AXES]
        found.append(body[at:end])
        at = end
    return found


def _steps(made: MadeRecipe) -> list[int]:
    """The words of the steps of a recipe."""
    results = _result_words(made.body, made.header[Field.RESULTS])
    return made.body[sum(map(len, results)) :]


def _why_python(made: MadeRecipe, problem: Problem) -> str:
    """Why the handler cannot run a recipe; empty if it can.

    It knows steps of machine code without conditions, and results that fill the buffers in their order.
    """
    at, steps = 0, _steps(made)
    for _ in range(made.header[Field.STEPS]):
        if not steps[at + StepField.THUNK]:
            return "a step of NumPy"
        if steps[at + StepField.IS_CHECK]:
            return "a step that depends on the contents of operands"
        at += steps[at] // 8
    expected = zip(_result_words(made.body, made.header[Field.RESULTS]), problem.results, strict=True)
    for number, (words, result) in enumerate(expected):
        behind = Base.ARGUMENT + len(problem.operands) + number
        if words[ArrayField.BASE] == behind and not words[ArrayField.DTYPE]:
            continue
        strides = words[ArrayField.LENGTHS + words[ArrayField.AXES] :]
        row_major = tuple(strides) == result.empty().strides or 1 in result.shape
        if words[ArrayField.BASE] != Base.RESULT + number or words[ArrayField.OFFSET] or not row_major:
            return "a result that is not a row-major array of its own"
    return ""


def prepare(problem: Problem) -> Program:
    """The program of a problem, with kernels that are compiled well.

    Raises
    ------
    The errors of the public function.
    """
    inputs = [one.empty() for one in problem.operands]
    outputs = [one.empty() for one in problem.results]
    made, reason = _record(problem, inputs, outputs)
    if made is not None:
        reason = _why_python(made, problem)
    if reason:
        logger.debug("%s in a program of JAX: through Python: %s", problem.function, reason)
    return Program(problem, None if reason else made, reason)


def _record(problem: Problem, inputs: list[Array], outputs: list[Array]) -> tuple[MadeRecipe | None, str]:
    """The recipe of a problem, or why it has none."""
    quick_code.finish()
    with_results = problem.function != "attention_backward"  # which returns new arrays
    recording = DryRecording((*inputs, *(outputs if with_results else ())))
    functions: dict[str, Call] = {name: in_python(function) for name, function in FUNCTIONS.items()}
    recording.begin()
    try:
        result = problem.call(functions, inputs, outputs)
        recording.end()
        made = recording.finished(result, None)
    except _Refused as refused:
        return None, str(refused)
    finally:
        recording.end()
    return made, recording.reason
