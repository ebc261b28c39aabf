"""Optimise a module of LLVM IR in a child process, which LLVM may abort."""

from __future__ import annotations

from tilewright.errors import OptimiserFailed
from tilewright.loops.opt.child import Ended, run_child
from tilewright.loops.opt.records import Optimised, OutputFormat, ProductOptions
from tilewright.loops.opt.work import Work, read_answer
from tilewright.spec.arguments import parse_choice


def optimise(
    source: str | bytes,
    form: OutputFormat | str = OutputFormat.LL,
    options: ProductOptions | None = None,
    *,
    name: str = "the module",
    dump: bool = False,
    forks: bool = False,
) -> Optimised:
    r"""Replace the loop nests of a module that are matrix products, and run LLVM's -O3.

    Parameters
    ----------
    source : text or bitcode of LLVM 15 or later.
    form : ".ll", ".bc", ".o" or ".s".
    options : target, strategy, caches, permissions.
    name : of the module in messages.
    dump : also return the text before and after the replacement.
    forks : the child process may be a fork of this one; see `run_child`.

    Raises
    ------
    NotAModule : the source is not valid LLVM IR; the message contains LLVM's diagnostic.
    OptimiserFailed : LLVM terminated the child process.

    Notes
    -----
    A module in which nothing is replaced is optimised unchanged. Otherwise every function has been through
    the loop canonicalisation passes, which preserve semantics.

    Examples
    --------
    >>> done = optimise("define i32 @one() {\n  %x = add i32 0, 1\n  ret i32 %x\n}")
    >>> "ret i32 1" in done.text, done.remarks
    (True, ())
    """
    work = Work(
        source=source.encode() if isinstance(source, str) else source,
        name=name,
        form=parse_choice(OutputFormat, form, "form"),
        options=options or ProductOptions(),
        dump=dump,
    )
    try:
        done = run_child(work, forks=forks)
    except OSError as error:
        raise OptimiserFailed(name=name, reason=f"its process could not be started: {error}") from error
    if done.status:
        raise OptimiserFailed(name=name, reason=_last_words(done))
    return read_answer(done.output)


def _last_words(done: Ended) -> str:
    """Why the child ended: LLVM's fatal error, or the last line of its output."""
    lines = done.errors.decode(errors="replace").splitlines()
    fatal = [line.partition("LLVM ERROR: ")[2] for line in lines if "LLVM ERROR: " in line]
    if fatal:
        return fatal[0]
    ended = f"signal {-done.status}" if done.status < 0 else f"status {done.status}"
    return f"{ended}: {lines[-1] if lines else 'without a word'}"
