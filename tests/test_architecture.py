"""The rules of docs/architecture.md, checked on the source text."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from tilewright import errors
from tilewright.errors import TilewrightError
from tilewright.machine.isa_rows import ISAS
from tilewright.preparing import Late

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tilewright"
TESTS = ROOT / "tests"

#: Top to bottom, as docs/architecture.md lists them; a module imports from its own layer and from below.
LAYERS = (
    "__main__",
    "tools",
    "torch",
    "jax",
    "dask",
    "__init__",
    "onnx",
    "array_api",
    "einops",
    "graph",
    "loops",
    "aot",
    "weights",
    "configuration",
    "installation",
    "ops",
    "calls",
    "compiler",
    "threads",
    "micro",
    "macro",
    "llvm",
    "ir",
    "machine",
    "spec",
    "store",
    "progress",
    "settings",
    "atomic",
    "reading",
    "registered",
    "preparing",
    "recorder",
    "cached",
    "records",
    "plotting",
    "notebook",
    "deprecated",
    "logs",
    "errors",
    "typing",
)
#: The folders and files of a package, top to bottom, where they have an order.
ORDERS = {
    "ops": (
        "explain",
        "einsum",
        "matmul",
        "embedding",
        "linear",
        "chain",
        "mmt4d",
        "contraction",
        "attention",
        "triangular",
        "sampling",
        "rotary",
        "binary",
        "elementwise",
        "rows",
        "sum_of_products",
        "quantized",
        "packing",
        "transpose",
        "unary",
        "gemm",
        "batch_reduce",
    ),
    "graph": (
        "builder",
        "compiled",
        "profile",
        "saved",
        "passes",
        "drawing",
        "drawn_samples",
        "calibration",
        "execute",
        "plan",
        "value",
        "network",
        "nodes",
        "slicing",
        "arguments",
        "dtypes",
        "sizes",
    ),
    "loops": ("accelerate", "driving", "opt", "splice", "python", "llvm", "nests"),
    "micro": ("rows", "attention", "tiles", "elements", "packing", "units", "budget", "calls", "emission"),
}
#: Borders that hold whatever the order of the layers is.
NEVER = {("macro", "micro"), ("macro", "llvm"), ("llvm", "macro")}
#: Files of an operation that say what is computed and how it is cut: they know no instructions and no arrays.
PURE_FILES = ("problem", "cut", "nest")
PURE_FORBIDDEN = {"micro", "llvm", "calls", "compiler", "threads"}
#: Imports inside functions, at most: of modules that few calls need.
MOST_LOCAL_IMPORTS = 19
#: `ModuleType` attributes through which environment variables are read.
ENVIRONMENT = {"environ", "environb", "getenv", "getenvb"}


def layer_of(module: str) -> str:
    """The layer of a dotted name: its part below `tilewright`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def module_name(path: Path, root: Path = SOURCE) -> str:
    parts = ("tilewright", *path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a source, which every rule looks through."""
    return tuple(ast.walk(tree))


def imported_modules(tree: ast.AST, module: str) -> Iterator[str]:
    """Every module of this package that a source imports, also inside functions and TYPE_CHECKING."""
    for node in nodes(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name.split(".")[0] == "tilewright")
            case ast.ImportFrom(module=name, names=names, level=level):
                base = module.split(".")[:-level] if level else []
                full = ".".join([*base, *([name] if name else [])])
                if full == "tilewright":
                    yield from (f"tilewright.{alias.name}" if exists(alias.name) else full for alias in names)
                elif full.startswith("tilewright."):
                    yield full
            case ast.Call(func=ast.Name(id="Late"), args=[ast.Constant(value=str() as place)]):
                if place.startswith("tilewright."):
                    yield place.partition(":")[0]
            case _:
                continue


def late_places(tree: ast.AST) -> list[str]:
    """The places of functions that are imported when they are called, "module:function"."""
    return [
        str(node.args[0].value)
        for node in nodes(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Late"
        if isinstance(node.args[0], ast.Constant)
    ]


def exists(name: str) -> bool:
    """Whether a name of the package is a module; one that is a function too counts as the module."""
    return (SOURCE / f"{name}.py").exists() or (SOURCE / name).is_dir()


def layer_violations(tree: ast.AST, module: str) -> list[str]:
    importer = layer_of(module)
    found = []
    for imported in imported_modules(tree, module):
        target = layer_of(imported)
        upward = LAYERS.index(target) < LAYERS.index(importer)
        impure = importer == "ops" and target in PURE_FORBIDDEN and module.endswith(PURE_FILES)
        if upward or impure or (importer, target) in NEVER or above_in_its_package(module, imported):
            found.append(f"{module} imports {imported}")
    return found


def above_in_its_package(module: str, imported: str) -> bool:
    """Whether a folder of a package imports one that is listed above it."""
    (package, *one), (other_package, *other) = (
        module.split(".")[1:3] or [""],
        imported.split(".")[1:3] or [""],
    )
    if package != other_package or package not in ORDERS or not one or not other:
        return False
    return ORDERS[package].index(other[0]) < ORDERS[package].index(one[0])


def import_graph() -> dict[str, set[str]]:
    """The modules that each module imports, also inside functions and TYPE_CHECKING."""
    modules = {module_name(path) for path in SOURCES}
    graph: dict[str, set[str]] = {}
    for path in SOURCES:
        name = module_name(path)
        found = set()
        for node in nodes(parse(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tilewright"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                found |= {one if one in modules else str(node.module) for one in names}
        graph[name] = found - {name}
    return graph


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of more than one module that import one another, by way of whichever others."""
    reached = {name: reachable(graph, name) for name in graph}
    found = {
        frozenset(other for other in reached[name] if name in reached.get(other, set())) for name in graph
    }
    return [set(one) for one in found if len(one) > 1]


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Every module that one imports, directly or not."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in graph.get(waiting.pop(), set()) - found:
            found.add(name)
            waiting.append(name)
    return found


def star_imports(tree: ast.AST) -> list[int]:
    return [
        node.lineno
        for node in nodes(tree)
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
    ]


def environment_reads(tree: ast.AST) -> list[int]:
    """Lines that name os.environ or os.getenv, however `os` is called."""
    found = []
    for node in nodes(tree):
        match node:
            case ast.Attribute(attr=name) | ast.alias(name=name) if name in ENVIRONMENT:
                found.append(node.lineno)
            case _:
                continue
    return found


def isa_branches(tree: ast.AST) -> list[int]:
    """Lines where a condition compares something with the name, or the record, of an ISA row."""
    names = {isa.name for isa in ISAS}
    constants = {isa.name.upper() for isa in ISAS}
    found = []
    for node in nodes(tree):
        match node:
            case ast.Compare(left=left, comparators=comparators):
                parts: list[ast.AST] = [left, *comparators]
            case ast.MatchValue(value=value):
                parts = [value]
            case ast.Call(func=ast.Attribute(attr="startswith" | "endswith"), args=arguments):
                parts = list(arguments)
            case _:
                continue
        for leaf in (leaf for part in parts for leaf in ast.walk(part)):
            match leaf:
                case ast.Constant(value=str() as text) if text in names:
                    found.append(leaf.lineno)
                case ast.Name(id=name) | ast.Attribute(attr=name) if name in constants:
                    found.append(leaf.lineno)
                case _:
                    continue
    return found


SOURCES = sorted(SOURCE.rglob("*.py"))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def broken(rule: Callable[[Path], Sequence[object]]) -> dict[str, Sequence[object]]:
    """What a rule finds, by source. One test for all of them: 2,300 tests take 20 s."""
    found = {str(path.relative_to(SOURCE)): rule(path) for path in SOURCES}
    return {name: faults for name, faults in found.items() if faults}


def test_every_folder_and_module_has_a_layer() -> None:
    found = {layer_of(module_name(path)) for path in SOURCES}
    assert found <= set(LAYERS)


def test_every_folder_has_a_place_in_the_order_of_its_package() -> None:
    found = {
        package: {path.stem for path in (SOURCE / package).iterdir() if path.is_dir() or path.suffix == ".py"}
        for package in ORDERS
    }
    unlisted = {
        package: names - {"__init__", "__pycache__", *ORDERS[package]} for package, names in found.items()
    }
    assert not any(unlisted.values()), unlisted


def test_imports_go_downward() -> None:
    assert broken(lambda path: layer_violations(parse(path), module_name(path))) == {}


def test_late_functions_exist() -> None:
    for places in broken(lambda path: late_places(parse(path))).values():
        for place in map(str, places):
            assert callable(Late(place).function), place


def test_imports_make_no_circles() -> None:
    assert circles(import_graph()) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]


