"""The documentation is in plain words."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED = re.compile(r"\b(?:owed|nobody|somebody|whoever|anew|told of|beside)\b", re.IGNORECASE)
OLD_MODULES = re.compile(
    r"`(?:firnline[./])?(?:scribe|recaller|holding|builder|assigner|looping|verifying|drafting"
    r"|proof|assembly|lineage\.py)(?:\.py)?`"
)
BRITISH = re.compile(
    r"\b(?:\w+(?:ummaris|ecognis|rganis|ynchronis|anitis|pologis|erialis)(?:e|es|ed|ing|er|ation)"
    r"|neighbours?|behaviours?|licences?|colours?|metres?|misspelt)\b",
    re.IGNORECASE,
)
PAGES = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "clients").glob("*/README.md")}
)
INLINE_CODE = re.compile(r"`[^`\n]+`")
CODE_TEXT = re.compile(r"#.*|\"[^\"]* [^\"]*\"|'[^']* [^']*'")
"""What people read of a line of code: its comment and its texts; a key is one word."""
OF_THE_LIBRARY = re.compile(r"\b(?:entry|entries|folds?|folded|folding)\b", re.IGNORECASE)
"""Users read of messages and digests; entries and folds are names in the library."""
FOR_DEVELOPERS = ("ARCHITECTURE.md", "CHANGELOG.md", "decisions.md", "store.md", "names.md")
READER = re.compile(r"\b(?:you|your|use it for|pick)\b", re.IGNORECASE)
GUIDES = [page for page in PAGES if ROOT / "docs" in page.parents]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_in_plain_american_english(page):
    """Names of fields in inline code, such as `beside`, are no prose; blocks of code are read."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        prose = INLINE_CODE.sub("", line)
        found = BANNED.findall(prose) + BRITISH.findall(prose)
        assert not found, f"{page.name}, line {number}: {found}"


def _prose_of(page: Path) -> Iterator[tuple[int, str]]:
    """The lines without code; of code, what is written for people."""
    is_code = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif is_code:
            yield number, " ".join(CODE_TEXT.findall(line))
        else:
            yield number, INLINE_CODE.sub("", line)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in FOR_DEVELOPERS],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_page_speaks_of_messages_and_digests(page):
    for number, prose in _prose_of(page):
        found = OF_THE_LIBRARY.findall(prose)
        assert not found, f"{page.name}, line {number}: {found}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_modules_as_they_are(page):
    if page.name != "CHANGELOG.md":
        assert not OLD_MODULES.findall(page.read_text())


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_starts_with_what_its_reader_wants(page):
    _, first, _ = page.read_text().split("\n\n", 2)
    assert READER.search(first), first


def test_the_index_leads_to_every_page():
    index = (ROOT / "docs" / "README.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"({page.name}" in index, page.name


def test_the_glossary_is_one_screen():
    assert len((ROOT / "docs" / "glossary.md").read_text().splitlines()) <= 40
