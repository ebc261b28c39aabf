"""Rewriting of Python functions for `tilewright.accelerate`, with a report on each nest."""

from __future__ import annotations
import __future__

import ast
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tilewright.errors import NotAccelerated, SourceMissing, ThreadsInNumba
from tilewright.loops.accelerate.numba import REMARKS, is_numba_function, nests_of, recompiled
from tilewright.loops.nests.nest import MatrixProduct, Refusal
from tilewright.loops.nests.recognise import contraction
from tilewright.loops.nests.text import product_text
from tilewright.loops.python.aliases import separated
from tilewright.loops.python.calls import NestCall, refusal_of
from tilewright.loops.python.counted_while import range_of
from tilewright.loops.python.evaluation import NestValues
from tilewright.loops.python.guards import MOST_CONDITIONS
from tilewright.loops.python.reader import STATEMENTS, assigned_names, nest_tests, python_nest
from tilewright.loops.python.vector_call import VectorCall, vector_call
from tilewright.loops.python.versions import ChosenCall, outcomes_of
from tilewright.records import dataclass

#: The variable in which a rewritten function finds its calls.
CALLS = "__tilewright_nests__"
#: The attribute of an accelerated function that holds its report.
REPORT = "__tilewright_report__"
#: The enclosing function that provides the closure.
AROUND = "__tilewright_around__"
#: Built-in functions that read every local variable.
_READERS = frozenset({"locals", "vars", "dir", "eval", "exec"})


@dataclass(frozen=True)
class NestReport:
    """The outcome for one loop nest.

    Attributes
    ----------
    line : of its outermost loop, in the source file.
    subscripts : the product in `einsum` notation; empty if the nest was not replaced.
    text : the product with its sizes, or the reason for refusal.
    call : the call that replaces the nest, if any.
    """

    line: int
    subscripts: str
    text: str
    call: NestValues | ChosenCall | None = None

    @property
    def replaced(self) -> bool:
        """Whether a product replaces the nest."""
        return bool(self.subscripts)

    @property
    def as_written(self) -> str:
        """Why the loops of a replaced nest last ran as written; empty if they never did."""
        return "" if self.call is None else self.call.last_reason

    def __str__(self) -> str:
        shown = f"{self.subscripts}  ({self.text})" if self.replaced else f"it {self.text}"
        last = f"; last ran as written, since {self.as_written}" if self.as_written else ""
        return f"line {self.line}: {'replaced by' if self.replaced else 'left, since'} {shown}{last}"


class FunctionReport(tuple[NestReport, ...]):
    """The nests of a function in source order; prints as one line for each."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no loops"


class _Source(NamedTuple):
    """A function's definition, with the line and column numbers of its file."""

    tree: ast.Module
    definition: ast.FunctionDef


def accelerated(function: Any, threads: int | None = None) -> Any:
    """The function with its nests replaced; see `tilewright.accelerate`."""
    match function:
        case staticmethod() | classmethod():
            return type(function)(accelerated(function.__func__, threads))
        case types.FunctionType():
            if not hasattr(function, REPORT):
                return _rewritten(function, threads)
            original = getattr(function, "__wrapped__", None)
            return function if threads is None or original is None else _rewritten(original, threads)
        case _ if is_numba_function(function):
            if threads not in (None, 1):
                raise ThreadsInNumba(found=threads)
            return recompiled(function)
        case _:
            raise NotAccelerated(found=type(function).__name__)


def report_of(function: Any) -> FunctionReport:
    """The report of an accelerated function, or of what `accelerated` would do to a plain one."""
    plain = (
        function.__func__ if isinstance(function, types.MethodType | staticmethod | classmethod) else function
    )
    if hasattr(plain, REMARKS):
        return FunctionReport(NestReport(*nest) for nest in nests_of(plain))
    found = getattr(plain, REPORT, None)
    if isinstance(found, FunctionReport):
        return found
    if isinstance(plain, types.FunctionType):
        return report_of(accelerated(plain))
    raise NotAccelerated(found=f"{getattr(plain, '__name__', type(plain).__name__)}, as it is")


