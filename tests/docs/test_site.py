"""The documentation as a site: every page is in its navigation, once. `make docs` builds it."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def site():
    """How the site is built; Sphinx, which the tests do not install, is not needed to read it."""
    spec = importlib.util.spec_from_file_location("site_conf", ROOT / "tools" / "site" / "conf.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree(folder: Path) -> list[Path]:
    """The pages below an index, in the order of the navigation."""
    source = [(folder / "README.md").read_text()]
    name = (folder / "README").relative_to(ROOT).as_posix()
    site().add_navigation(None, name, source)
    blocks = re.findall(r"```\{toctree\}\n(?::[^\n]*\n)+\n(.*?)```", source[0], re.DOTALL)
    return [(folder / f"{page}.md").resolve() for block in blocks for page in block.split()]


def test_every_page_is_in_the_navigation_once():
    pages = [*tree(DOCS), *tree(DOCS / "strategies")]
    assert len(pages) == len(set(pages))
    assert set(pages) >= {page for page in DOCS.rglob("*.md") if page != DOCS / "README.md"}
    assert {page.name for page in pages} >= {"upgrade.md", "glossary.md", "CHANGELOG.md"}


def test_what_a_page_fetches_from_elsewhere_is_found():
    conf = site()
    found = conf._FETCHED.search
    assert found('<script src="https://cdn.example/a.js"></script>')
    assert found('<link rel="stylesheet" href="//fonts.example/a.css" />')
    assert found("@import url(https://fonts.example/a.css);")
    assert not found('<link rel="canonical" href="https://docs.example/" />')
    assert not found(
        '<a href="https://docs.example/">there</a><script src="_static/a.js"></script>'
    )