def local_imports(node: ast.AST, *, inside: bool = False) -> Iterator[int]:
    """Lines of imports of this package inside functions, one for each module that they name."""
    for child in ast.iter_child_nodes(node):
        if inside and isinstance(child, ast.ImportFrom) and (child.module or "").startswith("tilewright"):
            yield child.lineno
        yield from local_imports(child, inside=inside or isinstance(child, (ast.FunctionDef, ast.Lambda)))


def test_few_imports_inside_functions() -> None:
    found = broken(lambda path: list(local_imports(parse(path))))
    assert sum(map(len, found.values())) <= MOST_LOCAL_IMPORTS, found


def test_no_star_imports() -> None:
    assert broken(lambda path: star_imports(parse(path))) == {}


def locked_properties(tree: ast.AST) -> list[int]:
    """Lines that import the property of functools."""
    return [
        node.lineno
        for node in nodes(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "functools"
        if "cached_property" in {alias.name for alias in node.names}
    ]


def test_properties_have_no_lock() -> None:
    """Those of functools have one up to Python 3.11, which a fork may leave held."""
    assert broken(lambda path: locked_properties(parse(path))) == {}


#: Modules of commands, which run in the main thread of a program of their own.
COMMANDS = ("tools", "aot", "loops/driving", "loops/opt", "ops/einsum/drawn.py")


def free_imports(node: ast.AST, *, inside: bool = False) -> list[int]:
    """Lines of imports in functions that are not under `importing`."""
    found: list[int] = []
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(lineno=line) | ast.ImportFrom(lineno=line) if inside:
                found.append(line)
            case ast.Call(func=ast.Name(id="import_module"), lineno=line) if inside:
                found.append(line)
        gated = isinstance(child, ast.With) and [ast.unparse(item) for item in child.items] == ["importing"]
        if not gated:
            function = isinstance(child, (ast.FunctionDef, ast.Lambda))
            found += free_imports(child, inside=inside or function)
    return found


def test_imports_in_functions_are_gated() -> None:
    """A fork in the middle of one would leave its lock held in the child (`preparing.importing`)."""
    found = broken(lambda path: free_imports(parse(path)))
    assert {name for name in found if not name.startswith(COMMANDS)} == set()


def locks(tree: ast.AST) -> list[int]:
    """Lines that make a lock."""
    made = {f"threading.{name}" for name in ("Lock", "RLock", "Condition", "Semaphore", "Event")}
    return [
        node.lineno for node in nodes(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) in made
    ]


def test_locks_stand_in_one_place() -> None:
    """Where forks know them."""
    assert list(broken(lambda path: locks(parse(path)))) == ["preparing.py"]


#: What a cached function may not make: code, memory and their owners, which `preparing.once` makes one time.
OWNED = ("Linked(", ".compiled(", "create_target_machine(", "create_lljit", "ThreadPool(", "ScratchPool(")


def shared_by_cache(tree: ast.AST) -> list[int]:
    """Lines of functions under a cache of functools whose values own something, or point into it."""
    return [
        node.lineno
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef)
        if any("cache" in ast.unparse(decorator) for decorator in node.decorator_list)
        if any(word in ast.unparse(node) for word in OWNED)
    ]


