"""Calls with wrong arguments: a sample of `wrong_calls.py`, in a child process, since some may crash."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from shares import EVERY_TEST_RUNS, looped
from support import run_python
from wrong_calls import public_callables
from wrong_subjects import Subject, subjects

import tilewright as tw
from tilewright import errors

#: Calls of the sample, about eleven for each subject in `make test-all`, and their seed.
CALLS, SEED = 1500 if EVERY_TEST_RUNS else 600, 16

#: Public names that nobody calls with arguments: `compile` makes kernels and graphs.
NOT_CALLED = {
    *("Graph", "CompiledGraph", "Kernel", "install", "installed", "show_calls", "show_config", "uninstall")
}

#: Errors of right arguments: the files that they name do not exist, and no kernel runs without arrays.
NOTHING_THERE = (
    errors.PackedFileNotFound,
    errors.GraphFileNotFound,
    errors.PackedNotWritable,
    errors.KernelNotCalled,
    errors.WeightFileNotFound,
)

#: Parameters that only a part of the subjects of a function gives.
KNOWN = {subject.name.split(" ")[0].split(",")[0] for subject in subjects()}


def test_no_wrong_call_ends_in_an_error_of_others() -> None:
    """Nor changes an argument, nor hangs, nor ends the process."""
    text = run_python("tests/shared/wrong_calls.py", "--calls", str(CALLS), "--seed", str(SEED), seconds=300)
    assert f"{CALLS} calls of seed {SEED}: 0 faults" in text


def test_everything_public_is_called() -> None:
    assert set(public_callables()) - KNOWN == NOT_CALLED


def parameters_of(name: str, function: Callable[..., Any]) -> set[str]:
    """The parameters of a public function that no subject of it gives."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = {one.name for one in inspect.signature(function).parameters.values() if one.kind not in kinds}
    mine = [one for one in subjects() if one.name.split(" ")[0].split(",")[0] == name]
    return named - {key for one in mine for key in (*one.first, *one.named)}


@pytest.mark.parametrize("name", sorted(set(public_callables()) - NOT_CALLED))
def test_every_parameter_is_given(name: str) -> None:
    """New positional parameters of public functions belong into the table of `wrong_subjects.py`."""
    assert parameters_of(name, getattr(tw, name)) == set()


@looped("subject", subjects())
def test_right_arguments_are_right(subject: Subject) -> None:
    """Otherwise wrong ones beside them would never be looked at."""
    arguments = [make() for make in subject.first.values()]
    with contextlib.suppress(*NOTHING_THERE):
        subject.call()(*arguments)
