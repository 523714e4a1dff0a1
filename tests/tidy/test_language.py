"""Language is a test: names of modules and classes, words of texts, what the edges reach for."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from firnline.protocols import Store

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "firnline"
FILES = sorted(PACKAGE.rglob("*.py"))
STATIC = sorted(
    path
    for path in (PACKAGE / "server" / "page" / "static").iterdir()
    if path.suffix in (".html", ".js", ".css")
)


TYPESCRIPT = sorted((ROOT / "clients" / "typescript" / "src").glob("*.ts"))


def _name(path: Path) -> str:
    return str(path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT))


# -- modules ----------------------------------------------------------------------------------

TERMS = {"embedding", "paging", "testing", "pending", "layered", "rolling"}
"""Words with the ending of a gerund or a participle that are the usual terms."""
PARTICIPLES = {"again", "found", "given", "held", "kept", "known", "made", "said", "shown", "told"}
"""Words without such an ending that are no names of modules either."""


def test_a_module_is_named_by_a_noun_or_a_verb():
    for path in FILES:
        name = path.parent.name if path.stem == "__init__" else path.stem
        word = name.rpartition("_")[2]
        dialect = word in PARTICIPLES or re.fullmatch(r"\w{3,}(ing|ed)", word)
        assert word in TERMS or not dialect, _name(path)


# -- classes ----------------------------------------------------------------------------------

WIRE = ("client/values.py",)
WIRE_TWINS = {"Context", "Lineage", "Section", "Turn"}
"""Values as they are sent, under the names of the values."""
FACES = {"Memory", "Client", "TurnOptions"}
"""Classes with a twin of the same name: synchronous, or the client's."""


def test_a_class_name_occurs_once():
    places: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            is_twin = _name(path) in WIRE and getattr(node, "name", "") in WIRE_TWINS
            if isinstance(node, ast.ClassDef) and not is_twin:
                places[node.name].append(_name(path))
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in FACES} == {}


# -- words ------------------------------------------------------------------------------------

WORDS = r"\b(?:owed|nobody|somebody|whoever|anew|told of|beside)\b"
ALONE = r"\A(?:nobody|somebody|whoever|anew)\Z"
PROSE = re.compile(
    rf"(?<=\w[ ,;]){WORDS}|(?<=[,;] ){WORDS}|{WORDS}(?=[,;]? \w)|{ALONE}", re.IGNORECASE
)
"""One of these words next to another word, or alone, if no field has its name."""
DATA = ("language/lexicon.py", "digest/prompts.py", "digest/values.py")
"""Lists of words that people use, and prompts."""
SQL = re.compile(r"(SELECT|INSERT|DELETE|UPDATE|CREATE)\b")
"""Statements: names of tables and columns are stored, so they stay."""


def _texts(path: Path) -> Iterator[str]:
    """The strings of a module, a static file without its comments, or all of a .ts file."""
    text = path.read_text()
    if path.suffix == ".ts":  # comments are what an editor shows
        yield text
    elif path.suffix != ".py":
        yield re.sub(r"/\*.*?\*/|(?<![:\w])//[^\n]*", " ", text, flags=re.DOTALL)
    else:
        yield from _strings(ast.parse(text))


def _strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and not SQL.match(node.value)
        ):
            yield node.value


def _findings(path: Path) -> list[str]:
    return [
        " ".join(text[max(found.start() - 40, 0) : found.end() + 40].split())
        for text in _texts(path)
        for found in PROSE.finditer(text)
    ]


def test_texts_are_plain_english():
    checked = [path for path in (*FILES, *STATIC, *TYPESCRIPT) if not _name(path).startswith(DATA)]
    assert {_name(path): found for path in checked if (found := _findings(path))} == {}


OF_THE_LIBRARY = re.compile(r"\b(?:entr(?:y|ies)|folds?|folded|folding)\b(?!_)", re.IGNORECASE)
"""Users read of messages and digests; entries and folds are names in the library."""
DESCRIBED = "server/rest/"
"""Where docstrings become descriptions of the API."""
CODE = re.compile(
    r"[\w.]+|entry \(.*|.*\b(?:SELECT|INSERT|FROM|CREATE|DROP|WHERE)\b.*|\{.*\n", re.DOTALL
)
"""Keys, statements of SQL, and examples of files."""
INLINE_CODE = re.compile(r"`[^`\n]+`")
WORD_RULES = ("language/", *DATA)
"""Modules that fold words: a term of its own."""


def _docstrings(tree: ast.AST) -> set[int]:
    return {
        id(first.value)
        for node in ast.walk(tree)
        if isinstance(body := getattr(node, "body", None), list)
        for first in body
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    }


def _read_by_users(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    left_out = set() if _name(path).startswith(DESCRIBED) else _docstrings(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in left_out:
            continue
        if isinstance(text := node.value, str) and not CODE.fullmatch(text):
            yield INLINE_CODE.sub("", text)


IN_A_SCRIPT = re.compile(
    r"(?:[>'`\"}] ?|\b(?!const\b|let\b|of\b|in\b|return\b)[A-Za-z]+ )(?i:entry|entries|folds?)"
    r"(?:[<'`\"]|\.\W| (?!of\b|in\b|=|>|&|\||\?|:|-|\+)[\w$<])"
)
"""One of these words in a text of a script, rather than the name of a variable."""


def test_users_read_of_messages_and_digests():
    found = {
        _name(path): [text for text in _read_by_users(path) if OF_THE_LIBRARY.search(text)]
        for path in FILES
        if not _name(path).startswith(WORD_RULES)
    }
    found |= {_name(path): IN_A_SCRIPT.findall("".join(_texts(path))) for path in STATIC}
    assert {name: texts for name, texts in found.items() if texts} == {}


# -- edges ------------------------------------------------------------------------------------

EDGES = ("adapters", "client", "mcp", "server", "cli")
OPENS = {"server/app.py", "server/serve.py", "cli/keys.py", "cli/maintenance.py"}
"""Edges that open a store: for the memories of a server, its API keys, or to migrate it."""
OWNS = {"server/tenants.py"}
"""Edges that hold a store: to share it among memories, and to open and close it."""
STORE_METHODS = {name for name in vars(Store) if not name.startswith("_")} - {"open", "close"}


def _names_used(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"import {alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value).rpartition(".")[2].strip("_")
            yield node.lineno, f"{owner}.{node.attr.strip('_')}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "attrgetter"):
            given = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            yield from ((node.lineno, f"getattr.{str(name).strip('_')}") for name in given)


def test_edges_use_the_memory_not_its_store():
    """Neither `memory.store`, nor a method of a store, nor a parameter of its type."""
    for path in FILES:
        if not (edge := _name(path)).startswith(EDGES) or edge in OWNS:
            continue
        banned = {f"store.{method}" for method in STORE_METHODS} | {
            "import Store",
            "memory.store",
            "tenants.store",
            "getattr.store",
        }
        banned |= set() if edge in OPENS else {"import open_store"}
        for line, used in _names_used(ast.parse(path.read_text())):
            assert used not in banned, f"{edge}, line {line}: {used}"