def test_what_owns_code_is_made_once() -> None:
    """`functools.cache` lets two threads make a value, and frees the one whose address a thread may hold."""
    assert broken(lambda path: shared_by_cache(parse(path))) == {}


def test_environment_is_read_in_settings_only() -> None:
    assert list(broken(lambda path: environment_reads(parse(path)))) == ["settings.py"]


def test_no_branch_on_an_isa_name() -> None:
    found = broken(lambda path: isa_branches(parse(path)))
    assert {
        name: lines for name, lines in found.items() if Path(name).parts[0] not in ("machine", "micro")
    } == {}


def test_first_line_says_the_duty() -> None:
    without = [path for path in SOURCES if not (ast.get_docstring(parse(path)) or "").strip()]
    assert without == []


def error_classes() -> list[type[TilewrightError]]:
    return [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, TilewrightError) and kind is not TilewrightError
    ]


@cache
def unnamed_in_tests() -> set[str]:
    """Every error that no identifier in the tests names, this file aside."""
    here, left = Path(__file__).resolve(), {kind.__name__ for kind in error_classes()}
    for path in sorted(TESTS.rglob("*.py")):
        # A file that has none of these words takes no time to be parsed.
        if path.resolve() == here or left.isdisjoint(re.findall(r"\w+", path.read_text(encoding="utf-8"))):
            continue
        every = nodes(parse(path))
        left -= {node.id for node in every if isinstance(node, ast.Name)}
        left -= {node.attr for node in every if isinstance(node, ast.Attribute)}
    return left


