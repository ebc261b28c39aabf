"""Reference pages made of the package itself: functions, classes, errors, variables and commands."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from typer.main import get_command

import tilewright as tw
from tilewright import errors
from tilewright.settings import VARIABLES
from tilewright.tools.cli import app

#: Title of a section: the folders of `ops`, or modules, whose public functions it lists.
SECTIONS = {
    "Products": ("ops.matmul", "ops.einsum.products", "ops.triangular", "ops.mmt4d", "ops.transpose"),
    "Contractions": ("ops.einsum", "ops.contraction"),
    "Weights and linear layers": ("ops.linear", "ops.quantized", "ops.packing", "weights"),
    "Attention": ("ops.attention", "ops.rotary"),
    "Rows, reductions and elements": (
        "ops.rows",
        "ops.elementwise",
        "ops.binary",
        "ops.embedding",
        "ops.sampling",
    ),
    "Models": ("graph",),
    "Kernels and explanations": ("calls", "ops.explain", "ops.contraction.public"),
    "Programs, threads and machines": ("installation", "loops", "machine", "threads"),
}
#: Variables that are read elsewhere than in `settings.py`, because nothing of the package is imported yet.
OUTSIDE_SETTINGS = (
    (
        "TILEWRIGHT_INSTALL",
        "`tw.install()` runs after the first import of NumPy ([set-up](../reference/install.md))",
    ),
)
#: Packages beside the main one: what must be installed to import them, and their page in this site.
PACKAGES = {
    "tilewright.onnx": ("", "onnx"),
    "tilewright.array_api": ("", "array_api"),
    "tilewright.torch": ("torch", "pytorch"),
    "tilewright.jax": ("jax", "jax"),
    "tilewright.dask": ("dask", "dask"),
    "tilewright.einops": ("einops", "array_api"),
}


def public(is_kind: Callable[[Any], bool]) -> list[str]:
    """Public names of the main package whose objects are of a kind, without regard to case."""
    return [name for name in sorted(tw.__all__, key=str.lower) if is_kind(getattr(tw, name))]


def public_functions() -> list[str]:
    """Public callables that are not classes."""
    return public(lambda one: callable(one) and not inspect.isclass(one))


def public_classes() -> list[str]:
    """Public classes, without the base class of errors, which is on their page."""
    return [name for name in public(inspect.isclass) if name != "TilewrightError"]


def error_classes() -> list[str]:
    """Every class of `tilewright.errors` that is an exception."""
    found = {name: getattr(errors, name) for name in dir(errors)}
    return [name for name, one in found.items() if inspect.isclass(one) and issubclass(one, Exception)]


def package_functions(module: Any) -> list[str]:
    """The public names of a package beside the main one, as its `__all__` lists them."""
    return sorted(name for name in getattr(module, "__all__", ()) if callable(getattr(module, name)))


def section_of(name: str) -> str:
    """The section of a function: that with the longest path that its module begins with, or the last."""
    home = tw._HOMES[name].removeprefix("tilewright.")  # noqa: SLF001 - the table of the package
    matches = [
        (len(path), title)
        for title, paths in SECTIONS.items()
        for path in paths
        if f"{home}.".startswith(f"{path}.")
    ]
    return max(matches)[1] if matches else list(SECTIONS)[-1]


def first_sentence(text: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())


def cell(text: str) -> str:
    """Text inside a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def directives(lines: list[str]) -> list[str]:
    """Lines of reStructuredText in a page of Markdown."""
    return ["```{eval-rst}", *lines, "```", ""]


def functions_page() -> Iterator[str]:
    """Functions by subject."""
    yield "# Functions\n"
    yield "`import tilewright as tw`. One line for each: the [overview](../reference/overview.md).\n"
    by_section: dict[str, list[str]] = {title: [] for title in SECTIONS}
    for name in public_functions():
        by_section[section_of(name)].append(name)
    for title, names in by_section.items():
        yield f"## {title}\n"
        yield from directives([f".. autofunction:: tilewright.{name}\n" for name in names])


def classes_page() -> Iterator[str]:
    """Classes in alphabetical order."""
    yield "# Classes\n"
    yield "Problems (`tw.Gemm`, `tw.Attention`, ...), kernels, graphs, packed matrices and epilogue steps.\n"
    for name in public_classes():
        yield f"## {name}\n"
        yield from directives([f".. autoclass:: tilewright.{name}\n   :members:\n"])


def packages_page() -> Iterator[str]:
    """Functions of the packages beside the main one."""
    yield "# Other packages\n"
    yield "Modules for other libraries. Nothing imports them but you.\n"
    for name, (needs, page) in PACKAGES.items():
        yield f"## {name}\n"
        yield f"Guide: [](../reference/{page}.md).\n"
        if needs and find_spec(needs) is None:
            yield f"Generated where `{needs}` is installed (`pip install 'tilewright[{needs}]'`).\n"
            continue
        module = importlib.import_module(name)
        lines = []
        for one in package_functions(module):
            kind = "autoclass" if inspect.isclass(getattr(module, one)) else "autofunction"
            lines.append(f".. {kind}:: {name}.{one}\n")
        yield from directives(lines)