def _rewritten(function: types.FunctionType, threads: int | None) -> types.FunctionType:
    reason = _untouchable(function)
    if reason:
        line = function.__code__.co_firstlineno
        return _reported(function, FunctionReport([NestReport(line, "", reason)]))
    source = _source(function)
    found = list(_nests(source.definition, function))
    calls = [nest.call for nest in found if nest.call is not None]
    for call in calls:
        call.limit_threads(threads)
    report = FunctionReport(sorted(found, key=lambda nest: nest.line))
    if not calls:
        return _reported(function, report)
    _Replace({id(call.nest.node): (number, call) for number, call in enumerate(calls)}).visit(
        source.definition
    )
    made = _compiled(function, source, tuple(calls))
    made.__wrapped__ = function  # type: ignore[attr-defined]
    return _reported(made, report)


def _untouchable(function: types.FunctionType) -> str:
    """Why no nest of a function can be replaced; empty if that is possible."""
    if inspect.isgeneratorfunction(function):
        return "is in a generator, which may be left in the middle"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "is in a coroutine, which may be left in the middle"
    if hasattr(function, "__wrapped__"):
        return "is behind another decorator: put tilewright.accelerate nearest to the function"
    if function.__code__.co_name == "<lambda>":
        return "is in a lambda"
    mangled = [
        n for n in function.__code__.co_names + function.__code__.co_varnames if _is_mangled(n, function)
    ]
    return f"is in a method that uses the private name {mangled[0]}" if mangled else ""


def _is_mangled(name: str, function: types.FunctionType) -> bool:
    """Whether a name is a private name mangled with its class."""
    classes = function.__qualname__.split(".")[:-1]
    return any(name.startswith(f"_{owner.lstrip('_')}__") for owner in classes) and not name.endswith("__")


def _reported(function: types.FunctionType, report: FunctionReport) -> types.FunctionType:
    setattr(function, REPORT, report)
    return function


