"""Files beside the folders of versions: versions.json for the switcher, index.html, and llms.txt at the root.

    python docs/tools/versions.py build/site

A site has one folder for each version (`0.1.0/`, `0.2.0/`); the newest is the one that index.html opens.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

_VERSION = re.compile(r"\d+(\.\d+)*")


def folders(site: Path) -> list[str]:
    """The versions that have been built, newest first."""
    names = [
        path.name for path in site.iterdir() if _VERSION.match(path.name) and (path / "index.html").exists()
    ]
    return sorted(names, key=lambda name: [int(number) for number in re.findall(r"\d+", name)], reverse=True)


def write(site: Path) -> None:
    """Writes the files; addresses are relative, so the site works at any place."""
    versions = folders(site)
    newest = versions[0]
    rows = [
        {"version": name, "name": f"{name} (newest)" if name == newest else name, "url": f"../{name}/"}
        | ({"preferred": True} if name == newest else {})
        for name in versions
    ]
    (site / "versions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Tilewright</title>'
        f'<meta http-equiv="refresh" content="0; url={newest}/index.html">'
        f'<a href="{newest}/index.html">Tilewright {newest}</a></html>\n'
    )
    (site / "index.html").write_text(page, encoding="utf-8")
    shutil.copy(site / newest / "llms.txt", site / "llms.txt")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
