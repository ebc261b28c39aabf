"""The site: `make docs` builds it from the pages of this folder and the docstrings of the package."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "tools")]
# Pages with pictures run in processes of their own, which import the same tree.
os.environ["PYTHONPATH"] = os.pathsep.join((*sys.path[:2], os.environ.get("PYTHONPATH", "")))

# Kernels of notebooks read no settings of the user: pictures are vectors, and nothing is logged.
_IPYTHON = Path(tempfile.mkdtemp(prefix="tilewright-site-"))
atexit.register(shutil.rmtree, _IPYTHON, ignore_errors=True)
(_IPYTHON / "profile_default").mkdir()
(_IPYTHON / "profile_default" / "ipython_kernel_config.py").write_text(
    'c.IPKernelApp.log_level = 40\nc.InlineBackend.figure_formats = {"svg"}\n', encoding="utf-8"
)
os.environ["IPYTHONDIR"] = str(_IPYTHON)

import card  # noqa: E402 - in tools
import llms  # noqa: E402
import reference_pages  # noqa: E402

import tilewright as tw  # noqa: E402 - from this tree

_PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Where the site is published: social cards and llms.txt need whole addresses.
_ADDRESS = os.environ.get("TILEWRIGHT_SITE", _PROJECT.get("urls", {}).get("Documentation", ""))

project, author = "Tilewright", "Tilewright's authors"
copyright = "Tilewright's authors, Apache-2.0"  # noqa: A001 - Sphinx's name
version = release = tw.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinxext.opengraph",
]
exclude_patterns = ["_build", "**/__pycache__", "decisions/README.md", "**.ipynb_checkpoints"]
suppress_warnings = ["ref.python"]  # `bytes` in a docstring is the built-in type, not one of the properties
templates_path = ["_templates"]
html_theme, html_title = "pydata_sphinx_theme", "Tilewright"
html_baseurl = f"{_ADDRESS.rstrip('/')}/{version}/" if _ADDRESS else ""
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navbar_align": "left",
    "navbar_start": ["navbar-logo", "version-switcher"],
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "switcher": {"json_url": "../versions.json", "version_match": version},
    "check_switcher": False,  # versions.json is written when this version has been built
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_show_sourcelink = False
smartquotes_action = "q"  # `--` is the beginning of an option, not a dash
html_sidebars = {"compare": [], "performance": []}  # pages without others beside them
html_context = {"default_mode": "auto"}

ogp_site_url, ogp_image, ogp_type = html_baseurl, "_static/card.png", "website"
ogp_image_alt = "Tilewright: matrix products close to your CPU's peak"
ogp_custom_meta_tags = ['<meta name="twitter:card" content="summary_large_image">']

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode, nb_execution_timeout, nb_execution_raise_on_error = "force", 180, True
nb_merge_streams, nb_execution_in_temp = True, True

napoleon_custom_sections = [("Raises", "params_style")]  # lines that name several errors
default_role = "literal"  # docstrings write `name` for code
napoleon_google_docstring, napoleon_numpy_docstring = False, True
napoleon_use_param, napoleon_use_rtype, napoleon_use_ivar = False, False, True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings give shapes and dtypes, which say more


def _write_generated(app: Any) -> None:  # noqa: ARG001 - Sphinx's event
    """The reference, made of the package, and the picture that other sites show beside a link."""
    reference_pages.write(HERE / "api")
    card.draw(HERE / "_static" / "card.png")


def _write_llms(app: Any, failure: Exception | None) -> None:
    """The list of pages for programs, beside the first page."""
    if failure is None and app.builder.name == "html":
        Path(app.outdir, "llms.txt").write_text(llms.text_of(HERE, html_baseurl), encoding="utf-8")


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


def _unbroken_percentages(app: Any, docname: str, source: list[str]) -> None:  # noqa: ARG001 - Sphinx's event
    """In rows of tables, a number and its percent sign stay on one line."""
    source[0] = re.sub(
        r"^\|.*$",
        lambda row: re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", row[0]),
        source[0],
        flags=re.MULTILINE,
    )


def setup(app: Any) -> None:
    """Connects the functions above to the build."""
    app.connect("builder-inited", _write_generated)
    app.connect("build-finished", _write_llms)
    app.connect("source-read", _outside_links)
    app.connect("source-read", _unbroken_percentages)
