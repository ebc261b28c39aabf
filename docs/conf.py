"""The site: `make docs` builds it from the pages of this folder and the docstrings of the package."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import tilewright as tw  # noqa: E402 - from this tree
from tilewright import errors  # noqa: E402

project, author = "Tilewright", "Tilewright's authors"
copyright = "Tilewright's authors, Apache-2.0"  # noqa: A001 - Sphinx's name
version = release = tw.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
]
exclude_patterns = ["_build", "**/__pycache__", "decisions/README.md"]  # the list of the latter is made
html_theme, html_title = "pydata_sphinx_theme", "Tilewright"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

napoleon_custom_sections = [("Raises", "params_style")]  # lines that name several errors
default_role = "literal"  # docstrings write `name` for code
napoleon_google_docstring, napoleon_numpy_docstring = False, True
napoleon_use_param, napoleon_use_rtype, napoleon_use_ivar = False, False, True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings give shapes and dtypes, which say more


def _public(kind: str) -> list[str]:
    """Public names that are functions, or classes."""
    test = inspect.isclass if kind == "class" else (lambda one: callable(one) and not inspect.isclass(one))
    return [name for name in sorted(tw.__all__, key=str.lower) if test(getattr(tw, name))]


def _write_api(app: Any) -> None:  # noqa: ARG001 - Sphinx's event
    """Pages that list every public function, class and error, made of the package itself."""

    def write(name: str, title: str, words: str, lines: list[str]) -> None:
        body = "\n".join(("```{eval-rst}", *lines, "```"))
        text = f"# {title}\n\n{words}\n\n{body}\n"
        path = HERE / "api" / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    functions = [f".. autofunction:: tilewright.{name}\n" for name in _public("function")]
    write("functions", "Functions", "`import tilewright as tw`; in alphabetical order.", functions)
    own = [name for name in _public("class") if name != "TilewrightError"]
    classes = [f".. autoclass:: tilewright.{name}\n   :members:\n" for name in own]
    write("classes", "Classes", "Records of problems, kernels, graphs, packed matrices.", classes)
    own = [name for name in sorted(dir(errors)) if inspect.isclass(getattr(errors, name))]
    failures = [name for name in own if issubclass(getattr(errors, name), Exception)]
    lines = [f".. autoexception:: tilewright.errors.{name}\n   :no-members:\n" for name in failures]
    write("errors", "Errors", "Every failure that a caller can see, one class for each cause.", lines)


def _outside_links(app: Any, docname: str, source: list[str]) -> None:  # noqa: ARG001 - Sphinx's event
    """Links to files of the repository that the site does not have become code."""
    folder = (HERE / docname).parent

    def changed(match: re.Match[str]) -> str:
        words, target = match.groups()
        path = target.partition("#")[0]
        if "://" in target or not path or path.endswith((".png", ".svg")):
            return match[0]
        place = (folder / path).resolve()
        inside = place.is_relative_to(HERE) and place.suffix == ".md" and place.name != "README.md"
        return match[0] if inside else words

    source[0] = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", changed, source[0])


def setup(app: Any) -> None:
    """Connects the functions above to the build."""
    app.connect("builder-inited", _write_api)
    app.connect("source-read", _outside_links)