def _source(function: types.FunctionType) -> _Source:
    """The syntax tree of a function's definition, with the line numbers of its file."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise SourceMissing(name=function.__qualname__) from error
    text = "".join(lines)
    indented = text[:1].isspace()
    try:
        tree = ast.parse(f"if True:\n{text}" if indented else text)
    except SyntaxError as error:
        raise SourceMissing(name=function.__qualname__) from error
    ast.increment_lineno(tree, first - 1 - indented)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function.__code__.co_name:
            return _Source(tree, node)
    raise SourceMissing(name=function.__qualname__)


def _nests(definition: ast.FunctionDef, function: types.FunctionType) -> Iterator[NestReport]:
    """Every outermost loop of a function; inside of one that is not replaced, also the loops that are."""
    shared = _declared(definition)
    counting = _counting(definition)
    waiting: list[tuple[ast.AST, bool]] = [(definition, True)]
    while waiting:
        node, outermost = waiting.pop(0)
        if isinstance(node, ast.For | ast.While):
            loop = node if isinstance(node, ast.For) else counting.get(id(node))
            if loop is None:
                result = NestReport(node.lineno, "", STATEMENTS[ast.While] + _source_line(node, node.lineno))
            else:
                result = _nest(loop, node, definition, shared, function.__qualname__)
            if result.replaced or outermost:
                yield result
            if result.replaced:
                continue
            outermost = False
        nested = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)
        if node is definition or not nested:
            waiting += [(child, outermost) for child in ast.iter_child_nodes(node)]


def _counting(definition: ast.FunctionDef) -> dict[int, ast.For]:
    """The `while` loops of a function that count, by identity, as loops over ranges."""
    found = {}
    for node in ast.walk(definition):
        for part in ("body", "orelse", "finalbody"):
            body = getattr(node, part, None)
            statements: list[ast.stmt] = body if isinstance(body, list) else []
            for place, statement in enumerate(statements):
                if not isinstance(statement, ast.While):
                    continue
                made = range_of(separated(statements[:place]), statement)
                if made is not None:
                    found[id(statement)] = made.loop
    return found


def _declared(definition: ast.FunctionDef) -> frozenset[str]:
    """Names that the function shares with others: global, nonlocal, or read by nested functions."""
    shared = set()
    for node in ast.walk(definition):
        match node:
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                shared.update(names)
            case ast.FunctionDef() | ast.Lambda() | ast.GeneratorExp() | ast.ListComp() if (
                node is not definition
            ):
                if isinstance(node, ast.FunctionDef | ast.Lambda):
                    shared.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
            case ast.Call(func=ast.Name(id=name)) if name in _READERS:
                shared.add(name)
            case _:
                continue
    return frozenset(shared)


def _nest(
    loop: ast.For, node: ast.For | ast.While, definition: ast.FunctionDef, shared: frozenset[str], name: str
) -> NestReport:
    """The outcome for one loop and its body; `node` is the loop as it is written."""
    around = _Around(definition, node, shared, name)
    tests = nest_tests(loop)
    if not tests:
        return around.report(loop, {})
    if len(tests) > MOST_CONDITIONS:
        reason = f"has {len(tests)} conditions, of which {MOST_CONDITIONS} may choose what it computes"
        return NestReport(node.lineno, "", reason)
    found = {met: around.report(loop, dict(zip(tests, met, strict=True))) for met in outcomes_of(len(tests))}
    calls = {met: one.call for met, one in found.items() if isinstance(one.call, NestValues)}
    first = next((one for one in found.values() if one.replaced), None)
    if first is None or not calls:
        return next(iter(found.values()))
    names = set(next(iter(calls.values())).results)
    calls = {met: call for met, call in calls.items() if set(call.results) == names}
    text = "; or ".join(dict.fromkeys(found[met].text for met in calls))
    chosen = ChosenCall(tests, calls)
    return NestReport(node.lineno, chosen.subscripts, f"{text}; by {', '.join(tests)}", chosen)


class _Around(NamedTuple):
    """The surroundings of a nest: its function, the loop as written, names that others read, a name."""

    definition: ast.FunctionDef
    node: ast.For | ast.While
    shared: frozenset[str]
    name: str

    def report(self, loop: ast.For, outcomes: dict[str, bool]) -> NestReport:
        """The outcome for a nest whose conditions have some outcomes."""
        node, shared = self.node, self.shared
        nest = python_nest(loop, self.name, outcomes=outcomes)
        found = contraction(nest.loop)
        read = _read_elsewhere(self.definition, node)
        left = sorted((nest.assigned | nest.undone) & (read | shared))
        if isinstance(found, Refusal) and len(left) == 1 and not set(left) & shared:
            again = python_nest(loop, self.name, frozenset(left), outcomes)
            second = contraction(again.loop)
            if isinstance(second, MatrixProduct) and second.c.memory.name == left[0]:
                nest, found, left = again, second, []
        call: NestValues | None = None
        if isinstance(found, Refusal) or (reason := refusal_of(nest, found)):
            several = vector_call(nest)
            if isinstance(several, VectorCall):
                call = several
            elif isinstance(found, Refusal):
                return NestReport(node.lineno, "", found.reason + _source_line(node, found.where.line))
            else:
                return NestReport(node.lineno, "", reason)
        variables = {variable.name for variable in nest.variables}
        if left or variables & shared or shared & _READERS:
            names = ", ".join(left or sorted(variables & shared) or ["all variables"])
            return NestReport(node.lineno, "", f"leaves {names} for other code to read")
        nest.node = node
        if isinstance(call, VectorCall):
            return NestReport(node.lineno, call.subscripts, call.text, call)
        assert isinstance(found, MatrixProduct)
        call = NestCall(nest, found)
        return NestReport(node.lineno, call.subscripts, product_text(found), call)


def _source_line(node: ast.stmt, line: int | None) -> str:
    """The end of a reason: the line that it is about, and the statement in it."""
    for part in ast.walk(node):
        if isinstance(part, ast.stmt) and part.lineno == line:
            return f", in line {line}: {ast.unparse(part).splitlines()[0]}"
    return "" if line in (None, node.lineno) else f", in line {line}"


def _read_elsewhere(definition: ast.FunctionDef, node: ast.stmt) -> frozenset[str]:
    """Names that the function reads or deletes outside of a loop.

    Other nests that are products assign their own variables before they read them, and the variable of any
    other loop is not read from here in that loop.
    """
    inside = {id(child) for child in ast.walk(node)}
    own: set[int] = set()
    for other in ast.walk(definition):
        match other:
            case ast.For() if id(other) not in inside and _is_product(other):
                own |= _named([other], assigned_names(other))
            case ast.For(target=target) if all(child is not node for child in ast.walk(other)):
                own |= _named(other.body, assigned_names(target))
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
                targets = frozenset().union(*(assigned_names(part.target) for part in other.generators))
                first, *later = other.generators  # the first sequence is read outside of the comprehension
                own |= _named([other.elt, first.target, *first.ifs, *later], targets)
            case _:
                continue
    inside |= own
    names = (n for n in ast.walk(definition) if isinstance(n, ast.Name) and id(n) not in inside)
    return frozenset(n.id for n in names if not isinstance(n.ctx, ast.Store)) | _augmented(definition, inside)


def _named(parts: Sequence[ast.AST], names: frozenset[str]) -> set[int]:
    """The identities of some names in statements."""
    found = (one for part in parts for one in ast.walk(part) if isinstance(one, ast.Name))
    return {id(one) for one in found if one.id in names}


def _is_product(node: ast.For) -> bool:
    return isinstance(contraction(python_nest(node, "").loop), MatrixProduct)


def _augmented(definition: ast.FunctionDef, inside: set[int]) -> frozenset[str]:
    """Names that augmented assignments read."""
    targets = (one.target for one in ast.walk(definition) if isinstance(one, ast.AugAssign))
    return frozenset(one.id for one in targets if isinstance(one, ast.Name) and id(one) not in inside)


class _Replace(ast.NodeTransformer):
    """Inserts a call in front of each nest; the nest runs if the call returns None.

    ``for ...: ...`` becomes::

        try:
            done = CALLS[0](A, B, C, n, range)
        except NameError:
            done = None
        if done is None:
            for ...: ...
        else:
            i, j, k = done
    """

    def __init__(self, calls: dict[int, tuple[int, NestValues | ChosenCall]]) -> None:
        self.calls = calls

    def visit_For(self, node: ast.For) -> Any:
        """Rewrite a nest that is replaced, and search others."""
        return self._with_call(node)

    def visit_While(self, node: ast.While) -> Any:
        """As for other loops."""
        return self._with_call(node)

    def _with_call(self, node: ast.For | ast.While) -> Any:
        if id(node) not in self.calls:
            return self.generic_visit(node)
        number, call = self.calls[id(node)]
        done = f"{CALLS}{number}"
        arguments = ", ".join(call.names)
        text = (
            f"try:\n {done} = {CALLS}[{number}]({arguments})\n"
            f"except NameError:\n {done} = None\n"
            f"if {done} is None:\n pass\nelse:\n ({''.join(f'{name}, ' for name in call.results)}) = {done}"
        )
        attempt, choice = ast.parse(text).body
        for new in (attempt, choice):
            for child in ast.walk(new):
                ast.copy_location(child, node)
        assert isinstance(choice, ast.If)
        choice.body = [node]
        return [attempt, choice]


def _compiled(
    function: types.FunctionType, source: _Source, calls: tuple[Callable[..., Any], ...]
) -> types.FunctionType:
    """The function of a modified definition, with the closure, defaults and names of the original."""
    old = function.__code__
    names = [*old.co_freevars, CALLS]
    around = ast.parse(f"def {AROUND}():\n {' = '.join(names)} = None").body[0]
    assert isinstance(around, ast.FunctionDef)
    for node in ast.walk(around):
        ast.copy_location(node, source.definition)
    if source.definition.name not in names:
        # The function's own name stays global, instead of being local to the enclosing function.
        around.body.insert(0, ast.copy_location(ast.Global([source.definition.name]), source.definition))
    around.body.append(source.definition)
    module = ast.fix_missing_locations(ast.Module([around], []))
    flags = old.co_flags & _FUTURES
    compiled = compile(module, old.co_filename, "exec", flags=flags, dont_inherit=True)
    code = next(found for found in _codes(compiled) if found.co_name == old.co_name)
    cells = dict(zip(old.co_freevars, function.__closure__ or (), strict=True))
    cells[CALLS] = types.CellType(calls)
    made = types.FunctionType(
        code.replace(co_qualname=old.co_qualname),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    for attribute in ("__kwdefaults__", "__annotations__", "__doc__", "__module__", "__qualname__"):
        setattr(made, attribute, getattr(function, attribute))
    made.__dict__.update(function.__dict__)
    return made


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """All nested code objects, the outermost first: type parameters wrap a function in one more."""
    waiting = [code]
    while waiting:
        yield (found := waiting.pop(0))
        waiting += [inner for inner in found.co_consts if isinstance(inner, types.CodeType)]


#: Compiler flags of `__future__` statements.
_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
