"""The documentation as a site: the pages of the repository as they are, by Sphinx. See `make docs`.

The navigation is that of docs/README.md, and the site is complete without a network.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
INDEX = "docs/README"

project = "Firnline"
author = "The Firnline authors"
release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_parser"]
include_patterns = ["docs/**.md", "[A-Z]*.md"]
exclude_patterns = ["README.md"]
root_doc = INDEX
nitpicky = True
myst_heading_anchors = 4  # made as GitHub makes them
html_theme = "furo"
html_title = "Firnline"
html_favicon = "../../src/firnline/server/page/static/favicon.svg"
html_extra_path = ["static"]
html_copy_source = False
html_show_sphinx = False

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([\w./-]+)\.md(?:#[\w-]+)?\)")
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//"
    r"|<link\b(?![^>]*rel=\"canonical\")[^>]*\bhref=\"(?:https?:)?//"
    r"|@import\s+(?:url\()?[\"']?(?:https?:)?//|url\([\"']?(?:https?:)?//"
)


def sections(index: str) -> Iterator[tuple[str, list[str]]]:
    """The headings of the index, each with the pages it is the first to lead to."""
    seen: set[str] = set()
    _, *parts = _HEADING.split(index)
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        pages = [name for name in dict.fromkeys(_LINK.findall(text)) if name not in seen]
        seen.update(pages)
        yield title, pages


def add_navigation(_app: object, name: str, source: list[str]) -> None:
    """Below an index, the trees that Sphinx makes its navigation from."""
    if name == INDEX:
        trees = [(f":caption: {title}\n", pages) for title, pages in sections(source[0])]
    elif name.endswith("/README"):  # of a folder: the pages in it that it leads to
        pages = [page for page in dict.fromkeys(_LINK.findall(source[0])) if "/" not in page]
        trees = [("", pages)]
    else:
        return
    for caption, pages in trees:
        source[0] += f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```\n"


def check_offline(app: object, failure: Exception | None) -> None:
    """No page may fetch a font, a script or a picture from another place."""
    if failure is not None:
        return
    for file in Path(str(app.outdir)).rglob("*"):  # type: ignore[attr-defined]
        if file.suffix in {".html", ".css"} and (found := _FETCHED.search(file.read_text())):
            raise ValueError(f"{file} fetches from elsewhere: {found[0]}")


def setup(app: object) -> None:
    """Sphinx calls this."""
    app.connect("source-read", add_navigation)  # type: ignore[attr-defined]
    app.connect("build-finished", check_offline)  # type: ignore[attr-defined]
