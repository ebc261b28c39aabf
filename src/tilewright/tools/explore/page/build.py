"""Pages as text: the record, the style, the script and D3 in one HTML file."""

from __future__ import annotations

import base64
import gzip
import json
import webbrowser
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from tilewright import __version__
from tilewright.errors import OutputNotWritable
from tilewright.records import dataclass

#: The files of the script, in their order: the frame, then a file for each panel, in the order of the page.
SCRIPTS = (
    "core.js",
    "graph.js",
    "problem.js",
    "blocking.js",
    "layout.js",
    "walk.js",
    "code.js",
    "inner.js",
    "costs.js",
    "measured.js",
)


@cache
def _static(name: str) -> str:
    """A file beside this one."""
    return files("tilewright.tools.explore.page").joinpath("static", name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Exploration:
    """A page about a kernel or a graph, on one target or several.

    Attributes
    ----------
    title : what the page is about.
    record : everything that it shows, as JSON values.

    Examples
    --------
    >>> import tilewright as tw
    >>> page = tw.compile(tw.BatchReduceGemm(16, 6, 64)).explore()
    >>> len(page.html) < 2_000_000
    True
    """

    title: str
    record: Mapping[str, Any]

    def __repr__(self) -> str:
        names = ", ".join(target["target"]["name"] for target in self.record["targets"])
        return f"<Exploration of {self.title} for {names}: save(path) or show()>"

    @property
    def html(self) -> str:
        """The page as one HTML text that loads nothing."""
        packed = gzip.compress(json.dumps(self.record, separators=(",", ":")).encode(), mtime=0)
        parts = {
            "title": escape(self.title),
            "style": _static("page.css"),
            "version": escape(__version__),
            "record": base64.b64encode(packed).decode(),
            "d3": _static("d3.min.js"),
            "script": "\n".join(_static(name) for name in SCRIPTS).replace('"use strict";\n', ""),
        }
        head, *rest = _static("page.html").split("{{")
        found = [head]
        for part in rest:
            name, _, text = part.partition("}}")
            found += [parts[name], text]
        return "".join(found)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file.

        Raises
        ------
        OutputNotWritable
        """
        target = Path(path)
        try:
            target.write_text(self.html, encoding="utf-8")
        except OSError as error:
            raise OutputNotWritable(path=str(path), reason=error.strerror or str(error)) from error
        return target

    def show(self, path: str | Path = "kernel.html") -> Path:
        """Write the page to a file and open it in the browser."""
        target = self.save(path)
        webbrowser.open(target.resolve().as_uri())
        return target

    def _repr_html_(self) -> str:
        """What notebooks show: the page in a frame of its own."""
        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(self.html)}" '
            'style="width: 100%; height: 800px; border: 0"></iframe>'
        )


def exploration(title: str, targets: Sequence[Mapping[str, Any]], **beside: Any) -> Exploration:
    """The page of records of one problem on several targets."""
    return Exploration(title, {"title": title, "targets": list(targets), **beside})