def test_every_error_is_named_in_a_test() -> None:
    assert not unnamed_in_tests(), f"no test names {sorted(unnamed_in_tests())}"


def test_every_error_is_also_a_builtin_one() -> None:
    for kind in error_classes():
        builtin = [base for base in kind.__mro__ if base.__module__ == "builtins"]
        assert set(builtin) - {Exception, BaseException, object}, kind.__name__


# --- the rules themselves, on sources that break them --------------------------------------------


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tilewright.macro.blocking", "from tilewright.micro.tiles.kernel import MicroKernel"),
        ("tilewright.macro.blocking", "import tilewright.llvm.build"),
        ("tilewright.ops.gemm.nest", "from tilewright.micro.tiles.kernel import MicroKernel"),
        ("tilewright.ops.gemm.kernel", "from tilewright.ops.einsum.call import einsum"),
        ("tilewright.loops.nests.nest", "from tilewright.loops.llvm.module import parse_module"),
        ("tilewright.micro.packing.pack", "from tilewright.micro.tiles.kernel import MicroKernel"),
        ("tilewright.llvm.build", "from tilewright.macro import blocking"),
        ("tilewright.spec.problem", "def f():\n    from tilewright.machine.isa import ISAS"),
        ("tilewright.spec.problem", "from ..machine.isa import ISAS"),
        ("tilewright.aot.build", "from tilewright import matmul"),
        ("tilewright.aot.build", "import tilewright"),
        ("tilewright.errors", "from tilewright import settings"),
        ("tilewright.compiler.kernel", 'f = Late("tilewright.calls.kernels:kernel_for")'),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(layer_violations(ast.parse(source), module)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import os\nx = os.environ['A']",
        "import os\nx = os.getenv('A')",
        "from os import environ",
        "import os as system\nsystem.environ.get('A')",
    ],
)
def test_an_environment_read_is_found(source: str) -> None:
    assert environment_reads(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        "if isa.name == 'avx2': pass",
        "x = 1 if machine.isa.name in ('avx512', 'avx2') else 2",
        "match isa.name:\n    case 'neon': pass",
        "if isa is AVX512: pass",
        "if isa.name.startswith('avx2'): pass",
    ],
)
def test_a_branch_on_an_isa_is_found(source: str) -> None:
    assert isa_branches(ast.parse(source))
