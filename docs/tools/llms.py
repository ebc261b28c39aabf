"""Writes llms.txt (llmstxt.org): the pages of the site with a sentence each, for programs that read it."""

from __future__ import annotations

import re
from pathlib import Path

#: Sections of the site in the order of its contents: the folders of their indexes.
SECTIONS = ("start", "howto", "examples", "understand", "building", "reference")
_TOCTREE = re.compile(r"```\{toctree\}(.*?)```", re.DOTALL)


def entries(page: Path) -> list[Path]:
    """The pages that the contents of a page list, in their order."""
    found = []
    for body in _TOCTREE.findall(page.read_text(encoding="utf-8")):
        names = [
            line.strip() for line in body.splitlines() if line.strip() and not line.strip().startswith(":")
        ]
        for name in names:
            target = (re.search(r"<(.+)>", name) or re.match(r"(.+)", name))[1]  # type: ignore[index]
            if "*" in target:
                found += sorted(one for one in page.parent.glob(f"{target}.md") if one != page)
            else:
                found.append((page.parent / f"{target}.md").resolve())
    return found


def title_and_sentence(page: Path) -> tuple[str, str]:
    """The heading of a page and the first sentence below it, without markup."""
    text = re.sub(r"\A---\n.*?\n---\n", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    title = heading[1] if heading else page.stem
    for paragraph in text.split("\n\n"):
        plain = " ".join(paragraph.split())
        if plain and plain[0] not in "#`:|<!-$>{" and not plain.startswith("!["):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain).replace("`", "").replace("**", "")
            return title.replace("`", ""), re.split(r"(?<=[.:]) (?=[A-Z])", plain)[0].rstrip(":")
    return title.replace("`", ""), ""


def text_of(docs: Path, base: str, suffix: str = ".html") -> str:
    """The whole file: name, what the project is, then each section with links to its pages."""
    about = title_and_sentence(docs / "index.md")[1]
    lines = [
        "# Tilewright",
        "",
        f"> {about}",
        "",
        "Every public function, class, error, variable and command is in the reference.",
    ]
    listed = {docs / "index.md"}
    for folder in SECTIONS:
        index = docs / folder / "index.md"
        lines += ["", f"## {title_and_sentence(index)[0]}", ""]
        for page in entries(index):
            if page in listed or not page.exists():
                continue
            listed.add(page)
            title, sentence = title_and_sentence(page)
            place = page.relative_to(docs).with_suffix(suffix).as_posix()
            lines.append(f"- [{title}]({base}{place})" + (f": {sentence}" if sentence else ""))
    for page in entries(docs / "index.md"):
        if page not in listed and page.parent == docs:
            title, sentence = title_and_sentence(page)
            lines.append(f"- [{title}]({base}{page.with_suffix(suffix).name}): {sentence}")
    return "\n".join(lines) + "\n"
