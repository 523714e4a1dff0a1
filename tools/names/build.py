"""Writes docs/names.md, the table of every public name: ``python tools/names/build.py``.

It reads the sources and imports nothing, so frameworks need not be installed. The description of a
name is the first line of its docstring.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
PAGE = ROOT / "docs" / "names.md"
ADAPTERS = ("langchain", "openai_agents", "pydantic_ai", "llamaindex", "agent_framework", "adk")
HEADING = """# Every public name

You want to look up a name of the library. This page is generated from the sources by
`python tools/names/build.py`, and a test checks that it is current. Names that
are not listed may change without notice. In signatures, parameters after `*` are keyword-only.
"""
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Defined: TypeAlias = Function | ast.ClassDef


class Row(NamedTuple):
    """A name and its description."""

    name: str
    what: str


@cache
def tree(module: str) -> ast.Module:
    """A module's source."""
    path = SOURCES.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text())


def first_line(node: ast.Module | Defined) -> str:
    """The first line of a docstring."""
    return (ast.get_docstring(node) or "").partition("\n")[0]


def exports_of(module: str) -> list[str]:
    """The names in ``__all__``."""
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise LookupError(f"{module} has no __all__")


def find(module: str, name: str) -> Row:
    """The name where it is defined, followed through imports."""
    body = list(tree(module).body)
    for node in ast.walk(tree(module)):  # including imports for types only
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            origin = str(node.module)
            inner = SOURCES.joinpath(*origin.split("."), f"{name}.py")
            package = SOURCES.joinpath(*origin.split("."), name)
            if inner.exists() or package.is_dir():
                return Row(name, first_line(tree(f"{origin}.{name}")))
            return find(origin, name)
    for at, node in enumerate(body):
        if isinstance(node, Defined) and node.name == name:
            return Row(_signature(node), first_line(node))
        if name in _assigned_names(node):
            return Row(name, _description_after(body, at))
    raise LookupError(f"{module} has no {name}")


def _assigned_names(node: ast.stmt) -> set[str]:
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _description_after(body: list[ast.stmt], at: int) -> str:
    """The first line of the string after an assignment."""
    after = body[at + 1] if at + 1 < len(body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
        return str(after.value.value).partition("\n")[0]
    return ""


def _signature(node: Defined) -> str:
    return node.name if isinstance(node, ast.ClassDef) else f"{node.name}{_parameters(node)}"


def _parameters(node: Function) -> str:
    given = node.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    if names[:1] in (["self"], ["cls"]):
        del names[0]
    if given.vararg:
        names.append(f"*{given.vararg.arg}")
    elif given.kwonlyargs:
        names.append("*")
    names += [argument.arg for argument in given.kwonlyargs]
    if given.kwarg:
        names.append(f"**{given.kwarg.arg}")
    return f"({', '.join(names)})"


def classes(module: str, *, functions: bool = True) -> list[Row]:
    """The public classes and functions that a module defines."""
    kinds = Defined if functions else ast.ClassDef
    nodes = [node for node in tree(module).body if isinstance(node, kinds)]
    return [Row(_signature(node), first_line(node)) for node in nodes if node.name[0] != "_"]


def methods(module: str, name: str) -> list[Row]:
    """The public methods and properties of a class."""
    node = next(n for n in tree(module).body if isinstance(n, ast.ClassDef) and n.name == name)
    verbs = [n for n in node.body if isinstance(n, Function) and n.name[0] != "_"]
    return [Row(_method_signature(verb), first_line(verb)) for verb in verbs]


def _method_signature(verb: Function) -> str:
    decorators = {ast.unparse(decorator) for decorator in verb.decorator_list}
    return verb.name if "property" in decorators else _signature(verb)


def sections() -> Iterator[tuple[str, str, list[Row]]]:
    """Every section: its title, a note, its names."""

    def rows_of(module: str) -> list[Row]:
        return sorted(find(module, name) for name in exports_of(module))

    yield "firnline", "", rows_of("firnline")
    yield "firnline.Memory", SYNC.format("sync"), methods("firnline.memory", "Memory")
    yield "firnline.strategies", "", rows_of("firnline.strategies")
    yield "firnline.errors", "", classes("firnline.errors", functions=False)
    yield "firnline.models", "", rows_of("firnline.models")
    yield "firnline.embedding", "", rows_of("firnline.embedding")
    yield "firnline.store", "", rows_of("firnline.store")
    yield (
        "firnline.protocols",
        "Protocols that you can implement yourself.",
        classes("firnline.protocols"),
    )
    yield "firnline.testing", "", rows_of("firnline.testing")
    yield "firnline.client", "See [clients.md](clients.md).", rows_of("firnline.client")
    client = methods("firnline.client.verbs", "Client")
    yield "firnline.client.Client", SYNC.format("client.sync"), client
    for name in ADAPTERS:
        module = f"firnline.adapters.{name}"
        rows = rows_of(module) if name == "langchain" else classes(module)
        yield module, f"{first_line(tree(module))}", rows


SYNC = "`firnline.{}` has the same names without await."


def page() -> str:
    """The complete page."""
    parts = [HEADING]
    for title, note, rows in sections():
        lines = [f"## {title}", ""]
        if note:
            lines += [note, ""]
        lines += ["| | |", "|---|---|"]
        lines += [f"| `{row.name}` | {row.what.replace('|', chr(92) + '|')} |" for row in rows]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