def errors_by_file() -> dict[str, list[str]]:
    """Names of errors by the subject of the file that defines them, which its docstring says."""
    folder, known = Path(errors.__file__).parent, set(error_classes())
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name in known]
        words = first_sentence(ast.get_docstring(tree)).rstrip(".")
        subject = re.sub(r"^(Warnings and errors|Errors) (of|about) ", "", words).partition(": ")[0]
        if names:
            found[f"{subject[:1].upper()}{subject[1:]}"] = sorted(names)
    return found


def errors_page() -> Iterator[str]:
    """Every error with its message, by the file that defines it."""
    yield "# Errors\n"
    yield (
        "One class for each cause, in `tilewright.errors`. All derive from `tw.TilewrightError` and from the "
        "built-in class that fits, so `except ValueError` works too. Words in braces are filled in.\n"
    )
    for subject, names in errors_by_file().items():
        yield f"## {subject}\n"
        lines = []
        for name in names:
            kind = getattr(errors, name)
            bases = [base.__name__ for base in kind.__mro__ if base.__module__ == "builtins"][:1]
            lines += [f".. autoexception:: tilewright.errors.{name}", "   :no-members:", ""]
            if bases and bases[0] not in ("Exception", "object"):
                lines += [f"   Also a ``{bases[0]}``.", ""]
            if message := getattr(kind, "message", ""):
                lines += ["   .. code-block:: text", "      :class: message", ""]
                lines += [f"      {' '.join(message.split())}", ""]
        yield from directives(lines)


def variables_page() -> Iterator[str]:
    """Every environment variable that is read."""
    yield "# Environment variables\n"
    yield (
        "Read whenever they are needed, so a program may change them. Arguments of a call win over them. "
        "`tilewright info` shows the value of each, `tw.show_config()` those that are set.\n"
    )
    yield "| variable | meaning |\n|---|---|"
    for one in VARIABLES:
        yield f"| `{one.name}` | {cell(one.meaning)} |"
    for name, meaning in OUTSIDE_SETTINGS:
        yield f"| `{name}` | {cell(meaning)} |"
    yield ""
    yield (
        "Sizes are bytes, or have a suffix: `32768`, `32K`, `32KiB`, `1M`. Switches are 1, true, yes, on or "
        "0, false, no, off. Any other value raises [`InvalidSetting`](errors.md). An empty variable counts "
        "as unset.\n"
    )
    yield (
        "Libraries that this package uses read `NO_COLOR` and `FORCE_COLOR` "
        "([command line](../reference/exit-codes.md)); NumPy's BLAS reads `OPENBLAS_CORETYPE`, which "
        "`tilewright bench` varies to find the fastest peer.\n"
    )


def commands_of(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """A command and those below it, with the words that call them."""
    yield name, command
    for inner in command.list_commands(None) if hasattr(command, "list_commands") else ():
        found = command.get_command(None, inner)
        if found is not None and not found.hidden:
            yield from commands_of(found, f"{name} {inner}")


def default_of(parameter: Any) -> str:
    """The default of an option, where it says anything."""
    value = parameter.default
    shown = value is not None and value is not False and not callable(value) and value not in ((), [], "")
    return f" Default: `{value}`." if shown and not parameter.required else ""


def commands_page() -> Iterator[str]:
    """Every command of the command line with its options."""
    yield "# Commands\n"
    yield "`tilewright COMMAND`, or `python -m tilewright COMMAND`. `--help` of each prints the same.\n"
    for name, command in commands_of(get_command(app), "tilewright"):
        if name == "tilewright":
            continue
        yield f"{'##' if name.count(' ') == 1 else '###'} {name}\n"
        yield inspect.cleandoc(command.help or "").replace("\\b", "").replace("\b", "") + "\n"
        rows = []
        for one in command.params:
            if one.param_type_name == "argument":
                rows.append((f"`{one.name.upper()}`", getattr(one, "help", "") or ""))
            elif not one.hidden and one.name != "help":
                rows.append((", ".join(f"`{o}`" for o in one.opts), (one.help or "") + default_of(one)))
        if rows:
            yield "| argument or option | meaning |\n|---|---|"
            yield from (f"| {option} | {cell(words)} |" for option, words in rows)
            yield ""


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "functions": functions_page,
    "classes": classes_page,
    "packages": packages_page,
    "errors": errors_page,
    "variables": variables_page,
    "commands": commands_page,
}


def write(folder: Path) -> None:
    """Writes the pages; those that are the same stay, so that Sphinx does not read them again."""
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        path, text = folder / f"{name}.md", "\n".join(page()) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
